"""Kernels of the exponential and of functions built on it: exp, exp2, expm1, sigmoid, silu and related activations."""

from __future__ import annotations

import math

import numpy as np

from ttnn_emulator.numerics.functions.kernel_vocabulary import (
    INFINITY,
    at_least,
    at_most,
    between,
    equal,
    fused,
    greater,
    half_precision,
    kernel,
    larger_of,
    less,
    piecewise_linear,
    plus,
    polynomial,
    times,
    times_plus,
    to_int16,
    to_integer,
    to_uint16,
    two_complement,
)
from ttnn_emulator.numerics.functions.roots import reciprocal
from ttnn_emulator.numerics.units.vector_unit import (
    ZERO,
    Float,
    Int,
    add,
    bits,
    exponent,
    floats,
    mad,
    magnitude,
    mantissa,
    mul,
    negate,
    round_to_bf16,
    set_exponent,
    set_sign,
    shift,
    sign_magnitude_to_float,
    sub,
)

HALF = np.float32(0.5)
ROUNDING_BIAS = np.float32(12582912.0)  # 1.5 × 2²³: adding it leaves the rounded integer in the low mantissa bits
# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_exp.h, _sfpu_exp_21f_bf16_
INVERSE_LN2 = 1.4426950216293335
# 2^f of a fraction f in 23-bit fixed point.
# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_exp.h, _sfpu_exp_21f_bf16_
EXP_21_POLYNOMIAL = (1.0017248, 7.839635491371155e-08, 4.791750143340323e-15)


# -- building blocks --------------------------------------------------------------------------------------------------


# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_exp.h,
#     _float_to_int32_for_exp_21f_
def fixed_point(value: Float) -> Int:
    """value × 2²³ as an integer, for 0 ≤ value < 256."""
    return shift(mantissa(value), exponent(value))


def power_of_two(biased: Float, coefficients: tuple = EXP_21_POLYNOMIAL) -> Float:
    """2^(biased - 127): the integer part becomes the exponent, a polynomial evaluates the fraction."""
    whole = floats(fixed_point(biased))
    fraction = sign_magnitude_to_float(mantissa(whole, hidden=False))
    return set_exponent(polynomial(fraction, *coefficients), exponent(whole, biased=True))


# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_exp.h, _sfpu_exp_21f_bf16_
def exp_21_bits(x: Float) -> Float:
    """exp to about the precision of bfloat16."""
    return power_of_two(between(times_plus(x, INVERSE_LN2, 127.0), 0.0, 255.0))


# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_exp.h, _sfpu_exp_fp32_accurate_
def exp_parts(x: Float) -> tuple[Float, Int, Float]:
    """exp(x) = r × 2^i; also the polynomial before its last step, which shows a NaN."""
    whole = to_int16(times(x, 1.442695))
    j = sign_magnitude_to_float(whole)
    f = times_plus(j, -1.42860677e-6, times_plus(j, -6.93145752e-1, x))
    y = polynomial(f, 1.0, 4.99999851e-1, 1.66664720e-1, 4.16695364e-2, 8.37312452e-3, 1.37805939e-3)
    return times_plus(y, f, 1.0), two_complement(whole), y


# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_exp.h, _sfpu_exp_fp32_accurate_
def exp_accurate(x: Float) -> Float:
    """exp to the precision of float32, with overflow, underflow and NaN."""
    r, i, y = exp_parts(x)
    # Decrementing the bits keeps a NaN non-finite and everything else finite: times zero gives NaN or zero.
    below = mul(floats(bits(y) - np.int32(1)), ZERO)
    e = exponent(r, biased=True) + i
    return np.where(e >= 255, add(below, INFINITY), np.where(e >= 1, set_exponent(r, e), below))


# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_exp.h,
#     _sfpu_exp_fp32_accurate_unsafe_
def exp_accurate_in_range(x: Float) -> Float:
    """exp_accurate for arguments whose exponential neither overflows nor underflows."""
    r, i, _ = exp_parts(x)
    return set_exponent(r, exponent(r, biased=True) + i)


# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_sigmoid.h, _sfpu_sigmoid_
def sigmoid_of(x: Float, fp32: bool) -> Float:
    """1 ÷ (1 + exp(-x)), before rounding to the destination format."""
    power = exp_accurate(negate(x)) if fp32 else exp_21_bits(negate(x))
    return reciprocal(plus(power, 1.0), steps=2 if fp32 else 1)


# -- kernels ----------------------------------------------------------------------------------------------------------


# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_exp.h,
#     calculate_exponential, exp_init
@kernel("exp")
def exp(x: Float, *, approx: bool, fp32: bool) -> Float:
    if approx:
        # Schraudolph's method: the bits of exp(x) are nearly linear in x.
        scaled = mad(np.float32(369.329925537109375), larger_of(x, -88.5), np.float32(32500.818359375))
        return floats(shift(to_uint16(scaled), 15))
    if fp32:
        return exp_accurate(x)
    biased = mad(x, np.float32(INVERSE_LN2), np.float32(127.0))
    c0, c1, c2 = EXP_21_POLYNOMIAL
    return round_to_bf16(power_of_two(between(biased, 0.0, 255.0), (half_precision(c0), c1, np.float32(c2))))


# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_sigmoid_appx.h,
#     sigmoid_appx_init
SIGMOID_LIMITS = (1.0, 2.0)
SIGMOID_LINES = ((0.2265625, 0.0), (0.265625, -0.046875), (0.0, 0.5))


@kernel("sigmoid")
def sigmoid(x: Float, *, approx: bool, fp32: bool) -> Float:
    if approx:
        return plus(set_sign(piecewise_linear(x, SIGMOID_LIMITS, SIGMOID_LINES), x), 0.5)
    return sigmoid_of(x, fp32) if fp32 else round_to_bf16(sigmoid_of(x, fp32))


# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_silu.h, calculate_silu
@kernel("silu", "swish")
def silu(x: Float, *, approx: bool, fp32: bool) -> Float:
    result = mul(x, sigmoid_of(x, fp32))
    return result if fp32 else round_to_bf16(result)


# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_exp2.h,
#     _sfpu_exp2_fp32_accurate_, _sfpu_exp2_bf16_
@kernel("exp2")
def exp2(x: Float, *, approx: bool, fp32: bool) -> Float:
    if not fp32:
        return round_to_bf16(power_of_two(between(plus(x, 127.0), 0.0, 255.0)))
    whole = to_int16(x)
    f = sub(x, sign_magnitude_to_float(whole))
    y = polynomial(f, np.float32(float.fromhex("0x1.c6afd8p-5")), *EXP2_TAIL)
    r = polynomial(f, 1.0, np.float32(float.fromhex("0x1.62e42ep-1")), np.float32(float.fromhex("0x1.ebfba0p-3")), y)
    e = exponent(r, biased=True) + two_complement(whole)
    inside = np.where(e < 1, ZERO, set_exponent(r, e))
    # A negative NaN fails the first test, because SFPABS keeps its sign.
    return np.where((bits(magnitude(x)) >= 0) & (e < 255), inside, mul(y, INFINITY))


# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_exp2.h,
#     _sfpu_exp2_fp32_accurate_
EXP2_TAIL = tuple(map(float.fromhex, ("0x1.3b4p-7", "0x1.5f4p-10", "0x1.41cp-13")))


@kernel("expm1")
def expm1(x: Float, *, approx: bool, fp32: bool) -> Float:
    return _expm1_accurate(x) if fp32 else round_to_bf16(_expm1_bf16(x))


# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_expm1.h, _sfpu_expm1_
def _expm1_bf16(x: Float) -> Float:
    shifted = mad(np.float32(1.442695), x, ROUNDING_BIAS)
    j = sub(shifted, ROUNDING_BIAS)
    f = mad(j, np.float32(-0.6931471805599453), x)
    r = mad(polynomial(f, np.float32(1.666259766e-01), 4.177856445e-02, 8.361816406e-03), f, HALF)
    r = mad(r, mul(f, f), f)
    j_minus_2 = plus(j, -2.0)
    scale = floats((bits(shifted) << 23) + bits(HALF))
    outside = to_integer(magnitude(j_minus_2), 127, signed=True) >= 127
    beyond = np.where(less(j_minus_2, 0.0), -HALF, mul(j_minus_2, INFINITY))
    scaled = times(np.where(outside, beyond, mad(scale, r, sub(scale, HALF))), 2.0)
    return np.where(equal(j, 0.0), r, scaled)


# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_expm1.h, _sfpu_expm1_
def _expm1_accurate(x: Float) -> Float:
    shifted = mad(np.float32(1.442695), x, ROUNDING_BIAS)
    j = sub(shifted, ROUNDING_BIAS)
    f = times_plus(j, -1.42860677e-6, mad(j, np.float32(-0.693145752), x))
    r = polynomial(f, np.float32(1.666667163e-1), 4.166680202e-2, 8.333439939e-3, 1.393107930e-3, 1.974105835e-04)
    r = mad(r, f, floats(bits(HALF) - np.int32(1)))
    j_minus_1 = plus(j, -1.0)
    at_one = equal(j_minus_1, 0.0)
    r = mad(r, mul(f, f), np.where(at_one, plus(f, 0.5), f))
    scale = floats((bits(shifted) << 23) + bits(HALF))
    high = sub(scale, HALF)
    low = sub(sub(scale, high), HALF)
    j_minus_2 = plus(j_minus_1, -1.0)
    outside = to_integer(magnitude(j_minus_2), 127, signed=True) >= 127
    beyond = np.where(less(j_minus_2, 0.0), -HALF, mul(j_minus_2, INFINITY))
    far = np.where(outside, beyond, add(mad(r, scale, low), high))
    return np.where(equal(j, 0.0), r, times(np.where(at_one, r, far), 2.0))


# -- activations built on the exponential -----------------------------------------------------------------------------


# tt-metal v0.81.1: tt_metal/tt-llk/tt_llk_wormhole_b0/common/inc/sfpu/ckernel_sfpu_expm1_cw.h, expm1_cw_clamped
def expm1_clamped(x: Float, fp32: bool) -> Float:
    """exp(x) - 1 with x clamped to at least -87; used for negative x only."""
    x = larger_of(x, -87.0)
    shifted = times_plus(x, 1.4426950408889634, 12582912.0)
    k = sub(shifted, ROUNDING_BIAS)
    r = times_plus(k, -3.19461832987e-05, times_plus(k, -0.69311523437500, x))
    h = mul(r, polynomial(r, *EXPM1_CLAMPED[fp32]))
    scale = set_exponent(np.full_like(x, 1.0), bits(shifted) - np.int32(0x4B3FFF81))
    return mad(scale, h, plus(scale, -1.0))


# tt-metal v0.81.1: tt_metal/tt-llk/tt_llk_wormhole_b0/common/inc/sfpu/ckernel_sfpu_expm1_cw.h, expm1_cw_clamped
EXPM1_CLAMPED = {
    True: (1.0, 0.5, 1.6666504741e-01, 4.1666239500e-02, 8.3691505715e-03, 1.3948583510e-03),
    False: (1.0, 4.9999371171e-01, 1.6666433215e-01, 4.1875664145e-02, 8.3751315251e-03),
}


# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_elu.h, calculate_elu
@kernel("elu")
def elu(x: Float, alpha: float, *, approx: bool, fp32: bool, halves: bool = False) -> Float:
    result = np.where(at_least(x, 0.0), x, times(expm1_clamped(x, fp32 and not halves), alpha))
    return result if fp32 else round_to_bf16(result)


# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_celu.h, calculate_celu
@kernel("celu")
def celu(x: Float, alpha: float, *, approx: bool, fp32: bool, halves: bool = False) -> Float:
    inverse = float(np.float32(1.0) / np.float32(alpha))
    result = np.where(at_least(x, 0.0), x, times(expm1_clamped(times(x, inverse), fp32 and not halves), alpha))
    return result if fp32 else round_to_bf16(result)


# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_selu.h, calculate_selu
@kernel("selu")
def selu(x: Float, scale: float, alpha: float, *, approx: bool, fp32: bool, halves: bool = False) -> Float:
    product = float(np.float32(scale) * np.float32(alpha))
    result = np.where(at_least(x, 0.0), times(x, scale), times(expm1_clamped(x, fp32 and not halves), product))
    return result if fp32 else round_to_bf16(result)


# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_softplus.h, SOFTPLUS_POLY_C0
# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_softplus.h,
#     SOFTPLUS_BF16_POLY_C0
SOFTPLUS_POLYNOMIAL = {
    True: (
        6.9310557842e-01,
        -4.9926245213e-01,
        1.2186349183e-01,
        5.6753782555e-03,
        -1.0528374463e-02,
        2.7290175203e-03,
        -3.4358495031e-04,
        2.1285692128e-05,
        -4.8245715334e-07,
    ),
    False: (
        6.9423984729e-01,
        -5.0932420424e-01,
        1.4279095486e-01,
        -1.3000584069e-02,
        -1.8627923291e-03,
        5.0152968088e-04,
        -3.1273466851e-05,
    ),
}


# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_softplus.h,
#     calculate_softplus_body
@kernel("softplus")
def softplus(x: Float, beta: float, threshold: float, *, approx: bool, fp32: bool, halves: bool = False) -> Float:
    inverse = float(np.float32(1.0) / np.float32(beta))
    t = times(x, beta)
    size = set_sign(t, 0)
    wide = fp32 and not halves
    rest = polynomial(size, *SOFTPLUS_POLYNOMIAL[wide])
    if wide:
        e = exp_below_zero(set_sign(size, 1))
        tail = mul(e, times_plus(e, times_plus(e, 0.333333343, -0.5), 1.0))
    else:
        tail = ZERO
    rest = np.where(greater(size, 5.0), tail, rest)
    result = times(add(larger_of(t, 0.0), rest), inverse)
    if not fp32:
        result = round_to_bf16(result)
    return np.where(at_most(t, threshold), result, x)


# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_softplus.h,
#     softplus_exp_negative
# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_xielu.h, _sfpu_neg_exp_f32_
def exp_below_zero(x: Float, least: float | None = None) -> Float:
    """exp of a negative number by Cody-Waite range reduction; underflows to zero."""
    z = times(x, 1.4426950408889634)
    shifted = plus(z if least is None else larger_of(z, least), ROUNDING_BIAS)
    k = sub(shifted, ROUNDING_BIAS)
    r = times_plus(k, -3.19461832987e-05, times_plus(k, -0.69311523437500, x))
    p = polynomial(r, *(1.0 / math.factorial(n) for n in range(8)))
    e = exponent(p, biased=True) + (bits(shifted) - bits(ROUNDING_BIAS))
    return np.where(e > 0, set_exponent(p, e), ZERO)


# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_mish.h, calculate_mish
@kernel("mish")
def mish(x: Float, *, approx: bool, fp32: bool) -> Float:
    if approx or not fp32:
        u = exp_21_bits(x)
        u = u if fp32 else round_to_bf16(u)
    else:
        u = exp_accurate(x)
    one_plus_u = plus(u, 1.0)
    inverse = reciprocal(times_plus(one_plus_u, one_plus_u, 1.0), steps=2 if fp32 and not approx else 1)
    result = np.where(less(x, 8.0), mul(x, mul(mul(u, plus(u, 2.0)), inverse)), x)
    return result if fp32 else round_to_bf16(result)


# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_xielu.h, calculate_xielu
XIELU_SERIES = (
    0.500000059604644775390625,
    0.16666667163372039794921875,
    4.16650883853435516357421875e-2,
    8.333188481628894805908203125e-3,
    1.400390756316483020782470703125e-3,
    1.99588379473425447940826416015625e-4,
)


# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_xielu.h,
#     calculate_xielu, xielu_init
@kernel("xielu")
def xielu(x: Float, alpha_p: float, alpha_n: float, *, approx: bool, fp32: bool) -> Float:
    half = times(x, 0.5)
    positive = mad(times(x, alpha_p), x, half)
    tiny = times_plus(sub(np.float32(-0.0000009999995427), x), alpha_n, half)
    small = times_plus(mul(mul(x, x), polynomial(x, *XIELU_SERIES)), alpha_n, half)
    large = times_plus(sub(plus(exp_below_zero(x, -126.5), -1.0), x), alpha_n, half)
    negative = np.where(at_least(x, np.float32(-1e-6)), tiny, np.where(greater(x, -0.5), small, large))
    result = np.where(greater(x, 0.0), positive, negative)
    return result if fp32 else round_to_bf16(result)


fused(elu, celu, selu, softplus)
