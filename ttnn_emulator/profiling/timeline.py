"""Places programs on the predicted time axis of each chip: when the host enqueues them, when they start and end."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ttnn_emulator.execution.listeners import HostOperation, Transfer
from ttnn_emulator.hardware.activity import CallRecord
from ttnn_emulator.hardware.device import MeshDevice
from ttnn_emulator.profiling.recorder import DeviceCall, Entry, HostCall, Origin, TraceCall
from ttnn_emulator.timing.dispatch import DISPATCH
from ttnn_emulator.timing.launches import Launch
from ttnn_emulator.timing.pricing import launches_of_record

HOST_STEP_NS = 1.0  # between points of the host that take no predicted time, to keep their order


@dataclass(frozen=True, slots=True)
class Program:
    """A program that a call or a trace launched.

    only    it is the only program of its call
    cached  it had run before
    trace, replay  the trace that it belongs to, and which execution of it
    """

    device: MeshDevice
    origin: Origin
    record: CallRecord
    launch: Launch
    only: bool
    cached: bool
    trace: int | None = None
    replay: int | None = None


@dataclass(frozen=True, slots=True)
class ProgramRow:
    """A program on one chip, in predicted nanoseconds.

    number       counts programs and host operations
    host_ns      when the host began to enqueue it; `host_time_ns`: how long that took
    start_ns, end_ns  of its kernels
    gap_ns       from the end of the program before
    """

    number: int
    chip: int
    program: Program
    host_ns: float
    host_time_ns: float
    start_ns: float
    end_ns: float
    gap_ns: float


@dataclass(frozen=True, slots=True)
class HostRow:
    """An operation on the host, whose time is not predicted."""

    number: int
    device: MeshDevice | None
    origin: Origin
    operation: HostOperation
    host_ns: float


@dataclass(frozen=True, slots=True)
class SignpostRow:
    """A point that the script marked."""

    header: str
    message: str
    host_ns: float


Row = ProgramRow | HostRow | SignpostRow


def timeline(entries: Iterable[Entry]) -> list[Row]:
    """Rows of all entries, in their order."""
    axis = _Axis()
    return [row for entry in entries for row in axis.rows_of(entry)]


class _Axis:
    """The predicted time of the host and of each chip."""

    def __init__(self) -> None:
        self.host = 0.0
        self.free: dict[tuple[int, int], float] = {}  # by device and chip: the end of its last program
        self.numbers = 0
        self.device: MeshDevice | None = None  # the last one that did something

    def rows_of(self, entry: Entry) -> Iterator[Row]:
        if isinstance(entry, DeviceCall):
            yield from self._call(entry)
        elif isinstance(entry, TraceCall):
            yield from self._trace(entry)
        elif isinstance(entry, Transfer):
            self._transfer(entry)
        elif isinstance(entry, HostCall):
            self.host += HOST_STEP_NS
            self.numbers += 1
            yield HostRow(self.numbers, self.device, entry.origin, entry.operation, self.host)
        else:
            self.host += HOST_STEP_NS
            yield SignpostRow(entry.header, entry.message, self.host)

    def _call(self, entry: DeviceCall) -> Iterator[Row]:
        device = self.device = entry.device
        programs = programs_of(device, [entry.record], [entry.origin], cached=entry.cached)
        for program in programs:
            yield from self._enqueued(program, DISPATCH[device.board.arch].call_ns)

    def _trace(self, entry: TraceCall) -> Iterator[Row]:
        replay = entry.replay
        device = self.device = replay.device
        self.host += DISPATCH[device.board.arch].trace_ns
        where = {"trace": replay.trace_id, "replay": replay.execution}
        for program in programs_of(device, replay.calls, entry.origins, cached=True, **where):
            self.host += HOST_STEP_NS
            yield from self._enqueued(program, 0.0)

    def _enqueued(self, program: Program, took: float) -> Iterator[Row]:
        """The program on every chip of its device."""
        device, launch = program.device, program.launch
        began = self.host
        self.host += took
        for chip in device.get_device_ids():
            before = self.free.get((device.id(), chip))
            start = self.host
            if before is not None:
                start = max(start, before + DISPATCH[device.board.arch].gap_ns)
            end = self.free[device.id(), chip] = start + launch.kernel_ns
            self.numbers += 1
            gap = 0.0 if before is None else start - before
            yield ProgramRow(self.numbers, chip, program, began, took, start, end, gap)

    def _transfer(self, transfer: Transfer) -> None:
        """An upload takes the host's time; a download also waits for the programs before it."""
        device, spec = transfer.device, transfer.spec
        self.device = device
        dispatch = DISPATCH[device.board.arch]
        if transfer.is_upload:
            path = dispatch.write
        else:
            path = dispatch.read
            self.host = max([self.host, *[self.free.get((device.id(), chip), 0.0) for chip in device.get_device_ids()]])
        self.host += path.ns(spec.page_bytes, spec.num_pages) + path.latency_ns


def programs_of(
    device: MeshDevice,
    records: Sequence[CallRecord],
    origins: Sequence[Origin],
    *,
    cached: bool,
    trace: int | None = None,
    replay: int | None = None,
) -> list[Program]:
    """The programs of calls, in order."""
    found: list[Program] = []
    for record, origin in zip(records, origins):
        launches = launches_of_record(record, device.board) if record.runs_program else ()
        only = len(launches) == 1
        found += [Program(device, origin, record, launch, only, cached, trace, replay) for launch in launches]
    return found
