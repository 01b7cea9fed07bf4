"""Reshapes that move values: rows cut and joined, or segments of tiles copied one by one."""

from __future__ import annotations

import functools
import math

from ttnn_emulator.tensors.shapes import TILE_SIZE, div_up
from ttnn_emulator.tensors.spec import FACE_WIDTH, ROW_MAJOR_BYTES
from ttnn_emulator.timing.launches import Launch
from ttnn_emulator.timing.movement import (
    Planned,
    Stages,
    is_dram,
    is_planned,
    kernels_of,
    moved,
    read_traffic,
    reads,
    row_size,
    split,
    tile_size,
    tiles_of,
    write_traffic,
    writes,
)
from ttnn_emulator.timing.programs import ProgramRun, times

FAMILY = "reshape"

SEGMENT_CYCLES = 80.0  # fit: a segment of consecutive values, copied within the core
PAGE_CYCLES = 108.0  # fit: handing a tile from reader to writer, which waits for its copies
# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/data_movement/reshape_view/device/hostdevcommon/common.hpp,
# SegmentMapData: four words per segment
SEGMENT_BYTES = 16
# The core copies unaligned bytes by itself.
COPY_CYCLES, COPY_BYTE_CYCLES = 150.0, 3.2  # fit
NOC_ALIGNMENT = 16


@times(
    "ReshapeViewDeviceOperation",
    "ReshapeDeviceOperation",
    "ReshapeOnDeviceOperation",
    "Reshape",
    family=FAMILY,
    settings=Planned,
)
def reshape(run: ProgramRun) -> Launch:
    """Values in another shape."""
    return _tiles(run) if run.inputs[0].is_tile else _rows(run)


def _tiles(run: ProgramRun) -> Launch:
    """An output tile at a time: a map of its segments is read, then every tile that it takes values from.

    Each buffer holds one page, so that nothing overlaps.
    """
    kernels, source, target = kernels_of(run), run.inputs[0], run.outputs[0]
    cores, mine = split(tiles_of(target), run)
    pages, segments, most = _segments(_matrix(source.shape), _matrix(target.shape))
    page = tile_size(source)
    chip = run.chip
    each = (
        kernels.dram_read.ns(most * SEGMENT_BYTES)
        + pages * (reads(kernels, source).ns(page) + chip.ns(PAGE_CYCLES))
        + segments * chip.ns(SEGMENT_CYCLES)
        + writes(kernels, target).ns(page)
    )
    tiles = tiles_of(target)
    traffic = read_traffic(source, tiles * pages, page) + write_traffic(target, tiles, page)
    return moved(run, FAMILY, cores, Stages(mine, each), traffic)


def _matrix(shape: tuple[int, ...]) -> tuple[int, int]:
    """Height and width of a matrix; batches of matrices follow each other in the flat order."""
    return (shape[-2] if len(shape) > 1 else 1), (shape[-1] if shape else 1)


@functools.lru_cache(maxsize=4096)
def _segments(source: tuple[int, int], target: tuple[int, int]) -> tuple[float, float, int]:
    """Input tiles and segments of an average output tile, and the segments of the tile that has most."""
    (old_height, old_width), (height, width) = source, target
    down = div_up(height, TILE_SIZE)
    pages = segments = 0.0
    most = 0
    samples = {(place, matrix) for place in (0, down // 2) for matrix in (0, 1, 3)}
    for place, matrix in samples:
        rows = range(place * TILE_SIZE, min((place + 1) * TILE_SIZE, height))
        found: set[tuple[int, int, int]] = set()
        count = 0
        for row in rows:
            begin = (matrix * height + row) * width
            at, end = begin, begin + min(width, TILE_SIZE)
            while at < end:
                line, column = divmod(at, old_width)
                face = min(FACE_WIDTH - (at - begin) % FACE_WIDTH, FACE_WIDTH - column % FACE_WIDTH)
                found.add((line // old_height, line % old_height // TILE_SIZE, column // TILE_SIZE))
                count += 1
                at += min(face, old_width - column, end - at)
        pages += len(found)
        segments += count / len(rows) * height / down
        most = max(most, count)
    return pages / len(samples), segments / len(samples), most


def _rows(run: ProgramRun) -> Launch:
    """A row of the input at a time is read, cut, and written to rows of the output."""
    kernels, source, target = kernels_of(run), run.inputs[0], run.outputs[0]
    old, new = row_size(source), row_size(target)
    rows = source.volume * ROW_MAJOR_BYTES[source.dtype] // max(old, 1)
    cores = min(rows, run.board.cores) if is_planned(run) else max(run.cores, 1)
    # Cores start at the start of a row of both tensors.
    step = math.lcm(old, new) // old
    mine = div_up(div_up(rows, cores), step) * step
    divides = old % new == 0 or new % old == 0
    both = divides and (not is_planned(run) or new % NOC_ALIGNMENT == 0 or not is_dram(target))
    processors = 2 if both and mine > step else 1
    pieces = max(old / new, 1.0) if divides else old / new + 1.0
    writer = writes(kernels, target)
    read = reads(kernels, source).ns(old)
    if old % NOC_ALIGNMENT == 0 and new % NOC_ALIGNMENT == 0:
        each = read + pieces * writer.ns(min(old, new))
    else:
        copied = run.chip.ns(pieces * COPY_CYCLES + old * COPY_BYTE_CYCLES)
        each = read + copied + old / new * writer.ns(new)
    traffic = read_traffic(source, rows, old) + write_traffic(target, rows * old / new, new)
    return moved(run, FAMILY, cores, Stages(div_up(mine, processors), each), traffic)
