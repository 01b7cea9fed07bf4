"""Gradients of gamma, error and Bessel functions, of products over a dimension and of repetition."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ttnn_emulator.enums import ALL_ENUMS
from ttnn_emulator.execution.operation_table import composite, ttnn
from ttnn_emulator.ops.backward.registration import INFINITY, NAN, both, function, gradient
from ttnn_emulator.tensors.memory_config import MemoryConfig
from ttnn_emulator.tensors.tensor import Tensor

ERF_SLOPE = float(np.float32(2.0) * np.float32(1.0 / math.sqrt(math.pi)))
# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/eltwise/unary_backward/unary_backward.cpp, m_sqrtpi in erfinv_bw
HALF_ROOT_PI = float(np.float32(np.float32(1.77245385090551602792981) * np.float32(0.5)))
MUL, ALONG_WIDTH, ALONG_HEIGHT = (
    ALL_ENUMS["BcastOpMath"].MUL,
    ALL_ENUMS["BcastOpDim"].W,
    ALL_ENUMS["BcastOpDim"].H,
)

# -- gamma functions --------------------------------------------------------------------------------------------------


@gradient("lgamma")
def lgamma(g: Tensor, x: Tensor, **m: Any) -> Tensor:
    """g ψ(x)."""
    return ttnn.multiply(g, ttnn.digamma(x, **m), **m)


@gradient("multigammaln")
def multigammaln(g: Tensor, x: Tensor, **m: Any) -> Tensor:
    """g (ψ(x) + ψ(x - ½) + ψ(x - 1) + ψ(x - 1½))."""
    result = ttnn.multiply(g, ttnn.digamma(x, **m), **m)
    for step in (-0.5, -1.0, -1.5):
        term = ttnn.multiply(g, ttnn.digamma(ttnn.add(x, step, **m), **m), **m)
        result = ttnn.add(result, term, **m)
    return result


@gradient("digamma")
def digamma(g: Tensor, x: Tensor, **m: Any) -> Tensor:
    """g ψ₁(x)."""
    result = ttnn.multiply(g, ttnn.polygamma(x, 1, **m), **m)
    for sign, limit in ((ttnn.eqz, NAN), (ttnn.ltz, -INFINITY), (ttnn.gtz, INFINITY)):
        result = ttnn.where(both(ttnn.eqz(x, **m), sign(g, **m), **m), limit, result, **m)
    return result


@composite("ttnn.polygamma_bw")
def polygamma_bw(
    grad_tensor: Tensor, input_tensor: Tensor, n: int, *, memory_config: MemoryConfig | None = None
) -> list:
    """g ψₙ₊₁(x)."""
    m, g, x = {"memory_config": memory_config}, grad_tensor, input_tensor
    limit = INFINITY if n in (2, 4, 6, 8, 10) else -INFINITY
    result = ttnn.multiply(g, ttnn.polygamma(x, n + 1, **m), **m)
    result = ttnn.where(both(ttnn.le(x, 0.0, **m), ttnn.eqz(g, **m), **m), NAN, result, **m)
    for sign, value in ((ttnn.gtz, limit), (ttnn.ltz, -limit)):
        result = ttnn.where(both(ttnn.eqz(x, **m), sign(g, **m), **m), value, result, **m)
    return [result]


@gradient("i0")
def i0(g: Tensor, x: Tensor, **m: Any) -> Tensor:
    """g I₁(x)."""
    return ttnn.multiply(g, ttnn.i1(x, **m), **m)


# -- error function ---------------------------------------------------------------------------------------------------


@gradient("erf")
def erf(g: Tensor, x: Tensor, **m: Any) -> Tensor:
    """2 g exp(-x²) ÷ √π."""
    functions = [function("SQUARE"), function("NEG"), function("EXP")]
    return ttnn.multiply(ttnn.multiply(x, g, input_tensor_a_activations=functions, **m), ERF_SLOPE, **m)


@gradient("erfc")
def erfc(g: Tensor, x: Tensor, **m: Any) -> Tensor:
    """-2 g exp(-x²) ÷ √π."""
    density = ttnn.exp(ttnn.neg(ttnn.square(x, **m), **m), **m)
    return ttnn.multiply(ttnn.multiply(density, g, **m), float(np.float32(-2.0 / math.sqrt(math.pi))), **m)


@gradient("erfinv")
def erfinv(g: Tensor, x: Tensor, **m: Any) -> Tensor:
    """½ √π g exp(erfinv(x)²)."""
    functions = [function("ERFINV"), function("SQUARE"), function("EXP")]
    result = ttnn.multiply(x, g, input_tensor_a_activations=functions, **m)
    result = ttnn.multiply(result, HALF_ROOT_PI, **m)
    limit = ttnn.multiply(g, INFINITY, input_tensor_a_activations=[function("SIGN")], **m)
    outside = ttnn.logical_or(
        x,
        x,
        input_tensor_a_activations=[function("UNARY_LT", -1.0)],
        input_tensor_b_activations=[function("UNARY_GT", 1.0)],
        **m,
    )
    result = ttnn.where(outside, NAN, result, **m)
    ends = ttnn.eq(x, 1.0, input_tensor_a_activations=[function("ABS"), function("UNARY_EQ", 1.0)], **m)
    return ttnn.where(ends, limit, result, **m)
