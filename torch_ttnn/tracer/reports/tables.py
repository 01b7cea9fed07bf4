"""The CSV files of a report: counts, size distributions, arguments and facts, as spreadsheets read them."""

from __future__ import annotations

import csv
import pathlib
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from torch_ttnn.tracer.reports.summary import PHASES, OpSummary, Summary
from torch_ttnn.tracer.reports.verdicts import KNOWN, UNKNOWN, locations
from ttnn_emulator.atomic_files import replacing

FORMULA = tuple("=+-@\t\r\n＝＋－＠")  # a spreadsheet may evaluate cells that begin with these

Row = Sequence[Any]


def write(path: pathlib.Path, rows: Iterable[Row]) -> None:
    with replacing(path) as temporary, open(temporary, "w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([cell(each) for each in row] for row in rows)


def cell(value: Any) -> Any:
    """The value, unless it is a text that a spreadsheet would evaluate as a formula.

    Such a text is prefixed with an apostrophe, as spreadsheets mark text. Numbers stay numbers, negative ones too.

    >>> cell("aten.relu.default"), cell("=cmd()"), cell("-1")
    ('aten.relu.default', "'=cmd()", '-1')
    """
    if not isinstance(value, str):
        return value
    text = value.replace("\r\n", "\n").replace("\r", "\n")  # a lone \r would begin a row: csv does not quote it
    return f"'{text}" if text.startswith(FORMULA) and not _is_number(text) else text


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def node_count(summary: Summary, phase: str) -> Iterable[Row]:
    """Calls of each operation, in total and per model; most frequent first."""
    models = sorted(name for name, model in summary.models.items() if model.phases[phase].graphs)
    yield ["op_type", "total", *models]
    for op in summary.ops(phase):
        yield [op.op_type, op.count, *(op.models[model] for model in models)]


def sizes(counts: Counter[int]) -> Iterable[Row]:
    """Calls by number of elements, smallest first."""
    calls = counts.total()
    yield ["elements", "calls", "share"]
    for size, count in sorted(counts.items()):
        yield [size, count, share(count, calls)]


def arguments(op: OpSummary) -> Iterable[Row]:
    """Two rows per argument: its values, most frequent first, and their counts."""
    for name, values in op.arguments.items():
        ordered = sorted(values.items(), key=lambda item: (-item[1], item[0]))
        yield [f"{name}'s appeared value", *(value for value, _ in ordered)]
        yield [f"{name}'s appeared value's count", *(count for _, count in ordered)]


PLACES = (*KNOWN, UNKNOWN)
COSTS = "flops share_of_flops bytes_in bytes_out flops_per_byte".split()
OPS_HEAD = ["phase", "op_type", "count", "models", "share_of_models", *COSTS, *PLACES, "reasons"]


def ops(summary: Summary) -> Iterable[Row]:
    """Facts about each operation; shares are of its phase."""
    yield OPS_HEAD
    for phase in PHASES:
        models = sum(model.phases[phase].graphs > 0 for model in summary.models.values())
        flops = sum(op.flops for op in summary.phases[phase].values())
        for op in summary.ops(phase):
            costs = [op.flops, share(op.flops, flops), op.bytes_in, op.bytes_out, round(op.intensity, 4)]
            spread = [len(op.models), share(len(op.models), models)]
            yield [phase, op.op_type, op.count, *spread, *costs, *_by_place(locations(op.lowering)), reasons(op)]


def reasons(op: OpSummary) -> str:
    """Reasons why calls, or parts of them, stay on the host, with their calls."""
    given: Counter[str] = Counter()
    for (_, reason), calls in sorted(op.lowering.items()):
        if reason:
            given[reason] += calls
    return "; ".join(f"{reason} ({calls})" for reason, calls in given.most_common())


SUMS = "graphs ops distinct_ops flops bytes_in bytes_out".split()
MODELS_HEAD = ["model", "phase", *SUMS, *PLACES]


def models(summary: Summary) -> Iterable[Row]:
    """Totals of each model."""
    yield MODELS_HEAD
    for name, model in sorted(summary.models.items()):
        for phase, part in model.phases.items():
            if part.graphs:
                yield [name, phase, *(getattr(part, each) for each in SUMS), *_by_place(part.lowering)]


def skipped(summary: Summary) -> Iterable[Row]:
    """Skipped files and why."""
    yield ["file", "reason"]
    yield from summary.bad


def _by_place(calls: Counter[str]) -> list[int]:
    return [calls[location] for location in PLACES]


def share(part: int, whole: int) -> float:
    return round(part / whole, 6) if whole else 0.0
