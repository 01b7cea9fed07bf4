"""The CSV files of a report: counts, size distributions, arguments and facts, as spreadsheets read them."""

from __future__ import annotations

import csv
import pathlib
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from torch_ttnn.tracer.summary import PHASES, OpSummary, Summary
from torch_ttnn.tracer.verdicts import KNOWN, UNKNOWN, places
from ttnn_emulator.atomic_files import replacing

FORMULA = tuple("=+-@\t\r\n＝＋－＠")  # a spreadsheet may compute a cell that begins like this

Row = Sequence[Any]


def write(path: pathlib.Path, rows: Iterable[Row]) -> None:
    with replacing(path) as temporary, open(temporary, "w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([cell(each) for each in row] for row in rows)


def cell(value: Any) -> Any:
    """A value as it is, except a text from a foreign trace that a spreadsheet would run as a formula.

    Such a text gets the apostrophe with which spreadsheets mark text. Numbers stay numbers, negative ones too.

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
    """How often each operation occurs, in all models and in each; the most frequent first."""
    models = sorted(name for name, model in summary.models.items() if model.phases[phase].graphs)
    yield ["op_type", "total", *models]
    for op in summary.ops(phase):
        yield [op.op_type, op.count, *(op.models[model] for model in models)]


def sizes(counts: Counter[int]) -> Iterable[Row]:
    """How many calls have how many elements; the smallest first."""
    calls = counts.total()
    yield ["elements", "calls", "share"]
    for size, count in sorted(counts.items()):
        yield [size, count, share(count, calls)]


def arguments(op: OpSummary) -> Iterable[Row]:
    """Two rows an argument: the values that it had, the most frequent first, and how often it had them."""
    for name, values in op.arguments.items():
        ordered = sorted(values.items(), key=lambda item: (-item[1], item[0]))
        yield [f"{name}'s appeared value", *(value for value, _ in ordered)]
        yield [f"{name}'s appeared value's count", *(count for _, count in ordered)]


PLACES = (*KNOWN, UNKNOWN)
COSTS = "flops share_of_flops bytes_in bytes_out flops_per_byte".split()
OPS_HEAD = ["phase", "op_type", "count", "models", "share_of_models", *COSTS, *PLACES, "reasons"]


def ops(summary: Summary) -> Iterable[Row]:
    """What is known of each operation; shares are of its phase."""
    yield OPS_HEAD
    for phase in PHASES:
        models = sum(model.phases[phase].graphs > 0 for model in summary.models.values())
        flops = sum(op.flops for op in summary.phases[phase].values())
        for op in summary.ops(phase):
            costs = [op.flops, share(op.flops, flops), op.bytes_in, op.bytes_out, round(op.intensity, 4)]
            spread = [len(op.models), share(len(op.models), models)]
            yield [phase, op.op_type, op.count, *spread, *costs, *_by_place(places(op.lowering)), reasons(op)]


def reasons(op: OpSummary) -> str:
    """Why calls stay on the host or leave a part there, each reason with its calls."""
    given: Counter[str] = Counter()
    for (_, reason), calls in sorted(op.lowering.items()):
        if reason:
            given[reason] += calls
    return "; ".join(f"{reason} ({calls})" for reason, calls in given.most_common())


SUMS = "graphs ops distinct_ops flops bytes_in bytes_out".split()
MODELS_HEAD = ["model", "phase", *SUMS, *PLACES]


def models(summary: Summary) -> Iterable[Row]:
    """What each model consists of."""
    yield MODELS_HEAD
    for name, model in sorted(summary.models.items()):
        for phase, part in model.phases.items():
            if part.graphs:
                yield [name, phase, *(getattr(part, each) for each in SUMS), *_by_place(part.lowering)]


def skipped(summary: Summary) -> Iterable[Row]:
    """Files that were left out, and why."""
    yield ["file", "reason"]
    yield from summary.bad


def _by_place(calls: Counter[str]) -> list[int]:
    return [calls[place] for place in PLACES]


def share(part: int, whole: int) -> float:
    return round(part / whole, 6) if whole else 0.0
