"""Compiled loops of attention that is too large for bit-exact emulation; see `programs.attention`.

A worker takes one head: it packs keys and values once, then computes scores, exponentials and weighted values for a few
rows of queries at a time, all in the cache. No queries × keys matrix is ever materialised.
"""

from __future__ import annotations

import math

import numpy as np
from numba import float32, int32, njit

from ttnn_emulator.numerics.kernels.packed_panels import length_of, pack
from ttnn_emulator.numerics.kernels.product_endings import rounded_bits
from ttnn_emulator.numerics.kernels.products import multiply_panels
from ttnn_emulator.numerics.kernels.register_tiles.products import COLUMNS, ROWS, multiply_tile
from ttnn_emulator.numerics.kernels.rows import bits_of, exponentials, float_of, largest, rounded_even, total
from ttnn_emulator.numerics.native.addresses import floats

ACCURATE, QUICK, QUICK_NARROW = 0, 1, 2  # which exponential; the last reads and returns bfloat16
UNPACKED, ROUNDED, CUT = 0, 1, 2  # how the packer rounds the result
MOST_ROWS = 8 * ROWS  # queries at a time …
ROOM = 1 << 15  # … and scores


@njit(cache=True, nogil=True)
def _powers(line, scale, slope, offset, function):
    """exp(scale × (x - largest)) in place; NaN counts as the largest. Returns the largest."""
    if function == QUICK_NARROW:
        for i in range(line.size):
            line[i] = rounded_even(line[i])
    most = largest(line)
    for i in range(line.size):
        distance = line[i] - most
        line[i] = distance if distance == distance else float32(0.0)
    if function == ACCURATE:
        exponentials(line, float32(0.0), scale)
    elif function == QUICK:
        for i in range(line.size):
            whole = min(max(line[i] * slope + offset, float32(0.0)), float32(32767.0))
            line[i] = float_of(int32(np.rint(whole)) << int32(15))
    else:
        for i in range(line.size):
            whole = min(max(rounded_even(line[i]) * slope + offset, float32(0.0)), float32(32767.0))
            line[i] = float_of((int32(np.rint(whole)) >> int32(1)) << int32(16))
    return most


@njit(cache=True, nogil=True)
def _pack_powers(line, mask, target, place, length):
    for k in range(line.size):
        target[k * ROWS + place] = float_of(bits_of(line[k]) & mask)
    for k in range(line.size, length):
        target[k * ROWS + place] = float32(0.0)


@njit(cache=True, nogil=True, error_model="numpy")
def _write(source, share, target, packing):
    if packing == ROUNDED:
        for i in range(target.size):
            target[i] = float_of(rounded_bits(bits_of(source[i] / share)))
    elif packing == CUT:
        for i in range(target.size):
            target[i] = float_of(rounded_bits(bits_of(source[i] / share) & int32(-0x10000)))
    else:
        for i in range(target.size):
            target[i] = source[i] / share


@njit(cache=True, nogil=True)
def attend(
    head,
    start,
    end,
    query,
    key,
    value,
    mask,
    sink,
    out,
    sizes,
    steps,
    shifts,
    masks,
    pairs,
    causal,
    offset,
    exp,
    packing,
):
    """Queries `start` to `end` of one head.

    query, key, value, out  addresses of the head's matrices: [queries, depth], [keys, depth], [keys, width]
    mask       address of the head's mask, or 0
    sink       [heads, queries] scores, or empty
    sizes      keys, depth, width
    steps      row strides: of query, key and value in values, of the mask in bytes
    masks      bits kept of queries, of exponentials, and of keys and values
    pairs      whether queries and keys are multiplied as pairs of bfloat16
    causal     a query attends to keys up to its own index plus `offset`
    exp        scale, slope and offset of the exponential, and which one
    """
    keys, depth, width = sizes
    scale, slope, shift, function = exp
    columns, wide = -(-keys // COLUMNS) * COLUMNS, -(-width // COLUMNS) * COLUMNS
    most_rows = max(min(MOST_ROWS, ROOM // columns // ROWS * ROWS), ROWS)
    deep, long = length_of(depth, pairs), length_of(keys, False)
    right = np.empty(columns * deep, np.int32)
    place = (np.int64(0), np.int64(0))
    # Typed values, not literals: numba would compile `pack` again for each literal, which takes ten seconds.
    beside, single = np.int64(1), np.bool_(False)
    pack(key, shifts[1], masks[2], pairs, keys, depth, (steps[1], beside), place, depth, right, COLUMNS, COLUMNS * deep)
    packed_values = np.empty(wide * long, np.int32)
    strides = (beside, steps[2])
    pack(value, shifts[2], masks[2], single, width, keys, strides, place, keys, packed_values, COLUMNS, COLUMNS * long)
    left = np.empty(most_rows * deep, np.int32)
    scores = np.empty((most_rows, columns), np.float32)
    powers = np.empty(most_rows * long, np.float32)
    weighted = np.empty((most_rows, wide), np.float32)
    shares = np.empty(most_rows, np.float32)
    for first in range(start, end, most_rows):
        rows = min(most_rows, end - first)
        panels = -(-rows // ROWS)
        part = left[: panels * ROWS * deep]
        place = (np.int64(first), np.int64(0))
        pack(query, shifts[0], masks[0], pairs, end, depth, (steps[0], beside), place, depth, part, ROWS, ROWS * deep)
        seen = min(keys, first + rows + offset) if causal else keys
        for j in range(-(-seen // COLUMNS)):
            b = right.ctypes.data + 4 * j * COLUMNS * deep
            for panel in range(panels):
                a = left.ctypes.data + 4 * panel * ROWS * deep
                c = scores.ctypes.data + 4 * (panel * ROWS * columns + j * COLUMNS)
                multiply_panels(pairs, deep, a, b, c, columns, False)
        length = length_of(seen, False)
        if rows < panels * ROWS:
            powers[(panels - 1) * ROWS * length : panels * ROWS * length] = 0
        for row in range(rows):
            line = scores[row, : min(seen, first + row + 1 + offset) if causal else seen]
            if mask:
                mask_line = floats(mask + (first + row) * steps[3], line.size)
                for k in range(line.size):
                    line[k] += mask_line[k]
            most = _powers(line, scale, slope, shift, function)
            shares[row] = total(line)
            if sink.size:
                shares[row] += float32(math.exp((sink[head, first + row] - most) * scale))
            panel_powers = powers[row // ROWS * ROWS * length : (row // ROWS + 1) * ROWS * length]
            _pack_powers(line, masks[1], panel_powers, row % ROWS, length)
        for j in range(wide // COLUMNS):
            b = packed_values.ctypes.data + 4 * j * COLUMNS * long
            for panel in range(panels):
                a = powers.ctypes.data + 4 * panel * ROWS * length
                c = weighted.ctypes.data + 4 * (panel * ROWS * wide + j * COLUMNS)
                multiply_tile(length, a, b, c, wide, False)
        for row in range(rows):
            target = floats(out + 4 * (first + row) * width, width)
            _write(weighted[row, :width], shares[row], target, packing)
