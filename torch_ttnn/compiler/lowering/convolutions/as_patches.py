"""Convolutions as patches times a matrix (im2col): any convolution, with static or computed weights."""

from __future__ import annotations

import math
from typing import Any

import torch

from torch_ttnn.compiler.ir.builder import ProgramBuilder
from torch_ttnn.compiler.ir.value import ROW_MAJOR, Handle, Value
from torch_ttnn.compiler.lowering.convolutions.problem import Convolution
from torch_ttnn.compiler.lowering.support import image_layout
from torch_ttnn.compiler.lowering.support.windows import Windows, dilate, padded_images, patches, taps_of
from ttnn_emulator import DataType


def activated(ttnn: Any, handle: Handle, activation: str | None) -> Handle:
    return handle if activation is None else getattr(ttnn, activation)(handle)


def as_patches(
    ttnn: Any,
    builder: ProgramBuilder,
    problem: Convolution,
    x: Value,
    weight: Value,
    bias: Value | None,
    activation: str | None,
) -> Handle:
    """The pixels under the kernel, concatenated, times the weights: any convolution, with any weights."""
    source = image_layout.videos(ttnn, builder, x, ROW_MAJOR, problem.dtype)
    if problem.transposed:
        source, windows = transposed_source(ttnn, builder, source, problem)
        weight = forward_weight(ttnn, builder, problem, weight)
    else:
        windows = problem.windows
        source = padded_images(ttnn, source, windows.padding)
    result = product(ttnn, builder, source, windows, weight, problem)
    if bias is not None:
        result = ttnn.add(result, bias.view((1, problem.out_channels)).tile(problem.dtype))
    return activated(ttnn, result, activation)


def transposed_source(
    ttnn: Any, builder: ProgramBuilder, source: Handle, problem: Convolution
) -> tuple[Handle, Windows]:
    """The input dilated by the stride and padded, for a flipped kernel with stride 1."""
    dilated = dilate(ttnn, builder, source, problem.stride)
    # `dilate` appends step - 1 zeros after the last pixel: subtract them from the padding.
    sides = [
        (reach - 1 - pad, reach - 1 - pad + more - (step - 1))
        for reach, pad, more, step in zip(problem.reach, problem.padding, problem.output_padding, problem.stride)
    ]
    plain = padded_images(ttnn, dilated, sides)
    ones = (1,) * problem.rank
    return plain, Windows.of(plain.shape[1:-1], problem.kernel, ones, (0,) * problem.rank, problem.dilation)


def forward_weight(ttnn: Any, builder: ProgramBuilder, problem: Convolution, weight: Value) -> Value:
    """[in, out / groups, *kernel] of a transposed convolution → [out, in / groups, *kernel], flipped."""
    rank, groups = problem.rank, problem.groups
    kernel = tuple(range(2, 2 + rank))
    if weight.is_static:
        mirrored = weight.prepared(torch.flip, list(kernel))
    else:
        mirrored = _flipped(ttnn, builder, weight, rank)
    split = mirrored.view((groups, problem.in_channels // groups, problem.out_channels // groups, *problem.kernel))
    swapped = split.permute((0, 2, 1, *[dim + 1 for dim in kernel]))
    return swapped.view((problem.out_channels, problem.in_channels // groups, *problem.kernel))


def _flipped(ttnn: Any, builder: ProgramBuilder, weight: Value, rank: int) -> Value:
    """Reverses the order of taps, for weights on the device."""
    taps = math.prod(weight.shape[-rank:])
    if taps == 1:
        return weight
    flat = weight.view((*weight.shape[:-rank], taps)).row_major()
    first, second = flat.shape[:2]
    parts = [ttnn.slice(flat, [0, 0, tap], [first, second, tap + 1]) for tap in reversed(range(taps))]
    return builder.value(ttnn.concat(parts, dim=-1), weight.shape, weight.dtype)


def product(
    ttnn: Any, builder: ProgramBuilder, source: Handle, windows: Windows, weight: Value, problem: Convolution
) -> Handle:
    """[N × output pixels, out] from padded images and weights [out, in / groups, *kernel]."""
    groups, dtype = problem.groups, problem.dtype
    taps, inner, outer = math.prod(problem.kernel), problem.in_channels // groups, problem.out_channels // groups
    last = weight.view((problem.out_channels, inner, taps))
    if groups == 1:
        matrix = last.permute((2, 1, 0)).view((taps * inner, outer))
        return ttnn.matmul(
            patches(ttnn, builder, source, windows), matrix.tile(dtype), compute_kernel_config=builder.accurate
        )
    if inner == outer == 1:
        return _depthwise_product(ttnn, builder, source, windows, last, dtype)
    seen = taps_of(ttnn, source, windows)
    joined = ttnn.concat(seen, dim=-1) if len(seen) > 1 else seen[0]
    rows = math.prod(joined.shape[:-1])
    split = ttnn.permute(builder.reshaped(joined, (rows, taps, groups, inner)), [2, 0, 1, 3])
    matrices = last.view((groups, outer, inner, taps)).permute((0, 3, 2, 1)).view((groups, taps * inner, outer))
    result = ttnn.matmul(
        builder.tiled(builder.reshaped(split, (groups, rows, taps * inner))),
        matrices.tile(dtype),
        compute_kernel_config=builder.accurate,
    )
    return builder.reshaped(ttnn.permute(result, [1, 0, 2]), (rows, problem.out_channels))


def _depthwise_product(
    ttnn: Any, builder: ProgramBuilder, source: Handle, windows: Windows, weight: Value, dtype: DataType
) -> Handle:
    channels = source.shape[-1]
    total = None
    rows = weight.view((channels, len(windows.taps))).permute((1, 0)).row_major(dtype)
    for number, seen in enumerate(taps_of(ttnn, source, windows)):
        factor = builder.tiled(ttnn.slice(rows, [number, 0], [number + 1, channels]))
        pixels = builder.tiled(builder.reshaped(seen, (math.prod(seen.shape[:-1]), channels)))
        part = ttnn.multiply(pixels, factor)
        total = part if total is None else ttnn.add(total, part)
    assert total is not None
    return total
