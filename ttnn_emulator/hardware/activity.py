"""What a device was asked to do, for its clock: counted while it runs, priced by `ttnn_emulator.timing` when asked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ttnn_emulator.tensors.spec import Spec

MOST_RECORDS = 100_000  # beyond this, records are priced and dropped


class CallRecord:
    """A call by its specs and arguments, and how often it ran.

    count     calls outside of traces
    launches  the programs of one call with their times; None until somebody asks
    """

    __slots__ = ("operation", "arguments", "outputs", "work", "runs_program", "count", "launches")

    def __init__(
        self, operation: str, arguments: Mapping[str, Any], outputs: Sequence[Spec], work: Any, runs_program: bool
    ) -> None:
        self.operation = operation
        self.arguments = arguments
        self.outputs = outputs
        self.work = work
        self.runs_program = runs_program
        self.count = 0
        self.launches: tuple[Any, ...] | None = None


class TraceRecord:
    """The calls of a captured trace, and how often it was executed."""

    __slots__ = ("calls", "executions")

    def __init__(self) -> None:
        self.calls: list[CallRecord] = []
        self.executions = 0


class Transfers:
    """Tensors that crossed between host and device on one command queue: how often, by spec."""

    __slots__ = ("uploads", "downloads")

    def __init__(self, uploads: Sequence[Spec] = (), downloads: Sequence[Spec] = ()) -> None:
        self.uploads: dict[Spec, int] = Counter(uploads)
        self.downloads: dict[Spec, int] = Counter(downloads)

    def add(self, other: Transfers) -> None:
        for mine, theirs in ((self.uploads, other.uploads), (self.downloads, other.downloads)):
            for spec, count in theirs.items():
                mine[spec] += count


class Activity:
    """Everything that a device did since it was opened; `transfers` are those of each command queue."""

    __slots__ = ("calls", "traces", "transfers")

    def __init__(self) -> None:
        self.calls: list[CallRecord] = []
        self.traces: list[TraceRecord] = []
        self.transfers: dict[int, Transfers] = {}

    def add(self, record: CallRecord) -> None:
        """Count a new kind of call. Kinds that were not called are dropped when there are too many."""
        if len(self.calls) >= MOST_RECORDS:
            self.calls = merged(self.calls)
        self.calls.append(record)

    def on_queue(self, queue: int | None) -> Transfers:
        found = self.transfers.get(queue or 0)
        if found is None:
            found = self.transfers[queue or 0] = Transfers()
        return found

    def uploaded(self, spec: Spec, queue: int | None = None) -> None:
        self.on_queue(queue).uploads[spec] += 1

    def downloaded(self, spec: Spec, queue: int | None = None) -> None:
        self.on_queue(queue).downloads[spec] += 1


def merged(records: Sequence[CallRecord]) -> list[CallRecord]:
    """Equal calls as one record; without a program cache every call has a record of its own."""
    found: dict[Any, CallRecord] = {}
    for record in records:
        try:
            key: Any = (record.operation, tuple(record.arguments.items()), tuple(record.outputs))
            hash(key)
        except TypeError:  # an unhashable argument
            key = id(record)
        kept = found.setdefault(key, record)
        if kept is not record:
            kept.count += record.count
    return list(found.values())
