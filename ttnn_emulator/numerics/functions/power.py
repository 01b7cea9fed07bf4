"""Kernels of powers and remainders with a scalar, and parts shared with the binary kernels."""

from __future__ import annotations

import numpy as np

from ttnn_emulator.numerics.functions.exponential import exp_accurate
from ttnn_emulator.numerics.functions.kernel_vocabulary import (
    INFINITY,
    QUIET_NAN,
    at_least,
    equal,
    greater,
    kernel,
    larger_of,
    less,
    plus,
    polynomial,
    times,
    to_int16,
)
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
    is_negative,
    is_zero,
    mad,
    magnitude,
    mantissa,
    mul,
    round_to_bf16,
    set_exponent,
    set_sign,
    shift,
    sign_magnitude_to_float,
    sub,
)

INFINITY_BITS = np.int32(0x7F800000)
# tt-metal v0.77.0: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_binary_pow.h,
#     sfpu_binary_pow_init
INVERSE_LN2 = np.float32(1.442695)


def hexadecimal(*texts: str) -> tuple[float, ...]:
    """Constants in hexadecimal, as the kernels write them."""
    return tuple(map(float.fromhex, texts))


def sub_product(a: Float, x: Float, y: Float) -> Float:
    """a - x × y. The unit cannot negate a product that it adds, so this rounds twice."""
    return sub(a, mul(x, y))


# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_conversions.h,
#     _float_to_int32_positive_
def truncated_int32(value: Float) -> Int:
    """A positive float as an integer, saturated."""
    power = exponent(value)
    whole = shift(mantissa(value), power - 23)
    return np.where(power < 0, np.int32(0), np.where(power > 30, np.int32(0x7FFFFFFF), whole))


# -- |base|^to, to the precision of bfloat16 ---------------------------------------------------------------------------

# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_binary_pow.h,
#     _sfpu_binary_power_21f_
LOG_CUBIC = hexadecimal("-0x1.952992p+0", "0x2.4f5388p+0", "-0xd.e712ap-4", "0x2.44734p-4")


# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_binary_pow.h,
#     _sfpu_binary_power_21f_
# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_unary_power.h,
#     _sfpu_unary_power_21f_
def power_21_bits(size: Float, to: Float) -> Float:
    """2^(to × log2 size), with a cubic logarithm and an exponential of 21 bits."""
    x = set_exponent(size, 127)
    log2 = mad(polynomial(x, *LOG_CUBIC), INVERSE_LN2, exponent(size).astype(np.float32))
    z = mul(to, log2)
    z = add_exponent(np.where(less(z, -127.0), np.float32(-127.0), z), 23)
    whole = floats(truncated_int32(add(z, np.float32(0x3F800000))))
    fraction = mantissa(whole, hidden=False)
    d2 = mul(np.float32(0.40196114e-7), sign_magnitude_to_float(np.int32(0xF94EE7) + fraction))
    d3 = sign_magnitude_to_float(np.int32(0x560E) + fraction)
    return set_exponent(floats(truncated_int32(mul(d2, d3))), exponent(whole) + np.int32(127))


def signed_by(y: Float, base: Float, to: Float) -> Float:
    """Sign of a power of a negative base: negative for odd exponents, NaN for non-integers."""
    integer = to_int16(to)
    negative = np.where(equal(sign_magnitude_to_float(integer), to), set_sign(y, integer), QUIET_NAN)
    return np.where(is_negative(base), negative, y)


def power_16bit(base: Float, to: Float) -> Float:
    """Both operands in registers: powers of zero are zero, NaN for negative ones, 1 for +0."""
    y = signed_by(power_21_bits(set_sign(base, 0), to), base, to)
    at_zero = np.where(is_zero(to), y, np.where(is_negative(to), QUIET_NAN, ZERO))
    return round_to_bf16(np.where(is_zero(set_sign(base, 0)), at_zero, y))


# -- |base|^to, to the precision of float32 ----------------------------------------------------------------------------

# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_binary_pow.h,
#     _sfpu_binary_power_f32_
SQRT2 = 1.4142135381698608
ATANH_SERIES = (1.0, 0.3333333333333333, 0.2, 0.14285714285714285, 0.1111111111111111, 0.09090909090909091)
ROUNDING = np.float32(12582912.0)  # 2^23 + 2^22: adding it leaves the nearest integer in the low mantissa bits


# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_binary_pow.h,
#     _sfpu_binary_power_f32_
# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_unary_power.h,
#     _sfpu_unary_power_61f_updated_
def log2_product(base: Float, to: Float, guess: tuple[float, float]) -> tuple[Float, Float]:
    """to × log2 |base| as an unevaluated sum; `guess` is the linear initial guess of 1 ÷ (m + 1)."""
    size = magnitude(base)
    m = set_exponent(size, 127)
    large = at_least(m, SQRT2)
    m = np.where(large, times(m, 0.5), m)
    whole = (exponent(size) + large.astype(np.int32)).astype(np.float32)
    one_more = plus(m, 1.0)
    inverse = sub_product(np.float32(guess[0]), np.float32(guess[1]), one_more)
    for _ in range(3):
        inverse = mul(inverse, sub_product(np.float32(2.0), one_more, inverse))
    z = mul(plus(m, -1.0), inverse)
    ln_m = times(mul(z, polynomial(mul(z, z), *ATANH_SERIES)), 2.0)
    split = times(to, 4097.0)
    high = sub(split, sub(split, to))
    low = sub(to, high)
    return mul(high, whole), mad(low, whole, mul(to, mul(ln_m, INVERSE_LN2)))


def nearest_integer(value: Float) -> tuple[Float, Int]:
    shifted = add(value, ROUNDING)
    return sub(shifted, ROUNDING), bits(shifted) - bits(ROUNDING)


# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_binary_pow.h,
#     _sfpu_binary_power_f32_
def power_32bit(base: Float, to: Float) -> Float:
    """Both operands in registers."""
    high, low = log2_product(base, to, (1.0, 0.2426406871192851))
    total = add(high, low)
    error = sub(low, sub(total, high))
    under = less(total, -127.0)
    total, error = np.where(under, np.float32(-127.0), total), np.where(under, ZERO, error)
    k, k_int = nearest_integer(total)
    y = exp_accurate(times(add(sub(total, k), error), 0.6931471805599453))
    out_exp = exponent(y, biased=True) + k_int
    y = np.where(out_exp >= 255, INFINITY, set_exponent(y, out_exp))
    to_size = magnitude(to)
    y = signed_by(y, base, to_size)
    at_zero = set_sign(np.where(is_negative(to), INFINITY, ZERO), y)
    at_zero = np.where(is_zero(to_size), y, at_zero)
    at_zero = np.where((bits(to) & np.int32(0x7FFFFFFF)) > INFINITY_BITS, QUIET_NAN, at_zero)
    return np.where(is_zero(magnitude(base)), at_zero, y)


def power_of(a: Float, b: Float, fp32: bool) -> Float:
    return power_32bit(a, b) if fp32 else power_16bit(a, b)


# -- powers of one operand ---------------------------------------------------------------------------------------------

# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_unary_power.h,
#     _sfpu_pow2_f32_accurate_hilo_
EXP_SERIES = (1.0, 1.0, 0.5, 1 / 6, 1 / 24, 1 / 120, 1 / 720, 1 / 5040)
LEAST_POWER = hexadecimal("-0x7e.ffff8p0")[0]


# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_unary_power.h,
#     _sfpu_pow2_f32_accurate_hilo_
def exp2_of_sum(high: Float, low: Float) -> Float:
    total = add(high, low)
    error = sub(low, sub(total, high))
    total = larger_of(total, LEAST_POWER)
    k, k_int = nearest_integer(total)
    f = add(sub(total, k), error)
    r = mad(f, np.float32(-2.12194440e-4), times(f, 0.693359375))
    p = polynomial(r, *map(float, np.array(EXP_SERIES, np.float32)))
    result = set_exponent(p, exponent(p, biased=True) + k_int)
    return np.where(at_least(total, 128.0), INFINITY, result)


# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_unary_power.h,
#     _sfpu_unary_power_61f_updated_, _sfpu_unary_power_21f_
@kernel("power")
def power(x: Float, to: float, *, approx: bool, fp32: bool) -> Float:
    """x to a scalar power; zero to a negative power is NaN, to a positive one 0."""
    number = np.full_like(x, np.float32(to))
    if fp32:
        y = exp2_of_sum(*log2_product(x, number, (1.003, 0.244)))
    else:
        y = power_21_bits(magnitude(x), number)
    y = signed_by(y, x, number)
    zero = is_zero(magnitude(x))
    y = np.where(zero & (to > 0), ZERO, y) if to >= 0 else np.where(zero, QUIET_NAN, y)
    return y if fp32 else round_to_bf16(y)


# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_unary_power.h,
#     calculate_unary_power_iterative
@kernel("power_iterative")
def power_iterative(x: Float, to: float, *, approx: bool, fp32: bool) -> Float:
    """x to a small integer power by repeated multiplication."""
    if to == 0:
        return np.ones_like(x)
    result, rest = x, int(to) - 1
    while rest:
        if rest & 1:
            result = mul(result, x)
        x = mul(x, x)
        rest >>= 1
    return result


# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_rpow.h, calculate_rpow
@kernel("rpow")
def rpow(x: Float, base: float, *, approx: bool, fp32: bool) -> Float:
    """A scalar to the power x."""
    return power_of(np.full_like(x, np.float32(base)), x, fp32)


# -- remainders of one operand -----------------------------------------------------------------------------------------


def _whole_quotient(size: Float, inverse: np.float32) -> tuple[Float, Float, Int]:
    """The truncated quotient, the quotient, and its exponent."""
    quotient = mul(size, inverse)
    power = exponent(quotient)
    amount = power - 23
    cut = floats(shift(shift(bits(quotient), amount), -amount))
    return np.where(power < 0, ZERO, np.where(power < 23, cut, quotient)), quotient, power


def _reduced(v: Float, divisor: np.float32) -> Float:
    """Subtract the divisor up to ten more times; a remainder equal to it becomes zero."""
    if divisor == 0:
        v = np.full_like(v, QUIET_NAN)
    for _ in range(10):
        v = np.where(at_least(v, divisor), sub(v, divisor), v)
    return np.where(is_zero(sub(magnitude(v), divisor)), ZERO, v)


# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_remainder.h,
#     calculate_remainder
@kernel("remainder")
def remainder(x: Float, by: float, *, approx: bool, fp32: bool) -> Float:
    """x - floor(x ÷ by) × by, with the divisor's reciprocal from the host."""
    value = np.float32(by)
    size, inverse = np.abs(value), np.abs(np.float32(1.0) / value)
    v = magnitude(x)
    whole, quotient, _ = _whole_quotient(v, inverse)
    whole = np.where(greater(whole, quotient), plus(whole, -1.0), whole)
    v = sub_product(v, whole, size)
    v = np.where(less(x, 0.0) & ~is_zero(v), sub(size, v), v)
    if bits(value) < 0:
        v = np.where(~is_zero(v), add(v, value), v)
    return _reduced(set_sign(v, value), size)


# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_fmod.h, calculate_fmod
@kernel("fmod")
def fmod(x: Float, by: float, *, approx: bool, fp32: bool) -> Float:
    """x - trunc(x ÷ by) × by, with the divisor's reciprocal from the host."""
    value = np.float32(by)
    size, inverse = np.abs(value), np.abs(np.float32(1.0) / value)
    v = magnitude(x)
    whole, _, power = _whole_quotient(v, inverse)
    over = (power < 23) & greater(mul(whole, size), v)
    whole = np.where(over, plus(whole, -1.0), whole)
    v = sub_product(v, whole, size)
    return _reduced(set_sign(v, x), size)


def truncated(value: Float) -> Float:
    """Towards zero, by masking bits of the mantissa."""
    power = exponent(value)
    dropped = np.int32(23) - power
    mask = np.where(power < 0, np.int32(-0x80000000), np.int32(-1))
    mask = np.where((power >= 0) & (dropped >= 0), shift(np.int32(-1), np.clip(dropped, 0, 31)), mask)
    return floats(bits(value) & mask)


def floored(value: Float) -> Float:
    whole = truncated(value)
    below = is_negative(value) & ((bits(whole) - bits(value)) < 0)
    return np.where(below, add(whole, -ONE), whole)
