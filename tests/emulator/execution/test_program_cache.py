"""Entries of the program cache, as ttnn 0.81.1 counts them on a mock card."""

from __future__ import annotations

import itertools

import pytest
import torch

import ttnn_emulator as ttnn
from ttnn_emulator.hardware.program_cache import MOST_SEEDED


def tile(device, *shape: int, dtype=ttnn.bfloat16, layout=ttnn.TILE_LAYOUT) -> ttnn.Tensor:
    return ttnn.from_torch(torch.ones(shape), dtype=dtype, layout=layout, device=device)


A, B = (32, 64), (128, 128)
ROWS = {
    "shapes": ([A, B], [lambda a, b: ttnn.add(a, a), lambda a, b: ttnn.add(b, b)], [1, 0]),
    "numbers": (
        [A],
        [lambda a: ttnn.add(a, 1.0), lambda a: ttnn.add(a, 2.0), lambda a: ttnn.multiply(a, 2.0)],
        [1, 0, 1],
    ),
    "in place": (
        [A, B],
        [lambda a, b: ttnn.add(a, 1.0), lambda a, b: ttnn.add_(a, 1.0), lambda a, b: ttnn.add_(b, 2.0)],
        [1, 0, 0],
    ),
    "broadcast": ([A, (1, 64)], [lambda a, b: ttnn.add(a, a), lambda a, b: ttnn.add(a, b)], [1, 1]),
    "memory": ([A], [lambda a: ttnn.add(a, a), lambda a: ttnn.add(a, a, memory_config=ttnn.L1_MEMORY_CONFIG)], [1, 1]),
    "unary": ([A, B], [lambda a, b: ttnn.relu(a), lambda a, b: ttnn.relu(b), lambda a, b: ttnn.exp(a)], [1, 0, 1]),
    "parameters": ([A], [lambda a: ttnn.leaky_relu(a, 0.1), lambda a: ttnn.leaky_relu(a, 0.2)], [1, 1]),
    "cores": (
        [A],
        [
            lambda a, end=end: ttnn.add(a, a, sub_core_grids=ttnn.CoreRangeSet([ttnn.CoreRange((0, 0), end)]))
            for end in ((1, 1), (2, 2))
        ],
        [1, 1],
    ),
    "where": ([A], [lambda a: ttnn.where(a, 1.0, a), lambda a: ttnn.where(a, 2.0, a)], [1, 0]),
    "addcmul": ([A], [lambda a: ttnn.addcmul(a, a, a, value=1.0), lambda a: ttnn.addcmul(a, a, a, value=2.0)], [1, 0]),
    "dropout": (
        [A],
        [lambda a, s=s: ttnn.experimental.dropout(a, 0.1, 1.0, seed=s) for s in (1, 2)],
        [1, 0],
    ),
    "random numbers": (
        [A],
        [
            lambda a, s=s, high=high: ttnn.rand([64, 64], device=a.device(), dtype=ttnn.float32, seed=s, high=high)
            for s, high in ((3, 1.0), (4, 1.0), (4, 2.0))
        ],
        [1, 0, 0],
    ),
    "views": (
        [A],
        [lambda a: ttnn.reshape(a, (1, 32, 64)), lambda a: ttnn.unsqueeze(a, 0), lambda a: a.cpu()],
        [0, 0, 0],
    ),
    "sum": (
        [(1, 1, 32, 64)],
        [lambda a: ttnn.sum(a, dim=-1, keepdim=True), lambda a: ttnn.sum(a, dim=-2, keepdim=True)],
        [1, 1],
    ),
    "sorting": ([(1, 1, 32, 64)], [lambda a: ttnn.topk(a, 32), lambda a: ttnn.sort(a)], [1, 1]),
}


@pytest.mark.parametrize("name", ROWS)
def test_entries(device, name: str) -> None:
    shapes, calls, expected = ROWS[name]
    tensors = [tile(device, *shape) for shape in shapes]
    device.clear_program_cache()
    counts = [device.num_program_cache_entries()]
    for call in calls:
        call(*tensors)
        counts.append(device.num_program_cache_entries())
    assert [after - before for before, after in itertools.pairwise(counts)] == expected


def test_tensors_filled_by_the_host_launch_no_programs(device) -> None:
    device.clear_program_cache()
    ttnn.zeros([32, 32], dtype=ttnn.bfloat16, layout=ttnn.TILE_LAYOUT, device=device)
    ttnn.full([32, 64], 3.0, dtype=ttnn.bfloat16, layout=ttnn.TILE_LAYOUT, device=device)
    ttnn.arange(0, 32, device=device)
    assert device.num_program_cache_entries() == 0


def test_a_cached_program_is_no_miss(device) -> None:
    a, b = tile(device, 32, 64), tile(device, 64, 128)
    ttnn.relu(a)
    device.set_program_cache_misses_allowed(False)
    ttnn.relu(b)
    with pytest.raises(RuntimeError, match="misses are not allowed"):
        ttnn.exp(b)


def test_the_number_of_seeded_plans_is_bounded(device) -> None:
    device.clear_program_cache()
    for seed in range(1, MOST_SEEDED + 50):
        ttnn.rand([32, 32], device=device, seed=seed)
    assert len(device.program_cache.plans) == MOST_SEEDED
