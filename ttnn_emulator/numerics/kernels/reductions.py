"""Compiled loops of the matrix unit's pooling and elementwise instructions, bit-exact; see `programs.reduction`."""

from __future__ import annotations

import numpy as np
from numba import int32, njit, uint32, uint64, vectorize

from ttnn_emulator.numerics.kernels.matrix_unit import _accumulate, _sum_of_eight
from ttnn_emulator.numerics.native.addresses import words

FACE = 16


@njit(cache=True, nogil=True, inline="always")
def _ordered(raw):
    """Integers in the order of sign and magnitude, by which the chip compares floats; its own inverse."""
    return int32(raw ^ ((raw >> int32(31)) & int32(0x7FFFFFFF)))


@njit(cache=True, nogil=True)
def largest_of_rows(source, target, rows, width):
    """The largest of each row of float32 values, by address; NaNs are beyond the infinity of their sign."""
    out = words(target, rows)
    for row in range(rows):
        raws = words(source + 4 * row * width, width)
        most = int32(-0x80000000)
        for i in range(width):
            most = max(most, _ordered(raws[i]))
        out[row] = _ordered(most)


@njit(cache=True, nogil=True)
def smallest_of_rows(source, target, rows, width):
    """The smallest of each row, likewise."""
    out = words(target, rows)
    for row in range(rows):
        raws = words(source + 4 * row * width, width)
        least = int32(0x7FFFFFFF)
        for i in range(width):
            least = min(least, _ordered(raws[i]))
        out[row] = _ordered(least)


@njit(cache=True)
def _fields(raw):
    """Sign, exponent and 24-bit mantissa of a destination register."""
    exponent = (raw >> 23) & 0xFF
    return raw >> 31, exponent, (raw & 0x7FFFFF) | 0x800000 if exponent else np.int64(0)


@njit(cache=True)
def _encode(sign, exponent, mantissa):
    return np.uint32((sign << 31) | (exponent << 23) | (mantissa & 0x7FFFFF))


@njit(cache=True, nogil=True)
def pool_columns(first, last, b_sign, b_exp, b_man, a_sign, a_exp, a_man, result, phases, fp32_acc):
    """Sums of columns (GAPOOL): the scaler row in source B times faces of 16 rows in source A, all phases per face.

    `a_*` are [columns, rows], rows a multiple of 16; `b_*` have one scaler per row of the face; `result` is the initial
    destination and receives the final one. Columns `first` to `last` are computed.
    """
    for column in range(first, last):
        sign, exp, man = _fields(np.int64(result[column]))
        for face in range(0, a_exp.shape[1], FACE):
            rows = slice(face, face + FACE)
            signs, exps, mans = a_sign[column, rows], a_exp[column, rows], a_man[column, rows]
            for phase in range(phases):
                bias = -127 - 5 * (phase & 1) - 7 * (phase >> 1)
                sign0, exp0, man0 = _sum_of_eight(b_sign, b_exp, b_man, signs, exps, mans, 0, phase, bias)
                sign1, exp1, man1 = _sum_of_eight(b_sign, b_exp, b_man, signs, exps, mans, 8, phase, bias)
                sign, exp, man = _accumulate(sign0, exp0, man0, sign1, exp1, man1, sign, exp, man, fp32_acc)
        result[column] = _encode(sign, exp, man)


@njit(cache=True, nogil=True)
def pool_rows(first, last, b_sign, b_exp, b_man, a_sign, a_exp, a_man, result, phases, fp32_acc):
    """Sums of rows (MVMUL): rows of source B times a column of scalers in source A, all faces of a tile per phase.

    `b_*` are [rows, inner], inner a multiple of 32; `a_*` have one scaler per column of the tile.
    """
    for row in range(first, last):
        sign, exp, man = _fields(np.int64(result[row]))
        for tile in range(0, b_exp.shape[1], 2 * FACE):
            columns = slice(tile, tile + 2 * FACE)
            signs, exps, mans = b_sign[row, columns], b_exp[row, columns], b_man[row, columns]
            for phase in range(phases):
                bias = -127 - 5 * (phase & 1) - 7 * (phase >> 1)
                for step in (0, FACE):
                    sign0, exp0, man0 = _sum_of_eight(signs, exps, mans, a_sign, a_exp, a_man, step, phase, bias)
                    sign1, exp1, man1 = _sum_of_eight(signs, exps, mans, a_sign, a_exp, a_man, step + 8, phase, bias)
                    sign, exp, man = _accumulate(sign0, exp0, man0, sign1, exp1, man1, sign, exp, man, fp32_acc)
        result[row] = _encode(sign, exp, man)


@njit(cache=True, nogil=True)
def _added(a, b, dst, fp32_acc):
    """ELWADD: 11-bit mantissas aligned to the larger, the smaller rounded half up, added to the destination."""
    a, b = np.int64(a >> 13), np.int64(b >> 13)
    a = a if a & 0x3FC00 else np.int64(0)
    b = b if b & 0x3FC00 else np.int64(0)
    if (a & 0x3FFFF) < (b & 0x3FFFF):
        a, b = b, a
    a_exp, b_exp = (a >> 10) & 255, (b >> 10) & 255
    a_man = (a & 0x3FF) | 0x400 if a else np.int64(0)
    b_man = (b & 0x3FF) | 0x400 if b else np.int64(0)
    distance = a_exp - b_exp
    if distance > 0:
        b_man = (b_man + (1 << (distance - 1))) >> distance if distance < 12 else np.int64(0)
    total = a_man + b_man if a >> 18 == b >> 18 else a_man - b_man
    zero = np.int64(0)
    sign, exp, man = _fields(np.int64(dst))
    sign, exp, man = _accumulate(a >> 18, a_exp, total << 13, zero, zero, zero, sign, exp, man, fp32_acc != 0)
    return _encode(sign, exp, man)


@njit(cache=True, nogil=True)
def _multiplied(a, b, dst, phases, fp32_acc):
    """ELWMUL: products of parts of two 11-bit mantissas, added to the destination in fidelity phases."""
    a, b = np.int64(a >> 13), np.int64(b >> 13)
    sign, exp, man = _fields(np.int64(dst))
    zero = np.int64(0)
    for phase in range(np.int64(phases)):
        bias = -127 - 5 * (phase & 1) - 7 * (phase >> 1)
        left = ((a & 0x3FF) | 0x400) >> 1 & 31 if phase & 1 else ((a & 0x3FF) | 0x400) >> 6
        right = (b & 15) << 3 if phase & 2 else ((b & 0x3FF) | 0x400) >> 4
        p_sign, p_exp, p_man = (a ^ b) >> 18, ((a >> 10) & 255) + ((b >> 10) & 255) + bias, (left * right) << 13
        if not a & 0x3FC00 or not b & 0x3FC00 or p_exp <= 0:
            p_sign, p_exp, p_man = zero, zero, zero
        sign, exp, man = _accumulate(p_sign, p_exp, p_man, zero, zero, zero, sign, exp, man, fp32_acc != 0)
    return _encode(sign, exp, man)


@vectorize([uint32(uint32, uint32, uint32, uint64)], cache=True)
def add_bits(a, b, dst, fp32_acc):
    """`_added`, elementwise."""
    return _added(a, b, dst, fp32_acc)


@njit(cache=True, nogil=True)
def add_all(first, last, a, b, flip, starts, fp32_acc, out):
    """a + b for elements `first` to `last`; `flip`: the sign bit for a - b. `starts` may be empty."""
    for i in range(first, last):
        out[i] = _added(a[i], b[i] ^ flip, starts[i] if starts.size else uint32(0), fp32_acc)


@njit(cache=True, nogil=True)
def multiply_all(first, last, a, b, phases, fp32_acc, out):
    """a × b for elements `first` to `last`."""
    for i in range(first, last):
        out[i] = _multiplied(a[i], b[i], uint32(0), phases, fp32_acc)
