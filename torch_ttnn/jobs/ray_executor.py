"""Runs jobs on a Ray cluster, each in a separate process of a worker, with the same limits as on this machine.

A Ray worker starts the process and waits for it, so limits, logs and reasons are the same as for local jobs. Workers
need torch_ttnn installed; jobs and outcomes are sent as JSON. Environment variables that start with `TORCH_TTNN` are
passed on; all others are those of the worker's machine.
"""

from __future__ import annotations

import json
import os
import pathlib
import tempfile
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from typing import Any

from torch_ttnn.errors import UserError
from torch_ttnn.jobs.executors import Events
from torch_ttnn.jobs.isolated import Isolated, processes
from torch_ttnn.jobs.job import Job, Limits, Outcome, Status
from torch_ttnn.system.file_names import file_stem

RETRIES = 1  # of a job whose worker or machine died
PREFIX = "TORCH_TTNN"
WAIT_SECONDS = 0.5
ENDING_SECONDS = 10.0  # for a cancelled worker


class RayError(UserError, RuntimeError):
    """Ray is not installed, or cannot provide what was requested; the message says what to do."""


@dataclass(frozen=True)
class RayExecutor:
    """Workers of a Ray cluster.

    workers  jobs at a time; each takes `cpus` of the cluster's, and the memory of its limit if it has one
    address  of the cluster ("auto", "ray://host:10001", "host:6379"); None uses the Ray that this process is connected
             to, or starts one on this machine while the jobs run
    preload  modules that are imported once per worker, not once per job
    """

    workers: int = 1
    address: str | None = None
    preload: tuple[str, ...] = ()
    cpus: float = 1

    def __post_init__(self) -> None:
        if self.workers < 1:
            raise ValueError(f"jobs need at least one worker, not {self.workers}")

    def run(self, jobs: Sequence[Job], limits: Limits, logs: pathlib.Path) -> Events:
        if not jobs:
            return
        logs.mkdir(parents=True, exist_ok=True)
        with connected(self.address) as ray:
            _require_room(ray, limits, self.cpus)
            perform = ray.remote(_perform).options(
                num_cpus=self.cpus, max_retries=RETRIES, retry_exceptions=False, **_memory(limits)
            )
            waiting = deque(jobs)
            running: dict[Any, Job] = {}
            try:
                while waiting or running:
                    while waiting and len(running) < self.workers:
                        job = waiting.popleft()
                        running[perform.remote(_request(job, limits, self))] = job
                        yield job, None
                    ended, _ = ray.wait(list(running), timeout=WAIT_SECONDS)
                    for reference in ended:
                        job = running.pop(reference)
                        yield job, _outcome(ray, reference, job, logs)
            finally:
                _cancel(ray, list(running))


# -- the cluster ------------------------------------------------------------------------------------------------------


@contextmanager
def connected(address: str | None) -> Iterator[Any]:
    """Connect to Ray, and disconnect afterwards if it was not connected before."""
    if find_spec("ray") is None:
        raise RayError('jobs on a cluster need Ray, which is not installed: pip install "torch_ttnn[ray]"')
    import ray

    if ray.is_initialized():
        yield ray
        return
    try:
        ray.init(address=address or "local", include_dashboard=False, log_to_driver=False, configure_logging=False)
    except Exception as error:  # Ray raises many kinds of errors
        where = f"the cluster {address}" if address else "Ray on this machine"
        raise RayError(f"{where} could not be reached or started: {str(error).splitlines()[0]}") from error
    try:
        yield ray
    finally:
        ray.shutdown()


def _require_room(ray: Any, limits: Limits, cpus: float) -> None:
    """Raise if no machine has the resources of a job: Ray would wait forever."""
    nodes = [node.get("Resources", {}) for node in ray.nodes() if node.get("Alive")]
    wanted = {"CPU": cpus, "memory": limits.memory or 0}
    if any(all(node.get(name, 0) >= amount for name, amount in wanted.items()) for node in nodes):
        return
    available = ", ".join(f"{node.get('CPU', 0):g} CPUs and {node.get('memory', 0) / 2**30:.1f} GiB" for node in nodes)
    needed = f"{cpus:g} CPUs" + (f" and {limits.memory / 2**30:.1f} GiB" if limits.memory else "")
    raise RayError(f"no machine of the cluster has the {needed} that a job may use; they have {available or 'nothing'}")


def _memory(limits: Limits) -> dict[str, int]:
    return {"memory": limits.memory} if limits.memory else {}


def _cancel(ray: Any, references: list[Any]) -> None:
    """Stop workers; a job ends with the process that started it."""
    for reference in references:
        with suppress(Exception):  # it may have finished, or its machine is gone
            ray.cancel(reference, force=True)
    if references:
        with suppress(Exception):
            ray.wait(references, num_returns=len(references), timeout=ENDING_SECONDS)


# -- messages --------------------------------------------------------------------------------------------------------


def _request(job: Job, limits: Limits, executor: RayExecutor) -> str:
    variables = {name: value for name, value in os.environ.items() if name.startswith(PREFIX)}
    return json.dumps(
        {
            "job": {"name": job.name, "function": job.function, "arguments": dict(job.arguments)},
            "limits": asdict(limits),
            "preload": list(executor.preload),
            "threads": max(1, int(executor.cpus)),
            "environment": variables,
        }
    )


def _perform(text: str) -> str:
    """On a worker: run the job in a separate process; returns its outcome and log."""
    request = json.loads(text)
    with tempfile.TemporaryDirectory(prefix="torch_ttnn_job_") as folder:
        log = pathlib.Path(folder) / "log.txt"
        running = Isolated(
            Job(**request["job"]),
            Limits(**request["limits"]),
            log,
            processes(request["preload"]),
            request["threads"],
            request["environment"],
        )
        outcome = running.outcome()
        written = log.read_text(encoding="utf-8", errors="replace")
    return json.dumps({**asdict(outcome), "status": outcome.status.value, "log": written})


def _outcome(ray: Any, reference: Any, job: Job, logs: pathlib.Path) -> Outcome:
    """The outcome of a job, even if its worker died."""
    try:
        content: Mapping[str, Any] = json.loads(ray.get(reference))
    except ray.exceptions.RayTaskError as error:  # our own code failed on the worker
        reason = f"the worker could not run it: {error.cause or error}".splitlines()[0]
        return Outcome(job.name, Status.ERROR, reason=reason, details=str(error))
    except ray.exceptions.RayError as error:
        kind, first = type(error).__name__, (str(error).strip() or "no message").splitlines()[0]
        reason = f"its worker died, and so did the one that retried it ({kind}: {first})"
        return Outcome(job.name, Status.CRASH, reason=reason, details=str(error))
    (logs / f"{file_stem(job.name)}.txt").write_text(content["log"], encoding="utf-8")
    fields = {name: value for name, value in content.items() if name != "log"}
    return Outcome(**{**fields, "status": Status(content["status"])})
