"""The device operations of calls that are planned, not run."""

from __future__ import annotations

import threading

from ttnn_emulator.execution.listeners import Listener, OperationEvent
from ttnn_emulator.hardware.activity import CallRecord


class PlannedOperations(Listener):
    """Collects the device operations of this thread, which the device then does not count as its work."""

    def __init__(self) -> None:
        self._thread = threading.get_ident()
        self._records: list[CallRecord] = []
        self._l1_bytes = 0

    def ended(self, event: OperationEvent) -> None:
        if event.record is None or threading.get_ident() != self._thread:
            return
        event.record.count -= 1
        if event.error is None:
            self._records.append(event.record)
            if event.record.runs_program:
                self._l1_bytes = max(self._l1_bytes, event.l1_bytes)

    def taken(self) -> tuple[tuple[CallRecord, ...], int]:
        """The operations since the last call, and the most L1 that the circular buffers of a program take."""
        taken = tuple(self._records), self._l1_bytes
        self._records.clear()
        self._l1_bytes = 0
        return taken
