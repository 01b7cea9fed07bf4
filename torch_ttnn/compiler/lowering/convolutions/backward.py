"""Gradients of convolutions: a transposed convolution for the input, a product of patches for the weights."""

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
    given = Convolution.of(x.shape, weight.shape, stride, padding, dilation, transposed, output_padding, groups, dtype)
    of_input = of_weight = of_bias = None
    if wanted[0]:
        of_input = input_gradient(ttnn, builder, given, gradient, weight)
    if wanted[1] and not transposed:
        of_weight = weight_gradient(ttnn, builder, given, given.windows, x, gradient)
    elif wanted[1]:
        # Without the output padding there are as many windows as input pixels.
        sides = tuple([(pad, pad - more) for pad, more in zip(given.padding, given.output_padding)])
        windows = Windows(given.output, given.kernel, given.stride, sides, given.dilation)
        of_weight = weight_gradient(ttnn, builder, forward_problem(given), windows, gradient, x)
    if wanted[2]:
        rows = builder.cast(image_layout.stored(ttnn, builder, gradient, TILE), DataType.FLOAT32)
        total = ttnn.sum(rows, dim=2, keepdim=True, compute_kernel_config=builder.accurate)
        of_bias = builder.value(total, (given.out_channels,), x.dtype)
    return of_input, of_weight, of_bias


def forward_problem(given: Convolution) -> Convolution:
    """The forward convolution from the output of a transposed convolution to its input."""
    return Convolution(
        given.batch,
        given.out_channels,
        given.in_channels,
        given.output,
        given.kernel,
        given.stride,
        given.padding,
        given.dilation,
        (0,) * given.rank,
        False,
        given.groups,
        given.dtype,
    )


def input_gradient(ttnn: Any, builder: ProgramBuilder, given: Convolution, gradient: Value, weight: Value) -> Value:
    """The transposed convolution of the gradient; its output padding covers pixels that no window reached."""
    more = [0] * given.rank
    if not given.transposed:
        rows = zip(given.sizes, given.output, given.stride, given.padding, given.reach)
        more = [size - ((count - 1) * step - 2 * pad + reach) for size, count, step, pad, reach in rows]
    made = convolution(
        ttnn,
        builder,
        gradient,
        weight,
        None,
        given.stride,
        given.padding,
        given.dilation,
        not given.transposed,
        more,
        given.groups,
    )
    if made.shape[2:] == given.sizes:
        return made
    # Output padding of a whole stride adds windows that the forward pass did not have.
    pixels = image_layout.videos(ttnn, builder, made, ROW_MAJOR)
    cut = ttnn.slice(pixels, [0] * made.ndim, [given.batch, *given.sizes, given.in_channels])
    return image_layout.value(builder, cut, given.batch, given.sizes, gradient.dtype)


def weight_gradient(
    ttnn: Any, builder: ProgramBuilder, given: Convolution, windows: Windows, x: Value, gradient: Value
) -> Value:
    """[out, in / groups, *kernel] of a forward convolution: the pixels under each tap times the output gradient."""
    groups, taps = given.groups, math.prod(given.kernel)
    inner, outer = given.in_channels // groups, given.out_channels // groups
    source = padded_images(ttnn, image_layout.videos(ttnn, builder, x, ROW_MAJOR, given.dtype), windows.padding)
    pixels = image_layout.stored(ttnn, builder, gradient, TILE, given.dtype)
    if groups > 1 and inner == outer == 1:
        made = depthwise_gradient(ttnn, builder, taps_of(ttnn, source, windows), pixels)
        return builder.value(made, (taps, groups), x.dtype).permute((1, 0)).view((groups, 1, *given.kernel))
    joined = side_by_side(ttnn, builder, source, windows)
    rows = joined.shape[0]
    left = by_group(ttnn, builder, builder.reshaped(joined, (rows, taps, groups, inner)), groups, rows, taps * inner)
    right = by_group(ttnn, builder, builder.reshaped(pixels, (rows, 1, groups, outer)), groups, rows, outer)
    made = ttnn.matmul(left, right, transpose_a=True, compute_kernel_config=builder.accurate)
    held = builder.value(made, (groups, taps, inner, outer), x.dtype)
    return held.permute((0, 3, 2, 1)).view((given.out_channels, inner, *given.kernel))


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
