"""Runs jobs in separate processes, so that a crash, a hang or a lack of memory costs one result only.

A job is a name, an importable function, and arguments that can be written as JSON, as can its result.

>>> import tempfile
>>> from torch_ttnn import jobs
>>> wanted = [jobs.Job("read", "json:loads", {"s": "[4, 2]"})]
>>> with tempfile.TemporaryDirectory() as folder:
...     [row.result for row in jobs.run(wanted, folder)]
[[4, 2]]

Results are one JSON file per job. A second run reuses them and runs jobs that are missing, failed or have other
arguments. On Linux, libraries are imported once for all jobs.
"""

from __future__ import annotations

from torch_ttnn.jobs.executors import Events, Executor, LocalExecutor
from torch_ttnn.jobs.job import Job, Limits, Outcome, Status
from torch_ttnn.jobs.progress import Display, Watcher
from torch_ttnn.jobs.run import run
from torch_ttnn.jobs.store import Results

__all__ = [
    "run",
    "Job",
    "Limits",
    "Outcome",
    "Status",
    "Results",
    "Executor",
    "Events",
    "LocalExecutor",
    "Display",
    "Watcher",
]
