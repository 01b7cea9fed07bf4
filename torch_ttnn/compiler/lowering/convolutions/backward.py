"""Gradients of convolutions: the opposite convolution for the input, a product of patches for the weights."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

from torch_ttnn.compiler.ir.builder import ProgramBuilder
from torch_ttnn.compiler.ir.value import ROW_MAJOR, TILE, Handle, Value
from torch_ttnn.compiler.lowering.convolutions.forward import convolution, no_convolution
from torch_ttnn.compiler.lowering.convolutions.problem import Convolution
from torch_ttnn.compiler.lowering.registry import lowers
from torch_ttnn.compiler.lowering.support import image_layout
from torch_ttnn.compiler.lowering.support.windows import Windows, padded_images, side_by_side, taps_of
from ttnn_emulator import DataType

aten = torch.ops.aten


@lowers(aten.convolution_backward.default, when=no_convolution)
def convolution_backward(
    ttnn: Any,
    builder: ProgramBuilder,
    gradient: Value,
    x: Value,
    weight: Value,
    bias_sizes: Sequence[int] | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
    output_mask: Sequence[bool],
) -> tuple[Value | None, Value | None, Value | None]:
    wanted = [mask and number in builder.used for number, mask in enumerate(output_mask)]
    dtype = builder.device_dtype(x.dtype)
    problem = Convolution.of(
        x.shape, weight.shape, stride, padding, dilation, transposed, output_padding, groups, dtype
    )
    of_input = of_weight = of_bias = None
    if wanted[0]:
        of_input = input_gradient(ttnn, builder, problem, gradient, weight)
    if wanted[1] and not transposed:
        of_weight = weight_gradient(ttnn, builder, problem, problem.windows, x, gradient)
    elif wanted[1]:
        # Without the output padding there are as many windows as input pixels.
        sides = tuple([(pad, pad - more) for pad, more in zip(problem.padding, problem.output_padding)])
        windows = Windows(problem.output, problem.kernel, problem.stride, sides, problem.dilation)
        of_weight = weight_gradient(ttnn, builder, forward_problem(problem), windows, gradient, x)
    if wanted[2]:
        rows = builder.cast(image_layout.stored(ttnn, builder, gradient, TILE), DataType.FLOAT32)
        total = ttnn.sum(rows, dim=2, keepdim=True, compute_kernel_config=builder.accurate)
        of_bias = builder.value(total, (problem.out_channels,), x.dtype)
    return of_input, of_weight, of_bias


def forward_problem(problem: Convolution) -> Convolution:
    """The forward convolution from the output of a transposed convolution to its input."""
    return Convolution(
        problem.batch,
        problem.out_channels,
        problem.in_channels,
        problem.output,
        problem.kernel,
        problem.stride,
        problem.padding,
        problem.dilation,
        (0,) * problem.rank,
        False,
        problem.groups,
        problem.dtype,
    )


def input_gradient(ttnn: Any, builder: ProgramBuilder, problem: Convolution, gradient: Value, weight: Value) -> Value:
    """The opposite convolution (transposed or forward); output padding covers pixels that no window reached."""
    more = [0] * problem.rank
    if not problem.transposed:
        rows = zip(problem.sizes, problem.output, problem.stride, problem.padding, problem.reach)
        more = [size - ((count - 1) * step - 2 * pad + reach) for size, count, step, pad, reach in rows]
    result = convolution(
        ttnn,
        builder,
        gradient,
        weight,
        None,
        problem.stride,
        problem.padding,
        problem.dilation,
        not problem.transposed,
        more,
        problem.groups,
    )
    if result.shape[2:] == problem.sizes:
        return result
    # Output padding of a whole stride adds windows that the forward pass did not have.
    pixels = image_layout.videos(ttnn, builder, result, ROW_MAJOR)
    cut = ttnn.slice(pixels, [0] * result.ndim, [problem.batch, *problem.sizes, problem.in_channels])
    return image_layout.value(builder, cut, problem.batch, problem.sizes, gradient.dtype)


def weight_gradient(
    ttnn: Any, builder: ProgramBuilder, problem: Convolution, windows: Windows, x: Value, gradient: Value
) -> Value:
    """[out, in / groups, *kernel] of a forward convolution: the pixels under each tap times the output gradient."""
    groups, taps = problem.groups, math.prod(problem.kernel)
    inner, outer = problem.in_channels // groups, problem.out_channels // groups
    source = padded_images(ttnn, image_layout.videos(ttnn, builder, x, ROW_MAJOR, problem.dtype), windows.padding)
    pixels = image_layout.stored(ttnn, builder, gradient, TILE, problem.dtype)
    if groups > 1 and inner == outer == 1:
        result = depthwise_gradient(ttnn, builder, taps_of(ttnn, source, windows), pixels)
        return builder.value(result, (taps, groups), x.dtype).permute((1, 0)).view((groups, 1, *problem.kernel))
    joined = side_by_side(ttnn, builder, source, windows)
    rows = joined.shape[0]
    left = by_group(ttnn, builder, builder.reshaped(joined, (rows, taps, groups, inner)), groups, rows, taps * inner)
    right = by_group(ttnn, builder, builder.reshaped(pixels, (rows, 1, groups, outer)), groups, rows, outer)
    result = ttnn.matmul(left, right, transpose_a=True, compute_kernel_config=builder.accurate)
    held = builder.value(result, (groups, taps, inner, outer), x.dtype)
    return held.permute((0, 3, 2, 1)).view((problem.out_channels, inner, *problem.kernel))


def depthwise_gradient(ttnn: Any, builder: ProgramBuilder, seen: Sequence[Handle], pixels: Handle) -> Handle:
    """[taps, C]: each channel's taps times its own gradient, summed over pixels. A matmul would be mostly padding."""
    rows, channels = pixels.shape[-2:]
    gradient = builder.reshaped(pixels, (rows, channels))
    totals = []
    for each in seen:
        part = ttnn.multiply(builder.tiled(builder.reshaped(each, (rows, channels))), gradient)
        wide = builder.cast(part, DataType.FLOAT32)
        totals.append(ttnn.sum(wide, dim=0, keepdim=True, compute_kernel_config=builder.accurate))
    return ttnn.concat(totals, dim=0) if len(totals) > 1 else totals[0]


def by_group(ttnn: Any, builder: ProgramBuilder, handle: Handle, groups: int, rows: int, width: int) -> Handle:
    """[rows, n, groups, m] → tiles [groups, rows, n × m]."""
    if groups > 1:
        handle = ttnn.permute(handle, [2, 0, 1, 3])
    return builder.tiled(builder.reshaped(handle, (groups, rows, width)))
