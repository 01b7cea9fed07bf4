"""Views: operations that only change shape or dimension order."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

from torch_ttnn.compiler.ir.builder import ProgramBuilder
from torch_ttnn.compiler.ir.value import Value
from torch_ttnn.compiler.lowering.registry import lowers
from torch_ttnn.compiler.lowering.support.stored import spread, stored_in

aten = torch.ops.aten


def viewed(ttnn: Any, builder: ProgramBuilder, x: Value, shape: Sequence[int]) -> Value:
    """Torch's view. If an image has to be moved for it, it stays channels last."""
    shape = tuple(shape)
    if not x.is_static and x.is_on_device and shape != x.shape and x.form.viewed(shape) is None:
        moved = x.form.gathered(shape)
        if moved is not None:
            order, form = moved
            return stored_in(builder, x, ttnn.permute(spread(ttnn, builder, x), list(order)), form)
    return x.view(shape)


@lowers(aten.view.default, aten._unsafe_view.default, aten.reshape.default, aten.view_copy.default)
def view(ttnn: Any, builder: ProgramBuilder, x: Value, shape: Sequence[int]) -> Value:
    known = math.prod([size for size in shape if size != -1])
    return viewed(ttnn, builder, x, [x.numel // known if size == -1 else size for size in shape])


@lowers(aten.flatten.using_ints)
def flatten(ttnn: Any, builder: ProgramBuilder, x: Value, start_dim: int = 0, end_dim: int = -1) -> Value:
    if not x.ndim:
        return x.view((1,))
    first, last = start_dim % x.ndim, end_dim % x.ndim
    return viewed(ttnn, builder, x, (*x.shape[:first], math.prod(x.shape[first : last + 1]), *x.shape[last + 1 :]))


@lowers(aten.permute.default, aten.permute_copy.default)
def permute(ttnn: Any, x: Value, dims: Sequence[int]) -> Value:
    return x.permute(dims)


@lowers(aten.transpose.int, aten.transpose_copy.int)
def transpose(ttnn: Any, x: Value, dim0: int, dim1: int) -> Value:
    dims = list(range(x.ndim))
    if dims:
        dims[dim0], dims[dim1] = dims[dim1], dims[dim0]
    return x.permute(dims)


@lowers(aten.t.default, aten.t_copy.default)
def t(ttnn: Any, x: Value) -> Value:
    return x.permute(list(range(x.ndim))[::-1])


@lowers(aten.unsqueeze.default, aten.unsqueeze_copy.default)
def unsqueeze(ttnn: Any, x: Value, dim: int) -> Value:
    dim = dim % (x.ndim + 1)
    return x.view((*x.shape[:dim], 1, *x.shape[dim:]))


@lowers(
    aten.squeeze.default,
    aten.squeeze.dim,
    aten.squeeze.dims,
    aten.squeeze_copy.default,
    aten.squeeze_copy.dim,
    aten.squeeze_copy.dims,
)
def squeeze(ttnn: Any, x: Value, dims: int | Sequence[int] | None = None) -> Value:
    chosen = range(x.ndim) if dims is None else [dims] if isinstance(dims, int) else dims
    removed = {dim % x.ndim for dim in chosen} if x.ndim else set()
    return x.view([size for dim, size in enumerate(x.shape) if dim not in removed or size != 1])


# -- pixels and channels ----------------------------------------------------------------------------------------------


@lowers(aten.pixel_shuffle.default)
def pixel_shuffle(ttnn: Any, builder: ProgramBuilder, x: Value, upscale_factor: int) -> Value:
    *outer, channels, height, width = x.shape
    factor, rank = upscale_factor, len(outer)
    channels //= factor * factor
    unmerged = viewed(ttnn, builder, x, (*outer, channels, factor, factor, height, width))
    permuted = unmerged.permute([*range(rank + 1), rank + 3, rank + 1, rank + 4, rank + 2])
    return viewed(ttnn, builder, permuted, (*outer, channels, height * factor, width * factor))


@lowers(aten.pixel_unshuffle.default)
def pixel_unshuffle(ttnn: Any, builder: ProgramBuilder, x: Value, downscale_factor: int) -> Value:
    *outer, channels, height, width = x.shape
    factor, rank = downscale_factor, len(outer)
    height, width = height // factor, width // factor
    unmerged = viewed(ttnn, builder, x, (*outer, channels, height, factor, width, factor))
    permuted = unmerged.permute([*range(rank + 1), rank + 2, rank + 4, rank + 1, rank + 3])
    return viewed(ttnn, builder, permuted, (*outer, channels * factor * factor, height, width))


@lowers(aten.channel_shuffle.default, aten.native_channel_shuffle.default)
def channel_shuffle(ttnn: Any, builder: ProgramBuilder, x: Value, groups: int) -> Value:
    batch, channels, *sizes = x.shape
    unmerged = viewed(ttnn, builder, x, (batch, groups, channels // groups, *sizes))
    permuted = unmerged.permute([0, 2, 1, *range(3, x.ndim + 1)])
    return viewed(ttnn, builder, permuted, x.shape)
