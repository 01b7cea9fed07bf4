"""The description of a convolution, and its block sizes in tiles."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from ttnn_emulator.enums import Arch, DataType, Layout, ShardOrientation, TensorMemoryLayout
from ttnn_emulator.errors import InvalidArgument, require
from ttnn_emulator.hardware.core_grid import CoreRangeSet
from ttnn_emulator.ops.conv import sharding
from ttnn_emulator.ops.conv.sharding import BLOCK, COLUMNS, HEIGHT, ROWS, WIDTH, Cores
from ttnn_emulator.ops.conv.sliding_window import TILE, Pair, Window
from ttnn_emulator.tensors.memory_config import MemoryConfig
from ttnn_emulator.tensors.shapes import div_up, round_up

# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/conv/conv2d/conv2d_utils.cpp, get_conv_noc_max_burst_size
LARGEST_BURST = {Arch.WORMHOLE_B0: 8192, Arch.BLACKHOLE: 16384}  # bytes of one NoC packet

# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/conv/conv2d/conv2d_utils.cpp, determine_largest_subblock_size
# Output subblocks that fit the destination register, best first: rows × columns of tiles.
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
        """The dtype of the row-major input in L1."""
        return DataType.FLOAT32 if self.in_dtype is DataType.FLOAT32 else DataType.BFLOAT16

    @property
    def value_bytes(self) -> int:
        return 4 if self.conv_dtype is DataType.FLOAT32 else 2

    # tt-metal v0.77.0: ttnn/cpp/ttnn/operations/conv/conv2d/conv2d_utils.cpp, is_1d_depthwise_conv
    @property
    def depthwise_1d(self) -> bool:
        """Whether this is a 1D depthwise convolution, which has a dedicated kernel."""
        each_alone = self.groups == self.in_channels == self.out_channels
        return each_alone and self.window.kernel[0] == 1 and self.window.size[0] == 1 and not self.has_bias

    # tt-metal v0.77.0: ttnn/cpp/ttnn/operations/conv/conv2d/conv2d_utils.cpp, should_coalesce_1d_depthwise_conv_reads
    def reads_whole_window(self, scheme: TensorMemoryLayout, channels: int) -> bool:
        """Whether a 1D depthwise convolution reads all taps of a window in one NoC packet."""
        kernel, dilation = self.window.kernel[1], self.window.dilation[1]
        if not self.depthwise_1d or scheme is not HEIGHT or kernel <= 1 or dilation != 1 or channels % TILE:
            return False
        return channels * self.value_bytes * kernel <= LARGEST_BURST.get(self.arch, 0)

    def cores(self, settings: Settings, scheme: TensorMemoryLayout, alignment: int) -> Cores:
        """The cores for this problem under a sharding scheme."""
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
    """Sizes in tiles: activation block, output subblock, and the whole output of a core."""

    act_h: int
    act_w: int
    sub_h: int
    sub_w: int
    out_h: int
    out_w: int


# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/conv/conv2d/conv2d_utils.cpp, get_output_compute_grid_size
def output_grid(board: tuple[int, int], settings: Settings, cores: Cores) -> tuple[int, int]:
    """The grid available to the output: the board's, or the one that the settings override."""
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
    """The largest output subblock that fits the destination register."""
    for rows, columns in SUBBLOCKS:
        if fp32_acc and rows * columns > 4:
            continue
        if height % rows == 0 and width % columns == 0 and (columns == width or rows == 1):
            return rows, columns
    raise InvalidArgument(f"no block of the destination register divides {height} x {width} tiles")


# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/conv/conv2d/conv2d_utils.cpp, determine_per_core_conv_block_config
def choose_blocks(
    problem: Problem, settings: Settings, inputs: Cores, outputs: Cores, channels: int, *, any_kernel: bool = True
) -> Blocks:
    """Block sizes per core. `channels` are the input channels including the padding of the shards."""
    shard = output_memory_config(problem, outputs).shard_spec
    assert shard is not None
    out_h, out_w = div_up(shard.shape[0], TILE), div_up(shard.shape[1], TILE)
    act_h = out_h
    if settings.act_block_h_override:
        # Rounds down to whole tiles: with channel sharding the last tile is partial, and the block may be too high.
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
