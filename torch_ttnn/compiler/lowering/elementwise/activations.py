"""Activation functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from torch_ttnn.compiler.ir.builder import ProgramBuilder
from torch_ttnn.compiler.ir.value import Handle, Value
from torch_ttnn.compiler.lowering.registry import lowers
from torch_ttnn.compiler.lowering.support.promotion import BFLOAT16, INT32, elementwise, fitted

aten = torch.ops.aten

# One library operation each.
PLAIN = {
    aten.hardsigmoid.default: "hardsigmoid",
    aten.hardswish.default: "hardswish",
    aten.mish.default: "mish",
    aten.relu.default: "relu",
    aten.relu6.default: "relu6",
    aten.selu.default: "selu",
    aten.sigmoid.default: "sigmoid",
    aten.silu.default: "silu",
}


def _of_the_library(name: str) -> Callable[..., Handle]:
    def function(ttnn: Any, x: Handle) -> Handle:
        return getattr(ttnn, name)(x)

    function.__name__ = name
    return function


for _overload, _name in PLAIN.items():
    elementwise(_overload)(_of_the_library(_name))


@elementwise(aten.gelu.default)
def gelu(ttnn: Any, x: Handle, *, approximate: str = "none") -> Handle:
    if approximate == "tanh":
        return ttnn.gelu(x, variant=ttnn.GeluVariant.Tanh)
    return ttnn.gelu(x, fast_and_approximate_mode=False)


@elementwise(aten.leaky_relu.default)
def leaky_relu(ttnn: Any, x: Handle, negative_slope: float = 0.01) -> Handle:
    return ttnn.leaky_relu(x, negative_slope=float(negative_slope))


@elementwise(aten._prelu_kernel.default, constants=())
def prelu(ttnn: Any, x: Handle, weight: Handle) -> Handle:
    return ttnn.where(ttnn.lt(x, 0.0), ttnn.multiply(x, weight), x)


@elementwise(aten.elu.default)
def elu(ttnn: Any, x: Handle, alpha: float = 1, scale: float = 1, input_scale: float = 1) -> Handle:
    """scale × (x, or alpha × (exp(input_scale × x) - 1) where x is negative)."""
    if input_scale == 1:
        return ttnn.elu(x, alpha=float(alpha)) if scale == 1 else ttnn.selu(x, scale=float(scale), alpha=float(alpha))
    below = ttnn.multiply(ttnn.expm1(ttnn.multiply(x, float(input_scale))), float(alpha))
    result = ttnn.where(ttnn.gt(x, 0.0), x, below)
    return result if scale == 1 else ttnn.multiply(result, float(scale))


@elementwise(aten.celu.default)
def celu(ttnn: Any, x: Handle, alpha: float = 1) -> Handle:
    return ttnn.celu(x, alpha=float(alpha))


@elementwise(aten.hardshrink.default)
def hardshrink(ttnn: Any, x: Handle, lambd: float = 0.5) -> Handle:
    return ttnn.hardshrink(x, lambd=float(lambd))


@elementwise(aten.softshrink.default)
def softshrink(ttnn: Any, x: Handle, lambd: float = 0.5) -> Handle:
    return ttnn.softshrink(x, lambd=float(lambd))


SOFTPLUS_TAIL = -4.96875  # the smallest bfloat16 number above -5


@elementwise(aten.softplus.default)
def softplus(ttnn: Any, x: Handle, beta: float = 1, threshold: float = 20) -> Handle:
    """The library returns 0 where β x < -5; there log(1 + e^z) is e^z within 0.4 %, e^z - e^2z ÷ 2 within 2e-5."""
    result = ttnn.softplus(x, beta=float(beta), threshold=float(threshold))
    power = ttnn.exp(ttnn.multiply(x, float(beta)))
    if x.dtype is not BFLOAT16:
        power = ttnn.subtract(power, ttnn.multiply(ttnn.square(power), 0.5))
    small = ttnn.multiply(power, 1 / beta)
    below = ttnn.lt(x, SOFTPLUS_TAIL / beta) if beta > 0 else ttnn.gt(x, SOFTPLUS_TAIL / beta)
    return ttnn.where(below, small, result)


@elementwise(aten.threshold.default)
def threshold(ttnn: Any, x: Handle, limit: float, value: float) -> Handle:
    if x.dtype is INT32:
        return ttnn.where(ttnn.gt(x, fitted(limit, INT32)), x, fitted(value, INT32))
    return ttnn.threshold(x, float(limit), fitted(value, x.dtype))


@elementwise(aten.log_sigmoid.default)
def log_sigmoid(ttnn: Any, x: Handle) -> Handle:
    return _log_sigmoid(ttnn, x)[0]


@lowers(aten.log_sigmoid_forward.default)
def log_sigmoid_forward(ttnn: Any, builder: ProgramBuilder, x: Value) -> tuple[Value, Value]:
    """Also returns exp(-|x|), for the backward pass."""
    (handle,), form = builder.aligned([x], x.shape)
    return tuple([builder.value(result, x.shape, x.dtype, form) for result in _log_sigmoid(ttnn, handle)])  # type: ignore[return-value]


def _log_sigmoid(ttnn: Any, x: Handle) -> tuple[Handle, Handle]:
    """min(x, 0) - log(1 + exp(-|x|)); the library's own has an error of 3 % for small results."""
    small = ttnn.exp(ttnn.neg(ttnn.abs(x)))
    return ttnn.subtract(ttnn.minimum(x, 0.0), ttnn.log1p(small)), small
