"""The output spec of a matmul program."""

from __future__ import annotations

from ttnn_emulator.enums import DataType, Layout, ShardOrientation
from ttnn_emulator.errors import require
from ttnn_emulator.hardware.core_grid import CoreCoord, CoreRange, CoreRangeSet, num_cores_to_corerangeset
from ttnn_emulator.ops.matmul.operands import Operands
from ttnn_emulator.ops.matmul.program_configs import Kind, Program
from ttnn_emulator.ops.matmul.selection_inputs import BLOCK, HEIGHT, WIDTH
from ttnn_emulator.tensors.memory_config import MemoryConfig, ShardSpec
from ttnn_emulator.tensors.shapes import Tile, div_up
from ttnn_emulator.tensors.spec import Spec


def output_spec(
    of: Operands,
    program: Program,
    shape: tuple[int, ...],
    dtype: DataType,
    config: MemoryConfig,
    tile: Tile,
    device_grid: tuple[int, int],
) -> Spec:
    """The output spec. A sharded output gets the shards that the program writes, not the requested ones."""
    placed = config
    if config.is_sharded():
        require(program.kind is not Kind.MULTI_CORE, "the plain program writes no sharded output")
        ratio = tile.width // of.in1_tile.width
        require(
            program.per_core_N % ratio == 0,
            f"per_core_N {program.per_core_N} must be a multiple of {ratio}, the output tile's width over in1's",
        )
        placed = _placed(of, program, config, device_grid)
        require(
            placed.memory_layout is config.memory_layout or _is_line(config, placed),
            f"the program writes {placed.memory_layout}, not {config.memory_layout}",
        )
    layout = Layout.ROW_MAJOR if program.untilize_out and config.is_sharded() else Layout.TILE
    return Spec.of(shape, dtype, layout, placed, tile=tile if layout is Layout.TILE and tile != Tile() else None)


def _is_line(asked: MemoryConfig, placed: MemoryConfig) -> bool:
    """Block shards on one row or column of cores are equivalent to width or height shards."""
    if asked.memory_layout is not BLOCK or asked.shard_spec is None:
        return False
    box = asked.shard_spec.grid.bounding_box().grid_size()
    return (box.x == 1 and placed.memory_layout is HEIGHT) or (box.y == 1 and placed.memory_layout is WIDTH)


def _placed(of: Operands, program: Program, config: MemoryConfig, device_grid: tuple[int, int]) -> MemoryConfig:
    if program.kind is Kind.BATCHED_DRAM_SHARDED:
        require(config.shard_spec is not None, "batched DRAM-sharded weights need the output's shard spec")
        return config
    if program.gather_in0:
        return config
    if program.kind is Kind.MCAST_1D and config.memory_layout is BLOCK and config.shard_spec is not None:
        box = config.shard_spec.grid.bounding_box().grid_size()
        if 1 in (box.x, box.y):
            return MemoryConfig(HEIGHT if box.x == 1 else WIDTH, config.buffer_type, config.shard_spec)
    grid, orientation = _SHARD_GRIDS[program.kind](of, program, config, device_grid)
    shard = (program.per_core_M * of.in0_tile.height, program.per_core_N * of.in1_tile.width)
    return MemoryConfig(config.memory_layout, config.buffer_type, ShardSpec(grid, shard, orientation))


def _blocks(of: Operands, program: Program, fused: bool) -> tuple[int, int]:
    """Output blocks across and down."""
    return div_up(of.columns, program.per_core_N), div_up(of.rows(fused), program.per_core_M)


def _line(
    of: Operands, program: Program, config: MemoryConfig, device_grid: tuple[int, int]
) -> tuple[CoreRangeSet, ShardOrientation]:
    across, down = _blocks(of, program, program.fuse_batch)
    cores = num_cores_to_corerangeset(across * down, CoreCoord(*program.worker_grid), True)
    return cores, ShardOrientation.ROW_MAJOR


def _rectangle(
    of: Operands, program: Program, config: MemoryConfig, device_grid: tuple[int, int]
) -> tuple[CoreRangeSet, ShardOrientation]:
    across, down = _blocks(of, program, True)
    x, y = (down, across) if program.transpose_mcast else (across, down)
    start = program.workers.start
    box = CoreRange(start, CoreCoord(start.x + x - 1, start.y + y - 1))
    orientation = ShardOrientation.COL_MAJOR if program.transpose_mcast else ShardOrientation.ROW_MAJOR
    return CoreRangeSet([box]), orientation


def _as_asked(
    of: Operands, program: Program, config: MemoryConfig, device_grid: tuple[int, int]
) -> tuple[CoreRangeSet, ShardOrientation]:
    sharded = next((spec.shard_spec for spec in (of.a, of.b) if spec.shard_spec is not None), None)
    orientation = sharded.orientation if sharded is not None else ShardOrientation.COL_MAJOR
    if config.shard_spec is not None:
        return config.shard_spec.grid, orientation
    across, down = _blocks(of, program, True)
    row_wise = orientation is ShardOrientation.ROW_MAJOR
    return num_cores_to_corerangeset(across * down, CoreCoord(*program.worker_grid), row_wise), orientation


def _all_cores(
    of: Operands, program: Program, config: MemoryConfig, device_grid: tuple[int, int]
) -> tuple[CoreRangeSet, ShardOrientation]:
    assert of.a.shard_spec is not None
    width = of.a.shard_spec.shape[1] // of.in0_tile.width
    require(of.inner % width == 0, f"shards of {width} tiles do not divide the inner dimension, {of.inner} tiles")
    across, down = _blocks(of, program, True)
    cores = num_cores_to_corerangeset(across * down, CoreCoord(*device_grid), True)
    return cores, ShardOrientation.ROW_MAJOR


_SHARD_GRIDS = {
    Kind.MCAST_1D: _line,
    Kind.MCAST_2D: _rectangle,
    Kind.REUSE: _as_asked,
    Kind.DRAM_SHARDED: _all_cores,
}
