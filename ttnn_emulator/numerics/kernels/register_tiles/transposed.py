"""Tiles of a matrix, transposed while rounding to bfloat16, in vector registers: torch stores weights transposed.

Transposing a large matrix value by value takes longer than reading it from memory.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

EDGE = 8  # rows and columns of a tile

_INT, _LONG = ir.IntType(32), ir.IntType(64)
_WIDE, _NARROW = ir.VectorType(_INT, EDGE), ir.VectorType(ir.IntType(16), EDGE)


def _all(value: int) -> ir.Constant:
    return ir.Constant(_WIDE, [value] * EDGE)


def _rounded(builder: ir.IRBuilder, raw: ir.Value) -> ir.Value:
    """float32 bits rounded to bfloat16 bits, to nearest even; NaN stays NaN."""
    odd = builder.and_(builder.lshr(raw, _all(16)), _all(1))
    near = builder.add(raw, builder.add(odd, _all(0x7FFF)))
    is_nan = builder.icmp_signed(">", builder.and_(raw, _all(0x7FFFFFFF)), _all(0x7F800000))
    kept = builder.select(is_nan, builder.or_(raw, _all(0x400000)), near)
    return builder.trunc(builder.lshr(kept, _all(16)), _NARROW)


def _transposed(builder: ir.IRBuilder, lines: list[ir.Value]) -> list[ir.Value]:
    """Transpose a square by interleaving the two halves of its lines, log2(EDGE) times."""
    half = EDGE // 2
    lower = ir.Constant(_WIDE, [each for lane in range(half) for each in (lane, lane + EDGE)])
    upper = ir.Constant(_WIDE, [each for lane in range(half, EDGE) for each in (lane, lane + EDGE)])
    for _ in range(EDGE.bit_length() - 1):
        pairs = list(zip(lines[:half], lines[half:]))
        lines = [builder.shuffle_vector(one, other, which) for one, other in pairs for which in (lower, upper)]
    return lines


def _transpose_narrow(context, source, source_stride, target, target_stride):
    """target [EDGE, EDGE] of bfloat16 = the transposed float32 at `source`; addresses, and line strides in bytes."""

    def generate(target_context, builder, signature, arguments):
        source, source_stride, target, target_stride = arguments
        lines = []
        for line in range(EDGE):
            place = builder.add(source, builder.mul(source_stride, ir.Constant(_LONG, line)))
            lines.append(_rounded(builder, builder.load(builder.inttoptr(place, _WIDE.as_pointer()), align=4)))
        for line, values in enumerate(_transposed(builder, lines)):
            place = builder.add(target, builder.mul(target_stride, ir.Constant(_LONG, line)))
            builder.store(values, builder.inttoptr(place, _NARROW.as_pointer()), align=2)
        return target_context.get_dummy_value()

    return types.void(*[types.int64] * 4), generate


transpose_narrow: Any = intrinsic(_transpose_narrow)
