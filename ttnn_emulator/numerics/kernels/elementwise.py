"""Compiled loops of elementwise arithmetic: the matrix unit's adder and multiplier, and the vector unit's multiplier.

All take and return flat arrays of bit patterns.
"""

from __future__ import annotations

import numpy as np
from numba import int32, njit

SIGN = np.int32(-0x80000000)
SIZE = np.int32(0x7FFFFFFF)
INFINITY = np.int32(0x7F800000)
LEAST = np.int32(0x00800000)  # the least normal number
HALF_DROPPED = np.int32(0x8000)
UPPER = np.int32(-0x10000)
NOTHING = np.int64(0)

# Typed locals: numba widens int32 arithmetic to 64 bits, which would halve the lanes of a vector instruction.
_ADD_LOCALS = dict.fromkeys(
    "x y x_size y_size sign differ large small exponent apart small_man total rounded biased bits".split(), int32
)


@njit(cache=True, nogil=True, error_model="numpy", locals=_ADD_LOCALS)
def add_mantissas(a, b, flip, half, kept, out):
    """ELWADD (flip = 0) and ELWSUB (flip = the sign bit).

    The smaller operand is rounded, half away from zero, to the 11 bits of the larger one; the sum is rounded the same
    way to the width of the destination register, by adding `half` and masking with `kept`. An exponent of 255 is not
    special until the end, so infinity minus infinity is zero. The body has no branches, so that it vectorises.
    """
    for i in range(out.size):
        x = a[i]
        y = b[i] ^ flip
        x_size = x & SIZE
        y_size = y & SIZE
        x_size = x_size if x_size >= LEAST else int32(0)
        y_size = y_size if y_size >= LEAST else int32(0)
        sign = (x if x_size >= y_size else y) & SIGN
        differ = x ^ y
        large = max(x_size, y_size)
        small = min(x_size, y_size)
        exponent = large >> int32(23)
        apart = small >> int32(23)
        apart = exponent - apart
        apart = min(apart, int32(31))
        large = (large >> int32(13)) & int32(0x3FF)
        large = large | int32(0x400)
        small_man = (small >> int32(13)) & int32(0x3FF)
        small_man = small_man | int32(0x400)
        small_man = small_man if small != int32(0) else int32(0)
        small_man = small_man << int32(1)
        small_man = small_man >> apart
        small_man = small_man + int32(1)
        small_man = small_man >> int32(1)
        small_man = -small_man if differ < int32(0) else small_man
        total = large + small_man
        rounded = np.float32(total).view(np.int32)
        rounded = rounded + half
        rounded = rounded & kept
        biased = rounded >> int32(23)
        biased = biased + exponent
        biased = biased - int32(137)  # the total's unit is the larger operand's 2^-10
        bits = biased << int32(23)
        bits = bits | (rounded & int32(0x7FFFFF))
        bits = INFINITY if biased >= int32(255) else bits
        bits = bits | sign
        bits = int32(0) if biased <= int32(0) else bits
        bits = int32(0) if total == int32(0) else bits
        out[i] = int32(0) if exponent == int32(0) else bits


def add_16bit(a, b, flip, out):
    """The sum in a 16-bit register."""
    add_mantissas(a, b, flip, HALF_DROPPED, UPPER, out)


def add_32bit(a, b, flip, out):
    """The sum in a 32-bit register, where the sum of two 11-bit mantissas is exact."""
    add_mantissas(a, b, flip, np.int32(0), np.int32(-1), out)


_MULTIPLY_LOCALS = dict.fromkeys("x y x_size y_size sign exact bits".split(), int32)


@njit(cache=True, nogil=True, error_model="numpy", locals=_MULTIPLY_LOCALS)
def multiply_16bit(a, b, out):
    """The vector unit's product of bfloat16 operands, rounded to nearest even and packed.

    Denormals count as zero. Infinity times a denormal or -0 is infinity, but times +0 it is 0, as in the kernel.
    """
    for i in range(out.size):
        x = a[i]
        y = b[i]
        x_size = x & SIZE
        y_size = y & SIZE
        sign = (x ^ y) & SIGN
        flushed_x = np.float32(0.0) if x_size < LEAST else np.int32(x_size).view(np.float32)
        flushed_y = np.float32(0.0) if y_size < LEAST else np.int32(y_size).view(np.float32)
        exact = np.float32(flushed_x * flushed_y).view(np.int32)
        bits = exact >> int32(16)
        bits = bits & int32(1)
        bits = bits + int32(0x7FFF)
        bits = exact + bits
        bits = bits & UPPER
        bits = INFINITY if max(exact, max(x_size, y_size)) >= INFINITY else bits
        bits = bits | sign
        bits = int32(0) if bits & SIZE < LEAST else bits
        bits = int32(0) if x == int32(0) else bits
        out[i] = int32(0) if y == int32(0) else bits


ADD, SUBTRACT, SUBTRACT_REVERSED, MULTIPLY, DIVIDE = 0, 1, 2, 3, 4


@njit(cache=True, nogil=True, inline="always")
def _normal(raw):
    """A float32 from its bits; denormals and -0 as +0."""
    return np.int32(raw if raw & SIZE >= LEAST else int32(0)).view(np.float32)


@njit(cache=True, nogil=True, error_model="numpy")
def join_32bit(a, b, kind, out):
    """Arithmetic in float32 with denormals as zero: close to both units, for operands too large for bit-exactness."""
    if kind == ADD:
        for i in range(out.size):
            out[i] = np.float32(_normal(a[i]) + _normal(b[i])).view(np.int32)
    elif kind == SUBTRACT:
        for i in range(out.size):
            out[i] = np.float32(_normal(a[i]) - _normal(b[i])).view(np.int32)
    elif kind == SUBTRACT_REVERSED:
        for i in range(out.size):
            out[i] = np.float32(_normal(b[i]) - _normal(a[i])).view(np.int32)
    elif kind == DIVIDE:
        for i in range(out.size):
            out[i] = np.float32(_normal(a[i]) / _normal(b[i])).view(np.int32)
    else:
        for i in range(out.size):
            out[i] = np.float32(_normal(a[i]) * _normal(b[i])).view(np.int32)
    for i in range(out.size):
        out[i] = out[i] if out[i] & SIZE >= LEAST else int32(0)


@njit(cache=True, nogil=True, error_model="numpy")
def multiply_rounded(a, b, out):
    """A product in float32 with denormals as zero, rounded half away from zero to bfloat16."""
    join_32bit(a, b, MULTIPLY, out)
    for i in range(out.size):
        out[i] = (out[i] + HALF_DROPPED) & UPPER


@njit(cache=True, nogil=True)
def _round_shift(mantissa, amount, down):
    """Shift right and round half up, or half down for a negative term."""
    if amount <= 0:
        return mantissa
    return (mantissa + (1 << (amount - 1)) - down) >> amount if amount < 31 else 0


@njit(cache=True, nogil=True)
def multiply_in_phases(a, b, phases, wide, out):
    """ELWMUL: each fidelity phase adds the product of parts of both mantissas to the destination register.

    `wide`: the register has 32 bits; else each phase rounds to bfloat16.
    """
    for i in range(out.size):
        x, y = np.int64(a[i]) & 0xFFFFFFFF, np.int64(b[i]) & 0xFFFFFFFF
        x_exp, y_exp = (x >> 23) & 0xFF, (y >> 23) & 0xFF
        x_man, y_man = (x >> 13) & 0x3FF | 0x400, (y >> 13) & 0x3FF | 0x400
        sign = (x ^ y) >> 31
        kept, kept_exp = NOTHING, NOTHING
        for phase in range(phases):
            left = (x_man >> 1) & 31 if phase & 1 else x_man >> 6
            right = (y_man & 15) << 3 if phase & 2 else y_man >> 4
            exponent = x_exp + y_exp - 127 - 5 * (phase & 1) - 7 * (phase >> 1)
            product = (left * right) << 13
            down = sign
            if x_exp == 0 or y_exp == 0 or exponent <= 0:
                product, exponent, down = NOTHING, NOTHING, NOTHING
            top = exponent if exponent > kept_exp else kept_exp
            if top <= 0:
                kept, kept_exp = NOTHING, NOTHING
                continue
            product = _round_shift(product, top - exponent, down)
            kept = _round_shift(kept, top - kept_exp, 0)
            if not wide:
                product = (product + 4096 - down) & ~0x1FFF
                kept = (kept + 4096) & ~0x1FFF
            total = kept + product
            if total == 0:
                kept, kept_exp = NOTHING, NOTHING
                continue
            place = (np.float64(total).view(np.int64) >> 52) - 1023
            top += place - 23
            if wide:
                total = _round_shift(total, place - 23, 0) if place > 23 else total << (23 - place)
            else:
                total = (_round_shift(total, place - 7, 0) if place > 7 else total << (7 - place)) << 16
            if total >> 24:
                top += 1
                total >>= 1
            if top <= 0:
                kept, kept_exp = NOTHING, NOTHING
            elif top >= 255:
                kept, kept_exp = np.int64(0x800000), np.int64(255)
            else:
                kept, kept_exp = total, top
        if kept:
            out[i] = np.int32((sign << 31) | (kept_exp << 23) | (kept & 0x7FFFFF))
        else:
            out[i] = 0
