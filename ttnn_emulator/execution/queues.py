"""Command queues and events.

Emulated calls are synchronous, so work on both queues runs in the order of the host's calls: a program that is correct
with two queues and events on the card is correct here.
"""

from __future__ import annotations

import contextlib
import itertools
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ttnn_emulator.errors import InvalidArgument, SignatureError, require

if TYPE_CHECKING:
    from ttnn_emulator.hardware.device import MeshDevice

QUEUE_NUMBERS = 256  # the library stores queue ids in a byte
_event_ids = itertools.count(1)


class _Current(threading.local):
    def __init__(self) -> None:
        self.queues: list[int] = []


_current = _Current()


@dataclass(frozen=True)
class MeshEvent:
    """A point in a command queue that another queue, or the host, can wait for."""

    device: MeshDevice
    queue: int
    id: int = field(default_factory=lambda: next(_event_ids))

    def __repr__(self) -> str:
        return f"MeshEvent(id={self.id}, cq_id={self.queue})"


def require_queue(device: MeshDevice, queue: int | None) -> int:
    """The id of a queue, checked against the device; None is the current queue."""
    number = get_current_command_queue_id_for_thread() or 0 if queue is None else int(queue)
    if not 0 <= number < device.num_command_queues:
        raise InvalidArgument(
            f"command queue {number} does not exist: the device was opened with {device.num_command_queues}",
            hint="Open it with num_command_queues=2.",
        )
    return number


def record_event(
    mesh_device: MeshDevice, cq_id: int | None = None, sub_device_ids: Sequence[Any] = (), device_range: Any = None
) -> MeshEvent:
    """Mark a point in a queue."""
    mesh_device.require_open()
    queue = require_queue(mesh_device, cq_id)
    require(mesh_device.capturing is None, "Event Synchronization is not supported during trace capture")
    return MeshEvent(mesh_device, queue)


def wait_for_event(cq_id: int | None, mesh_event: MeshEvent) -> None:
    """Let a queue wait until an event has passed."""
    require_queue(mesh_event.device, cq_id)
    require(mesh_event.device.capturing is None, "Event Synchronization is not supported during trace capture")


def event_synchronize(mesh_event: MeshEvent) -> None:
    """Let the host wait until an event has passed."""
    mesh_event.device.require_open()


@contextlib.contextmanager
def command_queue(cq_id: int) -> Iterator[None]:
    """Run the operations of this block on the given queue unless they name another."""
    if cq_id is None:
        raise ValueError("cq_id cannot be None in command_queue context")
    push_current_command_queue_id_for_thread(cq_id)
    try:
        yield
    finally:
        pop_current_command_queue_id_for_thread()


@contextlib.contextmanager
def queue_of(cq_id: Any, arguments: Sequence[Any]) -> Iterator[None]:
    """Use the queue that a call names, checked against the device of its tensors; None keeps the current one."""
    if cq_id is None:
        yield
        return
    if not isinstance(cq_id, int) or not 0 <= cq_id < QUEUE_NUMBERS:
        raise SignatureError(
            f"the number of a command queue must be an integer from 0 to {QUEUE_NUMBERS - 1}, not {cq_id!r}"
        )
    for device in {id(device): device for device in map(_device_of, arguments) if device is not None}.values():
        require_queue(device, cq_id)
    with command_queue(cq_id):
        yield


def _device_of(argument: Any) -> MeshDevice | None:
    if isinstance(argument, list | tuple):
        return next((device for device in map(_device_of, argument) if device is not None), None)
    return argument if hasattr(argument, "num_command_queues") else getattr(argument, "_device", None)


def push_current_command_queue_id_for_thread(cq_id: int) -> None:
    _current.queues.append(int(cq_id))


def pop_current_command_queue_id_for_thread() -> int:
    return _current.queues.pop()


def get_current_command_queue_id_for_thread() -> int | None:
    return _current.queues[-1] if _current.queues else None
