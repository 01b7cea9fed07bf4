"""Parts of tensors: slices, and tensors within larger ones."""

from __future__ import annotations

import math

from ttnn_emulator.tensors.shapes import TILE_SIZE, div_up, round_up
from ttnn_emulator.tensors.spec import Spec
from ttnn_emulator.timing.launches import Launch
from ttnn_emulator.timing.movement import (
    NO_TRAFFIC,
    Access,
    Planned,
    Stages,
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

SLICE, PAD = "slice", "pad"

# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/data_movement/slice/device/slice_program_factory_rm.cpp,
# MAX_READ_SIZE: bytes of rows between two barriers
BATCH_BYTES = 4096
READ_ROW_CYCLES, WRITE_ROW_CYCLES = 50.0, 75.0  # fit: the place of the next row, from counters in L1
# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/data_movement/pad/device/kernels/dataflow/writer_pad_tiled.cpp,
# kernel_main: a tile of padding is filled byte by byte
PADDING_BYTE_CYCLES = 17.5  # fit
PAD_INDEX_CYCLES = 200.0


def _rows_ns(run: ProgramRun, access: Access, row: float, rows: float, cycles: float) -> float:
    """Rows in flight together, each addressed by counters, then a barrier."""
    return rows * max(access.issue_ns + run.chip.ns(cycles), row / access.bytes_per_ns) + access.wait_ns(row)


def _read_ns(run: ProgramRun, spec: Spec, row: float, rows: float) -> float:
    return _rows_ns(run, reads(kernels_of(run), spec), row, rows, READ_ROW_CYCLES)


def _write_ns(run: ProgramRun, spec: Spec, row: float, rows: float) -> float:
    return _rows_ns(run, writes(kernels_of(run), spec), row, rows, WRITE_ROW_CYCLES)


# tt-metal v0.77.0: tt_metal/common/work_split.cpp, merge_num_sticks_to_read
def rows_per_barrier(rows: int, stride: int) -> int:
    """How many of a core's rows are in flight together."""
    whole = round_up(max(rows, 1), TILE_SIZE)
    most = max(BATCH_BYTES // max(stride, 1), 1)
    return max((count for count in range(1, most + 1) if whole % count == 0), default=1)


@times("SliceDeviceOperation", "Slice", family=SLICE, settings=Planned)
def slice_(run: ProgramRun) -> Launch:
    """Whole tiles, rows, or values of rows."""
    source, target = run.inputs[0], run.outputs[0]
    if source.is_tile:
        return _tiles(run, source, target)
    if isinstance(run.settings, Planned) and run.settings.strided:
        return _strided(run, source, target)
    if source.is_sharded and target.is_sharded and not is_dram(source) and is_planned(run):
        return _sharded(run, source, target)
    return _rows(run, source, target, SLICE)


def _tiles(run: ProgramRun, source: Spec, target: Spec) -> Launch:
    """A tile is read and waited for, then the next one."""
    kernels = kernels_of(run)
    tiles, page = tiles_of(target), tile_size(target)
    cores, mine = split(tiles, run)
    writer = writes(kernels, target)
    write = writer.stream_ns(page) + kernels.flush_ns if is_planned(run) else writer.ns(page)
    last = writer.wait_ns(page) if is_planned(run) else 0.0
    traffic = read_traffic(source, tiles, page) + write_traffic(target, tiles, page)
    return moved(run, SLICE, cores, Stages(mine, reads(kernels, source).ns(page), 0.0, write), traffic, last)


def _rows(run: ProgramRun, source: Spec, target: Spec, family: str) -> Launch:
    rows, row = rows_of(target), row_size(target)
    cores, mine = split(rows, run)
    alignment = run.board.dram_alignment if is_dram(source) or is_dram(target) else run.board.l1_alignment
    batch = min(rows_per_barrier(mine, round_up(row, alignment)), mine)
    read = _read_ns(run, source, row, batch)
    write = _write_ns(run, target, row, batch)
    traffic = read_traffic(source, rows, row) + write_traffic(target, rows, row)
    return moved(run, family, cores, Stages(mine / batch, read, 0.0, write), traffic)


def _strided(run: ProgramRun, source: Spec, target: Spec) -> Launch:
    """Whole rows of the input are read one by one; the core picks its values byte by byte."""
    kernels = kernels_of(run)
    rows = rows_of(target)
    cores, mine = split(rows, run)
    picks = source.shape[-1] != target.shape[-1]
    read = reads(kernels, source).ns(row_size(source)) + (row_size(target) * kernels.move_ns if picks else 0.0)
    write = writes(kernels, target).stream_ns(row_size(target)) + kernels.flush_ns
    traffic = read_traffic(source, rows, row_size(source)) + write_traffic(target, rows, row_size(target))
    return moved(run, SLICE, cores, Stages(mine, read, 0.0, write), traffic)


def _sharded(run: ProgramRun, source: Spec, target: Spec) -> Launch:
    """Every core reads runs of rows from the shards that hold them."""
    cores = shard_cores(target)
    rows, row = div_up(rows_of(target), cores), row_size(target)
    whole = source.shape[-1] == target.shape[-1]
    height = target.shape[-2] if len(target.shape) > 1 else 1
    transactions = div_up(rows, height) if whole else rows
    reader = kernels_of(run).l1_read
    each = max(reader.issue_ns, rows * row / transactions / reader.bytes_per_ns)
    return moved(run, SLICE, cores, Stages(transactions, each), NO_TRAFFIC, reader.wait_ns(row))


# -- padding ----------------------------------------------------------------------------------------------------------


@times("PadDeviceOperation", "Pad", family=PAD, settings=Planned)
def pad(run: ProgramRun) -> Launch:
    """A tensor within a larger one of padding."""
    source, target = run.inputs[0], run.outputs[0]
    kernels = kernels_of(run)
    single = isinstance(run.settings, Planned) and not run.settings.multicore
    if source.is_tile:
        tiles, page = tiles_of(target), tile_size(target)
        cores, mine = (1, tiles) if single else split(tiles, run)
        share = min(tiles_of(source) / max(tiles, 1), 1.0)
        index = run.chip.ns(PAD_INDEX_CYCLES)
        read = share * reads(kernels, source).ns(page) + index
        write = writes(kernels, target).ns(page) + index
        fill = page / 4 * kernels.store_ns if single else page * run.chip.ns(PADDING_BYTE_CYCLES)
        traffic = read_traffic(source, tiles_of(source), page) + write_traffic(target, tiles, page)
        return moved(run, PAD, cores, Stages(mine, read, 0.0, write), traffic, fill)
    rows, row = rows_of(target), row_size(target)
    share = math.prod(source.shape[:-1]) / max(rows, 1)
    local = kernels.local
    if source.is_sharded and target.is_sharded and not is_dram(target):
        return _sharded_padding(run, source, target, share)
    cores, mine = (1, rows) if single else split(rows, run)
    batch = max(min(BATCH_BYTES // max(round_up(row, run.board.dram_alignment), 1), mine), 1)
    # Every row is filled with padding and waited for before values are read over it.
    read = batch * local.ns(row) + _read_ns(run, source, row_size(source), batch * share)
    write = _write_ns(run, target, row, batch)
    traffic = read_traffic(source, rows * share, row_size(source)) + write_traffic(target, rows, row)
    return moved(run, PAD, cores, Stages(mine / batch, read, 0.0, write), traffic)


def _sharded_padding(run: ProgramRun, source: Spec, target: Spec, share: float) -> Launch:
    """Rows of shards: one processor reads values from other cores, the other one copies padding."""
    kernels = kernels_of(run)
    cores = shard_cores(target)
    rows, row = div_up(rows_of(target), cores), row_size(target)
    if source.shape[-1] != target.shape[-1]:
        write = kernels.local.ns(row)
        copy = row_size(source) * kernels.move_ns
        return moved(run, PAD, cores, Stages(rows, 0.0, copy, write), NO_TRAFFIC)
    height = source.shape[-2] if len(source.shape) > 1 else 1
    values = rows * share
    chunks = max(values / height, 1.0)
    reader, local = kernels.l1_read, kernels.local
    read = chunks * max(reader.issue_ns, values / chunks * row / reader.bytes_per_ns) + reader.wait_ns(row)
    index = run.chip.ns(READ_ROW_CYCLES / 3)
    write = (rows - values) * (local.stream_ns(row) + index) + values * index + local.wait_ns(row)
    return moved(run, PAD, cores, Stages(1, max(read, write)), NO_TRAFFIC)
