"""ttnn.conv_transpose2d: a convolution with mirrored weights on the input dilated by the stride."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ttnn_emulator.enums import DataType, Layout
from ttnn_emulator.errors import require
from ttnn_emulator.execution.operation_table import Plan, operation
from ttnn_emulator.numerics.units.matrix_unit import MathConfig
from ttnn_emulator.ops.conv import sharding
from ttnn_emulator.ops.conv.blocks import Problem, Settings, choose_blocks
from ttnn_emulator.ops.conv.circular_buffers import buffer_sizes
from ttnn_emulator.ops.conv.computation import convolution_plan
from ttnn_emulator.ops.conv.conv2d import default_math, pair, problem_of, sizes, slicing_of, window_of
from ttnn_emulator.ops.conv.dram_input import Outcome, SlicedConvolution, free_l1, plan_slices, slice_memory_config
from ttnn_emulator.ops.conv.plan import as_matmul, plan_in_l1
from ttnn_emulator.ops.conv.scheme_choice import choose_scheme
from ttnn_emulator.ops.conv.sharding import Cores
from ttnn_emulator.ops.conv.slicing import WHOLE, Slicing, choose_slicing
from ttnn_emulator.ops.conv.sliding_window import TILE, Pair, Sides, Window
from ttnn_emulator.tensors.memory_config import DRAM_MEMORY_CONFIG, MemoryConfig
from ttnn_emulator.tensors.shapes import div_up, round_up
from ttnn_emulator.tensors.spec import Spec


class SlicedTransposedConvolution(SlicedConvolution):
    """A transposed convolution on slices of its output."""

    def spread_slice(self, start: Pair, end: Pair) -> tuple[Pair, Pair, Sides, Pair]:
        """Input rows and columns of a slice, and the padding and output padding of its convolution."""
        window = self.problem.window
        first, last, pads, extra = [], [], [], []
        for axis in (0, 1):
            size, stride, out = window.size[axis], window.stride[axis], self.output_size[axis]
            base = window.reach[axis] - 1
            before, after = base - window.padding[2 * axis], base - window.padding[2 * axis + 1]
            begin = div_up(start[axis] - before, stride)
            reached = end[axis] - before + base
            pad_before = max(0, before - start[axis], -max(0, start[axis] - before) % stride)
            pad_after = max(0, reached - out, _remainder(reached - 1, stride) if end[axis] < out else 0)
            finish = _quotient(reached - 1, stride) + 1
            begin, finish = max(0, begin), min(size, finish)
            more = 0
            if start[axis] == 0:
                pad_before, begin = before, 0
            if end[axis] == out:
                pad_after, finish, more = after, size, window.output_padding[axis]
            first.append(begin)
            last.append(finish)
            pads += [base - pad_before, base - pad_after]
            extra.append(more)
        whole = all(finish - begin == size for begin, finish, size in zip(first, last, window.size))
        if self.output_layout is Layout.TILE and not whole:
            extra[1] += -(end[1] - start[1]) % TILE
        return (
            (first[0], first[1]),
            (last[0], last[1]),
            (pads[0], pads[1], pads[2], pads[3]),
            (extra[0], extra[1]),
        )

    def padded_slice(self, start: Pair, end: Pair) -> tuple[Pair, Pair, Sides]:
        return self.spread_slice(start, end)[:3]

    def slice_problem(self, start: Pair, end: Pair) -> Problem:
        first, last, pads, extra = self.spread_slice(start, end)
        size = (last[0] - first[0], last[1] - first[1])
        window = replace(self.problem.window, size=size, padding=pads, output_padding=extra)
        return replace(self.problem, window=window)

    def input_memory_config(self, start: Pair, end: Pair) -> MemoryConfig:
        part = self.slice_problem(start, end)
        return slice_memory_config(part, self.settings, choose_scheme(part, self.settings).shard_layout, True)

    def l1_bytes(self, start: Pair, end: Pair, count: int) -> int:
        part = self.slice_problem(start, end)
        config = self.input_memory_config(start, end)
        settings = self.settings.with_(shard_layout=self.settings.shard_layout or config.memory_layout)
        scheme = settings.shard_layout
        assert config.shard_spec is not None and scheme is not None
        inputs = Cores.of(config)
        outputs = sharding.output_cores(inputs, part.board, part.out_channels, settings.orientation, False)
        height, width = config.shard_spec.shape
        # The estimate's window is the slice without the columns added by rounding.
        size = (end[0] - start[0], end[1] - start[1])
        trimmed = replace(part, window=_of_size(part.window, size))
        channels = round_up(part.in_channels, TILE * inputs.channels)
        blocks = choose_blocks(trimmed, settings, inputs, outputs, channels, any_kernel=False)
        taps = part.window.kernel[0] * part.window.kernel[1]
        columns = round_up(part.out_channels, TILE * outputs.channels)
        alignment = sharding.channel_alignment(scheme, settings.output_layout, sliced=count > 1)
        padded = round_up(part.in_channels, inputs.channels * alignment)
        found = buffer_sizes(trimmed, settings, scheme, blocks, (channels * taps, columns), padded, any_kernel=False)
        halo = part.window.halo_rows(inputs.rows) * width * part.value_bytes
        return max(halo + found.output + found.circular, height * width * part.value_bytes + halo)


def _of_size(window: Window, size: Pair) -> Window:
    """The window with an output of `size`."""
    (high, wide), (below, beside) = window.output_size, window.output_padding
    return replace(window, output_padding=(below + size[0] - high, beside + size[1] - wide))


def _quotient(value: int, divisor: int) -> int:
    """Integer division that truncates towards zero, as in C++."""
    return -(-value // divisor) if value < 0 else value // divisor


def _remainder(value: int, divisor: int) -> int:
    return value - _quotient(value, divisor) * divisor


def plan_transposed(
    x: Spec,
    weight: Spec,
    bias: Spec | None,
    problem: Problem,
    settings: Settings,
    memory_config: MemoryConfig | None,
    slicing: Slicing | None,
    math: MathConfig,
) -> Outcome:
    """Choose between L1 and slices in DRAM as the library does."""

    def in_l1(source: Spec) -> Outcome:
        run = plan_in_l1(source, weight, bias, problem, settings, memory_config, math)
        return Outcome(run.output, run, problem, run.stages)

    in_one = slicing is not None and (slicing.kind is WHOLE or slicing.count == 1)
    if in_one or (slicing is None and x.on_device and x.memory_config.is_l1):
        return in_l1(x)
    op = SlicedTransposedConvolution(problem, settings.with_(weights_dtype=settings.weights_dtype or weight.dtype))
    if slicing is not None and slicing.count == 0:
        problem.window.require_output()
        require(settings.weights_dtype is not None, "to be sliced automatically, weights_dtype must be set")
        if choose_slicing(op, slicing, free_l1()).count == 1:
            return in_l1(x)
    if problem.as_matmul:
        return in_l1(x)
    if not x.on_device:
        x = x.with_(on_device=True, memory_config=DRAM_MEMORY_CONFIG)
    return plan_slices(op, x, weight, bias, slicing, math)


@operation("ttnn.conv_transpose2d")
def conv_transpose2d(
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
    output_padding: Sequence[int] = (0, 0),
    dilation: Sequence[int] = (1, 1),
    groups: int = 1,
    dtype: DataType | None = None,
    bias_tensor: Spec | None = None,
    conv_config: Any = None,
    compute_config: Any = None,
    memory_config: MemoryConfig | None = None,
    dram_slice_config: Any = None,
    mirror_kernel: bool = True,
    return_output_dim: bool = False,
    return_weights_and_bias: bool = False,
) -> Plan:
    """2D transposed convolution of images [N, H, W, C], flattened to [1, 1, N × H × W, C]."""
    sizes(in_channels=in_channels, out_channels=out_channels, batch_size=batch_size, groups=groups)
    window = transposed_window(
        batch_size, (input_height, input_width), kernel_size, stride, padding, output_padding, dilation
    )
    require(min(window.stride) > 0, f"stride must be greater than 0, not {list(stride)}")
    settings = Settings.of(conv_config)
    weight_dtype = settings.weights_dtype or weight_tensor.dtype
    math = default_math(compute_config, input_tensor.dtype, weight_dtype)
    plain = replace(window, transposed=False, output_padding=(0, 0))
    problem = problem_of(
        window,
        math,
        in_channels=in_channels,
        out_channels=out_channels,
        groups=min(groups, 1),
        has_bias=bias_tensor is not None,
        in_dtype=input_tensor.dtype,
        out_dtype=dtype or input_tensor.dtype,
        layout=input_tensor.layout,
        as_product=as_matmul(plain, settings),
    )
    weight = weight_tensor if weight_tensor.on_device else as_convolution_weight(weight_tensor, groups)
    outcome = plan_transposed(
        input_tensor,
        weight,
        bias_tensor,
        problem,
        settings,
        memory_config,
        slicing_of(dram_slice_config),
        math,
    )
    return convolution_plan(
        outcome,
        weight,
        bias_tensor,
        math,
        with_size=return_output_dim,
        with_weights=return_weights_and_bias,
        mirror=mirror_kernel,
        weight_groups=groups,
    )


def transposed_window(
    batch: int,
    size: Pair,
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    output_padding: Sequence[int],
    dilation: Sequence[int],
) -> Window:
    window = window_of(batch, size, kernel, stride, padding, dilation)
    return replace(window, output_padding=pair(output_padding, "output_padding"), transposed=True)


def as_convolution_weight(weight: Spec, groups: int) -> Spec:
    """The spec of weights [in, out / groups, rows, columns] after conversion to convolution weights.

    For tiled weights the library includes the padding; of more than four dimensions it uses the first four.
    """
    require(weight.rank >= 4, f"weights on the host must have rank 4, not shape {list(weight.shape)}")
    channels, out, rows, columns = weight.padded_shape[:4]
    require(channels % max(groups, 1) == 0, f"{channels} input channels do not divide into {groups} groups")
    shape = (out * max(groups, 1), channels, rows, columns)
    return Spec.of(shape, weight.dtype, Layout.ROW_MAJOR, on_device=False)
