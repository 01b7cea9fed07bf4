"""Records what devices do, in order: calls of operations, replays of traces, transfers, host operations, signposts."""

from __future__ import annotations

import pathlib
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from ttnn_emulator.execution import listeners
from ttnn_emulator.execution.call_context import context
from ttnn_emulator.execution.listeners import HostOperation, OperationEvent, Replay, Transfer
from ttnn_emulator.hardware.activity import CallRecord
from ttnn_emulator.hardware.device import MeshDevice

_OWN_CODE = str(pathlib.Path(__file__).parents[1])


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a device program comes from.

    operation  the operation that was called, which may call others
    source     `file:line` of the caller
    module     the model's module, where it is known
    """

    operation: str
    source: str = ""
    module: str = ""


@dataclass(frozen=True, slots=True)
class DeviceCall:
    """A device operation that ran; `cached`: its program had run before."""

    origin: Origin
    record: CallRecord
    device: MeshDevice
    cached: bool


@dataclass(frozen=True, slots=True)
class TraceCall:
    """An execution of a trace, with the origin of each of its calls."""

    replay: Replay
    origins: Sequence[Origin]


@dataclass(frozen=True, slots=True)
class HostCall:
    """An operation that torch computed on the host."""

    origin: Origin
    operation: HostOperation


@dataclass(frozen=True, slots=True)
class Signpost:
    """A point that the script marked."""

    header: str
    message: str


Entry = DeviceCall | TraceCall | HostCall | Signpost | Transfer


class Recorder(listeners.Listener):
    """A listener that records entries. `origin_of` may know more about a call than its Python stack."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self._called = threading.local()
        self._seen: set[int] = set()
        self._kept: list[CallRecord] = []  # whose ids are in `_seen`
        self._traced: dict[tuple[int, int], dict[int, Origin]] = {}  # by device and trace, then by call

    def origin_of(self, event: OperationEvent) -> Origin:
        """The origin of an operation that is called from outside of the library."""
        return Origin(event.name, caller())

    def started(self, event: OperationEvent) -> None:
        if event.depth == 0:
            self._called.origin = self.origin_of(event)

    def ended(self, event: OperationEvent) -> None:
        record, device = event.record, event.device
        if record is None or device is None or event.error is not None or not record.runs_program:
            return
        if context.specs_only:  # a compiler that types its calls
            return
        origin = getattr(self._called, "origin", None) or Origin(event.name)
        if device.capturing is not None:
            calls = device.capturing.activity.calls
            if calls and calls[-1] is record:
                self._traced.setdefault((device.id(), device.capturing.id), {})[len(calls) - 1] = origin
            return
        cached = id(record) in self._seen
        if not cached:
            self._seen.add(id(record))
            self._kept.append(record)
        self.entries.append(DeviceCall(origin, record, device, cached))

    def replayed(self, replay: Replay) -> None:
        known = self._traced.get((replay.device.id(), replay.trace_id), {})
        origins = [known.get(number) or Origin(call.operation) for number, call in enumerate(replay.calls)]
        self.entries.append(TraceCall(replay, origins))

    def transferred(self, transfer: Transfer) -> None:
        self.entries.append(transfer)

    def ran_on_host(self, operation: HostOperation) -> None:
        self.entries.append(HostCall(Origin(operation.name, caller()), operation))

    def signposted(self, header: str, message: str) -> None:
        self.entries.append(Signpost(header, message))

    @contextmanager
    def recording(self) -> Iterator[Recorder]:
        """Record everything within this block."""
        with listeners.listening(self):
            yield self


def caller(*libraries: str) -> str:
    """`file:line` of the innermost frame outside of the emulator, of torch, and of these folders."""
    frame = sys._getframe(1)
    while frame is not None:
        name = frame.f_code.co_filename
        if not (_is_library(name) or name.startswith(libraries)):
            return f"{name}:{frame.f_lineno}"
        frame = frame.f_back  # type: ignore[assignment]
    return ""


def _is_library(file: str) -> bool:
    if file.startswith((_OWN_CODE, "<frozen", "<string>")):
        return True
    return "/site-packages/torch/" in file or file.endswith("/contextlib.py")


def plain_arguments(record: CallRecord) -> Mapping[str, Any]:
    """The arguments of a call that are neither tensors nor left at None."""
    from ttnn_emulator.tensors.spec import Spec

    def holds_specs(value: Any) -> bool:
        return isinstance(value, Spec) or (isinstance(value, tuple) and any(isinstance(each, Spec) for each in value))

    return {name: value for name, value in record.arguments.items() if value is not None and not holds_specs(value)}
