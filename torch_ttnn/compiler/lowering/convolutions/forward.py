"""Convolutions in 1D, 2D and 3D, transposed, grouped: as library calls, as a linear, or as patches times a matrix."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch

import ttnn_emulator
from torch_ttnn.compiler.errors import StaysOnHost, refuse
from torch_ttnn.compiler.ir.builder import ProgramBuilder
from torch_ttnn.compiler.ir.metadata import annotate
from torch_ttnn.compiler.ir.nodes import call_node
from torch_ttnn.compiler.ir.value import ROW_MAJOR, TILE, Handle, Value
from torch_ttnn.compiler.lowering.convolutions.as_patches import (
    activated,
    as_patches,
    forward_weight,
    transposed_source,
)
from torch_ttnn.compiler.lowering.convolutions.problem import Convolution
from torch_ttnn.compiler.lowering.registry import lowers
from torch_ttnn.compiler.lowering.support import image_layout
from ttnn_emulator import TILE_SIZE, DataType

aten = torch.ops.aten

# Activations that a convolution applies to its result, by their library names.
ACTIVATIONS: dict[str, tuple[str, list[float]]] = {
    "relu": ("RELU", []),
    "relu6": ("RELU6", []),
    "silu": ("SILU", []),
    "gelu": ("GELU", [0.0]),
    "sigmoid": ("SIGMOID", [4.0, 0.0]),
    "tanh": ("TANH", [0.0]),
    "hardswish": ("HARDSWISH", []),
    "hardsigmoid": ("HARDSIGMOID", []),
}
LEFT_OUT = ("hardswish",)  # silently ignored by the library's kernel: applied as a separate operation


def no_convolution(ttnn: Any, x: Value, weight: Value, *rest: Any, **options: Any) -> str | None:
    """The reason why a convolution falls back to torch, or None."""
    if not x.is_float:
        return "the device does not support convolutions of integers"
    return None if x.ndim in (3, 4, 5) else f"the device does not support convolutions of rank {x.ndim - 2}"


@lowers(aten.convolution.default, when=no_convolution)
def convolution(
    ttnn: Any,
    builder: ProgramBuilder,
    x: Value,
    weight: Value,
    bias: Value | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
    activation: str | None = None,
) -> Value:
    """`activation` is applied to the result; only fusions pass it."""
    dtype = builder.device_dtype(x.dtype)
    problem = Convolution.of(
        x.shape, weight.shape, stride, padding, dilation, transposed, output_padding, groups, dtype
    )
    reasons: list[str] = []
    for way in ways(problem, weight, bias):
        try:
            result = way(ttnn, builder, problem, x, weight, bias, activation)
        except StaysOnHost as reason:
            reasons.append(str(reason))
            continue
        return image_layout.value(builder, result, problem.batch, problem.output, x.dtype)
    return refuse(reasons[0])


Way = Callable[..., Handle]


def ways(problem: Convolution, weight: Value, bias: Value | None) -> list[Way]:
    """The applicable strategies for this convolution, best first."""
    if problem.is_linear:
        return [as_linear]
    found: list[Way] = []
    if weight.is_static and (bias is None or bias.is_static):
        if problem.rank == 3:
            found = [] if problem.transposed or problem.groups > 1 else [in_space]
        elif problem.transposed:
            found = [as_blocks if problem.is_blocks else transposed_in_plane]
        else:
            found = [in_plane]
    return [*found, as_patches]


# -- library operations -----------------------------------------------------------------------------------------------


def as_linear(
    ttnn: Any,
    builder: ProgramBuilder,
    problem: Convolution,
    x: Value,
    weight: Value,
    bias: Value | None,
    activation: str | None,
) -> Handle:
    matrix = weight.view((problem.out_channels, problem.in_channels)).permute((1, 0))
    row = bias.view((1, problem.out_channels)).tile(problem.dtype) if bias is not None else None
    return ttnn.linear(
        image_layout.stored(ttnn, builder, x, TILE, problem.dtype),
        matrix.tile(problem.dtype),
        bias=row,
        activation=function_of(ttnn, activation),
        compute_kernel_config=builder.accurate,
    )


def in_plane(
    ttnn: Any,
    builder: ProgramBuilder,
    problem: Convolution,
    x: Value,
    weight: Value,
    bias: Value | None,
    activation: str | None,
) -> Handle:
    """`ttnn.conv2d` with weights prepared once."""
    plane = problem if problem.rank == 2 else problem.in_plane()
    source = image_layout.stored(ttnn, builder, x, None, problem.dtype)
    after = activation if activation in LEFT_OUT else None
    config = config_of(ttnn, problem.dtype, None if after else activation)
    if bias is None and plane.is_depthwise_line:
        bias = _no_bias(weight)
    sizes = _sizes(plane)
    if not _is_read_as_prepared(ttnn, builder, source, plane, bias is not None, config):
        source = image_layout.stored(ttnn, builder, x, ROW_MAJOR, problem.dtype)
        if not _is_read_as_prepared(ttnn, builder, source, plane, bias is not None, config):
            refuse("weights prepared for this convolution are not in the form in which it reads them")
    taps = weight.view((*weight.shape[:2], *plane.kernel))
    prepared, row = _prepared(ttnn, builder, source, taps, bias, plane, sizes, config)
    result = ttnn.conv2d(
        input_tensor=source,
        weight_tensor=prepared,
        bias_tensor=row,
        device=builder.device,
        **sizes,
        groups=plane.groups,
        dtype=plane.dtype,
        conv_config=config,
        compute_config=builder.accurate,
    )
    return activated(ttnn, result, after)


def _no_bias(weight: Value) -> Value:
    """Zeros, one per channel.

    A 1D depthwise convolution without a bias runs a special kernel, which does not fetch index tables from DRAM and
    does not apply an activation. With a bias it runs the general kernel.
    """
    row = weight.view((weight.shape[0], -1)).prepared(aten.select.int, 1, 0)
    return row.prepared(aten.zeros_like.default)


def transposed_in_plane(
    ttnn: Any,
    builder: ProgramBuilder,
    problem: Convolution,
    x: Value,
    weight: Value,
    bias: Value | None,
    activation: str | None,
) -> Handle:
    """A forward convolution with a flipped kernel over the input dilated by the stride.

    `ttnn.conv_transpose2d` is not used: for inputs in DRAM it does not read weights in the form in which they are
    prepared.
    """
    source = image_layout.videos(ttnn, builder, x, ROW_MAJOR, problem.dtype)
    dilated, windows = transposed_source(ttnn, builder, source, problem)
    none = (0,) * problem.rank
    plain = replace(
        problem, sizes=windows.sizes, stride=windows.stride, padding=none, output_padding=none, transposed=False
    )
    dilated_value = image_layout.value(builder, dilated, problem.batch, windows.sizes, x.dtype)
    way = as_linear if plain.is_linear else in_plane
    return way(ttnn, builder, plain, dilated_value, forward_weight(ttnn, builder, problem, weight), bias, activation)


def as_blocks(
    ttnn: Any,
    builder: ProgramBuilder,
    problem: Convolution,
    x: Value,
    weight: Value,
    bias: Value | None,
    activation: str | None,
) -> Handle:
    """A transposed convolution whose kernel equals its stride: each pixel becomes an independent block of pixels."""
    (high, wide), (rows, columns), out = problem.sizes, problem.kernel, problem.out_channels
    matrix = weight.permute((0, 2, 3, 1)).view((problem.in_channels, rows * columns * out))
    row = None
    if bias is not None:
        row = bias.prepared(torch.tile, [rows * columns]).view((1, rows * columns * out)).tile(problem.dtype)
    result = ttnn.linear(
        image_layout.stored(ttnn, builder, x, TILE, problem.dtype),
        matrix.tile(problem.dtype),
        bias=row,
        activation=function_of(ttnn, activation),
        compute_kernel_config=builder.accurate,
    )
    lines = builder.reshaped(ttnn.to_layout(result, ROW_MAJOR), (problem.batch * high, wide, rows, columns * out))
    return builder.reshaped(ttnn.permute(lines, [0, 2, 1, 3]), (problem.batch, high * rows, wide * columns, out))


def _sizes(plane: Convolution) -> dict[str, Any]:
    """The arguments shared by a convolution and the preparation of its weights."""
    return {
        "in_channels": plane.in_channels,
        "out_channels": plane.out_channels,
        "batch_size": plane.batch,
        "input_height": plane.sizes[0],
        "input_width": plane.sizes[1],
        "kernel_size": plane.kernel,
        "stride": plane.stride,
        "padding": plane.padding,
        "dilation": plane.dilation,
    }


def _is_read_as_prepared(
    ttnn: Any, builder: ProgramBuilder, source: Handle, plane: Convolution, has_bias: bool, config: Any
) -> bool:
    """Whether the convolution reads weights in the form in which the library prepares them.

    With channels that are not a multiple of the tile size it does not if it slices a tiled input. A row-major input is
    sliced in rows, which are not padded.
    """
    if plane.in_channels % TILE_SIZE == 0:
        return True
    shapes = (plane.out_channels, plane.in_channels // plane.groups, *plane.kernel), (1, 1, 1, plane.out_channels)
    weight, row = (ttnn_emulator.spec_tensor(shape, plane.dtype, ROW_MAJOR) for shape in shapes)
    settings = {
        **_sizes(plane), "groups": plane.groups, "device": builder.device, "conv_config": config,
        "compute_config": builder.accurate,
    }  # fmt: skip
    try:
        prepared = builder.typed(
            ttnn_emulator.prepare_conv_weights, weight_tensor=weight, weights_format="OIHW", has_bias=has_bias,
            input_memory_config=ttnn.DRAM_MEMORY_CONFIG, input_layout=source.layout, input_dtype=plane.dtype,
            output_dtype=plane.dtype, **settings,
        )  # fmt: skip
        _, (read, _) = builder.typed(
            ttnn_emulator.conv2d, input_tensor=source, weight_tensor=weight, bias_tensor=row if has_bias else None,
            dtype=plane.dtype, return_weights_and_bias=True, **settings,
        )  # fmt: skip
    except ttnn_emulator.EmulatorError:
        return True  # recording the call reports the error
    return prepared.padded_shape == read.padded_shape


def _prepared(
    ttnn: Any,
    builder: ProgramBuilder,
    source: Handle,
    weight: Value,
    bias: Value | None,
    plane: Convolution,
    sizes: dict[str, Any],
    config: Any,
) -> tuple[Handle, Handle | None]:
    """Weights and bias in the form that the convolution takes, prepared once."""
    common = {
        "input_memory_config": ttnn.DRAM_MEMORY_CONFIG,
        "input_layout": source.layout,
        **sizes,
        "groups": plane.groups,
        "device": builder.device,
        "input_dtype": plane.dtype,
        "output_dtype": plane.dtype,
        "conv_config": config,
        "compute_config": builder.accurate,
    }
    prepared = ttnn.prepare_conv_weights(
        weight_tensor=on_host(builder, weight, plane.dtype),
        weights_format="OIHW",
        has_bias=bias is not None,
        **common,
    )
    if bias is None:
        return prepared, None
    row = on_host(builder, bias.view((1, 1, 1, plane.out_channels)), plane.dtype)
    return prepared, ttnn.prepare_conv_bias(bias_tensor=row, **common)


def on_host(builder: ProgramBuilder, value: Value, dtype: DataType) -> Handle:
    """A static value as a host tensor of the library, which preparations take."""
    node = value.host()
    options: dict[str, Any] = {"dtype": dtype, "layout": ROW_MAJOR}
    result = call_node(node.graph, ttnn_emulator.from_torch, (node,), options)
    typed = ttnn_emulator.spec_tensor(value.shape, dtype, ROW_MAJOR)
    annotate(result, path="ttnn.from_torch", origin=builder.origin, spec=typed)
    return Handle(result, typed)


def config_of(ttnn: Any, dtype: DataType, activation: str | None) -> Any:
    """Puts index tables in DRAM: L1 is small, and every program of a model keeps its own tables."""
    function = function_of(ttnn, activation)
    return ttnn.Conv2dConfig(weights_dtype=dtype, activation=function, config_tensors_in_dram=True)


def function_of(ttnn: Any, activation: str | None) -> Any:
    """An activation as an argument of library operations, in its accurate variant."""
    if activation is None:
        return None
    name, parameters = ACTIVATIONS[activation]
    return ttnn.UnaryWithParam(getattr(ttnn.UnaryOpType, name), *parameters)


# -- 3D ---------------------------------------------------------------------------------------------------------------

CHANNEL_STEP = 32  # input channels of a 3D convolution are padded to a multiple of this
L1_STEP = 16


def in_space(
    ttnn: Any,
    builder: ProgramBuilder,
    problem: Convolution,
    x: Value,
    weight: Value,
    bias: Value | None,
    activation: str | None,
) -> Handle:
    """`ttnn.experimental.conv3d` on [N, T, H, W, C], with channels padded to whole tiles."""
    source = image_layout.videos(ttnn, builder, x, ROW_MAJOR, problem.dtype)
    missing = -problem.in_channels % CHANNEL_STEP
    if missing:
        source = ttnn.pad(source, [(0, 0)] * 4 + [(0, missing)], value=0.0)
    matrix = space_matrix(weight, problem, missing)
    row = bias.view((1, problem.out_channels)).tile(problem.dtype) if bias is not None else None
    result = ttnn.experimental.conv3d(
        input_tensor=source,
        weight_tensor=matrix.tile(problem.dtype),
        bias_tensor=row,
        device=builder.device,
        dtype=problem.dtype,
        output_channels=problem.out_channels,
        kernel_size=problem.kernel,
        stride=problem.stride,
        padding=problem.padding,
        dilation=problem.dilation,
        padding_mode="zeros",
        compute_kernel_config=builder.accurate,
    )
    return activated(ttnn, result if activation is None else builder.tiled(result), activation)


def space_matrix(weight: Value, problem: Convolution, missing: int) -> Value:
    """[out, in, T, H, W] → [blocks of channels × taps × channels of a block, out], as the 3D convolution reads it."""
    taps, channels = math.prod(problem.kernel), problem.in_channels + missing
    block = math.lcm(L1_STEP, CHANNEL_STEP // math.gcd(taps, CHANNEL_STEP))  # the library's own choice
    flat = weight.view((problem.out_channels, problem.in_channels, taps))
    if missing:
        flat = flat.prepared(torch.constant_pad_nd, [0, 0, 0, missing])
    blocks = flat.view((problem.out_channels, channels // block, block, taps))
    return blocks.permute((1, 3, 2, 0)).view((taps * channels, problem.out_channels))
