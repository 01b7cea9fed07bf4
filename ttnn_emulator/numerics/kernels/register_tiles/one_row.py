"""The innermost loop of a one-row product: sums of neighbouring columns stay in vector registers.

The matrix is read in place, line by line, in 16- or 32-bit values. Each sum accumulates its products in the order of
the lines, one multiply-add each, whatever the number of vectors: results do not depend on how columns are split.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

LANES = 8  # floats per vector; processors with smaller vectors use two
VECTORS = 8  # independent sums, enough to hide the latency of multiply-adds
AHEAD = 8  # prefetch distance in lines, measured with matrices larger than the L2 cache
CACHE_LINE = 64  # bytes

_BYTE, _FLOAT, _INT, _LONG = ir.IntType(8), ir.FloatType(), ir.IntType(32), ir.IntType(64)
_VECTOR, _BITS = ir.VectorType(_FLOAT, LANES), ir.VectorType(_INT, LANES)


def _spread(builder: ir.IRBuilder, value: ir.Value, kind: ir.VectorType) -> ir.Value:
    """A value broadcast to all lanes."""
    nothing = ir.Constant(kind, ir.Undefined)
    first = builder.insert_element(nothing, value, ir.Constant(_INT, 0))
    return builder.shuffle_vector(first, nothing, ir.Constant(_BITS, [0] * LANES))


def _seen(builder: ir.IRBuilder, place: ir.Value, size: int, mask: ir.Value | None) -> ir.Value:
    """A vector of the matrix as float32; `size`: bytes per stored value."""
    stored = ir.VectorType(ir.IntType(8 * size), LANES)
    values = builder.load(builder.bitcast(place, stored.as_pointer()), align=size)
    if size < 4:
        values = builder.shl(builder.zext(values, _BITS), ir.Constant(_BITS, [32 - 8 * size] * LANES))
    return builder.bitcast(values if mask is None else builder.and_(values, mask), _VECTOR)


def _fetch_ahead(builder: ir.IRBuilder, line: ir.Value, stride: ir.Value, width: int) -> None:
    """Prefetch a later line."""
    function = ir.FunctionType(ir.VoidType(), [_BYTE.as_pointer(), _INT, _INT, _INT])
    fetch = cgutils.get_or_insert_function(builder.module, function, "llvm.prefetch.p0")
    to_read, keep, data = (ir.Constant(_INT, value) for value in (0, 3, 1))
    later = builder.gep(line, [builder.mul(stride, ir.Constant(_LONG, AHEAD))])
    for at in range(0, width, CACHE_LINE):
        builder.call(fetch, [builder.gep(later, [ir.Constant(_LONG, at)]), to_read, keep, data])


def _line_tile(size: int, vectors: int, *, masked: bool) -> Any:
    """An intrinsic: `vectors` × LANES sums of `count` products of x and lines `stride` bytes apart.

    Operands are addresses. `mask` is applied to the matrix if it is `masked`; `count` is not 0.
    """

    def typed(context, count, x, matrix, stride, sums, mask):
        def generate(target_context, builder, signature, arguments):
            count, x, matrix, stride, sums, mask = arguments
            function = ir.FunctionType(_VECTOR, [_VECTOR] * 3)
            multiply_add = cgutils.get_or_insert_function(builder.module, function, f"llvm.fma.v{LANES}f32")
            x, sums = (builder.inttoptr(each, _FLOAT.as_pointer()) for each in (x, sums))
            matrix = builder.inttoptr(matrix, _BYTE.as_pointer())
            keep = _spread(builder, mask, _BITS) if masked else None
            before = builder.block
            body, after = builder.append_basic_block("line"), builder.append_basic_block("done")
            builder.branch(body)
            builder.position_at_end(body)
            index = builder.phi(_LONG)
            phis = [builder.phi(_VECTOR) for _ in range(vectors)]
            value = _spread(builder, builder.load(builder.gep(x, [index])), _VECTOR)
            line = builder.gep(matrix, [builder.mul(index, stride)])
            _fetch_ahead(builder, line, stride, vectors * LANES * size)
            following = builder.add(index, ir.Constant(_LONG, 1))
            index.add_incoming(ir.Constant(_LONG, 0), before)
            index.add_incoming(following, body)
            results = []
            for number, sum_before in enumerate(phis):
                place = builder.gep(line, [ir.Constant(_LONG, number * LANES * size)])
                results.append(builder.call(multiply_add, [value, _seen(builder, place, size, keep), sum_before]))
                sum_before.add_incoming(ir.Constant(_VECTOR, [0.0] * LANES), before)
                sum_before.add_incoming(results[-1], body)
            builder.cbranch(builder.icmp_signed("<", following, count), body, after)
            builder.position_at_end(after)
            for number, each in enumerate(results):
                place = builder.gep(sums, [ir.Constant(_LONG, number * LANES)])
                builder.store(each, builder.bitcast(place, _VECTOR.as_pointer()), align=4)
            return target_context.get_dummy_value()

        return types.void(*[types.int64] * 5, types.int32), generate

    return intrinsic(typed)


narrow_lines = _line_tile(2, VECTORS, masked=False)
narrow_lines_masked = _line_tile(2, VECTORS, masked=True)
wide_lines = _line_tile(4, VECTORS, masked=False)
wide_lines_masked = _line_tile(4, VECTORS, masked=True)
narrow_line = _line_tile(2, 1, masked=True)
wide_line = _line_tile(4, 1, masked=True)
