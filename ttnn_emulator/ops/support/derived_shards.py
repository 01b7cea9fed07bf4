"""Shard specs that the library derives: scaled from one tensor to another, or new ones for a shape."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ttnn_emulator.enums import ShardOrientation, TensorMemoryLayout
from ttnn_emulator.errors import require
from ttnn_emulator.hardware.core_grid import CoreCoord, CoreRange, CoreRangeSet, num_cores_to_corerangeset
from ttnn_emulator.tensors.memory_config import MemoryConfig, ShardSpec
from ttnn_emulator.tensors.shapes import TILE_SIZE, div_up, round_up

HEIGHT, WIDTH, BLOCK = (
    TensorMemoryLayout.HEIGHT_SHARDED,
    TensorMemoryLayout.WIDTH_SHARDED,
    TensorMemoryLayout.BLOCK_SHARDED,
)


def scaled_shards(shards: ShardSpec, source: Sequence[int], target: Sequence[int]) -> ShardSpec | None:
    """`shards` of a tensor of shape `source`, scaled to `target`; None if they do not divide evenly."""
    source_height, target_height = math.prod(source[:-1]), math.prod(target[:-1])
    if source_height == 0 or source[-1] == 0:
        return None
    height, width = shards.shape[0] * target_height, shards.shape[1] * target[-1]
    if height % source_height or width % source[-1]:
        return None
    return ShardSpec(shards.grid, (height // source_height, width // source[-1]), shards.orientation)


def fresh_shards(
    grid: tuple[int, int],
    shape: Sequence[int],
    layout: TensorMemoryLayout,
    orientation: ShardOrientation | None = None,
    *,
    tiles: bool = True,
) -> ShardSpec:
    """Shards that spread `shape` over the whole grid of the chip, on as many cores as they fill."""
    step = TILE_SIZE if tiles else 1
    row_wise = orientation is not ShardOrientation.COL_MAJOR
    orientation = orientation or ShardOrientation.ROW_MAJOR
    height, width = math.prod(shape[:-1]), shape[-1]
    size, cores = CoreCoord(*grid), grid[0] * grid[1]
    if height == 0 or width == 0:
        along = {HEIGHT: width, WIDTH: height}.get(layout, 0)
        require(along > 0, f"an empty tensor of {height} x {width} cannot be {layout.name}")
        empty = (step, round_up(width, step)) if layout is HEIGHT else (round_up(height, step), step)
        return ShardSpec(num_cores_to_corerangeset(1, size, row_wise), empty, orientation)
    if layout is HEIGHT:
        shard = round_up(div_up(height, cores), step), round_up(width, step)
        used = num_cores_to_corerangeset(min(div_up(height, shard[0]), cores), size, row_wise)
    elif layout is WIDTH:
        shard = round_up(height, step), round_up(div_up(width, cores), step)
        used = num_cores_to_corerangeset(min(div_up(width, shard[1]), cores), size, row_wise)
    else:
        rows, columns = (grid[1], grid[0]) if row_wise else grid
        shard = round_up(div_up(height, rows), step), round_up(div_up(width, columns), step)
        down, across = div_up(height, shard[0]), div_up(width, shard[1])
        x, y = (across, down) if row_wise else (down, across)
        used = CoreRangeSet([CoreRange(CoreCoord(0, 0), CoreCoord(x - 1, y - 1))])
    return ShardSpec(used, shard, orientation)


def lacks_shards(config: MemoryConfig) -> bool:
    """Whether a sharded config leaves the shard spec to the operation."""
    return config.is_sharded() and config.shard_spec is None and config.nd_shard_spec is None


def cuts_width(config: MemoryConfig) -> bool:
    return config.memory_layout in (WIDTH, BLOCK)


def tile_aligned(shards: ShardSpec) -> bool:
    return shards.shape[0] % TILE_SIZE == 0 and shards.shape[1] % TILE_SIZE == 0
