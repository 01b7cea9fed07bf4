"""Compiled loops of large matrix products in float32, on operands that may be held in 16 bits.

Operands are packed into panels that stay in the caches. Values of 16 bits are widened on the way, which costs nothing
more: a float32 copy of a large weight never exists. `register_tile` multiplies panels; each tile of the result gets its
bias, its rounding and its activation while it still is in the cache.
"""

from __future__ import annotations

import numpy as np
from numba import cfunc, int32, njit, types

from ttnn_emulator.numerics.addresses import floats, halves, longs, words
from ttnn_emulator.numerics.register_tile import COLUMNS, ROWS, UNROLLED, move_narrow, move_wide, multiply_tile
from ttnn_emulator.numerics.team import next_piece, own_number

INNER = 512  # of the inner dimension at a time: a panel of the right operand then fills the first-level cache
PANELS = 16  # panels of the left operand at a time: half of the second-level cache
WIDE, NARROW = 0, 16  # how far a stored value is shifted to become the bits of a float32
AS_IT_IS, ROUNDED, RELU = 0, 1, 2  # what becomes of a sum


@njit(cache=True, nogil=True, inline="always")
def padded(count):
    """The inner dimension as it is packed."""
    return -(-count // UNROLLED) * UNROLLED


@njit(cache=True, nogil=True)
def _pack(source, shift, mask, outer, strides, first, count, target, group, step):
    """`count` of the inner dimension from `first[1]` on of lines from `first[0]` on, in panels of `group` lines.

    Panels follow one another in `target`, `step` values apart; lines that are missing to the last one are zero. Where
    lines lie side by side all panels are walked along at once, since memory is read fastest in its order.
    """
    length = padded(count)
    panels = target.size // step
    base = first[0] * strides[0] + first[1] * strides[1]
    full = min(panels, (outer - first[0]) // group)
    if strides[0] == 1 and group == COLUMNS:
        narrow = shift == int32(NARROW)
        size = 2 if narrow else 4
        for k in range(count):
            line = source.ctypes.data + size * (base + k * strides[1])
            at = target.ctypes.data + 4 * k * COLUMNS
            if narrow:
                for panel in range(full):
                    move_narrow(line + size * panel * COLUMNS, at + 4 * panel * step, mask)
            else:
                for panel in range(full):
                    move_wide(line + size * panel * COLUMNS, at + 4 * panel * step, mask)
        for panel in range(full):
            target[panel * step + count * group : panel * step + length * group] = 0
    else:
        for panel in range(full):
            _pack_lines(source, shift, mask, strides, base + panel * group * strides[0], count, group, group,
                        target[panel * step : panel * step + length * group])  # fmt: skip
    if full < panels:
        lines = outer - first[0] - full * group
        _pack_lines(source, shift, mask, strides, base + full * group * strides[0], count, lines, group,
                    target[full * step : full * step + length * group])  # fmt: skip


@njit(cache=True, nogil=True)
def _pack_lines(source, shift, mask, strides, base, count, lines, group, target):
    if lines < group or count * group < target.size:
        target[:] = 0
    if lines == group:
        for k in range(count):
            at = base + k * strides[1]
            for j in range(group):
                target[k * group + j] = (int32(source[at + j * strides[0]]) << shift) & mask
    else:
        for j in range(lines):
            line = base + j * strides[0]
            for k in range(count):
                target[k * group + j] = (int32(source[line + k * strides[1]]) << shift) & mask


@njit(cache=True, nogil=True)
def pack_from(address, shift, mask, outer, inner, strides, first, count, target, group, step):
    room = (outer - 1) * strides[0] + (inner - 1) * strides[1] + 1
    if shift == int32(NARROW):
        _pack(halves(address, room), shift, mask, outer, strides, first, count, target, group, step)
    else:
        _pack(words(address, room), shift, mask, outer, strides, first, count, target, group, step)


@njit(cache=True, nogil=True)
def pack_left(address, shift, mask, rows, inner, row_stride, inner_stride, first, last, target):
    """Panels `first` to `last` of the left operand, all of the inner dimension, in pieces of INNER."""
    for panel in range(first, last):
        at = target + 4 * panel * ROWS * padded(inner)
        for start in range(0, inner, INNER):
            count = min(INNER, inner - start)
            piece = words(at + 4 * start * ROWS, padded(count) * ROWS)
            place = (panel * ROWS, start)
            strides = row_stride, inner_stride
            pack_from(address, shift, mask, rows, inner, strides, place, count, piece, ROWS, piece.size)


@njit(cache=True, nogil=True, inline="always")
def rounded_bits(raw):
    """float32 bits to bfloat16, half away from zero; NaN to infinity, denormals and -0 to +0."""
    size = min(int32(raw & int32(0x7FFFFFFF)), int32(0x7F800000))
    size = min(int32(int32(size + int32(0x8000)) & int32(-0x10000)), int32(0x7F800000))
    return int32(size | int32(raw & int32(-0x80000000))) if size >= int32(0x00800000) else int32(0)


@njit(cache=True, nogil=True)
def _finish(line, bits, bias, finish, table):
    """Bias, rounding and activation of a line; `bits` are its bit patterns."""
    if bias.size:
        for j in range(line.size):
            line[j] += bias[j]
    if finish != AS_IT_IS:
        for j in range(line.size):
            bits[j] = rounded_bits(bits[j])
    if finish == RELU:
        for j in range(line.size):
            bits[j] = max(bits[j], int32(0))
    if table.size:
        for j in range(line.size):
            line[j] = table[np.uint32(bits[j]) >> np.uint32(16)]


@njit(cache=True, nogil=True)
def finish_rows(first, last, target, columns, start, end, bias, finish, table):
    """`_finish` of columns `start` to `end` of some rows."""
    part = bias[start:end] if bias.size else bias
    for row in range(first, last):
        at = target + 4 * (row * columns + start)
        _finish(floats(at, end - start), words(at, end - start), part, finish, table)


@njit(cache=True, nogil=True, inline="always")
def room_for_right(columns, inner):
    """Values that `multiply_block` packs of the right operand. Panels are set apart, or they share cache lines."""
    return -(-columns // COLUMNS) * (min(padded(inner), INNER) + 1) * COLUMNS


@njit(cache=True, nogil=True)
def multiply_block(
    scratch, left, rows, inner, right, shift, mask, columns, inner_stride, column_stride, block, target, bias, finish,
    table,
):  # fmt: skip
    """All rows times columns `block[0]` to `block[1]` of the right operand; `left` is packed, `target` [rows, columns].

    scratch  `room_for_right` values that nobody else uses meanwhile
    """
    start, end = block
    panels = -(-rows // ROWS)
    width = -(-(end - start) // COLUMNS)
    corner = np.empty(ROWS * COLUMNS, np.float32)
    for first in range(0, inner, INNER):
        count = min(INNER, inner - first)
        length = padded(count)
        step = (length + 1) * COLUMNS
        strides = column_stride, inner_stride
        packed = words(scratch, width * step)
        pack_from(right, shift, mask, columns, inner, strides, (start, first), count, packed, COLUMNS, step)
        for top in range(0, panels, PANELS):
            bottom = min(top + PANELS, panels)
            for j in range(width):
                column = start + j * COLUMNS
                wide = min(COLUMNS, end - column)
                b = scratch + 4 * j * step
                for panel in range(top, bottom):
                    row = panel * ROWS
                    high = min(ROWS, rows - row)
                    a = left + 4 * (row * padded(inner) + first * ROWS)
                    c = target + 4 * (row * columns + column)
                    if high == ROWS and wide == COLUMNS:
                        multiply_tile(length, a, b, c, columns, first > 0)
                    else:
                        multiply_tile(length, a, b, corner.ctypes.data, COLUMNS, False)
                        _move_corner(corner, c, columns, high, wide, first > 0)
            if first + count == inner and (finish != AS_IT_IS or bias.size):
                finish_rows(top * ROWS, min(bottom * ROWS, rows), target, columns, start, end, bias, finish, table)


@njit(cache=True, nogil=True)
def _move_corner(corner, target, stride, rows, columns, add):
    for row in range(rows):
        line = floats(target + 4 * row * stride, columns)
        for j in range(columns):
            line[j] = corner[row * COLUMNS + j] + (line[j] if add else np.float32(0.0))


@njit(cache=True, nogil=True)
def multiply_batches(first, last, left, right, target, sizes, steps, strides, shifts, masks, finish):
    """Whole matrices `first` to `last` of a batch.

    sizes    rows, inner, columns
    steps    bytes from one matrix to the next: left, right, target
    strides  of the left operand (row, inner) and of the right (inner, column)
    """
    rows, inner, columns = sizes
    panels = -(-rows // ROWS)
    packed = np.empty(panels * ROWS * padded(inner), np.int32)
    scratch = np.empty(room_for_right(columns, inner), np.int32)
    nothing = np.empty(0, np.float32)
    for index in range(first, last):
        a, b, c = left + index * steps[0], right + index * steps[1], target + index * steps[2]
        pack_left(a, shifts[0], masks[0], rows, inner, strides[0], strides[1], 0, panels, packed.ctypes.data)
        multiply_block(
            scratch.ctypes.data, packed.ctypes.data, rows, inner, b, shifts[1], masks[1], columns, strides[2],
            strides[3], (np.int64(0), columns), c, nothing, finish, nothing,
        )  # fmt: skip


# -- whole products, by a team ----------------------------------------------------------------------------------------


@cfunc(types.void(types.int64), cache=True)
def pack_left_pieces(task):
    """`pack_left` of some panels after some others, until all are done.

    The task goes on with: panels of a piece and in all; the operand, its shift, mask, rows, inner dimension and their
    strides; and where panels are put.
    """
    given = longs(task, 13)
    while True:
        piece = next_piece(task)
        if piece >= given[1]:
            break
        first, last = piece * given[3], min((piece + 1) * given[3], given[4])
        pack_left(
            given[5], int32(given[6]), int32(given[7]), given[8], given[9], given[10], given[11], first, last, given[12]
        )


@cfunc(types.void(types.int64), cache=True)
def multiply_pieces(task):
    """`multiply_block` of some columns after some others, until all are done.

    The task goes on with: columns of a piece; the packed left operand, its rows and inner dimension; the right one, its
    shift, mask, columns and the strides of both dimensions; the target, how it is finished, address and size of bias
    and table; memory to pack the right operand into, and how much of it each thread takes.
    """
    given = longs(task, 21)
    step, columns = given[3], given[10]
    bias, table = floats(given[15], given[16]), floats(given[17], given[18])
    scratch = given[19] + own_number(task) * given[20]
    while True:
        piece = next_piece(task)
        if piece >= given[1]:
            break
        block = piece * step, min((piece + 1) * step, columns)
        multiply_block(
            scratch, given[4], given[5], given[6], given[7], int32(given[8]), int32(given[9]), columns, given[11],
            given[12], block, given[13], bias, given[14], table,
        )  # fmt: skip
