"""Group norms, channels last: per-channel statistics, averaged over groups by a small matrix."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from torch_ttnn.compiler.ir.builder import ProgramBuilder
from torch_ttnn.compiler.ir.value import TILE, Handle, Value
from torch_ttnn.compiler.lowering.registry import lowers
from torch_ttnn.compiler.lowering.support import image_layout
from ttnn_emulator import DataType

aten = torch.ops.aten

FLOAT32 = DataType.FLOAT32


@lowers(aten.native_group_norm.default)
def group_norm(
    ttnn: Any,
    builder: ProgramBuilder,
    x: Value,
    weight: Value | None,
    bias: Value | None,
    batch: int,
    channels: int,
    pixels: int,
    groups: int,
    eps: float,
) -> tuple[Value, Value, Value]:
    """In float32: in bfloat16 differences from a rounded mean would be lost."""
    pixel_rows = image_layout.arranged(ttnn, builder, x, (batch, 1, pixels, channels), TILE, None)
    rows = builder.cast(pixel_rows, FLOAT32)
    share = averages(builder, channels, groups)
    mean = group_mean(ttnn, builder, rows, share)
    centred = ttnn.subtract(rows, mean)
    variance = group_mean(ttnn, builder, ttnn.multiply(centred, centred), share)
    rstd = ttnn.rsqrt(ttnn.add(variance, eps))
    scale = rstd if weight is None else ttnn.multiply(rstd, channel_row(weight))
    normed = ttnn.multiply(centred, scale)
    if bias is not None:
        normed = ttnn.add(normed, channel_row(bias))
    normed = builder.reshaped(builder.cast(normed, builder.device_dtype(x.dtype)), (1, 1, batch * pixels, channels))
    result = image_layout.value(builder, normed, batch, x.shape[2:], x.dtype)
    return result, per_group(ttnn, builder, mean, batch, groups), per_group(ttnn, builder, rstd, batch, groups)


@lowers(aten.native_group_norm_backward.default)
def group_norm_backward(
    ttnn: Any,
    builder: ProgramBuilder,
    grad: Value,
    x: Value,
    mean: Value,
    rstd: Value,
    weight: Value | None,
    batch: int,
    channels: int,
    pixels: int,
    groups: int,
    output_mask: Sequence[bool],
) -> tuple[Any, Any, Any]:
    """All in float32: rstd × (h - mean(h) - y × mean(h × y)) with h = g × weight and y = (x - mean) × rstd.

    torch's decomposition multiplies the three terms out, and their sum cancels.
    """

    def rows(value: Value) -> Handle:
        return image_layout.arranged(ttnn, builder, value, (batch, 1, pixels, channels), TILE, FLOAT32)

    gradients, scale = rows(grad), per_channel(ttnn, builder, rstd, batch, channels)
    normal = ttnn.multiply(ttnn.subtract(rows(x), per_channel(ttnn, builder, mean, batch, channels)), scale)
    results: list[Any] = [None, None, None]
    if output_mask[0]:
        share = averages(builder, channels, groups)
        h = gradients if weight is None else ttnn.multiply(gradients, channel_row(weight))
        along = group_mean(ttnn, builder, ttnn.multiply(h, normal), share)
        centred = ttnn.subtract(h, group_mean(ttnn, builder, h, share))
        made = ttnn.multiply(ttnn.subtract(centred, ttnn.multiply(normal, along)), scale)
        made = builder.reshaped(builder.cast(made, builder.device_dtype(x.dtype)), (1, 1, batch * pixels, channels))
        results[0] = image_layout.value(builder, made, batch, x.shape[2:], x.dtype)
    dtype = x.dtype if weight is None else weight.dtype
    if output_mask[1]:
        results[1] = _channel_sums(ttnn, builder, ttnn.multiply(gradients, normal), dtype)
    if output_mask[2]:
        results[2] = _channel_sums(ttnn, builder, gradients, dtype)
    return results[0], results[1], results[2]


def _channel_sums(ttnn: Any, builder: ProgramBuilder, rows: Handle, dtype: torch.dtype) -> Value:
    """[N, 1, pixels, C] → [C]."""
    batch, _, pixels, channels = rows.shape
    merged = builder.reshaped(rows, (1, 1, batch * pixels, channels))
    total = ttnn.sum(merged, dim=2, keepdim=True, compute_kernel_config=builder.accurate)
    return builder.value(builder.cast(total, builder.device_dtype(dtype)), (1, 1, 1, channels), dtype).view((channels,))


def per_channel(ttnn: Any, builder: ProgramBuilder, statistic: Value, batch: int, channels: int) -> Handle:
    """[N, groups] → [N, 1, 1, C]: repeats each group's statistic for its channels."""
    groups = statistic.numel // batch
    column = statistic.view((batch * groups, 1)).tile(FLOAT32)
    return builder.reshaped(ttnn.repeat(column, [1, channels // groups]), (batch, 1, 1, channels))


def averages(builder: ProgramBuilder, channels: int, groups: int) -> Value:
    """[C, C]: averages all channels over the group of each channel."""
    size = channels // groups
    return builder.static(torch.block_diag(*[torch.full((size, size), 1 / size)] * groups))


def group_mean(ttnn: Any, builder: ProgramBuilder, rows: Handle, share: Value) -> Handle:
    """[N, 1, pixels, C] → [N, 1, 1, C], the group mean for every channel."""
    means = ttnn.mean(rows, dim=2, keepdim=True, compute_kernel_config=builder.accurate)
    return ttnn.matmul(means, share.tile(FLOAT32), compute_kernel_config=builder.accurate)


def channel_row(vector: Value) -> Handle:
    return vector.view((1, 1, 1, vector.numel)).tile(FLOAT32)


def per_group(ttnn: Any, builder: ProgramBuilder, statistic: Handle, batch: int, groups: int) -> Value:
    """[N, 1, 1, C] → [N, groups]: takes each group's first channel."""
    channels = statistic.shape[-1]
    rows = ttnn.to_layout(statistic, ttnn.ROW_MAJOR_LAYOUT)
    firsts = ttnn.slice(rows, [0, 0, 0, 0], [batch, 1, 1, channels], [1, 1, 1, channels // groups])
    return builder.value(firsts, (batch, groups), torch.float32)
