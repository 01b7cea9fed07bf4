"""Compiled loops of number formats, over bit patterns."""

from __future__ import annotations

import numpy as np
from numba import int32, njit, uint16

from ttnn_emulator.numerics.kernels.register_tiles.transposed import EDGE, transpose_narrow
from ttnn_emulator.numerics.native.addresses import halves, words

BLOCK = 16  # values per shared exponent
TRANSPOSED = 4 * EDGE  # rows and columns of a transposed block: whole cache lines are read and written


@njit(cache=True, nogil=True)
def flush_into(source, target):
    """NaN becomes infinity of its sign, denormals and -0 become +0."""
    for i in range(source.size):
        raw = source[i]
        size = min(raw & int32(0x7FFFFFFF), int32(0x7F800000))
        target[i] = size | (raw & int32(-0x80000000)) if size >= int32(0x00800000) else int32(0)


@njit(cache=True, nogil=True)
def flush_at(source, target, count):
    """`flush_into` over memory by its address."""
    flush_into(words(source, count), words(target, count))


@njit(cache=True, nogil=True)
def drop_denormals_at(source, target, count):
    """Denormals become zero of their sign, NaN is unchanged; by address."""
    raws, kept = words(source, count), words(target, count)
    for i in range(count):
        raw = raws[i]
        kept[i] = raw if (raw & int32(0x7FFFFFFF)) >= int32(0x00800000) else raw & int32(-0x80000000)


@njit(cache=True, nogil=True)
def mask_at(source, target, count, mask):
    """Each value's bits & mask, by address."""
    raws, kept = words(source, count), words(target, count)
    for i in range(count):
        kept[i] = raws[i] & mask


@njit(cache=True, nogil=True)
def flush_halves_at(source, target, count):
    """`flush_at` of bfloat16 values."""
    raws, flushed = halves(source, count), halves(target, count)
    for i in range(count):
        raw = raws[i]
        size = min(raw & uint16(0x7FFF), uint16(0x7F80))
        flushed[i] = uint16(size | (raw & uint16(0x8000))) if size >= uint16(0x0080) else uint16(0)


@njit(cache=True, nogil=True)
def gather_flushed(first, last, table, width, places, target):
    """Rows `places[first:last]` of a bfloat16 table, flushed, as float32."""
    for number in range(first, last):
        raws, flushed = halves(table + 2 * places[number] * width, width), words(target + 4 * number * width, width)
        for i in range(width):
            size = min(int32(raws[i] & uint16(0x7FFF)), int32(0x7F80))
            sign = int32(raws[i] & uint16(0x8000))
            flushed[i] = int32((size | sign) << int32(16)) if size >= int32(0x80) else int32(0)


@njit(cache=True, nogil=True)
def round_half_away_at(source, target, count):
    """float32 rounded to bfloat16, half away from zero, by address. NaN and infinity are only truncated."""
    raws, rounded = words(source, count), words(target, count)
    for i in range(count):
        raw = raws[i]
        is_finite = (raw & int32(0x7F800000)) != int32(0x7F800000)
        rounded[i] = (raw + (int32(0x8000) if is_finite else int32(0))) & int32(-0x10000)


@njit(cache=True, nogil=True)
def round_nearest_even_at(source, target, count):
    """float32 rounded to bfloat16, to nearest even, by address. NaN keeps its sign and becomes quiet."""
    raws, rounded = words(source, count), words(target, count)
    for i in range(count):
        raw = raws[i]
        near = raw + (int32(0x7FFF) + ((raw >> int32(16)) & int32(1)))
        quiet = raw | int32(0x400000)
        is_nan = (raw & int32(0x7FFFFFFF)) > int32(0x7F800000)
        rounded[i] = (quiet if is_nan else near) & int32(-0x10000)


@njit(cache=True, nogil=True)
def upper_halves_at(source, target, count):
    """The upper 16 bits of float32 values, by address."""
    raws, kept = words(source, count), halves(target, count)
    for i in range(count):
        kept[i] = uint16(raws[i] >> int32(16))


@njit(cache=True, nogil=True)
def widen_at(source, target, count):
    """bfloat16 values as float32, by address."""
    raws, wide = halves(source, count), words(target, count)
    for i in range(count):
        wide[i] = int32(raws[i]) << int32(16)


@njit(cache=True, nogil=True, inline="always")
def _nearest_even(raw):
    near = int32(raw + (int32(0x7FFF) + ((raw >> int32(16)) & int32(1))))
    quiet = raw | int32(0x400000)
    is_nan = (raw & int32(0x7FFFFFFF)) > int32(0x7F800000)
    return uint16((quiet if is_nan else near) >> int32(16))


@njit(cache=True, nogil=True)
def narrow_nearest_even_at(source, target, count):
    """`round_nearest_even_at` with 16-bit results."""
    raws, rounded = words(source, count), halves(target, count)
    for i in range(count):
        rounded[i] = _nearest_even(raws[i])


@njit(cache=True, nogil=True)
def narrow_transposed(first, last, source, target, rows, columns):
    """`narrow_nearest_even_at` of a transposed source [columns, rows]: rows `first` to `last` of the target."""
    raws, rounded = words(source, rows * columns), halves(target, rows * columns)
    even, bottom = columns // EDGE * EDGE, first + (last - first) // EDGE * EDGE
    for top in range(first, bottom, TRANSPOSED):
        for left in range(0, even, TRANSPOSED):
            for row in range(top, min(top + TRANSPOSED, bottom), EDGE):
                for column in range(left, min(left + TRANSPOSED, even), EDGE):
                    here, there = source + 4 * (column * rows + row), target + 2 * (row * columns + column)
                    transpose_narrow(here, 4 * rows, there, 2 * columns)
    for row in range(first, last):
        for column in range(even if row < bottom else 0, columns):
            rounded[row * columns + column] = _nearest_even(raws[column * rows + row])


@njit(cache=True, nogil=True)
def pack_blocks(source, target, bits, precise):
    """Rows quantised to block floats, as by the packer; `bits` of the mantissa: 7 or 3."""
    rows, width = source.shape
    target_bits = target.view(np.int32)
    top = 1 << (bits - 1)
    raws = np.empty(BLOCK, np.int64)
    scale = np.empty(1, np.float64)
    scale_bits = scale.view(np.int64)
    for row in range(rows):
        for start in range(0, width, BLOCK):
            count = min(BLOCK, width - start)
            shared = np.int64(0)
            for i in range(count):
                raw = np.int64(source[row, start + i]) & 0xFFFFFFFF
                if not precise:
                    raw = (raw + 0x10000) & 0xFFFE0000
                raws[i] = raw
                shared = max(shared, (raw >> 23) & 0xFF)
            scale_bits[0] = np.int64(1023 + shared - 126 - bits) << 52
            for i in range(count):
                raw = raws[i]
                exponent = (raw >> 23) & 0xFF
                shift = shared - exponent
                mantissa = ((raw >> 16) & 0x7F) | (0x80 if exponent else 0)
                kept = min((mantissa + (1 << shift)) >> (shift + 1), 127) if shift < 8 else 0
                if bits == 3:
                    kept >>= 4
                negative = raw >> 31
                if shared == 0xFF and kept >= top:
                    pattern = ((kept & (top - 1)) << (24 - bits)) | 0x7F800000
                    target_bits[row, start + i] = np.int32(pattern - 0x80000000 if negative else pattern)
                else:
                    value = np.float32(kept * scale[0])
                    target[row, start + i] = -value if negative and kept else value
