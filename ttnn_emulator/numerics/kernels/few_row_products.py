"""Compiled loops of products of a few rows, such as one token: the matrix is read once, in place, without packing."""

from __future__ import annotations

import numpy as np
from numba import int32, njit

from ttnn_emulator.numerics.kernels.packed_panels import NARROW
from ttnn_emulator.numerics.kernels.product_endings import end_rows
from ttnn_emulator.numerics.kernels.register_tiles.one_row import (
    LANES,
    VECTORS,
    narrow_line,
    narrow_lines,
    narrow_lines_masked,
    wide_line,
    wide_lines,
    wide_lines_masked,
)
from ttnn_emulator.numerics.native.addresses import floats, halves, longs, words
from ttnn_emulator.numerics.native.torch_threads import Loop, next_piece

MOST = 2  # rows; with more, packing pays off
LINES = 4  # lines of the matrix per load and store of a sum
TILE = VECTORS * LANES  # columns whose sums stay in registers
NEAR = 8192  # line stride in bytes up to which prefetching keeps up: then by column tiles, else by lines
SUMS = {"contract", "reassoc", "nsz"}  # fast-math flags: sums may be reordered, as in large products


@njit(cache=True, nogil=True)
def _left(address, shift, mask, count, stride, target):
    """Values of the left operand as contiguous float32, masked."""
    bits = target.view(np.int32)
    if shift == int32(NARROW):
        short = halves(address, (count - 1) * stride + 1)
        for k in range(count):
            bits[k] = (int32(short[k * stride]) << int32(16)) & mask
    else:
        long = words(address, (count - 1) * stride + 1)
        for k in range(count):
            bits[k] = long[k * stride] & mask


@njit(cache=True, nogil=True, inline="always")
def _seen(value, shift, mask):
    return np.int32((int32(value) << shift) & mask).view(np.float32)


@njit(nogil=True, cache=True, fastmath=SUMS)
def _add_lines(x, matrix, shift, mask, stride, start, sums):
    """sums += x @ matrix, for a row stride of `stride`."""
    whole = x.size - x.size % LINES
    for k in range(0, whole, LINES):
        at = start + k * stride
        a, b = matrix[at : at + sums.size], matrix[at + stride : at + stride + sums.size]
        at += 2 * stride
        c, d = matrix[at : at + sums.size], matrix[at + stride : at + stride + sums.size]
        u, v, w, z = x[k], x[k + 1], x[k + 2], x[k + 3]
        for j in range(sums.size):
            sums[j] += (
                u * _seen(a[j], shift, mask)
                + v * _seen(b[j], shift, mask)
                + w * _seen(c[j], shift, mask)
                + z * _seen(d[j], shift, mask)
            )
    for k in range(whole, x.size):
        at = start + k * stride
        for j in range(sums.size):
            sums[j] += x[k] * _seen(matrix[at + j], shift, mask)


@njit(nogil=True, cache=True, fastmath=SUMS)
def _dot_columns(x, matrix, shift, mask, stride, start, sums):
    """sums = x @ matrix, for a column stride of `stride`."""
    for j in range(sums.size):
        column = matrix[start + j * stride : start + j * stride + x.size]
        total = np.float32(0.0)
        for k in range(x.size):
            total += x[k] * _seen(column[k], shift, mask)
        sums[j] = total


@njit(nogil=True, cache=True)
def _add_tiles(x, matrix, shift, mask, stride, start, sums):
    """sums = x @ matrix for the columns that fill whole vectors; returns their number."""
    narrow = shift == int32(NARROW)
    size = 2 if narrow else 4
    line, apart = matrix.ctypes.data + size * start, size * stride
    column = 0
    while column + TILE <= sums.size:
        source, target = line + size * column, sums.ctypes.data + 4 * column
        if narrow and mask == int32(-1):
            narrow_lines(x.size, x.ctypes.data, source, apart, target, mask)
        elif narrow:
            narrow_lines_masked(x.size, x.ctypes.data, source, apart, target, mask)
        elif mask == int32(-1):
            wide_lines(x.size, x.ctypes.data, source, apart, target, mask)
        else:
            wide_lines_masked(x.size, x.ctypes.data, source, apart, target, mask)
        column += TILE
    while column + LANES <= sums.size:
        source, target = line + size * column, sums.ctypes.data + 4 * column
        if narrow:
            narrow_line(x.size, x.ctypes.data, source, apart, target, mask)
        else:
            wide_line(x.size, x.ctypes.data, source, apart, target, mask)
        column += LANES
    return column


@njit(cache=True, nogil=True)
def _product(x, matrix, shift, mask, inner_stride, column_stride, first, sums):
    if column_stride == 1:
        near = (2 if shift == int32(NARROW) else 4) * inner_stride <= NEAR
        done = _add_tiles(x, matrix, shift, mask, inner_stride, first, sums) if near and x.size else 0
        rest = sums[done:]
        rest[:] = np.float32(0.0)
        _add_lines(x, matrix, shift, mask, inner_stride, first + done, rest)
    else:
        _dot_columns(x, matrix, shift, mask, column_stride, first * column_stride, sums)


@njit(cache=True, nogil=True)
def multiply_rows(first, last, left, right, sizes, strides, shifts, masks, target, bias, ending, table):
    """[rows, inner] @ [inner, columns], columns `first` to `last`.

    sizes    rows, inner, columns
    strides  of the left operand (row, inner) and of the right (inner, column): one of the latter is 1
    """
    rows, inner, columns = sizes
    row_stride, step, inner_stride, column_stride = strides
    room = (inner - 1) * inner_stride + (columns - 1) * column_stride + 1
    x = np.empty(inner, np.float32)
    for row in range(rows):
        narrow = shifts[0] == int32(NARROW)
        _left(left + (2 if narrow else 4) * row * row_stride, shifts[0], masks[0], inner, step, x)
        sums = floats(target + 4 * (row * columns + first), last - first)
        if shifts[1] == int32(NARROW):
            matrix = halves(right, room)
            _product(x, matrix, int32(NARROW), masks[1], inner_stride, column_stride, first, sums)
        else:
            wide = words(right, room)
            _product(x, wide, int32(0), masks[1], inner_stride, column_stride, first, sums)
    end_rows(np.int64(0), rows, target, columns, first, last, bias, ending, table)


@Loop
def multiply_pieces(task):
    """`multiply_rows` of pieces of columns until none is left.

    Arguments in the task: columns per piece, operands and target, ending, addresses and sizes of bias and table,
    sizes, strides, shifts and masks.
    """
    fields = longs(task, 21)
    pieces, step, left, right, target, ending = fields[1], fields[3], fields[4], fields[5], fields[6], fields[7]
    bias, table = floats(fields[8], fields[9]), floats(fields[10], fields[11])
    sizes = fields[12], fields[13], fields[14]
    strides = fields[15], fields[16], fields[17], fields[18]
    shifts = int32(fields[19] & 0xFF), int32(fields[19] >> 8)
    masks = int32(fields[20] & 0xFFFFFFFF), int32(fields[20] >> 32)
    while True:
        piece = next_piece(task)
        if piece >= pieces:
            break
        last = min((piece + 1) * step, sizes[2])
        multiply_rows(piece * step, last, left, right, sizes, strides, shifts, masks, target, bias, ending, table)
