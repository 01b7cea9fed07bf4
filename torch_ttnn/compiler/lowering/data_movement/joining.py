"""Concatenation, stacking, and replacement of slices, in the storage order of the first operand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from torch_ttnn.compiler.ir.builder import ProgramBuilder
from torch_ttnn.compiler.ir.storage_order import Form
from torch_ttnn.compiler.ir.tile_padding import is_mostly_padding
from torch_ttnn.compiler.ir.value import ROW_MAJOR, Value
from torch_ttnn.compiler.lowering.data_movement.slicing import bounds, cut
from torch_ttnn.compiler.lowering.registry import lowers
from torch_ttnn.compiler.lowering.support.stored import common_dtype, spread

aten = torch.ops.aten


def join(
    ttnn: Any, builder: ProgramBuilder, values: Sequence[Value], dim: int, dtype: torch.dtype | None = None
) -> Value:
    """Concatenates values along `dim`. The first operand stored in a permuted order determines the result's."""
    if len(values) == 1:
        return values[0]
    dtype = dtype or values[0].dtype
    leader = next((each for each in values if _is_reordered(each)), None) or next(
        (each for each in values if each.is_on_device), values[0]
    )
    form, stored = leader.form, leader.base().shape
    place = form.place(dim, stored)
    if place is None:
        stored, at, inner = form.stored_shape, form.axes[dim], 1
    else:
        at, inner = place.dim, place.inner
    axis = form.axes[dim]
    wanted = common_dtype(builder, dtype, values)
    rows = all(each.is_on_device and each.base().layout is ROW_MAJOR for each in values)
    rows = rows or is_mostly_padding(stored, leader.base().shape)
    handles = []
    for value in values:
        ordered = value.permute(form.order) if value.ndim else value
        shaped = ordered.view((*stored[:at], ordered.shape[axis] * inner, *stored[at + 1 :]))
        handles.append(shaped.row_major(wanted) if rows else shaped.tile(wanted))
    total = sum([each.shape[dim] for each in values])
    result = form.resized(dim, total)
    return builder.value(ttnn.concat(handles, dim=at), result.shape, dtype, result)


def _is_reordered(value: Value) -> bool:
    return value.is_on_device and not value.is_static and not value.form.is_plain


@lowers(aten.cat.default, aten.concat.default)
def cat(ttnn: Any, builder: ProgramBuilder, tensors: Sequence[Value], dim: int = 0) -> Value:
    return join(ttnn, builder, tensors, dim % tensors[0].ndim, builder.origin.meta["val"].dtype)


@lowers(aten.stack.default)
def stack(ttnn: Any, builder: ProgramBuilder, tensors: Sequence[Value], dim: int = 0) -> Value:
    shape = tensors[0].shape
    dim %= len(shape) + 1
    raised = [each.view((*shape[:dim], 1, *shape[dim:])) for each in tensors]
    return join(ttnn, builder, raised, dim, builder.origin.meta["val"].dtype)


def replace(ttnn: Any, builder: ProgramBuilder, x: Value, dim: int, start: int, source: Value) -> Value:
    """`x` with slices along `dim`, from `start`, replaced by those of `source`."""
    end, size = start + source.shape[dim], x.shape[dim]
    parts = [source]
    if start > 0:
        parts.insert(0, cut(ttnn, builder, x, dim, 0, start))
    if end < size:
        parts.append(cut(ttnn, builder, x, dim, end, size))
    return join(ttnn, builder, parts, dim, x.dtype)


@lowers(aten.select_scatter.default)
def select_scatter(ttnn: Any, builder: ProgramBuilder, x: Value, source: Value, dim: int, index: int) -> Value:
    dim %= x.ndim
    return replace(ttnn, builder, x, dim, index % x.shape[dim], source.view((*x.shape[:dim], 1, *x.shape[dim + 1 :])))


@lowers(aten.slice_scatter.default)
def slice_scatter(
    ttnn: Any,
    builder: ProgramBuilder,
    x: Value,
    source: Value,
    dim: int = 0,
    start: int | None = None,
    end: int | None = None,
    step: int = 1,
) -> Value:
    dim %= x.ndim
    first, _ = bounds(x.shape[dim], start, end)
    if step == 1:
        return replace(ttnn, builder, x, dim, first, source)
    return _replace_every(ttnn, builder, x, source, dim, first, step)


def _replace_every(
    ttnn: Any, builder: ProgramBuilder, x: Value, source: Value, dim: int, first: int, step: int
) -> Value:
    """Replaces every `step`-th slice: views `x` as rows of `step` slices and replaces one column."""
    count, size = source.shape[dim], x.shape[dim]
    end = min(size, first + count * step)
    if end - first < count * step:  # the last row is incomplete: handle it separately
        last = first + (count - 1) * step
        x = replace(ttnn, builder, x, dim, last, cut(ttnn, builder, source, dim, count - 1, count))
        if count == 1:
            return x
        return _replace_every(ttnn, builder, x, cut(ttnn, builder, source, dim, 0, count - 1), dim, first, step)
    middle = cut(ttnn, builder, x, dim, first, end)
    before, after = x.shape[:dim], x.shape[dim + 1 :]
    rows = middle.view((*before, count, step, *after))
    rows = replace(ttnn, builder, rows, dim + 1, 0, source.view((*before, count, 1, *after)))
    return replace(ttnn, builder, x, dim, first, rows.view(middle.shape))


@lowers(aten.roll.default)
def roll(ttnn: Any, builder: ProgramBuilder, x: Value, shifts: Sequence[int], dims: Sequence[int] = ()) -> Value:
    if not dims:
        return roll(ttnn, builder, x.view((x.numel,)), shifts, [0]).view(x.shape)
    amounts: dict[int, int] = {}
    for shift, dim in zip(shifts, dims):
        axis = x.form.axes[dim % x.ndim]
        amounts[axis] = (amounts.get(axis, 0) + shift) % x.form.stored_shape[axis]
    amounts = {axis: shift for axis, shift in amounts.items() if shift}
    if not amounts:
        return x
    rolled = ttnn.roll(spread(ttnn, builder, x), list(amounts.values()), list(amounts))
    return builder.value(rolled, x.shape, x.dtype, Form(x.form.stored_shape, x.form.axes))
