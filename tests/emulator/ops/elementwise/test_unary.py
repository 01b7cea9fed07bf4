"""Unary functions compared with torch: integers exactly, floats within units in the last place."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional

import ttnn_emulator as ttnn
from tests.emulator.ops.against_torch import Row, check, each_dtype, shapes, stored, upload, values
from ttnn_emulator.errors import ChipFault, InvalidArgument
from ttnn_emulator.execution.operation_table import OPERATIONS
from ttnn_emulator.numerics.mode import numerics

SHAPES = ((32, 64), (5, 33), (2, 3, 17, 40), (7,))
IMAGES = ((1, 1, 32, 64), (2, 3, 64, 32))
PAIRED = ((1, 1, 32, 64), (2, 3, 32, 128))
INTEGERS = ("int32", "uint32", "uint16")


def row(name: str, reference: Callable[..., torch.Tensor], bf16: float, fp32: float, **more: Any) -> Row:
    """An operation without arguments; `bf16` and `fp32` are its tolerances in ULPs."""
    return with_arguments(name, getattr(ttnn, name), reference, bf16, fp32, **more)


def with_arguments(
    name: str, call: Callable[..., Any], reference: Callable[..., torch.Tensor], bf16: float, fp32: float, **more: Any
) -> Row:
    """The first word of `name` is the operation."""
    return Row(name, call, reference, ulps={"bfloat16": bf16, "float32": fp32}, **({"shapes": SHAPES} | more))


def flag(holds: Callable[[torch.Tensor], torch.Tensor]) -> Callable[[torch.Tensor], torch.Tensor]:
    return lambda x: holds(x).float()


def halves(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    first, second = x.chunk(2, dim=-1)
    return first, second


def xielu(x: torch.Tensor) -> torch.Tensor:
    negative = (torch.expm1(x.clamp(max=-1e-6)) - x) * 0.7 + 0.5 * x
    return torch.where(x > 0, 0.8 * x * x + 0.5 * x, negative)


def normalised(x: torch.Tensor, *dims: int) -> torch.Tensor:
    return (x - x.mean(dims, keepdim=True)) / x.std(dims, correction=0, keepdim=True)


EXACT_ROWS = (
    row("abs", torch.abs, 0, 0),
    row("ceil", torch.ceil, 0, 0),
    row("floor", torch.floor, 0, 0),
    row("frac", torch.frac, 0, 0),
    row("identity", lambda x: x, 0, 0),
    row("neg", torch.neg, 0, 0),
    row("relu", torch.relu, 0, 0),
    row("relu6", functional.relu6, 0, 0, high=9.0),
    row("round", torch.round, 0, 0),
    row("sign", torch.sign, 0, 0),
    row("trunc", torch.trunc, 0, 0),
    row("logical_not", flag(torch.logical_not), 0, 0),
    row("logical_not_", flag(torch.logical_not), 0, 0),
    row("eqz", flag(lambda x: x == 0), 0, 0),
    row("nez", flag(lambda x: x != 0), 0, 0),
    row("gtz", flag(lambda x: x > 0), 0, 0),
    row("gez", flag(lambda x: x >= 0), 0, 0),
    row("ltz", flag(lambda x: x < 0), 0, 0),
    row("lez", flag(lambda x: x <= 0), 0, 0),
    row("isfinite", flag(torch.isfinite), 0, 0),
    row("isinf", flag(torch.isinf), 0, 0),
    row("isnan", flag(torch.isnan), 0, 0),
    row("isneginf", flag(torch.isneginf), 0, 0),
    row("isposinf", flag(torch.isposinf), 0, 0),
    row("signbit", flag(torch.signbit), 0, 0),
    row("tril", torch.tril, 0, 0, shapes=((64, 64), (33, 40), (2, 33, 40))),
    with_arguments(
        "triu 1", lambda x: ttnn.triu(x, diagonal=1), lambda x: x.triu(1), 0, 0, shapes=((64, 64), (2, 33, 40))
    ),
    row(
        "alt_complex_rotate90",
        lambda x: torch.view_as_real(torch.view_as_complex(x.unflatten(-1, (-1, 2))) * 1j).flatten(-2),
        0,
        0,
        shapes=((32, 64), (2, 5, 34)),
    ),
    with_arguments(
        "hardtanh",
        lambda x: ttnn.hardtanh(x, min_val=-1.5, max_val=0.5),
        lambda x: functional.hardtanh(x, -1.5, 0.5),
        0,
        0,
    ),
    with_arguments(
        "hardshrink", lambda x: ttnn.hardshrink(x, lambd=0.75), lambda x: functional.hardshrink(x, 0.75), 0, 0
    ),
    with_arguments(
        "heaviside", lambda x: ttnn.heaviside(x, 0.5), lambda x: torch.heaviside(x, torch.tensor(0.5)), 0, 0
    ),
    with_arguments(
        "leaky_relu",
        lambda x: ttnn.leaky_relu(x, negative_slope=0.125),
        lambda x: functional.leaky_relu(x, 0.125),
        0,
        0,
    ),
    with_arguments(
        "threshold", lambda x: ttnn.threshold(x, 0.5, -2.0), lambda x: functional.threshold(x, 0.5, -2.0), 0, 0
    ),
    with_arguments("relu_max", lambda x: ttnn.relu_max(x, 2.5), lambda x: x.clamp(0.0, 2.5), 0, 0),
    with_arguments("relu_min", lambda x: ttnn.relu_min(x, 0.5), lambda x: x.clamp(min=0.5), 0, 0),
    with_arguments("clamp", lambda x: ttnn.clamp(x, -1.5, 0.5), lambda x: x.clamp(-1.5, 0.5), 0, 0),
    with_arguments("clip", lambda x: ttnn.clip(x, -1.5, None), lambda x: x.clamp(min=-1.5), 0, 0),
    with_arguments("fill", lambda x: ttnn.fill(x, 1.5), lambda x: torch.full_like(x, 1.5), 0, 0),
)

ROUNDED_ROWS = (
    row("acos", torch.acos, 0.5, 2, low=-0.99, high=0.99),
    row("acosh", torch.acosh, 1, 2, low=1.05, high=9.0),
    row("asin", torch.asin, 0.5, 2, low=-0.99, high=0.99, floor=0.02),
    row("asinh", torch.asinh, 1, 2, floor=0.02),
    row("atan", torch.atan, 0.5, 2, floor=0.02),
    row("atanh", torch.atanh, 1.5, 2, low=-0.95, high=0.95, floor=0.05),
    row("cbrt", lambda x: x.sign() * x.abs().double().pow(1 / 3).float(), 0.5, 2.5),
    row("cos", torch.cos, 0.5, 1.5, floor=0.05),
    row("cosh", torch.cosh, 0.5, 2),
    row("deg2rad", torch.deg2rad, 1, 1, low=-180.0, high=180.0),
    row("digamma", torch.digamma, 1.5, 16, low=2.0, high=9.0),
    row("erf", torch.erf, 1, 4, floor=0.05),
    row("erfc", torch.erfc, 1.5, 2000, low=-3.0, high=2.0),
    row("erfinv", torch.erfinv, 2, 1e5, low=-0.95, high=0.95, floor=0.05),
    row("exp", torch.exp, 1, 1.5),
    row("exp2", torch.exp2, 1, 1.5),
    row("expm1", torch.expm1, 0.5, 2, floor=0.02),
    row("gelu", functional.gelu, 0.5, 32, floor=0.1),
    row("hardmish", lambda x: x * (x + 2).clamp(0, 2) / 2, 1, 1, floor=0.1),
    row("hardsigmoid", functional.hardsigmoid, 1, 1, floor=0.1),
    row("hardswish", functional.hardswish, 1.5, 2, floor=0.1),
    row("i0", torch.i0, 1, 24),
    row("i1", torch.special.i1, 0.5, 8, floor=0.05),
    row("lgamma", torch.lgamma, 2, 2e4, low=1.25, high=9.0, floor=0.2),
    row("log", torch.log, 0.6, 1.5, low=0.1, high=9.0, floor=0.05),
    row("log10", torch.log10, 0.6, 1.5, low=0.1, high=9.0, floor=0.05),
    row("log1p", torch.log1p, 0.6, 1.5, low=-0.9, high=9.0, floor=0.05),
    row("log2", torch.log2, 0.6, 1.5, low=0.1, high=9.0, floor=0.05),
    row("log_sigmoid", functional.logsigmoid, 2, 1e5, floor=0.05),
    row("mish", functional.mish, 1, 4, floor=0.1),
    row("multigammaln", lambda x: torch.special.multigammaln(x, 4), 2, 1e5, low=2.8, high=9.0, floor=1.0),
    row("rad2deg", torch.rad2deg, 1, 1),
    row("reciprocal", torch.reciprocal, 0.5, 1.5, low=0.2),
    row("rsqrt", torch.rsqrt, 0.5, 2, low=0.1),
    row("sigmoid", torch.sigmoid, 1, 2),
    row("sigmoid_accurate", torch.sigmoid, 1, 2),
    row("silu", functional.silu, 1, 2.5, floor=0.05),
    row("swish", functional.silu, 1, 2.5, floor=0.05),
    row("sin", torch.sin, 0.5, 1.5, floor=0.05),
    row("sinh", torch.sinh, 0.5, 2, floor=0.05),
    row("softsign", functional.softsign, 1, 2, floor=0.01),
    row("sqrt", torch.sqrt, 0.5, 1.5, low=0.0, high=9.0),
    row("square", torch.square, 0.5, 0.5),
    row("tan", torch.tan, 0.5, 2, low=-1.4, high=1.4, floor=0.05),
    row("tanh", torch.tanh, 1, 2, floor=0.02),
    row("tanhshrink", functional.tanhshrink, 1, 6, floor=0.1),
    row("logit", torch.logit, 3, 6, low=0.05, high=0.95, floor=0.3),
    row("selu", functional.selu, 0.5, 48, floor=0.1),
    with_arguments("celu", lambda x: ttnn.celu(x, alpha=0.7), lambda x: functional.celu(x, 0.7), 0.5, 2, floor=0.05),
    with_arguments("elu", lambda x: ttnn.elu(x, alpha=0.7), lambda x: functional.elu(x, 0.7), 0.5, 2, floor=0.05),
    with_arguments(
        "softshrink",
        lambda x: ttnn.softshrink(x, lambd=0.75),
        lambda x: functional.softshrink(x, 0.75),
        0.5,
        0.5,
        floor=0.1,
    ),
    with_arguments(
        "softplus",
        lambda x: ttnn.softplus(x, beta=2.0, threshold=10.0),
        lambda x: functional.softplus(x, 2.0, 10.0),
        6,
        1000,
        floor=0.02,
    ),
    with_arguments("rpow", lambda x: ttnn.rpow(x, 2.5), lambda x: 2.5**x, 1, 2),
    with_arguments("rdiv", lambda x: ttnn.rdiv(x, 3.0), lambda x: 3.0 / x, 1.1, 2, low=0.2),
    with_arguments(
        "rdiv, truncated",
        lambda x: ttnn.rdiv(x, 3.3, rounding_mode="trunc"),
        lambda x: (3.3 / x).trunc(),
        0,
        0,
        low=0.45,
        high=3.2,
        dtypes=("float32",),
    ),
    with_arguments(
        "polygamma", lambda x: ttnn.polygamma(x, 2), lambda x: torch.polygamma(2, x), 1, 8, low=1.5, high=9.0
    ),
    with_arguments("round 1", lambda x: ttnn.round(x, decimals=1), lambda x: torch.round(x, decimals=1), 1, 1.5),
    with_arguments("xielu", lambda x: ttnn.xielu(x, alpha_p=0.8, alpha_n=0.7), xielu, 1, 4, floor=0.2),
    with_arguments(
        "gelu, tanh variant",
        lambda x: ttnn.gelu(x, variant=ttnn.GeluVariant.Tanh),
        lambda x: functional.gelu(x, approximate="tanh"),
        0.5,
        6,
        floor=0.1,
    ),
    with_arguments(
        "gelu, fast", lambda x: ttnn.gelu(x, fast_and_approximate_mode=True), functional.gelu, 2, 2e5, floor=0.5
    ),
    with_arguments(
        "exp, fast", lambda x: ttnn.exp(x, fast_and_approximate_mode=True), torch.exp, 6, 4e5, dtypes=("bfloat16",)
    ),
    with_arguments(
        "sqrt, fast", lambda x: ttnn.sqrt(x, fast_and_approximate_mode=True), torch.sqrt, 0.5, 1.5, low=0.1, high=9.0
    ),
    with_arguments(
        "unary_chain",
        lambda x: ttnn.unary_chain(x, [ttnn.UnaryWithParam(ttnn.UnaryOpType.EXP), ttnn.UnaryOpType.NEG]),
        lambda x: -x.exp(),
        1,
        1.5,
    ),
    row("glu", lambda x: functional.glu(x, -1), 1.5, 3, shapes=PAIRED, floor=0.05),
    row("reglu", lambda x: halves(x)[0] * halves(x)[1].relu(), 0.5, 0.5, shapes=PAIRED, floor=0.05),
    row("geglu", lambda x: halves(x)[0] * functional.gelu(halves(x)[1]), 1.5, 32, shapes=PAIRED, floor=0.3),
    row("swiglu", lambda x: halves(x)[0] * functional.silu(halves(x)[1]), 1.5, 3, shapes=PAIRED, floor=0.3),
    # The matrix unit sums float32 with 10 fraction bits.
    row("var_hw", lambda x: x.var((2, 3), correction=0, keepdim=True), 1, 1e5, shapes=IMAGES),
    row("std_hw", lambda x: x.std((2, 3), correction=0, keepdim=True), 1, 1e5, shapes=IMAGES),
    row("normalize_hw", lambda x: normalised(x, 2, 3), 2, 1e5, shapes=IMAGES, floor=0.2),
    row("normalize_global", lambda x: normalised(x, 0, 1, 2, 3), 2, 1e5, shapes=IMAGES, floor=0.2),
)
FLOAT_ROWS = EXACT_ROWS + ROUNDED_ROWS


def integer_row(
    name: str, call: Any, reference: Callable[..., torch.Tensor], dtypes: tuple[str, ...], **more: Any
) -> Row:
    return Row(name, call, reference, dtypes=dtypes, **({"low": 0, "high": 60000, "shapes": SHAPES} | more))


SIGNED = {"low": -(2**31) + 1, "high": 2**31 - 1}  # -2³¹ has its own test below
INTEGER_ROWS = (
    integer_row("abs", ttnn.abs, torch.abs, ("int32",), **SIGNED),
    integer_row("abs", ttnn.abs, torch.abs, ("uint32", "uint16")),
    integer_row("neg", ttnn.neg, torch.neg, ("int32",), **SIGNED),
    integer_row("identity", ttnn.identity, lambda x: x, ("int32",), **SIGNED),
    integer_row("identity", ttnn.identity, lambda x: x, INTEGERS),
    integer_row("relu", ttnn.relu, torch.relu, ("int32",), **SIGNED),
    integer_row("relu6", ttnn.relu6, lambda x: x.clamp(0, 6), INTEGERS, high=12),
    integer_row("relu6", ttnn.relu6, lambda x: x.clamp(0, 6), ("int32",), low=-12, high=12),
    integer_row("relu_max", lambda x: ttnn.relu_max(x, 7), lambda x: x.clamp(0, 7), ("int32",), low=-20, high=20),
    integer_row("relu_min", lambda x: ttnn.relu_min(x, -3), lambda x: x.clamp(min=-3), ("int32",), low=-20, high=20),
    integer_row("square", ttnn.square, torch.square, ("int32",), low=-46340, high=46340),
    integer_row("square", ttnn.square, torch.square, INTEGERS, high=255),
    integer_row("bitwise_not", ttnn.bitwise_not, torch.bitwise_not, ("int32",), **SIGNED),
    integer_row("bitwise_not", ttnn.bitwise_not, lambda x: 2**32 - 1 - x, ("uint32",)),
    integer_row("signbit", ttnn.signbit, lambda x: (x < 0).long(), ("int32",), **SIGNED),
    integer_row("clamp", lambda x: ttnn.clamp(x, -5, 9), lambda x: x.clamp(-5, 9), ("int32",), low=-20, high=20),
    integer_row("fill", lambda x: ttnn.fill(x, 9), lambda x: torch.full_like(x, 9), INTEGERS),
    integer_row("tril", ttnn.tril, torch.tril, ("int32",), low=-9, high=9, shapes=((33, 40),)),
    integer_row("logical_not", ttnn.logical_not, lambda x: (x == 0).long(), INTEGERS, high=2),
    integer_row("eqz", ttnn.eqz, lambda x: (x == 0).long(), INTEGERS, high=2),
    integer_row("nez", ttnn.nez, lambda x: (x != 0).long(), INTEGERS, high=2),
    *(
        integer_row(name, getattr(ttnn, name), reference, ("int32",), low=-2, high=2)
        for name, reference in {
            "eqz": lambda x: (x == 0).long(),
            "gtz": lambda x: (x > 0).long(),
            "gez": lambda x: (x >= 0).long(),
            "ltz": lambda x: (x < 0).long(),
            "lez": lambda x: (x <= 0).long(),
        }.items()
    ),
)


@each_dtype(FLOAT_ROWS)
def test_floats_against_torch(row, dtype, device):
    for number, shape in enumerate(row.shapes):
        check(row, dtype, shape, 10 * number, device)


@pytest.mark.parametrize("row", INTEGER_ROWS, ids=str)
def test_integers_against_torch(row, device):
    for dtype in row.dtypes:
        for number, shape in enumerate(row.shapes):
            check(row, dtype, shape, 10 * number, device)


FREE = tuple(row for row in FLOAT_ROWS if row.shapes is SHAPES)  # rows for any shape


@given(
    row=st.sampled_from(FREE),
    shape=shapes,
    seed=st.integers(0, 1000),
    dtype=st.sampled_from(("bfloat16", "float32")),
    layout=st.sampled_from(("TILE", "ROW_MAJOR")),
)
def test_any_shape_and_values(row, shape, seed, dtype, layout):
    if dtype in row.dtypes:
        changed = Row(**{**vars(row), "layout": layout})
        with ttnn.open_device(device_id=0) as device:
            check(changed, dtype, shape, seed, device)


@given(row=st.sampled_from(INTEGER_ROWS), shape=shapes, seed=st.integers(0, 1000))
def test_any_shape_and_integers(row, shape, seed):
    if row.shapes is SHAPES:
        with ttnn.open_device(device_id=0) as device:
            for dtype in row.dtypes:
                check(row, dtype, shape, seed, device)


NOT_IN_ROWS = {"ttnn.softcap", "ttnn.snake_beta"}  # not supported on this board; three operands


def test_every_operation_has_a_row():
    families = ("functions", "composite", "parameterised", "snake")
    modules = {f"ttnn_emulator.ops.elementwise.unary.{name}" for name in families}
    ours = {name for name, op in OPERATIONS.items() if op.function.__module__ in modules}
    tested = {f"ttnn.{row.name.replace(',', '').split(' ')[0]}" for row in FLOAT_ROWS + INTEGER_ROWS}
    assert ours - tested == NOT_IN_ROWS


INF, NAN = math.inf, math.nan
LEAST_DENORMAL = 9.2e-41
# Operation, argument and the card's result in bfloat16.
SPECIAL = (
    ("relu", -INF, 0.0),
    ("relu", -0.0, 0.0),
    ("neg", 0.0, 0.0),
    ("identity", LEAST_DENORMAL, 0.0),
    ("ceil", LEAST_DENORMAL, 1.0),
    ("sqrt", -1.0, INF),
    ("log", -1.0, INF),
    ("log", -0.0, -INF),
    ("log", 0.0, -INF),
    ("exp", 100.0, INF),
    ("exp", -100.0, 0.0),
    ("exp", -INF, 0.0),
    ("reciprocal", 0.0, INF),
    ("reciprocal", -0.0, -INF),
    ("silu", -INF, -INF),
    ("gelu", -INF, 0.0),
    ("sigmoid", INF, 1.0),
    ("tanh", -INF, -1.0),
    ("logical_not", -0.0, 0.0),
    ("logical_not", 0.0, 1.0),
    ("isnan", NAN, 1.0),
    ("isnan", INF, 0.0),
    ("isinf", NAN, 0.0),
    ("isinf", -INF, 1.0),
    ("isfinite", NAN, 0.0),
    ("isposinf", -INF, 0.0),
    ("isneginf", -INF, 1.0),
    ("round", 2.5, 2.0),
    ("round", 3.5, 4.0),
)


def one(value: float, dtype: str, device: Any) -> Any:
    return upload(torch.full((1, 32), value), dtype, "TILE", device)


@pytest.mark.parametrize(("name", "value", "expected"), SPECIAL)
def test_special_values_in_bfloat16(name, value, expected, device):
    result = stored(getattr(ttnn, name)(one(value, "bfloat16", device)))
    assert torch.all(result == expected), f"{result[0, 0]}"
    assert not (result == 0).logical_and(result.signbit()).any(), "the packer writes no minus zero"


@pytest.mark.parametrize("name", ["identity", "relu", "abs", "sqrt", "sin", "exp", "square"])
def test_nan_becomes_infinity_in_bfloat16(name, device):
    nan = torch.full((1, 32), 0x7FC0, dtype=torch.int16).view(torch.bfloat16)  # torch's casts may set the sign
    assert stored(getattr(ttnn, name)(upload(nan, "bfloat16", "TILE", device))).isinf().all()


def test_the_exponential_near_the_end_of_its_range(device):
    assert 2.6e38 < stored(ttnn.exp(one(88.5, "bfloat16", device)))[0, 0] < 2.8e38
    assert stored(ttnn.exp(one(0.0, "bfloat16", device), fast_and_approximate_mode=True))[0, 0] == 0.9765625
    assert -1.1e-4 < stored(ttnn.gelu(one(0.0, "bfloat16", device), fast_and_approximate_mode=True))[0, 0] < -0.9e-4


def test_the_fast_sigmoid_is_coarse(device):
    x = upload(torch.linspace(-4, 4, 1024).reshape(32, 32), "bfloat16", "TILE", device)
    off = (stored(ttnn.sigmoid(x, mode=ttnn.SigmoidMode.FastApproximate)) - stored(x).sigmoid()).abs().max()
    assert 0.05 < off < 0.125  # from |x| = 2 on it is 0 or 1


def test_float32_keeps_nan_and_infinity(device):
    x = upload(torch.tensor([[NAN, INF, -INF, 1e-40]]), "float32", "TILE", device)
    moved = stored(ttnn.identity(x))
    assert moved.isnan().tolist() == [[True, False, False, False]]
    assert moved[0, 1:3].tolist() == [INF, -INF]
    assert stored(ttnn.isnan(x)).tolist() == [[1, 0, 0, 0]]
    assert stored(ttnn.exp(x))[0, 1:].tolist() == [INF, 0.0, 1.0]


def test_the_smallest_integer_counts_as_zero_in_sign_tests(device):
    x = upload(torch.tensor([[-(2**31), -1, 0, 1]]), "int32", "TILE", device)
    assert stored(ttnn.eqz(x)).tolist() == [[1, 0, 1, 0]]
    assert stored(ttnn.ltz(x)).tolist() == [[0, 1, 0, 0]]
    assert stored(ttnn.nez(x)).tolist() == [[0, 1, 0, 1]]


def test_output_tensor_receives_the_result_in_its_dtype(device):
    x = upload(torch.full((5, 33), -1.5), "bfloat16", "TILE", device)
    target = upload(torch.zeros(5, 33), "float32", "TILE", device)
    result = ttnn.abs(x, output_tensor=target)
    assert result.buffer_address() == target.buffer_address() and torch.all(stored(target) == 1.5)
    with pytest.raises(InvalidArgument, match="shape"):
        ttnn.abs(x, output_tensor=upload(torch.zeros(5, 34), "bfloat16", "TILE", device))


def test_logical_not_in_place_keeps_its_buffer(device):
    x = upload(torch.tensor([[0.0, 2.0]]), "bfloat16", "TILE", device)
    address = x.buffer_address()
    assert ttnn.logical_not_(x).buffer_address() == address and stored(x).tolist() == [[1.0, 0.0]]


def test_bounds_may_be_tensors(device):
    x = upload(values((5, 33), -4, 4, "bfloat16", 1), "bfloat16", "TILE", device)
    low, high = (upload(torch.full((5, 33), bound), "bfloat16", "TILE", device) for bound in (-1.0, 0.5))
    assert torch.equal(stored(ttnn.clamp(x, low, high)), stored(x).clamp(-1.0, 0.5))


def test_snake_beta(device):
    x, alpha, beta = (values(shape, 0.5, 2.0, "float32", len(shape)) for shape in ((5, 64), (64,), (1, 64)))
    tensors = [upload(each, "float32", "TILE", device) for each in (x, alpha, beta)]
    expected = x + torch.sin(alpha * x) ** 2 / beta
    assert torch.allclose(stored(ttnn.snake_beta(*tensors)), expected, rtol=1e-6, atol=1e-6)


def test_vector_mode_two_computes_the_left_faces_only(device):
    x = upload(torch.zeros(32, 32), "bfloat16", "TILE", device)
    result = stored(ttnn.sigmoid(x, vector_mode=2))
    assert torch.all(result[:, :16] == 0.5) and torch.all(result[:, 16:] == 0.0)


def test_chip_faults_are_reported(device):
    odd = upload(torch.ones(4, 3), "bfloat16", "ROW_MAJOR", device)
    with pytest.raises(ChipFault, match="odd width"):
        ttnn.alt_complex_rotate90(odd)
    with pytest.raises(InvalidArgument, match=r"ttnn\.softcap.*Blackhole"):
        ttnn.softcap(upload(torch.ones(32, 32), "bfloat16", "TILE", device), 30.0)


def test_results_keep_the_sharding(device):
    memory = ttnn.create_sharded_memory_config((1, 1, 64, 64), ttnn.CoreGrid(y=1, x=2), ttnn.ShardStrategy.HEIGHT)
    x = ttnn.to_memory_config(upload(values((1, 1, 64, 64), -1, 1, "bfloat16", 1), "bfloat16", "TILE", device), memory)
    result = ttnn.exp(x)
    assert result.memory_config() == x.memory_config()
    assert torch.equal(stored(result), stored(ttnn.exp(ttnn.to_memory_config(x, ttnn.DRAM_MEMORY_CONFIG))))


@pytest.mark.parametrize("name", ["exp", "gelu", "tanh", "sigmoid", "silu", "log"])
def test_large_float32_tensors_are_close_to_the_exact_model(name, device):
    x = upload(values((128, 256), 0.1, 4, "float32", 5), "float32", "TILE", device)
    results = []
    for mode in ("exact", "fast"):
        with numerics(mode):
            results.append(stored(getattr(ttnn, name)(x)))
    assert torch.allclose(*results, rtol=4e-6, atol=1e-7)
