"""Gradients, compared with torch.autograd."""

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
from tests.emulator.ops.against_torch import Row, check, same_buffer, shapes, stored, upload, values

SMALL = ((32, 64), (5, 33), (2, 3, 17, 40), (7,))
EXACT = {"bfloat16": 0.0, "float32": 0.0}
ONE = {"bfloat16": 1.0, "float32": 2.0}  # one product
FEW = {"bfloat16": 3.0, "float32": 8.0}  # a few rounded steps
MANY = {"bfloat16": 8.0, "float32": 32.0}  # more steps, or a sum that cancels


def reference(function: Callable[..., torch.Tensor], place: int = 0) -> Callable[..., torch.Tensor]:
    """The gradient of `function` with respect to argument `place`, as a function of the output gradient."""

    def compute(grad: torch.Tensor, *inputs: torch.Tensor) -> torch.Tensor:
        leaves = [value.double().requires_grad_() for value in inputs]
        gradient = torch.autograd.grad(function(*leaves), leaves[place], grad.double(), allow_unused=True)[0]
        return torch.zeros_like(inputs[place]) if gradient is None else gradient.float()

    return compute


def of_one(
    name: str,
    function: Callable[..., torch.Tensor],
    ulps: dict[str, float] = FEW,
    low: float = -4.0,
    high: float = 4.0,
    floor: float = 0.0,
    args: tuple = (),
    **options: Any,
) -> Row:
    def call(g: Any, x: Any) -> Any:
        return getattr(ttnn, f"{name}_bw")(g, x, *args, **options)[0]

    title = " ".join([name, *map(str, args), *(f"{key}={value}" for key, value in options.items())])
    return Row(title, call, reference(function), inputs=2, low=low, high=high, ulps=ulps, floor=floor, shapes=SMALL)


def of_two(
    name: str,
    function: Callable[..., torch.Tensor],
    ulps: dict[str, float] = FEW,
    low: float = -4.0,
    high: float = 4.0,
    floor: float = 0.0,
    inputs: int = 2,
    args: tuple = (),
    first: int = 0,
    dtypes: tuple[str, ...] = ("bfloat16", "float32"),
) -> list[Row]:
    """A row for the gradient of each operand from `first` on."""

    def call(place: int) -> Callable[..., Any]:
        return lambda *tensors: getattr(ttnn, f"{name}_bw")(*tensors, *args)[place - first]

    return [
        Row(
            f"{name} of operand {place}",
            call(place),
            reference(function, place),
            inputs=inputs + 1,
            low=low,
            high=high,
            ulps=ulps,
            floor=floor,
            shapes=SMALL,
            dtypes=dtypes,
        )
        for place in range(first, inputs)
    ]


UNARY = (
    of_one("abs", torch.abs, EXACT),
    of_one("neg", torch.neg, EXACT),
    of_one("square", torch.square, ONE),
    of_one("fill", lambda x: torch.ones_like(x) + 0 * x, EXACT),
    *(of_one(name, getattr(torch, name), EXACT) for name in ("ceil", "floor", "round", "trunc", "sign", "frac")),
    of_one("exp", torch.exp),
    of_one("exp2", torch.exp2),
    of_one("expm1", torch.expm1),
    of_one("log", torch.log, low=0.05),
    of_one("log2", torch.log2, low=0.05),
    of_one("log10", torch.log10, low=0.05),
    of_one("log1p", torch.log1p, low=-0.9),
    of_one("logit", torch.logit, MANY, low=0.05, high=0.95),
    of_one("logiteps", lambda x: torch.logit(x, eps=0.25), MANY, low=0.05, high=0.95, eps=0.25),
    # If the base is not positive, the library returns infinity for any exponent.
    *(of_one("pow", lambda x, n=n: x**n, low=0.1, args=(n,)) for n in (2.0, 0.5, 3.5)),
    of_one("pow", lambda x: x**0.0, EXACT, args=(0.0,)),
    # The gradient of x to a constant power, despite its name; undefined below zero.
    of_one("rpow", lambda x: x**2.5, low=0.1, args=(2.5,)),
    of_one("sqrt", torch.sqrt, low=0.1),
    of_one("rsqrt", torch.rsqrt, MANY, low=0.1),
    of_one("reciprocal", torch.reciprocal, low=0.2),
    of_one("rdiv", lambda x: 2.5 / x, low=0.2, args=(2.5,)),
    of_one("div_no_nan", lambda x: x / 3.0, ONE, args=(3.0,)),
)
TRIGONOMETRY = (
    of_one("deg2rad", torch.deg2rad, ONE),
    of_one("rad2deg", torch.rad2deg, ONE),
    of_one("sin", torch.sin, floor=0.1),
    of_one("cos", torch.cos, floor=0.1),
    of_one("tan", torch.tan, MANY, low=-1.4, high=1.4),
    of_one("sinh", torch.sinh),
    of_one("cosh", torch.cosh),
    of_one("tanh", torch.tanh, {"bfloat16": 2.0, "float32": 6e4}),  # its sech² has the precision of bfloat16
    of_one("tanhshrink", lambda x: x - torch.tanh(x)),
    of_one("asin", torch.asin, MANY, low=-0.9, high=0.9),
    of_one("acos", torch.acos, MANY, low=-0.9, high=0.9),
    of_one("atan", torch.atan),
    of_one("asinh", torch.asinh),
    of_one("acosh", torch.acosh, MANY, low=1.2),
    of_one("atanh", torch.atanh, MANY, low=-0.9, high=0.9),
)
ACTIVATIONS = (
    of_one("relu", torch.relu, EXACT),
    of_one("relu6", functional.relu6, EXACT, low=-8.0, high=8.0),
    of_one("leaky_relu", lambda x: functional.leaky_relu(x, 0.2), ONE, negative_slope=0.2),
    of_one("elu", lambda x: functional.elu(x, 0.7), alpha=0.7),
    of_one("celu", lambda x: functional.celu(x, 0.7), MANY, alpha=0.7),
    # The library's constants have five and seven digits.
    of_one("selu", functional.selu, {"bfloat16": 4.0, "float32": 64.0}),
    of_one("silu", functional.silu, MANY, floor=0.05),
    of_one("gelu", functional.gelu, {"bfloat16": 2.0, "float32": 9e4}, floor=0.05),  # with the precision of bfloat16
    of_one(
        "gelu",
        lambda x: functional.gelu(x, approximate="tanh"),
        {"bfloat16": 8.0, "float32": 128.0},
        floor=0.05,
        variant=ttnn.GeluVariant.Tanh,
    ),
    of_one("bias_gelu", lambda x: functional.gelu(x + 0.5), {"bfloat16": 4.0, "float32": 9e4}, floor=0.05, args=(0.5,)),
    of_one("sigmoid", torch.sigmoid, {"bfloat16": 2.0, "float32": 64.0}),  # 1 - s cancels
    of_one("log_sigmoid", functional.logsigmoid, MANY),
    of_one("softplus", lambda x: functional.softplus(x, 2.0, 5.0), beta=2.0, threshold=5.0),
    of_one("softsign", functional.softsign),
    of_one("hardsigmoid", functional.hardsigmoid, ONE),
    # The library uses 0.3333 for 1/3, and the slope at 3 is that of the middle piece.
    of_one("hardswish", functional.hardswish, {"bfloat16": 4.0, "float32": 8e3}, low=-2.9, high=2.9, floor=0.1),
    of_one("hardswish", functional.hardswish, EXACT, low=3.1, high=8.0),
    of_one("hardtanh", lambda x: functional.hardtanh(x, -2.0, 0.5), EXACT, min=-2.0, max=0.5),
    of_one("hardshrink", lambda x: functional.hardshrink(x, 0.7), EXACT, lambd=0.7),
    of_one("softshrink", lambda x: functional.softshrink(x, 0.7), EXACT, lambd=0.7),
    of_one("threshold", lambda x: functional.threshold(x, 0.7, 2.0), EXACT, args=(0.7, 2.0)),
    of_one("clamp", lambda x: torch.clamp(x, -1.0, 2.0), EXACT, args=(-1.0, 2.0)),
    of_one("clip", lambda x: torch.clip(x, max=2.0), EXACT, max=2.0),
)
SPECIAL = (
    of_one("lgamma", torch.lgamma, {"bfloat16": 4.0, "float32": 2e4}, low=2.0, high=8.0),
    of_one("digamma", torch.digamma, {"bfloat16": 4.0, "float32": 2e4}, low=0.5, high=8.0),
    of_one(
        "polygamma", lambda x: torch.special.polygamma(2, x), {"bfloat16": 4.0, "float32": 2e4}, 0.5, 8.0, args=(2,)
    ),
    of_one(
        "multigammaln", lambda x: torch.special.multigammaln(x, 4), {"bfloat16": 8.0, "float32": 2e4}, low=3.0, high=8.0
    ),
    of_one("i0", torch.special.i0, {"bfloat16": 4.0, "float32": 2e3}),
    of_one("erf", torch.erf, MANY, low=-2.0, high=2.0),
    of_one("erfc", torch.erfc, MANY, low=-2.0, high=2.0),
    of_one("erfinv", torch.erfinv, {"bfloat16": 8.0, "float32": 2e5}, low=-0.9, high=0.9),
)
BINARY = (
    *of_two("add", torch.add, EXACT),
    *of_two("sub", torch.sub, EXACT),
    *of_two("mul", torch.mul, ONE),
    *of_two("div", torch.div, low=0.3),
    *of_two("addalpha", lambda a, b: a + 0.7 * b, ONE, args=(0.7,)),
    *of_two("subalpha", lambda a, b: a - 0.7 * b, ONE, args=(0.7,)),
    *of_two("rsub", lambda a, b: b - a, EXACT),
    *of_two("assign", lambda a, b: a + b, EXACT),
    *of_two("squared_difference", lambda a, b: (a - b) ** 2, ONE, floor=0.1),
    *of_two("max", torch.maximum, EXACT),
    *of_two("min", torch.minimum, EXACT),
    *of_two("atan2", torch.atan2, MANY, low=0.3),
    *of_two("hypot", torch.hypot),
    *of_two("ldexp", torch.ldexp, MANY),
    *of_two("logaddexp", torch.logaddexp, MANY),
    *of_two("logaddexp2", torch.logaddexp2, MANY),
    *of_two("xlogy", torch.xlogy, MANY, low=0.3, floor=0.1),
    # A bfloat16 quotient just below an integer rounds up to it, which changes the gradient.
    *of_two("fmod", torch.fmod, ONE, low=0.3, dtypes=("float32",)),
    *of_two("remainder", torch.remainder, ONE, low=0.3, dtypes=("float32",)),
    *of_two("addcmul", lambda a, b, c: a + 0.7 * b * c, inputs=3, args=(0.7,)),
    *of_two("addcdiv", lambda a, b, c: a + 0.7 * b / c, low=0.3, inputs=3, args=(0.7,)),
    *of_two("lerp", torch.lerp, inputs=3, low=0.0, high=1.0, floor=0.5),
    *of_two("where", lambda c, a, b: torch.where(c > 0, a, b), EXACT, inputs=3, low=0.5, first=1),
)
ROWS = (*UNARY, *TRIGONOMETRY, *ACTIVATIONS, *SPECIAL, *BINARY)


PAIRS = [pytest.param(row, dtype, id=f"{row}-{dtype}") for row in ROWS for dtype in row.dtypes]


@pytest.mark.parametrize(("row", "dtype"), PAIRS)
def test_against_autograd(row: Row, dtype: str, device: Any) -> None:
    for seed, shape in enumerate(row.shapes):
        check(row, dtype, shape, 7 * seed, device)


@given(row=st.sampled_from(ROWS), dtype=st.sampled_from(["bfloat16", "float32"]), shape=shapes, seed=st.integers(0, 99))
def test_any_shape(row: Row, dtype: str, shape: tuple[int, ...], seed: int, device: Any) -> None:
    if dtype in row.dtypes:
        check(row, dtype, shape, seed, device)


# -- products ---------------------------------------------------------------------------------------------------------


def _uploaded(
    device: Any, *shapes: tuple[int, ...], low: float = 0.5, high: float = 1.5, dtype: str = "float32"
) -> list:
    return [upload(values(shape, low, high, dtype, 3 * n), dtype, "TILE", device) for n, shape in enumerate(shapes)]


@pytest.mark.parametrize("factors", [((5, 33), (1, 33)), ((5, 1), (5, 33)), ((33,), (5, 33)), ((2, 5, 33), (1, 5, 1))])
def test_gradients_of_a_product_have_the_shapes_of_its_factors(factors: tuple, device: Any) -> None:
    shape = torch.broadcast_shapes(*factors)
    g, a, b = _uploaded(device, shape, *factors)
    for place, gradient in enumerate(ttnn.mul_bw(g, a, b)):
        expected = reference(torch.mul, place)(stored(g), stored(a), stored(b))
        assert torch.allclose(stored(gradient), expected, rtol=2e-3)


@pytest.mark.parametrize("dim", [None, 0, 1, 2, 3])
def test_gradient_of_a_product_over_a_dimension(dim: int | None, device: Any) -> None:
    shape = (1, 1, 2, 4) if dim is None else (2, 3, 32, 32)
    grad = (1, 1, 1, 1) if dim is None else tuple(1 if n == dim else size for n, size in enumerate(shape))
    g, x = _uploaded(device, grad, shape, low=0.9, high=1.1, dtype="bfloat16")
    gradient = stored(ttnn.prod_bw(g, x, dim=dim)[0])
    leaf = stored(x).double().requires_grad_()
    product = leaf.prod().reshape(grad) if dim is None else leaf.prod(dim, keepdim=True)
    product.backward(stored(g).double())
    assert leaf.grad is not None
    # Up to 32 successive products, each rounded to bfloat16.
    assert torch.allclose(gradient, leaf.grad.float(), rtol=0.12)


def test_gradients_of_concatenation_and_repetition(device: Any) -> None:
    g, a, b = _uploaded(device, (1, 4, 32, 64), (1, 3, 32, 64), (1, 1, 32, 64))
    first, second = ttnn.concat_bw(g, a, b, 1)
    assert torch.equal(torch.cat([stored(first), stored(second)], 1), stored(g))
    g, x = _uploaded(device, (3, 1, 32, 64), (1, 1, 32, 64), dtype="bfloat16")
    summed = stored(ttnn.repeat_bw(g, x, [3, 1, 1, 1])[0])
    assert torch.allclose(summed, stored(g).sum(0, keepdim=True), rtol=2e-2)


# -- outputs -------------------------------------------------------------------------------------------


def test_only_required_gradients_are_computed(device: Any) -> None:
    g, a, b = _uploaded(device, (5, 33), (5, 33), (5, 33))
    for op in (ttnn.add_bw, ttnn.mul_bw, ttnn.div_bw, ttnn.subalpha_bw):
        assert op(g, a, b, are_required_outputs=[True, False])[1] is None
        assert op(g, a, b, are_required_outputs=[False, True])[0] is None
    with pytest.raises(RuntimeError, match="at least one gradient"):
        ttnn.add_bw(g, a, b, are_required_outputs=[False, False])


@pytest.mark.parametrize("name", ["exp", "sqrt", "rsqrt", "silu", "tanh", "gelu", "neg"])
def test_output_tensor_receives_the_gradient(name: str, device: Any) -> None:
    g, x, out = _uploaded(device, (5, 33), (5, 33), (5, 33))
    bw = getattr(ttnn, f"{name}_bw")
    assert same_buffer(bw(g, x, input_grad=out)[0], out)
    assert torch.equal(stored(out), stored(bw(g, x)[0]))


# -- points where the formulas differ from torch's --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "grad", "x", "expected"),
    [
        ("log", 2.0, 0.0, math.inf),
        ("log", -2.0, 0.0, -math.inf),
        ("log", 0.0, 0.0, math.nan),
        ("sqrt", 1.0, 0.0, math.inf),
        ("sqrt", 1.0, -1.0, math.nan),
        ("rsqrt", 1.0, -1.0, math.nan),
        ("reciprocal", 1.0, 0.0, -math.inf),
        ("asin", 1.0, 1.0, math.inf),
        ("asin", 1.0, 1.5, math.nan),
        ("acos", 1.0, -1.0, -math.inf),
        ("atanh", -1.0, 1.0, -math.inf),
        ("erfinv", -1.0, 1.0, -math.inf),
        ("logit", 1.0, 2.0, math.nan),
        ("acosh", 1.0, 0.5, 7.0040e19),  # the library's stand-in for NaN
        ("acosh", -1.0, 1.0, -1.7014e38),  # and for an infinity
    ],
)
def test_ends_of_the_domain_in_float32(name: str, grad: float, x: float, expected: float, device: Any) -> None:
    g, at = (upload(torch.full((1, 1), value), "float32", "TILE", device) for value in (grad, x))
    gradient = stored(getattr(ttnn, f"{name}_bw")(g, at)[0]).item()
    assert math.isnan(gradient) if math.isnan(expected) else gradient == pytest.approx(expected)


def test_negative_exponents_and_unknown_modes_are_rejected(device: Any) -> None:
    g, x = _uploaded(device, (5, 33), (5, 33))
    for call in (
        lambda: ttnn.pow_bw(g, x, -1.0),
        lambda: ttnn.rdiv_bw(g, x, 2.0, rounding_mode="up"),
        lambda: ttnn.div_bw(g, x, 2.0, "up"),
        lambda: ttnn.gelu_bw(g, x, variant=ttnn.GeluVariant.FastLut),
        lambda: ttnn.clamp_bw(g, x),
    ):
        with pytest.raises(RuntimeError):
            call()


# -- complex tensors --------------------------------------------------------------------------------------------------

DRAM = {"memory_config": ttnn.DRAM_MEMORY_CONFIG}


def _complex(device: Any, seed: int) -> tuple[Any, torch.Tensor]:
    parts = [upload(values((5, 33), 0.3, 2.0, "float32", seed + n), "float32", "TILE", device) for n in (0, 1)]
    return ttnn.complex_tensor(*parts), torch.complex(*(stored(part) for part in parts))


def _close(actual: Any, expected: torch.Tensor) -> bool:
    ours = (
        torch.complex(stored(actual.real), stored(actual.imag))
        if not isinstance(actual, ttnn.Tensor)
        else stored(actual)
    )
    return torch.allclose(ours, expected.to(ours.dtype), rtol=1e-5, atol=1e-6)


def test_functions_of_complex_tensors(device: Any) -> None:
    z, t = _complex(device, 1)
    assert _close(ttnn.real(z), t.real) and _close(ttnn.imag(z), t.imag)
    assert _close(ttnn.angle(z), t.angle()) and _close(ttnn.conj(z), t.conj())
    assert _close(ttnn.polar(z), torch.polar(t.real, t.imag))
    assert not stored(ttnn.is_real(z)).any() and not stored(ttnn.is_imag(z)).any()


def test_a_product_of_complex_tensors_in_one_program(device: Any) -> None:
    a, b = (values((2, 5, 33), -2.0, 2.0, "float32", seed) for seed in (1, 2))
    c, d = (values((2, 5, 33), -2.0, 2.0, "float32", seed) for seed in (3, 4))
    parts = [upload(part, "float32", "ROW_MAJOR", device) for part in (a, b, c, d)]
    real, imag = ttnn.experimental.complex_mul(*parts)
    assert torch.allclose(
        torch.complex(stored(real), stored(imag)), torch.complex(a, b) * torch.complex(c, d), atol=1e-5
    )


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("abs", torch.abs),
        ("real", torch.real),
        ("imag", torch.imag),
        ("angle", torch.angle),
        ("conj", torch.conj),
        ("reciprocal", torch.reciprocal),
    ],
)
def test_gradients_of_functions_of_complex_tensors(name: str, function: Callable, device: Any) -> None:
    (z, t), (w, u) = _complex(device, 1), _complex(device, 5)
    leaf = t.clone().requires_grad_()
    result = function(leaf)
    grad, answer = (w, u) if result.is_complex() else (w.real, u.real)
    (expected,) = torch.autograd.grad(result, leaf, answer)
    assert _close(getattr(ttnn, f"{name}_bw")(grad, z, **DRAM)[0], expected)


def test_gradient_of_polar(device: Any) -> None:
    (z, t), (w, u) = _complex(device, 1), _complex(device, 5)
    size, angle = (part.clone().requires_grad_() for part in (t.real, t.imag))
    expected = torch.autograd.grad(torch.polar(size, angle), (size, angle), u)
    assert _close(ttnn.polar_bw(w, z, **DRAM)[0], torch.complex(*expected))


@pytest.mark.parametrize(("name", "args"), [("add", (0.7,)), ("sub", (0.7,)), ("mul", ()), ("div", ())])
def test_gradients_of_complex_arithmetic(name: str, args: tuple, device: Any) -> None:
    (z, t), (w, u), (g, v) = _complex(device, 1), _complex(device, 5), _complex(device, 9)
    a, b = t.clone().requires_grad_(), u.clone().requires_grad_()
    alpha = {"alpha": args[0]} if args else {}
    expected = torch.autograd.grad(getattr(torch, name)(a, b, **alpha), (a, b), v)
    for gradient, answer in zip(getattr(ttnn, f"{name}_bw")(g, z, w, *args, **DRAM), expected):
        assert _close(gradient, answer)
