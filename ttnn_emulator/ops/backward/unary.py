"""Gradients of powers, roots, exponentials, logarithms and of functions that are constant in steps."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ttnn_emulator.errors import require
from ttnn_emulator.execution.operation_table import composite, ttnn
from ttnn_emulator.ops.backward.registration import INFINITY, NAN, both, function, gradient, signed_infinity
from ttnn_emulator.tensors.memory_config import MemoryConfig
from ttnn_emulator.tensors.tensor import Tensor

LN2, LN10 = float(np.float32(math.log(2.0))), float(np.float32(math.log(10.0)))
ROUNDING_MODES = (None, "trunc", "floor")
# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/eltwise/unary_backward/unary_backward.cpp, ZERO_THRESHOLD
NEARLY_ZERO = 10.0 * float(np.finfo(np.float32).eps)  # exponents below this count as zero

# -- zero, or the gradient itself -------------------------------------------------------------------------------------


def _zeros(like: Tensor, *, memory_config: MemoryConfig | None = None, into: Tensor | None = None) -> Tensor:
    require_placed(into)
    return ttnn.zeros_like(like, memory_config=memory_config, optional_tensor=into)


def require_placed(given: Tensor | None) -> None:
    """A preallocated gradient must be on the device."""
    require(given is None or given.device() is not None, "the tensor passed for the gradient is on the host")


@gradient("trunc", "sign", "fill_zero", "floor", "round", "ceil")
def constant_in_steps(g: Tensor, x: Tensor, **m: Any) -> Tensor:
    """Zeros: the function is constant in steps."""
    return _zeros(g, **m)


@composite("ttnn.fill_bw")
def fill_bw(
    grad_tensor: Tensor,
    input_tensor: Tensor,
    *,
    memory_config: MemoryConfig | None = None,
    input_grad: Tensor | None = None,
) -> list:
    """A constant has no gradient: zeros."""
    return [_zeros(grad_tensor, memory_config=memory_config, into=input_grad)]


@composite("ttnn.frac_bw")
def frac_bw(grad_tensor: Tensor, input_tensor: Tensor, *, memory_config: MemoryConfig | None = None) -> list:
    """The gradient unchanged."""
    return [grad_tensor]


@composite("ttnn.neg_bw")
def neg_bw(
    grad_tensor: Tensor,
    input_tensor: Tensor,
    *,
    memory_config: MemoryConfig | None = None,
    input_grad: Tensor | None = None,
) -> list:
    """The gradient negated."""
    out = prepared(input_grad, input_tensor, memory_config)
    return [ttnn.neg(grad_tensor, memory_config=memory_config, output_tensor=out)]


def prepared(given: Tensor | None, like: Tensor, memory_config: MemoryConfig | None) -> Tensor:
    """The preallocated tensor for a gradient, or a new one like the input."""
    require_placed(given)
    return given if given is not None else ttnn.empty_like(like, memory_config=memory_config)


def abs_of_real(g: Tensor, x: Tensor, **m: Any) -> Tensor:
    """g times the sign of x."""
    return ttnn.multiply(g, ttnn.sign(x, **m), **m)


@gradient("square")
def square(g: Tensor, x: Tensor, **m: Any) -> Tensor:
    """2 g x."""
    return ttnn.multiply(ttnn.multiply(g, 2.0, **m), x, **m)


# -- exponentials -----------------------------------------------------------------------------------------------------


@composite("ttnn.exp_bw")
def exp_bw(
    grad_tensor: Tensor,
    input_tensor: Tensor,
    *,
    memory_config: MemoryConfig | None = None,
    input_grad: Tensor | None = None,
) -> list:
    """g exp(x)."""
    m = {"memory_config": memory_config}
    out = prepared(input_grad, input_tensor, memory_config)
    return [ttnn.multiply(grad_tensor, ttnn.exp(input_tensor, **m), output_tensor=out, **m)]


@gradient("exp2")
def exp2(g: Tensor, x: Tensor, **m: Any) -> Tensor:
    """g 2ˣ ln 2."""
    return ttnn.multiply(g, ttnn.multiply(ttnn.exp2(x, **m), LN2, **m), **m)


@gradient("expm1")
def expm1(g: Tensor, x: Tensor, **m: Any) -> Tensor:
    """g exp(x)."""
    return ttnn.multiply(g, ttnn.exp(x, **m), **m)


# -- logarithms -------------------------------------------------------------------------------------------------------


@gradient("log")
def log(g: Tensor, x: Tensor, **m: Any) -> Tensor:
    """g ÷ x; at zero an infinity of the gradient's sign."""
    quotient = ttnn.multiply(g, ttnn.reciprocal(x, **m), **m)
    at_zero = ttnn.eqz(x, **m)
    limit = ttnn.where(ttnn.eqz(g, **m), NAN, signed_infinity(g, **m), **m)
    return ttnn.where(at_zero, limit, quotient, **m)


def _log_of_base(natural: float, name: str) -> None:
    @gradient(name)
    def log_of_base(g: Tensor, x: Tensor, **m: Any) -> Tensor:
        limit = ttnn.where(ttnn.ltz(g, **m), -INFINITY, INFINITY, **m)
        quotient = ttnn.multiply(g, ttnn.reciprocal(ttnn.multiply(x, natural, **m), **m), **m)
        unknown = both(ttnn.eqz(x, **m), ttnn.eqz(g, **m), **m)
        return ttnn.where(unknown, NAN, ttnn.where(ttnn.eqz(x, **m), limit, quotient, **m), **m)


_log_of_base(LN2, "log2")
_log_of_base(LN10, "log10")


@gradient("log1p")
def log1p(g: Tensor, x: Tensor, **m: Any) -> Tensor:
    """g ÷ (x + 1)."""
    limit = ttnn.where(ttnn.ltz(g, **m), -INFINITY, INFINITY, **m)
    shifted = ttnn.add(x, 1.0, **m)
    quotient = ttnn.multiply(g, ttnn.reciprocal(shifted, **m), **m)
    result = ttnn.where(ttnn.eq(x, -1.0, **m), limit, quotient, **m)
    return ttnn.where(both(ttnn.eqz(shifted, **m), ttnn.eqz(g, **m)), NAN, result, **m)


def _logit_slope(g: Tensor, x: Tensor, **m: Any) -> Tensor:
    """g ÷ (x (1 - x))."""
    return ttnn.multiply(g, ttnn.reciprocal(ttnn.multiply(x, ttnn.rsub(x, 1.0, **m), **m)), **m)


def _at_the_ends(g: Tensor, x: Tensor, inside: Tensor, **m: Any) -> Tensor:
    """Infinities at 0 and 1."""
    ends = ttnn.logical_or(ttnn.eq(x, 0.0, **m), ttnn.eq(x, 1.0, **m), **m)
    return ttnn.where(ends, signed_infinity(g, **m), inside, **m)


@gradient("logit")
def logit(g: Tensor, x: Tensor, **m: Any) -> Tensor:
    """g ÷ (x (1 - x)) from 0 to 1."""
    slope = _logit_slope(g, x, **m)
    defined = both(ttnn.ge(x, 0.0, **m), ttnn.le(x, 1.0, **m), **m)
    return _at_the_ends(g, x, ttnn.where(defined, slope, NAN), **m)


@composite("ttnn.logiteps_bw")
def logiteps_bw(
    grad_tensor: Tensor, input_tensor: Tensor, *, eps: float = 0.0, memory_config: MemoryConfig | None = None
) -> list:
    """g ÷ (x (1 - x)) from eps to 1 - eps, zero outside."""
    m, g, x = {"memory_config": memory_config}, grad_tensor, input_tensor
    low = float(np.float32(eps))
    slope = _logit_slope(g, x, **m)
    margin = ttnn.full_like(x, low, x.dtype, x.layout, **m)
    outside = ttnn.logical_or(ttnn.lt(x, low, **m), ttnn.gt(x, float(np.float32(1.0 - low)), **m), **m)
    beyond = ttnn.eq(outside, 1.0, **m)
    there = ttnn.where(ttnn.ltz(margin, **m), NAN, 0.0, **m)
    return [ttnn.where(beyond, there, _at_the_ends(g, x, slope, **m), **m)]


# -- powers and roots -------------------------------------------------------------------------------------------------


@composite("ttnn.pow_bw")
def pow_bw(
    grad_tensor: Tensor,
    input_tensor: Tensor,
    exponent: float,
    *,
    memory_config: MemoryConfig | None = None,
    input_grad: Tensor | None = None,
) -> list:
    """g n xⁿ⁻¹; infinite where x is not positive."""
    m, n = {"memory_config": memory_config}, float(np.float32(exponent))
    require(n >= 0.0, f"the gradient of a power does not support a negative exponent, here {exponent}")
    out = prepared(input_grad, input_tensor, memory_config)
    if n < NEARLY_ZERO:
        return [_zeros(input_tensor, into=out)]
    power = ttnn.pow(input_tensor, abs(float(np.float32(n - 1.0))), **m)
    if n < 1.0:
        power = ttnn.reciprocal(power, **m)
    result = ttnn.multiply(ttnn.multiply(power, n, **m), grad_tensor, **m)
    return [ttnn.where(ttnn.lez(input_tensor), INFINITY, result, output_tensor=out, **m)]


@composite("ttnn.rpow_bw")
def rpow_bw(
    grad_tensor: Tensor, input_tensor: Tensor, exponent: float, *, memory_config: MemoryConfig | None = None
) -> list:
    """The same with x as the base, undefined where it is negative."""
    m, n = {"memory_config": memory_config}, float(np.float32(exponent))
    if n == 0.0:
        return [_zeros(input_tensor, memory_config=memory_config)]
    power = ttnn.multiply(ttnn.pow(input_tensor, float(np.float32(n - 1.0)), **m), n, **m)
    result = ttnn.multiply(grad_tensor, power, **m)
    return [ttnn.where(ttnn.ltz(input_tensor, **m), NAN, result, **m)]


@composite("ttnn.sqrt_bw")
def sqrt_bw(
    grad_tensor: Tensor,
    input_tensor: Tensor,
    *,
    memory_config: MemoryConfig | None = None,
    input_grad: Tensor | None = None,
) -> list:
    """g ÷ (2 √x)."""
    m, g, x = {"memory_config": memory_config}, grad_tensor, input_tensor
    out = prepared(input_grad, x, memory_config)
    ttnn.sqrt(x, output_tensor=out, **m)
    ttnn.multiply(g, ttnn.reciprocal(ttnn.multiply(out, 2.0, **m), **m), output_tensor=out, **m)
    ttnn.where(ttnn.lez(x, **m), NAN, out, output_tensor=out, **m)
    for sign, limit in ((ttnn.ltz, -INFINITY), (ttnn.gtz, INFINITY)):
        ttnn.where(both(ttnn.eqz(x, **m), sign(g, **m), **m), limit, out, output_tensor=out, **m)
    return [out]


@composite("ttnn.rsqrt_bw")
def rsqrt_bw(
    grad_tensor: Tensor,
    input_tensor: Tensor,
    *,
    memory_config: MemoryConfig | None = None,
    input_grad: Tensor | None = None,
) -> list:
    """-½ g x^(-3/2)."""
    m, g, x = {"memory_config": memory_config}, grad_tensor, input_tensor
    out = prepared(input_grad, g, memory_config)
    ttnn.rsqrt(x, output_tensor=out, **m)
    ttnn.unary_chain(out, [function("POWER", 3.0)], output_tensor=out, **m)
    ttnn.multiply(ttnn.multiply(g, out, **m), -0.5, output_tensor=out, **m)
    ttnn.where(ttnn.ltz(x, **m), NAN, out, output_tensor=out, **m)
    ttnn.where(both(ttnn.eqz(x, **m), ttnn.eqz(g, **m), **m), NAN, out, output_tensor=out, **m)
    return [out]


def reciprocal_of_real(g: Tensor, x: Tensor, **m: Any) -> Tensor:
    """-g ÷ x²."""
    at_zero = ttnn.eqz(x, **m)
    limit = ttnn.multiply(g, -INFINITY, input_tensor_a_activations=[function("SIGN")], **m)
    limit = ttnn.where(ttnn.eqz(g, **m), NAN, limit, **m)
    inside = ttnn.multiply(
        g,
        x,
        input_tensor_a_activations=[function("NEG")],
        input_tensor_b_activations=[function("SQUARE"), function("RECIP")],
        **m,
    )
    return ttnn.where(at_zero, limit, inside, **m)


@composite("ttnn.rdiv_bw")
def rdiv_bw(
    grad_tensor: Tensor,
    input_tensor: Tensor,
    scalar: float,
    *,
    rounding_mode: str | None = None,
    memory_config: MemoryConfig | None = None,
) -> list:
    """-g s ÷ x², the gradient of s ÷ x; zeros if the quotient was rounded."""
    require(rounding_mode in ROUNDING_MODES, f"there is no rounding mode {rounding_mode!r}")
    m, g, x = {"memory_config": memory_config}, grad_tensor, input_tensor
    if rounding_mode is not None:
        return [_zeros(g, memory_config=memory_config)]
    defined = ttnn.nez(x)
    inverse = ttnn.reciprocal(x, **m)
    slope = ttnn.multiply(ttnn.multiply(inverse, inverse, **m), scalar, **m)
    result = ttnn.where(defined, ttnn.multiply(ttnn.neg(g, **m), slope, **m), NAN, **m)
    if scalar:
        limit = math.copysign(INFINITY, scalar)
        for sign, value in ((ttnn.ltz, limit), (ttnn.gtz, -limit)):
            result = ttnn.where(both(ttnn.eqz(x, **m), sign(g, **m), **m), value, result, **m)
    return [result]


@composite("ttnn.div_no_nan_bw")
def div_no_nan_bw(
    grad_tensor: Tensor, input_tensor: Tensor, scalar: float, *, memory_config: MemoryConfig | None = None
) -> list:
    """g ÷ s; zeros where s is zero."""
    m, s = {"memory_config": memory_config}, np.float32(scalar)
    divisor = ttnn.full_like(input_tensor, float(s), input_tensor.dtype, input_tensor.layout, **m)
    with np.errstate(over="ignore", divide="ignore"):
        inverse = float(np.float32(1.0) / s) if s else math.copysign(INFINITY, float(s))
    quotient = ttnn.multiply(grad_tensor, inverse, **m)
    return [ttnn.where(ttnn.eq(divisor, 0, **m), 0.0, quotient, **m)]
