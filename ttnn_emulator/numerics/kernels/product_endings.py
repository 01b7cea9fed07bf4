"""The last steps of products and convolutions: bias, the packer's rounding, and relu.

relu and rounding commute if the cap of the relu is a bfloat16, since both are monotonic. So both are done in one pass,
while the sums are in the cache.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from numba import int32, njit

from ttnn_emulator.numerics.native.addresses import address_of, floats, words
from ttnn_emulator.numerics.native.worker_threads import cut, share

if TYPE_CHECKING:
    from ttnn_emulator.numerics.functions.apply import Activation

# Endings: a sum is unchanged, rounded to bfloat16, or also rectified. In the last case the ending is the bit pattern of
# the cap, here infinity.
AS_IT_IS, ROUNDED, RELU = 0, 1, 0x7F800000
ONE_WORKER = 1 << 20  # elements below which more threads do not pay off


def ending_of(activation: Activation | None) -> int | None:
    """The ending of a bfloat16 result with this activation; None if it is more than rounding and capping."""
    if activation is None:
        return ROUNDED
    if activation.name == "relu":
        return RELU
    if activation.name not in ("relu6", "relu_max"):
        return None
    cap = int(np.float32(activation.params[0] if activation.name == "relu_max" else 6.0).view(np.int32))
    return cap if 0x00800000 <= cap < RELU and not cap & 0xFFFF else None


@njit(cache=True, nogil=True, inline="always")
def rounded_bits(raw):
    """float32 bits rounded to bfloat16, half away from zero; NaN becomes infinity, denormals and -0 become +0."""
    size = min(int32(raw & int32(0x7FFFFFFF)), int32(0x7F800000))
    size = min(int32(int32(size + int32(0x8000)) & int32(-0x10000)), int32(0x7F800000))
    return int32(size | int32(raw & int32(-0x80000000))) if size >= int32(0x00800000) else int32(0)


@njit(cache=True, nogil=True)
def round_at(source, target, count, ending):
    """Sums rounded to bfloat16 as by the packer, by address."""
    raws, rounded = words(source, count), words(target, count)
    if ending == ROUNDED:
        for i in range(count):
            rounded[i] = rounded_bits(raws[i])
    else:
        cap = int32(ending)
        least = int32(0) if ending == RELU else int32(0x00800000)  # the vector unit flushes denormals, then caps
        for i in range(count):
            rounded[i] = min(rounded_bits(raws[i] if raws[i] >= least else int32(0)), cap)


@njit(cache=True, nogil=True)
def _end(line, bits, bias, ending, table):
    """Bias, rounding and activation of a line; `bits` are its bit patterns."""
    if bias.size:
        for j in range(line.size):
            line[j] += bias[j]
    if ending != AS_IT_IS:
        round_at(bits.ctypes.data, bits.ctypes.data, bits.size, ending)
    if table.size:
        for j in range(line.size):
            line[j] = table[np.uint32(bits[j]) >> np.uint32(16)]


@njit(cache=True, nogil=True)
def end_rows(first, last, target, columns, start, end, bias, ending, table):
    """Columns `start` to `end` of some rows of sums, by address.

    table  lookup table of a function, indexed by the upper half of the rounded sum; may be empty
    """
    part = bias[start:end] if bias.size else bias
    for row in range(first, last):
        at = target + 4 * (row * columns + start)
        _end(floats(at, end - start), words(at, end - start), part, ending, table)


def round_in_place(sums: torch.Tensor, ending: int = ROUNDED) -> torch.Tensor:
    """float32 values rounded to bfloat16, half away from zero, and flushed, as by the packer."""
    place = address_of(sums)
    share(round_at, [(place + 4 * a, place + 4 * a, b - a, ending) for a, b in cut(sums.numel(), ONE_WORKER)])
    return sums
