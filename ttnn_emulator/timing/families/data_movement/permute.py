"""Reordered dimensions: whole pages where the last dimensions stay, lines of faces or values where they move."""

from __future__ import annotations

import itertools
import math

from ttnn_emulator.tensors.shapes import TILE_SIZE, div_up, round_up
from ttnn_emulator.tensors.spec import FACE_WIDTH, ROW_MAJOR_BYTES
from ttnn_emulator.timing.families.data_movement.tilize import tilize_ns
from ttnn_emulator.timing.families.data_movement.untilize import untilize_ns
from ttnn_emulator.timing.launches import Launch
from ttnn_emulator.timing.movement import (
    NO_TRAFFIC,
    REPEATED_READ_CYCLES,
    Planned,
    Stages,
    Traffic,
    is_planned,
    kernels_of,
    moved,
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

TRANSPOSE, PERMUTE = "transpose", "permute"
Order = tuple[int, ...]

LINE_CYCLES = 38.0  # fit: a line of a face, written
HC_LINE_CYCLES = 62.0  # fit: the same in the transpose of C and H, which computes the place of each line
PADDING_LINE_CYCLES = 47.0  # fit: a line of a face, filled with padding by the core itself
INDEX_CYCLES = 300.0  # fit: the place of a page in the other tensor; the cores divide in software
# A tile through the destination register, one at a time, and one that is tilized, transposed and untilized with the
# units reconfigured. Guesses: no measured program is bound by them.
TRANSPOSE_CYCLES = 180.0
CROSSED_CYCLES = 1500.0
LINES = 2 * TILE_SIZE  # lines of faces in a tile


# -- which permutation ------------------------------------------------------------------------------------------------


def order_of(run: ProgramRun) -> Order:
    """The permutation: as planned, or one that explains the shapes of a sheet's row."""
    settings, source, target = run.settings, run.inputs[0], run.outputs[0]
    if isinstance(settings, Planned):
        return settings.order
    return _explained(source.shape, target.shape)


def _explained(source: tuple[int, ...], target: tuple[int, ...]) -> Order:
    best: tuple[float, Order] = (-1.0, tuple(range(len(source))))
    for order in itertools.permutations(range(len(source))):
        scores = [_likeness(target[place], source[dim]) for place, dim in enumerate(order)]
        kept = sum(place == dim for place, dim in enumerate(order))
        if min(scores, default=0.0) > 0.0 and kept < len(order):
            best = max(best, (sum(scores) + 0.1 * kept, order))
    return best[1]


def _sizes(run: ProgramRun, order: Order) -> tuple[int, ...]:
    """The sizes of the input's dimensions; where a sheet has padded ones, the other tensor may know better."""
    source, target = run.inputs[0].shape, run.outputs[0].shape
    if is_planned(run) or len(source) != len(target):
        return source
    sizes = list(source)
    for place, dim in enumerate(order):
        sizes[dim] = min(source[dim], target[place])
    return tuple(sizes)


def _likeness(one: int, other: int) -> float:
    if one == other:
        return 1.0
    # A sheet may have padded sizes only.
    return 0.5 if round_up(one, TILE_SIZE) == round_up(other, TILE_SIZE) else 0.0


# -- programs ---------------------------------------------------------------------------------------------------------


@times("TransposeDeviceOperation", "Transpose", family=TRANSPOSE, settings=Planned)
def transpose(run: ProgramRun) -> Launch:
    """Two neighbouring dimensions of four, which the library names CN, HC and WH."""
    source = run.inputs[0]
    if isinstance(run.settings, Planned):
        order = run.settings.order
        kind = "WH" if order[-1] != len(order) - 1 else "HC" if order[-2] != len(order) - 2 else "CN"
    else:
        kind = next((name for name in ("WH", "HC", "CN") if f"TransposeOpDim::{name}" in run.attributes), "CN")
    sharded = source.is_sharded and run.outputs[0].is_sharded and source.memory_config.is_l1
    if kind == "CN":
        return _whole_pages(run, TRANSPOSE)
    if kind == "HC":
        if source.is_tile:
            return _lines(run, TRANSPOSE, (0, 2, 1, 3), pads_by_line=not is_planned(run))
        return _sharded_rows(run) if sharded else _whole_pages(run, TRANSPOSE)
    if sharded:
        return _sharded_tiles(run) if source.is_tile else _sharded_columns(run)
    if source.is_tile:
        return _whole_pages(run, TRANSPOSE, transposes=True)
    return _crossed_rows(run, TRANSPOSE)


@times("PermuteDeviceOperation", "Permute", family=PERMUTE, settings=Planned)
def permute(run: ProgramRun) -> Launch:
    """Any order of dimensions."""
    source, order = run.inputs[0], order_of(run)
    last = len(order) - 1
    if not source.is_tile:
        if not order or order[-1] == last:
            return _whole_pages(run, PERMUTE, index=True)
        return _crossed_rows(run, PERMUTE)
    if set(order[-2:]) >= set(range(max(last - 1, 0), last + 1)):
        return _whole_pages(run, PERMUTE, transposes=order[-1] != last, index=True)
    if order[-1] in (last, last - 1):
        return _lines(run, PERMUTE, order, pads_by_line=True)
    return _crossed_tiles(run, order)


def _whole_pages(run: ProgramRun, family: str, *, transposes: bool = False, index: bool = False) -> Launch:
    """Tiles or rows that stay whole: one is read, waited for, and written."""
    kernels, source, target = kernels_of(run), run.inputs[0], run.outputs[0]
    pages, page = (tiles_of(target), tile_size(target)) if source.is_tile else (rows_of(target), row_size(target))
    cores, mine = split(pages, run)
    read = reads(kernels, source).ns(page)
    writer = writes(kernels, target)
    if transposes and is_planned(run):
        write = writer.stream_ns(page) + kernels.flush_ns
    else:
        write = writer.ns(page)
    if index:
        cycles = run.chip.ns(INDEX_CYCLES)
        read, write = (read + cycles, write) if source.is_tile else (read, write + cycles)
    compute = run.chip.ns(TRANSPOSE_CYCLES) if transposes else 0.0
    traffic = read_traffic(source, pages, page) + write_traffic(target, pages, page)
    last = writer.wait_ns(page) if transposes and is_planned(run) else 0.0
    return moved(run, family, cores, Stages(mine, read, compute, write), traffic, last)


def _lines(run: ProgramRun, family: str, order: Order, *, pads_by_line: bool) -> Launch:
    """The rows of a tile go to different tiles, as lines of faces; padding of the output is written as well."""
    kernels, source, target = kernels_of(run), run.inputs[0], run.outputs[0]
    tiles, page = tiles_of(source), tile_size(source)
    cores, mine = split(tiles, run)
    line_ns = run.chip.ns(HC_LINE_CYCLES if family == TRANSPOSE else LINE_CYCLES)
    sizes = _sizes(run, order)
    lines = 2 * math.prod(sizes[:-1]) * div_up(sizes[-1], TILE_SIZE) / tiles
    writer = writes(kernels, target)
    write = lines * line_ns + writer.wait_ns(2 * FACE_WIDTH) + run.chip.ns(INDEX_CYCLES)
    height = sizes[order[-2]]
    rest = -height % TILE_SIZE
    padding = 0.0
    if rest:
        padded = tiles_of(target) * TILE_SIZE // round_up(height, TILE_SIZE)
        calls = 2 * rest if pads_by_line else 2 * div_up(rest, FACE_WIDTH)
        padding = split(padded, run)[1] * calls * line_ns
    traffic = read_traffic(source, tiles, page) + write_traffic(target, tiles_of(target), page)
    return moved(run, family, cores, Stages(mine, reads(kernels, source).ns(page), 0.0, write), traffic, padding)


def _crossed_tiles(run: ProgramRun, order: Order) -> Launch:
    """The last dimension moves: lines of faces are gathered to a tile, transposed, and written as lines of faces."""
    kernels, source, target = kernels_of(run), run.inputs[0], run.outputs[0]
    shape = source.shape
    width, crossing = shape[-1], shape[order[-1]]
    blocks = math.prod(shape) // max(width * crossing, 1) * div_up(width, TILE_SIZE) * div_up(crossing, TILE_SIZE)
    cores, mine = split(max(blocks, 1), run)
    line_ns, padding_ns = run.chip.ns(LINE_CYCLES), run.chip.ns(PADDING_LINE_CYCLES)
    line = FACE_WIDTH * ROW_MAJOR_BYTES[source.dtype]
    gathered = min(crossing, TILE_SIZE) * div_up(min(width, TILE_SIZE), FACE_WIDTH)
    reader = reads(kernels, source)
    # tt-metal v0.77.0: ttnn/cpp/ttnn/operations/data_movement/permute/device/permute_tiled_program_factory.cpp,
    # misalignment: lines that are not aligned are waited for and copied one by one
    alignment = run.board.dram_alignment if source.memory_config.is_dram else run.board.l1_alignment
    if line % alignment:
        read = gathered / 2 * reader.ns(line) + gathered / 2 * (reader.ns(line) + line / 4 * kernels.move_ns)
    else:
        read = reader.ns(line, gathered)
    rest = -crossing % TILE_SIZE / div_up(crossing, TILE_SIZE)
    read += rest * div_up(min(width, TILE_SIZE), FACE_WIDTH) * padding_ns
    written = min(width, TILE_SIZE) * div_up(min(crossing, TILE_SIZE), FACE_WIDTH)
    write = written * line_ns + writes(kernels, target).wait_ns(line) + run.chip.ns(INDEX_CYCLES)
    traffic = read_traffic(source, tiles_of(source), tile_size(source)) + write_traffic(
        target, tiles_of(target), tile_size(target)
    )
    stages = Stages(mine, read + run.chip.ns(INDEX_CYCLES), run.chip.ns(CROSSED_CYCLES), write)
    return moved(run, PERMUTE, cores, stages, traffic)


def _crossed_rows(run: ProgramRun, family: str) -> Launch:
    """The last dimension of rows moves: blocks of 32 x 32 values are read, transposed and written as parts of rows."""
    kernels, source, target = kernels_of(run), run.inputs[0], run.outputs[0]
    width, crossing = max(source.shape[-1], 1), max(target.shape[-1], 1)
    outer = max(source.volume // (width * crossing), 1)
    blocks = outer * div_up(width, TILE_SIZE) * div_up(crossing, TILE_SIZE)
    cores, mine = split(blocks, run)
    size = ROW_MAJOR_BYTES[source.dtype]
    high, wide = min(crossing, TILE_SIZE), min(width, TILE_SIZE)
    index = run.chip.ns(INDEX_CYCLES)
    read = reads(kernels, source).ns(wide * size, high) + index
    write = writes(kernels, target).ns(high * size, wide) + index
    traffic = Traffic()
    traffic += read_traffic(source, blocks * high, wide * size)
    traffic += write_traffic(target, blocks * wide, high * size)
    return moved(run, family, cores, Stages(mine, read, run.chip.ns(CROSSED_CYCLES / 2), write), traffic)


# -- shards -----------------------------------------------------------------------------------------------------------


def _sharded_tiles(run: ProgramRun) -> Launch:
    """Every core transposes the tiles of its own shard."""
    source = run.inputs[0]
    cores = shard_cores(source)
    tiles = div_up(tiles_of(source), cores)
    return moved(run, TRANSPOSE, cores, Stages(tiles, 0.0, run.chip.ns(TRANSPOSE_CYCLES)), NO_TRAFFIC)


def _sharded_columns(run: ProgramRun) -> Launch:
    """Every core tilizes the matrices of its own shard, transposes their tiles and untilizes them."""
    kernels, source = kernels_of(run), run.inputs[0]
    cores = shard_cores(source)
    height, width = source.shape[-2:]
    matrices = div_up(source.volume // (height * width), cores)
    down, across = div_up(height, TILE_SIZE), div_up(width, TILE_SIZE)
    row = width * ROW_MAJOR_BYTES[source.dtype]
    local = kernels.local
    read = down * local.ns(row, min(height, TILE_SIZE))
    # The packer writes columns while the next tiles are transposed.
    compute = down * tilize_ns(run, source, source, across) + across * max(
        untilize_ns(run, source, down, packs_faster=False), down * run.chip.ns(TRANSPOSE_CYCLES)
    )
    return moved(run, TRANSPOSE, cores, Stages(matrices, read, compute), NO_TRAFFIC)


def _sharded_rows(run: ProgramRun) -> Launch:
    """Every core reads the rows of its output shard from other cores, with both of its data movement processors."""
    kernels, target = kernels_of(run), run.outputs[0]
    cores = shard_cores(target)
    rows = div_up(rows_of(target), cores)
    row = row_size(target)
    reader = kernels.l1_read
    each = max(run.chip.ns(REPEATED_READ_CYCLES), row / reader.bytes_per_ns)
    return moved(run, TRANSPOSE, cores, Stages(div_up(rows, 2), each), NO_TRAFFIC, reader.wait_ns(row))
