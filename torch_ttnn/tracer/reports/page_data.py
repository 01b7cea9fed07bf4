"""The JSON data of the pages: summaries of one or several runs, with long tails truncated.

A table is a list of rows `[value, calls in the first run, calls in the second run ...]`, so that the page of one run
and the comparison of two share their parts.
"""

from __future__ import annotations

import heapq
import itertools
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from torch_ttnn.tracer.reports.changes import change_of_model, change_of_op
from torch_ttnn.tracer.reports.summary import PHASES, ModelPhase, OpSummary, Summary
from torch_ttnn.tracer.reports.verdicts import locations

VALUES, SHAPES, REASONS = 24, 40, 40  # rows kept per table; the page says how many more there are
LONGEST_TEXT = 300  # characters kept of a value, a shape or a reason; longer texts say so at their end


def page_data(runs: Sequence[Summary], titles: Sequence[str]) -> dict[str, Any]:
    """Everything that the page's script shows."""
    models = list(dict.fromkeys(itertools.chain.from_iterable(run.models for run in runs)))
    number = {name: index for index, name in enumerate(models)}
    return {
        "titles": list(titles),
        "models": [_model(name, runs) for name in models],
        "phases": {
            phase: {"title": title, "ops": [_op(ops, number) for ops in _across_runs(runs, phase)]}
            for phase, title in PHASES.items()
        },
    }


def shortened(text: str) -> str:
    """
    >>> shortened("x" * 400)[295:]
    'xxxxx… (100 more characters)'
    """
    return text if len(text) <= LONGEST_TEXT else f"{text[:LONGEST_TEXT]}… ({len(text) - LONGEST_TEXT} more characters)"


# -- operations -------------------------------------------------------------------------------------------------------


def _across_runs(runs: Sequence[Summary], phase: str) -> Iterable[list[OpSummary | None]]:
    """Each operation of any run with its summaries in all runs; most frequent first."""
    tables = [run.phases.get(phase, {}) for run in runs]
    names = dict.fromkeys(itertools.chain.from_iterable(tables))
    summaries = [[table.get(name) for table in tables] for name in names]
    return sorted(summaries, key=lambda ops: (-max(op.count for op in ops if op), _any(ops).op_type))


def _any(ops: Sequence[OpSummary | None]) -> OpSummary:
    return next(op for op in ops if op is not None)


def _op(ops: Sequence[OpSummary | None], number: dict[str, int]) -> dict[str, Any]:
    found = [op or OpSummary(_any(ops).op_type) for op in ops]
    arguments = dict.fromkeys(itertools.chain.from_iterable(op.arguments for op in found))
    fields = {
        "name": found[0].op_type,
        "calls": [op.count for op in found],
        "flops": [op.flops for op in found],
        "in": [op.bytes_in for op in found],
        "out": [op.bytes_out for op in found],
        "models": [[number[name], *calls] for name, *calls in _rows([op.models for op in found]) if name in number],
        "statuses": _rows([locations(op.lowering) for op in found]),
        "lowering": _common([op.lowering for op in found], REASONS),
        "inputs": _sizes([op.input_sizes for op in found]),
        "outputs": _sizes([op.output_sizes for op in found]),
        "shapes": _common([op.shapes for op in found], SHAPES),
        "dtypes": _common([op.dtypes for op in found], VALUES),
        "arguments": [
            [shortened(name), _common([op.arguments.get(name, Counter()) for op in found], VALUES)]
            for name in arguments
        ],
        "source": shortened(next((op.source for op in reversed(found) if op.source), "")),
    }
    return fields if len(ops) == 1 else {**fields, "change": change_of_op(*ops)}


def _rows(counters: Sequence[Counter]) -> list[list[Any]]:
    """Most frequent first; ties sorted, so that pages do not change between runs."""
    values = dict.fromkeys(itertools.chain.from_iterable(counters))
    rows = [[value, *[counter.get(value, 0) for counter in counters]] for value in values]
    return sorted(rows, key=_weight)


def _weight(row: list[Any]) -> tuple[int, Any]:
    return -max(row[1:]), row[0]


def _common(counters: Sequence[Counter], limit: int) -> dict[str, Any]:
    """The most frequent values of all counters; then the number of the others and of their calls."""
    values = set().union(*counters)
    rows = [[value, *[counter.get(value, 0) for counter in counters]] for value in values]
    top = heapq.nsmallest(limit, rows, key=_weight)
    rest = [counter.total() - sum(row[run] for row in top) for run, counter in enumerate(counters, 1)]
    fields: dict[str, Any] = {"rows": [[_shown(value), *calls] for value, *calls in top]}
    return {**fields, "more": [len(rows) - len(top), *rest]} if len(rows) > len(top) else fields


def _shown(value: Any) -> Any:
    return [_shown(each) for each in value] if isinstance(value, tuple) else shortened(value)


def _sizes(counters: Sequence[Counter[int]]) -> dict[str, Any]:
    """Numbers of elements by powers of two (the bin of n elements is floor(log2 n), of none -1), and their spread."""
    bins = [_binned(counter) for counter in counters]
    exponents = sorted(set().union(*bins))
    return {
        "bins": [[exponent, *[counter[exponent] for counter in bins]] for exponent in exponents],
        "spread": [_spread(counter) for counter in counters],
    }


def _binned(sizes: Counter[int]) -> Counter[int]:
    bins: Counter[int] = Counter()
    for size, calls in sizes.items():
        bins[size.bit_length() - 1] += calls
    return bins


def _spread(sizes: Counter[int]) -> list[int]:
    """Minimum, median and maximum; empty if there are no calls."""
    ordered = sorted(sizes.items())
    half, passed = sizes.total() / 2, 0
    for size, calls in ordered:
        passed += calls
        if passed >= half:
            return [ordered[0][0], size, ordered[-1][0]]
    return []


# -- models -----------------------------------------------------------------------------------------------------------


def _model(name: str, runs: Sequence[Summary]) -> dict[str, Any]:
    found = [run.models.get(name) for run in runs]
    fields: dict[str, Any] = {"name": name}
    for phase in PHASES:
        parts = [model.phases.get(phase) if model else None for model in found]
        known = [part if part and (part.graphs or part.ops) else None for part in parts]
        if any(known):
            fields[phase] = _model_phase(known)
    return fields


def _model_phase(parts: Sequence[ModelPhase | None]) -> dict[str, Any]:
    found = [part or ModelPhase() for part in parts]
    fields = {
        "graphs": [part.graphs for part in found],
        "ops": [part.ops for part in found],
        "distinct": [part.distinct_ops for part in found],
        "flops": [part.flops for part in found],
        "in": [part.bytes_in for part in found],
        "out": [part.bytes_out for part in found],
        "statuses": _rows([part.lowering for part in found]),
    }
    return fields if len(parts) == 1 else {**fields, "change": change_of_model(*parts)}
