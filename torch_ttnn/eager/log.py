"""What ran where: `with torch_ttnn.eager() as log`, and the warning about operations of the host."""

from __future__ import annotations

import os
import sys
import threading
import warnings
from collections import Counter
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch

from torch_ttnn.compiler.errors import HostOperationWarning, TorchTtnnError

DEVICE, HOST, UPLOAD, DOWNLOAD, CREATED = "device", "host", "upload", "download", "created"


class RunsOnHost(TorchTtnnError):
    """An operation on `ttnn` tensors has to run on the host, under `torch_ttnn.eager(strict=True)`."""


class Event(NamedTuple):
    """One operation or move; `reason` and `line` of the user's code are known for operations of the host."""

    operation: str
    where: str
    reason: str
    line: str


@dataclass(frozen=True)
class Row:
    """Equal events and their number."""

    operation: str
    where: str
    times: int
    reason: str
    line: str


class eager:  # a function to its users, such as torch.no_grad
    """A context that records what runs where on `ttnn` tensors, in all threads.

    strict  raise RunsOnHost in place of running an operation on the host

    >>> import torch, torch_ttnn
    >>> with torch_ttnn.eager() as log:
    ...     total = (torch.ones(2, 2, device="ttnn") + 1).sum()
    >>> log.device_operations, log.host_operations
    (2, 0)
    """

    def __init__(self, *, strict: bool = False) -> None:
        self.strict = strict
        self._counts: Counter[Event] = Counter()

    def __enter__(self) -> eager:
        _contexts.append(self)
        return self

    def __exit__(self, *error: object) -> None:
        _contexts.remove(self)

    def add(self, event: Event) -> None:
        with _lock:
            self._counts[event] += 1

    @property
    def rows(self) -> list[Row]:
        """All operations and moves, equal ones together, in the order of their first run."""
        return [
            Row(event.operation, event.where, times, event.reason, event.line) for event, times in self._counts.items()
        ]

    def times(self, where: str) -> int:
        return sum(times for event, times in self._counts.items() if event.where == where)

    @property
    def device_operations(self) -> int:
        return self.times(DEVICE)

    @property
    def host_operations(self) -> int:
        return self.times(HOST)

    @property
    def uploads(self) -> int:
        return self.times(UPLOAD)

    @property
    def downloads(self) -> int:
        return self.times(DOWNLOAD)

    def __str__(self) -> str:
        head = (
            f"{self.device_operations} operations on the device, {self.host_operations} on the host, "
            f"{self.uploads} uploads, {self.downloads} downloads, {self.times(CREATED)} tensors created"
        )
        rows = sorted(self.rows, key=lambda row: (row.where != HOST, -row.times))
        width = max([len(row.operation) for row in rows], default=0)
        lines = [f"  {row.times:>6} × {row.operation:<{width}}  {row.where}{_why(row)}" for row in rows]
        return "\n".join([head, *lines])


def _why(row: Row) -> str:
    at = f" ({row.line})" if row.line else ""
    return f": {row.reason}{at}" if row.reason else at


_contexts: list[eager] = []  # open ones: autograd runs operations of a backward pass in a thread of its own
_lock = threading.Lock()


def note(operation: Any, where: str) -> None:
    """Record an operation or a move, if a context is open."""
    if _contexts:
        event = Event(str(operation), where, "", "")
        for context in list(_contexts):
            context.add(event)


_warned: set[tuple[str, str]] = set()


def note_host(operation: Any, reason: str) -> None:
    """Record an operation that is about to run on the host: warn once for each operation and line, or raise."""
    line = users_line()
    name = str(operation)
    if any(context.strict for context in _contexts):
        raise RunsOnHost(
            f"{name} would run on the host: {reason}\n  at {line or 'an unknown line'}\n"
            "  torch_ttnn.eager(strict=True) allows no operation there"
        )
    for context in list(_contexts):
        context.add(Event(name, HOST, reason, line))
    if (name, line) not in _warned:
        _warned.add((name, line))
        warnings.warn(
            f"{name} runs on the host: {reason}. At {line or 'an unknown line'}. This is reported once.",
            HostOperationWarning,
            stacklevel=2,
        )


_OWN = (os.path.dirname(os.path.dirname(__file__)) + os.sep, os.path.dirname(torch.__file__) + os.sep)


def users_line() -> str:
    """The innermost line that is neither torch's nor ours, as `file:line`."""
    frame = sys._getframe(1)
    while frame is not None:
        path = frame.f_code.co_filename
        if not path.startswith((*_OWN, "<")):
            return f"{path}:{frame.f_lineno}"
        frame = frame.f_back  # type: ignore[assignment]
    return ""
