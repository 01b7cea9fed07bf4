"""Kernels of the derivatives of tanh and gelu."""

from __future__ import annotations

import numpy as np

from ttnn_emulator.numerics.functions.exponential import INVERSE_LN2, ROUNDING_BIAS
from ttnn_emulator.numerics.functions.kernel_vocabulary import (
    at_least,
    greater,
    kernel,
    less,
    polynomial,
    times,
    times_plus,
)
from ttnn_emulator.numerics.functions.roots import reciprocal
from ttnn_emulator.numerics.units.vector_unit import (
    ONE,
    ZERO,
    Float,
    add,
    bits,
    exponent,
    magnitude,
    mul,
    round_to_bf16,
    set_exponent,
    sub,
)

INFINITY_BITS = np.int32(0x7F800000)
# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_tanh_derivative.h,
#     inline_exp_sech2_tail
LN4 = 1.3862943611198906
MINUS_LN2 = (-0.6931152343750000, -3.19461832987e-05)  # split into high and low parts

# sech²(x) as a polynomial in t = 2/9 x² - 1, for |x| < 3.
# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_tanh_derivative.h,
#     SECH2_POLY_C0
SECH2 = (
    5.58971869398334972323e-02,
    -1.15151201975556879975e-01,
    1.41578556434459129632e-01,
    -1.40162303416289407698e-01,
    1.47692044971667296727e-01,
    -1.43049915574319674860e-01,
    3.59505515570256450886e-02,
    5.00465512420113917136e-02,
    6.00316523798012785518e-02,
    -1.46346136132160548060e-01,
    6.33840343077387569082e-02,
)
# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_tanh_derivative.h,
#     TAIL_REGION_LIMIT
SECH2_CORE, SECH2_END = 3.0, 45.0

# gelu'(x) = 0.5 + x h(x²) between these two.
# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_gelu.h,
#     calculate_gelu_derivative_simple
GELU_CORE, GELU_ONE_FROM, GELU_ZERO_TO = -3.0, 3.1719, -13.375
# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_gelu.h, GELU_DERIV_H0
GELU_SERIES = (
    7.9788309336e-01,
    -2.6593554020e-01,
    5.9766173363e-02,
    -9.4142099842e-03,
    1.1061388068e-03,
    -9.7448595625e-05,
    6.0921474869e-06,
    -2.3764030743e-07,
    4.2734988881e-09,
)
INVERSE_ROOT_2PI = 0.3989422804014327
# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_gelu.h,
#     x_times_exp_negative_tail
FACTORIALS = (1.0, 1.0, 0.5, 0.166666667, 0.0416666667, 0.00833333333)


# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_gelu.h,
#     x_times_exp_negative_tail
# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_tanh_derivative.h,
#     inline_exp_sech2_tail
def _scaled_exp(t: Float, degree: int, factor: Float | None = None) -> Float:
    """factor × exp(t) for t < 0 by Cody-Waite range reduction; only the product may underflow, to zero."""
    shifted = add(times(t, INVERSE_LN2), ROUNDING_BIAS)
    k = sub(shifted, ROUNDING_BIAS)
    high, low = MINUS_LN2
    r = times_plus(k, low, times_plus(k, high, t))
    p = polynomial(r, *FACTORIALS[: degree + 1])
    p = p if factor is None else mul(factor, p)
    e = exponent(p, biased=True) + (bits(shifted) - bits(ROUNDING_BIAS))
    return np.where(e > 0, set_exponent(p, e), ZERO)


# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_tanh_derivative.h,
#     calculate_tanh_derivative_sech2
@kernel("tanh_derivative")
def tanh_derivative(x: Float, *, approx: bool, fp32: bool) -> Float:
    size = magnitude(x)
    core = polynomial(times_plus(mul(size, size), float(np.float32(2.0) / np.float32(9.0)), -1.0), *SECH2)
    tail = _scaled_exp(times_plus(size, -2.0, LN4), degree=4)
    result = np.where(less(size, SECH2_CORE), core, np.where(less(size, SECH2_END), tail, ZERO))
    return result if fp32 else round_to_bf16(result)


# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_gelu.h,
#     calculate_gelu_derivative_simple
@kernel("gelu_derivative")
def gelu_derivative(x: Float, *, approx: bool, fp32: bool) -> Float:
    squared = mul(x, x)
    core = times_plus(x, polynomial(squared, *GELU_SERIES), 0.5)
    inverse = reciprocal(squared, steps=2 if fp32 else 1)
    correction = add(sub(ONE, inverse), mul(inverse, inverse))
    tail = mul(times(_scaled_exp(times(squared, -0.5), degree=5, factor=x), INVERSE_ROOT_2PI), correction)
    result = np.where(at_least(x, GELU_CORE), core, np.where(greater(x, GELU_ZERO_TO), tail, ZERO))
    result = np.where(at_least(x, GELU_ONE_FROM), ONE, result)
    if not fp32:
        return round_to_bf16(result)
    return np.where(bits(squared) > INFINITY_BITS, x, result)
