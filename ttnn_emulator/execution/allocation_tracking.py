"""Buffers that a trace replay would overwrite: those allocated after its capture that are still alive.

A trace writes to the addresses of its capture, which the allocator may have reused since. With
TT_METAL_TRACE_ALLOC_TRACKING=1 at import, the library tracks those buffers and refuses to replay. An emulated replay
corrupts no other buffer, but it reports what the card would corrupt.
"""

from __future__ import annotations

import contextlib
import gc
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ClassVar

from ttnn_emulator.errors import InvalidArgument
from ttnn_emulator.execution import listeners

if TYPE_CHECKING:
    from ttnn_emulator.hardware.device import MeshDevice
    from ttnn_emulator.tensors.storage import Placement, Storage
    from ttnn_emulator.tensors.tensor import Tensor

# tt-metal v0.81.1: ttnn/ttnn/tools/trace_allocation_tracker.py, TRACE_ALLOC_TRACKING
TRACE_ALLOC_TRACKING = os.environ.get("TT_METAL_TRACE_ALLOC_TRACKING") == "1"
TRACE_ALLOC_DIAGNOSTICS = TRACE_ALLOC_TRACKING and os.environ.get("TT_METAL_TRACE_ALLOC_TRACEBACKS") == "1"
# tt-metal v0.81.1: ttnn/ttnn/tools/trace_allocation_tracker.py, TRACE_ALLOC_REFERRER_DEPTH
TRACE_ALLOC_REFERRER_DEPTH = 10  # the library's default; the emulator does not search for referrers

Unsafe = dict[int, str]  # id of a buffer → the operation that allocated it


class _Tracker(listeners.Listener):
    """Tracks allocations and deallocations."""

    def __init__(self) -> None:
        self.unsafe: dict[tuple[int, int], Unsafe] = {}  # device and trace → live buffers
        self.contexts: list[str] = []
        self.scopes: dict[int, int] = {}  # device → open scopes in which buffers are not tracked

    def started(self, event: listeners.OperationEvent) -> None:
        self.contexts.append(event.name)

    def ended(self, event: listeners.OperationEvent) -> None:
        self.contexts.pop()

    def allocated(self, storage: Storage, placement: Placement) -> None:
        device = storage.device
        if device is None or self.scopes.get(device.id()):
            return
        capturing = None if device.capturing is None else int(device.capturing.id)
        for trace in device.traces:
            if int(trace) != capturing:
                operation = self.contexts[0] if self.contexts else ""
                self.unsafe.setdefault((device.id(), int(trace)), {})[id(storage)] = operation

    def freed(self, storage: Storage) -> None:
        for buffers in self.unsafe.values():
            buffers.pop(id(storage), None)


_tracker = _Tracker()
if TRACE_ALLOC_TRACKING:
    listeners.add(_tracker)


def trace_allocation_tracking_enabled() -> bool:
    return TRACE_ALLOC_TRACKING


def trace_allocation_diagnostics_enabled() -> bool:
    return TRACE_ALLOC_DIAGNOSTICS


def get_unsafe_tracked_ids(mesh_device: MeshDevice, trace_id: Any) -> Unsafe:
    """Buffers that a replay of this trace would overwrite, and the operations that allocated them."""
    return dict(_tracker.unsafe.get((mesh_device.id(), int(trace_id)), {}))


def get_all_unsafe_tracked_ids() -> set[int]:
    """Buffers that any trace would overwrite."""
    return {number for buffers in _tracker.unsafe.values() for number in buffers}


def remove_unsafe_tracked_id(mesh_device: MeshDevice, buffer_unique_id: int) -> None:
    """Stop tracking a buffer: it may be overwritten."""
    for (device, _), buffers in _tracker.unsafe.items():
        if device == mesh_device.id():
            buffers.pop(buffer_unique_id, None)


def drain_pending_traceback_ids() -> list[int]:
    """Buffers whose Python traceback is not recorded yet; always empty, as tracebacks are not recorded."""
    return []


def push_allocation_context(context: str) -> None:
    """Set the operation that buffers are attributed to, until `pop_allocation_context`."""
    _tracker.contexts.append(context)


def pop_allocation_context() -> None:
    if _tracker.contexts:
        _tracker.contexts.pop()


def push_corruptible_allocation_scope(mesh_device: MeshDevice) -> None:
    """Do not track buffers that are allocated until `pop_corruptible_allocation_scope`."""
    _tracker.scopes[mesh_device.id()] = _tracker.scopes.get(mesh_device.id(), 0) + 1


def pop_corruptible_allocation_scope(mesh_device: MeshDevice) -> None:
    _tracker.scopes[mesh_device.id()] = max(_tracker.scopes.get(mesh_device.id(), 0) - 1, 0)


@contextlib.contextmanager
def corruptible_allocation_scope(mesh_device: MeshDevice) -> Iterator[None]:
    """Do not track buffers that are allocated in this block."""
    push_corruptible_allocation_scope(mesh_device)
    try:
        yield
    finally:
        pop_corruptible_allocation_scope(mesh_device)


class TraceAllocationTracker:
    """The checks of `ttnn.tools.trace_allocation_tracker`."""

    _tracebacks: ClassVar[dict[int, str]] = {}

    @classmethod
    def reconcile_tracebacks(cls) -> set[int]:
        return get_all_unsafe_tracked_ids()

    @classmethod
    def acknowledge_corruptible(cls, tensor: Tensor) -> None:
        """Stop tracking a tensor's buffer."""
        from ttnn_emulator.tensors.tensor import Tensor

        if not TRACE_ALLOC_TRACKING:
            return
        if not isinstance(tensor, Tensor):
            raise TypeError(f"acknowledge_corruptible takes a ttnn.Tensor, not a {type(tensor).__name__}")
        number, device = tensor.buffer_unique_id(), tensor.device()
        if number is None or device is None:
            raise ValueError("acknowledge_corruptible takes a tensor that is allocated on a device")
        remove_unsafe_tracked_id(device, number)

    @classmethod
    def verify_before_replay(cls, mesh_device: MeshDevice, trace_id: Any) -> None:
        """Refuse to replay a trace that would overwrite buffers."""
        if get_unsafe_tracked_ids(mesh_device, trace_id):
            gc.collect()  # some may be alive only in reference cycles
        found = get_unsafe_tracked_ids(mesh_device, trace_id)
        if found:
            lines = [f"Buffer {number}" + (f" [op: {name}]" if name else "") for number, name in found.items()]
            raise InvalidArgument(
                f"Found {len(found)} device buffer(s) that a replay of this trace overwrites, as they were allocated "
                "after its capture:\n" + "\n".join(lines),
                hint="Free them first, or allocate them in ttnn.tools.trace_allocation_tracker."
                "corruptible_allocation_scope if their values do not matter.",
            )


acknowledge_corruptible = TraceAllocationTracker.acknowledge_corruptible


def forget_trace(mesh_device: MeshDevice, trace_id: Any) -> None:
    """A trace was released."""
    _tracker.unsafe.pop((mesh_device.id(), int(trace_id)), None)
