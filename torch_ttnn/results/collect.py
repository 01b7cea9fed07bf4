"""Measures many models, each in its own process, and resumes where an earlier run stopped."""

from __future__ import annotations

import pathlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from torch_ttnn import jobs
from torch_ttnn.results import store
from torch_ttnn.results.measure import about
from torch_ttnn.results.portable_text import portable
from torch_ttnn.results.provenance import sources, versions
from torch_ttnn.results.record import EVAL, FAILS, TRAIN, Row
from torch_ttnn.zoo import ModelEntry, catalog

FUNCTION = "torch_ttnn.results.measure:measure_model"
PRELOAD = ("torch_ttnn.workloads.preload", "torch_ttnn.results.training")
BOTH = "both"
MODES: Mapping[str, tuple[str, ...]] = {EVAL: (EVAL,), TRAIN: (TRAIN,), BOTH: (EVAL, TRAIN)}


@dataclass(frozen=True)
class Choice:
    """Which rows to measure: filters on models, and the mode."""

    mode: str = EVAL  # one of MODES
    family: str | None = None
    source: str | None = None
    size: str | None = None  # "full" or "reduced"

    def matches(self, model: ModelEntry | Row) -> bool:
        """Whether a model, or one of its rows, passes the filters."""
        size = "reduced" if model.reduced else "full"
        is_same_kind = self.family in (None, model.family) and self.source in (None, model.source)
        return is_same_kind and self.size in (None, size)

    def expects(self, row: Row) -> bool:
        """Whether a run over all models measures this row."""
        return row.mode in MODES[self.mode] and self.matches(row)


@dataclass(frozen=True)
class Request:
    """A row to measure."""

    name: str  # accepted by `catalog.resolve`
    entry: ModelEntry
    mode: str

    @property
    def key(self) -> str:
        return Row(self.entry.name, self.mode).key


@dataclass(frozen=True)
class Collected:
    """Rows in the requested order; `stale` are the keys of those measured with other sources of the compiler."""

    rows: list[Row]
    stale: tuple[str, ...] = ()


def requests(names: Iterable[str], choice: Choice, *, named: Iterable[str] = (), **arguments: Any) -> list[Request]:
    """The rows to measure for these models. Models that are not among `named` get a training row only if their zoo
    entry has `train` set."""
    explicit = frozenset(named)
    found: dict[str, Request] = {}
    for name in names:
        entry = catalog.resolve(name, **arguments)
        for mode in MODES[choice.mode] if choice.matches(entry) else ():
            if mode == EVAL or entry.train or (name in explicit and choice.mode == TRAIN):
                row = Request(name, entry, mode)
                found.setdefault(row.key, row)
    return list(found.values())


def collect(
    wanted: Sequence[Request],
    folder: str | pathlib.Path,
    arguments: Mapping[str, Any] | None = None,
    *,
    executor: jobs.Executor | None = None,
    limits: jobs.Limits | None = None,
    again: bool = False,
    changed: bool = False,
    watcher: jobs.Watcher | None = None,
) -> Collected:
    """Measure these rows. Each is written to `folder/rows` as soon as it is known.

    Rows that failed are measured again, with `changed` also those measured with other sources of the compiler.
    `arguments` are those of `measure.measure_model`.
    """
    folder = pathlib.Path(folder)
    conditions = {name: version for name, version in versions().items() if name != "sources"}
    outcomes = jobs.run(
        [jobs.Job(each.key, FUNCTION, {"model": each.name, "mode": each.mode, **(arguments or {})}) for each in wanted],
        folder / store.ROWS,
        executor=executor or jobs.LocalExecutor(preload=PRELOAD if len(wanted) > 1 else ()),
        limits=limits or jobs.Limits(),
        conditions=conditions,
        again=again,
        valid=lambda outcome: _is_good(outcome, changed),
        watcher=watcher,
    )
    rows = [_row(each, outcome) for each, outcome in zip(wanted, outcomes)]
    stale = [row.key for row in rows if row.versions.get("sources") != sources()]
    return Collected(rows, tuple(stale))


def _is_good(outcome: jobs.Outcome, changed: bool) -> bool:
    try:
        row = Row.from_json(outcome.result)
    except ValueError:  # of another version
        return False
    return row.status != FAILS and (not changed or row.versions.get("sources") == sources())


def _row(request: Request, outcome: jobs.Outcome) -> Row:
    """The row that a job returned, or a row that says why the job failed."""
    if outcome.ok:
        return Row.from_json(outcome.result)
    return replace(
        about(request.entry),
        mode=request.mode,
        status=FAILS,
        reason=portable(outcome.reason),
        details=portable(outcome.details),
        host_peak=outcome.peak_memory,
    )


class Display(jobs.Display):
    """Shows a row with the status `fails` as a failure, although its job succeeded."""

    def ended(self, job: jobs.Job, outcome: jobs.Outcome) -> None:
        result = outcome.result
        if outcome.ok and isinstance(result, Mapping) and result.get("status") == FAILS:
            outcome = replace(outcome, status=jobs.Status.ERROR, reason=str(result.get("reason", "")))
        super().ended(job, outcome)
