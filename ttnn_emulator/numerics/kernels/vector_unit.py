"""Compiled elementwise kernels of the vector unit; see `vector_unit`."""

from __future__ import annotations

import numpy as np
from numba import uint32, vectorize


@vectorize([uint32(uint32, uint32, uint32)], cache=True)
def multiply_add_bits(x, y, z):
    x_exp, y_exp, z_exp = np.int64((x >> 23) & 255), np.int64((y >> 23) & 255), np.int64((z >> 23) & 255)
    x_man = np.int64((x & 0x7FFFFF) | 0x800000) if x_exp else np.int64(0)
    y_man = np.int64((y & 0x7FFFFF) | 0x800000) if y_exp else np.int64(0)
    z_man = np.int64((z & 0x7FFFFF) | 0x800000) << 3 if z_exp else np.int64(0)
    z_sign, p_sign = np.int64(z >> 31), np.int64((x ^ y) >> 31)

    product = (x_man * y_man) << 3
    p_man = (product >> 23) | (1 if product & 0x7FFFFF else 0)
    p_exp = x_exp + y_exp - 127
    nan = np.int64(0)
    if x_exp == 255 or y_exp == 255 or p_exp >= 255 or z_exp == 255:
        one = np.int64(0x800000)
        x_bad = x_exp == 255 and (x_man != one or y_man == 0)
        y_bad = y_exp == 255 and (y_man != one or x_man == 0)
        p_infinite = x_exp == 255 or y_exp == 255 or p_exp >= 255
        z_infinite = z_exp == 255 and z_man == one << 3
        if x_bad or y_bad or (z_infinite and p_infinite and z_sign != p_sign):
            nan = (p_sign << 31) | 0x7F800001
        elif z_exp == 255 and not z_infinite:
            nan = (z_sign << 31) | 0x7F800001
        elif z_infinite:
            return z
        else:
            return np.uint32((p_sign << 31) | 0x7F800000)
        p_exp = min(p_exp, np.int64(255))
    if p_man == 0 or p_exp < 0:
        if not nan:
            return z if z_man else np.uint32(0)
        p_man = p_exp = np.int64(0)

    exp = max(p_exp, z_exp)
    shift = exp - p_exp
    if shift:
        kept = p_man >> min(shift, 40) if shift < 32 else np.int64(0)
        p_man = kept | (1 if kept and (kept << shift) != p_man else 0)
    shift = exp - z_exp
    if shift:
        kept = z_man >> min(shift, 40) if shift < 32 else np.int64(0)
        z_man = kept | (1 if kept and (kept << shift) != z_man else 0)
    sign = p_sign if p_man >= z_man else z_sign
    total = (p_man if p_sign == sign else -p_man) + (z_man if z_sign == sign else -z_man)
    if total == 0:
        return np.uint32(nan)
    place, rest = 0, total
    for step in (16, 8, 4, 2, 1):
        if rest >= 1 << step:
            rest >>= step
            place += step
    up = place - 26  # the leading bit belongs at 26: 23 mantissa bits and three guard bits
    exp += up
    if exp >= 255:
        return np.uint32(nan) if nan else np.uint32((sign << 31) | 0x7F800000)
    if exp < 0:
        return np.uint32(nan)
    total = (total >> up) | (total & 1) if up > 0 else total << -up
    result = (exp << 23) + ((total >> 3) & 0x7FFFFF)
    result += 1 if (total & 7) + (result & 1) > 4 else 0
    if not result >> 23:
        return np.uint32(nan)
    return np.uint32((nan if nan else sign << 31) | result)
