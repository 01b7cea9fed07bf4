"""Kernels of sine, cosine, tangent, their inverses, and the hyperbolic functions."""

from __future__ import annotations

import numpy as np

from ttnn_emulator.numerics.functions.exponential import HALF, ROUNDING_BIAS
from ttnn_emulator.numerics.functions.kernel_vocabulary import (
    INFINITY,
    QUIET_NAN,
    at_least,
    at_most,
    equal,
    greater,
    kernel,
    less,
    plus,
    polynomial,
    times,
    times_plus,
    to_int16,
    to_uint8,
)
from ttnn_emulator.numerics.functions.logarithm import logarithm_1p
from ttnn_emulator.numerics.functions.roots import reciprocal, reciprocal_positive, square_root_newton
from ttnn_emulator.numerics.units.vector_unit import (
    ONE,
    ZERO,
    Float,
    Int,
    add,
    add_exponent,
    bits,
    exponent,
    floats,
    mad,
    magnitude,
    mul,
    negate,
    round_to_bf16,
    set_mantissa,
    set_sign,
    sign_magnitude_to_float,
    store_bf16,
    store_fp32,
    sub,
)

HALF_PI = 1.5707963705062866


def _hex(*values: str) -> tuple[float, ...]:
    return tuple(map(float.fromhex, values))


def _rounded(result: Float, fp32: bool) -> Float:
    return result if fp32 else round_to_bf16(result)


# -- sine, cosine, tangent --------------------------------------------------------------------------------------------

# π/2 in four parts, the last two of which are in registers.
# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_trigonometry.h,
#     calculate_tangent, tangent_init
HALF_PI_PARTS = _hex("-0x1.92p+0", "-0x1.fbp-12", "-0x1.51p-22", "-0x1.0b4612p-34")
# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_trigonometry.h, calculate_sine
SINE = {
    True: tuple(map(np.float32, _hex("-0x1.55554cp-3", "0x1.110edap-7", "-0x1.9f70fp-13", "0x1.5dc908p-19"))),
    False: tuple(map(np.float32, _hex("-0x1.5554a4p-3", "0x1.10c2a2p-7", "-0x1.8b10a4p-13"))),
}


def _less_multiples(x: Float, j: Float, parts: tuple[float, ...]) -> Float:
    first, second, third, fourth = parts
    a = times_plus(j, second, add(x, times(j, first)))
    return mad(j, np.float32(fourth), mad(j, np.float32(third), a))


# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_trigonometry.h, calculate_sine
def sine_of(x: Float, fp32: bool) -> Float:
    shifted = mad(x, np.float32(0.31830987334251404), ROUNDING_BIAS)
    j = sub(shifted, ROUNDING_BIAS)
    return _sine_series(_less_multiples(x, j, tuple(2.0 * part for part in HALF_PI_PARTS)), shifted, fp32)


def _sine_series(a: Float, multiple: Float, fp32: bool) -> Float:
    """sin(a), negated if the subtracted multiple of π is odd."""
    squared = mul(a, a)
    a = floats(bits(a) ^ (bits(multiple) << 31))
    return mad(polynomial(squared, *SINE[fp32]), mul(a, squared), a)


@kernel("sin")
def sin(x: Float, *, approx: bool, fp32: bool) -> Float:
    return _rounded(sine_of(x, fp32), fp32)


# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_trigonometry.h,
#     calculate_cosine
@kernel("cos")
def cos(x: Float, *, approx: bool, fp32: bool) -> Float:
    shifted = plus(mad(x, np.float32(0.31830987334251404), HALF), 12582912.0)
    j = mad(plus(shifted, -12582912.0), np.float32(2.0), -ONE)
    return _rounded(_sine_series(_less_multiples(x, j, HALF_PI_PARTS), shifted, fp32), fp32)


# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_snake_beta.h,
#     calculate_snake_beta
def snake(x: Float, alpha: Float, beta: Float, *, fp32: bool) -> Float:
    """x + sin²(α x) ÷ β."""
    turns = times(mul(alpha, x), 0.318309886183791)
    a = times(sub(turns, sign_magnitude_to_float(to_int16(turns))), 3.141592653589793)
    squared = mul(a, a)
    sine = mad(mul(a, squared), polynomial(squared, *map(float, SINE[fp32])), a)
    return _rounded(mad(mul(sine, sine), reciprocal(beta, steps=2 if fp32 else 1), x), fp32)


# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_trigonometry.h, sfpu_tan
TANGENT = {
    True: _hex(
        "0x1.555556p-2",
        "0x1.111072p-3",
        "0x1.ba5716p-5",
        "0x1.620abcp-6",
        "0x1.4787dp-7",
        "0x1.2b404p-10",
        "0x1.fa9f82p-9",
    ),
    False: _hex("0x1.55953p-2", "0x1.02b98p-3", "0x1.4f1f4ep-4"),
}


# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_trigonometry.h,
#     calculate_tangent, sfpu_tan
@kernel("tan")
def tan(x: Float, *, approx: bool, fp32: bool) -> Float:
    shifted = mad(x, np.float32(0.6366197466850281), ROUNDING_BIAS)
    a = _less_multiples(x, sub(shifted, ROUNDING_BIAS), HALF_PI_PARTS)
    squared = mul(a, a)
    t = mul(polynomial(squared, *TANGENT[fp32]), squared)
    r = mad(t, a, a)
    odd = (bits(shifted) & 1) != 0
    minus_x = set_mantissa(np.full_like(x, -1.0), bits(r))
    scale = times(set_mantissa(floats(~bits(r)), 0), 0.5)
    y = times_plus(minus_x, times_plus(minus_x, 0.3232325017452240, 1.4545459747314453), 2.1212124824523926)
    y = mul(mad(y, mad(minus_x, y, ONE), y), scale)
    if fp32:
        rest = mad(t, a, sub(a, r))
        correction = mad(rest, y, mad(r, y, ONE))
        y = mad(correction, y, y)
    return _rounded(np.where(odd, y, r), fp32)


# -- inverse functions ------------------------------------------------------------------------------------------------

# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_trigonometry.h,
#     sfpu_atan_fp32, atan_init
ARCTANGENT = (
    *map(np.float32, _hex("-0x1.555552p-2", "0x1.999384p-3", "-0x1.24p-3", "0x1.bd4p-4")),
    *map(np.float32, _hex("-0x1.48cp-4", "0x1.93p-5", "-0x1.4bcp-6", "0x1.01cp-8")),
)


@kernel("atan")
def atan(x: Float, *, approx: bool, fp32: bool) -> Float:
    return _atan_accurate(x) if fp32 else round_to_bf16(_atan_bf16(x))


# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_trigonometry.h, sfpu_atan_fp32
def _atan_accurate(x: Float) -> Float:
    size = set_sign(x, 0)
    e = exponent(size)
    beyond = mul(floats(bits(size) - np.int32(1)), ZERO)
    inverse = np.where(e < 26, reciprocal_positive(size, fp32=True), beyond)
    a = np.where(e >= 0, inverse, size)
    squared = mul(a, a)
    r = mad(polynomial(squared, *ARCTANGENT), mul(squared, a), a)
    return set_sign(np.where(e >= 0, sub(np.float32(HALF_PI), r), r), x)


# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_trigonometry.h, sfpu_atan_bf16
def _atan_bf16(x: Float) -> Float:
    size = magnitude(x)
    outer = at_least(plus(size, -1.0), 0.0)
    a = np.where(outer, reciprocal(size, steps=2), size)
    squared = mul(a, a)
    r = polynomial(squared, 0.999787867069244384, -0.325808584690093994, 0.15557900071144104, -4.4326744973659515e-2)
    r = mul(r, a)
    r = np.where(outer, sub(np.float32(HALF_PI), r), r)
    is_nan = (bits(x) & 0x7FFFFFFF) > 0x7F800000
    return np.where(is_nan, QUIET_NAN, set_sign(r, x))


# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_trigonometry.h,
#     sfpu_asin_poly_bf16, sfpu_asin_range_reduced_bf16
def _arcsine_bf16(x: Float) -> Float:
    size = magnitude(x)
    endpoint = sub(size, np.float32(0.625))
    root = square_root_newton(times(sub(ONE, size), 0.5))
    z = np.where(less(endpoint, 0.0), size, root)
    squared = mul(z, z)
    ratio = polynomial(squared, 0.999978601932525634, 0.1677122563123703, 0.06381262838840485, 0.08314884454011917)
    angle = mul(z, ratio)
    angle = np.where(at_least(endpoint, 0.0), sub(np.float32(HALF_PI), times(angle, 2.0)), angle)
    return set_sign(angle, x)


# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_trigonometry.h,
#     _sfpu_sqrt_endpoint_
def _endpoint_root(x: Float) -> tuple[Float, Float, Float]:
    """√((1 - |x|) ÷ 2) or |x|, whichever is small; |x| - 9/16, whose sign selects; and (1 - |x|) ÷ 2."""
    size = magnitude(x)
    half = times(sub(ONE, size), 0.5)
    t = sub(size, np.float32(0.5625))
    y = floats(np.int32(0x5F1110A0) - (bits(half).view(np.uint32) >> np.uint32(1)).view(np.int32))
    xy = mul(half, y)
    c = mul(negate(y), xy)
    y = mul(y, mad(c, add(np.float32(2.2533049), c), np.float32(2.2825186)))
    xy = mul(half, y)
    root = mad(mad(negate(y), xy, ONE), times(xy, 0.5), xy)
    return np.where(less(t, 0.0), size, root), t, half


# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_trigonometry.h, sfpu_asin_fp32
ARCSINE = tuple(map(np.float32, _hex("0x1.55578cp-3", "0x1.329a74p-4", "0x1.7dcp-5", "0x1.364p-6", "0x1.9e0000p-5")))
# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_trigonometry.h, sfpu_acos_fp32
ARCCOSINE = (
    *map(np.float32, _hex("0x1.555552p-3", "0x1.33411ep-4", "0x1.6acp-5")),
    *map(np.float32, _hex("0x1.158p-5", "0x1.ca0000p-8", "0x1.830p-5")),
)


# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_trigonometry.h, calculate_asin
@kernel("asin")
def asin(x: Float, *, approx: bool, fp32: bool) -> Float:
    if not fp32:
        return round_to_bf16(np.where(at_most(magnitude(x), 1.0), _arcsine_bf16(x), QUIET_NAN))
    z, t, half = _endpoint_root(x)
    squared = mul(z, z)
    r = mad(mul(polynomial(squared, *ARCSINE), squared), z, z)
    r = np.where(at_least(t, 0.0), mad(np.float32(-2.0), r, np.float32(HALF_PI)), r)
    return np.where(less(half, 0.0), QUIET_NAN, set_sign(r, x))


# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_trigonometry.h, calculate_acos
@kernel("acos")
def acos(x: Float, *, approx: bool, fp32: bool) -> Float:
    if not fp32:
        angle = sub(np.float32(HALF_PI), _arcsine_bf16(x))
        return round_to_bf16(np.where(at_most(magnitude(x), 1.0), angle, QUIET_NAN))
    z, t, half = _endpoint_root(x)
    squared = mul(z, z)
    z = set_sign(z, floats(bits(x) ^ bits(t)))
    r = mad(mul(polynomial(squared, *ARCCOSINE), squared), z, z)
    r = np.where((bits(z) | bits(t)) < 0, plus(r, HALF_PI), r)
    r = np.where(at_least(t, 0.0), add(r, r), r)
    return np.where(less(half, 0.0), QUIET_NAN, r)


# -- hyperbolic functions ---------------------------------------------------------------------------------------------


def _reduced(x: Float, fp32: bool) -> tuple[Float, Int, Float]:
    """|x|; its multiple of ln 2; and the remainder."""
    size = set_sign(x, 0)
    count = to_uint8(mul(x, np.float32(1.442695)))
    j = sign_magnitude_to_float(count)
    if fp32:
        return size, count, times_plus(j, -1.42860677e-6, mad(j, np.float32(-0.693145752), size))
    return size, count, mad(j, np.float32(-0.6931471805599453), size)


# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_trigonometry.h,
#     _sfpu_quarter_exp_abs_
COSH_SERIES = {
    True: (1.0, 1.0, np.float32(4.99999851e-1), 1.66664720e-1, 4.16695364e-2, 8.37312452e-3, 1.37805939e-3),
    False: (1.0, 0.999963462, np.float32(0.500122011), 0.168174848, 0.038877178),
}


# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_trigonometry.h, calculate_cosh
@kernel("cosh")
def cosh(x: Float, *, approx: bool, fp32: bool) -> Float:
    size, count, f = _reduced(set_sign(x, 0), fp32)
    scale = count + np.int32(125)
    quarter = mul(polynomial(f, *COSH_SERIES[fp32]), floats(scale << 23))
    quarter = np.where(scale < 255, quarter, mul(size, INFINITY))
    inverse = times(reciprocal_positive(quarter, fp32=fp32), 0.125)
    double = add(quarter, quarter)
    return _rounded(np.where(exponent(quarter) < 24, add(double, inverse), double), fp32)


# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_trigonometry.h,
#     _sfpu_quarter_expm1_abs_
SINH_SERIES = {
    True: (np.float32(1.666667163e-1), 4.166680202e-2, 8.333439939e-3, 1.393107930e-3, 1.974105835e-04),
    False: (np.float32(1.666259766e-01), 4.177856445e-02, 8.361816406e-03),
}


# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_trigonometry.h, _sfpu_sinh_
@kernel("sinh")
def sinh(x: Float, *, approx: bool, fp32: bool) -> Float:
    size, count, f = _reduced(x, fp32)
    r = mad(polynomial(f, *SINH_SERIES[fp32]), f, np.float32(4.999999702e-1) if fp32 else HALF)
    r = mad(r, mul(f, f), f)
    scale = floats((count << 23) + bits(np.float32(0.25)))
    quarter = np.where(count < 130, mad(r, scale, sub(scale, np.float32(0.25))), mul(size, INFINITY))
    inverse = reciprocal_positive(times_plus(quarter, 4.0, 1.0), fp32=fp32)
    e = exponent(quarter)
    y = add(quarter, quarter)
    y = np.where(e < 23, mad(y, inverse, y), y)
    return _rounded(set_sign(np.where(e >= -27, y, x), x), fp32)


# -- inverse hyperbolic functions -------------------------------------------------------------------------------------

LN2 = 0.6931471805599453
# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_trigonometry.h,
#     calculate_asinh, calculate_acosh
LARGE = 268435456.0
# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_trigonometry.h, calculate_asinh
ARSINH = (
    1.0,
    -1.666652262e-01,
    7.495806366e-02,
    -4.417778924e-02,
    2.785361186e-02,
    -1.484858524e-02,
    4.375355784e-03,
)


def _logarithm_1p_through_dest(x: Float, fp32: bool) -> Float:
    """log(1 + x) of an argument that passed through the destination register."""
    return logarithm_1p(store_fp32(x) if fp32 else store_bf16(x), fp32)


# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_trigonometry.h, _sfpu_sqrt_ge0_
def _square_root_of_sum(x: Float, fp32: bool) -> Float:
    """√x by Newton's method, for x ≥ 0."""
    half = add_exponent(x, -1)
    y = floats(np.int32(0x5F1110A0) - (bits(x).view(np.uint32) >> np.uint32(1)).view(np.int32))
    for _ in range(3 if fp32 else 2):
        y = mul(y, sub(np.float32(1.5), mul(mul(half, y), y)))
    a = mul(x, y)
    a = mad(times(sub(x, mul(a, a)), 0.5), y, a)
    return np.where(equal(x, 0.0), ZERO, a)


# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_trigonometry.h, calculate_acosh
@kernel("acosh")
def acosh(x: Float, *, approx: bool, fp32: bool) -> Float:
    above = plus(x, -1.0)
    root = _square_root_of_sum(mul(plus(x, 1.0), above), fp32)
    result = _logarithm_1p_through_dest(np.where(less(x, LARGE), add(above, root), above), fp32)
    result = np.where(at_least(x, LARGE), plus(result, LN2), result)
    result = np.where(equal(x, 1.0), ZERO, np.where(less(x, 1.0), QUIET_NAN, result))
    return _rounded(result, fp32)


# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_trigonometry.h, calculate_asinh
@kernel("asinh")
def asinh(x: Float, *, approx: bool, fp32: bool) -> Float:
    size = magnitude(x)
    squared = mul(x, x)
    root = _square_root_of_sum(times_plus(x, x, 1.0), fp32)
    middle = mad(squared, reciprocal_positive(plus(root, 1.0), fp32=fp32), size)
    is_large, is_middle = at_least(size, LARGE), at_least(size, 0.75)
    result = _logarithm_1p_through_dest(np.where(is_large, plus(size, -1.0), np.where(is_middle, middle, ZERO)), fp32)
    result = np.where(is_large, plus(result, LN2), result)
    result = np.where(less(size, 0.75), mul(size, polynomial(squared, *ARSINH)), result)
    return _rounded(set_sign(result, x), fp32)


# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_trigonometry.h, calculate_atanh
@kernel("atanh")
def atanh(x: Float, *, approx: bool, fp32: bool) -> Float:
    size = magnitude(x)
    a = np.where(at_least(size, 1.0), ZERO, size)
    argument = mul(add(a, a), reciprocal_positive(sub(ONE, a), fp32=fp32))
    result = set_sign(times(_logarithm_1p_through_dest(argument, fp32), 0.5), x)
    edge = set_sign(np.full_like(x, np.inf), x)
    result = np.where(greater(size, 1.0), QUIET_NAN, np.where(equal(size, 1.0), edge, result))
    return _rounded(result, fp32)
