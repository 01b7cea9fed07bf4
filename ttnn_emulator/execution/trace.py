"""Traces: a sequence of programs that is captured once and replayed with one call.

As on the card, a capture executes nothing: it only records which programs read and write which buffers. Host reads and
writes, and compilation, are not possible during a capture. A replay recomputes everything from the current contents of
the input buffers, without checks or inference. A buffer that was freed during the capture lives in a replay from the
program that writes it to the last one that reads it.
"""

from __future__ import annotations

import functools
import itertools
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ttnn_emulator.enums import BufferType
from ttnn_emulator.errors import InvalidArgument, require
from ttnn_emulator.execution import allocation_tracking, listeners
from ttnn_emulator.execution.bound_replay import Replays, storages_in
from ttnn_emulator.execution.queues import require_queue
from ttnn_emulator.hardware.activity import CallRecord, TraceRecord
from ttnn_emulator.tensors.storage import Storage

if TYPE_CHECKING:
    from ttnn_emulator.execution.operation_table import Plan
    from ttnn_emulator.hardware.device import MeshDevice

BYTES_PER_PROGRAM = 2048  # size of a recorded program in the trace region: one page of commands

# References to a buffer during the check: `known`, the sorted list, the loop variable, an argument.
REFERENCES_HERE = 4

_trace_ids = itertools.count()


class MeshTraceId(int):
    """The id of a captured trace."""

    def __repr__(self) -> str:
        return f"MeshTraceId({int(self)})"

    __str__ = __repr__


@dataclass
class Program:
    """A recorded program: its plan, input and output buffers, and the buffers that it is the last to read."""

    plan: Plan
    inputs: list[Any]
    outputs: list[Storage]
    last_read: list[Storage] = field(default_factory=list)


@dataclass
class Trace:
    """Programs with the buffers they read and write, in order."""

    id: MeshTraceId
    queue: int
    programs: list[Program] = field(default_factory=list)
    address: int = 0
    activity: TraceRecord = field(default_factory=TraceRecord)

    @functools.cached_property
    def replays(self) -> Replays:
        return Replays(self.programs)

    def record(self, plan: Plan, inputs: Sequence[Any], outputs: Sequence[Storage], call: CallRecord) -> None:
        call.count -= 1  # a capture executes nothing
        self.activity.calls.append(call)
        self.programs.append(Program(plan, [_stored(value) for value in inputs], list(outputs)))

    def storages(self) -> Iterator[Storage]:
        """Every reference that the trace has to a buffer."""
        for program in self.programs:
            yield from storages_in([program.outputs, program.inputs, program.last_read])
        bound = self.replays.bound if "replays" in self.__dict__ else None
        if bound is not None:
            yield from (each.storage for each in bound.outside)
            yield from (storage for storage, _ in bound.results)

    @property
    def size(self) -> int:
        return BYTES_PER_PROGRAM * len(self.programs)

    def find_last_reads(self) -> None:
        """Drop the values of every buffer that does not outlive the capture after its last use in a replay.

        These are buffers that were freed during the capture, and those whose last tensor is gone.
        """
        _release_forgotten(self.programs)
        found: set[int] = set()
        for program in reversed(self.programs):
            for storage in (each.root for each in storages_in([program.outputs, program.inputs])):
                if storage.freed_by and id(storage) not in found:
                    found.add(id(storage))
                    program.last_read.append(storage)

    def replay(self, device: MeshDevice) -> None:
        from ttnn_emulator.execution.computation import execute

        if self.replays.run(device):
            return
        for program in self.programs:
            execute(program.plan, program.inputs, program.outputs, device)
            for storage in program.last_read:
                storage.values = None


def _stored(value: Any) -> Any:
    """An argument with tensors replaced by their buffers: a trace must not keep a tensor alive."""
    if isinstance(value, tuple | list):
        return tuple(_stored(item) for item in value)
    return getattr(value, "_storage", value)


def _release_forgotten(programs: Sequence[Program]) -> None:
    """Free buffers that programs write and only the trace refers to: on the card, the last tensor frees them."""
    ours = Counter(id(each) for program in programs for each in storages_in([program.outputs, program.inputs]))
    written = {id(each.root) for program in programs for each in program.outputs}
    known = {
        id(owner): owner
        for program in programs
        for each in storages_in([program.outputs, program.inputs])
        for owner in _owners(each)
    }
    # Deepest views first: a view that is released no longer refers to its owner.
    for storage in sorted(known.values(), key=_depth, reverse=True):
        if sys.getrefcount(storage) - ours[id(storage)] > REFERENCES_HERE:
            continue
        if storage.root is not storage:
            ours[id(storage.owner)] += 1  # type: ignore[attr-defined]
        elif id(storage) in written:
            storage.release("the deletion of its last tensor during a trace capture")


def references_to(storage: Storage, traces: Sequence[Trace]) -> int:
    """The number of references from traces to a buffer, directly or through views that only traces have."""
    return _references(storage, [each for trace in traces for each in trace.storages()])


def _references(storage: Storage, references: Sequence[Storage]) -> int:
    count = sum(each is storage for each in references)
    for view in {id(each): each for each in references if each.root is not each and each.owner is storage}.values():  # type: ignore[attr-defined]
        ours = 2 * sum(each is view for each in references)  # in the trace and in `references`
        # The dictionary, the loop variable and the argument of getrefcount refer to the view, too.
        count += sys.getrefcount(view) - ours - _references(view, references) < REFERENCES_HERE
    return count


def _owners(storage: Storage) -> Iterator[Storage]:
    """A buffer and, if it is a view, its chain of owners."""
    yield storage
    while storage.root is not storage:
        storage = storage.owner  # type: ignore[attr-defined]
        yield storage


def _depth(storage: Storage) -> int:
    return 0 if storage.root is storage else 1 + _depth(storage.owner)  # type: ignore[attr-defined]


def begin_trace_capture(mesh_device: MeshDevice, *, cq_id: int | None = None) -> MeshTraceId:
    """Start capturing the operations on a device, without executing them."""
    mesh_device.require_open()
    queue = require_queue(mesh_device, cq_id)
    require(mesh_device.capturing is None, "a trace is already being captured on this device")
    trace_id = MeshTraceId(next(_trace_ids))
    mesh_device.capturing = Trace(trace_id, queue)
    return trace_id


def end_trace_capture(mesh_device: MeshDevice, trace_id: MeshTraceId, *, cq_id: int | None = None) -> None:
    """End the capture; the trace can be executed afterwards."""
    require_queue(mesh_device, cq_id)
    trace = mesh_device.capturing
    require(trace is not None and trace.id == trace_id, f"{trace_id!r} is not being captured on this device")
    mesh_device.capturing = None
    trace.find_last_reads()
    _place(trace, mesh_device)
    mesh_device.traces[trace_id] = trace
    mesh_device.activity.traces.append(trace.activity)


def _place(trace: Trace, device: MeshDevice) -> None:
    """Check that the commands fit into the trace region, if the device has one."""
    region = device.memory(BufferType.TRACE)
    if not region.bank_bytes:
        return
    used = sum(other.size for other in device.traces.values()) + trace.size
    require(
        used <= device.trace_region_size,
        f"traces of {used} B do not fit into the trace region of {device.trace_region_size} B",
        hint=f"Open the device with trace_region_size={used} or more.",
    )


def execute_trace(
    mesh_device: MeshDevice, trace_id: MeshTraceId, *, cq_id: int | None = None, blocking: bool = True
) -> None:
    """Replay a captured trace on the current contents of its input buffers."""
    mesh_device.require_open()
    require_queue(mesh_device, cq_id)
    require(mesh_device.capturing is None, "a trace cannot be executed while another is captured")
    trace = _find(mesh_device, trace_id)
    if allocation_tracking.TRACE_ALLOC_TRACKING:
        allocation_tracking.TraceAllocationTracker.verify_before_replay(mesh_device, trace_id)
    trace.activity.executions += 1
    if listeners.active:
        listeners.trace_replayed(mesh_device, trace_id, trace.activity.executions, trace.activity.calls)
    trace.replay(mesh_device)


def release_trace(mesh_device: MeshDevice, trace_id: MeshTraceId) -> None:
    """Release a trace and its memory."""
    _find(mesh_device, trace_id)
    del mesh_device.traces[trace_id]
    allocation_tracking.forget_trace(mesh_device, trace_id)


def is_trace_capture_active(mesh_device: MeshDevice) -> bool:
    return mesh_device.capturing is not None


def _find(device: MeshDevice, trace_id: MeshTraceId) -> Trace:
    if trace_id not in device.traces:
        raise InvalidArgument(f"{trace_id!r} is not a captured trace of this device")
    return device.traces[trace_id]


def require_not_capturing(device: MeshDevice | None, what: str) -> None:
    """Refuse host operations during a trace capture."""
    if device is not None and device.capturing is not None:
        raise InvalidArgument(
            f"{what} are not supported during trace capture", hint="Do it before begin_trace_capture or after the end."
        )
