"""The vector unit (SFPU) of Wormhole: its instructions on numpy arrays of float32 and int32.

Elementwise kernels call these in the instruction order of the card's kernels, with `np.where` for predicated code. All
arithmetic is one fused multiply-add; it flushes denormals and aligns with three guard bits, so it differs from IEEE 754
in rare last bits, in NaNs and in signed zeros.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ttnn_emulator.numerics.kernels.vector_unit import multiply_add_bits

Float = Any  # arrays or scalars of float32
Int = Any  # arrays or scalars of int32

ONE = np.float32(1.0)
ZERO = np.float32(0.0)


def bits(values: Float) -> Int:
    return np.asarray(values, np.float32).view(np.int32)


def floats(values: Int) -> Float:
    return np.asarray(values, np.int32).view(np.float32)


def mad(a: Float, b: Float, c: Float) -> Float:
    """a × b + c (SFPMAD)."""
    parts = [np.asarray(value, np.float32).view(np.uint32) for value in (a, b, c)]
    return np.asarray(multiply_add_bits(*parts), np.uint32).view(np.float32)


def mul(a: Float, b: Float) -> Float:
    return mad(a, b, ZERO)


def add(a: Float, b: Float) -> Float:
    return mad(a, ONE, b)


def sub(a: Float, b: Float) -> Float:
    """a - b: the unit negates the second operand and adds."""
    return mad(b, -ONE, a)


# -- fields of a float ------------------------------------------------------------------------------------------------


def exponent(value: Float, *, biased: bool = False) -> Int:
    """SFPEXEXP."""
    raw = (bits(value) >> 23) & 0xFF
    return raw if biased else raw - np.int32(127)


def mantissa(value: Float, *, hidden: bool = True) -> Int:
    """SFPEXMAN: with the hidden bit (8 zero bits above) or without it (9)."""
    low = bits(value) & 0x7FFFFF
    return low | np.int32(0x800000) if hidden else low


def set_exponent(value: Float, biased: Int | int) -> Float:
    """SFPSETEXP: the biased exponent replaced."""
    kept = bits(value) & np.int32(-0x7F800001)
    return floats(kept | ((np.asarray(biased, np.int32) & 0xFF) << 23))


def add_exponent(value: Float, amount: int) -> Float:
    """SFPDIVP2 in its adding form: × 2^amount without any check, except that infinities and NaNs stay."""
    raw = (bits(value) >> 23) & 0xFF
    return np.where(raw == 255, value, set_exponent(value, raw + np.int32(amount)))


def set_mantissa(value: Float, field: Int | int) -> Float:
    """SFPSETMAN: the 23 stored bits replaced."""
    kept = bits(value) & np.int32(-0x800000)
    return floats(kept | (np.asarray(field, np.int32) & 0x7FFFFF))


def set_sign(value: Float, sign_of: Float | Int | int) -> Float:
    """SFPSETSGN: the sign of another float, or the lowest bit of an integer."""
    if isinstance(sign_of, int) or np.asarray(sign_of).dtype == np.int32:
        sign = (np.asarray(sign_of, np.int32) & 1) << 31
    else:
        sign = bits(sign_of) & np.int32(-0x80000000)
    return floats((bits(value) & 0x7FFFFFFF) | sign)


def negate(value: Float) -> Float:
    """SFPMOV with the sign inverted."""
    return floats(bits(value) ^ np.int32(-0x80000000))


def magnitude(value: Float) -> Float:
    """SFPABS on a float: clears the sign, except of a NaN."""
    raw = bits(value)
    is_negative_nan = raw.view(np.uint32) > np.uint32(0xFF800000)
    return floats(np.where(is_negative_nan, raw, raw & 0x7FFFFFFF))


# -- comparisons ------------------------------------------------------------------------------------------------------


def is_negative(value: Float) -> np.ndarray:
    """The condition `v_if (x < 0)`: the sign bit, so -0 and -NaN count as negative."""
    return bits(value) < 0


def is_zero(value: Float) -> np.ndarray:
    """The condition `v_if (x == 0)`: all bits zero, so -0 is not zero."""
    return bits(value) == 0


def less(a: Float, b: Float) -> np.ndarray:
    """`a < b` as the compiler emits it: the sign of a - b."""
    return is_negative(sub(a, b))


def total_order(value: Float) -> Int:
    """An integer that orders floats by sign and magnitude, as SFPSWAP does."""
    raw = bits(value)
    return raw ^ ((raw >> np.int32(31)) & np.int32(0x7FFFFFFF))


def minimum(a: Float, b: Float) -> Float:
    """SFPSWAP: the smaller in sign-magnitude order."""
    return np.where(total_order(a) <= total_order(b), a, b)


def maximum(a: Float, b: Float) -> Float:
    return np.where(total_order(a) > total_order(b), a, b)


# -- integers ---------------------------------------------------------------------------------------------------------


def shift(value: Int, amount: Int | int) -> Int:
    """SFPSHFT: left by a positive amount, logical right by a negative one; only its five low bits count."""
    count = np.asarray(amount, np.int32)
    raw = np.asarray(value, np.int32).view(np.uint32)
    left = (raw << (count & 31).astype(np.uint32)).view(np.int32)
    right = (raw >> ((-count) & 31).astype(np.uint32)).view(np.int32)
    return np.where(count >= 0, left, right)


def sign_magnitude_to_float(value: Int) -> Float:
    """SFPCAST: a sign-magnitude integer as float32, rounded to nearest even."""
    raw = np.asarray(value, np.int32)
    size = (raw & 0x7FFFFFFF).astype(np.float64).astype(np.float32)
    return np.where(raw < 0, -size, size).astype(np.float32)


def int_to_float(value: Int) -> Float:
    """A two's-complement integer as float32, through the sign-magnitude cast."""
    return np.asarray(value, np.int32).astype(np.float32)


# -- rounding ---------------------------------------------------------------------------------------------------------


def round_to_bf16(value: Float) -> Float:
    """SFPSTOCHRND to bfloat16: half away from zero; denormals become +0, NaNs infinities of their sign."""
    raw = bits(value).view(np.uint32)
    field = raw & np.uint32(0x7F800000)
    rounded = (raw + np.uint32(0x8000)) & np.uint32(0xFFFF0000)
    special = np.where(field == 0, np.uint32(0), raw & np.uint32(0xFF800000))
    return np.where((field == 0) | (field == 0x7F800000), special, rounded).view(np.float32)


def store_bf16(value: Float) -> Float:
    """SFPSTORE into a 16-bit destination: the low half of the bits is dropped, denormals become zero of their sign."""
    raw = bits(value)
    flushed = np.where((raw & 0x7F800000) == 0, raw & np.int32(-0x80000000), raw)
    return floats(flushed & np.int32(-0x10000))


def store_fp32(value: Float) -> Float:
    """SFPSTORE into a 32-bit destination: denormals become zero of their sign."""
    raw = bits(value)
    return floats(np.where((raw & 0x7F800000) == 0, raw & np.int32(-0x80000000), raw))
