"""Heads of shards: cores move pieces within their own L1, or fetch heads from others."""

from __future__ import annotations

from collections.abc import Sequence

from ttnn_emulator.hardware.boards import Board
from ttnn_emulator.tensors.shapes import TILE_SIZE, div_up
from ttnn_emulator.tensors.spec import Spec
from ttnn_emulator.timing.chips import CHIPS
from ttnn_emulator.timing.families.heads.interleaved import transposed_cycles
from ttnn_emulator.timing.launches import Launch
from ttnn_emulator.timing.movement import KERNELS, NO_TRAFFIC, Access, Stages, Traffic, moved, tile_size
from ttnn_emulator.timing.programs import ProgramRun

HALF_ROW = 16  # values of a row within a face


def _shard_tiles(spec: Spec) -> tuple[int, int]:
    shard = spec.shard_spec
    assert shard is not None
    return div_up(shard.shape[0], TILE_SIZE), div_up(shard.shape[1], TILE_SIZE)


def _pieces_ns(access: Access, spec: Spec, width: int) -> float:
    """A shard of heads that are moved row of tiles by row of tiles, `width` tiles at a time."""
    rows, columns = _shard_tiles(spec)
    pieces = max(rows * columns // max(width, 1), 1)
    return access.ns(width * tile_size(spec), pieces)


# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/experimental/transformer/create_qkv_heads/device/kernels/reader_create_qkv_heads_sharded.cpp,  # noqa: E501
# kernel_main: one kernel moves queries, then keys, then values
def create_launch(
    code: str,
    family: str,
    source: Spec,
    outputs: Sequence[Spec],
    board: Board,
    *,
    transposed: bool,
    key_beside: bool = False,
) -> Launch:
    """Queries, keys and values of a core's own columns.

    key_beside  the second kernel moves the keys
    """
    kernels, chip = KERNELS[board.arch], CHIPS[board.arch]
    query, key, value = outputs[:3]
    width = _shard_tiles(query)[1]
    moved_query = _pieces_ns(kernels.local, query, width)
    moved_key = _pieces_ns(kernels.local, key, 1 if transposed else width)
    moved_value = _pieces_ns(kernels.local, value, width)
    shard = source.shard_spec
    assert shard is not None
    used = shard.num_cores()
    computed = 0.0
    if transposed:
        rows, columns = _shard_tiles(key)
        computed = chip.ns(rows * columns * transposed_cycles(tile_size(key), key.dtype, board))
    if key_beside:
        # Keys are handed over in columns of tiles.
        total = max(moved_query + moved_value, max(moved_key, computed) + min(moved_key, computed) / 2)
    else:
        total = moved_query + moved_key + max(moved_value, computed)
    run = ProgramRun(code, (), (), used, board)
    return moved(run, family, used, Stages(1, total, 0.0), NO_TRAFFIC)


# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/experimental/transformer/nlp_concat_heads/device/kernels/dataflow/reader_tm_tile_layout_nlp_concat_heads_sharded.cpp,  # noqa: E501
# kernel_main: both data movement kernels have half of the heads
def concat_launch(code: str, family: str, source: Spec, board: Board) -> Launch:
    """Heads of a core put side by side."""
    kernels = KERNELS[board.arch]
    rows, width = _shard_tiles(source)
    shard = source.shard_spec
    assert shard is not None
    length = max(source.padded_shape[-2] // TILE_SIZE, 1)
    heads = max(rows // length, 1)
    half = div_up(heads, 2) * length
    total = kernels.local.ns(width * tile_size(source), half)
    used = shard.num_cores()
    return moved(ProgramRun(code, (), (), used, board), family, used, Stages(1, total, 0.0), NO_TRAFFIC)


# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/experimental/transformer/nlp_create_qkv_heads/device/kernels/dataflow/reader_tm_tile_layout_nlp_create_qkv_heads_sharded.cpp,  # noqa: E501
# kernel_main: a barrier after every head
def fetched_launch(code: str, family: str, outputs: Sequence[Spec], board: Board) -> Launch:
    """Heads that cores fetch from the cores that have them: one tile high, each on a core of its own."""
    kernels = KERNELS[board.arch]
    total, used, volume = 0.0, 1, 0.0
    for each in outputs:
        shard = each.shard_spec
        if shard is None:
            continue
        rows, width = _shard_tiles(each)
        # Both data movement kernels have half of the queries; one has the keys, the other one the values.
        count = rows / 2 if each is outputs[0] else rows
        total += max(count, 1) * kernels.l1_read.ns(width * tile_size(each)) if each is not outputs[-1] else 0.0
        used = max(used, shard.num_cores())
        volume += rows * width * tile_size(each) * shard.num_cores()
    run = ProgramRun(code, (), (), used, board)
    return moved(run, family, used, Stages(1, total, 0.0), Traffic(l1_read_bytes=volume))


# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/experimental/transformer/nlp_create_qkv_heads_decode/device/kernels/reader_tm_tile_layout_nlp_create_qkv_heads_decode.cpp,  # noqa: E501
# kernel_main: a row of a tile is two reads, shared by two kernels
def rows_launch(
    code: str, family: str, rows: float, columns: float, spec: Spec, board: Board, used: int, *, in_dram: bool = False
) -> Launch:
    """Users' rows taken out of tiles: `rows` rows of `columns` tiles per core."""
    kernels = KERNELS[board.arch]
    access = kernels.dram_read if in_dram else kernels.l1_read
    half = HALF_ROW * max(tile_size(spec) // (TILE_SIZE * TILE_SIZE), 1)
    total = access.ns(half, rows * columns)
    pages = 2 * rows * columns * used
    traffic = Traffic(pages, pages * half) if in_dram else Traffic(l1_read_bytes=pages * half)
    return moved(ProgramRun(code, (), (), used, board), family, used, Stages(1, total, 0.0), traffic)
