"""Repeats values in storage order: expand, repeat, repeat_interleave."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.fx

from torch_ttnn.compiler.ir.builder import ProgramBuilder
from torch_ttnn.compiler.ir.storage_order import Form
from torch_ttnn.compiler.ir.value import Value
from torch_ttnn.compiler.lowering.registry import lowers
from torch_ttnn.compiler.lowering.support.stored import spread, stored_in
from ttnn_emulator import DataType

aten = torch.ops.aten
BATCH_NORMS = (aten._native_batch_norm_legit_functional.default, aten._native_batch_norm_legit_no_training.default)


def repeated(ttnn: Any, builder: ProgramBuilder, x: Value, times: Sequence[int]) -> Value:
    """Repeats along each of torch's dimensions."""
    if all(each == 1 for each in times):
        return x
    if x.is_static:
        return x.prepared(aten.repeat.default, list(times))
    form = x.form
    along = [times[dim] for dim in form.order]
    stored_shape = tuple([size * each for size, each in zip(form.stored_shape, along)])
    return stored_in(builder, x, ttnn.repeat(spread(ttnn, builder, x), along), Form(stored_shape, form.axes))


def expanded(ttnn: Any, builder: ProgramBuilder, x: Value, shape: Sequence[int]) -> Value:
    """Broadcast to a shape."""
    x = x.with_rank(len(shape))
    return repeated(ttnn, builder, x, [size // old for size, old in zip(shape, x.shape)])


def interleaved(ttnn: Any, builder: ProgramBuilder, x: Value, times: int, dim: int) -> Value:
    """Repeats each slice along `dim`, next to itself."""
    if times == 1:
        return x
    if x.is_static:
        return x.prepared(torch.repeat_interleave, times, dim)
    handle = ttnn.repeat_interleave(spread(ttnn, builder, x), times, dim=x.form.axes[dim])
    return stored_in(builder, x, handle, x.form.resized(dim, x.shape[dim] * times))


@lowers(aten.expand.default, aten.expand_copy.default)
def expand(ttnn: Any, builder: ProgramBuilder, x: Value, shape: Sequence[int], *, implicit: bool = False) -> Value:
    sizes = list(shape)
    padded = (1,) * (len(sizes) - x.ndim) + x.shape
    return expanded(ttnn, builder, x, [old if size == -1 else size for size, old in zip(sizes, padded)])


@lowers(aten.expand_as.default)
def expand_as(ttnn: Any, builder: ProgramBuilder, x: Value, other: Value) -> Value:
    return expanded(ttnn, builder, x, other.shape)


@lowers(aten.repeat.default)
def repeat(ttnn: Any, builder: ProgramBuilder, x: Value, repeats: Sequence[int]) -> Value:
    x = x.with_rank(len(repeats))
    if _are_statistics(builder.origin) and not x.is_static:
        result = ttnn.repeat(x.tile(DataType.FLOAT32), list(repeats))
        return builder.value(result, [size * each for size, each in zip(x.shape, repeats)], x.dtype)
    return repeated(ttnn, builder, x, repeats)


def _are_statistics(node: torch.fx.Node) -> bool:
    """Whether they are running statistics, which an instance norm repeats for every image.

    Each call moves them slightly, and rounding would lose the change every time.
    """
    return any(user.target in BATCH_NORMS and node in user.args[3:5] for user in node.users)


@lowers(aten.repeat_interleave.self_int)
def repeat_interleave(
    ttnn: Any,
    builder: ProgramBuilder,
    x: Value,
    repeats: int,
    dim: int | None = None,
    *,
    output_size: int | None = None,
) -> Value:
    if dim is None:
        return interleaved(ttnn, builder, x.view((x.numel,)), repeats, 0)
    return interleaved(ttnn, builder, x, repeats, dim % x.ndim)
