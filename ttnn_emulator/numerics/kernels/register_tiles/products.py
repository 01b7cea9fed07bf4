"""The innermost loops of a float32 matrix product, in vector registers.

A tile of ROWS × COLUMNS sums stays in registers while one column of the left operand and one row of the right are read
at a time; LLVM selects the instructions. Operands must be packed: the left one in groups of ROWS words, the right one
in groups of COLUMNS words, both padded with zeros to a multiple of UNROLLED groups.

A word is a float32 or, if the processor supports it, a pair of bfloat16 that are neighbours in the inner dimension:
their products are exact and accumulated in float32, at twice the speed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import llvmlite.binding as llvm
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from ttnn_emulator.numerics.native.instruction_set import FLOATS, MULTIPLIES_PAIRS

# Sums, two vectors and a broadcast value fill the registers: 16 registers of 8 floats, or 32 of 16.
ROWS = 12 if FLOATS == 16 else 6
LANES = FLOATS
VECTORS = 2
COLUMNS = LANES * VECTORS
UNROLLED = 4
AHEAD = 16 * ROWS  # prefetch distance of the left operand, in words

_FLOAT, _INT, _LONG = ir.FloatType(), ir.IntType(32), ir.IntType(64)
_VECTOR = ir.VectorType(_FLOAT, LANES)
_POINTER, _VECTOR_POINTER = _FLOAT.as_pointer(), _VECTOR.as_pointer()


def _long(value: int) -> ir.Constant:
    return ir.Constant(_LONG, value)


def _int(value: int) -> ir.Constant:
    return ir.Constant(_INT, value)


class _Tile:
    """Generates the loop."""

    def __init__(self, builder: ir.IRBuilder, *, rows: int = ROWS, pairs: bool = False) -> None:
        self.builder = builder
        self.rows = rows
        function = ir.FunctionType(_VECTOR, [_VECTOR] * 3)
        self._multiply_add = cgutils.get_or_insert_function(builder.module, function, f"llvm.fma.v{LANES}f32")
        self._add_pairs = ir.InlineAsm(function, "vdpbf16ps $3, $2, $0", "=v,0,v,v")
        self._pairs = pairs
        fetch = ir.FunctionType(ir.VoidType(), [_POINTER, _INT, _INT, _INT])
        self._prefetch = cgutils.get_or_insert_function(builder.module, fetch, "llvm.prefetch.p0")

    def at(self, pointer: ir.Value, offset: int) -> ir.Value:
        return self.builder.gep(pointer, [_long(offset)])

    def vector_at(self, pointer: ir.Value, offset: int) -> ir.Value:
        return self.builder.bitcast(self.at(pointer, offset), _VECTOR_POINTER)

    def fetch(self, pointer: ir.Value, *, to_write: bool) -> None:
        self.builder.call(self._prefetch, [pointer, _int(int(to_write)), _int(3), _int(1)])

    def broadcast(self, pointer: ir.Value) -> ir.Value:
        nothing = ir.Constant(_VECTOR, ir.Undefined)
        first = self.builder.insert_element(nothing, self.builder.load(pointer), _int(0))
        return self.builder.shuffle_vector(first, nothing, ir.Constant(ir.VectorType(_INT, LANES), [0] * LANES))

    def step(self, left: ir.Value, right: ir.Value, sums: list[list[ir.Value]]) -> list[list[ir.Value]]:
        """One column of the left operand times one row of the right, added to the sums."""
        return self.spread([self.at(left, row) for row in range(self.rows)], right, sums)

    def spread(self, left: list[ir.Value], right: ir.Value, sums: list[list[ir.Value]]) -> list[list[ir.Value]]:
        """The same with an address for each value of the column."""
        vectors = [self.builder.load(self.vector_at(right, LANES * j), align=4) for j in range(VECTORS)]
        updated = []
        for row in range(self.rows):
            value = self.broadcast(left[row])
            updated.append([self._added(value, *each) for each in zip(vectors, sums[row])])
        return updated

    def _added(self, one: ir.Value, other: ir.Value, total: ir.Value) -> ir.Value:
        if self._pairs:
            return self.builder.call(self._add_pairs, [total, one, other])
        return self.builder.call(self._multiply_add, [one, other, total])

    def loop(self, count: ir.Value, left: ir.Value, right: ir.Value) -> list[list[ir.Value]]:
        """Sums of the product of a left and a right panel, `count` words long."""

        def one_round(index: ir.Value, sums: list[list[ir.Value]]) -> list[list[ir.Value]]:
            here = self.builder.gep(left, [self.builder.mul(index, _long(ROWS))])
            line = self.builder.gep(right, [self.builder.mul(index, _long(COLUMNS))])
            for step in range(UNROLLED):
                if step % 2 == 0:
                    self.fetch(self.at(here, AHEAD + step * ROWS), to_write=False)
                sums = self.step(self.at(here, step * ROWS), self.at(line, step * COLUMNS), sums)
            return sums

        return self.repeated(count, UNROLLED, one_round)

    def repeated(
        self, count: ir.Value, steps: int, one_round: Callable[[ir.Value, list[list[ir.Value]]], list[list[ir.Value]]]
    ) -> list[list[ir.Value]]:
        """Sums, initially zero, after a loop whose index runs to `count` in `steps`."""
        builder = self.builder
        before = builder.block
        body, after = builder.append_basic_block("inner"), builder.append_basic_block("done")
        builder.branch(body)
        builder.position_at_end(body)
        index = builder.phi(_LONG)
        phis = [[builder.phi(_VECTOR) for _ in range(VECTORS)] for _ in range(self.rows)]
        sums = one_round(index, phis)
        following = builder.add(index, _long(steps))
        index.add_incoming(_long(0), before)
        index.add_incoming(following, body)
        zero = ir.Constant(_VECTOR, [0.0] * LANES)
        for row_before, row_after in zip(phis, sums):
            for sum_before, sum_after in zip(row_before, row_after):
                sum_before.add_incoming(zero, before)
                sum_before.add_incoming(sum_after, body)
        builder.cbranch(builder.icmp_signed("<", following, count), body, after)
        builder.position_at_end(after)
        return sums

    def put(self, sums: list[list[ir.Value]], target: ir.Value, stride: ir.Value, add: ir.Value) -> None:
        """Store the sums, or add them to the target."""
        with self.builder.if_else(add) as (more, fresh):
            with more:
                self.store(sums, target, stride, add=True)
            with fresh:
                self.store(sums, target, stride, add=False)

    def store(self, sums: list[list[ir.Value]], target: ir.Value, stride: ir.Value, *, add: bool) -> None:
        builder = self.builder
        for row in range(self.rows):
            line = builder.gep(target, [builder.mul(stride, _long(row))])
            for j, value in enumerate(sums[row]):
                place = self.vector_at(line, LANES * j)
                builder.store(builder.fadd(value, builder.load(place, align=4)) if add else value, place, align=4)


def _multiply_tile(*, pairs: bool) -> Any:
    """An intrinsic: target [ROWS, COLUMNS] = or, with `add`, += left × right, `count` words in the inner dimension.

    Operands are addresses; the row stride of the target is `stride` floats.
    """

    def typed(context, count, left, right, target, stride, add):
        def generate(target_context, builder, signature, arguments):
            count, left, right, target, stride, add = arguments
            left, right, target = (builder.inttoptr(each, _POINTER) for each in (left, right, target))
            tile = _Tile(builder, pairs=pairs)
            for row in range(ROWS):
                tile.fetch(builder.gep(target, [builder.mul(stride, _long(row))]), to_write=True)
            sums = tile.loop(count, left, right)
            tile.put(sums, target, stride, add)
            return target_context.get_dummy_value()

        return types.void(*[types.int64] * 5, types.boolean), generate

    return intrinsic(typed)


if MULTIPLIES_PAIRS:
    llvm.initialize_native_asmparser()

multiply_tile = _multiply_tile(pairs=False)
multiply_tile_of_pairs = _multiply_tile(pairs=True) if MULTIPLIES_PAIRS else multiply_tile  # then unused


_PANEL = ir.VectorType(_INT, COLUMNS)


def _line(builder: ir.IRBuilder, source: ir.Value, bits: int, mask: ir.Value) -> ir.Value:
    """COLUMNS values of `bits` bits as float32 bits & mask."""
    stored = ir.VectorType(ir.IntType(bits), COLUMNS)
    values = builder.load(builder.inttoptr(source, stored.as_pointer()), align=bits // 8)
    if bits < 32:
        values = builder.shl(builder.zext(values, _PANEL), ir.Constant(_PANEL, [32 - bits] * COLUMNS))
    nothing = ir.Constant(_PANEL, ir.Undefined)
    first = builder.insert_element(nothing, mask, _int(0))
    return builder.and_(values, builder.shuffle_vector(first, nothing, ir.Constant(_PANEL, [0] * COLUMNS)))


def _move(bits: int) -> Any:
    """An intrinsic that copies COLUMNS values of `bits` bits to a panel, as float32."""

    def typed(context, source, target, mask):
        def generate(target_context, builder, signature, arguments):
            source, target, mask = arguments
            values = _line(builder, source, bits, mask)
            builder.store(values, builder.inttoptr(target, _PANEL.as_pointer()), align=4)
            return target_context.get_dummy_value()

        return types.void(types.int64, types.int64, types.int32), generate

    return intrinsic(typed)


def _move_pairs(bits: int) -> Any:
    """An intrinsic that copies COLUMNS values of two lines each to a panel, as pairs of bfloat16."""

    def typed(context, source, following, target, mask, mask_of_following):
        def generate(target_context, builder, signature, arguments):
            source, following, target, mask, mask_of_following = arguments
            lower = builder.lshr(_line(builder, source, bits, mask), ir.Constant(_PANEL, [16] * COLUMNS))
            values = builder.or_(lower, _line(builder, following, bits, mask_of_following))
            builder.store(values, builder.inttoptr(target, _PANEL.as_pointer()), align=4)
            return target_context.get_dummy_value()

        return types.void(*[types.int64] * 3, *[types.int32] * 2), generate

    return intrinsic(typed)


move_narrow, move_wide = _move(16), _move(32)
move_narrow_pairs, move_wide_pairs = _move_pairs(16), _move_pairs(32)
