"""Binary operations compared with torch: integers exactly, floats within units in the last place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import ttnn_emulator as ttnn
from tests.emulator.ops.against_torch import Row, check, each_dtype, shapes, stored, upload, values
from ttnn_emulator.errors import ChipFault

EXACT = {"bfloat16": 0.0, "float32": 0.0}
ROUNDED = {"bfloat16": 0.5, "float32": 0.5}
INTEGERS = ("int32", "uint32", "uint16")


def row(name: str, reference: Callable[..., torch.Tensor], bf16: float, fp32: float, **more: Any) -> Row:
    """A row with two tensor operands."""
    return Row(name, getattr(ttnn, name), reference, inputs=2, ulps={"bfloat16": bf16, "float32": fp32}, **more)


def flag(relation: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    return lambda a, b: relation(a, b).float()


FLOAT_ROWS = (
    row("add", torch.add, 1.0, 0.5, floor=0.01),
    row("subtract", torch.sub, 1.0, 0.5, floor=0.01),
    row("multiply", torch.mul, 0.5, 0.5),
    row("divide", torch.div, 0.6, 1.0, low=0.1),
    row("rsub", lambda a, b: b - a, 1.0, 0.5, floor=0.01),
    row("squared_difference", lambda a, b: (a - b) ** 2, 2.5, 1.5, floor=0.05),
    row("maximum", torch.maximum, 0.0, 0.0),
    row("minimum", torch.minimum, 0.0, 0.0),
    row("remainder", torch.remainder, 0.5, 8.0, low=1.0, high=9.0, floor=1.0),
    row("fmod", torch.fmod, 0.5, 8.0, low=1.0, high=9.0, floor=1.0),
    row("pow", torch.pow, 3.0, 16.0, low=0.2, high=3.0),
    row("xlogy", torch.xlogy, 3.0, 8000.0, low=0.5, high=8.0, floor=1.0),
    row("atan2", torch.atan2, 3.0, 3.0, floor=0.05),
    row("hypot", torch.hypot, 1.5, 2.0, low=0.1),
    row("logaddexp", torch.logaddexp, 1.0, 3.0, floor=0.2),
    row("logaddexp2", torch.logaddexp2, 1.0, 3.0, floor=0.2),
    row("ldexp", lambda a, b: a * 2.0**b, 2.0, 4.0, low=0.5),
    row("bias_gelu", lambda a, b: torch.nn.functional.gelu(a.double() + b).float(), 3.0, 16.0, floor=0.1),
    row("logical_and", flag(torch.logical_and), 0.0, 0.0),
    row("logical_or", flag(torch.logical_or), 0.0, 0.0),
    row("logical_xor", flag(torch.logical_xor), 0.0, 0.0),
    *(
        row(name, flag(getattr(torch, name)), 0.0, 0.0, low=-2.0, high=2.0)
        for name in ("eq", "ne", "lt", "le", "gt", "ge")
    ),
    row("isclose", lambda a, b: torch.isclose(a, b).float(), 0.0, 0.0),
    Row("nextafter", ttnn.nextafter, torch.nextafter, inputs=2, dtypes=("float32",), ulps=EXACT),
    Row("addalpha", lambda a, b: ttnn.addalpha(a, b, 0.5), lambda a, b: a + 0.5 * b, inputs=2, floor=0.02),
    Row("subalpha", lambda a, b: ttnn.subalpha(a, b, 0.5), lambda a, b: a - 0.5 * b, inputs=2, floor=0.02),
    Row(
        "add scalar", lambda a: ttnn.add(a, 1.5), lambda a: a + 1.5, ulps={"bfloat16": 1.0, "float32": 0.5}, floor=0.01
    ),
    Row("subtract from scalar", lambda a: ttnn.subtract(2.5, a), lambda a: 2.5 - a, ulps={"bfloat16": 1.0}, floor=0.01),
    Row("divide scalar", lambda a: ttnn.divide(2.5, a), lambda a: 2.5 / a, ulps=ROUNDED | {"float32": 1.0}, low=0.5),
    Row("maximum with scalar", lambda a: ttnn.maximum(a, 0.5), lambda a: a.clamp(min=0.5), ulps=EXACT),
    Row("square", lambda a: ttnn.pow(a, 2), torch.square, ulps={"bfloat16": 1.0, "float32": 0.5}),
    Row("pow 2.5", lambda a: ttnn.pow(a, 2.5), lambda a: a**2.5, ulps={"bfloat16": 3.0, "float32": 16.0}, low=0.2),
    Row(
        "divide, floor",
        lambda a, b: ttnn.divide(a, b, rounding_mode="floor"),
        lambda a, b: (a / b).floor(),
        inputs=2,
        low=0.7,
        ulps={"bfloat16": 200.0, "float32": 0.0},
    ),
    Row(
        "add, accurate",
        lambda a, b: ttnn.add(a, b, fast_and_approximate_mode=False),
        torch.add,
        inputs=2,
        dtypes=("bfloat16",),
        ulps=ROUNDED,
    ),
    Row(
        "multiply, fast",
        lambda a, b: ttnn.multiply(a, b, fast_and_approximate_mode=True),
        torch.mul,
        inputs=2,
        dtypes=("bfloat16",),
        ulps={"bfloat16": 2.0},
    ),
    Row(
        "add with relu",
        lambda a, b: ttnn.add(a, b, activations=[ttnn.UnaryOpType.RELU]),
        lambda a, b: (a + b).relu(),
        inputs=2,
        floor=0.01,
    ),
    Row(
        "multiply with silu of a",
        lambda a, b: ttnn.multiply(a, b, input_tensor_a_activations=[ttnn.UnaryOpType.SILU]),
        lambda a, b: torch.nn.functional.silu(a) * b,
        inputs=2,
        ulps={"bfloat16": 2.0, "float32": 8.0},
    ),
    Row(
        "clamped_silu_glu",
        lambda a, b: ttnn.clamped_silu_glu(a, b, 2.0),
        lambda a, b: torch.nn.functional.silu(a.clamp(max=2.0)) * b.clamp(-2.0, 2.0),
        inputs=2,
        ulps={"bfloat16": 2.0, "float32": 8.0},
    ),
)
BLOCK_ROWS = (
    Row(
        "add",
        ttnn.add,
        torch.add,
        inputs=2,
        dtypes=("bfloat8_b", "bfloat4_b"),
        ulps={"bfloat8_b": 2.0, "bfloat4_b": 2.0},
        floor=1.0,
    ),
    Row(
        "multiply",
        ttnn.multiply,
        torch.mul,
        inputs=2,
        dtypes=("bfloat8_b", "bfloat4_b"),
        ulps={"bfloat8_b": 3.0, "bfloat4_b": 3.0},
        floor=4.0,
    ),
)


def integer_row(
    name: str, reference: Callable[..., torch.Tensor], dtypes: tuple[str, ...] = INTEGERS, **more: Any
) -> Row:
    return Row(name, getattr(ttnn, name), reference, inputs=2, dtypes=dtypes, **({"low": 0, "high": 200} | more))


def count(relation: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    return lambda a, b: relation(a, b).to(torch.int64)


SIGNED = ("int32",)
INTEGER_ROWS = (
    integer_row("add", torch.add),
    integer_row("subtract", torch.sub, SIGNED, low=-(2**30), high=2**30),
    integer_row("multiply", torch.mul),
    integer_row("rsub", lambda a, b: b - a, SIGNED, low=-1000, high=1000),
    integer_row("squared_difference", lambda a, b: (a - b) ** 2, SIGNED, low=-1000, high=1000),
    integer_row("remainder", torch.remainder, ("int32", "uint32"), low=1),
    integer_row("fmod", torch.fmod, SIGNED, low=1),
    integer_row("maximum", torch.maximum, ("int32", "uint32")),
    integer_row("minimum", torch.minimum, SIGNED, low=-(2**31), high=2**31 - 1),
    integer_row("gcd", torch.gcd, SIGNED, low=-(2**30), high=2**30),
    integer_row("lcm", torch.lcm, SIGNED),
    *(integer_row(name, count(getattr(torch, name)), low=0, high=5) for name in ("eq", "ne", "lt", "le", "gt", "ge")),
    *(
        integer_row(f"logical_{name}", count(getattr(torch, f"logical_{name}")), low=0, high=2)
        for name in ("and", "or", "xor")
    ),
    *(
        integer_row(f"bitwise_{name}", getattr(torch, f"bitwise_{name}"), low=0, high=2**16 - 1)
        for name in ("and", "or", "xor")
    ),
    integer_row("bitwise_left_shift", lambda a, b: a << b, ("int32", "uint32"), low=0, high=14),
    integer_row("logical_left_shift", lambda a, b: a << b, ("int32", "uint32"), low=0, high=14),
    integer_row("bitwise_right_shift", lambda a, b: a >> b, low=0, high=20),
    integer_row("logical_right_shift", lambda a, b: a >> b, ("int32", "uint32"), low=0, high=31),
)


@each_dtype(FLOAT_ROWS)
def test_floats_against_torch(row, dtype, device):
    for number, shape in enumerate(row.shapes):
        check(row, dtype, shape, 10 * number, device)


@pytest.mark.parametrize("row", INTEGER_ROWS, ids=str)
def test_integers_against_torch(row, device):
    for dtype in row.dtypes:
        for number, shape in enumerate(row.shapes[:4]):
            check(row, dtype, shape, 10 * number, device)


@pytest.mark.parametrize("row", BLOCK_ROWS, ids=str)
def test_block_floats_against_torch(row, device):
    for dtype in row.dtypes:
        check(row, dtype, (64, 96), 3, device)


@given(
    row=st.sampled_from(FLOAT_ROWS),
    shape=shapes,
    seed=st.integers(0, 1000),
    dtype=st.sampled_from(("bfloat16", "float32")),
)
def test_any_shape_and_values(row, shape, seed, dtype):
    if dtype in row.dtypes:
        with ttnn.open_device(device_id=0) as device:
            check(row, dtype, shape, seed, device)


BROADCASTS = (((64, 64), (1, 64)), ((5, 33), (5, 1)), ((1, 1), (5, 33)), ((2, 3, 17, 40), (3, 1, 40)), ((7,), (3, 1)))


@pytest.mark.parametrize("pair", BROADCASTS, ids=str)
@pytest.mark.parametrize("layout", ["TILE", "ROW_MAJOR"])
def test_broadcasts(pair, layout, device):
    a, b = (values(shape, -2, 2, "float32", 7 + len(shape)) for shape in pair)
    result = ttnn.multiply(upload(a, "float32", layout, device), upload(b, "float32", layout, device))
    assert torch.equal(stored(result), a * b)


def test_sharded_operands_keep_their_shards(device):
    memory = ttnn.create_sharded_memory_config((1, 1, 64, 64), ttnn.CoreGrid(y=1, x=2), ttnn.ShardStrategy.HEIGHT)
    a = ttnn.to_memory_config(upload(values((1, 1, 64, 64), -1, 1, "bfloat16", 1), "bfloat16", "TILE", device), memory)
    assert ttnn.add(a, a).memory_config() == a.memory_config()
    assert ttnn.add(a, 1.0, memory_config=ttnn.DRAM_MEMORY_CONFIG).memory_config() == ttnn.DRAM_MEMORY_CONFIG


def test_in_place_writes_into_the_first_operand(device):
    a = upload(torch.full((5, 33), 1.5), "bfloat16", "TILE", device)
    address = a.buffer_address()
    result = ttnn.multiply_(a, 2.0)
    assert result.buffer_address() == address
    assert torch.all(stored(a) == 3.0)
    ttnn.divide_(a, upload(torch.full((1, 33), 4.0), "bfloat16", "TILE", device))
    assert torch.all(stored(a) == 0.75)


def test_output_tensor_receives_the_result(device):
    a = upload(torch.full((5, 33), 1.5), "bfloat16", "TILE", device)
    target = upload(torch.zeros(1, 5, 33), "float32", "TILE", device)
    result = ttnn.add(a, a, output_tensor=target)
    assert result.buffer_address() == target.buffer_address()
    assert torch.all(stored(target) == 3.0) and list(stored(target).shape) == [1, 5, 33]


INF, NAN = float("inf"), float("nan")
# Results of the card for special values in bfloat16.
SPECIAL = (
    ("subtract", INF, INF, 0.0),
    ("multiply", INF, 0.0, 0.0),
    ("divide", 0.0, 0.0, INF),
    ("divide", -3.0, 0.0, -INF),
    ("divide", INF, INF, INF),
    ("multiply", -0.0, 3.0, 0.0),
    ("remainder", 5.0, 0.0, INF),
    ("eq", NAN, NAN, 0.0),
    ("ne", NAN, NAN, 1.0),
    ("ge", 0.0, -0.0, 1.0),
)


@pytest.mark.parametrize(("name", "a", "b", "expected"), SPECIAL)
def test_special_values_in_bfloat16(name, a, b, expected, device):
    operands = [upload(torch.full((32, 32), value), "bfloat16", "TILE", device) for value in (a, b)]
    assert torch.all(stored(getattr(ttnn, name)(*operands)) == expected)


def test_nan_becomes_infinity_in_bfloat16(device):
    operands = [upload(torch.full((32, 32), value), "bfloat16", "TILE", device) for value in (NAN, 1.0)]
    assert stored(ttnn.add(*operands)).isinf().all()


def test_float32_keeps_nan_and_flushes_denormals(device):
    a = upload(torch.tensor([[NAN, 1e-40, INF]]), "float32", "TILE", device)
    b = upload(torch.tensor([[1.0, 0.0, -INF]]), "float32", "TILE", device)
    total = stored(ttnn.add(a, b))
    assert total.isnan().tolist() == [[True, False, True]] and total[0, 1] == 0


def test_integers_wrap_and_shift_as_on_the_card(device):
    a = upload(torch.tensor([[2**31 - 1, -(2**31), 1, -8]]), "int32", "TILE", device)
    one = upload(torch.tensor([[1, 1, 40, 1]]), "int32", "TILE", device)
    assert stored(ttnn.add(a, one))[0, 0] == -(2**31)
    assert stored(ttnn.bitwise_left_shift(a, one)).tolist()[0][2:] == [0, -16]
    assert stored(ttnn.bitwise_right_shift(a, one)).tolist()[0][3] == -4
    assert stored(ttnn.divide(a, one)).dtype is torch.float32
    zero = upload(torch.zeros(1, 4), "int32", "TILE", device)
    assert torch.equal(stored(ttnn.remainder(a, zero)), stored(a))


def test_chip_faults_are_reported(device):
    a = upload(torch.ones(5, 33), "int32", "TILE", device)
    with pytest.raises(ChipFault, match="floor_div"):
        ttnn.floor_div(a, a)
    with pytest.raises(ChipFault, match="lcm"):
        ttnn.lcm(a, upload(torch.full((5, 33), 100000), "int32", "TILE", device))


def test_a_large_sum(device):
    a = upload(torch.randn(1024, 1024), "bfloat16", "TILE", device)
    result = ttnn.add(a, a)
    assert torch.equal(stored(result), stored(a) * 2)
