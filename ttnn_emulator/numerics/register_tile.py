"""The innermost loops of a float32 matrix product, in vector registers.

A tile of ROWS x COLUMNS sums stays in registers while one column of the left operand and one row of the right are read
at a time; LLVM makes the machine's own instructions of it. What is read must have been packed: the left operand ROWS
values after ROWS values, the right one COLUMNS after COLUMNS, both filled up with zeros to a multiple of UNROLLED.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

ROWS = 6
LANES = 8  # floats of a vector: what most processors have, and others make of two
VECTORS = 2
COLUMNS = LANES * VECTORS  # 6 x 2 sums, two vectors and a broadcast value fill 16 registers
UNROLLED = 4
AHEAD = 16 * ROWS  # how far in front of the loop the left operand is fetched

_FLOAT, _INT, _LONG = ir.FloatType(), ir.IntType(32), ir.IntType(64)
_VECTOR = ir.VectorType(_FLOAT, LANES)
_POINTER, _VECTOR_POINTER = _FLOAT.as_pointer(), _VECTOR.as_pointer()


def _long(value: int) -> ir.Constant:
    return ir.Constant(_LONG, value)


def _int(value: int) -> ir.Constant:
    return ir.Constant(_INT, value)


class _Tile:
    """Writes the loop."""

    def __init__(self, builder: ir.IRBuilder) -> None:
        self.builder = builder
        function = ir.FunctionType(_VECTOR, [_VECTOR] * 3)
        self._multiply_add = cgutils.get_or_insert_function(builder.module, function, f"llvm.fma.v{LANES}f32")
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
        return self.spread([self.at(left, row) for row in range(ROWS)], right, sums)

    def spread(self, left: list[ir.Value], right: ir.Value, sums: list[list[ir.Value]]) -> list[list[ir.Value]]:
        """The same with a place for each value of the column."""
        vectors = [self.builder.load(self.vector_at(right, LANES * j), align=4) for j in range(VECTORS)]
        made = []
        for row in range(ROWS):
            value = self.broadcast(left[row])
            made.append([self.builder.call(self._multiply_add, [value, *each]) for each in zip(vectors, sums[row])])
        return made

    def loop(self, count: ir.Value, left: ir.Value, right: ir.Value) -> list[list[ir.Value]]:
        builder = self.builder
        before = builder.block
        body, after = builder.append_basic_block("inner"), builder.append_basic_block("done")
        builder.branch(body)
        builder.position_at_end(body)
        index = builder.phi(_LONG)
        held = [[builder.phi(_VECTOR) for _ in range(VECTORS)] for _ in range(ROWS)]
        left = builder.gep(left, [builder.mul(index, _long(ROWS))])
        right = builder.gep(right, [builder.mul(index, _long(COLUMNS))])
        sums: list[list[ir.Value]] = held
        for step in range(UNROLLED):
            if step % 2 == 0:
                self.fetch(self.at(left, AHEAD + step * ROWS), to_write=False)
            sums = self.step(self.at(left, step * ROWS), self.at(right, step * COLUMNS), sums)
        following = builder.add(index, _long(UNROLLED))
        index.add_incoming(_long(0), before)
        index.add_incoming(following, body)
        zero = ir.Constant(_VECTOR, [0.0] * LANES)
        for row_before, row_after in zip(held, sums):
            for sum_before, sum_after in zip(row_before, row_after):
                sum_before.add_incoming(zero, before)
                sum_before.add_incoming(sum_after, body)
        builder.cbranch(builder.icmp_signed("<", following, count), body, after)
        builder.position_at_end(after)
        return sums

    def store(self, sums: list[list[ir.Value]], target: ir.Value, stride: ir.Value, *, add: bool) -> None:
        builder = self.builder
        for row in range(ROWS):
            line = builder.gep(target, [builder.mul(stride, _long(row))])
            for j, value in enumerate(sums[row]):
                place = self.vector_at(line, LANES * j)
                builder.store(builder.fadd(value, builder.load(place, align=4)) if add else value, place, align=4)


def _multiply_tile(context, count, left, right, target, stride, add):
    """target [ROWS, COLUMNS], rows `stride` floats apart, = or, to `add`, += left x right; all given by address."""

    def generate(target_context, builder, signature, arguments):
        count, left, right, target, stride, add = arguments
        left, right, target = (builder.inttoptr(each, _POINTER) for each in (left, right, target))
        tile = _Tile(builder)
        for row in range(ROWS):
            tile.fetch(builder.gep(target, [builder.mul(stride, _long(row))]), to_write=True)
        sums = tile.loop(count, left, right)
        with builder.if_else(add) as (more, fresh):
            with more:
                tile.store(sums, target, stride, add=True)
            with fresh:
                tile.store(sums, target, stride, add=False)
        return target_context.get_dummy_value()

    return types.void(*[types.int64] * 5, types.boolean), generate


multiply_tile: Any = intrinsic(_multiply_tile)


def _move(bits: int) -> Any:
    """An intrinsic that moves COLUMNS values of so many bits into a panel, as the bits of float32."""
    count = ir.VectorType(_INT, COLUMNS)
    stored = ir.VectorType(ir.IntType(bits), COLUMNS)

    def typed(context, source, target, mask):
        def generate(target_context, builder, signature, arguments):
            source, target, mask = arguments
            values = builder.load(builder.inttoptr(source, stored.as_pointer()), align=bits // 8)
            if bits < 32:
                values = builder.shl(builder.zext(values, count), ir.Constant(count, [32 - bits] * COLUMNS))
            nothing = ir.Constant(count, ir.Undefined)
            first = builder.insert_element(nothing, mask, _int(0))
            seen = builder.shuffle_vector(first, nothing, ir.Constant(count, [0] * COLUMNS))
            builder.store(builder.and_(values, seen), builder.inttoptr(target, count.as_pointer()), align=4)
            return target_context.get_dummy_value()

        return types.void(types.int64, types.int64, types.int32), generate

    return intrinsic(typed)


move_narrow = _move(16)
move_wide = _move(32)
