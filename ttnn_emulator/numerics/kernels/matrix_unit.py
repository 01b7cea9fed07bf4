"""Compiled loops of the matrix unit's bit-exact model; see `matrix_unit`."""

from __future__ import annotations

import numpy as np
from numba import njit

from ttnn_emulator.numerics.kernels.exact_matmul import ALL_IN_L1, KEEP, RELOAD, TILE


@njit(cache=True)
def _shift_right(mantissa, amount, down):
    """Shift and round half up; for a negative term half down, since the chip rounds in two's complement."""
    if amount <= 0:
        return mantissa
    if amount >= 31:
        return 0
    return (mantissa + (1 << (amount - 1)) - down) >> amount


@njit(cache=True)
def _leading_bit(value):
    place = 0
    for step in (16, 8, 4, 2, 1):
        if value >= 1 << step:
            value >>= step
            place += step
    return place


@njit(cache=True)
def _accumulate(sign0, exp0, man0, sign1, exp1, man1, sign, exp, man, fp32_acc):
    """Two sums of products added to the destination register: align, round, add, renormalise."""
    top = max(max(exp0, exp1), exp)
    if top <= 0:
        return 0, 0, 0
    man0 = _shift_right(man0, top - exp0, sign0)
    man1 = _shift_right(man1, top - exp1, sign1)
    man = _shift_right(man, top - exp, 0)
    if not fp32_acc:
        man0 = (man0 + 4096 - sign0) & ~0x1FFF
        man1 = (man1 + 4096 - sign1) & ~0x1FFF
        man = (man + 4096) & ~0x1FFF
    man += man0 if sign0 == sign else -man0
    man += man1 if sign1 == sign else -man1
    if man < 0:
        man = -man
        sign ^= 1
    if man == 0:
        return 0, 0, 0
    shift = 23 - _leading_bit(man)
    if sign == 1 and man == 1:
        shift -= 27  # the chip miscounts the leading sign bits of -1
    exp = top - shift
    keep = 0 if fp32_acc else 16
    shift -= keep
    man = _shift_right(man, -shift, 0) if shift < 0 else man << shift
    man <<= keep
    if man & 0x1000000:
        exp += 1
        man = 0x800000
    if exp <= 0:
        return 0, 0, 0
    if exp >= 255:
        return sign, 255, 0x800000
    return sign, exp, (man & 0x7FFFFF) | 0x800000


@njit(cache=True)
def _add_in_l1(a, b, fp32_acc):
    """Bit patterns added by the packer in L1, rounded to nearest even; denormals count as zero."""
    pair = np.array([a, b], np.uint32).view(np.float32)
    total = np.array([np.float32(np.float64(pair[0]) + np.float64(pair[1]))], np.float32).view(np.uint32)[0]
    if not fp32_acc:
        total = total + np.uint32(0x7FFF) + ((total >> np.uint32(16)) & np.uint32(1))
        total = total & np.uint32(0xFFFF0000)
    return total if total & np.uint32(0x7F800000) else np.uint32(0)


@njit(cache=True)
def _sum_of_eight(b_sign, b_exp, b_man, a_sign, a_exp, a_man, start, phase, bias):
    """The sum of eight products, aligned to their largest exponent and rounded half up: sign, exponent, mantissa."""
    top = -20000
    for i in range(start, start + 8):
        top = max(top, b_exp[i] + a_exp[i])
    if top + bias <= 0:
        return 0, 0, 0
    total = 0
    for i in range(start, start + 8):
        b = (b_man[i] & 15) << 3 if phase & 2 else b_man[i] >> 4
        a = (a_man[i] >> 1) & 31 if phase & 1 else a_man[i] >> 6
        shift = min(top - b_exp[i] - a_exp[i], 29)
        product = (2 * a * b + (1 << shift)) >> (shift + 1)
        total += -product if b_sign[i] != a_sign[i] else product
    if total < 0:
        return 1, top + bias, -total << 13
    return 0, top + bias, total << 13


@njit(cache=True, nogil=True)
def multiply(first, last, b_sign, b_exp, b_man, a_sign, a_exp, a_man, result, phases, fp32_acc, block, mode):
    """Rows `first` to `last` times all columns, for any exponents.

    The arguments from `result` on are those of `exact_matmul.multiply`.
    """
    inner = b_exp.shape[1]
    last_block = ((inner // TILE - 1) // block) * block * TILE if inner else 0
    for row in range(first, last):
        left = b_sign[row], b_exp[row], b_man[row]
        for column in range(a_exp.shape[0]):
            right = a_sign[column], a_exp[column], a_man[column]
            raw = np.int64(result[row, column])
            sign, exp = raw >> 31, (raw >> 23) & 0xFF
            man = (raw & 0x7FFFFF) | 0x800000 if exp else 0
            in_l1 = np.uint32(0)
            for tile in range(0, inner, TILE):
                if mode == RELOAD and tile and tile == last_block:
                    raw = np.int64(in_l1)
                    sign, exp = raw >> 31, (raw >> 23) & 0xFF
                    man = (raw & 0x7FFFFF) | 0x800000 if exp else 0
                for phase in range(phases):
                    bias = -127 - 5 * (phase & 1) - 7 * (phase >> 1)
                    for step in range(tile, tile + TILE, 16):
                        sign0, exp0, man0 = _sum_of_eight(*left, *right, step, phase, bias)
                        sign1, exp1, man1 = _sum_of_eight(*left, *right, step + 8, phase, bias)
                        sign, exp, man = _accumulate(sign0, exp0, man0, sign1, exp1, man1, sign, exp, man, fp32_acc)
                done = tile // TILE + 1
                ends = done % block == 0 or done * TILE == inner
                if mode != KEEP and ends and (mode == ALL_IN_L1 or tile < last_block):
                    summed = np.uint32((sign << 31) | (exp << 23) | (man & 0x7FFFFF))
                    in_l1 = summed if done <= block else _add_in_l1(in_l1, summed, fp32_acc)
                    sign, exp, man = 0, 0, 0
            ended = np.uint32((sign << 31) | (exp << 23) | (man & 0x7FFFFF))
            result[row, column] = in_l1 if mode == ALL_IN_L1 else ended
