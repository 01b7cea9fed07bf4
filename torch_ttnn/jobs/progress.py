"""Progress of running jobs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from torch_ttnn.jobs.job import Job, Outcome

SHOWN = 3  # names of running jobs


class Watcher(Protocol):
    """Observes jobs."""

    def watching(self, total: int, done: Sequence[Outcome]) -> AbstractContextManager[None]: ...

    def started(self, job: Job) -> None: ...

    def ended(self, job: Job, outcome: Outcome) -> None: ...


class Silent:
    """Shows nothing."""

    @contextmanager
    def watching(self, total: int, done: Sequence[Outcome]) -> Iterator[None]:
        yield

    def started(self, job: Job) -> None:
        pass

    def ended(self, job: Job, outcome: Outcome) -> None:
        pass


class Display:
    """A progress bar with the names of running jobs, and a line per failure."""

    def __init__(self, console: Console | None = None) -> None:
        self.console = console or Console(stderr=True, highlight=False)
        self._running: list[str] = []
        self._done = self._failed = 0
        columns = (BarColumn(20), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
        self._progress = Progress(*columns, console=self.console, transient=True)
        self._task = self._progress.add_task("", total=0)

    @contextmanager
    def watching(self, total: int, done: Sequence[Outcome]) -> Iterator[None]:
        self._done = len(done)
        self._progress.update(self._task, total=total, completed=len(done))
        if done:
            self.console.print(f"{len(done)} of {total} were already done")
        with self._progress:
            yield

    def started(self, job: Job) -> None:
        self._running.append(job.name)
        self._show()

    def ended(self, job: Job, outcome: Outcome) -> None:
        self._running.remove(job.name)
        self._done += outcome.ok
        self._failed += not outcome.ok
        self._progress.advance(self._task)
        if not outcome.ok:
            self.console.print(f"{job.name}: {outcome.reason}", style="red", markup=False, soft_wrap=True)
        self._show()

    def _show(self) -> None:
        more = f" and {len(self._running) - SHOWN} more" if len(self._running) > SHOWN else ""
        counts = f"{self._done} done" + (f", {self._failed} failed" if self._failed else "")
        names = ", ".join(self._running[:SHOWN]).replace("[", r"\[")
        self._progress.update(self._task, description=f"{counts}; running {names}{more}" if names else counts)
