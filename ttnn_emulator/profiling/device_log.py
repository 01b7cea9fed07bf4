"""The other two files of a performance folder: tools ask for them, but read the times from the sheet.

The profiler logs every kernel of every core with a cycle counter. The timing model predicts programs, not kernels, so
the log has two rows per program: its start and its end on the first core of the chip.
"""

from __future__ import annotations

import csv
import pathlib
from collections.abc import Iterable
from typing import Any

from ttnn_emulator.atomic_files import replacing
from ttnn_emulator.profiling.timeline import ProgramRow, Row

LOG, TRACY = "profile_log_device.csv", "tracy_profile_log_host.tracy"
# tt-metal v0.77.0: tt_metal/impl/profiler/profiler.cpp, the header of profile_log_device.csv
COLUMNS = (
    "PCIe slot",
    " core_x",
    " core_y",
    " RISC processor type",
    " timer_id",
    " time[cycles since reset]",
    " data",
    " run host ID",
    " trace id",
    " trace id counter",
    " zone name",
    " type",
    " source line",
    " source file",
    " meta data",
)
NOT_A_TRACE = (
    "No capture of Tracy: the times beside this file were predicted by ttnn_emulator, not measured. "
    "Tools that list a folder of the profiler expect a file of this name.\n"
)


def write_log(rows: Iterable[Row], path: pathlib.Path) -> None:
    """Write the device log of all programs."""
    programs = [row for row in rows if isinstance(row, ProgramRow)]
    board = programs[0].program.device.board if programs else None
    arch = board.arch.name.lower() if board is not None else "none"
    clock = board.clock_ghz if board is not None else 1.0
    cores = board.cores if board is not None else 0
    with replacing(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
        file.write(f"ARCH: {arch}, CHIP_FREQ[MHz]: {round(clock * 1000)}, Max Compute Cores: {cores}\n")
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for row in programs:
            for kind, ns in (("ZONE_START", row.start_ns), ("ZONE_END", row.end_ns)):
                writer.writerow(_cells(row, kind, round(ns * clock)))


def _cells(row: ProgramRow, kind: str, cycle: int) -> list[Any]:
    trace, replay = row.program.trace, row.program.replay
    traced = ["" if trace is None else trace, "" if replay is None else replay]
    return [row.chip, 1, 1, "BRISC", 0, cycle, 0, row.number, *traced, "BRISC-KERNEL", kind, 0, "", ""]


def write_tracy_placeholder(path: pathlib.Path) -> None:
    """Write the file that stands for the host's capture."""
    with replacing(path) as temporary:
        temporary.write_text(NOT_A_TRACE, encoding="utf-8")
