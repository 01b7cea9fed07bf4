"""Compiled steps on one row for softmax, norms and attention: sums, maxima, exponentials, rounding.

Each is a separate loop, so that the compiler vectorises it. Only sums may be reordered: reordering would break rounding
by arithmetic.
"""

from __future__ import annotations

import numpy as np
from numba import float32, int32, njit

REORDERED = {"reassoc", "nsz", "contract"}

LOG2_E = np.float32(1.4426950408889634)
LN2_HIGH, LN2_LOW = np.float32(0.693359375), np.float32(-2.12194440e-4)
# exp(r) = 1 + r + r² × polynomial for |r| ≤ ln 2 ÷ 2, within one unit in the last place (Cephes, expf).
C0, C1, C2 = np.float32(1.9875691500e-4), np.float32(1.3981999507e-3), np.float32(8.3334519073e-3)
C3, C4, C5 = np.float32(4.1665795894e-2), np.float32(1.6666665459e-1), np.float32(5.0000001201e-1)
LEAST, MOST = np.float32(-87.336), np.float32(88.7)  # arguments beyond which the result is not a normal float32


@njit(cache=True, nogil=True, inline="always")
def bits_of(value):
    return np.float32(value).view(np.int32)


@njit(cache=True, nogil=True, inline="always")
def float_of(bits):
    return np.int32(bits).view(np.float32)


@njit(cache=True, nogil=True, inline="always")
def rounded(value):
    """Rounded to bfloat16, half away from zero; denormals become zero."""
    bits = int32(int32(bits_of(value) + int32(0x8000)) & int32(-0x10000))
    return float32(0.0) if bits & int32(0x7F800000) == int32(0) else float_of(bits)


@njit(cache=True, nogil=True, inline="always")
def rounded_even(value):
    """To the nearest bfloat16, ties to even."""
    bits = bits_of(value)
    return float_of(int32(bits + int32(0x7FFF) + ((bits >> int32(16)) & int32(1))) & int32(-0x10000))


@njit(cache=True, nogil=True, inline="always")
def cut(value):
    """Truncated to the 11 bits of a source register."""
    return float_of(bits_of(value) & int32(-0x2000))


@njit(cache=True, nogil=True, fastmath=REORDERED)
def total(line):
    result = float32(0.0)
    for i in range(line.size):
        result += line[i]
    return result


@njit(cache=True, nogil=True)
def largest(line):
    """The maximum, compared by bit patterns as integers, which is fast; NaN is larger than all."""
    most = int32(-0x80000000)
    for i in range(line.size):
        raw = bits_of(line[i])
        most = max(most, int32(raw ^ ((raw >> int32(31)) & int32(0x7FFFFFFF))))
    return float_of(most ^ ((most >> int32(31)) & int32(0x7FFFFFFF)))


@njit(cache=True, nogil=True)
def exponentials(line, less, factor):
    """exp((x - less) × factor), in place."""
    for i in range(line.size):
        x = (line[i] - less) * factor
        inside = min(max(x, LEAST), MOST)
        whole = float32(np.floor(inside * LOG2_E + float32(0.5)))
        r = inside - whole * LN2_HIGH - whole * LN2_LOW
        tail = ((((C0 * r + C1) * r + C2) * r + C3) * r + C4) * r + C5
        power = (tail * r * r + r + float32(1.0)) * float_of((int32(whole) + int32(127)) << int32(23))
        line[i] = power if x >= LEAST else float32(0.0)
