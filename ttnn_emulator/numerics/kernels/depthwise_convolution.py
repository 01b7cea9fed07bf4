"""Compiled loops of depthwise convolutions."""

from __future__ import annotations

from numba import njit

from ttnn_emulator.numerics.kernels.matrix_unit import _accumulate


@njit(cache=True, nogil=True)
def accumulate_products(a, b, phases, fp32_acc, sums):
    """sums += a × b, on float32 bit patterns, as ELWMUL accumulates the fidelity phases of a product."""
    for i in range(sums.size):
        x, y, total = a[i], b[i], sums[i]
        x_exp, y_exp = (x >> 23) & 0xFF, (y >> 23) & 0xFF
        x_man, y_man = ((x >> 13) & 0x3FF) | 0x400, ((y >> 13) & 0x3FF) | 0x400
        product_sign = (x >> 31) ^ (y >> 31)
        sign, exp = total >> 31, (total >> 23) & 0xFF
        man = (total & 0x7FFFFF) | 0x800000 if exp else 0
        for phase in range(phases):
            left = (x_man >> 1) & 31 if phase & 1 else x_man >> 6
            right = (y_man & 15) << 3 if phase & 2 else y_man >> 4
            product_exp = x_exp + y_exp - 127 - 5 * (phase & 1) - 7 * (phase >> 1)
            if x_exp == 0 or y_exp == 0 or product_exp <= 0:
                sign, exp, man = _accumulate(0, 0, 0, 0, 0, 0, sign, exp, man, fp32_acc)
            else:
                sign, exp, man = _accumulate(
                    product_sign, product_exp, (left * right) << 13, 0, 0, 0, sign, exp, man, fp32_acc
                )
        sums[i] = (sign << 31) | (exp << 23) | (man & 0x7FFFFF)
