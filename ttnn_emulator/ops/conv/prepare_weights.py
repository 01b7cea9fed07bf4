"""ttnn.prepare_conv_weights and related functions: convert weights and biases to the device's format in advance.

The padding depends on the sharding of the convolution, so the functions take all arguments that determine it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch

from ttnn_emulator.enums import BLOCK_FLOAT_DTYPES, DataType, Layout
from ttnn_emulator.errors import require
from ttnn_emulator.execution.operation_table import Plan, operation
from ttnn_emulator.ops.conv import sharding
from ttnn_emulator.ops.conv.blocks import Blocks, Problem, Settings, choose_blocks, output_grid
from ttnn_emulator.ops.conv.conv2d import default_math, problem_of, sizes, slicing_of, window_of
from ttnn_emulator.ops.conv.conv_transpose2d import (
    SlicedTransposedConvolution,
    as_convolution_weight,
    transposed_window,
)
from ttnn_emulator.ops.conv.device_weights import (
    Preparation,
    bias_spec,
    prepare_bias,
    prepare_weight,
    transposed_weight,
    weight_spec,
)
from ttnn_emulator.ops.conv.dram_input import SlicedConvolution, free_l1
from ttnn_emulator.ops.conv.plan import as_matmul, fold_problem
from ttnn_emulator.ops.conv.plan import folds as strides_folded
from ttnn_emulator.ops.conv.scheme_choice import choose_scheme
from ttnn_emulator.ops.conv.sharding import Cores
from ttnn_emulator.ops.conv.slicing import ALONG_HEIGHT, ALONG_WIDTH, WHOLE, Slicing, choose_slicing
from ttnn_emulator.ops.conv.sliding_window import TILE, Window
from ttnn_emulator.tensors.memory_config import MemoryConfig
from ttnn_emulator.tensors.shapes import div_up, round_up
from ttnn_emulator.tensors.spec import Spec


# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/conv/conv2d/prepare_conv2d_weights.cpp, setup_conv_prep_config
def preparation_for(config: MemoryConfig, problem: Problem, settings: Settings, slicing: Slicing | None) -> Preparation:
    """Preparation parameters for a convolution with this input memory config."""
    stride = problem.window.stride
    in_dram = not config.is_l1 and not (slicing is not None and slicing.kind is WHOLE)
    in_dram = in_dram or (slicing is not None and slicing.kind is not WHOLE)
    in_dram = in_dram and not (problem.window.kernel[0] == 1 and problem.window.size[0] == 1)
    folds = strides_folded(settings, problem.window, config, in_rows=problem.layout is Layout.ROW_MAJOR)
    settings = settings.with_(enable_kernel_stride_folding=folds)
    if folds:
        kept = problem.window.padding
        problem = fold_problem(problem)
        problem = replace(problem, window=replace(problem.window, padding=kept))
    require(min(problem.window.output_size) >= 0, f"the kernel {list(problem.window.kernel)} does not fit the input")
    if in_dram and not problem.as_matmul:
        config, problem, in_dram = _first_slice(problem, settings, slicing)
    settings = _sharded(config, problem, settings, in_dram)
    scheme = settings.shard_layout
    assert scheme is not None
    alignment = sharding.channel_alignment(
        scheme, problem.layout, sliced=in_dram, as_matmul=problem.as_matmul, memory_config=config
    )
    blocks = _blocks(config, problem, settings)
    if config.shard_spec is not None and not settings.reshard_if_not_optimal:
        inputs = Cores.of(config)
    else:
        inputs = problem.cores(settings, scheme, alignment)
        window = problem.window
        placed = sharding.input_memory_config(
            scheme,
            inputs,
            rows=window.batch * window.size[0] * window.size[1],
            channels=problem.in_channels,
            layout=problem.layout,
            sliced=in_dram,
            as_matmul=problem.as_matmul,
        )
        blocks = _blocks(placed, problem, settings)
        alignment = sharding.channel_alignment(
            scheme, problem.layout, as_matmul=problem.as_matmul, memory_config=placed
        )
    grid = output_grid(problem.board, settings, inputs)
    outputs = sharding.output_cores(inputs, grid, problem.out_channels, inputs.orientation, problem.as_matmul)
    channels = round_up(problem.in_channels, inputs.channels * alignment)
    return Preparation(
        dtype=settings.weights_dtype,
        alignment=alignment,
        inputs=inputs,
        outputs=outputs,
        block_rows=blocks.act_w,
        block_columns=blocks.sub_w,
        tall_rows=blocks.act_h,
        groups=problem.groups,
        out_channels=problem.out_channels,
        has_bias=problem.has_bias,
        image_rows=problem.window.size[0],
        as_plain=problem.as_matmul and in_dram,
        folds=folds,
        whole_kernel=settings.full_inner_dim,
        reuses_rows=settings.enable_activation_reuse,
        whole_window=problem.reads_whole_window(inputs.scheme, channels),
        stride=stride,
    )


def _first_slice(problem: Problem, settings: Settings, slicing: Slicing | None) -> tuple[MemoryConfig, Problem, bool]:
    """Memory config and problem of the first slice, and whether there are more slices."""
    require(
        settings.weights_dtype not in BLOCK_FLOAT_DTYPES,
        f"weights cannot be prepared as {settings.weights_dtype} for an input in DRAM, only for one in L1",
    )
    require(problem.groups > 0, "groups must be 1 or more")
    op = SlicedConvolution(problem, settings)
    chosen = choose_slicing(op, slicing, free_l1())
    window = problem.window
    axis = 0 if chosen.kind is ALONG_HEIGHT else 1
    extent = window.output_size[axis]
    require(chosen.count <= extent, f"{chosen.count} slices are more than the {extent} pixels to be sliced")
    step = TILE if settings.output_layout is Layout.TILE and chosen.kind is ALONG_WIDTH else 1
    part = div_up(div_up(extent, step), chosen.count) * step
    end, size, padding = list(window.output_size), list(window.size), list(window.padding)
    end[axis] = part
    size[axis] = (part - 1) * window.stride[axis] + window.reach[axis] - window.padding[2 * axis]
    padding[2 * axis + 1] = 0
    config = op.input_memory_config((0, 0), (end[0], end[1]))
    sliced = replace(window, size=(size[0], size[1]), padding=(padding[0], padding[1], padding[2], padding[3]))
    return config, replace(problem, window=sliced), chosen.count > 1


def _sharded(config: MemoryConfig, problem: Problem, settings: Settings, in_dram: bool) -> Settings:
    """Settings with the sharding scheme: the input's, the requested one, or the best."""
    if not config.is_sharded():
        settings = choose_scheme(problem, settings)
    if config.is_sharded() and not settings.reshard_if_not_optimal:
        settings = settings.with_(shard_layout=config.memory_layout)
    require(settings.shard_layout is not None, "the input must be sharded, or shard_layout must be set")
    return settings


def _blocks(config: MemoryConfig, problem: Problem, settings: Settings) -> Blocks:
    scheme = settings.shard_layout
    if config.is_sharded() and not settings.reshard_if_not_optimal:
        scheme = config.memory_layout
    assert scheme is not None
    alignment = sharding.channel_alignment(
        scheme,
        problem.layout,
        sliced=config.is_dram,
        as_matmul=problem.as_matmul,
        memory_config=config,
    )
    if config.shard_spec is not None and not settings.reshard_if_not_optimal:
        inputs = Cores.of(config)
    else:
        inputs = problem.cores(settings, scheme, alignment)
    grid = output_grid(problem.board, settings, inputs)
    outputs = sharding.output_cores(inputs, grid, problem.out_channels, inputs.orientation, problem.as_matmul)
    channels = round_up(problem.in_channels, inputs.channels * alignment)
    return choose_blocks(problem, settings, inputs, outputs, channels)


# -- convolutions -----------------------------------------------------------------------------------------------------


def _problem(
    window: Window,
    settings: Settings,
    in_channels: int,
    out_channels: int,
    groups: int,
    has_bias: bool,
    input_dtype: DataType,
    output_dtype: DataType | None,
    input_layout: Layout,
    compute_config: Any,
) -> Problem:
    sizes(in_channels=in_channels, out_channels=out_channels, batch_size=window.batch, groups=groups)
    require(min(window.stride) > 0, f"stride must be greater than 0, not {list(window.stride)}")
    assert settings.weights_dtype is not None
    return problem_of(
        window,
        default_math(compute_config, input_dtype, settings.weights_dtype),
        in_channels=in_channels,
        out_channels=out_channels,
        groups=groups,
        has_bias=has_bias,
        in_dtype=input_dtype,
        out_dtype=output_dtype or input_dtype,
        layout=input_layout,
        as_product=as_matmul(window, settings),
    )


@operation("ttnn.prepare_conv_weights", ignores=("weights_format",))
def prepare_conv_weights(
    weight_tensor: Spec,
    input_memory_config: MemoryConfig,
    input_layout: Layout,
    in_channels: int,
    out_channels: int,
    batch_size: int,
    input_height: int,
    input_width: int,
    kernel_size: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    has_bias: bool,
    groups: int,
    device: Any,
    input_dtype: DataType,
    output_dtype: DataType | None = None,
    conv_config: Any = None,
    compute_config: Any = None,
    slice_config: Any = None,
) -> Plan:
    """Weights [out, in / groups, rows, columns] as ttnn.conv2d takes them on the device."""
    settings = Settings.of(conv_config)
    settings = settings.with_(weights_dtype=settings.weights_dtype or weight_tensor.dtype)
    window = window_of(batch_size, (input_height, input_width), kernel_size, stride, padding, dilation)
    problem = _problem(
        window,
        settings,
        in_channels,
        out_channels,
        groups,
        has_bias,
        input_dtype,
        output_dtype,
        input_layout,
        compute_config,
    )
    to = preparation_for(input_memory_config, problem, settings, slicing_of(slice_config))
    return weight_plan(weight_tensor, to)


def weight_plan(
    weight: Spec, to: Preparation, groups: int = 1, *, transposed: bool = False, mirror: bool = True
) -> Plan:
    require(transposed or not weight.on_device, "weights to be prepared must be on the host")
    arranged = as_convolution_weight(weight, groups) if transposed else weight
    spec = weight_spec(arranged, to)

    def compute(values: torch.Tensor) -> torch.Tensor:
        if transposed:
            values = transposed_weight(values, arranged, groups, mirror)
        return prepare_weight(values, to, spec.dtype)

    return Plan(spec, compute, reads=("weight_tensor",))


@operation("ttnn.prepare_conv_bias", ignores=("slice_config",))
def prepare_conv_bias(
    bias_tensor: Spec,
    input_memory_config: MemoryConfig,
    input_layout: Layout,
    in_channels: int,
    out_channels: int,
    batch_size: int,
    input_height: int,
    input_width: int,
    kernel_size: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    groups: int,
    device: Any,
    input_dtype: DataType,
    output_dtype: DataType | None = None,
    conv_config: Any = None,
    compute_config: Any = None,
) -> Plan:
    """A bias [1, 1, 1, out] as ttnn.conv2d takes it on the device."""
    window = window_of(batch_size, (input_height, input_width), kernel_size, stride, padding, dilation)
    return bias_plan(
        bias_tensor,
        input_memory_config,
        window,
        in_channels,
        out_channels,
        groups,
        input_dtype,
        output_dtype,
        input_layout,
        conv_config,
        compute_config,
    )


def bias_plan(
    bias: Spec,
    config: MemoryConfig,
    window: Window,
    in_channels: int,
    out_channels: int,
    groups: int,
    input_dtype: DataType,
    output_dtype: DataType | None,
    input_layout: Layout,
    conv_config: Any,
    compute_config: Any,
) -> Plan:
    require(not bias.on_device, "a bias to be prepared must be on the host")
    settings = Settings.of(conv_config)
    require(settings.weights_dtype is not None, "to prepare a bias, conv_config must tell the weights_dtype")
    assert settings.weights_dtype is not None
    problem = _problem(
        window,
        settings,
        in_channels,
        out_channels,
        groups,
        True,
        input_dtype,
        output_dtype,
        input_layout,
        compute_config,
    )
    spec = bias_spec(bias, preparation_for(config, problem, settings, None), settings.weights_dtype)
    return Plan(spec, lambda values: prepare_bias(values, spec.dtype), reads=("bias_tensor",))


# -- transposed convolutions ------------------------------------------------------------------------------------------


def _as_convolution(window: Window) -> Window:
    """The equivalent convolution on the dilated input of a transposed one."""
    return Window(window.batch, window.padded_size, window.kernel, dilation=window.dilation)


@operation("ttnn.prepare_conv_transpose2d_weights", ignores=("weights_format",))
def prepare_conv_transpose2d_weights(
    weight_tensor: Spec,
    input_memory_config: MemoryConfig,
    input_layout: Layout,
    in_channels: int,
    out_channels: int,
    batch_size: int,
    input_height: int,
    input_width: int,
    kernel_size: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    has_bias: bool,
    groups: int,
    device: Any,
    input_dtype: DataType,
    output_padding: Sequence[int] = (0, 0),
    output_dtype: DataType | None = None,
    conv_config: Any = None,
    compute_config: Any = None,
    dram_slice_config: Any = None,
    mirror_kernel: bool = True,
) -> Plan:
    """Weights [in, out / groups, rows, columns] as ttnn.conv_transpose2d takes them on the device."""
    given = Settings.of(conv_config)
    settings = given.with_(weights_dtype=given.weights_dtype or weight_tensor.dtype)
    window = transposed_window(
        batch_size, (input_height, input_width), kernel_size, stride, padding, output_padding, dilation
    )
    require(min(window.stride) > 0, f"stride must be greater than 0, not {list(stride)}")
    slicing, config = slicing_of(dram_slice_config), input_memory_config
    problem = _problem(
        window,
        settings,
        in_channels,
        out_channels,
        min(groups, 1),
        has_bias,
        input_dtype,
        output_dtype,
        input_layout,
        compute_config,
    )
    op = SlicedTransposedConvolution(replace(problem, as_matmul=False), settings)
    if slicing is not None and slicing.count == 0:
        window.require_output()
        require(given.weights_dtype is not None, "to be sliced automatically, weights_dtype must be set")
        slicing = choose_slicing(op, slicing, free_l1())
        slicing = Slicing(WHOLE, 0) if slicing.count == 1 else slicing
    in_one = slicing is not None and (slicing.kind is WHOLE or slicing.count == 1)
    if not in_one and not (slicing is None and config.is_l1):
        if slicing is None:
            require(given.weights_dtype is not None, "to be sliced automatically, weights_dtype must be set")
            slicing = choose_slicing(op, None, free_l1())
        axis = 0 if slicing.kind is ALONG_HEIGHT else 1
        extent = window.output_size[axis]
        require(slicing.count <= extent, f"{slicing.count} slices are more than the {extent} pixels to be sliced")
        step = TILE if settings.output_layout is Layout.TILE and slicing.kind is ALONG_WIDTH else 1
        end = list(window.output_size)
        end[axis] = div_up(div_up(extent, step), slicing.count) * step
        first, last = op.input_slice((0, 0), (end[0], end[1]))
        config = op.input_memory_config((0, 0), (end[0], end[1]))
        size = (last[0] - first[0], last[1] - first[1])
        window = replace(window, size=size, output_padding=(0, 0))
        if slicing.count > 1:
            problem = replace(problem, layout=Layout.ROW_MAJOR)
    inner = _as_convolution(window)
    problem = replace(problem, window=inner, as_matmul=as_matmul(inner, settings))
    to = preparation_for(config, problem, settings, Slicing(WHOLE, 0))
    return weight_plan(weight_tensor, to, groups, transposed=True, mirror=mirror_kernel)


@operation("ttnn.prepare_conv_transpose2d_bias", ignores=("dram_slice_config",))
def prepare_conv_transpose2d_bias(
    bias_tensor: Spec,
    input_memory_config: MemoryConfig,
    input_layout: Layout,
    in_channels: int,
    out_channels: int,
    batch_size: int,
    input_height: int,
    input_width: int,
    kernel_size: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    groups: int,
    device: Any,
    input_dtype: DataType,
    output_dtype: DataType | None = None,
    conv_config: Any = None,
    compute_config: Any = None,
) -> Plan:
    """A bias [1, 1, 1, out] as ttnn.conv_transpose2d takes it on the device."""
    window = transposed_window(batch_size, (input_height, input_width), kernel_size, stride, padding, (0, 0), dilation)
    return bias_plan(
        bias_tensor,
        input_memory_config,
        _as_convolution(window),
        in_channels,
        out_channels,
        min(groups, 1),
        input_dtype,
        output_dtype,
        input_layout,
        conv_config,
        compute_config,
    )
