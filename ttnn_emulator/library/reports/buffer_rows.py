"""Writes the buffers of a report to its database: which exist after every call, and where their pages in L1 are."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

from ttnn_emulator.library.reports.database_schema import insert

Node = dict[str, Any]
Row = tuple[Any, ...]

# A chunk is what a bank holds of a buffer.
# tt-metal v0.81.1: ttnn/ttnn/graph_report.py, _aggregate_pages_to_chunks
CHUNK = ("device_id", "address", "bank_id", "core_x", "core_y", "buffer_type")
BUFFER = ("device_id", "address", "max_size_per_bank", "buffer_type", "buffer_layout")


def import_buffers(cursor: sqlite3.Cursor, after_each: Iterable[tuple[int, Iterable[Row]]], rank: int = 0) -> None:
    """Add the buffers that exist after every operation, as `buffer_row` returns them."""
    insert(cursor, "buffers", ((operation, *buffer, rank) for operation, buffers in after_each for buffer in buffers))


def buffer_row(buffer: Node) -> Row:
    """A buffer as a row without operation and rank."""
    return tuple(map(buffer.get, BUFFER))


def import_chunks(cursor: sqlite3.Cursor, after_each: Iterable[tuple[int, Iterable[Row]]], rank: int = 0) -> None:
    """Add the chunks that exist after every operation, as `chunks_of` returns them."""
    insert(cursor, "buffer_chunks", ((operation, *chunk, rank) for operation, chunks in after_each for chunk in chunks))


def chunks_of(pages: Iterable[Node]) -> list[Row]:
    """The chunks of pages, as rows without operation and rank."""
    groups: dict[Row, list[Node]] = defaultdict(list)
    for page in pages:
        groups[tuple(page[name] for name in CHUNK)].append(page)
    rows = []
    for (*place, kind), inside in groups.items():
        begin = min(page["page_address"] for page in inside)
        end = max(page["page_address"] + page["page_size"] for page in inside)
        page_size = max(page["page_size"] for page in inside)
        rows.append((*place, begin, end - begin, page_size, len(inside), kind))
    return rows


class CapturedChunks:
    """The chunks of a captured graph: of each allocation at an address, or of the buffers at its end."""

    def __init__(self, report: Node) -> None:
        self._ends = _ends_of_calls(report["graph"])
        self._allocations: dict[tuple[int, int], list[tuple[int, list[Row]]]] = defaultdict(list)
        for snapshots in report.get("buffer_pages_by_address", {}).values():
            for snapshot in sorted(snapshots, key=lambda each: each["alloc_counter"]):
                self._add(snapshot["alloc_counter"], snapshot["pages"])
        if not self._allocations:
            self._add(-1, report.get("buffer_pages", ()))

    def _add(self, node: int, pages: Iterable[Node]) -> None:
        for chunk in chunks_of(pages):
            kept = self._allocations[chunk[0], chunk[1]]
            if not kept or kept[-1][0] != node:
                kept.append((node, []))
            kept[-1][1].append(chunk)

    def of(self, start: int, buffers: Iterable[Node]) -> Iterator[Row]:
        """The chunks of these buffers after the call that starts at this node."""
        end = self._ends.get(start, start)
        for buffer in buffers:
            known = self._allocations.get((buffer.get("device_id", 0), buffer["address"]), ())
            latest = [chunks for node, chunks in known if node <= end]
            for chunk in latest[-1] if latest else ():
                if chunk[-1] == buffer["buffer_type"]:
                    yield chunk


def _ends_of_calls(graph: Iterable[Node]) -> dict[int, int]:
    ends, open_functions = {}, []
    for node in graph:
        if node["node_type"] == "function_start":
            open_functions.append(node["counter"])
        elif node["node_type"] == "function_end" and open_functions:
            ends[open_functions.pop()] = node["counter"]
    return ends
