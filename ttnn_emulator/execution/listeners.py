"""Listeners: profilers, graph captures and tests are notified of every operation and every buffer."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ttnn_emulator.hardware.activity import CallRecord
    from ttnn_emulator.hardware.device import MeshDevice
    from ttnn_emulator.tensors.spec import Spec
    from ttnn_emulator.tensors.storage import Placement, Storage
    from ttnn_emulator.timing.launches import Launch

active: list[Listener] = []


@dataclass
class OperationEvent:
    """One call. `result`, `end` and, of a failed call, `error` are set when it has ended.

    is_composite   calls other operations, which are reported too, one level deeper
    l1_bytes       bytes of circular buffers in the L1 of every core that the program uses
    l1_of_stages   the same for each program of a call whose memory changes between its programs
    record         of a device operation: the call by its specs, for the clock
    device         the device that it runs on
    """

    name: str
    is_composite: bool
    arguments: Mapping[str, Any]
    depth: int
    start: float = field(default_factory=time.perf_counter)
    end: float = 0.0
    result: Any = None
    error: BaseException | None = None
    l1_bytes: int = 0
    l1_of_stages: tuple[int, ...] = ()
    record: CallRecord | None = None
    device: MeshDevice | None = None

    @property
    def seconds(self) -> float:
        """How long the call took on this machine."""
        return self.end - self.start

    @property
    def launches(self) -> tuple[Launch, ...]:
        """The programs that the call launches on the chip, with their predicted times."""
        if self.record is None or self.device is None:
            return ()
        from ttnn_emulator.timing.pricing import launches_of_record

        return launches_of_record(self.record, self.device.board)

    @property
    def device_ns(self) -> float:
        """The predicted time of its programs on the chip."""
        return sum(launch.kernel_ns for launch in self.launches)


@dataclass(frozen=True, slots=True)
class Transfer:
    """A tensor that crossed between the host and a device."""

    spec: Spec
    device: MeshDevice
    is_upload: bool


@dataclass(frozen=True, slots=True)
class Replay:
    """One execution of a trace: its calls in order; the first execution has number 1."""

    device: MeshDevice
    trace_id: int
    execution: int
    calls: Sequence[CallRecord]


@dataclass(frozen=True, slots=True)
class HostOperation:
    """An operation that torch computed on the host in place of the device."""

    name: str
    inputs: Sequence[Spec]
    outputs: Sequence[Spec]


class Listener:
    """Base class; override the events of interest."""

    def started(self, event: OperationEvent) -> None:
        """An operation is about to run."""

    def ended(self, event: OperationEvent) -> None:
        """An operation has returned or failed."""

    def allocated(self, storage: Storage, placement: Placement) -> None:
        """A buffer was allocated on a device."""

    def freed(self, storage: Storage) -> None:
        """A buffer was freed."""

    def transferred(self, transfer: Transfer) -> None:
        """A tensor crossed between the host and a device."""

    def replayed(self, replay: Replay) -> None:
        """A trace is about to be executed."""

    def ran_on_host(self, operation: HostOperation) -> None:
        """An operation ran on the host in place of the device."""

    def signposted(self, header: str, message: str) -> None:
        """The script marked a point with `tracy.signpost`."""


class _Depth(threading.local):
    value = 0


_depth = _Depth()


@contextmanager
def listening(listener: Listener) -> Iterator[Listener]:
    """Within this block, `listener` is notified of every operation.

    >>> class Names(Listener):
    ...     def started(self, event): print(event.name)
    """
    active.append(listener)
    try:
        yield listener
    finally:
        active.remove(listener)


def add(listener: Listener) -> None:
    active.append(listener)


def remove(listener: Listener) -> None:
    active.remove(listener)


@contextmanager
def _observe(event: OperationEvent) -> Iterator[OperationEvent]:
    hearing = list(active)
    for listener in hearing:
        listener.started(event)
    _depth.value += 1
    event.start = time.perf_counter()
    try:
        yield event
    except BaseException as error:
        event.error = error
        raise
    finally:
        event.end = time.perf_counter()
        _depth.value -= 1
        for listener in reversed(hearing):
            listener.ended(event)


def device_operation(name: str, names: Sequence[str], values: Sequence[Any]):
    return _observe(OperationEvent(name, False, dict(zip(names, values)), _depth.value))


def composite(name: str, args: Sequence[Any], kwargs: Mapping[str, Any]):
    arguments = {f"arg{number}": value for number, value in enumerate(args)} | dict(kwargs)
    return _observe(OperationEvent(name, True, arguments, _depth.value))


def buffer_allocated(storage: Storage, placement: Placement) -> None:
    for listener in active:
        listener.allocated(storage, placement)


def buffer_freed(storage: Storage) -> None:
    for listener in active:
        listener.freed(storage)


def transferred(spec: Spec, device: MeshDevice, *, is_upload: bool) -> None:
    for listener in active:
        listener.transferred(Transfer(spec, device, is_upload))


def trace_replayed(device: MeshDevice, trace_id: int, execution: int, calls: Sequence[CallRecord]) -> None:
    for listener in active:
        listener.replayed(Replay(device, trace_id, execution, calls))


def ran_on_host(name: str, inputs: Sequence[Spec], outputs: Sequence[Spec]) -> None:
    for listener in active:
        listener.ran_on_host(HostOperation(name, inputs, outputs))


def signposted(header: str, message: str) -> None:
    for listener in active:
        listener.signposted(header, message)


class _HookListener(Listener):
    def __init__(self, before: Callable | None, after: Callable | None) -> None:
        self.before, self.after = before, after

    def started(self, event: OperationEvent) -> None:
        if self.before is not None and event.depth == 0:
            self.before(event.name, (), dict(event.arguments))

    def ended(self, event: OperationEvent) -> None:
        if self.after is not None and event.depth == 0 and event.error is None:
            self.after(event.name, (), dict(event.arguments), event.result)


@contextmanager
def register_pre_operation_hook(hook: Callable) -> Iterator[None]:
    """`hook(operation, args, kwargs)` runs before every operation of the block."""
    with listening(_HookListener(hook, None)):
        yield


@contextmanager
def register_post_operation_hook(hook: Callable) -> Iterator[None]:
    """`hook(operation, args, kwargs, output)` runs after every operation of the block."""
    with listening(_HookListener(None, hook)):
        yield
