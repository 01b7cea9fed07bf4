"""`ttnn.bcast` along the height of a sharded tensor: the core of a row determines the batch of b."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import ttnn_emulator as ttnn

ROWS, COLUMNS = ttnn.ShardOrientation.ROW_MAJOR, ttnn.ShardOrientation.COL_MAJOR
BLOCK, WIDTH = ttnn.TensorMemoryLayout.BLOCK_SHARDED, ttnn.TensorMemoryLayout.WIDTH_SHARDED


def sharded(values: torch.Tensor, device: Any, layout: Any, shard: list[int], grid: tuple[int, int], order: Any = ROWS):
    cores = ttnn.CoreRangeSet([ttnn.CoreRange(ttnn.CoreCoord(0, 0), ttnn.CoreCoord(grid[0] - 1, grid[1] - 1))])
    config = ttnn.MemoryConfig(layout, ttnn.BufferType.L1, ttnn.ShardSpec(cores, shard, order))
    tile = {"dtype": ttnn.bfloat16, "layout": ttnn.TILE_LAYOUT, "device": device}
    return ttnn.from_torch(values, memory_config=config, **tile)


def along_height(a: Any, b: torch.Tensor, device: Any) -> torch.Tensor:
    b = ttnn.from_torch(b, dtype=ttnn.bfloat16, layout=ttnn.TILE_LAYOUT, device=device)
    result = ttnn.bcast(a, b, ttnn.BcastOpMath.ADD, ttnn.BcastOpDim.H, memory_config=a.memory_config())
    return ttnn.to_torch(result).float()


@pytest.mark.parametrize(
    "shape, layout, shard, grid, order",
    [
        ((1, 1, 256, 64), BLOCK, [64, 32], (2, 4), ROWS),
        ((1, 1, 256, 64), BLOCK, [64, 32], (4, 2), COLUMNS),
        ((1, 1, 256, 64), WIDTH, [256, 32], (2, 1), ROWS),
        ((2, 1, 128, 64), BLOCK, [64, 32], (2, 4), ROWS),
        ((1, 2, 128, 64), WIDTH, [256, 32], (2, 1), ROWS),
        ((2, 1, 40, 64), BLOCK, [64, 32], (2, 2), ROWS),
    ],
)
def test_each_half_of_the_rows_uses_its_batch(device, shape, layout, shard, grid, order) -> None:
    a = torch.randint(-8, 8, shape).float()
    b = torch.tensor([100.0, 200.0]).reshape(2, 1, 1, 1) + torch.arange(64) % 4
    halves = a.reshape(2, -1, 64) + b.reshape(2, 1, 64)
    result = along_height(sharded(a, device, layout, shard, grid, order), b, device)
    assert torch.equal(result, halves.reshape(shape).bfloat16().float())


def test_a_single_batch_applies_to_all_rows(device) -> None:
    a, b = torch.zeros(2, 1, 64, 64), torch.arange(64).float().reshape(1, 1, 1, 64)
    assert torch.equal(along_height(sharded(a, device, BLOCK, [32, 32], (2, 4)), b, device), a + b)


def test_cores_that_do_not_divide_into_batches_are_a_fault(device) -> None:
    a, b = torch.zeros(1, 1, 256, 64), torch.zeros(3, 1, 1, 64)
    with pytest.raises(ttnn.ChipFault, match="do not divide into 3 batches"):
        along_height(sharded(a, device, BLOCK, [64, 32], (2, 4)), b, device)


def test_two_batches_on_one_row_of_cores_are_a_fault(device) -> None:
    a, b = torch.zeros(1, 1, 256, 64), torch.zeros(2, 1, 1, 64)
    with pytest.raises(ttnn.InvalidArgument, match="do not divide into 2 batches"):
        along_height(sharded(a, device, BLOCK, [256, 32], (2, 1)), b, device)
