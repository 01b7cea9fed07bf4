"""Kernels that move pages: reads and writes with the barriers they wait at, and DRAM, which all cores share.

A page is a tile or a row. A kernel issues reads or writes of pages and waits for them at a barrier; how many it issues
between barriers differs by program, and often decides its time. Rows of performance sheets come from older libraries,
whose kernels wait more often.
"""

from __future__ import annotations

from dataclasses import dataclass

from ttnn_emulator.enums import Arch, BufferType
from ttnn_emulator.hardware.boards import Board
from ttnn_emulator.tensors.shapes import TILE_SIZE, div_up
from ttnn_emulator.tensors.spec import ROW_MAJOR_BYTES, Spec, tile_bytes
from ttnn_emulator.timing.calls import Call
from ttnn_emulator.timing.chips import CHIPS, Chip
from ttnn_emulator.timing.launches import Bound, Launch
from ttnn_emulator.timing.programs import PROGRAMS, ProgramRun, Timer
from ttnn_emulator.timing.releases import Release


@dataclass(frozen=True, slots=True)
class Access:
    """A core's reads or writes of one memory.

    issue_ns             a transaction with the address of its page, in the kernel
    bytes_per_ns         one core's bandwidth
    latency_ns           from issuing a transaction to its completion, without its bytes
    latency_ns_per_byte  the same, per byte: a page is complete when its last byte has arrived
    """

    issue_ns: float
    bytes_per_ns: float
    latency_ns: float
    latency_ns_per_byte: float

    def stream_ns(self, page_bytes: float, pages: float = 1.0) -> float:
        """Pages one after the other, without waiting for them."""
        return pages * max(self.issue_ns, page_bytes / self.bytes_per_ns)

    def wait_ns(self, page_bytes: float) -> float:
        """What a barrier adds after the last page was issued."""
        return self.latency_ns + page_bytes * self.latency_ns_per_byte

    def ns(self, page_bytes: float, pages: float = 1.0) -> float:
        """Pages in flight together, then a barrier."""
        return self.stream_ns(page_bytes, pages) + self.wait_ns(page_bytes)


@dataclass(frozen=True, slots=True)
class Kernels:
    """Costs of the kernels of one architecture.

    local           from a core's own L1 to its own L1
    flush_ns        until a posted write has left the core
    read_page_ns    what one page adds to reading from DRAM with all cores, beyond its bytes
    read_bytes_per_ns, write_bytes_per_ns  DRAM with all cores
    noc_bytes_per_ns  between all cores through one of the two networks
    store_ns        a store of the RISC-V core in a loop, of a word or less
    move_ns         a load and a store of the RISC-V core in a loop
    """

    dram_read: Access
    dram_write: Access
    l1_read: Access
    l1_write: Access
    local: Access
    flush_ns: float
    read_page_ns: float
    read_bytes_per_ns: float
    write_bytes_per_ns: float
    noc_bytes_per_ns: float
    store_ns: float
    move_ns: float


# Bandwidths of one core: those of `chips.py`.
# tt-metal v0.77.0: ttnn/core/operation.cpp, "WH L1 Bisection bandwidth": 512 GB/s
# All else is a fit.
_WORMHOLE = Kernels(
    dram_read=Access(45.0, 28.4, 390.0, 0.035),
    dram_write=Access(45.0, 28.4, 300.0, 0.060),
    l1_read=Access(45.0, 29.0, 250.0, 0.067),
    l1_write=Access(45.0, 27.8, 230.0, 0.060),
    local=Access(25.0, 27.8, 60.0, 0.030),
    flush_ns=60.0,
    read_page_ns=0.75,
    read_bytes_per_ns=240.0,
    write_bytes_per_ns=190.0,
    noc_bytes_per_ns=512.0,
    store_ns=2.75,
    move_ns=9.0,
)
_BLACKHOLE = Kernels(
    dram_read=Access(38.0, 50.4, 303.0, 0.066),
    dram_write=Access(33.0, 50.4, 245.0, 0.045),
    l1_read=Access(38.0, 50.2, 200.0, 0.050),
    l1_write=Access(33.0, 50.2, 200.0, 0.045),
    local=Access(24.0, 50.0, 73.0, 0.020),
    flush_ns=45.0,
    read_page_ns=1.3,
    read_bytes_per_ns=750.0,
    write_bytes_per_ns=260.0,
    noc_bytes_per_ns=1100.0,
    store_ns=2.04,
    move_ns=6.7,
)
KERNELS = {Arch.WORMHOLE_B0: _WORMHOLE, Arch.BLACKHOLE: _BLACKHOLE, Arch.GRAYSKULL: _WORMHOLE}


# A read of a few bytes if only its address differs from the one before.
# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/conv/conv2d/conv2d_op_program_factory_common.cpp,
# get_local_l1_noc_transfer_rate: 0.868 GB/s at 1.0 GHz and 1.124 GB/s at 1.35 GHz for reads of 16 bytes
REPEATED_READ_CYCLES = 18.8


@dataclass(frozen=True, slots=True)
class Planned:
    """What the emulator knows of a program that it planned, beyond specs.

    order       the dimensions of a permutation
    multicore   whether the program may use more than one core
    generated   the newer of two programs that do the same
    dim         the dimension that an operation works along
    strided     whether a slice leaves out values between those that it takes
    kind        the kind of an embedding
    """

    order: tuple[int, ...] = ()
    multicore: bool = True
    generated: bool = False
    dim: int | None = None
    strided: bool = False
    kind: str = ""


def is_planned(run: ProgramRun) -> bool:
    """Whether the emulator planned the program; otherwise it is a row of a sheet, of an older library."""
    return isinstance(run.settings, Planned)


def kernels_of(run: ProgramRun) -> Kernels:
    return KERNELS[run.board.arch]


def is_dram(spec: Spec) -> bool:
    return spec.memory_config.buffer_type is BufferType.DRAM


def reads(kernels: Kernels, spec: Spec) -> Access:
    """Reads of a tensor's pages, wherever they are."""
    return kernels.dram_read if is_dram(spec) else kernels.l1_read


def writes(kernels: Kernels, spec: Spec) -> Access:
    """Writes of a tensor's pages, wherever they are."""
    return kernels.dram_write if is_dram(spec) else kernels.l1_write


# -- sizes ------------------------------------------------------------------------------------------------------------


USERS_PER_TILE = TILE_SIZE  # when decoding, a row of a tile is the token of one user


def tiles_of(spec: Spec) -> int:
    """Tiles of a tensor in TILE layout; for other layouts, the tiles that its values would fill."""
    height, width = spec.physical_shape
    return div_up(height, TILE_SIZE) * div_up(width, TILE_SIZE)


def tile_size(spec: Spec) -> int:
    return tile_bytes(spec.tile, spec.dtype)


def rows_of(spec: Spec) -> int:
    """Rows of a tensor in ROW_MAJOR layout."""
    return spec.physical_shape[0]


def row_size(spec: Spec) -> int:
    """Bytes of a row of values."""
    return (spec.shape[-1] if spec.shape else 1) * ROW_MAJOR_BYTES[spec.dtype]


def shard_cores(spec: Spec) -> int:
    """Cores that hold shards with values; 0 for interleaved tensors."""
    shards = spec.shard_spec
    if shards is None:
        nd = spec.memory_config.nd_shard_spec
        return nd.num_cores() if nd is not None and spec.is_sharded else 0
    height, width = spec.physical_shape
    return min(div_up(height, shards.shape[0]) * div_up(width, shards.shape[1]), shards.num_cores()) or 1


def split(units: int, run: ProgramRun) -> tuple[int, int]:
    """Cores that work, and the units of the busiest one. Rows of sheets state the number of cores."""
    cores = min(units, run.board.cores) if is_planned(run) else run.cores
    return max(cores, 1), div_up(units, max(cores, 1))


# -- DRAM -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Traffic:
    """What all cores read from and write to DRAM, and to the L1 of other cores."""

    read_pages: float = 0.0
    read_bytes: float = 0.0
    write_bytes: float = 0.0
    l1_read_bytes: float = 0.0
    l1_write_bytes: float = 0.0

    def noc_ns(self, kernels: Kernels) -> float:
        """The time that the networks between cores need; reads and writes have one each."""
        return max(self.l1_read_bytes, self.l1_write_bytes) / kernels.noc_bytes_per_ns

    def dram_ns(self, kernels: Kernels) -> float:
        """The time that DRAM needs."""
        return (
            self.read_pages * kernels.read_page_ns
            + self.read_bytes / kernels.read_bytes_per_ns
            + self.write_bytes / kernels.write_bytes_per_ns
        )

    @property
    def total_bytes(self) -> float:
        return self.read_bytes + self.write_bytes

    def __add__(self, other: Traffic) -> Traffic:
        return Traffic(
            self.read_pages + other.read_pages,
            self.read_bytes + other.read_bytes,
            self.write_bytes + other.write_bytes,
            self.l1_read_bytes + other.l1_read_bytes,
            self.l1_write_bytes + other.l1_write_bytes,
        )


NO_TRAFFIC = Traffic()


def read_traffic(spec: Spec, pages: float, page_bytes: float) -> Traffic:
    total = pages * page_bytes
    return Traffic(pages, total) if is_dram(spec) else Traffic(l1_read_bytes=total)


def write_traffic(spec: Spec, pages: float, page_bytes: float) -> Traffic:
    total = pages * page_bytes
    return Traffic(write_bytes=total) if is_dram(spec) else Traffic(l1_write_bytes=total)


# -- programs ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Stages:
    """The work of the busiest core: `items`, each read, computed and written by three kernels.

    single_buffered  a kernel starts an item only when the next kernel has taken the one before
    """

    items: float
    read_ns: float = 0.0
    compute_ns: float = 0.0
    write_ns: float = 0.0
    single_buffered: bool = False

    @property
    def total_ns(self) -> float:
        first = self.read_ns + self.compute_ns + self.write_ns
        if self.single_buffered:
            step = max(self.read_ns + self.compute_ns, self.compute_ns + self.write_ns)
        else:
            step = max(self.read_ns, self.compute_ns, self.write_ns)
        return first + max(self.items - 1, 0) * step


def moved(run: ProgramRun, family: str, cores: int, stages: Stages, traffic: Traffic, extra_ns: float = 0.0) -> Launch:
    """The launch of a program: its busiest core or DRAM, whichever takes longer.

    extra_ns  time of the busiest core before or after its items
    """
    chip: Chip = CHIPS[run.board.arch]
    kernels = KERNELS[run.board.arch]
    core = stages.total_ns + extra_ns
    dram, noc = traffic.dram_ns(kernels), traffic.noc_ns(kernels)
    # DRAM is idle until the first pages are requested, and done before the last ones are complete.
    ends = min(core, chip.dram.latency_ns * 2) if dram else 0.0
    total = chip.launch_ns + max(core, dram + ends, noc + chip.l1_read.latency_ns)
    data, compute = stages.items * max(stages.read_ns, stages.write_ns), stages.items * stages.compute_ns
    if dram + ends >= core and dram >= noc:
        bound = Bound.DRAM
    elif noc >= core:
        bound = Bound.NOC
    elif compute >= data:
        bound = Bound.COMPUTE
    else:
        bound = Bound.LATENCY
    return Launch(run.code, family, cores, total, bound, compute, data + extra_ns, dram_bytes=traffic.total_bytes)


# -- programs that the emulator planned -------------------------------------------------------------------------------

PLAIN = Planned()


def planned_run(
    call: Call,
    code: str,
    inputs: tuple[Spec, ...],
    outputs: tuple[Spec, ...] | None = None,
    settings: Planned = PLAIN,
) -> ProgramRun:
    """A program of a call; its timer works out how many cores it uses."""
    return ProgramRun(code, inputs, call.outputs if outputs is None else outputs, 0, call.board, settings=settings)


def run_planned(
    code: str, source: Spec, result: Spec, board: Board, settings: Planned = PLAIN, *, fallback: Timer
) -> Launch:
    """The launch of a program that turns one tensor into another, of any family."""
    found = PROGRAMS.get(code)
    cores = shard_cores(result) or shard_cores(source) or max(min(result.num_pages, board.cores), 1)
    if found is None:
        return fallback(ProgramRun(code, (source,), (result,), cores, board, settings=PLAIN))
    known = settings if found.settings is Planned else Release.CURRENT if found.settings is Release else None
    return found.timer(ProgramRun(code, (source,), (result,), cores, board, settings=known))
