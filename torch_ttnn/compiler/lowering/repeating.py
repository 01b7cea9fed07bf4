"""Values repeated: expand, repeat, repeat_interleave. Done on what is stored, in the order in which it lies there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from torch_ttnn.compiler.forms import Form
from torch_ttnn.compiler.lowering.registry import lowers
from torch_ttnn.compiler.lowering.stored import held_by, spread
from torch_ttnn.compiler.value import Value

aten = torch.ops.aten


def repeated(ttnn: Any, x: Value, times: Sequence[int]) -> Value:
    """So many times over along each of torch's dimensions."""
    if all(each == 1 for each in times):
        return x
    if x.is_static:
        return x.prepared(aten.repeat.default, list(times))
    form = x.form
    along = [times[dim] for dim in form.order]
    held = tuple([size * each for size, each in zip(form.held, along)])
    return held_by(ttnn, x, ttnn.repeat(spread(ttnn, x), along), Form(held, form.axes))


def expanded(ttnn: Any, x: Value, shape: Sequence[int]) -> Value:
    """Broadcast to a shape."""
    x = x.with_rank(len(shape))
    return repeated(ttnn, x, [size // old for size, old in zip(shape, x.shape)])


def interleaved(ttnn: Any, x: Value, times: int, dim: int) -> Value:
    """Each slice along `dim` so many times over, next to itself."""
    if times == 1:
        return x
    if x.is_static:
        return x.prepared(torch.repeat_interleave, times, dim)
    handle = ttnn.repeat_interleave(spread(ttnn, x), times, dim=x.form.axes[dim])
    return held_by(ttnn, x, handle, x.form.resized(dim, x.shape[dim] * times))


@lowers(aten.expand.default, aten.expand_copy.default)
def expand(ttnn: Any, x: Value, shape: Sequence[int], *, implicit: bool = False) -> Value:
    sizes = list(shape)
    padded = (1,) * (len(sizes) - x.ndim) + x.shape
    return expanded(ttnn, x, [old if size == -1 else size for size, old in zip(sizes, padded)])


@lowers(aten.expand_as.default)
def expand_as(ttnn: Any, x: Value, other: Value) -> Value:
    return expanded(ttnn, x, other.shape)


@lowers(aten.repeat.default)
def repeat(ttnn: Any, x: Value, repeats: Sequence[int]) -> Value:
    return repeated(ttnn, x.with_rank(len(repeats)), repeats)


@lowers(aten.repeat_interleave.self_int)
def repeat_interleave(
    ttnn: Any, x: Value, repeats: int, dim: int | None = None, *, output_size: int | None = None
) -> Value:
    if dim is None:
        return interleaved(ttnn, x.view((x.numel,)), repeats, 0)
    return interleaved(ttnn, x, repeats, dim % x.ndim)
