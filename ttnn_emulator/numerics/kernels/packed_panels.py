"""Compiled loops that pack operands of a product into panels, as `register_tiles.products` reads them.

A panel interleaves some lines of an operand, rows of the left or columns of the right one, along the inner dimension:
the first word of each line, then the second word of each. 16-bit values are widened while packing, or packed in pairs
if the processor multiplies pairs, at no extra cost.
"""

from __future__ import annotations

from numba import int32, njit

from ttnn_emulator.numerics.kernels.register_tiles.products import (
    COLUMNS,
    UNROLLED,
    move_narrow,
    move_narrow_pairs,
    move_wide,
    move_wide_pairs,
)
from ttnn_emulator.numerics.native.addresses import halves, words

WIDE, NARROW = 0, 16  # left shift that turns a stored value into float32 bits


@njit(cache=True, nogil=True, inline="always")
def length_of(count, pairs):
    """Words per line of a panel."""
    filled = (count + 1) // 2 if pairs else count
    return -(-filled // UNROLLED) * UNROLLED


@njit(cache=True, nogil=True)
def pack(address, shift, mask, pairs, outer, inner, strides, first, count, target, group, step):
    """Pack lines from `first[0]` on, `count` values each from `first[1]` on, in panels of `group` lines.

    address  of the operand, with `outer` lines of `inner` values
    mask     bits kept of a value; for pairs, only of the upper half
    target   receives the panels, `step` words apart; missing lines of the last panel are zero
    """
    room = (outer - 1) * strides[0] + (inner - 1) * strides[1] + 1
    if shift == int32(NARROW):
        _pack(halves(address, room), shift, mask, pairs, outer, strides, first, count, target, group, step)
    else:
        _pack(words(address, room), shift, mask, pairs, outer, strides, first, count, target, group, step)


@njit(cache=True, nogil=True)
def _pack(source, shift, mask, pairs, outer, strides, first, count, target, group, step):
    length = length_of(count, pairs)
    panels = target.size // step
    base = first[0] * strides[0] + first[1] * strides[1]
    full = min(panels, (outer - first[0]) // group)
    if strides[0] == 1 and group == COLUMNS:
        _pack_side_by_side(source, shift, mask, pairs, base, strides[1], count, target, full, step)
    else:
        for panel in range(full):
            _pack_lines(source, shift, mask, pairs, strides, base + panel * group * strides[0], count, group, group,
                        target[panel * step : panel * step + length * group])  # fmt: skip
    if full < panels:
        lines = outer - first[0] - full * group
        _pack_lines(source, shift, mask, pairs, strides, base + full * group * strides[0], count, lines, group,
                    target[full * step : full * step + length * group])  # fmt: skip


@njit(cache=True, nogil=True)
def _pack_side_by_side(source, shift, mask, pairs, base, stride, count, target, panels, step):
    """Pack all panels at once, so that memory is read sequentially."""
    narrow = shift == int32(NARROW)
    size = 2 if narrow else 4
    filled = (count + 1) // 2 if pairs else count
    for k in range(filled):
        at = target.ctypes.data + 4 * k * COLUMNS
        line = source.ctypes.data + size * (base + (2 * k if pairs else k) * stride)
        if pairs:
            both = 2 * k + 1 < count
            following, rest = line + size * stride if both else line, mask if both else int32(0)
            if narrow:
                for panel in range(panels):
                    here = size * panel * COLUMNS
                    move_narrow_pairs(line + here, following + here, at + 4 * panel * step, mask, rest)
            else:
                for panel in range(panels):
                    here = size * panel * COLUMNS
                    move_wide_pairs(line + here, following + here, at + 4 * panel * step, mask, rest)
        elif narrow:
            for panel in range(panels):
                move_narrow(line + size * panel * COLUMNS, at + 4 * panel * step, mask)
        else:
            for panel in range(panels):
                move_wide(line + size * panel * COLUMNS, at + 4 * panel * step, mask)
    length = length_of(count, pairs)
    for panel in range(panels):
        target[panel * step + filled * COLUMNS : panel * step + length * COLUMNS] = 0


@njit(cache=True, nogil=True)
def _pack_lines(source, shift, mask, pairs, strides, base, count, lines, group, target):
    """Pack one panel of lines with any stride."""
    filled = (count + 1) // 2 if pairs else count
    if lines < group or filled * group < target.size:
        target[:] = 0
    if pairs:
        for k in range(count // 2):
            at = base + 2 * k * strides[1]
            for j in range(lines):
                lower = (int32(source[at + j * strides[0]]) << shift) & mask
                upper = (int32(source[at + strides[1] + j * strides[0]]) << shift) & mask
                target[k * group + j] = ((lower >> int32(16)) & int32(0xFFFF)) | upper
        if count % 2:
            at = base + (count - 1) * strides[1]
            for j in range(lines):
                lower = (int32(source[at + j * strides[0]]) << shift) & mask
                target[(filled - 1) * group + j] = (lower >> int32(16)) & int32(0xFFFF)
    elif lines == group:
        for k in range(count):
            at = base + k * strides[1]
            for j in range(group):
                target[k * group + j] = (int32(source[at + j * strides[0]]) << shift) & mask
    else:
        for j in range(lines):
            line = base + j * strides[0]
            for k in range(count):
                target[k * group + j] = (int32(source[line + k * strides[1]]) << shift) & mask
