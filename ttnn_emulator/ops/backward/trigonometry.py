"""Gradients of trigonometric and hyperbolic functions and of their inverses."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ttnn_emulator.execution.operation_table import ttnn
from ttnn_emulator.ops.backward.registration import (
    INFINITY,
    NAN,
    both,
    chain,
    either,
    function,
    gradient,
    signed_infinity,
)
from ttnn_emulator.tensors.tensor import Tensor

# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/eltwise/unary_backward/unary_backward.cpp,
# M_PI_180, M_180_PI, sinh_bw and cosh_bw
DEGREE = float(np.float32(math.pi / 180.0))
RADIAN = float(np.float32(180.0 / math.pi))
LARGEST = float(np.float32(3.4e38))  # products of at least this magnitude count as infinite

# What the gradient of acosh writes where it is undefined: the library's substitute for NaN on this chip.
# tt-metal v0.77.0: tt_metal/llrt/hal/tt-1xx/wormhole/wh_hal.cpp, NAN_WHB0, INF_WHB0
UNKNOWN = float(np.float32(7.0040e19))
ENDLESS = float(np.float32(1.7014e38))  # and its substitute for infinity


@gradient("deg2rad")
def deg2rad(g: Tensor, x: Tensor, **m: Any) -> Tensor:
    """π g ÷ 180."""
    return ttnn.multiply(g, DEGREE, **m)


@gradient("rad2deg")
def rad2deg(g: Tensor, x: Tensor, **m: Any) -> Tensor:
    """180 g ÷ π."""
    return ttnn.multiply(g, RADIAN, **m)


@gradient("sin")
def sin(g: Tensor, x: Tensor, **m: Any) -> Tensor:
    """g cos x."""
    return ttnn.multiply(g, ttnn.cos(x, **m), **m)


@gradient("cos")
def cos(g: Tensor, x: Tensor, **m: Any) -> Tensor:
    """-g sin x."""
    return ttnn.multiply(g, ttnn.neg(ttnn.sin(x, **m), **m), **m)


@gradient("tan")
def tan(g: Tensor, x: Tensor, **m: Any) -> Tensor:
    """g (1 + tan² x)."""
    return ttnn.multiply(g, ttnn.add(ttnn.square(ttnn.tan(x, **m), **m), 1.0, **m), **m)


def _hyperbolic(name: str, derivative: Callable[[], Any]) -> None:
    @gradient(name)
    def hyperbolic(g: Tensor, x: Tensor, **m: Any) -> Tensor:
        product = ttnn.multiply(g, derivative()(x, **m), **m)
        above, below = ttnn.ge(product, LARGEST, **m), ttnn.le(product, -LARGEST, **m)
        return ttnn.where(above, INFINITY, ttnn.where(below, -INFINITY, product, **m), **m)


_hyperbolic("sinh", lambda: ttnn.cosh)
_hyperbolic("cosh", lambda: ttnn.sinh)


@gradient("tanhshrink")
def tanhshrink(g: Tensor, x: Tensor, **m: Any) -> Tensor:
    """g tanh² x."""
    return ttnn.multiply(g, ttnn.square(ttnn.tanh(x, **m), **m), **m)


# -- inverses ---------------------------------------------------------------------------------------------------------


@gradient("atan")
def atan(g: Tensor, x: Tensor, **m: Any) -> Tensor:
    """g ÷ (1 + x²)."""
    return ttnn.multiply(g, chain(x, function("SQUARE"), function("ADD_UNARY_SFPU", 1.0), function("RECIP"), **m), **m)


@gradient("asinh")
def asinh(g: Tensor, x: Tensor, **m: Any) -> Tensor:
    """g ÷ √(1 + x²)."""
    root = chain(x, function("SQUARE"), function("ADD_UNARY_SFPU", 1.0), function("RSQRT"), **m)
    return ttnn.multiply(g, root, **m)


@gradient("acos")
def acos(g: Tensor, x: Tensor, **m: Any) -> Tensor:
    """-g ÷ √(1 - x²)."""
    rest = ttnn.add(ttnn.multiply(ttnn.neg(x, **m), x, **m), 1.0, **m)
    result = ttnn.multiply(g, ttnn.neg(ttnn.rsqrt(rest, **m), **m), **m)
    limit = signed_infinity(g, -INFINITY, **m)
    outside = either(ttnn.lt(x, -1.0, **m), ttnn.gt(x, 1.0, **m), **m)
    result = ttnn.where(outside, NAN, result, **m)
    left, right = ttnn.eq(x, -1.0, **m), ttnn.eq(x, 1.0, **m)
    return ttnn.where(left, limit, ttnn.where(right, limit, result, **m), **m)


@gradient("asin")
def asin(g: Tensor, x: Tensor, **m: Any) -> Tensor:
    """g ÷ √(1 - x²)."""
    functions = (function("SQUARE"), function("NEG"), function("ADD_UNARY_SFPU", 1.0), function("RSQRT"))
    inside = ttnn.multiply(g, chain(x, *functions, **m), **m)
    from_right, from_left = ttnn.add(x, -1, **m), ttnn.add(x, 1, **m)
    right = ttnn.where(ttnn.eqz(from_right, **m), signed_infinity(g, **m), inside, **m)
    ends = ttnn.where(ttnn.eqz(from_left, **m), signed_infinity(g, **m), right, **m)
    return ttnn.where(ttnn.ltz(from_left, **m), NAN, ttnn.where(ttnn.gtz(from_right, **m), NAN, ends, **m), **m)


@gradient("acosh")
def acosh(g: Tensor, x: Tensor, **m: Any) -> Tensor:
    """g ÷ √(x² - 1)."""
    squared = ttnn.square(x, **m)
    result = ttnn.multiply(g, ttnn.rsqrt(ttnn.subtract(squared, 1.0, **m), **m), **m)
    sign = ttnn.multiply(ttnn.signbit(g, **m), -1.0, **m)
    unknown = either(ttnn.lt(squared, 1.0, **m), both(ttnn.eq(x, 1.0, **m), ttnn.eqz(g, **m), **m), **m)
    near = both(ttnn.le(x, 1.0, **m), ttnn.ge(x, -1.0, **m), **m)
    limit = ttnn.multiply(ttnn.add(sign, ttnn.eqz(sign, **m), **m), ENDLESS, **m)
    return ttnn.where(unknown, UNKNOWN, ttnn.where(near, limit, result, **m), **m)


@gradient("atanh")
def atanh(g: Tensor, x: Tensor, **m: Any) -> Tensor:
    """g ÷ (1 - x²)."""
    functions = (function("SQUARE"), function("SUB_UNARY_SFPU", 1.0), function("NEG"), function("RECIP"))
    result = ttnn.multiply(g, chain(x, *functions, **m), **m)
    ends = either(ttnn.eq(x, 1, **m), ttnn.eq(x, -1, **m), **m)
    result = ttnn.where(both(ends, ttnn.eqz(g, **m), **m), NAN, result, **m)
    result = ttnn.where(both(ends, ttnn.nez(g, **m), **m), INFINITY, result, **m)
    return ttnn.where(both(ttnn.eq(result, INFINITY, **m), ttnn.ltz(g, **m)), -INFINITY, result, **m)
