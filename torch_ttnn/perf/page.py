"""A profile as one self-contained HTML page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torch_ttnn.pages.assembly import BLOCKS_SCRIPT, BLOCKS_STYLE, assemble, card, embedded, safe
from torch_ttnn.perf import analysis
from torch_ttnn.perf.advice import Accuracy
from torch_ttnn.perf.data import groups
from torch_ttnn.perf.text import place_text, source_text, tensor_text
from torch_ttnn.perf.time_text import duration_text, rate_text
from ttnn_emulator.profiling.timeline import ProgramRow

if TYPE_CHECKING:
    from torch_ttnn.perf.profile import Profile

# The values of a program, in the order of `_program`.
COLUMNS = (
    "number program operation module source host hosting start kernel gap cores bound family calibrated error dram "
    "utilization fidelity input output"
).split(" ")


def render(profile: Profile) -> str:
    """The page as text."""
    return assemble(
        "torch_ttnn.perf.files",
        "page.html",
        [BLOCKS_STYLE, "page.css"],
        [BLOCKS_SCRIPT, "page.js"],
        generator="perf",
        title=safe(f"torch_ttnn: predicted time of {profile.name}"),
        name=safe(profile.name),
        summary=_summary(profile),
        data=embedded(_data(profile)),
    )


def _summary(profile: Profile) -> str:
    calibration = profile.calibration
    cards = [
        ("device", duration_text(profile.kernels_ns), "of programs on the chip", ""),
        ("", len(profile.programs), "programs", ""),
        ("host" if profile.host_operations else "good", len(profile.host_operations), "operations on the host", ""),
        ("", f"± {calibration.error:.0%}", "expected error", "weighted by time, as the timing model states it"),
        ("move" if calibration.uncalibrated else "good", f"{calibration.uncalibrated:.1%}", "of it uncalibrated", ""),
    ]
    modes = [
        f"<tr><td>{safe(mode.value)}</td><td>{duration_text(times.latency_ns)}</td>"
        f"<td>{rate_text(times.per_second)}</td></tr>"
        for mode, times in profile.end_to_end.times.items()
    ]
    head = "<tr><th>with transfers</th><th>latency</th><th>throughput</th></tr>"
    board = profile.board
    grid = f"{board.grid[0]} x {board.grid[1]} cores"
    return "\n".join(
        [
            f'<p class="quiet">Predicted for one chip of the {safe(board.name)} ({grid}) by the timing model of '
            "ttnn_emulator. Nothing here was measured, on a card or on this machine.</p>",
            '<div class="cards">',
            *[card(*each) for each in cards],
            "</div>",
            f'<table class="modes">{head}{"".join(modes)}</table>',
        ]
    )


def _data(profile: Profile) -> dict[str, Any]:
    rows = profile.programs
    cells = {row["GLOBAL CALL COUNT"]: row for row in profile.table if "GLOBAL CALL COUNT" in row}
    found = profile.roofline
    return {
        "cores": profile.board.cores,
        "kernels": profile.kernels_ns,
        "columns": COLUMNS,
        "programs": [_program(row, cells[row.number]) for row in rows],
        "hosts": [[row.operation.name, row.host_ns, source_text(row.origin.source)] for row in profile.host_operations],
        "by_program": groups(analysis.by_program(rows)),
        "by_operation": groups(analysis.by_operation(rows)),
        "by_module": groups(analysis.by_module(rows)),
        "by_source": groups(analysis.grouped(rows, lambda row: source_text(row.program.origin.source))),
        "roofline": {
            "peaks": found.peaks,
            "dram": found.dram_gb,
            "points": [
                {
                    "program": point.name,
                    "operation": point.operation,
                    "shape": point.shape,
                    "times": point.count,
                    "kernel": point.kernel_ns,
                    "intensity": point.intensity,
                    "gflops": point.gflops,
                    "bound": point.bound,
                }
                for point in found.points
            ],
        },
        "advice": [
            {
                "kind": each.kind.value,
                "text": each.text,
                "calls": each.calls,
                "gain": each.gain_ns,
                "accuracy": each.accuracy.value,
                "same": each.accuracy is Accuracy.SAME,
                "places": [place_text(place) for place in each.places],
            }
            for each in profile.advice
        ],
    }


def _program(row: ProgramRow, cell: dict[str, Any]) -> list[Any]:
    launch, origin = row.program.launch, row.program.origin
    return [
        row.number,
        launch.program,
        origin.operation,
        origin.module,
        source_text(origin.source),
        round(row.host_ns),
        round(row.host_time_ns),
        round(row.start_ns),
        round(launch.kernel_ns, 1),
        round(row.gap_ns),
        launch.cores,
        launch.bound.value,
        launch.family,
        launch.calibrated,
        round(launch.error, 3),
        cell["DRAM BW UTIL (%)"],
        cell["UTILIZATION (%)"],
        cell["MATH FIDELITY"],
        tensor_text(cell, "INPUT_0"),
        tensor_text(cell, "OUTPUT_0"),
    ]
