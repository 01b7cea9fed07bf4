"""The graph of a run for the memory view: calls, the programs that they launch, and the source lines of the callers."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ttnn_emulator.execution.graph import GraphRecorder
from ttnn_emulator.execution.listeners import HostOperation, OperationEvent, Replay
from ttnn_emulator.hardware.core_grid import CoreRangeSet, num_cores_to_corerangeset
from ttnn_emulator.library.graph import call_records
from ttnn_emulator.library.reports.stack_sources import FRAME
from ttnn_emulator.profiling.device_numbers import DeviceNumbers
from ttnn_emulator.tensors.storage import Storage, cores_of
from ttnn_emulator.tensors.tensor import Tensor
from ttnn_emulator.timing.pricing import launches_of_record

if TYPE_CHECKING:
    from ttnn_emulator.hardware.device import MeshDevice
    from ttnn_emulator.tensors.storage import Placement
    from ttnn_emulator.timing.launches import Launch

LONGEST_ARGUMENT = 2_000  # characters; an argument may be a list of values


class ProgramGraph(GraphRecorder):
    """A captured graph whose calls contain their programs, by the profiler's names.

    A call begins with its programs, and its outputs are allocated inside the last of them, as in the library. During
    the capture of a trace no program runs; an execution of the trace is a call that contains them.
    """

    def __init__(self) -> None:
        self.numbers = DeviceNumbers()
        self.records: list[call_records.Record] = []  # of outermost calls
        self.stack: list[str] | None = None  # of the next calls, if it is not that of Python
        self._events: list[OperationEvent] = []
        self._begun: list[bool] = []  # whether the programs of these calls are in the graph
        self._open_program: tuple[Launch, int] | None = None  # with the bytes of its circular buffers
        self._one_call_at_a_time = threading.RLock()
        super().__init__()

    def number_of(self, device: MeshDevice) -> int:
        return self.numbers.of(device)[0]

    def chips_of(self, device: MeshDevice) -> list[dict[str, int]]:
        return [{"device_id": number} for number in self.numbers.of(device)]

    @property
    def source_files(self) -> set[str]:
        """The files of all source lines."""
        traces = ("".join(record.get("python_stack_trace", ())) for record in self.records)
        return {file for trace in traces for file, _ in FRAME.findall(trace)}

    # -- calls ----------------------------------------------------------------------------------------------------

    def started(self, event: OperationEvent) -> None:
        self._one_call_at_a_time.acquire()
        if not self._events:
            self.records.append(self._record(event.name, event.arguments))
        self._events.append(event)
        self._begun.append(False)
        super().started(event)

    def ended(self, event: OperationEvent) -> None:
        super().ended(event)
        self._events.pop()
        self._begun.pop()
        if not self._events:
            self._note_result(self.records[-1], event)
        self._one_call_at_a_time.release()

    def _note_result(self, record: call_records.Record, event: OperationEvent) -> None:
        if event.error is None:
            record["output_tensor_ids"] = call_records.tensor_ids(event.result)
        else:
            call_records.record_python_operation_error(record, type(event.error).__name__, str(event.error))

    def allocated(self, storage: Storage, placement: Placement) -> None:
        if self._events:
            self._begin_programs(self._events[-1])
        super().allocated(storage, placement)

    @contextmanager
    def call(self, name: str, arguments: Mapping[str, Any], inputs: Sequence[Tensor] = ()) -> Iterator[list[Tensor]]:
        """A call that is no operation of a device; what the block appends to the list are its results."""
        results: list[Tensor] = []
        with self._one_call_at_a_time:
            self.records.append(self._record(name, {**arguments, **_numbered(inputs)}))
            nodes = [self._tensor(tensor) for tensor in inputs]
            self.open_function(name, {"inputs": str(len(nodes))}, [argument_text(each) for each in arguments], nodes)
            try:
                yield results
            finally:
                self.close_function({}, results)
                self.records[-1]["output_tensor_ids"] = call_records.tensor_ids(results)

    def replayed(self, replay: Replay) -> None:
        with self.call("ttnn.execute_trace", {"trace_id": replay.trace_id}):
            for call in replay.calls:
                for launch in launches_of_record(call, replay.device.board):
                    self.open_function(launch.program, {"device_id": self.number_of(replay.device)})
                    self.close_function({})

    def ran_on_host(self, operation: HostOperation) -> None:
        with self.call(operation.name, {}):
            pass

    def _record(self, name: str, arguments: Mapping[str, Any]) -> call_records.Record:
        """A call with its arguments as text, its input tensors, and the stack of its caller."""
        given = {key: value for key, value in arguments.items() if value is not None}
        return {
            "name": name,
            "arguments": {key: argument_text(value) for key, value in given.items()},
            "input_tensor_ids": call_records.tensor_ids(list(given.values())),
            "python_stack_trace": call_records.callers() if self.stack is None else self.stack,
        }

    # -- programs -------------------------------------------------------------------------------------------------

    def program_ran(self, event: OperationEvent) -> None:
        if event.error is None:
            self._begin_programs(event)
        if self._open_program is None:
            super().program_ran(event)
            return
        (launch, size), self._open_program = self._open_program, None
        if event.error is None:
            self._circular_buffers(launch, size, event)
            self.close_function({}, [event.result])
        else:
            self.close_function({"aborted": "true", "abort_reason": str(event.error)})

    def _begin_programs(self, event: OperationEvent) -> None:
        """All programs of a call; the last of them stays open."""
        device = event.device
        if self._begun[-1] or device is None or event.record is None or device.capturing is not None:
            return
        self._begun[-1] = True
        launches = launches_of_record(event.record, device.board)
        programs = list(zip(launches, _circular_bytes(event, len(launches))))
        inputs = self.nodes[self.open[-1]]["input_tensors"]
        for number, (launch, size) in enumerate(programs, 1):
            self.open_function(launch.program, {"device_id": self.number_of(device)}, inputs=inputs)
            inputs = []  # what the next program reads is not known
            if number < len(programs):
                self._circular_buffers(launch, size, event)
                self.close_function({})
            else:
                self._open_program = launch, size

    def _circular_buffers(self, launch: Launch, size: int, event: OperationEvent) -> None:
        if size and event.device is not None:
            self.circular_buffers(size, event.device, _cores_of(launch, event))


def _circular_bytes(event: OperationEvent, programs: int) -> list[int]:
    """Bytes of circular buffers per core, of each program; of several programs only the last one's are known."""
    if len(event.l1_of_stages) == programs or programs == 0:
        return list(event.l1_of_stages)
    return [0] * (programs - 1) + [max(event.l1_bytes, *event.l1_of_stages, 0)]


def _cores_of(launch: Launch, event: OperationEvent) -> CoreRangeSet:
    """Those of a sharded tensor if there are as many, otherwise the first cores of the grid, row by row."""
    assert event.device is not None
    for tensor in (*event.arguments.values(), event.result):
        cores = cores_of(tensor._spec) if isinstance(tensor, Tensor) and tensor._spec.memory_config.is_l1 else None
        if cores is not None and cores.num_cores() == launch.cores:
            return cores
    board = event.device.board
    return num_cores_to_corerangeset(min(max(launch.cores, 1), board.cores), board.grid, row_wise=True)


def _numbered(tensors: Sequence[Tensor]) -> dict[str, Tensor]:
    return {f"arg{number}": tensor for number, tensor in enumerate(tensors)}


def argument_text(value: Any) -> str:
    """An argument on one line; tensors by spec and number."""
    if isinstance(value, Tensor):
        return f"{value.brief()} tensor_id={value.tensor_id}"
    if isinstance(value, list | tuple) and any(isinstance(item, Tensor) for item in value):
        return f"[{', '.join(map(argument_text, value))}]"
    text = call_records.as_text(value)
    return text if len(text) <= LONGEST_ARGUMENT else f"{text[:LONGEST_ARGUMENT]} … ({len(text)} characters)"
