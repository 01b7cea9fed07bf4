"""Cumulative sums and products, as the vector unit computes them: sequentially, in float32."""

from __future__ import annotations

import numpy as np
import torch
from numba import njit

from ttnn_emulator.enums import FLOAT_DTYPES, DataType
from ttnn_emulator.numerics.formats.carriers import wrap_integer
from ttnn_emulator.numerics.kernels.vector_unit import multiply_add_bits
from ttnn_emulator.numerics.mode import exactly
from ttnn_emulator.numerics.units.packer import pack

WORK = 16  # per value of a scan, in the unit of `mode`
ONE, MINUS_ONE, SPECIAL = np.uint32(0x3F800000), np.uint32(0xBF800000), np.uint32(0x7F800000)


# tt-metal v0.81.1: ttnn/cpp/ttnn/operations/reduction/accumulation/device/kernels/compute/accumulation_compute.cpp,
#     kernel_main
@njit(cache=True)
def _sum_columns(bits, compensated):
    """Cumulative sums of rows of bit patterns, in place; `compensated`: Kahan summation."""
    zero = np.uint32(0)
    for column in range(bits.shape[1]):
        total = lost = zero
        for row in range(bits.shape[0]):
            value = bits[row, column]
            if not compensated:
                total = multiply_add_bits(value, ONE, total)
            else:
                value = multiply_add_bits(lost, MINUS_ONE, value)
                previous, total = total, multiply_add_bits(total, ONE, value)
                change = multiply_add_bits(previous, MINUS_ONE, total)
                lost = multiply_add_bits(value, MINUS_ONE, change)
                if change & SPECIAL == SPECIAL:
                    lost = zero
            bits[row, column] = total


@njit(cache=True)
def _multiply_columns(bits):
    for column in range(bits.shape[1]):
        total = ONE
        for row in range(bits.shape[0]):
            total = multiply_add_bits(bits[row, column], total, np.uint32(0))
            bits[row, column] = total


def scan(
    values: torch.Tensor, dim: int, dtype: DataType, *, product: bool, reverse: bool, compensated: bool
) -> torch.Tensor:
    """All partial sums or products along `dim`, packed from 32-bit registers. Integers wrap.

    Scans too large for bit-exact emulation run in torch.
    """
    if reverse:
        values = values.flip(dim)
    if dtype not in FLOAT_DTYPES:
        wide = values.long()
        total = wide.cumprod(dim) if product else wide.cumsum(dim)
        result = wrap_integer(total, dtype)
    elif not exactly(values.numel() * WORK):
        result = pack(values.cumprod(dim) if product else values.cumsum(dim), dtype, from_fp32=True)
    else:
        rows = values.movedim(dim, 0).contiguous()
        bits = np.array(rows.reshape(rows.shape[0], -1).numpy()).view(np.uint32)
        if product:
            _multiply_columns(bits)
        else:
            _sum_columns(bits, compensated)
        sums = torch.from_numpy(bits.view(np.float32)).reshape(rows.shape).movedim(0, dim)
        result = pack(sums.contiguous(), dtype, from_fp32=True)
    return result.flip(dim) if reverse else result
