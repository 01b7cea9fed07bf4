"""Operations that follow indices: rows of a table are read one by one, single values are moved by the cores."""

from __future__ import annotations

from collections.abc import Sequence

from ttnn_emulator.enums import DataType
from ttnn_emulator.tensors.shapes import TILE_SIZE, div_up
from ttnn_emulator.tensors.spec import FACE_WIDTH, ROW_MAJOR_BYTES, Spec
from ttnn_emulator.timing.calls import Call, prices
from ttnn_emulator.timing.families.data_movement.tilize import tilize_ns
from ttnn_emulator.timing.launches import Launch
from ttnn_emulator.timing.movement import (
    NO_TRAFFIC,
    Planned,
    Stages,
    is_planned,
    kernels_of,
    moved,
    planned_run,
    read_traffic,
    reads,
    row_size,
    rows_of,
    shard_cores,
    split,
    tile_size,
    tiles_of,
    write_traffic,
    writes,
)
from ttnn_emulator.timing.programs import ProgramRun, times

EMBEDDING, GATHER, SCATTER, FILL, SEARCH = "embedding", "gather", "scatter", "index_fill", "nonzero"

# Cycles of a core per value that it looks up, reads and writes; guesses, as no such program was measured.
GATHER_CYCLES = 30.0
SCATTER_CYCLES = 35.0
SCAN_CYCLES = 12.0
ACCUMULATE_CYCLES = 250.0  # a tile added in the destination register
TABLE_IN_CACHE = "BINARY"


# -- embeddings -------------------------------------------------------------------------------------------------------


@times("EmbeddingsDeviceOperation", "Embeddings", family=EMBEDDING, settings=Planned)
def embedding(run: ProgramRun) -> Launch:
    """A row of the table per token; rows of tokens in tiles, rows in rows, or rows that are tilized."""
    tokens, table, target = run.inputs[0], run.inputs[1], run.outputs[0]
    kernels = kernels_of(run)
    count = tokens.volume
    row = row_size(table)
    cached = isinstance(run.settings, Planned) and run.settings.kind == TABLE_IN_CACHE
    reader = kernels.local if cached else reads(kernels, table)
    index = reads(kernels, tokens).ns(2 * FACE_WIDTH * ROW_MAJOR_BYTES[tokens.dtype])
    traffic = NO_TRAFFIC if cached else read_traffic(table, count, row)
    if target.is_tile:
        blocks, tiles = div_up(count, TILE_SIZE), div_up(target.shape[-1], TILE_SIZE)
        cores, mine = split(blocks, run)
        cores, mine = (
            (shard_cores(target), div_up(blocks, shard_cores(target))) if shard_cores(target) else (cores, mine)
        )
        page = tile_size(target)
        writer = writes(kernels, target)
        write = 0.0 if target.is_sharded else tiles * (writer.stream_ns(page) + kernels.flush_ns)
        traffic += write_traffic(target, blocks * tiles, page)
        stages = Stages(mine, index + reader.ns(row, TILE_SIZE), tilize_ns(run, table, target, tiles), write)
        return moved(run, EMBEDDING, cores, stages, traffic, writer.wait_ns(page))
    if tokens.is_tile:
        # The tokens of a line of a face stay on one core.
        lines = div_up(count, FACE_WIDTH)
        cores = min(lines, run.board.cores) if is_planned(run) else max(run.cores, 1)
        mine = min(div_up(lines, cores) * FACE_WIDTH, count)
        index = reads(kernels, tokens).ns(tile_size(tokens)) / FACE_WIDTH
    else:
        cores, mine = split(count, run)
        index /= max(min(run.board.dram_alignment // ROW_MAJOR_BYTES[tokens.dtype], mine), 1)
    if target.is_sharded:
        cores = shard_cores(target)
        mine = div_up(count, cores)
    write = 0.0 if target.is_sharded else writes(kernels, target).ns(row)
    traffic += write_traffic(target, count, row)
    return moved(run, EMBEDDING, cores, Stages(mine, reader.ns(row) + index, 0.0, write), traffic)


@prices("ttnn.prim.embedding")
def price_embedding(call: Call) -> Sequence[Launch]:
    kind = call.arguments.get("kind")
    settings = Planned(kind=str(getattr(kind, "name", kind)))
    tensors = tuple([spec for name, spec in call.inputs if name != "output_tensor"])
    return [embedding(planned_run(call, "EmbeddingsDeviceOperation", tensors, settings=settings))]


@times("EmbeddingBackwardDeviceOperation", family="embedding_backward", settings=Planned)
def embedding_backward(run: ProgramRun) -> Launch:
    """Every core has columns of the table's gradient, and adds all rows to tiles that it reads and writes back."""
    tokens, gradient, target = run.inputs[0], run.inputs[1], run.outputs[0]
    kernels = kernels_of(run)
    width = div_up(target.shape[-1], TILE_SIZE)
    cores, mine = split(width, run)
    blocks = div_up(tokens.volume, TILE_SIZE)
    page = tile_size(target)
    # Tokens of a block that share rows of tiles are added together; at worst every token has its own.
    rounds = min(TILE_SIZE, max(div_up(target.shape[-2], TILE_SIZE), 1))
    read = reads(kernels, gradient).ns(page, mine) + rounds * reads(kernels, target).ns(page, mine)
    compute = rounds * mine * run.chip.ns(ACCUMULATE_CYCLES)
    write = rounds * writes(kernels, target).ns(page, mine)
    traffic = read_traffic(gradient, tiles_of(gradient), page) + write_traffic(target, tiles_of(target), page)
    return moved(run, "embedding_backward", cores, Stages(blocks, read + write, compute), traffic)


# -- single values ----------------------------------------------------------------------------------------------------


def _values(spec: Spec) -> int:
    return spec.physical_shape[0] * spec.physical_shape[1]


@times("GatherDeviceOperation", family=GATHER, settings=Planned)
def gather(run: ProgramRun) -> Launch:
    """A row (of tiles) of the input is read; values are picked one by one."""
    source, index, target = run.inputs[0], run.inputs[1], run.outputs[0]
    kernels = kernels_of(run)
    tiled = source.is_tile
    rows = div_up(index.physical_shape[0], TILE_SIZE) if tiled else rows_of(index)
    cores, mine = split(max(rows, 1), run)
    wide = div_up(source.physical_shape[1], TILE_SIZE) if tiled else 1
    out_wide = div_up(index.physical_shape[1], TILE_SIZE) if tiled else 1
    page, out = (tile_size(source), tile_size(target)) if tiled else (row_size(source), row_size(target))
    index_page = tile_size(index) if tiled else row_size(index)
    picked = _values(index) / max(rows, 1) * run.chip.ns(GATHER_CYCLES)
    read = out_wide * reads(kernels, index).ns(index_page) + picked
    write = wide * reads(kernels, source).ns(page) + out_wide * writes(kernels, target).ns(out)
    traffic = (
        read_traffic(source, rows * wide, page)
        + read_traffic(index, rows * out_wide, index_page)
        + write_traffic(target, rows * out_wide, out)
    )
    return moved(run, GATHER, cores, Stages(mine, read, 0.0, write), traffic)


@times("ScatterDeviceOperation", "ScatterReduceBfloat16DeviceOperation", family=SCATTER, settings=Planned)
def scatter(run: ProgramRun) -> Launch:
    """A row is copied value by value; then the values of the source are written over it."""
    source, index, values = run.inputs[0], run.inputs[1], run.inputs[2]
    target = run.outputs[0]
    kernels = kernels_of(run)
    rows = max(rows_of(source), 1)
    cores, mine = split(rows, run)
    share = min(rows_of(index) / rows, 1.0)
    copied = row_size(source) / ROW_MAJOR_BYTES[source.dtype] * kernels.move_ns
    written = index.shape[-1] * run.chip.ns(SCATTER_CYCLES) if index.shape else 0.0
    read = reads(kernels, source).ns(row_size(source)) + copied
    read += share * (reads(kernels, index).ns(row_size(index)) + reads(kernels, values).ns(row_size(values)) + written)
    traffic = read_traffic(source, rows, row_size(source)) + write_traffic(target, rows, row_size(target))
    return moved(run, SCATTER, cores, Stages(mine, read, 0.0, writes(kernels, target).ns(row_size(target))), traffic)


@times("IndexFillOperation", "IndexedFillDeviceOperation", "MorehGetItemOperation", family=FILL, settings=Planned)
def index_fill(run: ProgramRun) -> Launch:
    """Pages are read, one after the other, from one tensor or another as the index says."""
    source, target = run.inputs[0], run.outputs[0]
    kernels = kernels_of(run)
    tiled = target.is_tile
    pages, page = (tiles_of(target), tile_size(target)) if tiled else (rows_of(target), row_size(target))
    # A tile that takes its rows from different tiles is gathered by lines of faces.
    lines = 2 * TILE_SIZE if tiled and run.code == "MorehGetItemOperation" else 1
    cores, mine = split(pages, run)
    read = reads(kernels, source).ns(page / lines) * lines + run.chip.ns(200.0)
    traffic = read_traffic(source, pages * lines, page / lines) + write_traffic(target, pages, page)
    return moved(run, FILL, cores, Stages(mine, read, 0.0, writes(kernels, target).ns(page)), traffic)


@times(
    "NonZeroIndicesDeviceOperation", "IsInDeviceOperation", "PlusOneDeviceOperation", family=SEARCH, settings=Planned
)
def scan(run: ProgramRun) -> Launch:
    """Cores look at one value after the other. `nonzero` has one core, which reads a tile again for each row of it."""
    source, target = run.inputs[0], run.outputs[-1]
    kernels = kernels_of(run)
    single = run.code != "IsInDeviceOperation"
    page = tile_size(source) if source.is_tile else row_size(source)
    pages = tiles_of(source) if source.is_tile else rows_of(source)
    again = TILE_SIZE if source.is_tile and run.code == "NonZeroIndicesDeviceOperation" else 1
    cores, mine = (1, pages) if single else split(pages, run)
    compared = 1
    if run.code == "IsInDeviceOperation" and len(run.inputs) > 1:
        compared = max(run.inputs[1].volume, 1)
    values = _values(source) / max(pages, 1)
    read = again * reads(kernels, source).ns(page) + values * compared * run.chip.ns(SCAN_CYCLES)
    written = tile_size(target) if target.is_tile else row_size(target)
    traffic = read_traffic(source, pages * again, page)
    stages = Stages(mine, read, 0.0, 0.0 if single else writes(kernels, target).ns(written))
    return moved(run, SEARCH, cores, stages, traffic, writes(kernels, target).ns(written))


# -- operations -------------------------------------------------------------------------------------------------------


OUTPUTS = frozenset({"output_tensor", "out", "output", "optional_tensor", "preallocated_output"})


def _run(call: Call, code: str) -> ProgramRun:
    tensors = tuple([spec for name, spec in call.inputs if name not in OUTPUTS])
    return planned_run(call, code, tensors)


@prices("ttnn.prim.embedding_backward")
def price_embedding_backward(call: Call) -> Sequence[Launch]:
    return [embedding_backward(_run(call, "EmbeddingBackwardDeviceOperation"))]


@prices("ttnn.prim.gather")
def price_gather(call: Call) -> Sequence[Launch]:
    return [gather(_run(call, "GatherDeviceOperation"))]


@prices("ttnn.prim.scatter")
def price_scatter(call: Call) -> Sequence[Launch]:
    reduces = call.arguments.get("reduce") is not None and call.tensors[0].dtype is DataType.BFLOAT16
    return [scatter(_run(call, "ScatterReduceBfloat16DeviceOperation" if reduces else "ScatterDeviceOperation"))]


@prices("ttnn.index_fill", "ttnn.index_fill_new")
def price_index_fill(call: Call) -> Sequence[Launch]:
    return [index_fill(_run(call, "IndexFillOperation"))]


@prices("ttnn.prim.indexed_fill")
def price_indexed_fill(call: Call) -> Sequence[Launch]:
    others = tuple([spec for name, spec in call.inputs if name != "batch_id"])
    return [index_fill(planned_run(call, "IndexedFillDeviceOperation", others))]


@prices("ttnn.moreh_getitem")
def price_getitem(call: Call) -> Sequence[Launch]:
    return [index_fill(_run(call, "MorehGetItemOperation"))]


@prices("ttnn.nonzero")
def price_nonzero(call: Call) -> Sequence[Launch]:
    return [scan(_run(call, "NonZeroIndicesDeviceOperation"))]


@prices("ttnn.prim.isin")
def price_isin(call: Call) -> Sequence[Launch]:
    return [scan(_run(call, "IsInDeviceOperation"))]


@prices("ttnn.plus_one")
def price_plus_one(call: Call) -> Sequence[Launch]:
    return [scan(_run(call, "PlusOneDeviceOperation"))]
