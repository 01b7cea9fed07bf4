"""Loops that run the sorting networks over rows of int64 with a key in the upper half and an index in the lower.

Only keys are compared, so the network determines the order of equal ones. `sorting_network` defines the networks.
"""

from __future__ import annotations

import numpy as np
from numba import njit

BLOCK = 64
TILE = 32
MAX, MIN = 0, 1

# Range of keys that packing does not change; see `flush`.
LEAST_NORMAL, INFINITY = 0x00800000, 0x7F800000


@njit(cache=True, nogil=True)
def _step(row, first, second, kind):
    """One compare-and-swap."""
    a, b = row[first], row[second]
    exchange = ((a >> 32) < (b >> 32)) == (kind == 0)
    row[first] = b if exchange else a
    row[second] = a if exchange else b


@njit(cache=True, nogil=True)
def run(row, steps, places, scratch):
    """Run a network over 64 values, then permute them as the network's stores do."""
    scratch[:] = row
    for number in range(steps.shape[0]):
        _step(scratch, steps[number, 0], steps[number, 1], steps[number, 2])
    for place in range(BLOCK):
        row[place] = scratch[places[place]]


@njit(cache=True, nogil=True)
def flush(row):
    """Pack 16-bit floats: NaN becomes infinity, denormals and -0 become 0."""
    for place in range(row.size):
        key = min(max(row[place] >> 32, ~INFINITY), INFINITY)
        key = 0 if ~LEAST_NORMAL < key < LEAST_NORMAL else key
        row[place] = (key << 32) | (row[place] & 0xFFFFFFFF)


@njit(cache=True, nogil=True)
def sort_rows(rows, descending, flushes, networks):
    """Sort all rows by merging blocks of two tiles; their length is a power of two, at least 64."""
    scratch = np.empty(BLOCK, np.int64)
    for number in range(rows.shape[0]):
        _sort_row(rows[number], descending, flushes, networks, scratch)


@njit(cache=True, nogil=True)
def _sort_row(row, descending, flushes, networks, scratch):
    tiles = row.size // TILE
    for start in range(0, row.size, BLOCK):
        steps, places = networks[MAX if ((start // BLOCK) % 2 == 0) == descending else MIN]
        run(row[start : start + BLOCK], steps, places, scratch)
    if flushes:
        flush(row)
    stage = 2
    while (1 << stage) <= tiles:
        for sub in range(stage, 0, -1):
            distance = 1 << (sub - 1)
            for tile in range(tiles):
                if tile & distance:
                    continue
                ascending = (((tile >> stage) & 1) == 0) != descending
                left, right = tile * TILE, (tile + distance) * TILE
                if sub == 1:
                    steps, places = networks[MIN if ascending else MAX]
                    run(row[left : left + BLOCK], steps, places, scratch)
                else:
                    for place in range(TILE):
                        # The larger value goes left, then both are swapped if the run ascends: equal values swap.
                        _step(row, left + place, right + place, 1 if ascending else 0)
        stage += 1


@njit(cache=True, nogil=True)
def best_of_rows(rows, steps, places, best):
    """The best values of every row, sorted, by inserting one tile after another; `best` has whole tiles."""
    tiles_kept = best.shape[1] // TILE
    scratch, pair = np.empty(BLOCK, np.int64), np.empty(BLOCK, np.int64)
    kept = np.empty(TILE * (tiles_kept + 1), np.int64)
    for number in range(rows.shape[0]):
        row = rows[number]
        pair[:] = row[:BLOCK]
        run(pair, steps, places, scratch)
        kept[:BLOCK] = pair
        saved = min(2, tiles_kept)
        for start in range(BLOCK, row.size, TILE):
            pair[TILE:] = row[start : start + TILE]
            for level in range(tiles_kept):
                at = level * TILE
                pair[:TILE] = kept[at : at + TILE]
                run(pair, steps, places, scratch)
                kept[at : at + TILE] = pair[:TILE]
                if level >= saved - 1 and saved < tiles_kept:
                    kept[at + TILE : at + BLOCK] = pair[TILE:]
                    saved += 1
                    break
        best[number] = kept[: TILE * tiles_kept]


@njit(cache=True, nogil=True)
def _merge_runs(row, k, level, runs, largest, order, networks, pair, scratch):
    """One level of the tournament among runs of k: the better half moves left and is sorted again.

    Runs are 2 ^ level runs apart. Returns the number of remaining runs.
    """
    tiles = k // TILE
    for number in range(0, runs, 2):
        left = (number << level) * k
        right = left + (k << level)
        if right >= row.size:
            break
        for place in range(k):
            if largest:
                _step(row, left + place, right + place, 0)
            else:
                _step(row, right + place, left + place, 0)
    runs //= 2
    wanted = 1 if runs == 1 and tiles == 1 else 2
    chosen, count = np.empty(2, np.int64), 0
    for number in range(runs):
        for tile in range(tiles):
            chosen[count] = (number << (level + 1)) * k + tile * TILE
            count += 1
            if count < wanted:
                continue
            for half in range(count):
                pair[half * TILE : half * TILE + TILE] = row[chosen[half] : chosen[half] + TILE]
            steps, places = networks[order]
            run(pair, steps, places, scratch)
            for half in range(count):
                row[chosen[half] : chosen[half] + TILE] = pair[half * TILE : half * TILE + TILE]
            count = 0
            if k == BLOCK:
                order = 1 - order
    return runs


@njit(cache=True, nogil=True)
def best_of_long_rows(rows, k, split, largest, flushes, sorters, mergers, best):
    """The k best of every row, 32 or 64: each core selects from `split` columns, one core from their results."""
    cores = rows.shape[1] // split
    first = MAX if largest else MIN
    scratch, pair, selected = np.empty(BLOCK, np.int64), np.zeros(BLOCK, np.int64), np.empty(cores * k, np.int64)
    for number in range(rows.shape[0]):
        for core in range(cores):
            part = rows[number, core * split : (core + 1) * split]
            order = first
            for start in range(0, split, BLOCK):
                steps, places = sorters[order]
                run(part[start : start + BLOCK], steps, places, scratch)
                if k == BLOCK:
                    order = 1 - order
            if flushes:
                flush(part)
            runs, level, order = split // k, 0, first if core % 2 == 0 else 1 - first
            while (TILE << level) < split:
                runs = _merge_runs(part, k, level, runs, largest, order, mergers, pair, scratch)
                level += 1
            selected[core * k : (core + 1) * k] = part[:k]
        runs, level = cores, 0
        while (TILE << level) < cores * k:
            runs = _merge_runs(selected, k, level, runs, largest, first, mergers, pair, scratch)
            level += 1
        best[number] = selected[:k]
