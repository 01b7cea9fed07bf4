"""Gradients of pools: distributed over the pixels of each window, or passed to the largest of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from torch_ttnn.compiler.ir.builder import ProgramBuilder
from torch_ttnn.compiler.ir.value import ROW_MAJOR, TILE, Value
from torch_ttnn.compiler.lowering.images.pooling import batched, no_pool, shares_of, tap_indices, unbatched
from torch_ttnn.compiler.lowering.registry import lowers
from torch_ttnn.compiler.lowering.support import image_layout
from torch_ttnn.compiler.lowering.support.linear_maps import along_images, averaging
from torch_ttnn.compiler.lowering.support.windows import Windows, spread, sum_of_taps

aten = torch.ops.aten


@lowers(aten.max_pool2d_with_indices_backward.default, when=no_pool)
def max_pool2d_backward(
    ttnn: Any,
    builder: ProgramBuilder,
    gradient: Value,
    x: Value,
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    ceil_mode: bool,
    indices: Value,
) -> Value:
    """Passes each gradient to the pixel that was largest: tap by tap, where the saved index matches."""
    shape = x.shape
    source = batched(x, 2)
    windows = Windows.of(source.shape[2:], kernel, stride or kernel, padding, dilation, gradient.shape[-2:])
    dtype = builder.device_dtype(x.dtype)
    gradients = image_layout.videos(ttnn, builder, batched(gradient, 2), TILE, dtype)
    remembered = image_layout.videos(ttnn, builder, batched(indices, 2), TILE)
    parts = []
    for index in tap_indices(builder, windows):
        here = ttnn.eq(remembered, index)
        parts.append(ttnn.to_layout(ttnn.where(here, gradients, 0.0), ROW_MAJOR))
    result = sum_of_taps(ttnn, builder, parts, windows)
    return unbatched(image_layout.value(builder, result, source.shape[0], source.shape[2:], x.dtype), shape)


@lowers(aten.avg_pool2d_backward.default, when=no_pool)
def avg_pool2d_backward(
    ttnn: Any,
    builder: ProgramBuilder,
    gradient: Value,
    x: Value,
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
) -> Value:
    """An equal share of the gradient for every pixel of the window."""
    source = batched(x, 2)
    windows = Windows.of(source.shape[2:], kernel, stride or kernel, padding, (1,), gradient.shape[-2:])
    dtype = builder.device_dtype(x.dtype)
    shares = builder.static(shares_of(windows, spread(padding, 2), count_include_pad, divisor_override)).tile(dtype)
    gradients = image_layout.videos(ttnn, builder, batched(gradient, 2), TILE, dtype)
    part = ttnn.to_layout(ttnn.multiply(gradients, shares), ROW_MAJOR)
    result = sum_of_taps(ttnn, builder, [part] * len(windows.taps), windows)
    return unbatched(image_layout.value(builder, result, source.shape[0], source.shape[2:], x.dtype), x.shape)


@lowers(aten._adaptive_avg_pool2d_backward.default, when=no_pool)
def adaptive_avg_pool2d_backward(ttnn: Any, builder: ProgramBuilder, gradient: Value, x: Value) -> Value:
    source = batched(gradient, 2)
    maps = [averaging(old, new) for old, new in zip(x.shape[-2:], source.shape[2:])]
    result = along_images(ttnn, builder, source, [None if each is None else each.transposed() for each in maps])
    return unbatched(result, x.shape)
