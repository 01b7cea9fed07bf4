"""Reads by index: index, index_select, gather, flip, and operations composed of them.

Indices known at compile time become slices where they are regular. For an index out of range torch raises an error. If
it is known at compile time, the operation falls back to torch, which raises. A runtime index is not checked: the device
then reads undefined values.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

from torch_ttnn.compiler.errors import refuse
from torch_ttnn.compiler.ir.builder import ProgramBuilder
from torch_ttnn.compiler.ir.nodes import captured_val
from torch_ttnn.compiler.ir.value import Handle, Value
from torch_ttnn.compiler.lowering.data_movement.joining import join
from torch_ttnn.compiler.lowering.data_movement.repeating import expanded, interleaved, repeated
from torch_ttnn.compiler.lowering.data_movement.slicing import cut
from torch_ttnn.compiler.lowering.registry import lowers
from torch_ttnn.compiler.lowering.support.preparation import prepares
from ttnn_emulator import DataType

aten = torch.ops.aten

MOST_RUNS = 8  # limit on slices; beyond it rows are read by index
MOST_DIMS = 4  # limit on dimensions that the library indexes in one call
Indices = Sequence[Value | None]


# -- indices known at compile time ------------------------------------------------------------------------------------


def constant_positions(index: Value, size: int) -> torch.Tensor | None:
    """The index, if known at compile time, as non-negative positions in a dimension of this size."""
    found = index.constant()
    if found is None:
        return None
    if found.numel() and not (-size <= int(found.min()) and int(found.max()) < size):
        refuse(f"an index is out of range for a dimension of size {size}")
    return torch.where(found < 0, found + size, found)


def picked(ttnn: Any, builder: ProgramBuilder, x: Value, dim: int, positions: Sequence[int]) -> Value:
    """Selects known positions along a dimension: by slicing if they are regular, else by index."""
    runs = _runs(positions)
    times = _interleaving(positions)
    if times > 1:
        return interleaved(ttnn, builder, picked(ttnn, builder, x, dim, positions[::times]), times, dim)
    if len(runs) <= MOST_RUNS:
        return join(ttnn, builder, [_run(ttnn, builder, x, dim, *run) for run in runs], dim)
    index = builder.static(torch.tensor(list(positions), dtype=torch.int32))
    return _read(ttnn, builder, x, [dim], [index], (len(positions),))


def _run(ttnn: Any, builder: ProgramBuilder, x: Value, dim: int, start: int, step: int, count: int) -> Value:
    if step:
        return cut(ttnn, builder, x, dim, start, start + (count - 1) * step + 1, step)
    times = [count if each == dim else 1 for each in range(x.ndim)]
    return repeated(ttnn, builder, cut(ttnn, builder, x, dim, start, start + 1), times)


def _runs(positions: Sequence[int]) -> list[tuple[int, int, int]]:
    """Start, step and count of the runs with a constant, non-negative step."""
    runs = []
    at = 0
    while at < len(positions):
        count, step = 1, 1
        if at + 1 < len(positions) and positions[at + 1] >= positions[at]:
            step = positions[at + 1] - positions[at]
            while at + count < len(positions) and positions[at + count] - positions[at + count - 1] == step:
                count += 1
        runs.append((positions[at], step, count))
        at += count
    return runs


def _interleaving(positions: Sequence[int]) -> int:
    """How often each position of an ascending range is repeated, or 1."""
    times = next((at for at, position in enumerate(positions) if position != positions[0]), 1)
    if times == 1 or len(positions) % times:
        return 1
    expected = [positions[0] + at // times for at in range(len(positions))]
    return times if list(positions) == expected else 1


# -- reading rows by index --------------------------------------------------------------------------------------------


def flat_index(ttnn: Any, builder: ProgramBuilder, index: Value, shape: Sequence[int]) -> Handle:
    """An index, broadcast to a shape and flattened, as int32."""
    count = math.prod(shape)
    if index.is_static:
        index = index.prepared(_flattened, list(shape))
    else:
        index = expanded(ttnn, builder, index, shape).view((count,))
    return index.row_major(DataType.INT32)


@prepares
def _flattened(index: torch.Tensor, shape: list[int]) -> torch.Tensor:
    return index.expand(shape).reshape(-1).to(torch.int32)


def linear_index(
    ttnn: Any,
    builder: ProgramBuilder,
    indices: Sequence[Value],
    sizes: Sequence[int],
    shape: Sequence[int],
    *,
    signed: bool = True,
) -> Value:
    """Combines indices along several dimensions into one linear index, broadcast to `shape` and flattened.

    `signed`: negative indices count from the end.
    """
    if all(each.is_static for each in indices):
        return builder.prepare(_linear, list(indices), list(sizes), list(shape))
    total: Handle | None = None
    for each, size in zip(indices, sizes):
        wide = expanded(ttnn, builder, each, shape).view((math.prod(shape),)).tile(DataType.INT32)
        position = ttnn.where(ttnn.lt(wide, 0), ttnn.add(wide, size), wide) if signed else wide
        total = position if total is None else ttnn.add(ttnn.multiply(total, size), position)
    assert total is not None
    return builder.value(total, (math.prod(shape),), torch.int32)


@prepares
def _linear(indices: list[torch.Tensor], sizes: list[int], shape: list[int]) -> torch.Tensor:
    total = torch.zeros(shape, dtype=torch.int64)
    for each, size in zip(indices, sizes):
        total = total * size + torch.where(each < 0, each + size, each)
    return total.reshape(-1).to(torch.int32)


def across(ttnn: Any, builder: ProgramBuilder, index: Value, width: int) -> Value:
    """A flat index, repeated for `width` columns."""
    return expanded(ttnn, builder, index.view((index.numel, 1)), (index.numel, width))


def rows_of(x: Value, dims: Sequence[int], sizes: Sequence[int]) -> Value:
    """`x` with these dimensions first, in these sizes, and the others merged."""
    rest = [dim for dim in range(x.ndim) if dim not in dims]
    width = math.prod([x.shape[dim] for dim in rest])
    return x.permute([*dims, *rest]).view((*sizes, width))


def _read(
    ttnn: Any, builder: ProgramBuilder, x: Value, dims: Sequence[int], indices: Sequence[Value], shape: Sequence[int]
) -> Value:
    """Gathers `x` at the indices along `dims`, broadcast to `shape`, which replaces these dimensions."""
    sizes = [x.shape[dim] for dim in dims]
    if x.device_dtype is DataType.FLOAT32:  # the library reads only rows of 16-bit floats and of integers
        linear = linear_index(ttnn, builder, indices, sizes, shape)
        table = rows_of(x, dims, [math.prod(sizes)])
        wide = across(ttnn, builder, linear, table.shape[-1]).tile(DataType.INT32)
        found = ttnn.gather(table.tile(), 0, builder.cast(wide, DataType.UINT32))
    elif len(dims) > MOST_DIMS:
        refuse(f"at most {MOST_DIMS} dimensions are indexed at once")
    else:
        table = rows_of(x, dims, sizes)
        flat = [flat_index(ttnn, builder, index, shape) for index in indices]
        found = ttnn.moreh_getitem(table.row_major(), flat, list(range(len(dims))))
    rest = [x.shape[dim] for dim in range(x.ndim) if dim not in dims]
    result = builder.value(found, (math.prod(shape), table.shape[-1]), x.dtype).view((*shape, *rest))
    return _restore_dims(result, dims, len(shape))


def _restore_dims(result: Value, dims: Sequence[int], count: int) -> Value:
    """Moves the indexed dimensions from the front back to their position, if they were adjacent, as torch does."""
    before = dims[0] if list(dims) == list(range(dims[0], dims[0] + len(dims))) else 0
    front = [count + dim for dim in range(before)]
    back = [dim for dim in range(count, result.ndim) if dim not in front]
    return result.permute([*front, *range(count), *back])


# -- index -------------------------------------------------------------------------------------------------------------


@lowers(aten.index.Tensor, aten._unsafe_index.Tensor)
def index(ttnn: Any, builder: ProgramBuilder, x: Value, indices: Indices) -> Value:
    indexed = {dim: each for dim, each in enumerate(indices) if each is not None}
    if not indexed:
        return x
    if any(each.dtype in (torch.bool, torch.uint8) for each in indexed.values()):
        refuse("the number of elements that a mask selects depends on its values")
    dims = list(indexed)
    positions = {dim: constant_positions(each, x.shape[dim]) for dim, each in indexed.items()}
    shape = torch.broadcast_shapes(*[each.shape for each in indexed.values()])
    if len(shape) + x.ndim - len(indexed) != builder.origin.meta["val"].dim():
        refuse("torch cannot infer the shape of scalar indices combined with others")
    axes = _separate_axes(positions, shape)
    if axes is not None:
        return _one_by_one(ttnn, builder, x, positions, axes, shape)  # type: ignore[arg-type]
    return _read(ttnn, builder, x, dims, list(indexed.values()), shape)


def _separate_axes(positions: dict[int, torch.Tensor | None], shape: Sequence[int]) -> dict[int, int | None] | None:
    """If each index varies along a separate dimension: that dimension of the broadcast shape for each, else None."""
    axes: dict[int, int | None] = {}
    for dim, each in positions.items():
        if each is None:
            return None
        wide = [axis + len(shape) - each.dim() for axis, size in enumerate(each.shape) if size != 1]
        if len(wide) > 1 and len(positions) > 1:
            return None
        axes[dim] = wide[0] if wide else None
    used = [axis for axis in axes.values() if axis is not None]
    return axes if len(set(used)) == len(used) else None


def _one_by_one(
    ttnn: Any,
    builder: ProgramBuilder,
    x: Value,
    positions: dict[int, torch.Tensor],
    axes: dict[int, int | None],
    shape: Sequence[int],
) -> Value:
    """Applies known indices, one dimension at a time."""
    for dim, each in positions.items():
        x = picked(ttnn, builder, x, dim, each.reshape(-1).tolist())
    dims = sorted(positions, key=lambda dim: -1 if axes[dim] is None else axes[dim])  # type: ignore[arg-type, return-value]
    rest = [dim for dim in range(x.ndim) if dim not in positions]
    first = x.permute([*dims, *rest]).view((*shape, *[x.shape[dim] for dim in rest]))
    return _restore_dims(first, list(positions), len(shape))


@lowers(aten.index_select.default)
def index_select(ttnn: Any, builder: ProgramBuilder, x: Value, dim: int, index: Value) -> Value:
    if not x.ndim:
        return x
    dim %= x.ndim
    found = constant_positions(index, x.shape[dim])
    if found is not None:
        return picked(ttnn, builder, x, dim, found.reshape(-1).tolist())
    return _read(ttnn, builder, x, [dim], [index.view((index.numel,))], (index.numel,))


@lowers(aten.take.default)
def take(ttnn: Any, builder: ProgramBuilder, x: Value, index: Value) -> Value:
    return _read(ttnn, builder, x.view((x.numel,)), [0], [index], index.shape)


@lowers(aten.flip.default)
def flip(ttnn: Any, builder: ProgramBuilder, x: Value, dims: Sequence[int]) -> Value:
    for dim in {dim % x.ndim for dim in dims} if x.ndim else ():
        x = picked(ttnn, builder, x, dim, list(range(x.shape[dim]))[::-1])
    return x


@lowers(aten.gather.default)
def gather(ttnn: Any, builder: ProgramBuilder, x: Value, dim: int, index: Value, *, sparse_grad: bool = False) -> Value:
    if not x.ndim or not index.ndim:
        return _read(
            ttnn, builder, x.view((1,)) if not x.ndim else x, [0], [index.view((index.numel,))], (index.numel,)
        ).view(index.shape)
    constant_positions(index, x.shape[dim])
    shape, dim = index.shape, dim % x.ndim
    if x.ndim == 1:
        x, index, dim = x.view((1, *x.shape)), index.view((1, *index.shape)), 1
    positions = index.prepared(torch.Tensor.to, torch.int32) if index.is_static else index
    found = ttnn.gather(x.tile(), dim, builder.cast(positions.tile(), DataType.UINT32))
    return builder.value(found, index.shape, x.dtype).view(shape)


# -- diagonals, triangles and strided views ---------------------------------------------------------------------------


@lowers(aten.diagonal.default, aten.diagonal_copy.default)
def diagonal(ttnn: Any, builder: ProgramBuilder, x: Value, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Value:
    """The diagonal is every (width + 1)-th element of the flattened matrix."""
    dim1, dim2 = dim1 % x.ndim, dim2 % x.ndim
    rest = [dim for dim in range(x.ndim) if dim not in (dim1, dim2)]
    outer = [x.shape[dim] for dim in rest]
    height, width = x.shape[dim1], x.shape[dim2]
    start, count = diagonal_of(height, width, offset)
    flat = x.permute([*rest, dim1, dim2]).view((*outer, height * width))
    return cut(ttnn, builder, flat, len(outer), start, start + (count - 1) * (width + 1) + 1, width + 1)


def diagonal_of(height: int, width: int, offset: int) -> tuple[int, int]:
    """The start of a diagonal in the flattened matrix, and its length."""
    if offset >= 0:
        return offset, min(height, width - offset)
    return -offset * width, min(height + offset, width)


@lowers(aten.as_strided.default, aten.as_strided_copy.default)
def as_strided(
    ttnn: Any,
    builder: ProgramBuilder,
    x: Value,
    size: Sequence[int],
    stride: Sequence[int],
    storage_offset: int | None = None,
) -> Value:
    """A strided view of memory: by slices and permutations where possible, else element by element."""
    val = captured_val(builder.origin.args[0])
    memory = sorted(range(x.ndim), key=lambda dim: (-val.stride(dim), -x.shape[dim]))
    if not val.permute(memory).is_contiguous():
        refuse("the memory of the input has gaps")
    offset = storage_offset if storage_offset is not None else val.storage_offset()
    start = offset - val.storage_offset()
    flat = x.permute(memory).view((x.numel,))
    order = sorted(range(len(size)), key=lambda dim: (-stride[dim], -size[dim]))
    count = math.prod(size)
    dense = torch.empty([size[dim] for dim in order], device="meta").stride()
    same = all(size[dim] == 1 or stride[dim] == step for dim, step in zip(order, dense))
    if not 0 <= start <= x.numel - (1 + sum((each - 1) * step for each, step in zip(size, stride))):
        refuse("it reaches beyond the memory of the input")
    if same:
        block = cut(ttnn, builder, flat, 0, start, start + count).view([size[dim] for dim in order])
        return block.permute([order.index(dim) for dim in range(len(size))])
    positions = torch.arange(x.numel, dtype=torch.int32).as_strided(list(size), list(stride), start)
    return _read(ttnn, builder, flat, [0], [builder.static(positions.contiguous())], tuple(size))


@lowers(aten.tril.default)
def tril(ttnn: Any, builder: ProgramBuilder, x: Value, diagonal: int = 0) -> Handle:
    return _triangle(ttnn, builder, x, torch.ones(x.shape[-2:], dtype=torch.bool).tril(diagonal))


@lowers(aten.triu.default)
def triu(ttnn: Any, builder: ProgramBuilder, x: Value, diagonal: int = 0) -> Handle:
    return _triangle(ttnn, builder, x, torch.ones(x.shape[-2:], dtype=torch.bool).triu(diagonal))


def _triangle(ttnn: Any, builder: ProgramBuilder, x: Value, kept: torch.Tensor) -> Handle:
    """Selects with `where` instead of multiplying: masked elements may be infinite."""
    handle = x.tile()
    mask = builder.static(kept).tile(handle.dtype)
    zero = 0 if handle.dtype is DataType.INT32 else 0.0
    return ttnn.where(mask, handle, zero)
