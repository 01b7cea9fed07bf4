"""The JSON data of the site's pages: rows as compact lists, operations collected over all models."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from torch_ttnn.results.record import CONVERTED, HOST, REMOVED, Row, Variation
from torch_ttnn.results.summary import accuracy

OUTCOMES = (CONVERTED, REMOVED, HOST)

Json = dict[str, Any]
Signature = tuple[str, str, str, str]  # inputs, arguments, outcome, reason


@dataclass
class Operation:
    """An ATen operation in all models."""

    name: str
    calls: Counter[str] = field(default_factory=Counter)  # by outcome
    variations: dict[Signature, Counter[int]] = field(default_factory=lambda: defaultdict(Counter))  # calls by row
    by_row: dict[int, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))  # calls by row and outcome
    host: list[tuple[int, str, str, int]] = field(default_factory=list)  # row, reason, line of the model, times


def operations(rows: Sequence[Row]) -> dict[str, Operation]:
    """Every operation with the rows it occurs in; rows are numbered in order."""
    found: dict[str, Operation] = {}
    for number, row in enumerate(rows):
        for each in row.variations:
            operation = found.setdefault(each.op, Operation(each.op))
            operation.calls[each.outcome] += each.count
            operation.variations[_signature(each)][number] += each.count
            operation.by_row[number][each.outcome] += each.count
        for host_op in row.host_ops:
            operation = found.setdefault(host_op.op, Operation(host_op.op))
            operation.host.append((number, host_op.reason, host_op.source, host_op.count))
    return dict(sorted(found.items()))


def ops_of(row: Row) -> set[str]:
    """The names of all operations in a row."""
    return {each.op for each in row.variations} | {each.op for each in row.host_ops}


def row_line(row: Row, page: str) -> Json:
    """A row as the table of all rows shows it."""
    return {
        "model": row.model,
        "page": page,
        "mode": row.mode,
        "family": row.family,
        "source": row.source,
        "task": row.task,
        "reduced": " ".join(filter(None, (row.reduced, row.compared))),
        "status": row.status,
        "reason": row.reason,
        "batch": row.batch,
        "parameters": row.parameters,
        "before": [row.ops_before, row.ops_before_unique],
        "remain": [row.ops_remaining, row.ops_remaining_unique],
        "crossings": [row.uploads + row.downloads, row.crossings_within],
        "conversions": row.conversions,
        "first": number(row.first_seconds),
        "original": number(row.original_seconds),
        "compiled": number(row.compiled_seconds),
        "predicted": None if row.predicted is None else number(row.predicted.device_seconds),
        "pcc": accuracy(row),
        "dram": row.dram_peak,
        "host": sorted(_host_counts(row).items()),
        "tasks": [[each.name, each.metric, each.items, number(each.torch), number(each.device)] for each in row.tasks],
    }


def row_page(row: Row) -> Json:
    """A row as the page of its model shows it, in addition to its line."""
    by_op: dict[str, Counter[str]] = defaultdict(Counter)
    for each in row.variations:
        by_op[each.op][each.outcome] += each.count
    return {
        "inputs": row.inputs,
        "details": row.details,
        "programs": row.programs,
        "deviceOps": row.device_ops,
        "uploads": row.uploads,
        "downloads": row.downloads,
        "calls": row.calls,
        "outputPcc": number(row.pcc),
        "error": number(row.relative_error),
        "torchPcc": number(row.torch_pcc),
        "hostOps": [[each.op, each.count, each.reason, each.source] for each in row.host_ops],
        "moves": [[each.kind, each.count, each.bytes, each.reason] for each in row.moves],
        "fusions": [[each.name, each.count] for each in row.fusions],
        "variations": [
            [each.op, each.inputs, each.arguments, each.outcome, each.count, each.reason] for each in row.variations
        ],
        "ops": [[op, *(calls[outcome] for outcome in OUTCOMES)] for op, calls in sorted(by_op.items())],
        "gradients": [[each.parameter, number(each.pcc), number(each.relative_error)] for each in row.gradients],
        "losses": [
            [step + 1, number(theirs), number(ours)]
            for step, (theirs, ours) in enumerate(zip(row.original_losses, row.losses))
        ],
        "memory": {"dram": row.dram_peak, "weights": row.weights, "l1": row.l1_peak, "process": row.host_peak},
        "prediction": None if row.predicted is None else dataclasses.asdict(row.predicted),
        "device": row.device,
        "seed": row.seed,
        "versions": sorted(row.versions.items()),
    }


def operation_line(operation: Operation, rows: Sequence[Row], page: str) -> Json:
    """An operation as the list of all operations shows it."""
    users = {*operation.by_row, *(row for row, *_ in operation.host)}
    return {
        "name": operation.name,
        "page": page,
        "calls": [operation.calls[outcome] for outcome in OUTCOMES],
        "models": len({rows[each].model for each in users}),
        "variations": len(operation.variations),
        "left": sum(count for *_, count in operation.host),
        "reasons": sorted({reason for _, reason, _, _ in operation.host if reason}),
    }


def operation_page(operation: Operation, rows: Sequence[Row], pages: Mapping[str, str]) -> Json:
    """An operation with every variation and the models that use it; only their rows are included, renumbered."""
    users = sorted({*operation.by_row, *(row for row, *_ in operation.host)})
    numbers = {row: number for number, row in enumerate(users)}
    return {
        "name": operation.name,
        "rows": [
            [rows[each].model, rows[each].mode, pages[rows[each].model], *_counts(operation.by_row.get(each))]
            for each in users
        ],
        "variations": [
            [*variation, sum(calls.values()), sorted((numbers[row], count) for row, count in calls.items())]
            for variation, calls in sorted(operation.variations.items(), key=_most_calls)
        ],
        "host": [[numbers[row], reason, line, count] for row, reason, line, count in operation.host],
    }


def number(value: float | None) -> float | None:
    """The value, or None if JSON has no number for it."""
    return value if value is not None and math.isfinite(value) else None


def _signature(each: Variation) -> Signature:
    return (each.inputs, each.arguments, each.outcome, each.reason)


def _counts(calls: Counter[str] | None) -> Iterable[int]:
    return [calls[outcome] if calls else 0 for outcome in OUTCOMES]


def _most_calls(item: tuple[Signature, Counter[int]]) -> tuple[int, Signature]:
    return (-sum(item[1].values()), item[0])


def _host_counts(row: Row) -> Counter[str]:
    found: Counter[str] = Counter()
    for each in row.host_ops:
        found[each.op] += each.count
    return found
