"""Gradients, held against those of torch.autograd."""

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
from tests.emulator.ops.against_torch import Row, check, shapes, stored, upload, values

SMALL = ((32, 64), (5, 33), (2, 3, 17, 40), (7,))
EXACT = {"bfloat16": 0.0, "float32": 0.0}
ONE = {"bfloat16": 1.0, "float32": 2.0}  # one product
FEW = {"bfloat16": 3.0, "float32": 8.0}  # some steps, each rounded
MANY = {"bfloat16": 8.0, "float32": 32.0}  # more of them, or a sum that cancels


def twin(function: Callable[..., torch.Tensor], place: int = 0) -> Callable[..., torch.Tensor]:
    """The gradient of `function` in its argument number `place`, as a function of the gradient that comes in."""

    def compute(grad: torch.Tensor, *inputs: torch.Tensor) -> torch.Tensor:
        leaves = [value.double().requires_grad_() for value in inputs]
        found = torch.autograd.grad(function(*leaves), leaves[place], grad.double(), allow_unused=True)[0]
        return torch.zeros_like(inputs[place]) if found is None else found.float()

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
    return Row(title, call, twin(function), inputs=2, low=low, high=high, ulps=ulps, floor=floor, shapes=SMALL)


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
    **options: Any,
) -> list[Row]:
    """A row for the gradient of every operand, from number `first` on."""

    def call(place: int) -> Callable[..., Any]:
        return lambda *tensors: getattr(ttnn, f"{name}_bw")(*tensors, *args, **options)[place - first]

    return [
        Row(
            f"{name} of operand {place}",
            call(place),
            twin(function, place),
            inputs=inputs + 1,
            low=low,
            high=high,
            ulps=ulps,
            floor=floor,
            shapes=SMALL,
        )
        for place in range(first, inputs)
    ]


def _root(x: torch.Tensor) -> torch.Tensor:
    return torch.where(x == 0, torch.zeros_like(x), x.sqrt())


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
    of_one("logiteps", lambda x: torch.logit(x, eps=0.2), MANY, low=0.05, high=0.95, eps=0.2),
    # Where the base is not positive the library answers with infinity, whatever the exponent is.
    *(of_one("pow", lambda x, n=n: x**n, low=0.1, args=(n,)) for n in (2.0, 0.5, 3.5)),
    of_one("pow", lambda x: x**0.0, EXACT, args=(0.0,)),
    # The gradient of x to a fixed power, in spite of its name; unknown below zero.
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
    of_one("tanh", torch.tanh, {"bfloat16": 2.0, "float32": 3e4}),  # sech² is made for bfloat16
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
    of_one("celu", lambda x: functional.celu(x, 0.7), alpha=0.7),
    # The library's constants have five and seven digits.
    of_one("selu", functional.selu, {"bfloat16": 4.0, "float32": 64.0}),
    of_one("silu", functional.silu, MANY, floor=0.05),
    of_one("gelu", functional.gelu, {"bfloat16": 2.0, "float32": 4e4}, floor=0.05),  # made for bfloat16
    of_one(
        "gelu",
        lambda x: functional.gelu(x, approximate="tanh"),
        MANY,
        floor=0.05,
        variant=ttnn.GeluVariant.Tanh,
    ),
    of_one("bias_gelu", lambda x: functional.gelu(x + 0.5), {"bfloat16": 4.0, "float32": 4e4}, floor=0.05, args=(0.5,)),
    of_one("sigmoid", torch.sigmoid),
    of_one("log_sigmoid", functional.logsigmoid, MANY),
    of_one("softplus", lambda x: functional.softplus(x, 2.0, 5.0), beta=2.0, threshold=5.0),
    of_one("softsign", functional.softsign),
    of_one("hardsigmoid", functional.hardsigmoid, ONE),
    # A third is 0.3333 to the library.
    of_one("hardswish", functional.hardswish, {"bfloat16": 4.0, "float32": 2e3}, floor=0.1),
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
    of_one("polygamma", lambda x: torch.special.polygamma(2, x), {"bfloat16": 4.0, "float32": 2e4}, 0.5, 8.0, args=(2,)),
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
    *of_two("fmod", torch.fmod, ONE, low=0.3),
    *of_two("remainder", torch.remainder, ONE, low=0.3),
    *of_two("addcmul", lambda a, b, c: a + 0.7 * b * c, inputs=3, args=(0.7,)),
    *of_two("addcdiv", lambda a, b, c: a + 0.7 * b / c, low=0.3, inputs=3, args=(0.7,)),
    *of_two("lerp", torch.lerp, inputs=3, low=0.0, high=1.0, floor=0.5),
    *of_two("where", lambda c, a, b: torch.where(c > 0, a, b), EXACT, inputs=3, low=0.5, first=1),
)
ROWS = (*UNARY, *TRIGONOMETRY, *ACTIVATIONS, *SPECIAL, *BINARY)


@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
@pytest.mark.parametrize("row", ROWS, ids=str)
def test_against_autograd(row: Row, dtype: str, device: Any) -> None:
    for seed, shape in enumerate(row.shapes):
        check(row, dtype, shape, 7 * seed, device)


@given(row=st.sampled_from(ROWS), dtype=st.sampled_from(["bfloat16", "float32"]), shape=shapes, seed=st.integers(0, 99))
def test_any_shape(row: Row, dtype: str, shape: tuple[int, ...], seed: int, device: Any) -> None:
    check(row, dtype, shape, seed, device)
