"""Moves between memories: sharding, unsharding, resharding, copies and moves within L1."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ttnn_emulator.enums import Arch
from ttnn_emulator.hardware.boards import Board
from ttnn_emulator.tensors.shapes import div_up
from ttnn_emulator.tensors.spec import Spec
from ttnn_emulator.timing.calls import Call, prices
from ttnn_emulator.timing.chips import CHIPS, Chip, Path
from ttnn_emulator.timing.launches import Bound, Launch
from ttnn_emulator.timing.programs import ProgramRun, times
from ttnn_emulator.timing.releases import Release
from ttnn_emulator.timing.shards import Shards, bytes_of, shards_of

TO_SHARDS = "InterleavedToShardedDeviceOperation"
TO_SHARDS_PARTIAL = "InterleavedToShardedPartialDeviceOperation"
FROM_SHARDS = "ShardedToInterleavedDeviceOperation"
FROM_SHARDS_PARTIAL = "ShardedToInterleavedPartialDeviceOperation"
RESHARD = "ReshardDeviceOperation"
MOVE = "MoveDeviceOperation"
COPY = "CopyDeviceOperation"


@dataclass(frozen=True, slots=True)
class Traffic:
    """What all cores together can move; GB/s.

    dram_read, dram_write  through one of the two networks
    dram_core              one core's share of DRAM when many use it
    between_cores          from L1 to L1 of other cores, all to all
    l1_read, l1_write      pages that are interleaved over the L1 of all cores: of one core, and of all together
    row_write_ns           a row-major page to DRAM
    """

    dram_read: float
    dram_write: float
    dram_core: float
    between_cores: float
    l1_read: tuple[float, float]
    l1_write: tuple[float, float]
    row_write_ns: float


TRAFFIC = {
    # tt-metal v0.77.0: ttnn/cpp/ttnn/operations/data_movement/common/common.cpp, get_effective_dram_cores
    # tt-metal v0.77.0: ttnn/core/operation.cpp, "WH L1 Bisection bandwidth" (between_cores)
    # l1_read, l1_write: fits to targets of the library's tests of `ttnn.to_memory_config`
    Arch.WORMHOLE_B0: Traffic(190.0, 190.0, 28.0, 512.0, (16.8, 300.0), (10.0, 300.0), 36.7),
    Arch.BLACKHOLE: Traffic(358.0, 270.0, 17.5, 1120.0, (21.0, 500.0), (20.0, 500.0), 39.0),  # fit
    Arch.GRAYSKULL: Traffic(80.0, 80.0, 25.0, 512.0, (16.8, 300.0), (10.0, 300.0), 36.7),
}
# Copying a tile through the destination register to change its format, after all of a shard was read.
CONVERT_CYCLES = 80.0
# Rows that are not aligned like DRAM go through a scratchpad, this many at a time.
UNALIGNED_IN_FLIGHT = 4
WAITING_ROW_NS = 415.0  # fit


@times(TO_SHARDS, TO_SHARDS_PARTIAL, "InterleavedToSharded", family="interleaved_to_sharded", settings=Release)
def interleaved_to_sharded(run: ProgramRun) -> Launch:
    """Every core reads the pages of its shard, all in flight at the same time."""
    source, target = run.inputs[0], run.outputs[0]
    shards = shards_of(target) or shards_of(source)
    if shards is None:
        return copy_launch(source, target, run.board, run.code)
    chip, traffic = run.chip, TRAFFIC[run.board.arch]
    if not source.is_tile:
        return _rows_to_shards(run, shards)
    page = source.page_bytes
    from_dram = source.memory_config.is_dram
    path = chip.dram if from_dram else chip.l1_read
    data = shards.pages * max(path.issue_ns, page / _limit(path, shards.cores, from_dram, traffic, reads=True))
    compute = _conversion_ns(source, target, shards.pages, chip)
    total = chip.launch_ns + path.latency_ns + data + compute
    if target.memory_config.is_dram:
        limit = _limit(chip.dram, shards.cores, True, traffic, reads=False)
        total += shards.pages * max(chip.dram.issue_ns, shards.page / limit)
    return _moved(run.code, "interleaved_to_sharded", shards.cores, total, data, source, target, compute)


def _rows_to_shards(run: ProgramRun, shards: Shards) -> Launch:
    """Rows that may have to be shifted by a copy within the core: one after the other, or a few in flight."""
    source, chip, traffic = run.inputs[0], run.chip, TRAFFIC[run.board.arch]
    from_dram = source.memory_config.is_dram
    path = chip.dram if from_dram else chip.l1_read
    shift = path.latency_ns + chip.local.latency_ns
    if run.settings is Release.CURRENT:
        aligned = shards.page % (run.board.dram_alignment if from_dram else run.board.l1_alignment) == 0
        alone = path.issue_ns if aligned else shift / UNALIGNED_IN_FLIGHT + path.issue_ns
    else:
        # The older kernel waits for every row, on Blackhole always.
        alone = WAITING_ROW_NS if from_dram and run.board.arch is Arch.BLACKHOLE else path.issue_ns
    limit = _limit(path, shards.cores, from_dram, traffic, reads=True)
    data = shards.rows * max(alone, shards.page / limit)
    total = chip.launch_ns + path.latency_ns + data
    return _moved(run.code, "interleaved_to_sharded", shards.cores, total, data, source, run.outputs[0])


@times(FROM_SHARDS, FROM_SHARDS_PARTIAL, "ShardedToInterleaved", family="sharded_to_interleaved", settings=Release)
def sharded_to_interleaved(run: ProgramRun) -> Launch:
    """Every core writes the pages of its shard."""
    source, target = run.inputs[0], run.outputs[0]
    shards = shards_of(source)
    if shards is None:
        return copy_launch(source, target, run.board, run.code)
    chip, traffic = run.chip, TRAFFIC[run.board.arch]
    to_dram = target.memory_config.is_dram
    path = chip.dram if to_dram else chip.l1_write
    page = target.page_bytes if target.is_tile else shards.page
    issue = traffic.row_write_ns if to_dram and not source.is_tile else path.issue_ns
    limit = _limit(path, shards.cores, to_dram, traffic, reads=False)
    data = shards.pages * max(issue, page / limit)
    compute = _conversion_ns(source, target, shards.pages, chip)
    total = chip.launch_ns + data + compute + path.latency_ns / 2
    return _moved(run.code, "sharded_to_interleaved", shards.cores, total, data, source, target, compute)


@times(RESHARD, "Reshard", family="reshard", settings=Release)
def reshard(run: ProgramRun) -> Launch:
    """Every core of one side reads (or writes) what it needs of the other side's shards, with both processors."""
    source, target = run.inputs[0], run.outputs[0]
    chip, traffic = run.chip, TRAFFIC[run.board.arch]
    ours, theirs = shards_of(target), shards_of(source)
    if ours is None or theirs is None:
        return copy_launch(source, target, run.board, run.code)
    dram = source.memory_config.is_dram or target.memory_config.is_dram
    if target.memory_config.is_dram:
        ours, theirs = theirs, ours
    # Pages are contiguous along the width, and across rows where both sides hold whole rows.
    whole = ours.across == 1 and theirs.across == 1
    pages = min(ours.pages, theirs.pages) if whole else min(ours.columns, theirs.columns)
    transactions = div_up(ours.pages, max(pages, 1))
    path = chip.dram if dram else chip.l1_read
    limit = 2 * path.bytes_per_ns
    total_rate = traffic.dram_read if dram else traffic.between_cores
    limit = min(limit, total_rate / ours.cores)
    data = max(transactions / 2 * path.issue_ns, ours.bytes / limit)
    total = chip.launch_ns + path.latency_ns + data
    return _moved(run.code, "reshard", ours.cores, total, data, source, target)


@times(MOVE, "Move", family="move", settings=Release)
def move(run: ProgramRun) -> Launch:
    """A buffer moves up within L1, each shard by its own core; interleaved buffers page by page."""
    source, target = run.inputs[0], run.outputs[0]
    chip = run.chip
    shards = shards_of(source)
    if shards is None:
        return copy_launch(source, target, run.board, run.code, cores=run.cores, waits=True)
    data = shards.bytes / chip.local.bytes_per_ns
    total = MOVE_NS[run.board.arch] + chip.local.latency_ns + data
    return _moved(run.code, "move", shards.cores, total, data, source, target)


# One processor per core works, and nothing is sent: less than the launch of other programs.
MOVE_NS = {Arch.WORMHOLE_B0: 280.0, Arch.BLACKHOLE: 220.0, Arch.GRAYSKULL: 280.0}  # fit on Blackhole


def copy_launch(
    source: Spec, target: Spec, board: Board, code: str = COPY, *, cores: int = 0, waits: bool = False
) -> Launch:
    """A copy of interleaved pages by all cores; `waits`: every page has arrived before the next is read."""
    chip, traffic = CHIPS[board.arch], TRAFFIC[board.arch]
    cores = max(min(source.num_pages, cores or board.cores), 1)
    pages = div_up(source.num_pages, cores)
    compute = _conversion_ns(source, target, pages, chip)
    read, write = (_side(spec, chip, traffic, cores, reads=reads) for spec, reads in ((source, True), (target, False)))
    if waits:
        data = pages * (read[1] + source.page_bytes / chip.dram.bytes_per_ns)
    else:
        data = pages * max(read[0], write[0])
    total = chip.launch_ns + chip.dram.latency_ns + max(data, compute)
    return _moved(code, "move" if waits else "copy", cores, total, data, source, target, compute)


def _side(spec: Spec, chip: Chip, traffic: Traffic, cores: int, *, reads: bool) -> tuple[float, float]:
    """A page's time on the network, and its latency."""
    dram = spec.memory_config.is_dram
    path = chip.dram if dram else chip.l1_read if reads else chip.l1_write
    return max(path.issue_ns, spec.page_bytes / _limit(path, cores, dram, traffic, reads=reads)), path.latency_ns


def _limit(path: Path, cores: int, dram: bool, traffic: Traffic, *, reads: bool) -> float:
    """Bytes per nanosecond of one core, if `cores` move interleaved pages at the same time."""
    if dram:
        rate = traffic.dram_read if reads else traffic.dram_write
        return min(path.bytes_per_ns, traffic.dram_core, rate / max(cores, 1))
    alone, together = traffic.l1_read if reads else traffic.l1_write
    return min(alone, together / max(cores, 1))


def _conversion_ns(source: Spec, target: Spec, tiles: int, chip: Chip) -> float:
    return 0.0 if source.dtype is target.dtype else chip.ns(tiles * CONVERT_CYCLES)


def _moved(
    code: str, family: str, cores: int, total: float, data: float, source: Spec, target: Spec, compute: float = 0.0
) -> Launch:
    touched = [spec for spec in (source, target) if spec.memory_config.is_dram]
    dram_bytes = float(min(bytes_of(source), bytes_of(target)) * len(touched))
    bound = Bound.DRAM if touched else Bound.NOC
    if compute > data:
        bound = Bound.COMPUTE
    elif data < total / 2:
        bound = Bound.LATENCY
    return Launch(code, family, cores, total, bound, compute, data, dram_bytes=dram_bytes)


# -- operations -------------------------------------------------------------------------------------------------------


def run_of(code: str, source: Spec, target: Spec, board: Board, settings: Any = Release.CURRENT) -> ProgramRun:
    """A program of the current release that moves one tensor."""
    shards = shards_of(target) or shards_of(source)
    return ProgramRun(code, (source,), (target,), shards.cores if shards is not None else 1, board, settings=settings)


def change_of_memory(source: Spec, target: Spec, board: Board) -> list[Launch]:
    """The programs of `ttnn.to_memory_config`."""
    if source.memory_config == target.memory_config and source.dtype is target.dtype:
        return []
    sharded, wanted = source.is_sharded, target.is_sharded
    if sharded and wanted:
        if source.dtype is not target.dtype:
            return [copy_launch(source, target, board)]
        if _reshards(source, target):
            return [reshard(run_of(RESHARD, source, target, board))]
        between = Spec.of(target.shape, target.dtype, target.layout)
        return [
            sharded_to_interleaved(run_of(FROM_SHARDS, source, between, board)),
            interleaved_to_sharded(run_of(TO_SHARDS, between, target, board)),
        ]
    if wanted:
        return [interleaved_to_sharded(run_of(TO_SHARDS, source, target, board))]
    if sharded and source.memory_config.is_l1:
        return [sharded_to_interleaved(run_of(FROM_SHARDS, source, target, board))]
    return [copy_launch(source, target, board)]


def _reshards(source: Spec, target: Spec) -> bool:
    """Row-major shards of another width go through DRAM."""
    one, other = source.shard_spec, target.shard_spec
    if source.is_tile or one is None or other is None:
        return True
    same = source.memory_config.memory_layout is target.memory_config.memory_layout
    return same or one.shape[1] == other.shape[1]


@prices("ttnn.to_memory_config")
def to_memory_config(call: Call) -> Sequence[Launch]:
    return change_of_memory(call.tensors[0], call.outputs[0], call.board)


@prices("ttnn.interleaved_to_sharded")
def shard(call: Call) -> Sequence[Launch]:
    return [interleaved_to_sharded(run_of(TO_SHARDS, call.tensors[0], call.outputs[0], call.board))]


@prices("ttnn.sharded_to_interleaved")
def unshard(call: Call) -> Sequence[Launch]:
    source = call.tensors[0]
    if source.shard_spec is None:
        return []
    return [sharded_to_interleaved(run_of(FROM_SHARDS, source, call.outputs[0], call.board))]


@prices("ttnn.interleaved_to_sharded_partial")
def shard_partially(call: Call) -> Sequence[Launch]:
    return [interleaved_to_sharded(run_of(TO_SHARDS_PARTIAL, call.tensors[0], call.outputs[0], call.board))]


@prices("ttnn.sharded_to_interleaved_partial")
def unshard_partially(call: Call) -> Sequence[Launch]:
    return [sharded_to_interleaved(run_of(FROM_SHARDS_PARTIAL, call.tensors[0], call.outputs[0], call.board))]


@prices("ttnn.reshard")
def reshard_operation(call: Call) -> Sequence[Launch]:
    return [reshard(run_of(RESHARD, call.tensors[0], call.outputs[0], call.board))]


@prices("ttnn.move", "ttnn.reallocate")
def move_operation(call: Call) -> Sequence[Launch]:
    """The buffer goes to another place; nothing happens where it stays."""
    return [move(run_of(MOVE, call.tensors[0], call.outputs[0] if call.outputs else call.tensors[0], call.board))]
