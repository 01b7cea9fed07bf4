"""Rows to tiles: a row of tiles at a time is read, tilized and written. Padding is filled in by the reader."""

from __future__ import annotations

from dataclasses import dataclass

from ttnn_emulator.enums import Arch, DataType
from ttnn_emulator.tensors.shapes import TILE_SIZE, div_up
from ttnn_emulator.tensors.spec import ROW_MAJOR_BYTES, Spec
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

FAMILY = "tilize"

# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/conv/conv2d/conv2d_op_program_factory_common.cpp,
# get_tilize_cycles_per_tile
TILIZE_CYCLES = {
    Arch.WORMHOLE_B0: {
        (4, DataType.FLOAT32): 128.0,
        (4, DataType.BFLOAT16): 74.0,
        (4, DataType.BFLOAT8_B): 70.0,
        (2, DataType.FLOAT32): 117.0,
        (2, DataType.BFLOAT16): 61.0,
        (2, DataType.BFLOAT8_B): 43.0,
    },
    Arch.BLACKHOLE: {
        (4, DataType.FLOAT32): 132.0,
        (4, DataType.BFLOAT16): 80.0,
        (4, DataType.BFLOAT8_B): 77.0,
        (2, DataType.FLOAT32): 128.0,
        (2, DataType.BFLOAT16): 72.0,
        (2, DataType.BFLOAT8_B): 60.0,
    },
}
TILIZE_CYCLES[Arch.GRAYSKULL] = TILIZE_CYCLES[Arch.WORMHOLE_B0]
# tt-metal v0.77.0: ttnn/cpp/ttnn/kernel_lib/tilize_helpers.hpp, tilize
# The faster kernel of Blackhole needs 0.4 to 0.75 of these cycles (pull request 43577); rows of one tile do not use it.
FASTER_ON_BLACKHOLE = 0.55
ROW_OF_TILES_CYCLES = 3.0  # fit: waiting for and releasing a row of tiles
# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/data_movement/tilize/device/tilize_device_operation.cpp,
# threshold_row_block: wider tensors are cut into square blocks
WIDE_TILES = 32


def tilize_ns(run: ProgramRun, source: Spec, target: Spec, tiles: int) -> float:
    """The compute kernel's time for one row of tiles."""
    table = TILIZE_CYCLES[run.board.arch]
    size = ROW_MAJOR_BYTES[source.dtype]
    found = table.get((max(size, 2), target.dtype))
    if found is None:
        found = table[4, DataType.FLOAT32] if ROW_MAJOR_BYTES[target.dtype] == 4 else table[2, DataType.BFLOAT16]
    if run.board.arch is Arch.BLACKHOLE and is_planned(run) and tiles > 1:
        found *= FASTER_ON_BLACKHOLE
    return run.chip.ns(tiles * found + ROW_OF_TILES_CYCLES)


@dataclass(frozen=True, slots=True)
class Blocks:
    """How rows of tiles are spread: each core has `count` blocks of `tiles` tiles, side by side `across` the width."""

    cores: int
    count: int
    tiles: int
    is_square: bool = False


# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/core/work_split/work_split_tilize.hpp, split_blocks_for_tilize
def blocks_of(run: ProgramRun, width_tiles: int, height_tiles: int, matrices: int, *, many: bool = True) -> Blocks:
    """Whole rows of tiles per core; wide tensors in square blocks if that uses more cores."""
    rows = max(height_tiles * matrices, 1)
    if not many:
        return Blocks(1, rows, width_tiles)
    available = run.board.cores
    per_core = div_up(rows, available)
    cores = div_up(rows, per_core)
    known = run.cores if not is_planned(run) else 0
    wide = width_tiles > WIDE_TILES and (height_tiles > WIDE_TILES or width_tiles > height_tiles)
    if wide and (is_planned(run) or known > cores):
        size = _square_size(div_up(width_tiles * height_tiles, available), width_tiles, height_tiles, available)
        square = div_up(width_tiles, size) * div_up(height_tiles, size)
        if cores < square:
            return Blocks(square, min(size, height_tiles) * matrices, min(size, width_tiles), is_square=True)
    if known:
        return Blocks(known, div_up(rows, known), width_tiles)
    return Blocks(cores, per_core, width_tiles)


def _square_size(least: int, width: int, height: int, limit: int) -> int:
    size = max(int(least**0.5), 1)
    if size * size != least or div_up(width, size) * div_up(height, size) >= limit:
        size += 1
        while size < width * height and div_up(width, size) * div_up(height, size) >= limit:
            size += 1
    return size


def matrix_of(spec: Spec) -> tuple[int, int, int]:
    """Width and height of a matrix in tiles, and the number of matrices."""
    shape = spec.padded_shape
    width = div_up(shape[-1], TILE_SIZE) if shape else 1
    height = div_up(shape[-2], TILE_SIZE) if len(shape) > 1 else 1
    area = width * height * TILE_SIZE * TILE_SIZE
    return width, height, max(spec.physical_shape[0] * spec.physical_shape[1] // area, 1)


def valid_rows(rows: Spec, tiles: Spec) -> float:
    """Rows with values in an average row of tiles."""
    return min(rows.physical_shape[0] * TILE_SIZE / max(tiles.physical_shape[0], 1), TILE_SIZE)


@times("TilizeDeviceOperation", "Tilize", family=FAMILY, settings=Planned)
def tilize(run: ProgramRun) -> Launch:
    """Rows that are whole tiles already."""
    source, target = run.inputs[0], run.outputs[0]
    if source.is_sharded and target.is_sharded and source.memory_config.is_l1:
        return _in_place(run, source, target)
    return _through_blocks(run, source, target, FAMILY)


@times("TilizeWithValPaddingDeviceOperation", "TilizeWithValPadding", family="tilize_with_padding", settings=Planned)
def tilize_with_padding(run: ProgramRun) -> Launch:
    """Rows that are padded to whole tiles."""
    source, target = run.inputs[0], run.outputs[0]
    if source.is_sharded and target.is_sharded and source.memory_config.is_l1:
        return _in_place(run, source, target, "tilize_with_padding")
    return _through_blocks(run, source, target, "tilize_with_padding")


def _in_place(run: ProgramRun, source: Spec, target: Spec, family: str = FAMILY) -> Launch:
    """Every core tilizes its own shard."""
    shards = target.shard_spec or source.shard_spec
    cores = shard_cores(target)
    rows, tiles = 1, 1
    if shards is not None:
        rows, tiles = div_up(shards.shape[0], TILE_SIZE), div_up(shards.shape[1], TILE_SIZE)
    copied = 0.0
    if family != FAMILY:
        # The shard is copied to where it has room for padding.
        local = kernels_of(run).local
        copied = rows * TILE_SIZE * local.stream_ns(tiles * TILE_SIZE * ROW_MAJOR_BYTES[source.dtype])
    stages = Stages(rows, compute_ns=tilize_ns(run, source, target, tiles))
    return moved(run, family, cores, stages, NO_TRAFFIC, copied)


def _through_blocks(run: ProgramRun, source: Spec, target: Spec, family: str) -> Launch:
    """Blocks are read row by row, tilized and written tile by tile; there is room for one block between kernels."""
    kernels, older = kernels_of(run), not is_planned(run)
    blocks = blocks_of(run, *matrix_of(target), many=is_multicore(run))
    pads = family != FAMILY
    element = ROW_MAJOR_BYTES[source.dtype]
    whole = blocks.tiles * TILE_SIZE * element
    valid = min(row_size(source), whole)
    reader, writer = reads(kernels, source), writes(kernels, target)
    filled = valid_rows(source, target)
    waits = blocks.is_square or (pads and (older or not is_multicore(run)))
    if waits:
        read = filled * reader.ns(valid)
    else:
        read = reader.ns(valid, filled)
    if pads:
        padding = filled * (whole - valid) + (TILE_SIZE - filled) * whole
        read += padding / 4 * kernels.store_ns
    page = tile_size(target)
    if older:
        write = blocks.tiles * writer.ns(page)
    else:
        write = blocks.tiles * (writer.stream_ns(page) + kernels.flush_ns) + writer.wait_ns(page) / blocks.count
    rows = source.physical_shape[0]
    traffic = read_traffic(source, rows * div_up(row_size(source), whole), valid) + write_traffic(
        target, target.num_pages, page
    )
    stages = Stages(blocks.count, read, tilize_ns(run, source, target, blocks.tiles), write, single_buffered=True)
    return moved(run, family, blocks.cores, stages, traffic)


def is_multicore(run: ProgramRun) -> bool:
    if is_planned(run):
        return run.settings.multicore
    return run.cores > 1
