"""Programs that stream tiles: every core reads a tile of each operand, waits for it, computes, and writes a tile.

The elementwise operations, reductions and scans of the library are all of this form. Their readers have a barrier after
every tile, so a core's reads never overlap: a tile takes the latency of its path and the time of its bytes.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ttnn_emulator.enums import Arch
from ttnn_emulator.hardware.boards import Board
from ttnn_emulator.tensors.shapes import DEFAULT_TILE, div_up
from ttnn_emulator.tensors.spec import Spec, tile_bytes
from ttnn_emulator.timing.chips import CHIPS
from ttnn_emulator.timing.launches import Bound, Launch
from ttnn_emulator.timing.shards import is_local
from ttnn_emulator.timing.tile_kernels import HANDOVER_CYCLES


@dataclass(frozen=True, slots=True)
class WaitingPath:
    """A path on which a core waits for every page before it asks for the next one."""

    latency_ns: float
    bytes_per_ns: float


@dataclass(frozen=True, slots=True)
class StreamCosts:
    """Constants of an architecture for programs of this form.

    dram, l1           paths to a page in DRAM and in another core's L1
    read_bytes_per_ns  all cores together, reading from DRAM tile by tile
    write_bytes_per_ns all cores together, writing to DRAM tile by tile
    start_ns           launch of a program whose tensors are in the cores' own L1, without its cores
    start_per_core_ns  what every core of the grid adds to it
    dataflow_ns        start of the reader and the writer, which compute their first tile from many arguments
    store_cycles       a store of 4 bytes by the reader, where it fills tiles itself
    """

    dram: WaitingPath
    l1: WaitingPath
    read_bytes_per_ns: float
    write_bytes_per_ns: float
    start_ns: float
    start_per_core_ns: float
    dataflow_ns: float
    store_cycles: float


# All fits to profiler rows (unary, binary, typecast, accumulation) and, for Wormhole, to a sweep of ttnn.exp, but for
# the latencies of Wormhole and the bandwidth of its L1:
# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/data_movement/common/common.cpp, get_cycles_for_transaction_size
COSTS = {
    Arch.WORMHOLE_B0: StreamCosts(
        dram=WaitingPath(358.0, 20.0),
        l1=WaitingPath(259.0, 28.0),
        read_bytes_per_ns=258.0,
        write_bytes_per_ns=107.0,
        start_ns=500.0,
        start_per_core_ns=3.0,
        dataflow_ns=800.0,
        store_cycles=5.5,
    ),
    Arch.BLACKHOLE: StreamCosts(
        dram=WaitingPath(388.0, 23.0),
        l1=WaitingPath(250.0, 50.0),
        read_bytes_per_ns=510.0,
        write_bytes_per_ns=249.0,
        start_ns=250.0,
        start_per_core_ns=3.0,
        dataflow_ns=80.0,
        store_cycles=2.8,
    ),
}
# No times of Grayskull are known: Wormhole's, with the bandwidth of its DRAM.
COSTS[Arch.GRAYSKULL] = replace(COSTS[Arch.WORMHOLE_B0], read_bytes_per_ns=86.0, write_bytes_per_ns=36.0)


@dataclass(frozen=True, slots=True)
class Traffic:
    """What one tensor moves per step of a core: `pages` transactions of `page_bytes`, to or from DRAM or L1."""

    page_bytes: float
    in_dram: bool
    pages: float = 1.0

    @property
    def bytes(self) -> float:
        return self.page_bytes * self.pages


@dataclass(frozen=True, slots=True)
class Stream:
    """The work of the busiest core: `steps` times read, compute and write.

    reads          tensors read per step; empty if they are in the core's own L1
    writes         tensors written per step
    compute_ns     the compute kernel per step
    once_ns        work of the reader before its first step, e.g. filling a tile with a number
    reader_ns      work of the reader in every step beside its reads, e.g. filling a tile with its first row
    waits_for_writes  whether the writer waits for every tile, not only for the last one
    all_steps      steps of all cores together, if not every core has as many as the busiest
    """

    cores: int
    steps: int
    reads: Sequence[Traffic]
    writes: Sequence[Traffic]
    compute_ns: float
    once_ns: float = 0.0
    reader_ns: float = 0.0
    waits_for_writes: bool = True
    all_steps: int = 0


def stream_launch(program: str, family: str, stream: Stream, board: Board, *, overhead_ns: float = 0.0) -> Launch:
    """The predicted time of a program that streams tiles."""
    costs, chip = COSTS[board.arch], CHIPS[board.arch]
    cores, steps = stream.cores, max(stream.steps, 1)
    read_dram = cores * sum([each.bytes for each in stream.reads if each.in_dram])
    write_dram = cores * sum([each.bytes for each in stream.writes if each.in_dram])
    read = _waiting_ns(stream.reads, costs, chip.dram.issue_ns) + stream.reader_ns
    write = _waiting_ns(stream.writes, costs, chip.dram.issue_ns)
    if not stream.waits_for_writes and stream.writes:
        write -= _latency_ns(stream.writes, costs)
    dram = read_dram / costs.read_bytes_per_ns + write_dram / costs.write_bytes_per_ns
    compute = stream.compute_ns
    pace = max(read, write, compute)
    rounds = (stream.all_steps or cores * steps) / cores
    middle = max((steps - 1) * pace, (rounds - 1) * dram)
    first = max(read, read_dram / costs.read_bytes_per_ns + _latency_ns(stream.reads, costs) + stream.reader_ns)
    last = 0.0
    if stream.writes:
        # DRAM controllers write a single tile of every core as fast as they read one.
        last = max(write, write_dram / costs.read_bytes_per_ns) + (
            0.0 if stream.waits_for_writes else _latency_ns(stream.writes, costs)
        )
    start = costs.start_ns + costs.start_per_core_ns * cores + overhead_ns
    total = start + max(first, stream.once_ns) + middle + compute + last
    return Launch(
        program,
        family,
        cores,
        total,
        _bound(max(pace, dram), compute, dram, stream),
        compute_ns=steps * compute,
        data_ns=max(steps * max(read, write), rounds * dram),
        dram_bytes=rounds * (read_dram + write_dram),
    )


def _waiting_ns(traffic: Sequence[Traffic], costs: StreamCosts, issue_ns: float) -> float:
    """Time of a step's transactions, which are issued together and waited for together."""
    total = 0.0
    for each in traffic:
        path = costs.dram if each.in_dram else costs.l1
        total += each.pages * max(each.page_bytes / path.bytes_per_ns, issue_ns if each.pages > 1 else 0.0)
    return total + _latency_ns(traffic, costs)


def _latency_ns(traffic: Sequence[Traffic], costs: StreamCosts) -> float:
    if not traffic:
        return 0.0
    return costs.dram.latency_ns if any(each.in_dram for each in traffic) else costs.l1.latency_ns


def _bound(pace: float, compute: float, dram: float, stream: Stream) -> Bound:
    if compute >= pace:
        return Bound.COMPUTE
    if dram >= pace:
        return Bound.DRAM
    return Bound.LATENCY if stream.reads or stream.writes else Bound.COMPUTE


# -- specs ------------------------------------------------------------------------------------------------------------


def tiles_of(spec: Spec) -> int:
    """Tiles of a tensor; ROW_MAJOR tensors count as if they were in tiles of 1024 values."""
    area = spec.tile.height * spec.tile.width if spec.is_tile else DEFAULT_TILE.height * DEFAULT_TILE.width
    values = 1
    for size in spec.padded_shape:
        values *= size
    return max(div_up(values, area), 1)


def shard_tiles(spec: Spec) -> int:
    """Tiles of the largest shard."""
    shard = spec.shard_spec
    if shard is None:
        return tiles_of(spec)
    height, width = shard.shape
    if not spec.is_tile:
        return max(div_up(height * width, DEFAULT_TILE.height * DEFAULT_TILE.width), 1)
    return div_up(height, spec.tile.height) * div_up(width, spec.tile.width)


_tile_bytes = functools.lru_cache(maxsize=256)(tile_bytes)


def bytes_of_tile(spec: Spec) -> int:
    return _tile_bytes(spec.tile if spec.is_tile else DEFAULT_TILE, spec.dtype)


def traffic_of(spec: Spec, tiles: float = 1.0) -> Traffic:
    """A tile of a tensor per step; `tiles` is how many of them, or which part of one on average."""
    if tiles < 1:
        return Traffic(bytes_of_tile(spec) * tiles, not spec.memory_config.is_l1)
    return Traffic(bytes_of_tile(spec), not spec.memory_config.is_l1, tiles)


# -- whole programs ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Operands:
    """A program of this form by its tensors: how often a tile of each is moved per step.

    steps           steps of all cores together; by default one per tile of the first output
    cycles          the compute kernel per step, without handing over
    one_by_one      the reader waits for each operand before it asks for the next
    largest_share   steps that cannot be divided among cores, e.g. the tiles of a row that one core sums
    """

    reads: Sequence[tuple[Spec, float]]
    writes: Sequence[tuple[Spec, float]]
    cycles: float
    steps: int | None = None
    one_by_one: bool = False
    largest_share: int = 1


def operands_launch(
    program: str, family: str, operands: Operands, board: Board, *, cores: int | None = None, overhead_ns: float = 0.0
) -> Launch:
    """The predicted time of a program that streams the tiles of several tensors."""
    costs, chip = COSTS[board.arch], CHIPS[board.arch]
    specs = [spec for spec, _ in (*operands.reads, *operands.writes)]
    in_place = bool(specs) and all(is_local(spec) for spec in specs)
    held = next((spec.shard_spec for spec in specs if is_local(spec)), None) if in_place else None
    steps = operands.steps or tiles_of(operands.writes[0][0])
    tasks = max(div_up(steps, operands.largest_share), 1)
    used = held.num_cores() if held is not None else min(tasks, cores or board.cores)
    share = div_up(tasks, used) * operands.largest_share
    reads = [] if in_place else [traffic_of(spec, part) for spec, part in operands.reads]
    writes = [] if in_place else [traffic_of(spec, part) for spec, part in operands.writes]
    waits = (len(reads) - 1) * costs.dram.latency_ns if operands.one_by_one and len(reads) > 1 else 0.0
    compute = chip.ns(operands.cycles + HANDOVER_CYCLES)
    stream = Stream(used, share, reads, writes, compute, reader_ns=waits, all_steps=steps if held is None else 0)
    return stream_launch(program, family, stream, board, overhead_ns=overhead_ns)
