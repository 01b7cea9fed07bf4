"""Helpers that prepare group_norm: core grids, group masks, weights in rows of tiles."""

from __future__ import annotations

from typing import Any

import torch

from ttnn_emulator.enums import BufferType, DataType, Layout, ShardOrientation, TensorMemoryLayout
from ttnn_emulator.errors import require
from ttnn_emulator.execution.operation_table import composite, ttnn
from ttnn_emulator.hardware.core_grid import CoreCoord, CoreGrid, CoreRange, CoreRangeSet
from ttnn_emulator.ops.normalization.checks import TILE
from ttnn_emulator.tensors.host_transfer import from_torch_tensor
from ttnn_emulator.tensors.memory_config import MemoryConfig, ShardSpec
from ttnn_emulator.tensors.mesh_distribution import ShardTensor2dMesh
from ttnn_emulator.tensors.shapes import div_up, round_up

# -- grids ------------------------------------------------------------------------------------------------------------


# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/normalization/groupnorm/groupnorm_grid_utils.cpp, compute_num_virtual_cols
def virtual_columns(grid_x: int, groups: int, channels: int) -> int:
    """The number of channel parts that consist of whole tiles and whole groups; 0 if there is none."""
    for columns in range(min(grid_x, groups), 0, -1):
        if (channels // columns) % TILE == 0 and groups % columns == 0:
            return columns
    return 0


def fits(grid: tuple[int, int], groups: int, channels: int, rows: int, batch: int) -> bool:
    columns = virtual_columns(grid[0], groups, channels)
    if not columns:
        return False
    down = grid[0] // columns * grid[1]
    return rows >= down and rows % down == 0 and (down < batch or down % batch == 0)


def dram_grid(columns: int, lines: int, channels: int, groups: int, rows: int, batch: int) -> CoreGrid | None:
    """The largest grid that group_norm of an interleaved tensor can use; grids that use all columns are preferred."""
    fallback = None
    for x in range(columns, 0, -1):
        parts = virtual_columns(x, groups, channels)
        if not parts:
            continue
        for y in range(min(rows // (x // parts), lines), 0, -1):
            if not fits((x, y), groups, channels, rows, batch):
                continue
            if x % parts == 0:
                return CoreGrid(x=x, y=y)
            fallback = fallback or CoreGrid(x=x, y=y)
            break
    return fallback


@composite("ttnn.determine_expected_group_norm_dram_grid_size")
def determine_expected_group_norm_dram_grid_size(*, device, num_channels, num_groups, input_nhw, num_batches=1):
    """The core grid for group_norm of a tensor in DRAM."""
    if num_channels % num_groups or num_channels % TILE:
        raise AssertionError(f"{num_channels} channels must be a multiple of {num_groups} groups and of {TILE}")
    columns, lines = device.board.grid
    return dram_grid(columns, lines, num_channels, num_groups, div_up(input_nhw, TILE), num_batches)


@composite(
    "ttnn.determine_expected_group_norm_sharded_config_and_grid_size",
    "ttnn.operations.normalization.determine_expected_group_norm_sharded_config_and_grid_size",
)
def determine_expected_group_norm_sharded_config_and_grid_size(
    *, device, num_channels, num_groups, input_nhw, is_height_sharded, is_row_major=False
):
    """The sharded memory config, and the core grid, for group_norm of a tensor in L1."""
    require(num_groups > 0 and num_channels > 0, "channels and groups must be positive")
    require(num_channels % num_groups == 0, f"{num_channels} channels do not divide into {num_groups} groups")
    require(num_channels % TILE == 0, f"{num_channels} channels are not a multiple of {TILE}")
    across, down = device.board.grid
    if is_row_major:
        across, down = down, across
    rows = div_up(input_nhw, TILE)
    cores_rows = _largest_divisor(rows, across * down if is_height_sharded else across)
    require(cores_rows > 0, f"{rows} tiles of rows do not divide over the grid")
    cores_channels = 1
    if not is_height_sharded:
        size = num_channels // num_groups
        found = [
            cores
            for cores in range(down, 0, -1)
            if (num_channels // 8) % cores == 0
            and (num_channels // cores) % size == 0
            and num_channels // cores >= TILE
        ]
        require(found, f"{num_channels} channels in {num_groups} groups do not divide over {down} cores")
        cores_channels = found[0]
    height = round_up(input_nhw, cores_rows * TILE) // cores_rows
    width = num_channels // cores_channels
    require(width % 8 == 0, f"{width} channels per core are not a multiple of 8")
    if is_height_sharded:
        grid_x, grid_y = min(cores_rows, across), div_up(cores_rows, across)
    else:
        grid_x, grid_y = (cores_channels, cores_rows) if is_row_major else (cores_rows, cores_channels)
    by_rows = is_height_sharded or is_row_major
    orientation = ShardOrientation.ROW_MAJOR if by_rows else ShardOrientation.COL_MAJOR
    layout = TensorMemoryLayout.HEIGHT_SHARDED if is_height_sharded else TensorMemoryLayout.BLOCK_SHARDED
    cores = CoreRangeSet([CoreRange(CoreCoord(0, 0), CoreCoord(grid_x - 1, grid_y - 1))])
    shards = ShardSpec(cores, (height, width) if by_rows else (width, height), orientation)
    return MemoryConfig(layout, BufferType.L1, shards), CoreGrid(x=grid_x, y=grid_y)


def _largest_divisor(number: int, limit: int) -> int:
    return next((divisor for divisor in range(limit, 0, -1) if number % divisor == 0), 0)


@composite("ttnn.get_group_norm_cores_across_channel")
def get_group_norm_cores_across_channel(memory_layout, core_grid, shard_orientation=None):
    """How many cores share the channels."""
    if memory_layout is TensorMemoryLayout.BLOCK_SHARDED:
        return core_grid.x if shard_orientation is ShardOrientation.ROW_MAJOR else core_grid.y
    return 1 if memory_layout is TensorMemoryLayout.HEIGHT_SHARDED else core_grid.x * core_grid.y


# -- masks and weights ------------------------------------------------------------------------------------------------


def _mask(channels: int, groups: int, cores: int, dtype: DataType, *, inside: float, rows: int = 0) -> Any:
    require(cores > 0 and groups > 0, f"num_groups {groups} and num_cores_across_channel {cores} must be positive")
    require(groups % cores == 0, f"{groups} groups do not divide over {cores} cores")
    require(0 <= rows < TILE, f"rows_in_last_tile {rows} is not between 0 and {TILE - 1}")
    width = channels // groups
    require(channels > 0 and width > 0, f"{channels} channels do not make {groups} groups")
    span = span_of(channels, width)
    sets = 2 if rows else 1
    mask = torch.full((1, groups * sets, TILE, span), 1.0 - inside)
    for number in range(groups * sets):
        group = number % groups % (groups // cores)
        start = _offset_in_tile(group, width)
        limit = rows if number >= groups else TILE
        mask[0, number, :limit, start : min(start + width, span)] = inside
    return from_torch_tensor(mask, dtype, layout=Layout.TILE)


def span_of(channels: int, width: int) -> int:
    """The largest width, in whole tiles, that a group of `width` channels overlaps."""
    starts = range(0, channels, width)
    return max((start + width - 1) // TILE - start // TILE + 1 for start in starts) * TILE


def _offset_in_tile(group: int, width: int) -> int:
    """The offset of a group in its first tile."""
    return group * (width % TILE) % TILE


@composite(
    "ttnn.create_group_norm_input_mask",
    "ttnn.operations.normalization.create_group_norm_input_mask",
    ignores=("tile_height", "tile_width"),
)
def create_group_norm_input_mask(
    num_channel, num_groups, num_cores_across_channel, data_type=DataType.BFLOAT16, rows_in_last_tile=0
):
    """Ones at a group's channels in its tiles; a second set excludes the padding of the last rows."""
    cores = num_cores_across_channel
    return _mask(num_channel, num_groups, cores, data_type, inside=1.0, rows=rows_in_last_tile)


@composite(
    "ttnn.create_group_norm_input_negative_mask",
    "ttnn.operations.normalization.create_group_norm_input_negative_mask",
    ignores=("tile_height", "tile_width"),
)
def create_group_norm_input_negative_mask(
    num_channel, num_groups, num_cores_across_channel, data_type=DataType.BFLOAT16
):
    """The complement: zeros at a group's channels."""
    return _mask(num_channel, num_groups, num_cores_across_channel, data_type, inside=0.0)


def dram_group_norm_virtual_columns(core_grid: CoreGrid, num_channels: int, num_groups: int) -> int:
    """The number of channel parts of group_norm for a tensor in DRAM."""
    columns = virtual_columns(core_grid.x, num_groups, num_channels)
    if not columns:
        raise AssertionError(f"{num_channels} channels in {num_groups} groups do not divide over {core_grid.x} columns")
    return columns


def find_max_tile_span(W: int, group_size: int, tile_width: int) -> int:
    """The most tiles that one group of channels overlaps."""
    starts = range(0, W, group_size)
    return max(((start + group_size - 1) // tile_width - start // tile_width + 1 for start in starts), default=0)


@composite("ttnn.dram_group_norm_params_from_torch")
def dram_group_norm_params_from_torch(
    torch_params,
    channels_per_device,
    groups_per_device,
    device,
    mesh_axis=None,
    core_grid=None,
    return_mask=True,
    dtype=DataType.BFLOAT16,
):
    """Torch weights and biases, or one of them, as group_norm of a tensor in DRAM takes them, and its mask.

    Along `mesh_axis`, the channels are sharded over the rows or columns of a mesh.
    """
    if not core_grid and not device:
        raise AssertionError("either core_grid or device must be given")
    if channels_per_device % TILE or channels_per_device % groups_per_device:
        raise AssertionError(
            f"{channels_per_device} channels must be a multiple of {TILE} and of {groups_per_device} groups"
        )
    parts = 1
    dims: list[int | None] = [None, None]
    if mesh_axis is not None:
        parts, dims[mesh_axis] = tuple(device.shape)[mesh_axis], 0
    columns = virtual_columns((core_grid or device.core_grid).x, groups_per_device, channels_per_device)
    if not columns:
        raise AssertionError(f"{channels_per_device} channels do not divide over the grid")
    mapper = ShardTensor2dMesh(device, mesh_shape=tuple(device.shape), dims=tuple(dims))
    single = isinstance(torch_params, torch.Tensor)
    made = []
    for values in [torch_params] if single else torch_params:
        if values.numel() // parts != channels_per_device:
            raise AssertionError(f"{values.numel() // parts} channels a device are given for {channels_per_device}")
        rows = [create_group_norm_weight_bias_rm(part, channels_per_device, columns) for part in values.chunk(parts)]
        made.append(ttnn.from_torch(torch.cat(rows), dtype=dtype, device=device, mesh_mapper=mapper))
    given = made[0] if single else made
    if not return_mask:
        return given
    mask = create_group_norm_input_mask(channels_per_device, groups_per_device, columns, dtype)
    return given, ttnn.to_device(mask, device)


@composite("ttnn.create_group_norm_weight_bias_rm")
def create_group_norm_weight_bias_rm(input_tensor, num_channels, num_cores_x):
    """A torch weight as group_norm takes it: each core's channels padded to rows of 32."""
    share = num_channels // num_cores_x
    rows = input_tensor.view(-1, share)
    padded = torch.nn.functional.pad(rows, (0, -share % TILE)).flatten()
    return padded[: num_channels + (-share % TILE) * (num_channels // share)].reshape(1, 1, -1, TILE)
