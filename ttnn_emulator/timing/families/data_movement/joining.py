"""Joined and repeated tensors: concat, repeat, split."""

from __future__ import annotations

from ttnn_emulator.enums import TensorMemoryLayout
from ttnn_emulator.tensors.shapes import TILE_SIZE, div_up
from ttnn_emulator.tensors.spec import ROW_MAJOR_BYTES, Spec
from ttnn_emulator.timing.families.data_movement.permute import TRANSPOSE_CYCLES
from ttnn_emulator.timing.families.data_movement.tilize import tilize_ns
from ttnn_emulator.timing.families.data_movement.untilize import untilize_ns
from ttnn_emulator.timing.launches import Launch
from ttnn_emulator.timing.movement import (
    NO_TRAFFIC,
    REPEATED_READ_CYCLES,
    Planned,
    Stages,
    Traffic,
    is_dram,
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

CONCAT, REPEAT, SPLIT = "concat", "repeat", "split"

# Which tensor the next page is of, and its address, whose kind is known only when the kernel runs.
TENSOR_CYCLES = 120.0  # fit


@times("ConcatDeviceOperation", "Concat", family=CONCAT, settings=Planned)
def concat(run: ProgramRun) -> Launch:
    """Pages of several tensors, one after the other."""
    target, first = run.outputs[0], run.inputs[0]
    if first.is_sharded and not is_dram(first):
        if target.is_sharded and not is_dram(target):
            return _shards(run, target)
        return _from_shards(run, target)
    if first.is_tile:
        if any(spec.shape[-1] % TILE_SIZE for spec in run.inputs) and _dim(run) == len(target.shape) - 1:
            return _partial_tiles(run, target)
        return _pages(run, target, tiles_of(target), tile_size(target), 1)
    along_rows = _dim(run) == len(target.shape) - 1
    return _pages(run, target, rows_of(target), row_size(target), len(run.inputs) if along_rows else 1)


def _dim(run: ProgramRun) -> int:
    if isinstance(run.settings, Planned) and run.settings.dim is not None:
        return run.settings.dim
    shape, first = run.outputs[0].shape, run.inputs[0].shape
    return next((dim for dim in range(len(shape)) if dim < len(first) and shape[dim] != first[dim]), len(shape) - 1)


def _pages(run: ProgramRun, target: Spec, pages: int, page: int, parts: int) -> Launch:
    """A page, in parts from different tensors, is read and waited for, then written."""
    kernels = kernels_of(run)
    cores, mine = split(pages, run)
    index = run.chip.ns(TENSOR_CYCLES)
    shares = [spec.volume / max(target.volume, 1) for spec in run.inputs]
    read = sum(share * reads(kernels, spec).ns(page / parts, parts) for share, spec in zip(shares, run.inputs))
    writer = writes(kernels, target)
    write = writer.stream_ns(page) + kernels.flush_ns if is_planned(run) else writer.ns(page)
    traffic = write_traffic(target, pages, page)
    for share, spec in zip(shares, run.inputs):
        traffic += read_traffic(spec, pages if parts > 1 else pages * share, page * share if parts > 1 else page)
    last = writer.wait_ns(page) if is_planned(run) else 0.0
    return moved(run, CONCAT, cores, Stages(mine, read / max(sum(shares), 1e-9) + index, 0.0, write), traffic, last)


def _partial_tiles(run: ProgramRun, target: Spec) -> Launch:
    """Tiles that are not full along the width: rows of tiles are untilized, shifted together and tilized."""
    kernels = kernels_of(run)
    height = div_up(target.physical_shape[0], TILE_SIZE)
    cores, mine = split(height, run)
    page, chip = tile_size(target), run.chip
    tiles = div_up(target.shape[-1], TILE_SIZE)
    read = sum(reads(kernels, spec).ns(page, div_up(spec.shape[-1], TILE_SIZE)) for spec in run.inputs)
    shifted = TILE_SIZE * sum(kernels.local.ns(spec.shape[-1] * ROW_MAJOR_BYTES[spec.dtype]) for spec in run.inputs)
    compute = (
        sum(untilize_ns(run, spec, div_up(spec.shape[-1], TILE_SIZE)) for spec in run.inputs)
        + tilize_ns(run, target, target, tiles)
        + shifted
    )
    writer = writes(kernels, target)
    traffic = write_traffic(target, tiles_of(target), page)
    for spec in run.inputs:
        traffic += read_traffic(spec, tiles_of(spec), page)
    write = writer.ns(page, tiles)
    return moved(run, CONCAT, cores, Stages(mine, read, compute + chip.ns(TRANSPOSE_CYCLES), write), traffic)


def _shards(run: ProgramRun, target: Spec) -> Launch:
    """Every core copies the rows or tiles of its own shards side by side, with both of its processors."""
    kernels = kernels_of(run)
    cores = shard_cores(target)
    local, reader = kernels.local, kernels.l1_read
    if target.is_tile and len(run.inputs) == 2 and _dim(run) == len(target.shape) - 1:
        return _transposed_shards(run, target, cores)
    blocks = target.memory_config.memory_layout is TensorMemoryLayout.BLOCK_SHARDED
    access = reader if blocks else local
    total = 0.0
    for spec in run.inputs:
        shard = spec.shard_spec.shape if spec.shard_spec is not None else spec.physical_shape
        rows, row = shard[0], shard[1] * ROW_MAJOR_BYTES[spec.dtype]
        if spec.is_tile:
            rows, row = div_up(shard[0], TILE_SIZE) * div_up(shard[1], TILE_SIZE), tile_size(spec)
        issue = access.issue_ns if blocks else run.chip.ns(REPEATED_READ_CYCLES)
        total += rows * max(issue, row / access.bytes_per_ns)
    return moved(run, CONCAT, cores, Stages(1, total / 2), NO_TRAFFIC, access.wait_ns(0.0))


def _transposed_shards(run: ProgramRun, target: Spec, cores: int) -> Launch:
    """Two sharded tensors of tiles: every tile is transposed, copied next to its neighbours, and transposed back."""
    # tt-metal v0.77.0: ttnn/cpp/ttnn/operations/data_movement/concat/device/concat_s2s_tiled_program_factory.cpp,
    # height_sharded_width_concat_two_tensors
    kernels = kernels_of(run)
    tiles = div_up(tiles_of(target), cores)
    width = max(div_up(target.physical_shape[1], TILE_SIZE), 1)
    rows = div_up(tiles, width)
    page = max(tile_size(target), 2048)
    chip, local = run.chip, kernels.local
    compute = 2 * width * chip.ns(TRANSPOSE_CYCLES) + chip.ns(CHANGE_FORMAT_CYCLES)
    copies = 2 * local.ns(page * width / 2) + local.ns(width * tile_size(target))
    # The buffers between the kernels hold one row of tiles.
    return moved(run, CONCAT, cores, Stages(rows, copies, compute, 0.0, single_buffered=True), NO_TRAFFIC)


CHANGE_FORMAT_CYCLES = 400.0  # a guess: four changes of data formats per row of tiles


def _from_shards(run: ProgramRun, target: Spec) -> Launch:
    """Every core writes the pages of its shards one by one."""
    kernels = kernels_of(run)
    cores = shard_cores(run.inputs[0])
    page = tile_size(target) if target.is_tile else row_size(run.inputs[0])
    pages = sum(max(spec.num_pages, 1) for spec in run.inputs)
    stages = Stages(div_up(pages, cores), 0.0, 0.0, writes(kernels, target).ns(page))
    return moved(run, CONCAT, cores, stages, write_traffic(target, pages, page))


@times(
    "RepeatDeviceOperation",
    "RepeatCodegenDeviceOperation",
    "ExpandDeviceOperation",
    "Repeat",
    family=REPEAT,
    settings=Planned,
)
def repeat(run: ProgramRun) -> Launch:
    """Pages read once or for every copy, and written as often as they are repeated."""
    source, target = run.inputs[0], run.outputs[0]
    kernels = kernels_of(run)
    if source.is_tile:
        pages, page = tiles_of(target), tile_size(target)
        old = max(tiles_of(source), 1)
    else:
        pages, page, old = rows_of(target), row_size(target), max(rows_of(source), 1)
    cores, mine = split(pages, run)
    part = page if source.is_tile else min(row_size(source), page)
    times_in_row = page / max(part, 1)
    read = reads(kernels, source).ns(part)
    writer = writes(kernels, target)
    if times_in_row > 1:
        write = times_in_row * kernels.local.stream_ns(part) + writer.stream_ns(page) + kernels.flush_ns
    else:
        write = writer.stream_ns(page) + kernels.flush_ns
    traffic = Traffic()
    traffic += read_traffic(source, max(pages, old) if times_in_row <= 1 else pages, part)
    traffic += write_traffic(target, pages, page)
    return moved(run, REPEAT, cores, Stages(mine, read, 0.0, write), traffic, writer.wait_ns(page))


@times("SplitDeviceOperation", "Split", family=SPLIT, settings=Planned)
def split_columns(run: ProgramRun) -> Launch:
    """Equal parts of the columns of tiles: a tile is read, waited for, and written to its part."""
    source, target = run.inputs[0], run.outputs[0]
    kernels = kernels_of(run)
    tiles, page = tiles_of(source), tile_size(source)
    cores, mine = split(tiles, run)
    write = writes(kernels, target).ns(page)
    traffic = read_traffic(source, tiles, page) + write_traffic(target, tiles, page)
    return moved(run, SPLIT, cores, Stages(mine, reads(kernels, source).ns(page), 0.0, write), traffic)
