"""Slices, selections and splits, in storage order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from torch_ttnn.compiler.ir.builder import ProgramBuilder
from torch_ttnn.compiler.ir.value import Value
from torch_ttnn.compiler.lowering.registry import lowers
from torch_ttnn.compiler.lowering.support.heads import split_qkv
from torch_ttnn.compiler.lowering.support.stored import reshaped, stored_in

aten = torch.ops.aten


def cut(ttnn: Any, builder: ProgramBuilder, x: Value, dim: int, start: int, end: int, step: int = 1) -> Value:
    """Elements from `start` to `end` along a dimension; both within bounds, and at least one element."""
    size = len(range(start, end, step))
    if size == x.shape[dim]:
        return x
    if x.is_static:
        return x.prepared(aten.slice.Tensor, dim, start, end, step)
    base, form = x.base(), x.form
    place = form.place(dim, base.shape)
    if place is not None and (step == 1 or place.inner == 1):
        at, inner, shape = place.dim, place.inner, base.shape
    else:
        shape = form.stored_shape
        base, at, inner = reshaped(ttnn, builder, base, shape), form.axes[dim], 1
    starts, ends, steps = [0] * len(shape), list(shape), [1] * len(shape)
    starts[at], steps[at] = start * inner, step
    ends[at] = end * inner if step == 1 else start + (size - 1) * step + 1
    return stored_in(builder, x, ttnn.slice(base, starts, ends, steps), form.resized(dim, size))


def part(ttnn: Any, builder: ProgramBuilder, x: Value, dim: int, index: int) -> Value:
    """Selects one index along a dimension, and removes the dimension."""
    return cut(ttnn, builder, x, dim, index, index + 1).view(x.shape[:dim] + x.shape[dim + 1 :])


def bounds(size: int, start: int | None, end: int | None) -> tuple[int, int]:
    """Slice bounds normalised as in torch: negative ones count from the end, others are clamped."""
    start, end, _ = slice(start, end).indices(size)
    return start, max(start, end)


@lowers(aten.slice.Tensor, aten.slice_copy.Tensor)
def slice_(
    ttnn: Any,
    builder: ProgramBuilder,
    x: Value,
    dim: int = 0,
    start: int | None = None,
    end: int | None = None,
    step: int = 1,
) -> Value:
    dim %= x.ndim
    first, last = bounds(x.shape[dim], start, end)
    return cut(ttnn, builder, x, dim, first, last, step)


@lowers(aten.select.int, aten.select_copy.int)
def select(ttnn: Any, builder: ProgramBuilder, x: Value, dim: int, index: int) -> Value:
    dim %= x.ndim
    return part(ttnn, builder, x, dim, index % x.shape[dim])


@lowers(aten.narrow.default, aten.narrow_copy.default)
def narrow(ttnn: Any, builder: ProgramBuilder, x: Value, dim: int, start: int, length: int) -> Value:
    dim %= x.ndim
    start %= x.shape[dim]
    return cut(ttnn, builder, x, dim, start, start + length)


@lowers(
    aten.split_with_sizes.default,
    aten.split_with_sizes_copy.default,
    aten.unsafe_split_with_sizes.default,
    aten.split.sizes,
)
def split_with_sizes(
    ttnn: Any, builder: ProgramBuilder, x: Value, sizes: Sequence[int], dim: int = 0
) -> tuple[Value | None, ...]:
    dim %= x.ndim
    ends = [sum(sizes[: number + 1]) for number in range(len(sizes))]
    return tuple(
        [
            cut(ttnn, builder, x, dim, end - size, end) if number in builder.used else None
            for number, (size, end) in enumerate(zip(sizes, ends))
        ]
    )


@lowers(aten.split.Tensor, aten.split_copy.Tensor, aten.unsafe_split.Tensor)
def split(ttnn: Any, builder: ProgramBuilder, x: Value, size: int, dim: int = 0) -> tuple[Value | None, ...]:
    whole = x.shape[dim]
    return split_with_sizes(ttnn, builder, x, [min(size, whole - start) for start in range(0, whole, size)], dim)


@lowers(aten.chunk.default, aten.unsafe_chunk.default)
def chunk(ttnn: Any, builder: ProgramBuilder, x: Value, chunks: int, dim: int = 0) -> tuple[Value | None, ...]:
    return split(ttnn, builder, x, -(-x.shape[dim] // chunks), dim)


@lowers(aten.unbind.int, aten.unbind_copy.int)
def unbind(ttnn: Any, builder: ProgramBuilder, x: Value, dim: int = 0) -> tuple[Any, ...]:
    dim %= x.ndim
    if dim == 0 and x.is_on_device and len(builder.used) == x.shape[0]:
        heads = split_qkv(ttnn, builder, x.base(), x.form)
        if heads is not None:
            return heads
    return tuple(
        [part(ttnn, builder, x, dim, index) if index in builder.used else None for index in range(x.shape[dim])]
    )
