"""Whether results got worse: the rows of a run compared with the committed ones, field by field.

Counts are exact, since a run is deterministic. Correlations may be lower by a tolerance, because other
machines round differently. Predicted times may be longer by a tolerance, because constants of the timing model are
refined. Measured times are compared only on request: they depend on the machine and its load.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from torch_ttnn.results.record import FAILS, STATUSES, Row, Task

PCC_TOLERANCE = 1e-3
PREDICTED_TOLERANCE = 0.05  # by which the predicted device time may grow
POINTS = 0.5  # of accuracy that a task may lose
# Rows that differ in these fields do not measure the same thing.
CONDITIONS = ("device", "seed", "batch", "inputs", "reduced", "compared")


@dataclass(frozen=True)
class Change:
    """A field of a row that changed."""

    key: str
    field: str
    before: Any
    after: Any

    def __str__(self) -> str:
        return f"{self.key}: {self.field} {_text(self.before)} → {_text(self.after)}"


@dataclass(frozen=True)
class Verdict:
    """What changed between the committed rows and those of a run."""

    worse: tuple[Change, ...] = ()
    better: tuple[Change, ...] = ()
    vanished: tuple[str, ...] = ()
    new: tuple[str, ...] = ()
    other_conditions: tuple[Change, ...] = ()
    compared: int = 0

    @property
    def ok(self) -> bool:
        return not self.worse and not self.vanished


@dataclass(frozen=True)
class Measure:
    """A number of a row; lower is better. None if the row has none."""

    field: str
    of: Callable[[Row], float | None]
    shown: Callable[[Row], Any]
    tolerance: float = 0.0


def check(
    measured: Iterable[Row],
    kept: Iterable[Row],
    *,
    expected: Callable[[Row], bool] | None = None,
    tolerance: float = PCC_TOLERANCE,
    times: float | None = None,
) -> Verdict:
    """What got worse and what got better. `expected` says which of the kept rows the run should contain (by default
    those that it does); `times` is the ratio by which compiled calls may be slower.

    >>> check([Row("a", status="device", pcc=0.9)], [Row("a", status="device", pcc=0.999)]).worse[0].field
    'pcc'
    """
    now = {row.key: row for row in measured}
    before = {row.key: row for row in kept}
    both = [key for key in before if key in now]
    changes = [change for key in both for change in _changes(before[key], now[key], tolerance, times)]
    return Verdict(
        worse=tuple([change for change, is_worse in changes if is_worse]),
        better=tuple([change for change, is_worse in changes if not is_worse]),
        vanished=tuple([key for key in before if key not in now and expected is not None and expected(before[key])]),
        new=tuple([key for key in now if key not in before]),
        other_conditions=tuple([change for key in both for change in _conditions(before[key], now[key])]),
        compared=len(both),
    )


def _changes(before: Row, now: Row, tolerance: float, times: float | None) -> Iterator[tuple[Change, bool]]:
    """What changed in a row, and whether it got worse."""
    fails = FAILS in (before.status, now.status)  # nothing else can be compared
    for measure in [STATUS] if fails else [STATUS, *_numbers(tolerance), *_tasks(before), *_times(times)]:
        old, new = measure.of(before), measure.of(now)
        if old is None or new is None or abs(new - old) <= measure.tolerance:
            continue
        yield Change(now.key, measure.field, measure.shown(before), measure.shown(now)), new > old


def _conditions(before: Row, now: Row) -> Iterator[Change]:
    """Differences that make two rows hard to compare."""
    for name in CONDITIONS:
        if getattr(before, name) != getattr(now, name):
            yield Change(now.key, name, getattr(before, name), getattr(now, name))
    if len(before.tasks) != len(now.tasks) and now.status != FAILS:
        yield Change(now.key, "tasks", len(before.tasks), len(now.tasks))


# -- measures ---------------------------------------------------------------------------------------------------------


def _status_text(row: Row) -> str:
    return f"{row.status} ({row.reason})" if row.reason else row.status


STATUS = Measure("status", lambda row: float(STATUSES.index(row.status)), _status_text)
COUNTS = ("ops_remaining", "uploads", "downloads", "crossings_within", "conversions")
CORRELATIONS = ("pcc", "gradient_pcc")


def _numbers(tolerance: float) -> list[Measure]:
    return [
        *[Measure(name, _value(name), _value(name)) for name in COUNTS],
        *[Measure(name, _distance(name), _value(name), tolerance) for name in CORRELATIONS],
        Measure("predicted device seconds", _log_predicted, _predicted, math.log1p(PREDICTED_TOLERANCE)),
    ]


def _predicted(row: Row) -> float | None:
    return None if row.predicted is None else row.predicted.device_seconds


def _log_predicted(row: Row) -> float | None:
    return math.log(seconds) if (seconds := _predicted(row)) else None


def _value(name: str) -> Callable[[Row], Any]:
    return lambda row: getattr(row, name)


def _distance(name: str) -> Callable[[Row], float | None]:
    """Distance from 1, the best value."""
    return lambda row: 1 - getattr(row, name) if getattr(row, name) is not None else None


def _tasks(before: Row) -> list[Measure]:
    """Points that the device loses against torch, not its score: other items may be harder for both."""

    def task_of(row: Row, name: str) -> Task | None:
        return next((task for task in row.tasks if task.name == name), None)

    def loss(name: str, row: Row) -> float | None:
        task = task_of(row, name)
        return None if task is None else task.torch - task.device

    def score(name: str, row: Row) -> float | None:
        task = task_of(row, name)
        return None if task is None else task.device

    return [
        Measure(f"task {task.name}", partial(loss, task.name), partial(score, task.name), POINTS)
        for task in before.tasks
    ]


def _times(ratio: float | None) -> list[Measure]:
    """Compiled over original time, so that a slower machine makes no difference."""
    if ratio is None:
        return []
    if not ratio >= 1:
        raise ValueError(f"the allowed slowdown must be at least 1, not {ratio}")

    def slowdown(row: Row) -> float | None:
        return row.compiled_seconds / row.original_seconds if row.calls and row.original_seconds else None

    def logarithm(row: Row) -> float | None:
        ratio = slowdown(row)
        return math.log(ratio) if ratio else None

    return [Measure("compiled over original time", logarithm, slowdown, math.log(ratio))]


def _text(value: Any) -> str:
    return f"{value:.5g}" if isinstance(value, float) else str(value)
