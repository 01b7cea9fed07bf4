"""Many jobs, each in a process of its own, so that a crash, a hang or a lack of memory costs one row.

A job is a name, a function that can be imported, and arguments that JSON can hold; its result can too.

>>> import tempfile
>>> from torch_ttnn import jobs
>>> wanted = [jobs.Job("read", "json:loads", {"s": "[4, 2]"})]
>>> with tempfile.TemporaryDirectory() as folder:
...     [row.result for row in jobs.run(wanted, folder)]
[[4, 2]]

Results are one JSON file a job. A second run takes what is there and does what is missing, what failed and what was
asked differently. On Linux a script that runs jobs costs one import of its libraries, not one a job.
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
