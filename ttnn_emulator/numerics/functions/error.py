"""Kernels of gelu, of the error function and its inverse, and of the Bessel functions."""

from __future__ import annotations

import numpy as np

from ttnn_emulator.numerics.functions.exponential import INVERSE_LN2, exp_accurate_in_range, power_of_two
from ttnn_emulator.numerics.functions.hyperbolic import tanh_accurate
from ttnn_emulator.numerics.functions.kernel_vocabulary import (
    at_least,
    between,
    equal,
    fused,
    greater,
    half_precision,
    kernel,
    less,
    piecewise_linear,
    plus,
    polynomial,
    smaller_of,
    times,
    times_plus,
    within,
)
from ttnn_emulator.numerics.functions.logarithm import logarithm
from ttnn_emulator.numerics.functions.roots import reciprocal, square_root, square_root_newton
from ttnn_emulator.numerics.units.vector_unit import (
    ZERO,
    Float,
    add,
    mad,
    magnitude,
    mul,
    negate,
    round_to_bf16,
    set_sign,
    sub,
)

# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_gelu.h,
#     calculate_gelu_piecewise
GELU_ZERO_BELOW = -5.54259443  # below, the standard normal CDF is zero in float32
# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_gelu.h, GELU_HCORR_C0
GELU_TAIL = (3.0369991064e-01, 9.5413386822e-02, 1.3809983619e-02, 7.5950479368e-04)
# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_gelu.h, GELU_CDF_CORE_C1
GELU_CORE = (
    3.9894227818e-01,
    -6.6361041488e-02,
    9.7720050615e-03,
    -1.0717806322e-03,
    8.1812159812e-05,
    -3.8082057209e-06,
    7.9821413868e-08,
)
# erf(x) = x N(x²) ÷ D(x²)
# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_erf.h, ERF_LUT_SIZE
# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_gelu.h, GELU_ERF_NUM
ERF_NUMERATOR = (
    1.1283791065e00,
    2.1477432549e-01,
    6.2133435160e-02,
    5.6230435148e-03,
    6.1307044234e-04,
    1.7678321456e-05,
    2.7384647439e-08,
    -2.8632063387e-10,
)
# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_erf.h, ERF_LUT_SIZE
# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_gelu.h, GELU_ERF_DEN
ERF_DENOMINATOR = (
    1.0,
    5.2367275953e-01,
    1.2961706519e-01,
    1.9642570987e-02,
    1.9545555115e-03,
    1.3179056987e-04,
    1.3156344494e-06,
    -3.5153888689e-09,
    -6.7350725691e-12,
)
# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_gelu.h, gelu_init
GELU_LIMITS = (0.5, 1.0, 1.5, 2.0, 3.0)
GELU_LINES = tuple(
    (half_precision(slope), half_precision(intercept))
    for slope, intercept in (
        (0.1928, -0.00010443),
        (0.4939, -0.1604),
        (0.6188, -0.2796),
        (0.6099, -0.2635),
        (0.5402, -0.1194),
        (0.5, 0.0),
    )
)


@kernel("gelu")
def gelu(x: Float, *, approx: bool, fp32: bool) -> Float:
    if approx:
        return mad(x, np.float32(0.5), piecewise_linear(x, GELU_LIMITS, GELU_LINES))
    return _gelu_accurate(x) if fp32 else round_to_bf16(_gelu_bf16(x))


# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_gelu.h, calculate_gelu
def _gelu_accurate(x: Float) -> Float:
    scaled = smaller_of(times(x, 0.7071067811865475), 10.0)
    squared = mul(scaled, scaled)
    numerator = mul(polynomial(squared, *ERF_NUMERATOR), scaled)
    erf = mul(numerator, reciprocal(polynomial(squared, *ERF_DENOMINATOR), steps=2))
    erf = between(erf, -1.0, 1.0)
    result = mul(x, times_plus(erf, 0.5, 0.5))
    result = np.where(equal(erf, -1.0), times(x, 2.0**-25), result)
    return np.where(greater(x, GELU_ZERO_BELOW), result, sub(x, x))


# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_gelu.h,
#     calculate_gelu_piecewise
def _gelu_bf16(x: Float) -> Float:
    squared = mul(x, x)
    density = power_of_two(times_plus(squared, -0.72134752044, 127.0))
    tail = mul(density, polynomial(x, *GELU_TAIL))
    tail = mul(x, sub(plus(tail, 0.375), np.float32(0.375)))  # rounds to a multiple of 2^-25
    core = mul(x, plus(mul(x, polynomial(squared, *GELU_CORE)), 0.5))
    positive = np.where(at_least(x, 2.78125), x, np.where(at_least(x, -3.125), core, tail))
    return np.where(greater(x, GELU_ZERO_BELOW), positive, ZERO)


# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_gelu.h, calculate_gelu_tanh
@kernel("gelu_tanh")
def gelu_tanh(x: Float, *, approx: bool, fp32: bool) -> Float:
    inner = mul(x, times_plus(mul(x, x), 0.044715, 1.0))
    slope = tanh_accurate(times(inner, 0.7978845608028654))
    half = times(x, 0.5)
    result = mad(half, slope, half)
    return result if fp32 else round_to_bf16(result)


# -- error function ---------------------------------------------------------------------------------------------------

# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_erf.h, ERF_LUT_SIZE
ERF_BF16_NUMERATOR = (1.1280932447e00, 2.7609212279e-01, 4.5400281738e-02, 7.4481184425e-04)
ERF_BF16_DENOMINATOR = (1.0, 5.7439188334e-01, 1.3675764810e-01, 8.2844606784e-03, 2.4813862145e-05)


# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_erf.h, calculate_erf
@kernel("erf")
def erf(x: Float, *, approx: bool, fp32: bool, halves: bool = False) -> Float:
    x = within(x, 10.0)
    squared = mul(x, x)
    wide = fp32 and not halves
    numerator, denominator = (ERF_NUMERATOR, ERF_DENOMINATOR) if wide else (ERF_BF16_NUMERATOR, ERF_BF16_DENOMINATOR)
    top = mul(polynomial(squared, *numerator), x)
    inverse = reciprocal(polynomial(squared, *denominator), steps=1 if approx else 2)
    return between(mul(top, inverse), -1.0, 1.0)


# Numerator and denominator of erfc(|x|) below 2.5 and from there on.
# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_erfc.h, ERFC_LUT_SIZE
ERFC_PIECES = (
    (
        (1.0000233650e00, -1.3375675678e00, 6.8185544014e-01, -1.5691982210e-01, 1.3746744953e-02),
        (1.0, -2.0801517367e-01, 4.3667086959e-01, -3.4568668343e-03, 2.5104774162e-02, 2.8375532478e-02),
    ),
    (
        (-2.5655237550e-05, 2.1275576728e-05, -6.6162156145e-06, 9.1439767402e-07, -4.7387182178e-08),
        (1.0, -1.6457208991e-01, -2.0572184026e-01, -1.3888636231e-01, 1.2677097321e-01, -2.1375391632e-02),
    ),
)


# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_erfc.h, calculate_erfc
@kernel("erfc")
def erfc(x: Float, *, approx: bool, fp32: bool) -> Float:
    size = smaller_of(magnitude(x), 5.0)
    upper = at_least(size, 2.5)
    (near_top, near_bottom), (far_top, far_bottom) = ERFC_PIECES
    top = np.where(upper, polynomial(size, *far_top), polynomial(size, *near_top))
    bottom = np.where(upper, polynomial(size, *far_bottom), polynomial(size, *near_bottom))
    result = mul(top, reciprocal(bottom, steps=1))
    return np.where(less(x, 0.0), sub(np.float32(2.0), result), result)


# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_erfinv.h, calculate_erfinv_body
@kernel("erfinv")
def erfinv(x: Float, *, approx: bool, fp32: bool) -> Float:
    log = logarithm(sub(np.float32(1.0), mul(x, x)), fp32=False)
    half = plus(times(log, -0.5), -4.330746750799873)
    inner = mad(half, half, negate(times(log, 6.802721088435375)))
    return set_sign(square_root_newton(add(half, square_root_newton(inner))), x)


# -- Bessel functions -------------------------------------------------------------------------------------------------

# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_i0.h, calculate_i0
I0_SERIES = (
    1.0,
    0.25,
    0.015625,
    0.0004340277778,
    0.000006781684028,
    6.78e-08,
    4.71e-10,
    2.40e-12,
    9.39e-15,
    2.90e-17,
    7.24e-20,
    1.50e-22,
)


@kernel("i0")
def i0(x: Float, *, approx: bool, fp32: bool) -> Float:
    return polynomial(mul(x, x), *I0_SERIES)


# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_i1.h, calculate_i1
I1_NUMERATOR = {
    True: (
        0.5,
        5.6819390506e-02,
        1.9247245509e-03,
        2.8397364076e-05,
        2.0916867527e-07,
        7.7937084564e-10,
        1.2293555930e-12,
    ),
    False: (4.9992737740e-01, 5.4503594600e-02, 1.6126291630e-03, 2.0223499130e-05),
}
I1_DENOMINATOR = {
    True: (
        1.0,
        -1.1361218989e-02,
        6.1268139689e-05,
        -1.9771712800e-07,
        3.8127551116e-10,
        -3.1218170410e-13,
        -3.0635529988e-16,
        7.4301498523e-19,
    ),
    False: (1.0, -1.6242591070e-02, 1.0333660750e-04, -2.5076132990e-07),
}
# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_i1.h, calculate_i1_asymptotic_
I1_ASYMPTOTE = (
    3.9894228967e-01,
    -1.4960495444e-01,
    -4.6652925320e-02,
    -4.3674591560e-02,
    -1.9748322314e-02,
    -3.3467922914e-01,
)


# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_i1.h, calculate_i1
@kernel("i1")
def i1(x: Float, *, approx: bool, fp32: bool, halves: bool = False) -> Float:
    fp32 = fp32 and not halves  # the rounding of the result follows the dtype here too
    x = within(x, 88.5)
    squared = mul(x, x)
    inverse = reciprocal(polynomial(squared, *I1_DENOMINATOR[fp32]), steps=2)
    inner = mul(mul(polynomial(squared, *I1_NUMERATOR[fp32]), x), inverse)
    size = magnitude(x)
    power = exp_accurate_in_range(size) if fp32 else power_of_two(times_plus(size, INVERSE_LN2, 127.0))
    root = square_root(size, inverse=True, approx=False, guarded=False)
    outer = set_sign(mul(mul(power, root), polynomial(mul(root, root), *I1_ASYMPTOTE)), x)
    result = np.where(greater(size, 10.0), outer, inner)
    return result if fp32 else round_to_bf16(result)


fused(erf, i1)
