"""How a convolution is cut into blocks of tiles, and the L1 that its circular buffers take."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ttnn_emulator.enums import Arch, DataType, Layout, ShardOrientation, TensorMemoryLayout
from ttnn_emulator.errors import InvalidArgument, require
from ttnn_emulator.hardware.core_grid import CoreRangeSet
from ttnn_emulator.ops.conv import sharding
from ttnn_emulator.ops.conv.sharding import BLOCK, COLUMNS, HEIGHT, ROWS, WIDTH, Cores
from ttnn_emulator.ops.conv.sliding_window import TILE, Pair, Window
from ttnn_emulator.tensors.memory_config import MemoryConfig
from ttnn_emulator.tensors.shapes import DEFAULT_TILE, div_up, round_up
from ttnn_emulator.tensors.spec import tile_bytes

SCRATCH_BYTES = 64
LARGEST_BURST = {Arch.WORMHOLE_B0: 8192, Arch.BLACKHOLE: 16384}  # bytes of one packet on the chip's network

# Blocks of the output that fit the destination register, best first: rows × columns of tiles.
SUBBLOCKS = (
    (2, 4), (4, 2), (1, 8), (8, 1), (1, 7), (7, 1), (2, 3), (3, 2), (1, 6), (6, 1),
    (1, 5), (5, 1), (2, 2), (1, 4), (4, 1), (1, 3), (3, 1), (1, 2), (2, 1), (1, 1),
)  # fmt: skip


@dataclass(frozen=True)
class Settings:
    """A `Conv2dConfig` at the moment of the call."""

    weights_dtype: DataType | None = None
    activation: Any = None
    deallocate_activation: bool = False
    reallocate_halo_output: bool = True
    config_tensors_in_dram: bool = False
    act_block_h_override: int = 0
    act_block_w_div: int = 1
    reshard_if_not_optimal: bool = False
    override_sharding_config: bool = False
    shard_layout: TensorMemoryLayout | None = None
    core_grid: CoreRangeSet | None = None
    transpose_shards: bool = False
    output_layout: Layout = Layout.TILE
    enable_act_double_buffer: bool = False
    enable_weights_double_buffer: bool = False
    full_inner_dim: bool = False
    enable_kernel_stride_folding: bool | None = None
    enable_activation_reuse: bool = False
    force_split_reader: bool | None = None
    override_output_sharding_config: bool = False
    padding_mode: Any = None

    @classmethod
    def of(cls, record: Any) -> Settings:
        if record is None:
            return cls()
        rows = record.act_block_h_override
        require(rows % TILE == 0, f"act_block_h_override must be a multiple of {TILE}, not {rows}")
        return cls(*(getattr(record, name) for name in cls.__dataclass_fields__))

    @property
    def orientation(self) -> ShardOrientation:
        return COLUMNS if self.transpose_shards else ROWS

    def with_(self, **changes: Any) -> Settings:
        return replace(self, **changes)


@dataclass(frozen=True)
class Math:
    """The parts of a compute config that decide sizes and roundings."""

    fp32_acc: bool = False
    l1_acc: bool = False


@dataclass(frozen=True)
class Problem:
    """One convolution: its window, channels and what its tensors are like."""

    window: Window
    in_channels: int
    out_channels: int
    groups: int
    has_bias: bool
    in_dtype: DataType
    out_dtype: DataType
    layout: Layout  # of the input
    math: Math
    board: tuple[int, int]
    arch: Arch
    as_matmul: bool = False

    @property
    def conv_dtype(self) -> DataType:
        """What the input is held in once it is row-major in L1."""
        return DataType.FLOAT32 if self.in_dtype is DataType.FLOAT32 else DataType.BFLOAT16

    @property
    def value_bytes(self) -> int:
        return 4 if self.conv_dtype is DataType.FLOAT32 else 2

    @property
    def depthwise_1d(self) -> bool:
        """Convolutions along one axis in which every channel stays by itself have a kernel of their own."""
        each_alone = self.groups == self.in_channels == self.out_channels
        return each_alone and self.window.kernel[0] == 1 and self.window.size[0] == 1 and not self.has_bias

    def reads_whole_window(self, scheme: TensorMemoryLayout, channels: int) -> bool:
        """Whether a 1D depthwise convolution fetches all taps of a window in one packet."""
        kernel, dilation = self.window.kernel[1], self.window.dilation[1]
        if not self.depthwise_1d or scheme is not HEIGHT or kernel <= 1 or dilation != 1 or channels % TILE:
            return False
        return channels * self.value_bytes * kernel <= LARGEST_BURST.get(self.arch, 0)

    def cores(self, settings: Settings, scheme: TensorMemoryLayout, alignment: int) -> Cores:
        """The cores that suit this problem best under a way of sharding."""
        return sharding.choose_cores(
            scheme,
            self.board,
            rows=self.window.rows,
            in_channels=self.in_channels,
            out_channels=self.out_channels,
            alignment=alignment,
            orientation=settings.orientation,
            pad_channels=not self.as_matmul,
            block_rows=settings.act_block_h_override,
        )


@dataclass(frozen=True)
class Blocks:
    """Sizes in tiles: the blocks that a core works on at a time, and all that it puts out."""

    act_h: int
    act_w: int
    sub_h: int
    sub_w: int
    out_h: int
    out_w: int


def output_grid(board: tuple[int, int], settings: Settings, cores: Cores) -> tuple[int, int]:
    """The grid that the output may use: the board's, or the one that the settings insist on."""
    if not settings.override_output_sharding_config:
        return board
    require(settings.core_grid is not None, "override_output_sharding_config needs a core_grid")
    require(cores.scheme is BLOCK, "override_output_sharding_config is for block sharding only")
    assert settings.core_grid is not None
    extent = settings.core_grid.bounding_box().grid_size()
    require(
        extent.x <= board[0] and extent.y <= board[1],
        f"core_grid {extent.x} x {extent.y} exceeds the board's {board[0]} x {board[1]} cores",
    )
    along_rows = extent.y if cores.orientation is ROWS else extent.x
    require(along_rows == cores.rows, f"core_grid has {along_rows} cores along the pixels, the input has {cores.rows}")
    return extent.x, extent.y


def output_memory_config(problem: Problem, cores: Cores) -> MemoryConfig:
    channels = round_up(problem.out_channels, cores.channels * TILE)
    return cores.memory_config(problem.window.rows, channels, TILE)


def subblock(height: int, width: int, fp32_acc: bool) -> Pair:
    """The largest block of output tiles that the destination register holds."""
    for rows, columns in SUBBLOCKS:
        if fp32_acc and rows * columns > 4:
            continue
        if height % rows == 0 and width % columns == 0 and (columns == width or rows == 1):
            return rows, columns
    raise InvalidArgument(f"no block of the destination register divides {height} x {width} tiles")


def choose_blocks(
    problem: Problem, settings: Settings, inputs: Cores, outputs: Cores, channels: int, *, any_kernel: bool = True
) -> Blocks:
    """Block sizes of one core. `channels` are the input channels with the padding that sharding adds."""
    shard = output_memory_config(problem, outputs).shard_spec
    assert shard is not None
    out_h, out_w = div_up(shard.shape[0], TILE), div_up(shard.shape[1], TILE)
    act_h = out_h
    if settings.act_block_h_override:
        # Whole tiles only: shards over the channels end with a part of one, and may then come out too high.
        act_h = sharding.most_even_cores(settings.act_block_h_override // TILE, shard.shape[0] // TILE)
    kernel_h, kernel_w = problem.window.kernel
    if inputs.scheme is HEIGHT and settings.enable_activation_reuse:
        width_tiles = div_up(problem.window.output_size[1], TILE)
        require(
            act_h > width_tiles,
            f"activation reuse needs blocks of more rows ({act_h} tiles) than an output row has ({width_tiles} tiles)",
        )
    if inputs.scheme is WIDTH:
        act_w = channels * kernel_h * kernel_w // (inputs.grid.num_cores() * settings.act_block_w_div * TILE)
    else:
        if inputs.scheme is BLOCK:
            values = channels // inputs.channels * kernel_w * (kernel_h if settings.full_inner_dim else 1)
        elif any_kernel and problem.depthwise_1d:
            values = channels * (kernel_w if problem.reads_whole_window(HEIGHT, channels) else 1)
        else:
            values = channels * kernel_w * (kernel_h if settings.enable_activation_reuse else 1)
        act_w = div_up(values, TILE)
    return Blocks(act_h, act_w, *subblock(act_h, out_w, problem.math.fp32_acc), out_h, out_w)


# -- circular buffers -------------------------------------------------------------------------------------------------


def l1_accumulates(problem: Problem, inner_blocks: int) -> bool:
    """Whether the packer adds partial sums in L1: only worth it from a third block on, a second one with a bias."""
    return problem.math.l1_acc and inner_blocks > (1 if problem.has_bias else 2)


@dataclass(frozen=True)
class BufferSizes:
    """Bytes of L1 a core: circular buffers, and the output that they end in."""

    circular: int
    output: int


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
    """What the program of one convolution takes. `weight_shape` is that of the prepared weights, padding included."""
    tile = DEFAULT_TILE
    assert settings.weights_dtype is not None
    in_tile, weight_tile = tile_bytes(tile, problem.conv_dtype), tile_bytes(tile, settings.weights_dtype)
    out_tile = tile_bytes(tile, problem.out_dtype)
    kernel_h, kernel_w = problem.window.kernel
    depthwise = any_kernel and problem.depthwise_1d
    whole_window = any_kernel and problem.reads_whole_window(scheme, channels)
    blocks_h = blocks.out_h // blocks.act_h
    weight_rows, weight_columns = weight_shape[0] // TILE, weight_shape[1] // TILE

    split = splits_reader(problem, settings, scheme, blocks, channels, weight_tile, depthwise)
    act_tiles, second_tiles = blocks.act_h * blocks.act_w, 0
    if split and not depthwise:
        second_h = blocks.act_h // 2
        first_h = blocks.act_h - second_h
        if settings.enable_activation_reuse:
            padded = weight_shape[0] // (kernel_h * kernel_w)
            act_tiles = reused_tiles(problem, first_h, blocks.act_w, padded, in_tile)
            second_tiles = reused_tiles(problem, second_h, blocks.act_w, padded, in_tile)
        else:
            act_tiles, second_tiles = first_h * blocks.act_w, second_h * blocks.act_w

    if depthwise:
        blocks_w = 1 if whole_window else kernel_h * kernel_w
    else:
        blocks_w = weight_rows // blocks.act_w
    inner_blocks = blocks_w * (weight_columns // blocks.out_w) if scheme is BLOCK else blocks_w
    partial_dtype = problem.out_dtype
    if l1_accumulates(problem, inner_blocks):
        partial_dtype = DataType.FLOAT32 if problem.math.fp32_acc else DataType.BFLOAT16

    require(
        depthwise or blocks.act_h <= blocks.out_h,
        f"blocks of {blocks.act_h} tiles are higher than the {blocks.out_h} tiles of a core's output",
    )
    total = 0

    # Weights
    inner = blocks.act_h * (kernel_w if whole_window else 1) if depthwise else blocks.act_w
    tiles = blocks.out_w * inner
    if scheme is HEIGHT:
        if not settings.enable_activation_reuse:
            if blocks_h > 1:
                tiles *= blocks_w if depthwise else kernel_h
            elif settings.enable_weights_double_buffer:
                tiles *= 2
    elif settings.enable_weights_double_buffer:
        tiles *= 2
    total += tiles * weight_tile

    # Partial sums
    if depthwise:
        if scheme is HEIGHT and not whole_window and blocks_h > 1:
            total += act_tiles * out_tile
    elif settings.output_layout is Layout.ROW_MAJOR or partial_dtype is not problem.out_dtype:
        total += blocks.act_h * blocks.out_w * tile_bytes(tile, partial_dtype)

    # Activations: gathered rows, for one reader or two
    if settings.enable_act_double_buffer:
        act_tiles, second_tiles = act_tiles * 2, second_tiles * 2
    shares_rows = scheme is BLOCK and problem.conv_dtype is problem.out_dtype and not no_multicast
    if scheme is HEIGHT:
        total += act_tiles * in_tile
    elif not no_multicast:
        total += (act_tiles + second_tiles) * out_tile
    if not shares_rows:
        total += second_tiles * in_tile
    total += blocks.act_h * blocks.act_w * out_tile  # the same as tiles
    if problem.has_bias:
        total += blocks.out_w * weight_tile
    if scheme is WIDTH:
        total += blocks.act_w * 2 * in_tile
    elif scheme is BLOCK and not shares_rows:
        total += act_tiles * in_tile

    if settings.config_tensors_in_dram:
        total += index_bytes if index_bytes is not None else blocks.out_h * TILE * 2
    return BufferSizes(total + SCRATCH_BYTES, blocks.out_h * blocks.out_w * out_tile)


def reused_tiles(problem: Problem, rows: int, columns: int, channels: int, in_tile: int) -> int:
    """Tiles of gathered activations when neighbouring output rows share them."""
    width = problem.window.output_size[1]
    width_tiles = div_up(width, TILE)
    loops = math.ceil(rows / width_tiles)
    left_over = -width % TILE
    kernel_h, kernel_w = problem.window.kernel
    extra = loops * channels * kernel_w * (1 + left_over * kernel_h) * problem.value_bytes
    return width_tiles * columns + div_up(extra, in_tile)


# -- the second reader ------------------------------------------------------------------------------------------------

# GB/s of the chip's network by the size of a transfer, as the library's authors measured it:
# bytes up to which it grows, rate of the smallest transfer (16 bytes), rate at the end.
LOCAL_RATE = {Arch.WORMHOLE_B0: (1024, 0.868, 27.84), Arch.BLACKHOLE: (4096, 1.124, 80.48)}
DRAM_RATE = {Arch.WORMHOLE_B0: (2048, 0.436, 28.411), Arch.BLACKHOLE: (2048, 0.671, 80.885)}
MULTICAST_RATE = {Arch.WORMHOLE_B0: (65536, 0.318, 25.345), Arch.BLACKHOLE: (65536, 0.182, 57.677)}
CLOCK_GHZ = {Arch.WORMHOLE_B0: 1.0, Arch.BLACKHOLE: 1.35}
SMALLEST_TRANSFER = 16

# Cycles to bring a tile of rows into tile order: input and output dtype, without and with a 32-bit destination.
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

_f32 = np.float32


def _rate(size: int, measured: tuple[int, float, float]) -> np.float32:
    grows_to, least, most = measured
    step = (_f32(most) - _f32(least)) / _f32(grows_to - SMALLEST_TRANSFER)
    clamped = min(max(size, SMALLEST_TRANSFER), grows_to)
    return _f32(least) + step * _f32(clamped - SMALLEST_TRANSFER)


def splits_reader(
    problem: Problem,
    settings: Settings,
    scheme: TensorMemoryLayout,
    blocks: Blocks,
    channels: int,
    weight_tile: int,
    depthwise: bool,
) -> bool:
    """Whether both data-movement processors gather activations."""
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


# -- choosing how to shard --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Estimate:
    """L1 bytes a core that a convolution would take under one way of sharding."""

    cores: int
    input: int
    halo: int
    total: int


def estimate(
    problem: Problem, settings: Settings, scheme: TensorMemoryLayout, halo_input: MemoryConfig | None = None
) -> Estimate:
    """The library's own guess, which decides between ways of sharding and how often to slice."""
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


def choose_scheme(problem: Problem, settings: Settings) -> Settings:
    """Settings with the way of sharding that takes least L1."""
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
