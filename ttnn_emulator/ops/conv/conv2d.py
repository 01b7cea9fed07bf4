"""ttnn.conv2d, ttnn.conv1d and ttnn.conv_transpose2d."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ttnn_emulator.enums import DataType, MathFidelity
from ttnn_emulator.errors import require
from ttnn_emulator.execution.call_context import current_board
from ttnn_emulator.execution.operation_table import Plan, composite, operation
from ttnn_emulator.numerics.units.matrix_unit import MathConfig
from ttnn_emulator.ops.conv.blocks import Math, Problem, Settings
from ttnn_emulator.ops.conv.computation import convolution_plan
from ttnn_emulator.ops.conv.dram_input import plan_convolution
from ttnn_emulator.ops.conv.plan import as_matmul
from ttnn_emulator.ops.conv.slicing import ALONG_HEIGHT, Slicing
from ttnn_emulator.ops.conv.sliding_window import UINT32, Pair, Window, sides
from ttnn_emulator.ops.flows.reshape import reshape_flow
from ttnn_emulator.ops.flows.value_flow import Flow
from ttnn_emulator.ops.support.common_checks import math_config
from ttnn_emulator.tensors.memory_config import MemoryConfig
from ttnn_emulator.tensors.spec import Spec


def pair(values: Sequence[int], name: str) -> Pair:
    """A (height, width) pair."""
    require(
        len(values) == 2 and all(0 <= value <= UINT32 for value in values),
        f"{name} takes two numbers from 0 on, not {list(values)}",
    )
    return values[0], values[1]


def padding_of(values: Sequence[int]) -> tuple[int, int, int, int]:
    require(
        len(values) in (2, 4) and all(0 <= value <= UINT32 for value in values),
        f"padding takes two or four numbers from 0 on, not {list(values)}",
    )
    return sides(tuple(values))


def window_of(
    batch: int,
    size: Sequence[int],
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
) -> Window:
    """The window of a convolution or a pool from the caller's arguments."""
    return Window(
        batch,
        pair(size, "the input's size"),
        pair(kernel, "kernel_size"),
        pair(stride, "stride"),
        padding_of(padding),
        pair(dilation, "dilation"),
    )


def sizes(**named: int) -> None:
    """Refuse negative sizes, which the library's binding rejects."""
    for name, value in named.items():
        require(0 <= value <= UINT32, f"{name} must not be negative, it is {value}")


def slicing_of(record: Any) -> Slicing | None:
    return None if record is None else Slicing(record.slice_type, record.num_slices or 0)


# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/conv/conv2d/conv2d_utils.cpp, get_conv_default_compute_kernel_config
def default_math(given: Any, in_dtype: DataType, weight_dtype: DataType) -> MathConfig:
    """HiFi4, with a 32-bit destination register when both input and weights are float32."""
    wide = in_dtype is DataType.FLOAT32 and weight_dtype is DataType.FLOAT32
    return math_config(given, fidelity=MathFidelity.HiFi4, fp32_acc=wide)


def problem_of(
    window: Window,
    math: MathConfig,
    *,
    in_channels: int,
    out_channels: int,
    groups: int,
    has_bias: bool,
    in_dtype: DataType,
    out_dtype: DataType,
    layout: Any,
    as_product: bool,
) -> Problem:
    """The convolution problem on the board of the call."""
    board = current_board()
    return Problem(
        window,
        in_channels,
        out_channels,
        groups,
        has_bias,
        in_dtype,
        out_dtype,
        layout,
        Math(math.fp32_acc, math.l1_acc),
        board.grid,
        board.arch,
        as_product,
    )


def plan_conv2d(
    x: Spec,
    weight: Spec,
    bias: Spec | None,
    window: Window,
    *,
    in_channels: int,
    out_channels: int,
    groups: int,
    dtype: DataType | None,
    conv_config: Any,
    compute_config: Any,
    memory_config: MemoryConfig | None,
    slice_config: Any,
    **handed_back: bool,
) -> Plan:
    """A convolution in one or two dimensions."""
    sizes(in_channels=in_channels, out_channels=out_channels, batch=window.batch, groups=groups)
    require(min(window.stride) > 0, f"stride must be greater than 0, not {list(window.stride)}")
    settings = Settings.of(conv_config)
    math = default_math(compute_config, x.dtype, settings.weights_dtype or weight.dtype)
    problem = problem_of(
        window,
        math,
        in_channels=in_channels,
        out_channels=out_channels,
        groups=groups,
        has_bias=bias is not None,
        in_dtype=x.dtype,
        out_dtype=dtype or x.dtype,
        layout=x.layout,
        as_product=as_matmul(window, settings),
    )
    outcome = plan_convolution(x, weight, bias, problem, settings, memory_config, slicing_of(slice_config), math)
    return convolution_plan(outcome, weight, bias, math, **handed_back)


@operation("ttnn.conv2d")
def conv2d(
    input_tensor: Spec,
    weight_tensor: Spec,
    device: Any,
    in_channels: int,
    out_channels: int,
    batch_size: int,
    input_height: int,
    input_width: int,
    kernel_size: Sequence[int],
    stride: Sequence[int] = (1, 1),
    padding: Sequence[int] = (0, 0),
    dilation: Sequence[int] = (1, 1),
    groups: int = 1,
    dtype: DataType | None = None,
    bias_tensor: Spec | None = None,
    conv_config: Any = None,
    compute_config: Any = None,
    memory_config: MemoryConfig | None = None,
    slice_config: Any = None,
    return_output_dim: bool = False,
    return_weights_and_bias: bool = False,
) -> Plan:
    """2D convolution of images [N, H, W, C], flattened to [1, 1, N × H × W, C]."""
    window = window_of(batch_size, (input_height, input_width), kernel_size, stride, padding, dilation)
    return plan_conv2d(
        input_tensor,
        weight_tensor,
        bias_tensor,
        window,
        in_channels=in_channels,
        out_channels=out_channels,
        groups=groups,
        dtype=dtype,
        conv_config=conv_config,
        compute_config=compute_config,
        memory_config=memory_config,
        slice_config=slice_config,
        with_size=return_output_dim,
        with_weights=return_weights_and_bias,
    )


@operation("ttnn.conv1d")
def conv1d(
    input_tensor: Spec,
    weight_tensor: Spec,
    device: Any,
    in_channels: int,
    out_channels: int,
    batch_size: int,
    input_length: int,
    kernel_size: int,
    stride: int = 1,
    padding: Sequence[int] | int = 0,
    dilation: int = 1,
    groups: int = 1,
    dtype: DataType | None = None,
    bias_tensor: Spec | None = None,
    conv_config: Any = None,
    compute_config: Any = None,
    memory_config: MemoryConfig | None = None,
    slice_config: Any = None,
    return_output_dim: bool = False,
    return_weights_and_bias: bool = False,
) -> Plan:
    """1D convolution of sequences [N, length, C], as a 2D convolution of images of one row."""
    if isinstance(padding, int):
        around: Sequence[int] = (0, padding)
    else:
        require(len(padding) == 2, f"padding takes one or two numbers, not {list(padding)}")
        around = (0, 0, *padding)
    window = window_of(batch_size, (1, input_length), (1, kernel_size), (1, stride), around, (1, dilation))
    if slice_config is not None:
        require(
            slice_config.slice_type is not ALONG_HEIGHT,
            "an image of one row cannot be sliced along its height: DRAM_HEIGHT is not a slice type of conv1d",
        )
    x = input_tensor
    if x.rank < 4:
        x = reshape_flow(Flow(x), (batch_size, 1, input_length, in_channels)).spec
    weight = weight_tensor
    if weight.rank == 3:
        out, channels, taps = weight.shape
        weight = reshape_flow(Flow(weight), (out, channels, 1, taps)).spec
    return plan_conv2d(
        x,
        weight,
        bias_tensor,
        window,
        in_channels=in_channels,
        out_channels=out_channels,
        groups=groups,
        dtype=dtype,
        conv_config=conv_config,
        compute_config=compute_config,
        memory_config=memory_config,
        slice_config=slice_config,
        with_size=return_output_dim,
        with_weights=return_weights_and_bias,
        one_dimension=True,
    )


@composite("ttnn.get_conv_output_dim")
def get_conv_output_dim(input: int, window: int, stride: int = 1, pad: int = 0, dilation: int = 1) -> int:
    """Output pixels of a convolution along one dimension."""
    return (input + 2 * pad - dilation * (window - 1) - 1) // stride + 1
