"""The best 32 values of a few tiles, as computed by kernels that sort only in the destination register.

Two tiles are sorted in opposite directions and merged; every further tile replaces the worse half. The remaining tile
is sorted at the end (topk_local_sort, topk_merge and topk_rebuild with k = 32).
"""

from __future__ import annotations

import numpy as np
import torch
from numba import njit

from ttnn_emulator.enums import DataType
from ttnn_emulator.numerics.kernels.sorting import BLOCK, TILE, _step, run
from ttnn_emulator.numerics.programs.reduction.ordering import _flushed, _packed, _unpacked, from_keys, keys
from ttnn_emulator.numerics.units.sorting_network import MAX, merging, sorting

RUNS_OF_32, RUNS_OF_8 = 4, 2  # last phase of the network


@njit(cache=True, nogil=True)
def _select(rows, sort_steps, sort_places, merge_steps, merge_places, best):
    pair, scratch = np.empty(BLOCK, np.int64), np.empty(BLOCK, np.int64)
    for number in range(rows.shape[0]):
        row = rows[number]
        pair[:TILE] = row[:TILE]
        for start in range(TILE, row.size, TILE):
            pair[TILE:] = row[start : start + TILE]
            run(pair, sort_steps, sort_places, scratch)
            for place in range(TILE):
                _step(pair, place, TILE + place, 0)
        run(pair, merge_steps, merge_places, scratch)
        best[number] = pair[:TILE]


@njit(cache=True, nogil=True)
def _sort(rows, steps, places):
    pair, scratch = np.empty(BLOCK, np.int64), np.empty(BLOCK, np.int64)
    for number in range(rows.shape[0]):
        pair[:] = 0
        pair[: rows.shape[1]] = rows[number]
        run(pair, steps, places, scratch)
        rows[number] = pair[: rows.shape[1]]


def best_tile(values: torch.Tensor, indices: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The best 32 of every row of [rows, tiles × 32] bfloat16, largest first, and their indices."""
    packed = _packed(_flushed(keys(values), DataType.BFLOAT16), indices)
    best = torch.empty(values.shape[0], TILE, dtype=torch.int64)
    networks = (*sorting(RUNS_OF_32)[MAX], *merging(RUNS_OF_32)[MAX])
    _select(packed.contiguous().numpy(), *networks, best.numpy())
    order, places = _unpacked(best)
    return from_keys(order, DataType.BFLOAT16), places


def order_of_eight(values: torch.Tensor) -> torch.Tensor:
    """The indices that sort the values of [rows, 8] in descending order."""
    packed = _packed(_flushed(keys(values), DataType.BFLOAT16), torch.arange(values.shape[-1]).expand(values.shape))
    packed = packed.contiguous()
    _sort(packed.numpy(), *sorting(RUNS_OF_8)[MAX])
    return _unpacked(packed)[1]
