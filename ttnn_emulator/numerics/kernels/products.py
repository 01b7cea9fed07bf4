"""Compiled loops of large float32 matrix products, on operands that may be stored in 16 bits.

Operands are packed into panels that fit the caches, so a large weight is never copied to float32 as a whole.
`register_tiles.products` multiplies panels; bias, rounding and activation are applied to each tile of the result while
it is in the cache. If both operands are bfloat16 and the processor multiplies pairs of them, panels consist of `pairs`.
"""

from __future__ import annotations

import numpy as np
from numba import int32, njit

from ttnn_emulator.numerics.kernels.packed_panels import length_of, pack
from ttnn_emulator.numerics.kernels.product_endings import AS_IT_IS, end_rows
from ttnn_emulator.numerics.kernels.register_tiles.products import COLUMNS, ROWS, multiply_tile, multiply_tile_of_pairs
from ttnn_emulator.numerics.native.addresses import floats, longs, words
from ttnn_emulator.numerics.native.torch_threads import Loop, next_piece, own_number

INNER = 8192 // COLUMNS  # words of the inner dimension at a time: a right panel fills the L1 cache
PANELS = 16  # panels of the left operand at a time: half of the L2 cache


@njit(cache=True, nogil=True, inline="always")
def step_of(pairs):
    """Values of the inner dimension processed at a time."""
    return 2 * INNER if pairs else INNER


@njit(cache=True, nogil=True)
def pack_left(address, shift, mask, pairs, rows, inner, row_stride, inner_stride, first, last, target):
    """Panels `first` to `last` of the left operand, all of the inner dimension, in pieces of `step_of`."""
    for panel in range(first, last):
        at = target + 4 * panel * ROWS * length_of(inner, pairs)
        for start in range(0, inner, step_of(pairs)):
            count = min(step_of(pairs), inner - start)
            piece = words(at + 4 * length_of(start, pairs) * ROWS, length_of(count, pairs) * ROWS)
            place = (panel * ROWS, start)
            strides = row_stride, inner_stride
            pack(address, shift, mask, pairs, rows, inner, strides, place, count, piece, ROWS, piece.size)


@njit(cache=True, nogil=True, inline="always")
def room_for_right(columns, inner, pairs):
    """Words of the right operand that `multiply_block` packs. Panels are padded to avoid cache conflicts."""
    return -(-columns // COLUMNS) * (min(length_of(inner, pairs), INNER) + 1) * COLUMNS


@njit(cache=True, nogil=True)
def multiply_block(
    scratch, left, pairs, rows, inner, right, shift, mask, columns, inner_stride, column_stride, block, target, bias,
    ending, table,
):  # fmt: skip
    """All rows times columns `block[0]` to `block[1]` of the right operand; `left` is packed, `target` [rows, columns].

    scratch  `room_for_right` words for this call alone
    """
    start, end = block
    panels = -(-rows // ROWS)
    width = -(-(end - start) // COLUMNS)
    corner = np.empty(ROWS * COLUMNS, np.float32)
    for first in range(0, inner, step_of(pairs)):
        count = min(step_of(pairs), inner - first)
        length = length_of(count, pairs)
        step = (length + 1) * COLUMNS
        strides = column_stride, inner_stride
        packed = words(scratch, width * step)
        pack(right, shift, mask, pairs, columns, inner, strides, (start, first), count, packed, COLUMNS, step)
        for top in range(0, panels, PANELS):
            bottom = min(top + PANELS, panels)
            for j in range(width):
                column = start + j * COLUMNS
                wide = min(COLUMNS, end - column)
                b = scratch + 4 * j * step
                for panel in range(top, bottom):
                    row = panel * ROWS
                    high = min(ROWS, rows - row)
                    a = left + 4 * (row * length_of(inner, pairs) + length_of(first, pairs) * ROWS)
                    c = target + 4 * (row * columns + column)
                    if high == ROWS and wide == COLUMNS:
                        multiply_panels(pairs, length, a, b, c, columns, first > 0)
                    else:
                        multiply_panels(pairs, length, a, b, corner.ctypes.data, COLUMNS, False)
                        _move_corner(corner, c, columns, high, wide, first > 0)
            if first + count == inner and (ending != AS_IT_IS or bias.size):
                end_rows(top * ROWS, min(bottom * ROWS, rows), target, columns, start, end, bias, ending, table)


@njit(cache=True, nogil=True, inline="always")
def multiply_panels(pairs, length, left, right, target, stride, add):
    """A tile of the result: the product of two panels, or with `add`, the old tile plus the product."""
    if pairs:
        multiply_tile_of_pairs(length, left, right, target, stride, add)
    else:
        multiply_tile(length, left, right, target, stride, add)


@njit(cache=True, nogil=True)
def _move_corner(corner, target, stride, rows, columns, add):
    for row in range(rows):
        line = floats(target + 4 * row * stride, columns)
        for j in range(columns):
            line[j] = corner[row * COLUMNS + j] + (line[j] if add else np.float32(0.0))


@njit(cache=True, nogil=True)
def multiply_batches(first, last, left, right, target, pairs, sizes, steps, strides, shifts, masks, ending):
    """Products `first` to `last` of a batch.

    sizes    rows, inner, columns
    steps    bytes from one matrix to the next: left, right, target
    strides  of the left operand (row, inner) and of the right (inner, column)
    """
    rows, inner, columns = sizes
    panels = -(-rows // ROWS)
    packed = np.empty(panels * ROWS * length_of(inner, pairs), np.int32)
    scratch = np.empty(room_for_right(columns, inner, pairs), np.int32)
    nothing = np.empty(0, np.float32)
    for index in range(first, last):
        a, b, c = left + index * steps[0], right + index * steps[1], target + index * steps[2]
        pack_left(a, shifts[0], masks[0], pairs, rows, inner, strides[0], strides[1], 0, panels, packed.ctypes.data)
        multiply_block(
            scratch.ctypes.data, packed.ctypes.data, pairs, rows, inner, b, shifts[1], masks[1], columns, strides[2],
            strides[3], (np.int64(0), columns), c, nothing, ending, nothing,
        )  # fmt: skip


# -- products on several threads--------------------------------------------------------------------------------------


@Loop
def pack_left_pieces(task):
    """`pack_left` of pieces of panels until none is left.

    Arguments in the task: panels per piece and in total; the operand, its shift, mask, whether it is packed in pairs,
    rows, inner dimension and their strides; the address of the panels.
    """
    fields = longs(task, 14)
    while True:
        piece = next_piece(task)
        if piece >= fields[1]:
            break
        first, last = piece * fields[3], min((piece + 1) * fields[3], fields[4])
        pack_left(
            fields[5], int32(fields[6]), int32(fields[7]), fields[8] != 0, fields[9], fields[10], fields[11],
            fields[12], first, last, fields[13],
        )  # fmt: skip


@Loop
def multiply_pieces(task):
    """`multiply_block` of pieces of columns until none is left.

    Arguments in the task: columns per piece; the packed left operand, whether in pairs, its rows and inner dimension;
    the right operand, its shift, mask, columns and both strides; the target, ending, addresses and sizes of bias and
    table; the scratch memory for the packed right operand, and its size per thread.
    """
    fields = longs(task, 22)
    step, columns = fields[3], fields[11]
    bias, table = floats(fields[16], fields[17]), floats(fields[18], fields[19])
    scratch = fields[20] + own_number(task) * fields[21]
    while True:
        piece = next_piece(task)
        if piece >= fields[1]:
            break
        block = piece * step, min((piece + 1) * step, columns)
        multiply_block(
            scratch, fields[4], fields[5] != 0, fields[6], fields[7], fields[8], int32(fields[9]), int32(fields[10]),
            columns, fields[12], fields[13], block, fields[14], bias, fields[15], table,
        )  # fmt: skip
