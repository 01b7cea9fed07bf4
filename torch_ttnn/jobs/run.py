"""Runs jobs, stores their outcomes, and resumes an earlier run."""

from __future__ import annotations

import pathlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from typing import Any

from torch_ttnn.jobs.executors import Executor, LocalExecutor
from torch_ttnn.jobs.job import Job, Limits, Outcome, Status
from torch_ttnn.jobs.progress import Silent, Watcher
from torch_ttnn.jobs.store import Results

NO_LIMITS = Limits()
LOGS = "logs"  # folder within that of the results


def run(
    jobs: Sequence[Job],
    folder: str | pathlib.Path,
    *,
    executor: Executor | None = None,
    limits: Limits = NO_LIMITS,
    conditions: Mapping[str, Any] | None = None,
    again: bool = False,
    valid: Callable[[Outcome], bool] = lambda outcome: True,
    watcher: Watcher | None = None,
) -> list[Outcome]:
    """The outcomes of all jobs, in order; each is written to `folder` as soon as it is known.

    Stored outcomes are reused, unless `again` is set or `valid` rejects them (for instance because files they name
    are gone). An interrupted run keeps finished outcomes and leaves no process behind. If the disk cannot be written,
    it raises an OSError, if possible before the first job: all later jobs would fail as well.
    """
    _check_names(jobs)
    results = Results(pathlib.Path(folder), conditions or {})
    watcher = watcher or Silent()
    outcomes: dict[str, Outcome] = {}
    for job in jobs:
        found = None if again else results.find(job)
        if found is not None and valid(found):
            outcomes[job.name] = found
    missing = [job for job in jobs if job.name not in outcomes]
    if missing:
        results.require_room()
    with watcher.watching(len(jobs), list(outcomes.values())):
        chosen = executor or LocalExecutor()
        with closing(chosen.run(missing, limits, results.folder / LOGS)) as events:
            for job, outcome in events:
                if outcome is None:
                    results.forget(job)  # it is about to be replaced
                    watcher.started(job)
                elif outcome.status is Status.DISK:
                    raise OSError(*outcome.result)
                else:
                    results.keep(job, outcome)
                    outcomes[job.name] = outcome
                    watcher.ended(job, outcome)
    return [outcomes[job.name] for job in jobs]


def _check_names(jobs: Sequence[Job]) -> None:
    names = [job.name for job in jobs]
    repeated = sorted({name for name in names if names.count(name) > 1}) if len(set(names)) < len(names) else []
    if repeated:
        raise ValueError(f"jobs with the same name would share a result: {', '.join(repeated)}")
