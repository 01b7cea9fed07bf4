"""Kernels of two floating-point operands on the vector unit: division, powers, remainders, comparisons and others.

Each takes float32 arrays with the contents of the destination register and returns what the kernel stores there, in
the order of the kernel's instructions; `fp32`: the register is 32 bits wide.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ttnn_emulator.numerics.functions.exponential import (
    EXP_21_POLYNOMIAL,
    INVERSE_LN2,
    exp_accurate,
    power_of_two,
)
from ttnn_emulator.numerics.functions.kernel_vocabulary import (
    INFINITY,
    QUIET_NAN,
    at_least,
    at_most,
    equal,
    greater,
    larger_of,
    less,
    plus,
    smaller_of,
    times,
    times_plus,
)
from ttnn_emulator.numerics.functions.power import floored, hexadecimal, power_of, sub_product, truncated
from ttnn_emulator.numerics.functions.roots import reciprocal
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
    maximum,
    minimum,
    mul,
    negate,
    round_to_bf16,
    set_exponent,
    set_mantissa,
    set_sign,
    sign_magnitude_to_float,
    store_bf16,
    store_fp32,
    sub,
    total_order,
)

Kernel = Callable[..., Float]
KERNELS: dict[str, Kernel] = {}
INFINITY_BITS = np.int32(0x7F800000)


def kernel(function: Kernel) -> Kernel:
    KERNELS[function.__name__] = function
    return function


# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_conversions.h,
#     float32_to_bf16_rne
def nearest_even(value: Float) -> Float:
    """Round to bfloat16, to nearest even, by integer addition."""
    raw = bits(value).view(np.uint32)
    rounded = raw + np.uint32(0x7FFF) + ((raw >> np.uint32(16)) & np.uint32(1))
    return (rounded & np.uint32(0xFFFF0000)).view(np.float32)


def stored(value: Float, fp32: bool) -> Float:
    """A value after the store to the destination register."""
    return store_fp32(value) if fp32 else store_bf16(value)


def size_bits(value: Float) -> Int:
    return bits(value) & np.int32(0x7FFFFFFF)


def is_nan(value: Float) -> np.ndarray:
    return size_bits(value) > INFINITY_BITS


# -- sums and products ------------------------------------------------------------------------------------------------


# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_binary.h, calculate_sfpu_binary
@kernel
def addition(a: Float, b: Float, *, fp32: bool) -> Float:
    total = add(a, b)
    return total if fp32 else nearest_even(total)


@kernel
def subtraction(a: Float, b: Float, *, fp32: bool) -> Float:
    rest = sub(a, b)
    return rest if fp32 else nearest_even(rest)


@kernel
def reversed_subtraction(a: Float, b: Float, *, fp32: bool) -> Float:
    return subtraction(b, a, fp32=fp32)


# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_binary.h,
#     calculate_sfpu_binary_mul
@kernel
def multiplication(a: Float, b: Float, *, fp32: bool) -> Float:
    product = mul(a, b)
    return product if fp32 else np.where(is_zero(a) | is_zero(b), ZERO, nearest_even(product))


# -- division ---------------------------------------------------------------------------------------------------------


# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_binary.h,
#     calculate_sfpu_binary_div
@kernel
def division(a: Float, b: Float, *, fp32: bool) -> Float:
    return _division_32bit(a, b) if fp32 else _division_16bit(a, b)


def _division_16bit(a: Float, b: Float) -> Float:
    quotient = mul(a, reciprocal(b, steps=2))
    by_zero = np.where(is_zero(a), QUIET_NAN, set_sign(np.full_like(a, np.inf), a))
    return nearest_even(np.where(is_zero(b), by_zero, quotient))


def _division_32bit(a: Float, b: Float) -> Float:
    """Division of mantissas with one correction by the residual; the exponent is restored in two halves."""
    a_man, b_man = set_exponent(a, 127), set_exponent(b, 127)
    inverse = reciprocal(b_man, steps=1, normalized=True)
    quotient = mul(a_man, inverse)
    residual = mad(quotient, negate(b_man), a_man)
    quotient = mad(residual, inverse, quotient)
    a_exp, b_exp = exponent(a, biased=True), exponent(b)
    power = a_exp - b_exp + exponent(quotient, biased=True)
    half = (power.view(np.uint32) >> np.uint32(1)).view(np.int32)
    result = mul(set_exponent(quotient, half), set_exponent(np.ones_like(a), power - half))
    ordinary = (a_exp >= 1) & (a_exp < 255) & (b_exp >= -126) & (b_exp < 128)
    scale = floats(bits(set_mantissa(b, 0)) ^ INFINITY_BITS)
    special = np.where(is_nan(b), b, mul(a, scale))
    return np.where(ordinary, result, special)


# Comparisons with ZERO, unlike those with 0.0, subtract: denormals and -0 count as zero.


# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_binary_remainder.h,
#     _sfpu_binary_remainder_
@kernel
def remainder(a: Float, b: Float, *, fp32: bool) -> Float:
    quotient = floored(mul(a, reciprocal(b, steps=2)))
    result = sub_product(a, quotient, b)
    result = np.where(~equal(result, ZERO) & ((bits(result) ^ bits(b)) < 0), add(result, b), result)
    over = sub(result, b)
    result = np.where(greater(b, ZERO) & greater(a, ZERO) & at_least(over, ZERO), over, result)
    over = sub(result, b)
    result = np.where(less(b, ZERO) & less(a, ZERO) & at_most(over, ZERO), over, result)
    result = np.where(equal(b, ZERO), QUIET_NAN, result)
    return result if fp32 else round_to_bf16(result)


# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_binary_fmod.h,
#     _sfpu_binary_fmod_
@kernel
def fmod(a: Float, b: Float, *, fp32: bool) -> Float:
    b_size = magnitude(b)
    quotient = truncated(mul(a, reciprocal(b, steps=2)))
    result = sub_product(a, quotient, b)
    too_large = at_least(magnitude(result), b_size)
    nearer = np.where(at_least(result, ZERO), sub(result, b_size), add(result, b_size))
    result = np.where(too_large, nearer, result)
    positive = at_least(a, ZERO)
    result = np.where(positive & less(result, ZERO), add(result, b_size), result)
    result = np.where(~positive & greater(result, ZERO), sub(result, b_size), result)
    result = np.where(equal(a, b), ZERO, result)
    result = np.where(equal(b, ZERO), QUIET_NAN, result)
    return result if fp32 else round_to_bf16(result)


@kernel
def integer_division(a: Float, b: Float, *, fp32: bool) -> Float:
    """Division of integers cast to float32, with one correction by the residual; a ÷ a is exactly 1."""
    inverse = reciprocal(b, steps=2)
    quotient = mul(a, inverse)
    corrected = mad(sub_product(a, quotient, b), inverse, quotient)
    return np.where((a == b) & (a != 0), ONE, np.where(b == 0, quotient, corrected))


# -- powers and logarithms --------------------------------------------------------------------------------------------


# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_binary_pow.h,
#     _sfpu_binary_power_
@kernel
def power(a: Float, b: Float, *, fp32: bool) -> Float:
    return power_of(a, b, fp32)


# tt-metal v0.81.1: tt_metal/tt-llk/tt_llk_wormhole_b0/common/inc/sfpu/ckernel_sfpu_log.h,
#     _init_log_, _calculate_log_body_
def cubic_log(value: Float) -> Float:
    """ln by a cubic polynomial of the mantissa, with an error of at most 4e-4."""
    x = set_exponent(value, 127)
    inner = mad(x, np.float32(0.10968964), np.float32(-0.72910421))
    series = times_plus(x, times_plus(x, inner, 2.11263230), -1.49277612)
    result = mad(exponent(value).astype(np.float32), np.float32(0.69314718), series)
    return np.where(is_zero(value), -INFINITY, result)


@kernel
def xlogy(a: Float, b: Float, *, fp32: bool) -> Float:
    # Argument and logarithm pass through the destination register.
    log = stored(cubic_log(stored(b, fp32)), fp32)
    return np.where(is_negative(b), QUIET_NAN, mul(log, a))


# -- sums of exponentials ---------------------------------------------------------------------------------------------

# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_logaddexp.h,
#     calculate_sfpu_logaddexp_init
LOG1P_UNIT = hexadecimal("-0x1.f48448p-2", "0x1.074d5ap-2", "-0x1.3402cep-4")
LN2, LOG2_E = 0.693147182, 1.442695041


# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_logaddexp.h,
#     _sfpu_logaddexp_max_gap_
def _larger_and_gap(a: Float, b: Float) -> tuple[Float, Float]:
    gap = magnitude(sub(a, b))
    unknown = is_nan(gap)
    return np.where(unknown, add(a, b), maximum(a, b)), np.where(unknown, ZERO, gap)


# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_logaddexp.h,
#     _sfpu_logaddexp_log1p_unit_bf16_
def _log1p_unit(y: Float) -> Float:
    """ln(1 + y) for 0 ≤ y ≤ 1, to the precision of bfloat16."""
    c0, c1, c2 = map(np.float32, LOG1P_UNIT)
    r = mad(mad(c2, y, c1), y, c0)
    return mad(r, mul(y, y), y)


# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_log1p.h, calculate_log1p_fp32
LOG1P = (
    -0.5,
    *hexadecimal("0x1.555572p-2", "-0x1.00001ap-2", "0x1.998p-3", "-0x1.55p-3", "0x1.274p-3", "-0x1.0c4p-3"),
    *hexadecimal("0x1.b84p-4", "-0x1.92cp-5"),
)


def log1p_accurate(a: Float) -> Float:
    """ln(1 + a) to the precision of float32, for a ≥ 0."""
    u = plus(a, 1.0)
    e = bits(set_mantissa(floats(bits(u) - bits(np.float32(0.75))), 0))
    m = floats(bits(a) - e)
    s = floats(bits(np.float32(-4.0)) - e)
    m = add(m, mad(np.float32(-0.25), s, -ONE))
    r = np.full_like(m, np.float32(LOG1P[-1]))
    for coefficient in LOG1P[-2:0:-1]:
        constant = np.float32(coefficient) if coefficient in LOG1P[1:3] else coefficient
        r = times_plus(r, m, constant)
    square = mul(m, m)
    r = times_plus(r, m, LOG1P[0])
    e_size = set_sign(sign_magnitude_to_float(np.abs(e)), floats(e))
    r = mad(e_size, np.float32(np.float32(LN2) * np.float32(2.0**-23)), mad(r, square, m))
    r = np.where(bits(u) >= INFINITY_BITS, u, r)
    return np.where(is_negative(u), QUIET_NAN, r)


# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_logaddexp.h,
#     calculate_sfpu_logaddexp
@kernel
def logaddexp(a: Float, b: Float, *, fp32: bool) -> Float:
    larger, gap = _larger_and_gap(a, b)
    if fp32:
        return add(larger, log1p_accurate(exp_accurate(negate(gap))))
    biased = times_plus(negate(smaller_of(gap, 88.0)), INVERSE_LN2, 127.0)
    y = round_to_bf16(power_of_two(biased, tuple(map(np.float32, EXP_21_POLYNOMIAL[:2])) + EXP_21_POLYNOMIAL[2:]))
    return round_to_bf16(add(larger, _log1p_unit(y)))


# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_logaddexp2.h,
#     calculate_sfpu_logaddexp2
@kernel
def logaddexp2(a: Float, b: Float, *, fp32: bool) -> Float:
    larger, gap = _larger_and_gap(a, b)
    if fp32:
        return mad(log1p_accurate(exp_accurate(times(gap, -LN2))), np.float32(LOG2_E), larger)
    biased = smaller_of(larger_of(plus(negate(gap), 127.0), 0.0), 255.0)
    y = round_to_bf16(power_of_two(biased, tuple(map(np.float32, EXP_21_POLYNOMIAL[:2])) + EXP_21_POLYNOMIAL[2:]))
    return round_to_bf16(mad(_log1p_unit(y), np.float32(LOG2_E), larger))


# -- angles -----------------------------------------------------------------------------------------------------------

# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_atan2.h, _sfpu_atan2_
ATAN_32BIT = (
    *hexadecimal("-0x1.555558p-2", "0x1.99938ap-3", "-0x1.24p-3", "0x1.bd4p-4"),
    *hexadecimal("-0x1.48cp-4", "0x1.93p-5", "-0x1.4bcp-6", "0x1.01cp-8"),
)
ATAN_16BIT = hexadecimal("-0x1.54p-2", "0x1.668p-3", "-0x1.de8p-5")
HALF_PI = np.float32(float.fromhex("0x1.921fb6p0"))


# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_atan2.h, _sfpu_atan2_
@kernel
def atan2(y: Float, x: Float, *, fp32: bool) -> Float:
    x_size, y_size = set_sign(x, 0), set_sign(y, 0)
    low, high = minimum(x_size, y_size), maximum(x_size, y_size)
    a = mul(low, reciprocal(high, steps=2 if fp32 else 1))
    square = mul(a, a)
    coefficients = ATAN_32BIT if fp32 else ATAN_16BIT
    q = np.full_like(a, np.float32(coefficients[-1]))
    for coefficient in coefficients[-2::-1]:
        q = mad(q, square, np.float32(coefficient))
    r = mad(mul(q, square), a, a)
    steep = bits(low) >= bits(x_size)
    r = np.where(steep, sub(HALF_PI, r), r)
    diagonal = steep & (bits(low) >= bits(high))
    r = np.where(diagonal, np.where(is_zero(high), ZERO, add_exponent(HALF_PI, -1)), r)
    r = np.where(is_negative(x), sub(add_exponent(HALF_PI, 1), r), r)
    r = set_sign(r if fp32 else round_to_bf16(r), y)
    return np.where(bits(high) > INFINITY_BITS, QUIET_NAN, r)


# -- comparisons ------------------------------------------------------------------------------------------------------


def _ordered(a: Float, b: Float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Whether a precedes b by sign and magnitude, whether both count as zero, and whether one is NaN."""
    total = bits(add(floats(size_bits(a)), floats(size_bits(b))))
    return total_order(a) < total_order(b), total == 0, total > INFINITY_BITS


# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_binary_comp.h,
#     calculate_binary_comp_fp32_equal
@kernel
def equals(a: Float, b: Float, *, fp32: bool) -> Float:
    _, zeros, unknown = _ordered(a, b)
    return (zeros | ((bits(a) == bits(b)) & ~unknown)).astype(np.float32)


@kernel
def differs(a: Float, b: Float, *, fp32: bool) -> Float:
    return ONE - equals(a, b, fp32=fp32)


# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_binary_comp.h,
#     calculate_binary_comp_fp32_strict_ordered
@kernel
def precedes(a: Float, b: Float, *, fp32: bool) -> Float:
    before, zeros, unknown = _ordered(a, b)
    return (before & ~zeros & ~unknown).astype(np.float32)


@kernel
def follows(a: Float, b: Float, *, fp32: bool) -> Float:
    return precedes(b, a, fp32=fp32)


# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_binary_comp.h,
#     calculate_binary_comp_fp32_weak_ordered
@kernel
def not_before(a: Float, b: Float, *, fp32: bool) -> Float:
    before, zeros, unknown = _ordered(a, b)
    return ((~before | zeros) & ~unknown).astype(np.float32)


@kernel
def not_after(a: Float, b: Float, *, fp32: bool) -> Float:
    return not_before(b, a, fp32=fp32)


# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_binary_max_min.h,
#     calculate_binary_max_min
@kernel
def largest(a: Float, b: Float, *, fp32: bool) -> Float:
    return maximum(a, b)


@kernel
def smallest(a: Float, b: Float, *, fp32: bool) -> Float:
    return minimum(a, b)


# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_isclose.h,
#     calculate_sfpu_isclose
@kernel
def isclose(a: Float, b: Float, rtol: float, atol: float, equal_nan: bool, *, fp32: bool) -> Float:
    difference = magnitude(sub(a, b))
    tolerance = mad(np.float32(rtol), magnitude(b), np.float32(atol))
    close = at_most(difference, tolerance)
    a_size, b_size = size_bits(a), size_bits(b)
    same = (a_size == INFINITY_BITS) & (bits(a) == bits(b))
    if equal_nan:
        same = same | ((a_size > INFINITY_BITS) & (b_size > INFINITY_BITS))
    special = (a_size >= INFINITY_BITS) | (b_size >= INFINITY_BITS)
    return np.where(special, same, close).astype(np.float32)


# tt-metal v0.81.1: tt_metal/hw/inc/api/compute/nextafter.h, nextafter_binary_tile
@kernel
def nextafter(a: Float, b: Float, *, fp32: bool) -> Float:
    """One unit in the last place of the destination; NaN propagates, zeros take the sign of b."""
    unit = np.int32(1 if fp32 else 0x10000)
    up, down = less(a, b), greater(a, b)
    step = np.where(up & at_least(a, 0.0), unit, np.int32(0))
    step = np.where(up & less(a, 0.0), -unit, step)
    step = np.where(down & greater(a, 0.0), -unit, step)
    step = np.where(down & at_most(a, 0.0), unit, step)
    result = floats(bits(a) + step)
    zero, tiny = size_bits(a) == 0, floats(unit)
    result = np.where(zero & greater(b, 0.0), tiny, result)
    result = np.where(zero & less(b, 0.0), negate(tiny), result)
    result = np.where(zero & (size_bits(b) == 0), b, result)
    return np.where(is_nan(a) | is_nan(b), QUIET_NAN, result)
