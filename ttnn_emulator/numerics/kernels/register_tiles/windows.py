"""The innermost loop of a convolution, in vector registers: some pixels of a line, and some of their channels.

It is the loop of `products` with an unpacked left operand: the part of a window in one image line is contiguous in
memory, with a fixed stride between the windows of neighbouring pixels.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from ttnn_emulator.numerics.kernels.register_tiles.products import (
    _POINTER,
    COLUMNS,
    LANES,
    _long,
    _Tile,
)
from ttnn_emulator.numerics.native.instruction_set import MULTIPLIES_PAIRS

PIXELS = 7 if LANES == 16 else 6  # of a line at a time: 7 divides common image sizes


class _WindowTile(_Tile):
    """Generates the loop."""

    def __init__(self, builder: ir.IRBuilder, steps: int, *, pairs: bool) -> None:
        super().__init__(builder, rows=PIXELS, pairs=pairs)
        self._steps = steps

    def windows(self, count: ir.Value, left: ir.Value, apart: ir.Value, right: ir.Value) -> list[list[ir.Value]]:
        """Sums of PIXELS windows, `apart` words from each other, times `count` rows of COLUMNS."""
        builder = self.builder
        pixels = [builder.gep(left, [builder.mul(apart, _long(row))]) for row in range(PIXELS)]

        def one_round(index: ir.Value, sums: list[list[ir.Value]]) -> list[list[ir.Value]]:
            line = builder.gep(right, [builder.mul(index, _long(COLUMNS))])
            here = [builder.gep(each, [index]) for each in pixels]
            for step in range(self._steps):
                sums = self.spread([self.at(each, step) for each in here], self.at(line, step * COLUMNS), sums)
            return sums

        return self.repeated(count, self._steps, one_round)


def _multiply_windows(steps: int, *, pairs: bool = False) -> Any:
    """An intrinsic; the loop is unrolled by `steps`, and `count` is a multiple of it.

    target [PIXELS, COLUMNS], rows `stride` floats apart, = or, with `add`, += windows × filters, by address.
    """

    def typed(context, count, left, apart, right, target, stride, add):
        def generate(target_context, builder, signature, arguments):
            count, left, apart, right, target, stride, add = arguments
            left, right, target = (builder.inttoptr(each, _POINTER) for each in (left, right, target))
            tile = _WindowTile(builder, steps, pairs=pairs)
            sums = tile.windows(count, left, apart, right)
            tile.put(sums, target, stride, add)
            return target_context.get_dummy_value()

        return types.void(*[types.int64] * 6, types.boolean), generate

    return intrinsic(typed)


UNROLLED = 4
multiply_windows = _multiply_windows(UNROLLED)
multiply_windows_one_by_one = _multiply_windows(1)
multiply_windows_of_pairs, multiply_windows_of_pairs_one_by_one = (
    _multiply_windows(steps, pairs=True) if MULTIPLIES_PAIRS else multiply_windows  # then unused
    for steps in (UNROLLED, 1)
)
