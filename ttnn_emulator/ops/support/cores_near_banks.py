"""Shared helpers of operations that run on the cores next to the DRAM banks, on their own shards."""

from __future__ import annotations

from ttnn_emulator.enums import ShardOrientation
from ttnn_emulator.execution.call_context import current_board
from ttnn_emulator.hardware.core_grid import CoreCoord
from ttnn_emulator.hardware.core_numbering import near_dram
from ttnn_emulator.tensors.memory_config import ShardSpec
from ttnn_emulator.tensors.spec import Spec


def near_banks() -> list[CoreCoord]:
    """The core next to each bank, by bank; empty if unknown for the board."""
    board = current_board()
    return [CoreCoord(x, y) for x, y in near_dram(board.name, board.dispatch) or ()]


def shards_of(spec: Spec) -> ShardSpec:
    shards = spec.memory_config.shard_spec
    assert shards is not None
    return shards


def cores_of(spec: Spec) -> list[CoreCoord]:
    """The cores that hold something of a tensor, by shard."""
    shards = shards_of(spec)
    height, width = (size // step for size, step in zip(spec.physical_shape, shards.shape))
    return shards.grid.cores(row_wise=shards.orientation is ShardOrientation.ROW_MAJOR)[: height * width]


def shard_numbers(spec: Spec, cores: list[CoreCoord]) -> list[int]:
    """The shard on each of the cores."""
    order = cores_of(spec)
    return [order.index(core) for core in cores]
