"""Tiles to rows: a row of tiles at a time is read, untilized and written, row by row."""

from __future__ import annotations

from ttnn_emulator.enums import Arch, DataType
from ttnn_emulator.tensors.shapes import TILE_SIZE, div_up
from ttnn_emulator.tensors.spec import ROW_MAJOR_BYTES, Spec
from ttnn_emulator.timing.families.data_movement.tilize import blocks_of, is_multicore, matrix_of, valid_rows
from ttnn_emulator.timing.launches import Launch
from ttnn_emulator.timing.movement import (
    NO_TRAFFIC,
    Planned,
    Stages,
    is_planned,
    kernels_of,
    moved,
    read_traffic,
    reads,
    row_size,
    shard_cores,
    tile_size,
    write_traffic,
    writes,
)
from ttnn_emulator.timing.programs import ProgramRun, times
from ttnn_emulator.timing.shards import is_local

FAMILY = "untilize"
UNPADDING = "untilize_with_unpadding"

# The packer writes rows of up to eight tiles (four of 32 bits) that are in the destination register together: cycles
# per such block and per tile. Fits on Blackhole; the same kernels on Wormhole.
BLOCK_CYCLES, TILE_CYCLES = 383.0, 65.0
# The faster kernel of Blackhole, for rows of at least two tiles: 46 cycles per tile (pull request 45103).
FASTER_TILE_CYCLES, FASTER_ROW_CYCLES = 46.0, 120.0
WIDE_DTYPES = (DataType.FLOAT32, DataType.INT32, DataType.UINT32)


def untilize_ns(run: ProgramRun, source: Spec, tiles: int, *, packs_faster: bool = True) -> float:
    """The compute kernel's time for one row of tiles."""
    wide = source.dtype in WIDE_DTYPES
    if run.board.arch is Arch.BLACKHOLE and is_planned(run) and packs_faster and tiles > 1 and not wide:
        return run.chip.ns(FASTER_ROW_CYCLES + tiles * FASTER_TILE_CYCLES)
    most = 4 if wide else 8
    size = next(size for size in range(min(most, tiles), 0, -1) if tiles % size == 0)
    return run.chip.ns(tiles // size * BLOCK_CYCLES + tiles * TILE_CYCLES)


@times("UntilizeDeviceOperation", "Untilize", "UntilizeCodegenDeviceOperation", family=FAMILY, settings=Planned)
def untilize(run: ProgramRun) -> Launch:
    """Whole tiles."""
    source, target = run.inputs[0], run.outputs[0]
    if is_local(source):
        if target.is_sharded:
            return _in_place(run, source)
        return _from_shards(run, source, target, FAMILY)
    if is_planned(run) and run.settings.generated:
        return _generated(run, source, target)
    return _through_blocks(run, source, target, FAMILY, rows_per_barrier=TILE_SIZE)


@times("UntilizeWithUnpaddingDeviceOperation", "UntilizeWithUnpadding", family=UNPADDING, settings=Planned)
def untilize_with_unpadding(run: ProgramRun) -> Launch:
    """Tiles with padding that is left out. Every row is written and waited for."""
    source, target = run.inputs[0], run.outputs[0]
    if is_local(source):
        if target.is_sharded:
            return _in_place(run, source, UNPADDING, target)
        return _from_shards(run, source, target, UNPADDING)
    return _through_blocks(run, source, target, UNPADDING, rows_per_barrier=1)


def _shard_rows(source: Spec) -> tuple[int, int]:
    """Rows of tiles of a shard, and tiles in one of them."""
    shards = source.shard_spec
    if shards is None:
        return 1, max(source.num_pages, 1)
    return div_up(shards.shape[0], TILE_SIZE), div_up(shards.shape[1], TILE_SIZE)


def _in_place(run: ProgramRun, source: Spec, family: str = FAMILY, target: Spec | None = None) -> Launch:
    """Every core untilizes its own shard; rows without padding are copied to the output's shard."""
    rows, tiles = _shard_rows(source)
    write = 0.0
    if target is not None:
        write = kernels_of(run).local.ns(tiles * TILE_SIZE * ROW_MAJOR_BYTES[target.dtype], TILE_SIZE)
    stages = Stages(rows, 0.0, untilize_ns(run, source, tiles), write)
    return moved(run, family, shard_cores(source), stages, NO_TRAFFIC)


def _from_shards(run: ProgramRun, source: Spec, target: Spec, family: str) -> Launch:
    """Every core untilizes its own shard and writes its part of the rows."""
    kernels = kernels_of(run)
    rows, tiles = _shard_rows(source)
    part = min(tiles * TILE_SIZE * ROW_MAJOR_BYTES[target.dtype], row_size(target))
    height = valid_rows(target, source)
    write = writes(kernels, target).ns(part, height)
    stages = Stages(rows, 0.0, untilize_ns(run, source, tiles), write)
    pages = target.physical_shape[0] * div_up(row_size(target), part)
    return moved(run, family, shard_cores(source), stages, write_traffic(target, pages, part))


def _through_blocks(run: ProgramRun, source: Spec, target: Spec, family: str, rows_per_barrier: int) -> Launch:
    """Tiles are read one after the other; rows are written with one or many between barriers."""
    kernels = kernels_of(run)
    blocks = blocks_of(run, *matrix_of(source), many=is_multicore(run))
    reader, writer = reads(kernels, source), writes(kernels, target)
    page = tile_size(source)
    read = blocks.tiles * reader.ns(page)
    part = min(blocks.tiles * TILE_SIZE * ROW_MAJOR_BYTES[target.dtype], row_size(target))
    height = valid_rows(target, source)
    if blocks.is_square:
        rows_per_barrier = 1
    write = height / rows_per_barrier * writer.ns(part, rows_per_barrier)
    traffic = read_traffic(source, source.num_pages, page) + write_traffic(
        target, target.physical_shape[0], row_size(target)
    )
    stages = Stages(blocks.count, read, untilize_ns(run, source, blocks.tiles), write)
    return moved(run, family, blocks.cores, stages, traffic)


def _generated(run: ProgramRun, source: Spec, target: Spec) -> Launch:
    """The newer program: a whole row of tiles is in flight; few rows of tiles are also cut along the width."""
    kernels = kernels_of(run)
    width, height, matrices = matrix_of(source)
    rows, available = height * matrices, run.board.cores
    parts = _columns(rows, width, available)
    tiles = div_up(width, parts)
    cores = min(rows * parts, available)
    count = div_up(rows * parts, cores)
    page = tile_size(source)
    read = reads(kernels, source).ns(page, tiles)
    part = min(tiles * TILE_SIZE * ROW_MAJOR_BYTES[target.dtype], row_size(target))
    write = writes(kernels, target).ns(part, valid_rows(target, source))
    traffic = read_traffic(source, source.num_pages, page) + write_traffic(
        target, target.physical_shape[0], row_size(target)
    )
    stages = Stages(count, read, untilize_ns(run, source, tiles, packs_faster=False), write)
    return moved(run, FAMILY, cores, stages, traffic)


# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/data_movement/untilize/codegen/untilize_codegen_program_factory.cpp,
# choose_2d_ncol, build_column_parallel
def _columns(rows: int, width: int, available: int) -> int:
    """Into how many parts the width is cut."""
    if rows == 1:
        return min(width, available)
    if rows >= available or width < 2:
        return 1
    most = min(available // rows, width)
    return next((parts for parts in range(most, 1, -1) if width % parts == 0), 1)
