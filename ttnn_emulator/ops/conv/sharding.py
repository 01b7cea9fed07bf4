"""How convolutions and pools distribute work over cores: grids, shard shapes, channel alignment."""

from __future__ import annotations

from dataclasses import dataclass

from ttnn_emulator.enums import BufferType, DataType, Layout, ShardOrientation, TensorMemoryLayout
from ttnn_emulator.errors import InvalidArgument, require
from ttnn_emulator.hardware.core_grid import CoreCoord, CoreRange, CoreRangeSet, num_cores_to_corerangeset
from ttnn_emulator.ops.conv.sliding_window import TILE, Window
from ttnn_emulator.tensors.memory_config import MemoryConfig, ShardSpec
from ttnn_emulator.tensors.shapes import div_up, round_up
from ttnn_emulator.tensors.spec import Spec

HEIGHT = TensorMemoryLayout.HEIGHT_SHARDED
WIDTH = TensorMemoryLayout.WIDTH_SHARDED
BLOCK = TensorMemoryLayout.BLOCK_SHARDED
ROWS = ShardOrientation.ROW_MAJOR
COLUMNS = ShardOrientation.COL_MAJOR

# L1 transfers are aligned to 16 bytes, and the narrowest row-major dtype is bfloat16.
# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/conv/conv2d/conv2d_utils.cpp, get_input_channels_alignment
NARROWEST_CHANNELS = 8


@dataclass(frozen=True)
class Cores:
    """The cores of an operation, and the dimensions over which they share its work."""

    grid: CoreRangeSet
    scheme: TensorMemoryLayout
    orientation: ShardOrientation = ROWS

    @property
    def rows(self) -> int:
        """Cores along the pixels."""
        if self.scheme is WIDTH:
            return 1
        if self.scheme is HEIGHT:
            return self.grid.num_cores()
        extent = self.grid.bounding_box().grid_size()
        return extent.x if self.orientation is COLUMNS else extent.y

    @property
    def channels(self) -> int:
        """Cores along the channels."""
        if self.scheme is HEIGHT:
            return 1
        if self.scheme is WIDTH:
            return self.grid.num_cores()
        extent = self.grid.bounding_box().grid_size()
        return extent.y if self.orientation is COLUMNS else extent.x

    @classmethod
    def of(cls, config: MemoryConfig) -> Cores:
        """The cores that hold a sharded tensor."""
        assert config.shard_spec is not None
        return cls(config.shard_spec.grid, config.memory_layout, config.shard_spec.orientation)

    def memory_config(self, rows: int, channels: int, row_step: int) -> MemoryConfig:
        """The memory config of [1, 1, rows, channels] with shard heights that are multiples of `row_step`."""
        down, across = self.rows, self.channels
        height = rows if self.scheme is WIDTH else round_up(rows, down * row_step) // down
        require(channels % across == 0, f"{channels} channels do not divide over {across} cores")
        return MemoryConfig(
            self.scheme, BufferType.L1, ShardSpec(self.grid, (height, channels // across), self.orientation)
        )


# -- how many cores ---------------------------------------------------------------------------------------------------


# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/conv/conv2d/conv2d_utils.cpp,
# find_closest_largest_divisor_with_num_padding_and_mult
def most_cores(work: int, limit: int, step: int = 1) -> int:
    """The most cores, up to `limit`, without an idle one when `work` is split in multiples of `step`."""
    cores = limit
    while cores > 1:
        padded = round_up(work, cores * step)
        if padded - work < padded // cores:
            break
        cores -= 1
    return cores


# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/conv/conv2d/conv2d_utils.cpp, find_closest_largest_divisor
def most_even_cores(limit: int, *works: int) -> int:
    """The most cores, up to `limit`, that divides all of `works`."""
    cores = limit
    while any(work % cores for work in works):
        cores -= 1
    return cores


def rectangle(width: int, height: int) -> CoreRangeSet:
    return CoreRangeSet([CoreRange(CoreCoord(0, 0), CoreCoord(width - 1, height - 1))])


def block_grid(rows: int, channels: int, orientation: ShardOrientation) -> CoreRangeSet:
    return rectangle(rows, channels) if orientation is COLUMNS else rectangle(channels, rows)


# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/conv/conv2d/conv2d_utils.cpp, determine_parallel_config
def choose_cores(
    scheme: TensorMemoryLayout,
    board: tuple[int, int],
    *,
    rows: int,
    in_channels: int,
    out_channels: int,
    alignment: int,
    orientation: ShardOrientation = ROWS,
    pad_channels: bool = True,
    whole_tile_rows: bool = True,
    whole_tile_channels: bool = True,
    block_rows: int = 0,
) -> Cores:
    """The cores for an output of `rows` pixels when its input is sharded by `scheme`.

    Convolutions use shards of whole tiles; pools accept any number of rows and half tiles of channels.
    """
    width, height = board
    tile_rows = div_up(rows, TILE if whole_tile_rows else 1)
    tile_width = TILE if whole_tile_channels else TILE // 2
    step = block_rows // TILE if block_rows else 1
    if scheme is HEIGHT:
        cores = most_cores(tile_rows, width * height, step)
        return Cores(num_cores_to_corerangeset(cores, CoreCoord(width, height), True), HEIGHT)
    if scheme is WIDTH:
        work = div_up(in_channels, tile_width)
        cores = most_cores(work, width * height) if pad_channels else most_even_cores(width * height, work)
        return Cores(num_cores_to_corerangeset(cores, CoreCoord(width, height), True), WIDTH)
    if scheme is not BLOCK:
        raise InvalidArgument(f"work can be sharded by height, width or block, not {scheme}")
    limit_rows, limit_channels = (width, height) if orientation is COLUMNS else (height, width)
    down = most_cores(tile_rows, limit_rows, step)
    work = div_up(in_channels, alignment)
    if pad_channels:
        across = most_cores(work, limit_channels)
    else:
        across = most_even_cores(limit_channels, div_up(out_channels, tile_width), work)
    return Cores(block_grid(down, across, orientation), BLOCK, orientation)


# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/conv/conv2d/conv2d_utils.cpp, determine_output_parallel_config
def output_cores(
    inputs: Cores, board: tuple[int, int], out_channels: int, orientation: ShardOrientation, as_matmul: bool
) -> Cores:
    """The cores of a convolution's output: those of the input, with as many along the channels as the output fills."""
    if as_matmul or inputs.scheme is HEIGHT:
        return inputs
    width, height = board
    tiles = div_up(out_channels, TILE)
    if inputs.scheme is WIDTH:
        cores = most_cores(tiles, width * height)
        return Cores(num_cores_to_corerangeset(cores, CoreCoord(width, height), True), WIDTH, inputs.orientation)
    across = most_cores(tiles, height if orientation is COLUMNS else width)
    return Cores(block_grid(inputs.rows, across, orientation), BLOCK, inputs.orientation)


# -- alignment --------------------------------------------------------------------------------------------------------


# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/conv/conv2d/conv2d_utils.cpp, get_input_channels_alignment
def channel_alignment(
    scheme: TensorMemoryLayout,
    layout: Layout,
    *,
    sliced: bool = False,
    as_matmul: bool = False,
    memory_config: MemoryConfig | None = None,
) -> int:
    """The alignment of the input channels per core."""
    if as_matmul or scheme is WIDTH or not (layout is Layout.ROW_MAJOR or sliced):
        return TILE
    if memory_config is not None and memory_config.is_sharded():
        assert memory_config.shard_spec is not None
        width = memory_config.shard_spec.shape[1]
        return next((step for step in (TILE, 16, 8) if width % step == 0), TILE)
    return NARROWEST_CHANNELS


# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/conv/conv2d/conv2d_utils.cpp, determine_input_memory_config
def input_memory_config(
    scheme: TensorMemoryLayout,
    cores: Cores,
    *,
    rows: int,
    channels: int,
    layout: Layout,
    sliced: bool,
    as_matmul: bool,
) -> MemoryConfig:
    """The L1 memory config of a convolution's input on `cores`."""
    alignment = channel_alignment(scheme, layout, sliced=sliced, as_matmul=as_matmul)
    step = 1 if scheme is WIDTH and layout is Layout.ROW_MAJOR else TILE
    return cores.memory_config(round_up(rows, cores.rows * step), round_up(channels, cores.channels * alignment), step)


def slice_in_l1(dtype: DataType, window: Window, channels: int, config: MemoryConfig) -> Spec:
    """A slice of an operation's input in L1: row-major, padded to its shards."""
    assert config.shard_spec is not None
    rows = window.batch * window.size[0] * window.size[1]
    if config.memory_layout is HEIGHT:
        channels = config.shard_spec.shape[1]
    elif config.memory_layout is WIDTH:
        rows = config.shard_spec.shape[0]
    dtype = DataType.BFLOAT16 if dtype is DataType.BFLOAT8_B else dtype
    return Spec.of((1, 1, rows, channels), dtype, Layout.ROW_MAJOR, config)
