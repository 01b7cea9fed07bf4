"""L1 use of a convolution's circular buffers, and whether both data-movement processors read activations."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ttnn_emulator.enums import Arch, DataType, Layout, TensorMemoryLayout
from ttnn_emulator.errors import require
from ttnn_emulator.ops.conv.blocks import Blocks, Problem, Settings
from ttnn_emulator.ops.conv.sharding import BLOCK, HEIGHT, WIDTH
from ttnn_emulator.ops.conv.sliding_window import TILE, Pair
from ttnn_emulator.tensors.shapes import DEFAULT_TILE, div_up
from ttnn_emulator.tensors.spec import tile_bytes

# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/conv/conv2d/conv2d_op_program_factory_common.cpp, l1_scratchpad_CB_size
SCRATCH_BYTES = 64


# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/conv/conv2d/conv2d_utils.cpp, determine_packer_l1_acc
def l1_accumulates(problem: Problem, inner_blocks: int) -> bool:
    """Whether the packer accumulates in L1: from three inner blocks on, or two with a bias."""
    return problem.math.l1_acc and inner_blocks > (1 if problem.has_bias else 2)


@dataclass(frozen=True)
class BufferSizes:
    """Bytes of L1 per core: circular buffers, and the output."""

    circular: int
    output: int


# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/conv/conv2d/conv2d_op_program_factory_common.cpp, get_cb_info
def buffer_sizes(
    problem: Problem,
    settings: Settings,
    scheme: TensorMemoryLayout,
    blocks: Blocks,
    weight_shape: Pair,
    channels: int,
    *,
    no_multicast: bool = False,
    index_bytes: int | None = None,
    any_kernel: bool = True,
) -> BufferSizes:
    """L1 use of one convolution. `weight_shape` is the padded shape of the prepared weights."""
    assert settings.weights_dtype is not None
    depthwise = any_kernel and problem.depthwise_1d
    parts = _BufferParts(
        problem=problem,
        settings=settings,
        scheme=scheme,
        blocks=blocks,
        depthwise=depthwise,
        whole_window=any_kernel and problem.reads_whole_window(scheme, channels),
        in_tile=tile_bytes(DEFAULT_TILE, problem.conv_dtype),
        weight_tile=tile_bytes(DEFAULT_TILE, settings.weights_dtype),
        out_tile=tile_bytes(DEFAULT_TILE, problem.out_dtype),
        weight_shape=weight_shape,
        channels=channels,
    )
    gathered = parts.gathered_tiles()
    require(
        depthwise or blocks.act_h <= blocks.out_h,
        f"blocks of {blocks.act_h} tiles are higher than the {blocks.out_h} tiles of a core's output",
    )
    total = parts.weights() + parts.partial_sums(gathered[0]) + parts.activations(*gathered, no_multicast)
    total += blocks.act_h * blocks.act_w * parts.out_tile  # tilized activations
    if problem.has_bias:
        total += blocks.out_w * parts.weight_tile
    if settings.config_tensors_in_dram:
        total += index_bytes if index_bytes is not None else blocks.out_h * TILE * 2
    return BufferSizes(total + SCRATCH_BYTES, blocks.out_h * blocks.out_w * parts.out_tile)


@dataclass(frozen=True)
class _BufferParts:
    """The circular buffers of a convolution, one method per purpose; all in bytes per core."""

    problem: Problem
    settings: Settings
    scheme: TensorMemoryLayout
    blocks: Blocks
    depthwise: bool
    whole_window: bool
    in_tile: int
    weight_tile: int
    out_tile: int
    weight_shape: Pair
    channels: int

    @property
    def blocks_h(self) -> int:
        return self.blocks.out_h // self.blocks.act_h

    @property
    def blocks_w(self) -> int:
        """Blocks of the inner dimension."""
        kernel_h, kernel_w = self.problem.window.kernel
        if self.depthwise:
            return 1 if self.whole_window else kernel_h * kernel_w
        return self.weight_shape[0] // TILE // self.blocks.act_w

    def gathered_tiles(self) -> Pair:
        """Activation tiles per block, of the first and of the second reader."""
        problem, settings, blocks = self.problem, self.settings, self.blocks
        split = splits_reader(problem, settings, self.scheme, blocks, self.channels, self.weight_tile, self.depthwise)
        if not split or self.depthwise:
            return blocks.act_h * blocks.act_w, 0
        second_h = blocks.act_h // 2
        first_h = blocks.act_h - second_h
        if not settings.enable_activation_reuse:
            return first_h * blocks.act_w, second_h * blocks.act_w
        padded = self.weight_shape[0] // math.prod(problem.window.kernel)
        return (
            reused_tiles(problem, first_h, blocks.act_w, padded, self.in_tile),
            reused_tiles(problem, second_h, blocks.act_w, padded, self.in_tile),
        )

    def weights(self) -> int:
        settings, blocks = self.settings, self.blocks
        kernel_h, kernel_w = self.problem.window.kernel
        inner = blocks.act_h * (kernel_w if self.whole_window else 1) if self.depthwise else blocks.act_w
        times = 2 if settings.enable_weights_double_buffer else 1
        if self.scheme is HEIGHT:
            if settings.enable_activation_reuse:
                times = 1
            elif self.blocks_h > 1:
                times = self.blocks_w if self.depthwise else kernel_h
        return blocks.out_w * inner * times * self.weight_tile

    def partial_sums(self, gathered: int) -> int:
        problem, blocks = self.problem, self.blocks
        if self.depthwise:
            kept = self.scheme is HEIGHT and not self.whole_window and self.blocks_h > 1
            return gathered * self.out_tile if kept else 0
        per_column = self.weight_shape[1] // TILE // blocks.out_w if self.scheme is BLOCK else 1
        dtype = problem.out_dtype
        if l1_accumulates(problem, self.blocks_w * per_column):
            dtype = DataType.FLOAT32 if problem.math.fp32_acc else DataType.BFLOAT16
        if self.settings.output_layout is not Layout.ROW_MAJOR and dtype is problem.out_dtype:
            return 0
        return blocks.act_h * blocks.out_w * tile_bytes(DEFAULT_TILE, dtype)

    def activations(self, first: int, second: int, no_multicast: bool) -> int:
        """Activations of one or two readers, and the buffers for multicasting them."""
        problem, scheme = self.problem, self.scheme
        if self.settings.enable_act_double_buffer:
            first, second = first * 2, second * 2
        shares_rows = scheme is BLOCK and problem.conv_dtype is problem.out_dtype and not no_multicast
        total = 0 if shares_rows else second * self.in_tile
        if scheme is HEIGHT:
            total += first * self.in_tile
        elif not no_multicast:
            total += (first + second) * self.out_tile
        if scheme is WIDTH:
            total += self.blocks.act_w * 2 * self.in_tile
        elif scheme is BLOCK and not shares_rows:
            total += first * self.in_tile
        return total


# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/conv/conv2d/conv2d_op_program_factory_common.cpp,
# calculate_act_cb_size_with_reuse
def reused_tiles(problem: Problem, rows: int, columns: int, channels: int, in_tile: int) -> int:
    """Activation tiles when adjacent output rows reuse them."""
    width = problem.window.output_size[1]
    width_tiles = div_up(width, TILE)
    loops = math.ceil(rows / width_tiles)
    left_over = -width % TILE
    kernel_h, kernel_w = problem.window.kernel
    extra = loops * channels * kernel_w * (1 + left_over * kernel_h) * problem.value_bytes
    return width_tiles * columns + div_up(extra, in_tile)


# -- the second reader ------------------------------------------------------------------------------------------------

# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/conv/conv2d/conv2d_op_program_factory_common.cpp,
# get_local_l1_noc_transfer_rate, get_all_dram_noc_transfer_rate and get_mcast_many_l1_linked_noc_transfer_rate
# NoC bandwidth in GB/s by transfer size, as measured by the library's authors:
# (size in bytes from which it is constant, rate of the smallest transfer of 16 bytes, constant rate).
LOCAL_RATE = {Arch.WORMHOLE_B0: (1024, 0.868, 27.84), Arch.BLACKHOLE: (4096, 1.124, 80.48)}
DRAM_RATE = {Arch.WORMHOLE_B0: (2048, 0.436, 28.411), Arch.BLACKHOLE: (2048, 0.671, 80.885)}
MULTICAST_RATE = {Arch.WORMHOLE_B0: (65536, 0.318, 25.345), Arch.BLACKHOLE: (65536, 0.182, 57.677)}
# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/conv/conv2d/conv2d_op_program_factory_common.cpp, clock_frequency_ghz
CLOCK_GHZ = {Arch.WORMHOLE_B0: 1.0, Arch.BLACKHOLE: 1.35}
SMALLEST_TRANSFER = 16

# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/conv/conv2d/conv2d_op_program_factory_common.cpp,
# get_tilize_cycles_per_tile
# Cycles to tilize one tile, by input and output dtype: (16-bit destination register, 32-bit destination register).
TILIZE_CYCLES = {
    Arch.WORMHOLE_B0: {
        (DataType.FLOAT32, DataType.FLOAT32): (107, 128),
        (DataType.FLOAT32, DataType.BFLOAT16): (74, 74),
        (DataType.FLOAT32, DataType.BFLOAT8_B): (74, 70),
        (DataType.BFLOAT16, DataType.FLOAT32): (92, 117),
        (DataType.BFLOAT16, DataType.BFLOAT16): (61, 68),
        (DataType.BFLOAT16, DataType.BFLOAT8_B): (40, 43),
    },
    Arch.BLACKHOLE: {
        (DataType.FLOAT32, DataType.FLOAT32): (132, 132),
        (DataType.FLOAT32, DataType.BFLOAT16): (132, 80),
        (DataType.FLOAT32, DataType.BFLOAT8_B): (132, 77),
        (DataType.BFLOAT16, DataType.FLOAT32): (105, 128),
        (DataType.BFLOAT16, DataType.BFLOAT16): (72, 72),
        (DataType.BFLOAT16, DataType.BFLOAT8_B): (60, 60),
    },
}
# The library has no rates of Grayskull any more: Wormhole's stand in for them.
LOCAL_RATE[Arch.GRAYSKULL] = LOCAL_RATE[Arch.WORMHOLE_B0]
DRAM_RATE[Arch.GRAYSKULL] = DRAM_RATE[Arch.WORMHOLE_B0]
MULTICAST_RATE[Arch.GRAYSKULL] = MULTICAST_RATE[Arch.WORMHOLE_B0]
CLOCK_GHZ[Arch.GRAYSKULL] = CLOCK_GHZ[Arch.WORMHOLE_B0]
TILIZE_CYCLES[Arch.GRAYSKULL] = TILIZE_CYCLES[Arch.WORMHOLE_B0]

_f32 = np.float32


def _rate(size: int, measured: tuple[int, float, float]) -> np.float32:
    grows_to, least, most = measured
    step = (_f32(most) - _f32(least)) / _f32(grows_to - SMALLEST_TRANSFER)
    clamped = min(max(size, SMALLEST_TRANSFER), grows_to)
    return _f32(least) + step * _f32(clamped - SMALLEST_TRANSFER)


# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/conv/conv2d/conv2d_op_program_factory_common.cpp, is_split_reader_supported
# and is_split_reader_viable
def splits_reader(
    problem: Problem,
    settings: Settings,
    scheme: TensorMemoryLayout,
    blocks: Blocks,
    channels: int,
    weight_tile: int,
    depthwise: bool,
) -> bool:
    """Whether both data-movement processors read activations."""
    if scheme is WIDTH or depthwise or blocks.act_h <= 1:
        return False
    if settings.force_split_reader is not None:
        return settings.force_split_reader
    if scheme is BLOCK or settings.enable_activation_reuse:
        return True
    arch, kernel_w = problem.arch, problem.window.kernel[1]
    clock = _f32(CLOCK_GHZ[arch])
    unit = problem.value_bytes * channels * (kernel_w if problem.window.dilation[1] == 1 else 1)
    gathered = problem.value_bytes * blocks.act_h * TILE * channels * kernel_w
    gather = clock * _f32(gathered) / _rate(unit, LOCAL_RATE[arch])
    weights = weight_tile * blocks.out_w * blocks.act_w
    per_byte = _f32(1) / _rate(weight_tile, DRAM_RATE[arch]) + _f32(1) / _rate(weights, MULTICAST_RATE[arch])
    load = clock * _f32(weights) * per_byte
    cycles = TILIZE_CYCLES[arch].get((problem.conv_dtype, problem.out_dtype))
    require(cycles is not None, f"activations of {problem.in_dtype} cannot be tilized as {problem.out_dtype}")
    assert cycles is not None
    tilize = _f32(cycles[problem.math.fp32_acc] * blocks.act_w * blocks.act_h)
    return bool(gather / _f32(2) + max(load, tilize) < max(gather + tilize, load))
