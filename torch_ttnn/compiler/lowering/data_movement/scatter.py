"""Writes by index: scatter, index_put and related operations, in index order.

Torch raises an error for an index out of range; the device skips it if the index is only known at run time.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

from torch_ttnn.compiler.errors import refuse
from torch_ttnn.compiler.ir.builder import ProgramBuilder
from torch_ttnn.compiler.ir.describe import dtype_name
from torch_ttnn.compiler.ir.value import Handle, Value
from torch_ttnn.compiler.lowering.data_movement.gather import (
    across,
    constant_positions,
    diagonal_of,
    linear_index,
    rows_of,
)
from torch_ttnn.compiler.lowering.data_movement.joining import replace
from torch_ttnn.compiler.lowering.data_movement.repeating import expanded
from torch_ttnn.compiler.lowering.registry import lowers
from torch_ttnn.compiler.lowering.support.cache_rows import write_row
from ttnn_emulator import DataType

aten = torch.ops.aten
Indices = Sequence[Value | None]


# -- scatter -----------------------------------------------------------------------------------------------------------


def scattered(
    ttnn: Any, builder: ProgramBuilder, x: Value, dim: int, index: Value, source: Value, reduce: str | None = None
) -> Value:
    """The library's scatter in row-major layout, which supports every dtype and width."""
    if index.is_static:
        constant_positions(index, x.shape[dim] if x.ndim else 1)
    shape = x.shape
    if x.ndim < 2:
        count = index.numel
        x, index, dim = x.view((1, x.numel)), index.view((1, count)), 1
        source = source.view((1, source.numel))
    dim %= x.ndim
    dtype = x.device_dtype
    handles = [x.row_major(), index.row_major(DataType.INT32), source.row_major(dtype)]
    written = ttnn.scatter(handles[0], dim, handles[1], handles[2], reduce=reduce)
    return builder.value(written, x.shape, x.dtype).view(shape)


def _filled(builder: ProgramBuilder, x: Value, shape: Sequence[int], value: float) -> Value:
    return builder.static(torch.full(tuple(shape), value, dtype=x.dtype))


@lowers(aten.scatter.src)
def scatter(ttnn: Any, builder: ProgramBuilder, x: Value, dim: int, index: Value, src: Value) -> Value:
    return scattered(ttnn, builder, x, dim, index, src)


@lowers(aten.scatter.value)
def scatter_value(ttnn: Any, builder: ProgramBuilder, x: Value, dim: int, index: Value, value: float) -> Value:
    return scattered(ttnn, builder, x, dim, index, _filled(builder, x, index.shape, value))


@lowers(aten.scatter_add.default)
def scatter_add(ttnn: Any, builder: ProgramBuilder, x: Value, dim: int, index: Value, src: Value) -> Value:
    return _added(ttnn, builder, x, dim, index, src, "add")


@lowers(aten.scatter.reduce)
def scatter_with(
    ttnn: Any, builder: ProgramBuilder, x: Value, dim: int, index: Value, src: Value, *, reduce: str
) -> Value:
    return _added(ttnn, builder, x, dim, index, src, reduce)


@lowers(aten.scatter.value_reduce)
def scatter_value_with(
    ttnn: Any, builder: ProgramBuilder, x: Value, dim: int, index: Value, value: float, *, reduce: str
) -> Value:
    return _added(ttnn, builder, x, dim, index, _filled(builder, x, index.shape, value), reduce)


NARROW_INTEGERS = (torch.uint8, torch.int8, torch.int16)


def _require_no_wrapping(x: Value) -> None:
    if x.dtype in NARROW_INTEGERS or x.is_bool:
        refuse(f"results of {dtype_name(x.dtype)} may wrap around, which the device's int32 does not")


def _added(ttnn: Any, builder: ProgramBuilder, x: Value, dim: int, index: Value, source: Value, reduce: str) -> Value:
    _require_no_wrapping(x)
    return scattered(ttnn, builder, x, dim, index, source, reduce)


REDUCTIONS = {"sum": ("add", 0), "prod": ("multiply", 1)}


@lowers(aten.scatter_reduce.two)
def scatter_reduce(
    ttnn: Any,
    builder: ProgramBuilder,
    x: Value,
    dim: int,
    index: Value,
    src: Value,
    reduce: str,
    *,
    include_self: bool = True,
) -> Value:
    if reduce not in REDUCTIONS:
        refuse(f"the device scatters sums and products, not {reduce}")
    kind, neutral = REDUCTIONS[reduce]
    if not include_self:
        x = scattered(ttnn, builder, x, dim, index, _filled(builder, x, index.shape, neutral))
    return _added(ttnn, builder, x, dim, index, src, kind)


# -- index_put ---------------------------------------------------------------------------------------------------------


@lowers(aten.index_put.default, aten._unsafe_index_put.default)
def index_put(
    ttnn: Any, builder: ProgramBuilder, x: Value, indices: Indices, values: Value, accumulate: bool = False
) -> Any:
    indexed = {dim: each for dim, each in enumerate(indices) if each is not None}
    if any(each.dtype in (torch.bool, torch.uint8) for each in indexed.values()):
        return _masked(ttnn, builder, x, indices, values, accumulate)
    if not indexed:
        refuse("there is no index")
    shape = torch.broadcast_shapes(*[each.shape for each in indexed.values()])
    dims = list(indexed)
    for dim, each in indexed.items():
        constant_positions(each, x.shape[dim])
    adjacent = dims == list(range(dims[0], dims[0] + len(dims)))
    rest = [dim for dim in range(x.ndim) if dim not in indexed]
    before = [x.shape[dim] for dim in rest if dim < dims[0]] if adjacent else []
    after = [x.shape[dim] for dim in rest][len(before) :]
    wide = values.with_rank(len(before) + len(shape) + len(after))
    return _put(ttnn, builder, x, indexed, shape, wide, len(before), accumulate)


def _put(
    ttnn: Any,
    builder: ProgramBuilder,
    x: Value,
    indexed: dict[int, Value],
    shape: Sequence[int],
    values: Value,
    before: int,
    accumulate: bool,
    *,
    signed: bool = True,
) -> Any:
    """Writes `values`, broadcast to [before, *shape, after], to `x` with its indexed dimensions as rows."""
    if math.prod(shape) == 1 and len(indexed) == 1:
        (dim, index), *_ = indexed.items()
        at = before if before else dim if values.ndim == x.ndim else 0
        slab = values.view((*values.shape[:before], 1, *values.shape[before + len(shape) :]))
        if slab.ndim == x.ndim and at == dim:
            return put_one(ttnn, builder, x, dim, index, slab, accumulate, signed=signed)
    dims, count = list(indexed), math.prod(shape)
    rest = [dim for dim in range(x.ndim) if dim not in indexed]
    sizes = [x.shape[dim] for dim in dims]
    others = [x.shape[dim] for dim in rest]
    full = expanded(ttnn, builder, values, (*others[:before], *shape, *others[before:]))
    middle = [before + number for number in range(len(shape))]
    outer = [dim for dim in range(full.ndim) if dim not in middle]
    table = rows_of(x, dims, [math.prod(sizes)])
    width = table.shape[-1]
    source = full.permute([*middle, *outer]).view((count, width))
    linear = across(
        ttnn, builder, linear_index(ttnn, builder, list(indexed.values()), sizes, shape, signed=signed), width
    )
    written = (
        _added(ttnn, builder, table, 0, linear, source, "add")
        if accumulate
        else scattered(ttnn, builder, table, 0, linear, source)
    )
    order = [*dims, *rest]
    return written.view((*sizes, *others)).permute([order.index(dim) for dim in range(x.ndim)])


def put_one(
    ttnn: Any,
    builder: ProgramBuilder,
    x: Value,
    dim: int,
    index: Value,
    slab: Value,
    accumulate: bool = False,
    *,
    signed: bool = True,
) -> Any:
    """Writes one slice along `dim`, [.., 1, ..] or broadcastable to it, at a single index."""
    known = constant_positions(index, x.shape[dim])
    size = x.shape[dim]
    if known is not None and not accumulate:
        whole = expanded(ttnn, builder, slab, (*x.shape[:dim], 1, *x.shape[dim + 1 :]))
        return replace(ttnn, builder, x, dim, int(known.item()), whole)
    shape = [size if each == dim else 1 for each in range(x.ndim)]
    positions = builder.static(torch.arange(size, dtype=torch.int32).view(shape))
    at = linear_index(ttnn, builder, [index], [size], (1,), signed=signed).view((1,) * x.ndim)
    return _chosen(ttnn, builder, x, ttnn.eq(positions.tile(), at.tile()), slab, accumulate)


def _chosen(
    ttnn: Any, builder: ProgramBuilder, x: Value, mask: Handle, source: Value, accumulate: bool = False
) -> Handle:
    """Writes or adds `source` where the mask is set; both are broadcast to `x`."""
    handle = x.tile()
    mask = builder.cast(mask, handle.dtype)
    if not accumulate:
        return ttnn.where(mask, source.with_rank(x.ndim).tile(handle.dtype), handle)
    _require_no_wrapping(x)
    added = ttnn.add(handle, source.with_rank(x.ndim).tile(handle.dtype))
    return ttnn.where(mask, added, handle)


def _masked(ttnn: Any, builder: ProgramBuilder, x: Value, indices: Indices, values: Value, accumulate: bool) -> Any:
    """x[mask] = one value: selects with `where` instead of writing by index."""
    masks = [each for each in indices if each is not None]
    if values.numel != 1 or len(masks) != 1:
        refuse("the position of each value under a mask depends on its values")
    dim = next(number for number, each in enumerate(indices) if each is not None)
    mask = masks[0]
    after = x.ndim - dim - mask.ndim
    return _chosen(
        ttnn, builder, x, mask.view((*mask.shape, *(1,) * after)).with_rank(x.ndim).tile(), values, accumulate
    )


@lowers(aten.index_copy.default)
def index_copy(ttnn: Any, builder: ProgramBuilder, x: Value, dim: int, index: Value, source: Value) -> Any:
    written = write_row(ttnn, builder, x, dim, index, source)
    if written is not None:
        return written
    return _along(ttnn, builder, x, dim, index, source, False)


@lowers(aten.index_add.default)
def index_add(
    ttnn: Any, builder: ProgramBuilder, x: Value, dim: int, index: Value, source: Value, *, alpha: float = 1
) -> Any:
    if alpha != 1:
        source = builder.value(ttnn.multiply(source, alpha), source.shape, source.dtype)
    return _along(ttnn, builder, x, dim, index, source, True)


def _along(
    ttnn: Any, builder: ProgramBuilder, x: Value, dim: int, index: Value, source: Value, accumulate: bool
) -> Any:
    if not x.ndim:
        return _along(ttnn, builder, x.view((1,)), 0, index, source.view((1,)), accumulate)
    dim %= x.ndim
    if source.shape != (*x.shape[:dim], index.numel, *x.shape[dim + 1 :]):
        refuse("torch does not broadcast its source")  # and raises
    constant_positions(index, x.shape[dim])
    return _put(
        ttnn, builder, x, {dim: index.view((index.numel,))}, (index.numel,), source, dim, accumulate, signed=False
    )


@lowers(aten.index_fill.int_Scalar)
def index_fill(ttnn: Any, builder: ProgramBuilder, x: Value, dim: int, index: Value, value: float) -> Any:
    return _fill(ttnn, builder, x, dim, index, builder.static(torch.tensor(value, dtype=x.dtype)))


@lowers(aten.index_fill.int_Tensor)
def index_fill_tensor(ttnn: Any, builder: ProgramBuilder, x: Value, dim: int, index: Value, value: Value) -> Any:
    return _fill(ttnn, builder, x, dim, index, value)


def _fill(ttnn: Any, builder: ProgramBuilder, x: Value, dim: int, index: Value, value: Value) -> Any:
    if not x.ndim:
        return expanded(ttnn, builder, value, ())
    dim %= x.ndim
    flat = index.view((index.numel,))
    constant_positions(flat, x.shape[dim])
    return _put(ttnn, builder, x, {dim: flat}, flat.shape, value.with_rank(x.ndim), dim, False)


@lowers(aten.diagonal_scatter.default)
def diagonal_scatter(
    ttnn: Any, builder: ProgramBuilder, x: Value, source: Value, offset: int = 0, dim1: int = 0, dim2: int = 1
) -> Value:
    dim1, dim2 = dim1 % x.ndim, dim2 % x.ndim
    rest = [dim for dim in range(x.ndim) if dim not in (dim1, dim2)]
    order = [*rest, dim1, dim2]
    height, width = x.shape[dim1], x.shape[dim2]
    start, count = diagonal_of(height, width, offset)
    outer = math.prod([x.shape[dim] for dim in rest])
    flat = x.permute(order).view((outer, height * width))
    positions = torch.arange(start, start + count * (width + 1), width + 1, dtype=torch.int32)[:count]
    index = builder.static(positions.expand(outer, count).contiguous())
    written = scattered(ttnn, builder, flat, 1, index, source.view((outer, count)))
    return written.view([x.shape[dim] for dim in order]).permute([order.index(dim) for dim in range(x.ndim)])
