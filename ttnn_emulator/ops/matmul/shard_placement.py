"""Checks of the cores that hold the shards of a matmul's operands and output."""

from __future__ import annotations

from ttnn_emulator.enums import (
    BufferType,
    ShardOrientation,
)
from ttnn_emulator.errors import NotEmulated, require
from ttnn_emulator.hardware.boards import Board, near_dram
from ttnn_emulator.hardware.core_grid import CoreCoord, CoreRange
from ttnn_emulator.ops.matmul.operands import Operands
from ttnn_emulator.tensors.memory_config import MemoryConfig, ShardSpec
from ttnn_emulator.tensors.shapes import Tile
from ttnn_emulator.tensors.spec import Spec


def _lies_within(config: MemoryConfig, grid: tuple[int, int]) -> bool:
    """Whether the shards of an L1 tensor are inside a grid that starts at the origin."""
    if not config.is_sharded() or config.buffer_type is BufferType.DRAM or config.shard_spec is None:
        return True
    return CoreRange(CoreCoord(0, 0), CoreCoord(grid[0] - 1, grid[1] - 1)).contains(
        config.shard_spec.grid.bounding_box()
    )


def require_within(config: MemoryConfig, grid: tuple[int, int], what: str) -> None:
    require(_lies_within(config, grid), f"{what} in {config.brief()} is not on {grid[0]} x {grid[1]} cores")


def require_grids_on_device(of: Operands, device_grid: tuple[int, int]) -> None:
    require_within(of.a.memory_config, device_grid, "the first operand")
    require_within(of.b.memory_config, device_grid, "the second operand")


def shard_of(spec: Spec) -> ShardSpec:
    require(spec.shard_spec is not None, f"{spec.brief()} has no shard spec")
    assert spec.shard_spec is not None
    return spec.shard_spec


def shard_tiles(spec: Spec, tile: Tile) -> tuple[int, int]:
    height, width = shard_of(spec).shape
    return height // tile.height, width // tile.width


def require_alike(a: Spec, output: MemoryConfig) -> None:
    ours = a.memory_config
    require(
        ours.buffer_type is output.buffer_type and ours.memory_layout is output.memory_layout,
        f"the output in {output.brief()} must be placed as the first operand in {ours.brief()}",
    )


def require_row_major(spec: Spec) -> None:
    orientation = shard_of(spec).orientation
    require(
        orientation is ShardOrientation.ROW_MAJOR, f"the first operand's shards must be ROW_MAJOR, not {orientation}"
    )


def require_shards_near_banks(board: Board, a: MemoryConfig, output: MemoryConfig) -> None:
    """With batched weights in DRAM, the shards must be on the core nearest to each bank, in bank order."""
    workers = near_dram(board.name, board.dispatch)
    if workers is None:
        raise NotEmulated(f"which cores of {board.name} are near which bank of DRAM is not known")
    for name, config in (("input", a), ("output", output)):
        assert config.shard_spec is not None
        cores = [[core.x, core.y] for core in config.shard_spec.grid.cores()]
        require(
            cores == workers,
            f"the shards of the {name} must be on the cores nearest to the banks of DRAM, in their order: {workers}",
        )
