"""A profile as plain data, for `--json` and for its page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from torch_ttnn.perf import analysis
from torch_ttnn.perf.end_to_end import EndToEndTimes

if TYPE_CHECKING:
    from torch_ttnn.perf.profile import Profile


def as_json(profile: Profile) -> dict[str, Any]:
    """Everything of a profile in nanoseconds. All times are predictions."""
    rows = profile.programs
    return {
        "name": profile.name,
        "board": profile.board.name,
        "predicted": True,
        "programs": len(rows),
        "host_operations": [row.operation.name for row in profile.host_operations],
        "kernels_ns": profile.kernels_ns,
        "error": profile.calibration.error,
        "uncalibrated": profile.calibration.uncalibrated,
        "end_to_end": modes(profile.end_to_end),
        "by_operation": groups(analysis.by_operation(rows)),
        "by_program": groups(analysis.by_program(rows)),
        "by_module": groups(analysis.by_module(rows)),
        "by_source": groups(analysis.by_source(rows)),
        "advice": [
            {
                "kind": each.kind.value,
                "text": each.text,
                "calls": each.calls,
                "gain_ns": each.gain_ns,
                "accuracy": each.accuracy.value,
                "places": list(each.places),
            }
            for each in profile.advice
        ],
    }


def modes(times: EndToEndTimes) -> dict[str, dict[str, float]]:
    return {
        mode.value: {"latency_ns": each.latency_ns, "interval_ns": each.interval_ns, "per_second": each.per_second}
        for mode, each in times.times.items()
    }


def groups(found: Sequence[analysis.Group]) -> list[dict[str, Any]]:
    return [
        {
            "name": group.name,
            "count": group.count,
            "kernel_ns": group.kernel_ns,
            "gap_ns": group.gap_ns,
            "cores": group.cores,
            "bound": group.bound,
        }
        for group in found
    ]
