"""In-place variants and aliases of operations, and a few other operations, compared with torch."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import ttnn_emulator as ttnn
from tests.emulator.ops.against_torch import Row, check, stored, upload, values

IN_PLACE = (
    "add bias_gelu div eq ge gt ldexp le logaddexp logaddexp2 logical_and logical_or logical_xor lt mul ne rsub "
    "squared_difference sub subtract multiply divide"
).split(" ")
PLAIN = {"div": "divide", "mul": "multiply", "sub": "subtract"}
COEFFICIENTS = [0.5, -1.0, 2.0]
ALIASES = {"mul": "multiply", "sub": "subtract"}


def pair(device: Any, shape: tuple[int, ...] = (5, 33), dtype: str = "bfloat16", seed: int = 0) -> list[Any]:
    return [upload(values(shape, -3, 3, dtype, seed + n), dtype, "TILE", device) for n in range(2)]


@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
@pytest.mark.parametrize("name", IN_PLACE)
def test_in_place_operations_return_the_bits_of_plain_ones(name: str, dtype: str, device: Any) -> None:
    a, b = pair(device, dtype=dtype)
    expected = stored(getattr(ttnn, PLAIN.get(name, name))(a, b))
    address = a.buffer_address()
    result = getattr(ttnn, f"{name}_")(a, b)
    assert result.buffer_address() == address
    assert torch.equal(stored(a), expected)


@pytest.mark.parametrize("name", ALIASES)
def test_aliases(name: str, device: Any) -> None:
    a, b = pair(device)
    assert torch.equal(stored(getattr(ttnn, name)(a, b)), stored(getattr(ttnn, ALIASES[name])(a, b)))


def _polynomial(x: torch.Tensor) -> torch.Tensor:
    first, second, third = COEFFICIENTS
    return (first * x + second) * x + third


def _quotient(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return torch.where(b == 0, 0.0, a / b)


ROWS = [
    Row(
        "polyval", lambda x: ttnn.polyval(x, COEFFICIENTS), _polynomial, floor=1.0, ulps={"bfloat16": 4, "float32": 64}
    ),
    Row("prelu", lambda x: ttnn.prelu(x, 0.25), lambda x: torch.where(x > 0, x, 0.25 * x)),
    Row("div_no_nan", ttnn.div_no_nan, _quotient, inputs=2, low=0.5, high=4.0, ulps={"bfloat16": 2, "float32": 8}),
    Row("fill_zero_bw", lambda g: ttnn.fill_zero_bw(g, g)[0], torch.zeros_like),
]


@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
@pytest.mark.parametrize("row", ROWS, ids=str)
def test_against_torch(row: Row, dtype: str, device: Any) -> None:
    for seed, shape in enumerate(row.shapes):
        check(row, dtype, shape, seed, device)


@given(row=st.sampled_from(ROWS), shape=st.lists(st.integers(1, 40), min_size=1, max_size=4), seed=st.integers(0, 99))
def test_against_torch_on_any_shape(row: Row, shape: list[int], seed: int) -> None:
    with ttnn.open_device(device_id=0) as device:
        check(row, "bfloat16", tuple(shape), seed, device)


def test_div_no_nan_of_zero_divisors_is_zero(device: Any) -> None:
    a, b = (upload(torch.tensor([[1.0, -2.0, 3.0]]), "bfloat16", "TILE", device) for _ in range(2))
    zero = ttnn.multiply(b, 0.0)
    assert stored(ttnn.div_no_nan(a, zero)).tolist() == [[0.0, 0.0, 0.0]]


def test_outer(device: Any) -> None:
    a, b = torch.arange(1.0, 6.0), torch.arange(1.0, 8.0)
    tall = upload(a.reshape(1, 1, 5, 1), "bfloat16", "TILE", device)
    flat = upload(b.reshape(1, 1, 1, 7), "bfloat16", "TILE", device)
    assert torch.equal(stored(ttnn.outer(tall, flat)).reshape(5, 7), torch.outer(a, b))


def test_scatter_add(device: Any) -> None:
    base, source = values((4, 10), -3, 3, "bfloat16", 1).bfloat16(), values((4, 6), -3, 3, "bfloat16", 2).bfloat16()
    index = torch.stack([torch.randperm(10, generator=torch.Generator().manual_seed(row))[:6] for row in range(4)])
    operands = [upload(base, "bfloat16", "ROW_MAJOR", device), 1, upload(index, "int32", "ROW_MAJOR", device)]
    ours = stored(ttnn.scatter_add(*operands, upload(source, "bfloat16", "ROW_MAJOR", device)))
    assert torch.equal(ours, base.float().scatter_add(1, index, source.float()).bfloat16().float())


def test_tosa_gather_and_scatter(device: Any) -> None:
    table, rows = (
        values((2, 9, 33), -3, 3, "bfloat16", 1).bfloat16(),
        values((2, 4, 33), -3, 3, "bfloat16", 2).bfloat16(),
    )
    index = torch.tensor([[0, 8, 3, 5], [7, 1, 2, 6]])
    whole, places = upload(table, "bfloat16", "TILE", device), upload(index, "uint32", "TILE", device)
    wide = index.unsqueeze(-1).expand(-1, -1, 33)
    assert torch.equal(stored(ttnn.tosa_gather(whole, places)), table.float().gather(1, wide))
    written = ttnn.tosa_scatter(whole, places, upload(rows, "bfloat16", "TILE", device))
    assert torch.equal(stored(written), table.float().scatter(1, wide, rows.float()))


def test_index_fill_new(device: Any) -> None:
    base = values((5, 33), -3, 3, "bfloat16", 1).bfloat16()
    index = torch.tensor([0, 4, 31])
    x, places = upload(base, "bfloat16", "ROW_MAJOR", device), upload(index, "uint32", "ROW_MAJOR", device)
    assert torch.equal(stored(ttnn.index_fill_new(x, 1, places, 2.5)), base.float().index_fill(1, index, 2.5))


def test_colour_coefficients_are_the_same_under_both_names() -> None:
    for name in ("yuv_bt601_coefficients", "yuv_bt709_coefficients"):
        assert str(getattr(ttnn, name)()) == str(getattr(ttnn.experimental, name)())
