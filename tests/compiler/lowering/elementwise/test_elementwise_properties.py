"""Elementwise operations of any rank and shape, with broadcasting, mixed dtypes, tensors and numbers."""

from __future__ import annotations

import torch
import torch.nn.functional as functional
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.compiler.against_torch import Outcome, check
from tests.compiler.lowering.operands import (
    EXAMPLES,
    FLOATS,
    INTEGERS,
    PRECISIONS,
    broadcast_shapes,
    pairs,
    shapes,
    tensor,
    tensors,
)

NUMBERS = st.sampled_from((0, 1, 2, 3, -1, -5, 0.5, 2.0, -0.25, 1.5, True))


def works(function, *args, **options) -> Outcome | None:
    """Check a call that torch accepts; None if torch rejects these dtypes."""
    try:
        with torch.no_grad():
            expected = function(*args)
    except (RuntimeError, TypeError, NotImplementedError):
        return None
    assume(expected.dtype is not torch.float64)
    if any(item.dtype in (torch.bfloat16, torch.float16) for item in args):
        options |= {"relative": 0.02, "absolute": 0.01}  # the precision of the operands
    return check(lambda *given: function(*given), *args, **options)


ARITHMETIC = {
    "add": torch.add,
    "sub": torch.sub,
    "mul": torch.mul,
    "rsub": torch.rsub,
    "add, alpha": lambda x, y: torch.add(x, y, alpha=3),
    "sub, alpha": lambda x, y: torch.sub(x, y, alpha=-2),
}


@given(st.sampled_from(list(ARITHMETIC)), pairs(), PRECISIONS)
@EXAMPLES
def test_sums_and_products(name, operands, precision):
    works(ARITHMETIC[name], *operands, precision=precision)


@given(st.sampled_from(list(ARITHMETIC)), tensors(), NUMBERS, PRECISIONS)
@EXAMPLES
def test_sums_and_products_with_a_number(name, x, number, precision):
    works(lambda x: ARITHMETIC[name](x, number), x, precision=precision)


@given(st.sampled_from(list(ARITHMETIC)), pairs(), st.integers(0, 1), PRECISIONS)
@EXAMPLES
def test_sums_and_products_with_a_weight(name, operands, place, precision):
    works(ARITHMETIC[name], *operands, statics=(place,), precision=precision)


@given(st.sampled_from(list(ARITHMETIC)), pairs(), NUMBERS, st.booleans(), PRECISIONS)
@EXAMPLES
def test_sums_and_products_with_a_constant(name, operands, number, first, precision):
    """A uniform constant becomes a number, unless it determines the shape of the result."""
    x, like = operands

    def function(x):
        filled = torch.full(like.shape, number, dtype=like.dtype)
        return ARITHMETIC[name](filled, x) if first else ARITHMETIC[name](x, filled)

    works(function, x, precision=precision)


DIVISIONS = {
    "div": torch.div,
    "div floor": lambda x, y: torch.div(x, y, rounding_mode="floor"),
    "div trunc": lambda x, y: torch.div(x, y, rounding_mode="trunc"),
    "floor_divide": torch.floor_divide,
    "remainder": torch.remainder,
    "fmod": torch.fmod,
}


@given(st.sampled_from(list(DIVISIONS)), pairs((*FLOATS, *INTEGERS)), PRECISIONS)
@EXAMPLES
def test_divisions(name, operands, precision):
    x, y = operands
    y = torch.where(y == 0, 1, y).to(y.dtype)  # 0 ÷ 0 is NaN, and torch raises errors for integers
    works(DIVISIONS[name], x, y, precision=precision)


@given(
    st.sampled_from(list(DIVISIONS)),
    tensors(),
    st.sampled_from((1, 2, 3, 7, 8, -1, -2, -3, 0.5, 2.0, -1.5)),
    PRECISIONS,
)
@EXAMPLES
def test_divisions_by_a_number(name, x, number, precision):
    works(lambda x: DIVISIONS[name](x, number), x, precision=precision)


COMPARISONS = {name: getattr(torch, name) for name in ("eq", "ne", "lt", "le", "gt", "ge")}
LOGICAL = {name: getattr(torch, f"logical_{name}") for name in ("and", "or", "xor")}
BITWISE = {name: getattr(torch, f"bitwise_{name}") for name in ("and", "or", "xor")}
EXTREMES = {"maximum": torch.maximum, "minimum": torch.minimum}


@given(st.sampled_from(list(COMPARISONS)), pairs(), PRECISIONS)
@EXAMPLES
def test_comparisons(name, operands, precision):
    works(COMPARISONS[name], *operands, precision=precision)


@given(st.sampled_from(list(COMPARISONS)), tensors(), NUMBERS, PRECISIONS)
@EXAMPLES
def test_comparisons_with_a_number(name, x, number, precision):
    works(lambda x: COMPARISONS[name](x, number), x, precision=precision)


@given(st.sampled_from(list(LOGICAL | BITWISE | EXTREMES)), pairs(), PRECISIONS)
@EXAMPLES
def test_logic_bits_and_extremes(name, operands, precision):
    for family in (LOGICAL, BITWISE, EXTREMES):
        if name in family:
            works(family[name], *operands, precision=precision)


@given(tensors(), st.sampled_from((torch.logical_not, torch.bitwise_not)), PRECISIONS)
@EXAMPLES
def test_negations(x, function, precision):
    works(function, x, precision=precision)


@given(st.sampled_from((torch.bitwise_left_shift, torch.bitwise_right_shift)), tensors(INTEGERS), st.integers(0, 6))
@EXAMPLES
def test_shifts(function, x, amount):
    works(lambda x: function(x, amount), x)


@given(tensors(), st.sampled_from((*FLOATS, *INTEGERS, torch.bool)), PRECISIONS)
@EXAMPLES
def test_casts(x, dtype, precision):
    assume(not (dtype is torch.uint8 and x.dtype.is_floating_point and bool((x < 0).any())))  # undefined in C
    check(lambda x: x.to(dtype), x, precision=precision)


# Function, and the range in which it is finite.
UNARY = {
    "exp": (torch.exp, -5, 5),
    "exp2": (torch.exp2, -5, 5),
    "expm1": (torch.expm1, -5, 5),
    "log": (torch.log, 0.125, 8),
    "log2": (torch.log2, 0.125, 8),
    "log10": (torch.log10, 0.125, 8),
    "log1p": (torch.log1p, -0.875, 8),
    "sqrt": (torch.sqrt, 0, 8),
    "rsqrt": (torch.rsqrt, 0.125, 8),
    "reciprocal": (torch.reciprocal, 0.125, 8),
    "sin": (torch.sin, -8, 8),
    "cos": (torch.cos, -8, 8),
    "tan": (torch.tan, -1.375, 1.375),
    "asin": (torch.asin, -1, 1),
    "acos": (torch.acos, -1, 1),
    "atan": (torch.atan, -8, 8),
    "sinh": (torch.sinh, -4, 4),
    "cosh": (torch.cosh, -4, 4),
    "asinh": (torch.asinh, -8, 8),
    "acosh": (torch.acosh, 1, 8),
    "atanh": (torch.atanh, -0.875, 0.875),
    "tanh": (torch.tanh, -4, 4),
    "erf": (torch.erf, -4, 4),
    "erfc": (torch.erfc, -4, 4),
    "erfinv": (torch.erfinv, -0.875, 0.875),
    "sigmoid": (torch.sigmoid, -8, 8),
    "logsigmoid": (functional.logsigmoid, -8, 8),
    "relu": (torch.relu, -8, 8),
    "relu6": (functional.relu6, -8, 8),
    "leaky_relu": (lambda x: functional.leaky_relu(x, 0.25), -8, 8),
    "elu": (lambda x: functional.elu(x, 0.75), -8, 8),
    "celu": (lambda x: functional.celu(x, 0.75), -8, 8),
    "selu": (functional.selu, -8, 8),
    "gelu": (functional.gelu, -8, 8),
    "gelu tanh": (lambda x: functional.gelu(x, approximate="tanh"), -8, 8),
    "silu": (functional.silu, -8, 8),
    "mish": (functional.mish, -8, 8),
    "hardtanh": (lambda x: functional.hardtanh(x, -0.5, 2.0), -8, 8),
    "hardswish": (functional.hardswish, -8, 8),
    "hardsigmoid": (functional.hardsigmoid, -8, 8),
    "hardshrink": (lambda x: functional.hardshrink(x, 0.75), -8, 8),
    "softshrink": (lambda x: functional.softshrink(x, 0.75), -8, 8),
    "softplus": (lambda x: functional.softplus(x, 2.0, 10.0), -8, 8),
    "threshold": (lambda x: functional.threshold(x, 0.5, -3.0), -8, 8),
    "abs": (torch.abs, -8, 8),
    "neg": (torch.neg, -8, 8),
    "sign": (torch.sign, -8, 8),
    "sgn": (torch.sgn, -8, 8),
    "square": (torch.square, -8, 8),
    "floor": (torch.floor, -8, 8),
    "ceil": (torch.ceil, -8, 8),
    "trunc": (torch.trunc, -8, 8),
    "round": (torch.round, -8, 8),
    "frac": (torch.frac, -8, 8),
    "isfinite": (torch.isfinite, -8, 8),
    "isinf": (torch.isinf, -8, 8),
    "signbit": (torch.signbit, -8, 8),
    "pow 2": (lambda x: x**2, -8, 8),
    "pow 3": (lambda x: x**3, -8, 8),
    "pow 0": (lambda x: x**0, -8, 8),
    "pow 0.5": (lambda x: x**0.5, 0, 8),
    "pow -1.5": (lambda x: x**-1.5, 0.125, 8),
    "2.5 pow": (lambda x: torch.pow(2.5, x), -4, 4),
    "2 pow": (lambda x: torch.pow(2.0, x), -4, 4),
}
TERMS = {"softplus": 1e-3, "erfc": 1e-3}  # log(1 + x) of small x, 1 - x near 1: compared by absolute error


@given(
    st.sampled_from(list(UNARY)),
    shapes(),
    st.sampled_from((*FLOATS, torch.int64, torch.int32, torch.uint8)),
    st.integers(0, 999),
    PRECISIONS,
)
@EXAMPLES
def test_functions(name, shape, dtype, seed, precision):
    function, low, high = UNARY[name]
    if not dtype.is_floating_point and low > 0:
        low = 1
    x = tensor(shape, dtype, seed, low, high)
    works(function, x, precision=precision, terms=TERMS.get(name, 0.0), accept=("nan",))


@given(broadcast_shapes(3), st.sampled_from((*FLOATS, torch.int64, torch.bool)), st.integers(0, 99), PRECISIONS)
@EXAMPLES
def test_where(three, dtype, seed, precision):
    condition, x, y = three
    values = [tensor(condition, torch.bool, seed), tensor(x, dtype, seed + 1), tensor(y, dtype, seed + 2)]
    check(torch.where, *values, precision=precision)


@given(broadcast_shapes(2), st.sampled_from((torch.float32, torch.bfloat16, torch.int64)), NUMBERS, st.integers(0, 99))
@EXAMPLES
def test_masked_fill(two, dtype, number, seed):
    full = torch.broadcast_shapes(*two)
    number = int(number) if dtype is torch.int64 else number
    x, mask = tensor(full, dtype, seed), tensor(two[1], torch.bool, seed)
    check(lambda x, mask: x.masked_fill(mask, number), x, mask)


LIMITS = st.sampled_from((None, -3, 0, 2, -1.5, 0.5, 4.0))


@given(tensors((*FLOATS, *INTEGERS)), LIMITS, LIMITS, PRECISIONS)
@EXAMPLES
def test_clamp(x, low, high, precision):
    works(lambda x: torch.clamp(x, low, high), x, precision=precision)


@given(broadcast_shapes(3), st.sampled_from((torch.float32, torch.int64)), st.integers(0, 99))
@EXAMPLES
def test_clamp_to_tensors(three, dtype, seed):
    values = [tensor(shape, dtype, seed + number) for number, shape in enumerate(three)]
    check(torch.clamp, *values)


TERNARY = {
    "addcmul": lambda x, y, z: torch.addcmul(x, y, z, value=0.5),
    "addcdiv": lambda x, y, z: torch.addcdiv(x, y, z.abs() + 1, value=-2),
    "lerp": lambda x, y, z: torch.lerp(x, y, 0.25),
    "lerp by tensor": torch.lerp,
}


@given(st.sampled_from(list(TERNARY)), broadcast_shapes(3), st.integers(0, 99), PRECISIONS)
@EXAMPLES
def test_three_operands(name, three, seed, precision):
    values = [tensor(shape, torch.float32, seed + number) for number, shape in enumerate(three)]
    check(TERNARY[name], *values, precision=precision)


FLOAT_PAIRS = {
    "atan2": torch.atan2,
    "hypot": torch.hypot,
    "logaddexp": torch.logaddexp,
    "logaddexp2": torch.logaddexp2,
    "xlogy": lambda x, y: torch.xlogy(x, y.abs() + 0.5),
    "copysign": lambda x, y: torch.copysign(x, y + 0.0625),
    "pow": lambda x, y: torch.pow(x.abs() + 0.5, y),
    "heaviside": torch.heaviside,
}


@given(st.sampled_from(list(FLOAT_PAIRS)), pairs((torch.float32,)), PRECISIONS)
@EXAMPLES
def test_functions_of_two(name, operands, precision):
    check(FLOAT_PAIRS[name], *operands, precision=precision)
