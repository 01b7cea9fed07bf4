"""The best 32 of a few tiles' columns, as kernels find them that sort in the destination register alone.

Two tiles are sorted in opposite directions and merged into the better one; every further tile takes the place of the
worse. At the end what is left is brought in order (topk_local_sort, topk_merge and topk_rebuild with k = 32).
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
    """Of [rows, tiles × 32] bfloat16 and their indices the best 32 of every row, the largest first."""
    packed = _packed(_flushed(keys(values), DataType.BFLOAT16), indices)
    best = torch.empty(values.shape[0], TILE, dtype=torch.int64)
    networks = (*sorting(RUNS_OF_32)[MAX], *merging(RUNS_OF_32)[MAX])
    _select(packed.contiguous().numpy(), *networks, best.numpy())
    order, places = _unpacked(best)
    return from_keys(order, DataType.BFLOAT16), places


def order_of_eight(values: torch.Tensor) -> torch.Tensor:
    """Where the values of [rows, 8] stand from the largest to the smallest."""
    packed = _packed(_flushed(keys(values), DataType.BFLOAT16), torch.arange(values.shape[-1]).expand(values.shape))
    packed = packed.contiguous()
    _sort(packed.numpy(), *sorting(RUNS_OF_8)[MAX])
    return _unpacked(packed)[1]
