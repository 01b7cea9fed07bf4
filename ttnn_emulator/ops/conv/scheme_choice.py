"""The default sharding scheme of a convolution: the one with the smallest L1 estimate."""

from __future__ import annotations

from dataclasses import dataclass

from ttnn_emulator.enums import DataType, TensorMemoryLayout
from ttnn_emulator.ops.conv import sharding
from ttnn_emulator.ops.conv.blocks import Problem, Settings, choose_blocks, output_grid
from ttnn_emulator.ops.conv.circular_buffers import buffer_sizes
from ttnn_emulator.ops.conv.sharding import BLOCK, HEIGHT, WIDTH, Cores
from ttnn_emulator.ops.conv.sliding_window import TILE
from ttnn_emulator.tensors.memory_config import MemoryConfig
from ttnn_emulator.tensors.shapes import round_up


@dataclass(frozen=True)
class Estimate:
    """L1 bytes per core of a convolution under one sharding scheme."""

    cores: int
    input: int
    halo: int
    total: int


# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/conv/conv2d/conv2d_utils.cpp, calculate_L1_usage_for_conv_op
def estimate(
    problem: Problem, settings: Settings, scheme: TensorMemoryLayout, halo_input: MemoryConfig | None = None
) -> Estimate:
    """The library's estimate, which selects the sharding scheme and the number of slices."""
    settings = settings.with_(shard_layout=scheme)
    alignment = sharding.channel_alignment(scheme, problem.layout, as_matmul=problem.as_matmul)
    kernel_h, kernel_w = problem.window.kernel
    weight_rows = round_up(problem.in_channels, alignment) * kernel_h * kernel_w
    inputs = Cores.of(halo_input) if halo_input is not None else problem.cores(settings, scheme, alignment)
    grid = output_grid(problem.board, settings, inputs)
    outputs = sharding.output_cores(inputs, grid, problem.out_channels, settings.orientation, problem.as_matmul)
    channels = round_up(problem.in_channels, inputs.channels * alignment)
    blocks = choose_blocks(problem, settings, inputs, outputs, channels)
    sizes = buffer_sizes(
        problem, settings, scheme, blocks, (weight_rows, round_up(problem.out_channels, TILE)), channels
    )
    if halo_input is None:
        halo_input = sharding.input_memory_config(
            scheme,
            inputs,
            rows=problem.window.batch * problem.window.size[0] * problem.window.size[1],
            channels=problem.in_channels,
            layout=problem.layout,
            sliced=False,
            as_matmul=problem.as_matmul,
        )
    assert halo_input.shard_spec is not None
    height, width = halo_input.shard_spec.shape
    halo = problem.window.halo_rows(inputs.rows) * width * problem.value_bytes
    held = height * width * problem.value_bytes // (2 if problem.in_dtype is DataType.BFLOAT8_B else 1)
    cores = max(inputs.grid.num_cores(), outputs.grid.num_cores())
    return Estimate(cores, held, halo, sizes.circular + sizes.output + halo)


# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/conv/conv2d/conv2d_utils.cpp, determine_conv_config_for_auto_shard
def choose_scheme(problem: Problem, settings: Settings) -> Settings:
    """Settings with the sharding scheme that uses the least L1."""
    if settings.shard_layout is not None:
        return settings
    best, least = HEIGHT, estimate(problem, settings, HEIGHT).total
    if problem.depthwise_1d:
        return settings.with_(shard_layout=HEIGHT)
    block = estimate(problem, settings, BLOCK)
    width = estimate(problem, settings, WIDTH)
    if block.total < least and block.cores >= problem.board[0]:
        best, least = BLOCK, block.total
    if width.total < least and not problem.as_matmul:
        best = WIDTH
    return settings.with_(shard_layout=best)
