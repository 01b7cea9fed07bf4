"""Fields of a row that come from compiled programs: operations, moves, fusions, memory, predicted time. Nothing is
recompiled."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence
from typing import Any

from torch_ttnn.compiler.runtime.program import Program
from torch_ttnn.explain import explanation_of
from torch_ttnn.explain.data import Report
from torch_ttnn.perf.program_time import Mode, Unpredicted, program_times, together
from torch_ttnn.results.portable_text import portable
from torch_ttnn.results.provenance import sources
from torch_ttnn.results.record import ON_DEVICE, WITH_HOST_OPS, Fusion, HostOp, Move, Predicted
from torch_ttnn.results.variations import variations
from torch_ttnn.workloads.program_counts import counts

log = logging.getLogger("torch_ttnn")

CROSSINGS = ("from_torch", "to_torch")


class NoPrediction(ValueError):
    """The time of programs cannot be predicted."""


def fields_of(programs: Sequence[Program]) -> dict[str, Any]:
    """Fields of a `Row`, summed over all programs."""
    report = explanation_of([(f"program {number}", program) for number, program in enumerate(programs)]).report
    counted = variations(programs)
    host = _host_ops(report)
    kinds = Counter(move.kind for program in report.programs for move in program.moves)
    return {
        "status": WITH_HOST_OPS if host else ON_DEVICE,
        "programs": len(programs),
        "ops_before": sum(program.ops_before for program in programs),
        "ops_before_unique": len({each.op for each in counted}),
        "ops_remaining": sum(each.count for each in host),
        "ops_remaining_unique": len({each.op for each in host}),
        "device_ops": sum(sum(program.device_ops.values()) for program in report.programs),
        "uploads": kinds["from_torch"],
        "downloads": kinds["to_torch"],
        "crossings_within": counts(programs).crossings_within,
        "conversions": sum(count for kind, count in kinds.items() if kind not in CROSSINGS),
        "host_ops": host,
        "moves": _moves(report),
        "fusions": _fusions(report),
        "variations": counted,
        "dram_peak": report.memory.dram_peak,
        "l1_peak": report.memory.l1_peak,
        "weights": report.memory.weights,
        "predicted": _predicted_or_none(programs),
    }


def _predicted_or_none(programs: Sequence[Program]) -> Predicted | None:
    """A model that was measured has a row, also if its time cannot be predicted."""
    try:
        return predicted_by(programs)
    except NoPrediction as error:
        log.warning("%s", error)
        return None


def predicted_by(programs: Sequence[Program]) -> Predicted:
    """The predicted time of a call on the board that the programs were compiled for."""
    board = programs[0].target.typing.board.name
    time = together([times[board] for times in program_times(programs, [board])], board)
    if isinstance(time, Unpredicted):
        raise NoPrediction(f"the time on an {board} cannot be predicted: {time.reason}")
    return Predicted(
        board=board,
        programs=time.programs,
        kernels_seconds=time.kernels_ns / 1e9,
        gaps_seconds=time.gaps_ns / 1e9,
        transfers_seconds=time.transfers_ns / 1e9,
        as_is_seconds=time.end_to_end(Mode.AS_IS).latency_ns / 1e9,
        traced_seconds=time.end_to_end(Mode.TRACED).latency_ns / 1e9,
        interval_seconds=time.end_to_end(Mode.TWO_QUEUES).interval_ns / 1e9,
        error=time.error,
        uncalibrated=time.uncalibrated_share,
        sources=sources(),
    )


def _host_ops(report: Report) -> tuple[HostOp, ...]:
    found: Counter[tuple[str, str, str]] = Counter()
    for program in report.programs:
        found.update([(each.op, portable(each.reason), portable(each.source)) for each in program.host_ops])
    return tuple([HostOp(*each, count) for each, count in sorted(found.items(), key=_by_count)])


def _moves(report: Report) -> tuple[Move, ...]:
    found: Counter[tuple[str, str]] = Counter()
    taken: Counter[tuple[str, str]] = Counter()
    for program in report.programs:
        for move in program.moves:
            found[move.kind, move.reason] += 1
            taken[move.kind, move.reason] += move.bytes
    return tuple(
        [Move(kind, taken[kind, why], why, count) for (kind, why), count in sorted(found.items(), key=_by_count)]
    )


def _fusions(report: Report) -> tuple[Fusion, ...]:
    found = Counter(each.name for program in report.programs for each in program.fusions)
    return tuple([Fusion(name, count) for name, count in sorted(found.items(), key=_by_count)])


def _by_count(item: tuple[Any, int]) -> tuple[int, Any]:
    """Most frequent first; ties in alphabetical order, so that every run has the same order."""
    return -item[1], item[0]
