"""Executors of jobs: the local one, and the interface that others implement."""

from __future__ import annotations

import os
import pathlib
from collections import deque
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import wait
from typing import Protocol

from torch_ttnn.jobs.isolated import POLL_SECONDS, Isolated, processes
from torch_ttnn.jobs.job import Job, Limits, Outcome
from torch_ttnn.system.file_names import file_stem

Events = Generator[tuple[Job, "Outcome | None"], None, None]


class Executor(Protocol):
    """Runs jobs."""

    def run(self, jobs: Sequence[Job], limits: Limits, logs: pathlib.Path) -> Events:
        """Yields each job twice: with None when it starts, and with its outcome when it ends, in any order.

        A failed job does not stop the others. Closing the generator stops all running jobs.
        """
        ...


@dataclass(frozen=True)
class LocalExecutor:
    """Runs jobs as processes on this machine.

    `preload` names modules that jobs need: on Linux they are imported once for all jobs.
    """

    workers: int = 1
    preload: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.workers < 1:
            raise ValueError(f"jobs need at least one worker, not {self.workers}")

    def run(self, jobs: Sequence[Job], limits: Limits, logs: pathlib.Path) -> Events:
        context = processes(self.preload)
        waiting = deque(jobs)
        running: list[Isolated] = []
        threads = max(1, (os.cpu_count() or 1) // self.workers)
        try:
            while waiting or running:
                while waiting and len(running) < self.workers:
                    job = waiting.popleft()
                    running.append(Isolated(job, limits, logs / f"{file_stem(job.name)}.txt", context, threads))
                    yield job, None
                wait([event for each in running for event in each.events], POLL_SECONDS)
                for each in list(running):
                    if (outcome := each.poll()) is not None:
                        running.remove(each)
                        yield each.job, outcome
        finally:
            for each in running:
                each.stop()
