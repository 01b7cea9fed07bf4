"""Gradients of activations, and of clamping and shrinking functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ttnn_emulator.enums import ALL_ENUMS
from ttnn_emulator.errors import require
from ttnn_emulator.execution.operation_table import composite, ttnn
from ttnn_emulator.ops.backward.registration import both, chain, either, function, gradient
from ttnn_emulator.ops.backward.unary import prepared
from ttnn_emulator.tensors.memory_config import MemoryConfig
from ttnn_emulator.tensors.tensor import Tensor

GeluVariant = ALL_ENUMS["GeluVariant"]
BY_APPROXIMATION = {"none": GeluVariant.Accurate, "tanh": GeluVariant.Tanh}
# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/eltwise/unary_backward/unary_backward.cpp, selu_bw, hardswish_bw
SELU_SCALE, SELU_ALPHA = float(np.float32(1.0507)), float(np.float32(1.673260))
SIXTH, THIRD = float(np.float32(1.0) / np.float32(6.0)), float(np.float32(0.3333))


def _parameterised(name: str, **defaults: float) -> Callable[[Callable[..., Tensor]], Callable[..., Tensor]]:
    """Register f(grad, input, **parameters, memory_config=…) as a gradient; it receives numbers as float32."""

    def wrap(compute: Callable[..., Tensor]) -> Callable[..., Tensor]:
        def run(
            grad_tensor: Tensor, input_tensor: Tensor, *, memory_config: MemoryConfig | None = None, **given: Any
        ) -> list:
            numbers = {key: float(np.float32(given.get(key, value))) for key, value in defaults.items()}
            return [compute(grad_tensor, input_tensor, **numbers, memory_config=memory_config)]

        run.__doc__ = compute.__doc__
        composite(f"ttnn.{name}_bw")(run)
        return compute

    return wrap


# -- rectifiers -------------------------------------------------------------------------------------------------------


@gradient("relu")
def relu(g: Tensor, x: Tensor, **m: Any) -> Tensor:
    """g where x is positive."""
    return ttnn.where(ttnn.gtz(x, **m), g, 0.0, **m)


@gradient("relu6")
def relu6(g: Tensor, x: Tensor, **m: Any) -> Tensor:
    """g where x is between 0 and 6."""
    return ttnn.where(both(ttnn.gtz(x, **m), ttnn.lt(x, 6.0, **m), **m), g, 0.0, **m)


@_parameterised("leaky_relu", negative_slope=0.01)
def leaky_relu(g: Tensor, x: Tensor, negative_slope: float, **m: Any) -> Tensor:
    """g where x is positive, else g times the slope."""
    return ttnn.where(ttnn.gtz(x, **m), g, ttnn.multiply(g, negative_slope, **m), **m)


@_parameterised("elu", alpha=1.0)
def elu(g: Tensor, x: Tensor, alpha: float, **m: Any) -> Tensor:
    """g where x is positive, else g α exp(x)."""
    positive = ttnn.gtz(x, **m)
    slope = ttnn.multiply(ttnn.exp(x, **m), alpha, **m)
    return ttnn.where(positive, g, ttnn.multiply(g, slope, **m), **m)


@_parameterised("celu", alpha=1.0)
def celu(g: Tensor, x: Tensor, alpha: float, **m: Any) -> Tensor:
    """g where x is positive, else g exp(x ÷ α)."""
    slope = ttnn.exp(ttnn.multiply(x, _inverse(alpha), **m), **m)
    return ttnn.where(ttnn.gt(x, 0.0, **m), g, ttnn.multiply(g, slope, **m), **m)


def _inverse(value: float) -> float:
    with np.errstate(divide="ignore"):
        return float(np.float32(np.float64(1.0) / np.float64(value)))


@gradient("selu")
def selu(g: Tensor, x: Tensor, **m: Any) -> Tensor:
    """g λ where x is positive, else g λ α exp(x)."""
    scaled = ttnn.multiply(g, SELU_SCALE, **m)
    positive = ttnn.gtz(x, **m)
    below = ttnn.multiply(ttnn.multiply(scaled, SELU_ALPHA, **m), ttnn.exp(x, **m), **m)
    return ttnn.where(positive, scaled, below, **m)


# -- smooth ones ------------------------------------------------------------------------------------------------------


@composite("ttnn.silu_bw")
def silu_bw(
    grad_tensor: Tensor,
    input_tensor: Tensor,
    *,
    memory_config: MemoryConfig | None = None,
    input_grad: Tensor | None = None,
) -> list:
    """g s (1 + x (1 - s)) with s = sigmoid(x)."""
    m, g, x = {"memory_config": memory_config}, grad_tensor, input_tensor
    out = prepared(input_grad, x, memory_config)
    s = ttnn.sigmoid(x, **m)
    first = ttnn.multiply(g, s, **m)
    second = ttnn.add(ttnn.multiply(ttnn.rsub(s, 1.0, **m), x, **m), 1.0, **m)
    return [ttnn.multiply(first, second, output_tensor=out, **m)]


@_parameterised("softplus", beta=1.0, threshold=20.0)
def softplus(g: Tensor, x: Tensor, beta: float, threshold: float, **m: Any) -> Tensor:
    """g sigmoid(β x); g where β x exceeds the threshold."""
    scaled = ttnn.multiply(x, beta, **m)
    below = ttnn.multiply(g, ttnn.sigmoid(scaled, **m), **m)
    return ttnn.where(ttnn.gt(scaled, threshold, **m), g, below, **m)


@gradient("softsign")
def softsign(g: Tensor, x: Tensor, **m: Any) -> Tensor:
    """g ÷ (1 + |x|)²."""
    functions = (function("ABS"), function("ADD_UNARY_SFPU", 1.0), function("SQUARE"), function("RECIP"))
    return ttnn.multiply(g, chain(x, *functions, **m), **m)


@gradient("log_sigmoid")
def log_sigmoid(g: Tensor, x: Tensor, **m: Any) -> Tensor:
    """g (1 - s) by way of exp(-|x|)."""
    most = ttnn.where(ttnn.ltz(x, **m), 1.0, 0.0, **m)
    sign = ttnn.where(ttnn.ltz(x, **m), 1.0, -1.0, **m)
    z = ttnn.exp(ttnn.neg(ttnn.abs(x, **m), **m), **m)
    share = ttnn.multiply(z, ttnn.reciprocal(ttnn.add(z, 1.0, **m), **m), **m)
    return ttnn.multiply(g, ttnn.subtract(most, ttnn.multiply(sign, share, **m), **m), **m)


@composite("ttnn.bias_gelu_bw")
def bias_gelu_bw(
    grad_tensor: Tensor,
    input_tensor: Tensor | None = None,
    bias: float | None = None,
    input_tensor_a: Tensor | None = None,
    input_tensor_b: Tensor | None = None,
    *,
    variant: Any = GeluVariant.Accurate,
    approximate: str | None = None,
    memory_config: MemoryConfig | None = None,
) -> list:
    """The gradient of gelu at the input plus a bias, which is a number or a tensor with the same gradient."""
    if approximate is not None:
        require(approximate in BY_APPROXIMATION, f"gelu is approximated by none or tanh, not by {approximate!r}")
        variant = BY_APPROXIMATION[approximate]
    options = {"variant": variant, "memory_config": memory_config}
    if input_tensor is not None:
        return ttnn.gelu_bw(grad_tensor, ttnn.add(input_tensor, bias), **options)
    (result,) = ttnn.gelu_bw(grad_tensor, ttnn.add(input_tensor_a, input_tensor_b), **options)
    return [result, result]


# -- in pieces --------------------------------------------------------------------------------------------------------


@gradient("hardsigmoid")
def hardsigmoid(g: Tensor, x: Tensor, **m: Any) -> Tensor:
    """g ÷ 6 between -3 and 3."""
    outside = either(ttnn.le(x, -3.0, **m), ttnn.ge(x, 3.0, **m), **m)
    return ttnn.where(outside, 0.0, ttnn.multiply(g, SIXTH), **m)


@gradient("hardswish")
def hardswish(g: Tensor, x: Tensor, **m: Any) -> Tensor:
    """g (x ÷ 3 + ½) between -3 and 3, zero below, g above."""
    below, inside = ttnn.lt(x, -3.0, **m), ttnn.le(x, 3.0, **m)
    slope = ttnn.multiply(g, ttnn.add(ttnn.multiply(x, THIRD, **m), 0.5, **m), **m)
    return ttnn.where(below, 0.0, ttnn.where(inside, slope, g), **m)


@_parameterised("hardtanh", min=-1.0, max=1.0)
def hardtanh(g: Tensor, x: Tensor, min: float, max: float, **m: Any) -> Tensor:
    """g between the two bounds."""
    return ttnn.where(ttnn.le(x, min, **m), 0.0, ttnn.where(ttnn.ge(x, max, **m), 0.0, g), **m)


@_parameterised("hardshrink", lambd=0.5)
def hardshrink(g: Tensor, x: Tensor, lambd: float, **m: Any) -> Tensor:
    """g where the shrunk value is not zero."""
    return ttnn.where(ttnn.eqz(ttnn.hardshrink(x, lambd=lambd, **m), **m), 0.0, g, **m)


@_parameterised("softshrink", lambd=0.5)
def softshrink(g: Tensor, x: Tensor, lambd: float, **m: Any) -> Tensor:
    """g where |x| exceeds lambd."""
    return ttnn.where(either(ttnn.lt(x, -lambd, **m), ttnn.gt(x, lambd, **m), **m), g, 0.0, **m)


@composite("ttnn.threshold_bw")
def threshold_bw(
    grad_tensor: Tensor, input_tensor: Tensor, min: float, max: float, *, memory_config: MemoryConfig | None = None
) -> list:
    """g where x exceeds the threshold, which the library calls `min` here."""
    m = {"memory_config": memory_config}
    above = ttnn.gtz(ttnn.add(input_tensor, -float(np.float32(min)), **m), **m)
    return [ttnn.where(above, grad_tensor, 0.0, **m)]


@composite("ttnn.clamp_bw", "ttnn.clip_bw")
def clamp_bw(
    grad_tensor: Tensor,
    input_tensor: Tensor,
    min: Any = None,
    max: Any = None,
    *,
    memory_config: MemoryConfig | None = None,
) -> list:
    """g where x is between two numbers, or between the elements of two tensors."""
    require(min is not None or max is not None, "one of min and max must be given")
    if min is None or max is None:
        m = {"memory_config": memory_config}
        inside = ttnn.le(input_tensor, max, **m) if min is None else ttnn.ge(input_tensor, min, **m)
    else:
        m = {"memory_config": memory_config if memory_config is not None else input_tensor.memory_config()}
        inside = both(ttnn.ge(input_tensor, min, **m), ttnn.le(input_tensor, max, **m), **m)
    return [ttnn.where(inside, grad_tensor, 0.0, **m)]
