"""Attention to selected keys, the scores that select them, and attention to points of an image."""

from __future__ import annotations

from collections.abc import Sequence

from ttnn_emulator.enums import MathFidelity
from ttnn_emulator.tensors.shapes import TILE_SIZE, div_up
from ttnn_emulator.tensors.spec import ROW_MAJOR_BYTES
from ttnn_emulator.timing.calls import Call, prices
from ttnn_emulator.timing.families.attention.chunks import (
    NARROW,
    Chunk,
    chunk_cycles,
    ending_cycles,
    products_cycles,
)
from ttnn_emulator.timing.launches import Launch
from ttnn_emulator.timing.movement import (
    Stages,
    kernels_of,
    moved,
    planned_run,
    read_traffic,
    reads,
    row_size,
    write_traffic,
    writes,
)
from ttnn_emulator.timing.recorded_arguments import precision_of_call
from ttnn_emulator.timing.tile_kernels import combine_cycles

FAMILY = "sparse attention"
# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/conv/conv2d/conv2d_op_program_factory_common.cpp,
# get_tilize_cycles_per_tile: keys that were gathered row by row, per tile
TILIZE_CYCLES = 80.0
ADDRESS_CYCLES = 30.0  # a loop of the reader: coordinates and weight of a neighbour of a point


@prices("ttnn.transformer.sparse_sdpa", "ttnn.transformer.sparse_sdpa_msa")
def chosen_keys(call: Call) -> Sequence[Launch]:
    """Tokens are divided among cores. A token's keys are gathered row by row; all its heads attend to them."""
    q, k = call.tensors[:2]
    v, indices = call.tensor("v"), call.tensor("indices")
    out = call.outputs[0]
    run = planned_run(call, "SparseSDPAOperation", call.tensors)
    kernels, chip = kernels_of(run), run.chip
    heads, tokens, depth = q.shape[-3:]
    groups = max(k.shape[1], 1)
    block = int(call.arguments.get("block_size") or 1) if v is not None else 1
    choices = (indices.shape[-1] if indices is not None else 1) * block
    columns = max(int(call.arguments.get("k_chunk_size") or block) // TILE_SIZE, 1)
    width = out.shape[-1]
    cores = min(tokens * groups, call.board.cores)
    chunk = Chunk(
        div_up(heads // groups, TILE_SIZE),
        columns,
        div_up(depth, TILE_SIZE),
        div_up(width, TILE_SIZE),
        NARROW,
        precision_of_call(call, MathFidelity.HiFi2),
    )
    size, rows = row_size(k) if not k.is_tile else NARROW * chunk.depth / TILE_SIZE, columns * TILE_SIZE
    read = reads(kernels, k).ns(size, rows * (1 if v is None else 2))
    compute = chip.ns(chunk_cycles(chunk, run.board) + TILIZE_CYCLES * columns * chunk.depth)
    mine = div_up(tokens * groups, cores)
    steps = mine * div_up(choices, rows)
    ending = mine * chip.ns(ending_cycles(chunk, run.board.arch))
    ending += writes(kernels, out).ns(width * 2.0, heads // groups)
    traffic = read_traffic(k, cores * steps * rows * (1 if v is None else 2), size)
    traffic += write_traffic(out, tokens * heads, width * 2.0)
    return [moved(run, FAMILY, cores, Stages(steps, read, compute), traffic, ending)]


@prices("ttnn.experimental.indexer_score_dsa", "ttnn.experimental.indexer_score_msa")
def scores(call: Call) -> Sequence[Launch]:
    """Scores of all keys for every token: products of all heads, which are weighted and summed."""
    q, k = call.tensors[:2]
    out = call.outputs[0]
    run = planned_run(call, "IndexerScoreDeviceOperation", call.tensors)
    kernels, chip = kernels_of(run), run.chip
    heads, tokens, depth = q.shape[-3:]
    keys = int(call.arguments.get("kv_len") or k.shape[-2])
    rows, columns, inner = div_up(tokens, TILE_SIZE), div_up(keys, TILE_SIZE), div_up(depth, TILE_SIZE)
    precision = precision_of_call(call, MathFidelity.HiFi2)
    chunk = Chunk(1, 8, inner, 1, NARROW, precision)
    cores = min(rows * div_up(columns, 8), call.board.cores)
    steps = div_up(rows * div_up(columns, 8), cores)
    products = products_cycles(1, 8, inner, chunk, run.board) + 8 * combine_cycles(2 * NARROW, 4)
    compute = chip.ns(heads * products)
    read = reads(kernels, k).ns(NARROW, 8 * inner)
    write = writes(kernels, out).ns(out.page_bytes if out.is_tile else 8.0 * TILE_SIZE * 2, 8)
    queries = reads(kernels, q).ns(NARROW, heads * inner)
    traffic = read_traffic(k, cores * steps * 8 * inner, NARROW) + write_traffic(out, out.num_pages, out.page_bytes)
    return [moved(run, FAMILY, cores, Stages(steps, read, compute, write), traffic, queries)]


@prices("ttnn.experimental.multi_scale_deformable_attn")
def points(call: Call) -> Sequence[Launch]:
    """Every point of a query reads its four neighbours, which are weighted and summed."""
    value, grid = call.tensors[:2]
    out = call.outputs[0]
    run = planned_run(call, "MultiScaleDeformableAttnDeviceOperation", call.tensors)
    kernels = kernels_of(run)
    depth = value.shape[-1]
    count = max(grid.volume // 2, 1)
    queries = max(out.volume // max(depth, 1), 1)
    cores = min(queries, call.board.cores)
    mine = div_up(queries, cores)
    each = div_up(count, queries)
    size = depth * ROW_MAJOR_BYTES[value.dtype]
    read = reads(kernels, value).ns(size, 4 * each)
    compute = run.chip.ns(each * (ADDRESS_CYCLES * 4 + combine_cycles(2 * NARROW) * div_up(depth, TILE_SIZE)))
    write = writes(kernels, out).ns(size)
    traffic = read_traffic(value, 4 * count, size) + write_traffic(out, queries, size)
    return [moved(run, FAMILY, cores, Stages(mine, read, compute, write), traffic)]
