"""Sliding windows: unfold, im2col, and their adjoint, col2im."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

from torch_ttnn.compiler.errors import refuse
from torch_ttnn.compiler.ir.builder import ProgramBuilder
from torch_ttnn.compiler.ir.value import Value
from torch_ttnn.compiler.lowering.data_movement.gather import picked
from torch_ttnn.compiler.lowering.data_movement.joining import join
from torch_ttnn.compiler.lowering.data_movement.padding import constant_pad
from torch_ttnn.compiler.lowering.data_movement.slicing import cut
from torch_ttnn.compiler.lowering.registry import lowers
from ttnn_emulator import DataType

aten = torch.ops.aten
Pair = Sequence[int]

MOST_SLICES = 16  # limit on slices for windows; beyond it rows are read by index


def windows(ttnn: Any, builder: ProgramBuilder, x: Value, dim: int, size: int, step: int, dilation: int = 1) -> Value:
    """[.., n, ..] → [.., window positions, elements of a window, ..]."""
    reach = (size - 1) * dilation + 1
    count = (x.shape[dim] - reach) // step + 1
    before, after = x.shape[:dim], x.shape[dim + 1 :]
    if step == size and dilation == 1:
        return cut(ttnn, builder, x, dim, 0, count * size).view((*before, count, size, *after))
    if size <= min(count, MOST_SLICES):
        starts = [tap * dilation for tap in range(size)]
        taps = [cut(ttnn, builder, x, dim, start, start + (count - 1) * step + 1, step) for start in starts]
        return join(ttnn, builder, [each.view((*before, count, 1, *after)) for each in taps], dim + 1)
    if count <= MOST_SLICES:
        starts = [position * step for position in range(count)]
        parts = [cut(ttnn, builder, x, dim, start, start + reach, dilation) for start in starts]
        return join(ttnn, builder, [each.view((*before, 1, size, *after)) for each in parts], dim)
    positions = [position * step + tap * dilation for position in range(count) for tap in range(size)]
    return picked(ttnn, builder, x, dim, positions).view((*before, count, size, *after))


@lowers(aten.unfold.default)
def unfold(ttnn: Any, builder: ProgramBuilder, x: Value, dimension: int, size: int, step: int) -> Value:
    if not x.ndim:
        return x.view((1,))
    dim = dimension % x.ndim
    result = windows(ttnn, builder, x, dim, size, step)
    return result.permute([each for each in range(result.ndim) if each != dim + 1] + [dim + 1])


@lowers(aten.im2col.default)
def im2col(
    ttnn: Any, builder: ProgramBuilder, x: Value, kernel_size: Pair, dilation: Pair, padding: Pair, stride: Pair
) -> Value:
    """[N, C, H, W] → [N, C × taps, positions], one dimension at a time."""
    *batch, channels, _, _ = x.shape
    x = constant_pad(ttnn, builder, x, [padding[1], padding[1], padding[0], padding[0]])
    rank = len(batch)
    tall = windows(ttnn, builder, x, rank + 1, kernel_size[0], stride[0], dilation[0])  # [N, C, h, kh, W]
    wide = windows(ttnn, builder, tall, rank + 3, kernel_size[1], stride[1], dilation[1])  # [N, C, h, kh, w, kw]
    mixed = wide.permute([*range(rank + 1), rank + 2, rank + 4, rank + 1, rank + 3])
    positions = wide.shape[rank + 1] * wide.shape[rank + 3]
    return mixed.view((*batch, channels * math.prod(kernel_size), positions))


@lowers(aten.col2im.default)
def col2im(
    ttnn: Any,
    builder: ProgramBuilder,
    x: Value,
    output_size: Pair,
    kernel_size: Pair,
    dilation: Pair,
    padding: Pair,
    stride: Pair,
) -> Value:
    """Patches without overlap are only moved; others are summed, in float32."""
    *batch, rows, _ = x.shape
    channels, rank = rows // math.prod(kernel_size), len(batch)
    height, width = output_size
    is_disjoint = list(stride) == list(kernel_size) and list(dilation) == [1, 1] and list(padding) == [0, 0]
    if is_disjoint and height % kernel_size[0] == 0 and width % kernel_size[1] == 0:
        tall, wide = height // kernel_size[0], width // kernel_size[1]
        patches = x.view((*batch, channels, *kernel_size, tall, wide))
        mixed = patches.permute([*range(rank + 1), rank + 3, rank + 1, rank + 4, rank + 2])
        return mixed.view((*batch, channels, height, width))
    if not x.is_float:
        refuse("the device sums patches of floats only")
    summed = ttnn.moreh_fold(
        x.row_major(DataType.FLOAT32),
        output_size=list(output_size),
        kernel_size=list(kernel_size),
        dilation=list(dilation),
        padding=list(padding),
        stride=list(stride),
    )
    return builder.value(builder.cast(summed, x.device_dtype), (*batch, channels, height, width), x.dtype)
