"""Distribution of work over cores: which cores, how many units on each, and the cores nearest to DRAM banks."""

from __future__ import annotations

import math
from typing import Any

from ttnn_emulator.enums import ShardOrientation, TensorMemoryLayout
from ttnn_emulator.errors import require
from ttnn_emulator.hardware.core_grid import Coordinates, CoreCoord, CoreRange, CoreRangeSet, as_core
from ttnn_emulator.hardware.device import MeshDevice

Split = tuple[int, CoreRangeSet, CoreRangeSet, CoreRangeSet, int, int]


def grid_to_cores(
    num_cores: int | CoreCoord,
    grid_size_x: int | CoreCoord = 0,
    grid_size_y: int | bool = 0,
    row_wise: bool = False,
    *,
    start: CoreCoord | None = None,
    end: CoreCoord | None = None,
) -> list[CoreCoord]:
    """The first `num_cores` cores of a grid, or all from one corner to the other; column by column unless `row_wise`.

    >>> grid_to_cores(3, 2, 2, row_wise=True)
    [0-0, 1-0, 0-1]
    """
    if isinstance(num_cores, CoreCoord):
        start, end, row_wise = num_cores, grid_size_x, row_wise or bool(grid_size_y)  # type: ignore[assignment]
    if start is not None and end is not None:
        return CoreRange(start, end).cores(row_wise)
    assert isinstance(num_cores, int) and isinstance(grid_size_x, int)
    if row_wise:
        return [CoreCoord(number % grid_size_x, number // grid_size_x) for number in range(num_cores)]
    return [CoreCoord(number // grid_size_y, number % grid_size_y) for number in range(num_cores)]


def _in_order(grid: CoreCoord | CoreRangeSet, row_wise: bool) -> list[CoreCoord]:
    if isinstance(grid, CoreCoord):
        return grid_to_cores(grid.x * grid.y, grid.x, grid.y, row_wise)
    return grid.cores(row_wise)


def _as_ranges(cores: list[CoreCoord], row_wise: bool) -> CoreRangeSet:
    """Consecutive cores merged into ranges: runs first, then equal adjacent runs."""
    lines: list[tuple[CoreCoord, CoreCoord]] = []
    for core in cores:
        if lines:
            first, last = lines[-1]
            step = CoreCoord(last.x + 1, last.y) if row_wise else CoreCoord(last.x, last.y + 1)
            if core == step:
                lines[-1] = (first, core)
                continue
        lines.append((core, core))
    blocks: list[tuple[CoreCoord, CoreCoord]] = []
    for first, last in lines:
        if blocks:
            begin, end = blocks[-1]
            beside = first.y == end.y + 1 if row_wise else first.x == end.x + 1
            equal = (begin.x, end.x) == (first.x, last.x) if row_wise else (begin.y, end.y) == (first.y, last.y)
            if beside and equal:
                blocks[-1] = (begin, last)
                continue
        blocks.append((first, last))
    return CoreRangeSet([CoreRange(first, last) for first, last in blocks])


# tt-metal v0.77.0: tt_metal/common/work_split.cpp, split_work_to_cores
def split_work_to_cores(
    grid: CoreCoord | CoreRangeSet | None = None,
    units_to_divide: int = 0,
    row_wise: bool = False,
    *,
    grid_size: CoreCoord | None = None,
    core_grid: CoreRangeSet | None = None,
) -> Split:
    """The number of cores, all cores, the two groups with more and fewer units, and the units per core of each group.

    >>> split_work_to_cores(CoreCoord(2, 2), 6)
    (4, {[0-0 - 1-1]}, {[0-0 - 0-1]}, {[1-0 - 1-1]}, 2, 1)
    """
    cores_or_grid = next(each for each in (grid, grid_size, core_grid) if each is not None)
    cores = _in_order(cores_or_grid, row_wise)
    count = min(len(cores), units_to_divide)
    if not count:
        nothing = CoreRangeSet([])
        return 0, nothing, nothing, nothing, 0, 0
    least, more = divmod(units_to_divide, count)
    used = cores[:count]
    everyone = _as_ranges(used, row_wise)
    if not more:
        return count, everyone, everyone, CoreRangeSet([]), least, 0
    busy, idle = _as_ranges(used[:more], row_wise), _as_ranges(used[more:], row_wise)
    return count, everyone, busy, idle, least + 1, least


# tt-metal v0.77.0: tt_metal/common/work_split.cpp, num_cores_to_corerangeset_in_subcoregrids
def num_cores_to_corerangeset_in_subcoregrids(
    start_core: Coordinates, target_num_cores: int, sub_core_grids: CoreRangeSet, row_wise: bool = False
) -> CoreRangeSet:
    """`target_num_cores` cores of a set, starting at `start_core`."""
    start_core = as_core(start_core)
    cores = sub_core_grids.cores(row_wise)
    require(start_core in cores, f"core {start_core} is not one of {sub_core_grids}")
    chosen = cores[cores.index(start_core) :][:target_num_cores]
    require(
        len(chosen) == target_num_cores and target_num_cores > 0,
        f"{sub_core_grids} has {len(chosen)} cores from {start_core} on, fewer than {target_num_cores}",
    )
    return _as_ranges(chosen, row_wise)


def get_optimal_dram_bank_to_logical_worker_assignment(device: MeshDevice, noc: Any = None) -> list[CoreCoord]:
    """Per DRAM bank, the core with the fewest NoC hops to it."""
    return device.get_optimal_dram_bank_to_logical_worker_assignment(noc)


def _shards_of(tensor: Any, config: Any) -> int:
    """The number of shards of a tensor; further cores hold none."""
    if config.nd_shard_spec is not None and config.created_with_nd_shard_spec:
        shape, parts = list(tensor.padded_shape), list(config.nd_shard_spec.shard_shape)
        shape = [math.prod(shape[: len(shape) - len(parts) + 1]), *shape[len(shape) - len(parts) + 1 :]]
    else:
        shape, parts = list(tensor._spec.physical_shape), list(config.shard_spec.shape)
    return math.prod(-(-size // part) for size, part in zip(shape, parts))


def _grid_of(tensor: Any, config: Any) -> CoreRangeSet:
    """The cores that can hold shards; for block sharding, the rectangle that the blocks fill."""
    shards = config.shard_spec
    if config.memory_layout is not TensorMemoryLayout.BLOCK_SHARDED or shards is None:
        return (shards or config.nd_shard_spec).grid
    down, across = (-(-size // part) for size, part in zip(tensor._spec.physical_shape, shards.shape))
    if shards.orientation is ShardOrientation.COL_MAJOR:
        down, across = across, down
    start, end = shards.grid.bounding_box().start, shards.grid.bounding_box().end
    return CoreRangeSet([CoreRange(start, CoreCoord(min(end.x, start.x + across - 1), min(end.y, start.y + down - 1)))])


# tt-metal v0.77.0: ttnn/core/tensor/tensor_utils.cpp, get_optimal_worker_cores_for_sharded_tensor
def get_optimal_worker_cores_for_sharded_tensor(tensor: Any, noc: Any = None) -> list[CoreCoord]:
    """The cores that hold a tensor's shards, in shard order; for DRAM shards, the cores nearest to their banks."""
    require(
        tensor._spec.on_device,
        "Tensor must be on device to compute optimal worker cores",
    )
    config = tensor.memory_config()
    shards = config.shard_spec or config.nd_shard_spec
    require(shards is not None, "Tensor must be sharded to compute optimal worker cores")
    cores = _grid_of(tensor, config).cores(shards.orientation is ShardOrientation.ROW_MAJOR)
    cores = cores[: _shards_of(tensor, config)]
    if config.is_l1:
        return cores
    banks = get_optimal_dram_bank_to_logical_worker_assignment(tensor.device(), noc)
    return [banks[core.x] for core in cores]
