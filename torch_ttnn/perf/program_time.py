"""Predicted time of compiled programs on every board, without running them: per call, and in total.

A prediction is for one chip and one call of the model. Weights are uploaded once and are not counted. Operations that
stay on the host have no predicted time.
"""

from __future__ import annotations

import dataclasses
import enum
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from torch_ttnn.compiler.ir.arguments import leaves
from torch_ttnn.compiler.ir.metadata import PATH, REASON, SPEC, is_download, is_upload
from torch_ttnn.compiler.runtime.program import Program
from torch_ttnn.compiler.runtime.trace import Parts
from torch_ttnn.perf.device_calls import DeviceCall, device_calls, one_chip, typing_device
from ttnn_emulator import EmulatorError, MeshDevice, Tensor
from ttnn_emulator.hardware.boards import Board, board_names, find_board
from ttnn_emulator.timing import dispatch
from ttnn_emulator.timing.calibration import MEASURED, UNMEASURED
from ttnn_emulator.timing.dispatch import DISPATCH, EndToEnd, Iteration, Transfer
from ttnn_emulator.timing.launches import Launch
from ttnn_emulator.timing.pricing import launches_of_record


class Mode(enum.Enum):
    """How the calls of a program reach the device."""

    AS_IS = "as is"
    TRACED = "traced"
    TWO_QUEUES = "traced, two queues"

    __hash__ = object.__hash__


_END_TO_END = {
    Mode.AS_IS: dispatch.as_is,
    Mode.TRACED: dispatch.traced,
    Mode.TWO_QUEUES: dispatch.traced_on_two_queues,
}


@dataclass(frozen=True)
class CallTime:
    """One call of the program and the programs that it launches on the chip; none for views."""

    node: str
    operation: str
    launches: tuple[Launch, ...]

    @cached_property
    def kernels_ns(self) -> float:
        return sum(launch.kernel_ns for launch in self.launches)

    @property
    def longest(self) -> Launch | None:
        """The launch that takes most of the time."""
        return max(self.launches, key=lambda launch: launch.kernel_ns, default=None)


@dataclass(frozen=True)
class ProgramTime:
    """Predicted time of one call of a program on one chip of a board.

    uploads, downloads  tensors that cross between host and device in a call, weights not included
    host_ops            operations on the host, whose time is not part of any number here
    can_trace           whether a trace can replay the program: nothing on the host is between its device calls
    """

    board: str
    calls: tuple[CallTime, ...]
    uploads: tuple[Transfer, ...]
    downloads: tuple[Transfer, ...]
    host_ops: int
    can_trace: bool

    @property
    def launches(self) -> Iterable[Launch]:
        return (launch for call in self.calls for launch in call.launches)

    def end_to_end(self, mode: Mode) -> EndToEnd:
        """Latency and interval of calls with all their transfers; a program that cannot be traced runs as is."""
        iteration = Iteration(self.uploads, [launch.kernel_ns for launch in self.launches], self.downloads)
        return _END_TO_END[mode if self.can_trace else Mode.AS_IS](iteration, self._dispatch)

    @property
    def transfers_ns(self) -> float:
        up = dispatch.transfer_ns(self._dispatch.write, self.uploads)
        return up + dispatch.transfer_ns(self._dispatch.read, self.downloads)

    @property
    def gap_ns(self) -> float:
        """From the end of a program to the start of the next one, in a trace."""
        return self._dispatch.gap_ns

    @property
    def _dispatch(self) -> dispatch.Dispatch:
        return DISPATCH[find_board(self.board).arch]


@dataclass(frozen=True)
class Unpredicted:
    """No time on a board: it refuses a call of the program, or the timing model fails on one; with the reason."""

    board: str
    reason: str


@dataclass(frozen=True)
class ModelTime:
    """Predicted time of all programs of one model on a board: forward and backward, or those between graph breaks.

    Each program runs once. Their times add up.
    """

    board: str
    parts: tuple[ProgramTime, ...] = field(repr=False)

    @cached_property
    def programs(self) -> int:
        """Programs launched on the chip."""
        return sum(1 for part in self.parts for _ in part.launches)

    @cached_property
    def kernels_ns(self) -> float:
        return sum(call.kernels_ns for part in self.parts for call in part.calls)

    @cached_property
    def gaps_ns(self) -> float:
        return sum(part.gap_ns * sum(1 for _ in part.launches) for part in self.parts)

    @property
    def device_ns(self) -> float:
        """From the first program to the last, if the device never waits for the host."""
        return self.kernels_ns + self.gaps_ns

    @cached_property
    def transfers_ns(self) -> float:
        return sum(part.transfers_ns for part in self.parts)

    @property
    def host_ops(self) -> int:
        return sum(part.host_ops for part in self.parts)

    @property
    def can_trace(self) -> bool:
        return all(part.can_trace for part in self.parts)

    def end_to_end(self, mode: Mode) -> EndToEnd:
        """Latency of one call, and the interval of calls that follow each other."""
        found = [part.end_to_end(mode) for part in self.parts]
        return EndToEnd(sum(each.latency_ns for each in found), sum(each.interval_ns for each in found))

    @cached_property
    def error(self) -> float:
        """Relative error of the kernels' time: the mean of what the timing model states, weighted by time.

        Programs of one family are wrong in the same direction, so their errors add up.
        """
        least = 0.0 if self.is_measured_board else UNMEASURED
        stated = sum(launch.kernel_ns * max(launch.error, least) for launch in self._launches())
        return stated / self.kernels_ns if self.kernels_ns else 0.0

    @property
    def is_measured_board(self) -> bool:
        """Whether times of the board's chip were measured on silicon."""
        return find_board(self.board).arch in MEASURED

    @cached_property
    def uncalibrated_share(self) -> float:
        """Share of the kernels' time that no measurement on silicon calibrates."""
        if not self.is_measured_board:
            return 1.0 if self.kernels_ns else 0.0
        found = sum(launch.kernel_ns for launch in self._launches() if not launch.calibrated)
        return found / self.kernels_ns if self.kernels_ns else 0.0

    def by_operation(self) -> dict[str, tuple[int, float]]:
        """Calls and kernel nanoseconds of every operation, longest first."""
        counts: Counter[str] = Counter()
        kernels: Counter[str] = Counter()
        for part in self.parts:
            for call in part.calls:
                counts[call.operation] += 1
                kernels[call.operation] += call.kernels_ns  # type: ignore[assignment]
        return {name: (counts[name], float(kernels[name])) for name, _ in kernels.most_common()}

    def _launches(self) -> Iterable[Launch]:
        return (launch for part in self.parts for launch in part.launches)


class _NoPrice(Exception):
    """The timing model failed on an operation."""


Times = Mapping[str, ProgramTime | Unpredicted]  # by board


def program_times(programs: Sequence[Program], boards: Sequence[str] | None = None) -> list[Times]:
    """For each program, its predicted time by board; by default on every board of the table and on its own.

    >>> import torch, torch_ttnn
    >>> with torch.no_grad():
    ...     programs = torch_ttnn.explain(torch.nn.Linear(64, 64), torch.ones(32, 64)).programs
    >>> [time] = program_times(programs, ["n150"])
    >>> [call.operation for call in time["n150"].calls]
    ['ttnn.linear']
    """
    own = [program.target.typing.board.name for program in programs]
    names = dict.fromkeys([*board_names(), *own]) if boards is None else boards
    found: list[dict[str, ProgramTime | Unpredicted]] = [{} for _ in programs]
    same: dict[Board, list[ProgramTime | Unpredicted]] = {}
    for name in names:
        board = find_board(name)
        key = one_chip(board)
        if key not in same:
            same[key] = _on_board(programs, board)
        for times, time in zip(found, same[key]):
            times[name] = dataclasses.replace(time, board=name)
    return list(found)


def summed(times: Iterable[ProgramTime | Unpredicted], board: str) -> ModelTime | Unpredicted:
    """The time of all programs of one model on a board."""
    parts = list(times)
    refused = next((part for part in parts if isinstance(part, Unpredicted)), None)
    return refused or ModelTime(board, tuple([part for part in parts if isinstance(part, ProgramTime)]))


def _on_board(programs: Sequence[Program], board: Board) -> list[ProgramTime | Unpredicted]:
    found: list[ProgramTime | Unpredicted] = []
    device: MeshDevice | None = None
    for program in programs:
        device = device or typing_device(board, program.target.typing)  # one for all, which share plans of calls
        try:
            calls = [_timed(each, board) for each in device_calls(program, device)]
        except (EmulatorError, _NoPrice) as error:
            found.append(Unpredicted(board.name, str(error).splitlines()[0]))
            continue
        found.append(_program_time(program, board, calls))
    return found


def _program_time(program: Program, board: Board, calls: Sequence[CallTime]) -> ProgramTime:
    nodes = program.graph.nodes
    parts = Parts(program.graph, program.weight_places)
    return ProgramTime(
        board.name,
        tuple(calls),
        tuple([_transfer(SPEC[node]) for node in nodes if is_upload(node)]),
        tuple([_transfer(SPEC[node.args[0]]) for node in nodes if is_download(node)]),  # type: ignore[arg-type]
        sum(1 for node in nodes if REASON.on(node)),
        parts.is_whole,
    )


def _transfer(typed: Tensor) -> Transfer:
    [tensor] = [each for each in leaves(typed) if isinstance(each, Tensor)]
    return Transfer(tensor.spec.num_pages, tensor.spec.page_bytes)


def _timed(call: DeviceCall, board: Board) -> CallTime:
    launches: list[Launch] = []
    for record in call.operations:
        try:
            launches += launches_of_record(record, board)
        except Exception as error:
            raise _NoPrice(f"no time for {record.operation}: {type(error).__name__}: {error}") from error
    return CallTime(call.node.name, PATH[call.node], tuple(launches))
