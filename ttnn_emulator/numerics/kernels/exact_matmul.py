"""Compiled loops of a bit-exact matrix product, eight lanes at a time; see `matrix_unit`.

The chip's integer arithmetic is emulated in float32, one panel of columns at once. Products of two mantissa parts are
exact. Adding a number to a much larger power of two rounds it to a multiple of a chosen unit, and a prior nudge by
2^-20 of itself breaks ties the way the chip does. So one multiply-add aligns, rounds and accumulates a product.

Everything is scaled by a power of two (`lift`, added to every exponent) so that no unit leaves the range of float32.
"""

from __future__ import annotations

import numpy as np
from numba import float32, float64, int32, njit

TILE = 32
GROUP = 8  # products that share an exponent
MAX_PANEL = 64

TOP = 197  # exponent field to which the largest product is scaled
LOWEST = 49  # lowest exponent field of a group of products
EMPTY_ROW, EMPTY_COLUMN = -20000, -10000  # exponents of zeros, never the largest
NUDGE = np.float32(2.0**-20)
NUDGE64 = 2.0**-40
UP = np.float32(1.0 + 2.0**-20)
KEEP, RELOAD, ALL_IN_L1 = 0, 1, 2  # where the sums of blocks are accumulated, see `multiply`


# -- packing ----------------------------------------------------------------------------------------------------------


_EXPONENT_LOCALS = dict.fromkeys("exponent least most".split(), int32)


@njit(cache=True, nogil=True, locals=_EXPONENT_LOCALS)
def _exponents(bits):
    """Smallest and largest exponent field of the nonzero values; (256, 0) if there are none."""
    least, most = int32(256), int32(0)
    for row in range(bits.shape[0]):
        line = bits[row]
        for column in range(line.size):
            exponent = (line[column] >> int32(23)) & int32(255)
            most = max(most, exponent)
            exponent = exponent if exponent else int32(256)
            least = min(least, exponent)
    return least, most


_PACK_LOCALS = dict.fromkeys("raw exponent mantissa scale".split(), int32) | {"size": float32}


@njit(cache=True, nogil=True, locals=_PACK_LOCALS)
def _pack_row(source, keep, most, high, low, exponents):
    """A row of in0: the upper 7 and lower 4 bits of the mantissas as floats, and exponents."""
    for k in range(source.size):
        raw = source[k] & keep
        exponent = (raw >> int32(23)) & int32(255)
        mantissa = ((raw >> int32(13)) & int32(0x3FF)) | int32(0x400)
        scale = ((exponent - most + int32(127)) << int32(23)) | (raw & int32(-0x80000000))
        scale = scale if exponent else int32(0)
        size = np.int32(scale).view(np.float32)
        high[k] = float32(mantissa >> int32(4)) * size
        low[k] = float32(mantissa & int32(15)) * float32(2.0**-4) * size
        exponents[k] = exponent + int32(TOP) - most if exponent else int32(EMPTY_ROW)


@njit(cache=True, nogil=True, locals=_PACK_LOCALS)
def _pack_piece(source, keep, most, high, low, exponents):
    """A piece of a row of in1: the upper 5 and next 5 bits of the mantissas as nudged floats, and exponents."""
    for j in range(source.size):
        raw = source[j] & keep
        exponent = (raw >> int32(23)) & int32(255)
        mantissa = ((raw >> int32(13)) & int32(0x3FF)) | int32(0x400)
        scale = ((exponent - most + int32(TOP - 10)) << int32(23)) | (raw & int32(-0x80000000))
        scale = scale if exponent else int32(0)
        size = np.int32(scale).view(np.float32)
        high[j] = float32(mantissa >> int32(6)) * UP * size
        low[j] = float32((mantissa >> int32(1)) & int32(31)) * (float32(2.0**-5) * UP) * size
        exponents[j] = exponent - most if exponent else int32(EMPTY_COLUMN)


@njit(cache=True, nogil=True)
def _pack_columns(bits, transposed, start, end, keep, most, parts, exponents):
    """Columns of in1 [K, N], or [N, K] if `transposed`, in panels."""
    width = exponents.shape[2]
    gathered = np.empty(width, np.int32)
    for panel in range(exponents.shape[0]):
        first = start + panel * width
        count = min(width, end - first)
        for k in range(bits.shape[1] if transposed else bits.shape[0]):
            high, low, lead = parts[0, panel, k, :count], parts[1, panel, k, :count], exponents[panel, k, :count]
            if transposed:
                for j in range(count):
                    gathered[j] = bits[first + j, k]
                _pack_piece(gathered[:count], keep, most, high, low, lead)
            else:
                _pack_piece(bits[k, first : first + count], keep, most, high, low, lead)


@njit(cache=True, nogil=True)
def _packed(in0, in1, transposed, start, end, keep, result):
    """in0 and columns of in1 packed, and the lift: 0 if exponents are too far apart, -1 if one is all zeros."""
    rows, inner = in0.shape
    columns = end - start
    padded = -(-inner // TILE) * TILE
    width = min(MAX_PANEL, -(-columns // GROUP) * GROUP)
    panels = -(-columns // width)
    least0, most0 = _exponents(in0)
    least1, most1 = _exponents(in1)
    lift = TOP - (most0 + most1 - 127)
    least, most = _exponents(result)
    fits = (
        most0 + most1 < 350  # no sum overflows
        and least0 + least1 - most0 - most1 >= LOWEST - TOP
        and (most == 0 or (least + lift > 24 and most + lift < 250))
        and most0 - least0 < 120
        and most1 - least1 < 180
    )
    left = np.zeros((2, rows, padded), np.float32)
    left_exponents = np.full((rows, padded), EMPTY_ROW, np.int16)
    right = np.zeros((2, panels, padded, width), np.float32)
    right_exponents = np.full((panels, padded, width), EMPTY_COLUMN, np.int16)
    if not most0 or not most1:
        lift = -1
    elif fits:
        for row in range(rows):
            _pack_row(in0[row], keep, np.int32(most0), left[0, row], left[1, row], left_exponents[row])
        _pack_columns(in1, transposed, start, end, keep, np.int32(most1), right, right_exponents)
    else:
        lift = 0
    return (left, left_exponents), (right, right_exponents), lift


# -- one step ---------------------------------------------------------------------------------------------------------
# Locals are typed because numba would widen them to 64 bits, which halves the lanes of a vector instruction.


@njit(cache=True, nogil=True, inline="never")
def _largest(row, panel, tops, magic):
    """The largest exponent of each group of products, and the power of two that rounds to its unit."""
    e0, e1, e2, e3, e4, e5, e6, e7 = row[0], row[1], row[2], row[3], row[4], row[5], row[6], row[7]
    for j in range(tops.size):
        first = max(max(e0 + panel[0, j], e1 + panel[1, j]), max(e2 + panel[2, j], e3 + panel[3, j]))
        second = max(max(e4 + panel[4, j], e5 + panel[5, j]), max(e6 + panel[6, j], e7 + panel[7, j]))
        tops[j] = max(first, second)
    for j in range(tops.size):
        magic[j] = ((max(int32(tops[j]), int32(LOWEST)) + int32(13)) << int32(23)) | int32(0x400000)


@njit(cache=True, nogil=True, inline="never", fastmath={"contract"})
def _sum(row, panel, magic, scale, sums):
    """The sum of eight products per column, each rounded half away from zero to the group's unit."""
    f0, f1, f2, f3, f4, f5, f6, f7 = row[0], row[1], row[2], row[3], row[4], row[5], row[6], row[7]
    for j in range(sums.size):
        large = magic[j] * scale
        total = large + f0 * panel[0, j]
        total = total + f1 * panel[1, j]
        total = total + f2 * panel[2, j]
        total = total + f3 * panel[3, j]
        total = total + f4 * panel[4, j]
        total = total + f5 * panel[5, j]
        total = total + f6 * panel[6, j]
        total = total + f7 * panel[7, j]
        sums[j] = total - large


_ALIGN_LOCALS = dict.fromkeys("first second dest least".split(), int32)


@njit(cache=True, nogil=True, inline="never", locals=_ALIGN_LOCALS)
def _align(tops0, tops1, less, lift, sums0, sums1, dest_bits, aligned):
    """The common exponent of two groups and the destination; groups that underflow are dropped."""
    least = int32(lift)
    for j in range(aligned.size):
        first = int32(tops0[j]) - less
        second = int32(tops1[j]) - less
        sums0[j] = sums0[j] if first > least else float32(0.0)
        sums1[j] = sums1[j] if second > least else float32(0.0)
        dest = (dest_bits[j] >> int32(23)) & int32(255)
        aligned[j] = max(max(max(first, second), dest), int32(1)) << int32(23)


_ADD_LOCALS = dict.fromkeys("unit coarse x y d".split(), float32) | {"raw": int32}


@njit(cache=True, nogil=True, inline="never", fastmath={"contract"}, locals=_ADD_LOCALS)
def _add_16(sums0, sums1, aligned, dest, dest_bits, lift):
    """Two sums added to a bfloat16 destination: each term is rounded to 23 bits, then to 10; the total to 8."""
    for j in range(dest.size):
        unit = aligned[j] * float32(1.5)
        coarse = unit * float32(8192.0)
        x, y, d = sums0[j], sums1[j], dest[j]
        x = x + abs(x) * NUDGE
        x = (x + unit) - unit
        x = x + abs(x) * NUDGE
        x = (x + coarse) - coarse
        y = y + abs(y) * NUDGE
        y = (y + unit) - unit
        y = y + abs(y) * NUDGE
        y = (y + coarse) - coarse
        d = d + d * NUDGE
        d = (d + unit) - unit
        d = d + d * NUDGE
        d = (d + coarse) - coarse
        dest[j] = (d + x) + y
    for j in range(dest.size):
        raw = (dest_bits[j] + int32(0x8000)) & int32(-0x10000)
        dest_bits[j] = raw if ((raw >> int32(23)) & int32(255)) > lift else int32(0)


_ADD_32_LOCALS = dict.fromkeys("one unit x y d".split(), float64) | {"raw": int32}


@njit(cache=True, nogil=True, inline="never", locals=_ADD_32_LOCALS)
def _add_32(sums0, sums1, aligned, dest, dest_bits, lift):
    """Two sums added to a float32 destination: each term is rounded to 23 bits, the total to 24.

    A total of minus one unit is 2^27 times too large: the chip miscounts the leading sign bits of -1.
    """
    for j in range(dest.size):
        one = float64(aligned[j]) * 2.0**-23
        unit = one * (1.5 * 2.0**52)
        x, y, d = float64(sums0[j]), float64(sums1[j]), float64(dest[j])
        x = ((x + abs(x) * NUDGE64) + unit) - unit
        y = ((y + abs(y) * NUDGE64) + unit) - unit
        d = ((d + d * NUDGE64) + unit) - unit
        d = (d + x) + y
        d = d * 2.0**27 if d == -one else d + d * NUDGE64
        dest[j] = float32(d)
    for j in range(dest.size):
        raw = dest_bits[j]
        dest_bits[j] = raw if ((raw >> int32(23)) & int32(255)) > lift else int32(0)


@njit(cache=True, nogil=True)
def _add_in_l1(dest, in_l1, in_l1_bits, fp32_acc, lift):
    """The packer adds the destination to L1, rounded to nearest even."""
    for j in range(dest.size):
        in_l1[j] = in_l1[j] + dest[j]
        raw = in_l1_bits[j]
        if not fp32_acc:
            raw = (raw + 0x7FFF + ((raw >> 16) & 1)) & -0x10000
        in_l1_bits[j] = raw if ((raw >> 23) & 255) > lift else 0


@njit(cache=True, nogil=True)
def _multiply_row(
    row_parts, row_exponents, column_parts, column_exponents, result, scratch, phases, fp32_acc, block, mode, lift
):
    """One row of in0 times one panel of in1; `result` is the initial destination and receives the final one."""
    tops, magic_bits, sums, aligned_bits, dest, in_l1 = scratch
    columns = result.size  # the last panel is narrower than `dest`
    magic, aligned = magic_bits.view(np.float32), aligned_bits.view(np.float32)
    dest_bits, in_l1_bits = dest.view(np.int32), in_l1.view(np.int32)
    in_l1[:] = 0.0
    for j in range(columns):
        dest_bits[j] = result[j] + (lift << 23) if result[j] & 0x7F800000 else 0
    inner = row_exponents.size
    tiles = inner // TILE
    last_block = ((tiles - 1) // block) * block
    for tile in range(tiles):
        start = tile * TILE
        if mode == RELOAD and tile and tile == last_block:
            dest[:] = in_l1
        for group in range(4):
            at = start + GROUP * group
            end = at + GROUP
            _largest(row_exponents[at:end], column_exponents[at:end], tops[group], magic_bits[group])
        for phase in range(phases):
            less = (5 if phase & 1 else 0) + (7 if phase & 2 else 0)
            scale = np.float32(2.0**-less)
            left, right = row_parts[phase >> 1], column_parts[phase & 1]
            for step in range(2):
                for half in range(2):
                    group = 2 * step + half
                    at = start + GROUP * group
                    _sum(left[at : at + GROUP], right[at : at + GROUP], magic[group], scale, sums[half])
                _align(tops[2 * step], tops[2 * step + 1], less, lift, sums[0], sums[1], dest_bits, aligned_bits)
                if fp32_acc:
                    _add_32(sums[0], sums[1], aligned, dest, dest_bits, lift)
                else:
                    _add_16(sums[0], sums[1], aligned, dest, dest_bits, lift)
        ends = (tile + 1) % block == 0 or tile == tiles - 1
        if mode != KEEP and ends and (mode == ALL_IN_L1 or tile < last_block):
            _add_in_l1(dest, in_l1, in_l1_bits, fp32_acc, lift)
            dest[:] = 0.0
    ended = in_l1_bits if mode == ALL_IN_L1 else dest_bits
    for j in range(columns):
        result[j] = ended[j] - (lift << 23) if ended[j] else 0


@njit(cache=True, nogil=True)
def multiply(in0, in1, transposed, start, end, keep, result, phases, fp32_acc, block, mode):
    """in0 [M, K] times columns from `start` to `end` of in1 into those of `result` [M, N]; all are bit patterns.

    in1     [K, N], or [N, K] if `transposed`
    keep    mask of the operand bits that the source registers keep
    result  the initial destination; receives the final one
    block   tiles of the inner dimension that are summed in the destination before it is packed to L1
    mode    KEEP: never packed; RELOAD: all blocks but the last are accumulated in L1, and the last starts from there;
            ALL_IN_L1: all blocks are accumulated in L1
    Returns False, without effect, if the operands' exponents are too far apart.
    """
    rows, columns, lift = _packed(in0, in1, transposed, start, end, keep, result)
    if lift <= 0:
        return lift < 0  # zeros do not change the destination
    row_parts, row_exponents = rows
    column_parts, column_exponents = columns
    width = column_exponents.shape[2]
    scratch = (
        np.empty((4, width), np.int16),
        np.empty((4, width), np.int32),
        np.empty((2, width), np.float32),
        np.empty(width, np.int32),
        np.zeros(width, np.float32),
        np.empty(width, np.float32),
    )
    for panel in range(column_exponents.shape[0]):
        first = start + panel * width
        for row in range(result.shape[0]):
            _multiply_row(
                row_parts[:, row],
                row_exponents[row],
                column_parts[:, panel],
                column_exponents[panel],
                result[row, first : min(first + width, end)],
                scratch,
                phases,
                fp32_acc,
                block,
                mode,
                lift,
            )
    return True
