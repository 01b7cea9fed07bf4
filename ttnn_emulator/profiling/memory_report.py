"""The memory view: a folder that ttnn-visualizer opens, with every call, its tensors, buffers and source lines.

    report = MemoryReport()
    with report.recording():
        ...
    report.write("out")

writes `db.sqlite`, `config.json` and `cluster_descriptor.yaml`. An error that leaves the block is in the report.
"""

from __future__ import annotations

import dataclasses
import datetime
import gc
import os
import pathlib
import sqlite3
import time
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from ttnn_emulator.api.recorded import ttnn_version
from ttnn_emulator.atomic_files import replacing
from ttnn_emulator.execution import listeners
from ttnn_emulator.execution.buffer_lives import BufferLife
from ttnn_emulator.library.devices.cluster import cluster_descriptor
from ttnn_emulator.library.reports.buffer_pages import assumed_bank_cores, get_device_info, page_facts, pages_of
from ttnn_emulator.library.reports.buffer_rows import Row, buffer_row, chunks_of, import_buffers, import_chunks
from ttnn_emulator.library.reports.database_rows import import_devices, import_graph, import_metadata
from ttnn_emulator.library.reports.database_schema import insert, new_database
from ttnn_emulator.library.reports.stack_sources import SourceFiles
from ttnn_emulator.library.settings.config import Config, current
from ttnn_emulator.profiling.device_numbers import DeviceNumbers
from ttnn_emulator.profiling.program_graph import ProgramGraph
from ttnn_emulator.tensors.tensor import Tensor

DATABASE = "db.sqlite"
CONFIG = "config.json"
CLUSTER = "cluster_descriptor.yaml"


class MemoryReport:
    """What the emulated devices of this process did between two points."""

    def __init__(self, name: str = "") -> None:
        self.name = name
        self.graph = ProgramGraph()
        self._began = time.time_ns()
        self._error: tuple[str, ...] | None = None  # of the program, not of a call

    # -- recording ------------------------------------------------------------------------------------------------

    @contextmanager
    def recording(self) -> Iterator[MemoryReport]:
        """Record everything within this block; buffers that exist already are in the report, too."""
        for each in gc.get_objects():
            if type(each) is Tensor and each.device() is not None:
                self.graph.hold(each)
        for device in self.graph.lives.devices.values():
            self.graph.numbers.of(device)
        try:
            with listeners.listening(self.graph):
                yield self
        except BaseException as error:
            self.failed(error)
            raise

    def failed(self, error: BaseException) -> None:
        """Add the error that ended the program; the one of a failed call becomes an error of this call."""
        if isinstance(error, SystemExit):
            return
        kind, message = type(error).__name__, str(error)
        last = self.graph.records[-1].get("error") if self.graph.records else None
        if last is not None and last["message"].partition("\n")[0] in message:
            last.update(type=kind, message=message)
        else:
            text = "".join(traceback.format_exception(error))
            self._error = (kind, message, text, datetime.datetime.now().isoformat(timespec="seconds"))

    # -- writing --------------------------------------------------------------------------------------------------

    def write(self, folder: str | os.PathLike, *, detailed_buffers: bool = True) -> pathlib.Path:
        """Write the report and return the path of its database; `detailed_buffers`: L1 core by core."""
        path = pathlib.Path(folder)
        path.mkdir(parents=True, exist_ok=True)
        with new_database(path / DATABASE) as cursor:
            self._write_rows(cursor, detailed_buffers)
        with replacing(path / CONFIG) as temporary:
            self._config(path).save_to_file(temporary)
        boards = [device.board.name for device in self.graph.numbers.devices.values()]
        with replacing(path / CLUSTER) as temporary:
            temporary.write_text(cluster_descriptor(boards[0] if boards else None), encoding="utf-8")
        return path / DATABASE

    def _write_rows(self, cursor: sqlite3.Cursor, detailed_buffers: bool) -> None:
        graph, calls = self.graph, len(self.graph.outermost)
        numbers = graph.numbers
        for device in graph.lives.devices.values():
            numbers.of(device)
        devices = [
            {"device_id": number, **dataclasses.asdict(get_device_info(device))}
            for number, device in sorted(numbers.devices.items())
        ]
        import_devices(cursor, devices)
        import_graph(
            cursor,
            graph.nodes,
            devices=devices,
            python_io=graph.records,
            record_tensor_lifetime=True,
            sources=SourceFiles(cursor, graph.source_files),
        )
        rows = _BufferRows(numbers)
        import_buffers(cursor, ((call, rows.buffers(lives)) for call, lives in graph.lives.after_each(calls)))
        if detailed_buffers:
            import_chunks(cursor, ((call, rows.chunks(lives)) for call, lives in graph.lives.after_each(calls)))
        if self._error is not None:
            insert(cursor, "errors", [(0, "", *self._error, 0)])
        import_metadata(cursor, self._metadata())

    def _metadata(self) -> dict[str, object]:
        boards = sorted({device.board.name for device in self.graph.numbers.devices.values()})
        return {
            "rank": 0,
            "world_size": 1,
            "version": ttnn_version(),
            "capture_timestamp_ns": self._began,
            "total_duration_ns": time.time_ns() - self._began,
            "device": ", ".join(f"emulated {board}" for board in boards),
        }

    def _config(self, folder: pathlib.Path) -> Config:
        """The settings with which the library writes such a report."""
        own = Config(current())
        for name in ("enable_logging", "enable_graph_report", "enable_detailed_buffer_report"):
            own._settings[name] = True
        own._settings["enable_fast_runtime_mode"] = False
        own._settings["report_name"] = pathlib.Path(self.name or folder.resolve().name)
        return own


@contextmanager
def as_configured() -> Iterator[None]:
    """Record a report for this block if the library's settings request one: logging, and a name for the report.

    `TTNN_CONFIG_OVERRIDES='{"enable_fast_runtime_mode": false, "enable_logging": true, "report_name": "mine"}'`
    """
    settings = current()
    folder = settings.report_path
    if not settings.enable_logging or settings.enable_fast_runtime_mode or folder is None:
        yield
        return
    report = MemoryReport(str(settings.report_name))
    try:
        with report.recording():
            yield
    finally:
        report.write(folder, detailed_buffers=settings.enable_detailed_buffer_report)


class _BufferRows:
    """The rows of buffers, on every chip of their devices; made once per buffer."""

    def __init__(self, numbers: DeviceNumbers) -> None:
        self._numbers = numbers
        self._buffers: dict[int, list[Row]] = {}
        self._chunks: dict[int, list[Row]] = {}

    def buffers(self, lives: Iterable[BufferLife]) -> Iterator[Row]:
        for life in lives:
            rows = self._buffers.get(id(life))
            if rows is None:
                rows = self._buffers[id(life)] = self._on_chips(life, [buffer_row(life.facts())])
            yield from rows

    def chunks(self, lives: Iterable[BufferLife]) -> Iterator[Row]:
        """What the cores hold of buffers in L1."""
        for life in lives:
            if life.is_in_l1:
                rows = self._chunks.get(id(life))
                if rows is None:
                    rows = self._chunks[id(life)] = self._on_chips(life, chunks_of(self._pages(life)))
                yield from rows

    def _on_chips(self, life: BufferLife, rows: list[Row]) -> list[Row]:
        return [(number, *row[1:]) for number in self._numbers.of(life.device) for row in rows]

    def _pages(self, life: BufferLife) -> Iterable[dict[str, Any]]:
        banks = assumed_bank_cores(life.device)
        if life.spec is not None:
            return map(page_facts, pages_of(life.device, life.address, life.spec, banks))
        return [
            {
                "device_id": 0,
                "address": life.address,
                "core_x": x,
                "core_y": y,
                "bank_id": bank,
                "page_address": life.address,
                "page_size": life.placement.bytes_per_bank,
                "buffer_type": life.buffer_type.value,
            }
            for bank, (x, y) in enumerate(banks[: life.placement.banks])
        ]
