"""Key-value caches: tokens and sequences written into caches, contiguous or in pages."""

from __future__ import annotations

from collections.abc import Sequence

from ttnn_emulator.tensors.shapes import TILE_SIZE, div_up
from ttnn_emulator.tensors.spec import Spec
from ttnn_emulator.timing.calls import Call, prices
from ttnn_emulator.timing.families.data_movement.tilize import tilize_ns
from ttnn_emulator.timing.families.data_movement.untilize import untilize_ns
from ttnn_emulator.timing.launches import Launch
from ttnn_emulator.timing.movement import (
    NO_TRAFFIC,
    USERS_PER_TILE,
    Stages,
    kernels_of,
    moved,
    planned_run,
    read_traffic,
    reads,
    shard_cores,
    tile_size,
    tiles_of,
    write_traffic,
    writes,
)
from ttnn_emulator.timing.programs import ProgramRun, times

FAMILY = "key-value cache"
UPDATE, PAGED, PAGED_FILL = "UpdateKVCacheOperation", "PagedUpdateCacheDeviceOperation", "PagedFillCacheDeviceOperation"
FUSED = "PagedFusedUpdateCacheDeviceOperation"
# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/kv_cache/device/update_cache_multi_core_program_factory.cpp, granularity
USERS_AT_A_TIME = 2
# Bytes of a row in the untilized buffers, per tile.
ROW_BYTES = 2 * TILE_SIZE


def _rewritten_ns(run: ProgramRun, cache: Spec, wide: int) -> tuple[float, float, float]:
    """Read, compute and write of one row of tiles of a cache, one row of which is replaced."""
    kernels, size = kernels_of(run), tile_size(cache)
    compute = untilize_ns(run, cache, wide) + tilize_ns(run, cache, cache, wide)
    compute += kernels.local.ns(ROW_BYTES * wide)  # the compute kernel waits for the writer's copy
    write = writes(kernels, cache).stream_ns(size, wide) + kernels.flush_ns
    return reads(kernels, cache).stream_ns(size, wide), compute, write


# -- one token per user -----------------------------------------------------------------------------------------------


def update_launch(run: ProgramRun, cache: Spec, source: Spec) -> Launch:
    """A token of every user: heads are divided among cores, users follow each other in pairs."""
    kernels = kernels_of(run)
    wide = div_up(cache.padded_shape[-1], TILE_SIZE)
    heads = max(source.padded_shape[1] * div_up(source.padded_shape[-2], USERS_PER_TILE), 1)
    cores = shard_cores(source) or min(heads, run.board.cores)
    users = min(USERS_PER_TILE, cache.padded_shape[0])
    together = min(USERS_AT_A_TIME, users)
    read, compute, write = _rewritten_ns(run, cache, wide)
    wait = reads(kernels, cache).wait_ns(tile_size(cache))
    steps = div_up(heads, cores) * div_up(users, together)
    stages = Stages(steps, together * read + wait, together * compute, together * write)
    start = div_up(heads, cores) * untilize_ns(run, source, wide)
    if not source.is_sharded:
        start += reads(kernels, source).ns(tile_size(source), wide)
    start += writes(kernels, cache).wait_ns(tile_size(cache))
    tiles = heads * users * wide
    size = tile_size(cache)
    traffic = read_traffic(cache, tiles, size) + write_traffic(cache, tiles, size)
    return moved(run, FAMILY, cores, stages, traffic, start)


def fill_launch(run: ProgramRun, cache: Spec, source: Spec) -> Launch:
    """A sequence: rows of tiles are divided among cores; every tile is read, written and waited for by itself."""
    kernels, size = kernels_of(run), tile_size(source)
    wide = div_up(source.padded_shape[-1], TILE_SIZE)
    tiles = tiles_of(source)
    rows = max(tiles // wide, 1)
    cores = shard_cores(source) or run.cores or min(rows, run.board.cores)
    read = 0.0 if source.is_sharded else reads(kernels, source).ns(size)
    write = writes(kernels, cache).ns(size)
    traffic = NO_TRAFFIC if source.is_sharded else read_traffic(source, tiles, size)
    traffic += write_traffic(cache, tiles, size)
    return moved(run, FAMILY, cores, Stages(div_up(rows, cores) * wide, read, 0.0, write), traffic)


@times(UPDATE, "UpdateCache", family=FAMILY)
def cache_row(run: ProgramRun) -> Launch:
    cache, source = run.inputs[:2]
    if "FILL" in run.attributes:
        return fill_launch(run, cache, source)
    return update_launch(run, cache, source)


@prices("ttnn.update_cache", "ttnn.kv_cache.update_cache_for_token_")
def update(call: Call) -> Sequence[Launch]:
    cache, source = call.tensors[:2]
    return [update_launch(planned_run(call, UPDATE, call.tensors), cache, source)]


@prices("ttnn.fill_cache", "ttnn.kv_cache.fill_cache_for_user_")
def fill(call: Call) -> Sequence[Launch]:
    cache, source = call.tensors[:2]
    return [fill_launch(planned_run(call, UPDATE, call.tensors), cache, source)]


# -- pages ------------------------------------------------------------------------------------------------------------


def paged_launch(run: ProgramRun, cache: Spec, source: Spec, indices: int) -> Launch:
    """A token of every user, one core per user, which holds all heads of the token.

    indices  tensors of positions and pages that are read first
    """
    kernels = kernels_of(run)
    wide = div_up(cache.padded_shape[-1], TILE_SIZE)
    heads = cache.padded_shape[1] if len(cache.padded_shape) > 3 else 1
    read, compute, write = _rewritten_ns(run, cache, wide)
    size = tile_size(cache)
    stages = Stages(heads, read + reads(kernels, cache).wait_ns(size), compute, write)
    start = indices * kernels.dram_read.ns(ROW_BYTES) + untilize_ns(run, source, wide)
    start += writes(kernels, cache).wait_ns(size)
    cores = shard_cores(source) or 1
    tiles = cores * heads * wide
    traffic = read_traffic(cache, tiles, size) + write_traffic(cache, tiles, size)
    return moved(run, FAMILY, cores, stages, traffic, start)


@times(PAGED, "PagedUpdateCache", family=FAMILY)
def paged_row(run: ProgramRun) -> Launch:
    cache, source = run.inputs[:2]
    if "FILL" in run.attributes:
        return fill_launch(run, cache, source)
    return paged_launch(run, cache, source, len(run.inputs) - 2)


INDEX_NAMES = frozenset({"update_idxs_tensor", "page_table", "indices", "batch_idx_tensor"})


def _indices(call: Call) -> int:
    return sum(name in INDEX_NAMES for name, _ in call.inputs)


@prices("ttnn.experimental.paged_update_cache")
def paged(call: Call) -> Sequence[Launch]:
    cache, source = call.tensors[:2]
    return [paged_launch(planned_run(call, PAGED, call.tensors), cache, source, _indices(call))]


@prices("ttnn.experimental.paged_fused_update_cache", "ttnn.experimental.indexed_fused_update_cache")
def paged_fused(call: Call) -> Sequence[Launch]:
    """Keys and values at the same time, on different cores."""
    cache, source = call.tensors[:2]
    launch = paged_launch(planned_run(call, FUSED, call.tensors), cache, source, _indices(call))
    return [launch]


@prices("ttnn.experimental.paged_fill_cache", "ttnn.experimental.deepseek_prefill.update_padded_kv_cache")
def paged_fill(call: Call) -> Sequence[Launch]:
    """Pages by a table, or rows behind those that are filled; tensors in rows are moved in parts of a tile's size."""
    cache, source = call.tensors[:2]
    return [fill_launch(planned_run(call, PAGED_FILL, call.tensors), cache, source)]
