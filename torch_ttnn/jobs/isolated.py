"""Runs one job in a separate process with limits, and kills it with all its children."""

from __future__ import annotations

import json
import multiprocessing
import os
import pathlib
import re
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import psutil

from torch_ttnn.jobs import child
from torch_ttnn.jobs.job import Job, Limits, Outcome, Status

POLL_SECONDS = 0.2
REAPING_SECONDS = 10.0  # to reap a killed process; takes longer only if the fork server is suspended
TAIL_LINES = 30  # of the log, stored with a failed job
GRACE_SECONDS = 1.0  # for a job to write its stack or to clean up


def processes(preload: Sequence[str] = ()) -> Any:
    """The multiprocessing context: on Linux a fork server that has imported `preload`, else new processes.

    A fork takes 0.05 s, `import torch_ttnn` 5 s. Forking is not safe on other systems.
    """
    if not sys.platform.startswith("linux"):
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["torch_ttnn.jobs.child", *preload])
    return context


class Isolated:
    """A running job."""

    def __init__(
        self,
        job: Job,
        limits: Limits,
        log: pathlib.Path,
        context: Any,
        threads: int | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.job, self.limits, self.log = job, limits, log
        self.peak_memory = 0
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_bytes(b"")
        self._connection, child_connection = context.Pipe(duplex=False)
        arguments = (child_connection, job, str(log), {**os.environ, **(environment or {})}, threads)
        self._process = context.Process(target=child.main, args=arguments, name=f"job {job.name}")
        self._process.start()
        child_connection.close()
        self._start = time.monotonic()

    @property
    def events(self) -> list[Any]:
        """Objects for `multiprocessing.connection.wait`; after it, call `poll`."""
        return [self._connection, self._process.sentinel]

    def poll(self) -> Outcome | None:
        """The outcome, or None while the job runs; kills a job that exceeds its limits."""
        ended = not self._process.is_alive()  # before reading messages: an ended process sends no more
        message = self._message()
        if message is not None:
            self._process.join(GRACE_SECONDS)  # it has sent its result and cleans up
            return self._ended(_outcome_of(self.job, message))
        if ended:
            return self._ended(self._crashed())
        used = self._memory()
        self.peak_memory = max(self.peak_memory, used)
        if self.limits.memory is not None and used > self.limits.memory:
            reason = f"used {_gigabytes(used)} of memory; the limit is {_gigabytes(self.limits.memory)}"
            return self._ended(Outcome(self.job.name, Status.MEMORY, reason=reason))
        if self.limits.seconds is not None and time.monotonic() - self._start > self.limits.seconds:
            frame = self._place()
            reason = f"not done after {self.limits.seconds:g} s" + (f"; it was in {frame}" if frame else "")
            return self._ended(Outcome(self.job.name, Status.TIMEOUT, reason=reason))
        return None

    def outcome(self) -> Outcome:
        """Wait for the outcome."""
        try:
            while (found := self.poll()) is None:
                multiprocessing.connection.wait(self.events, POLL_SECONDS)
            return found
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Kill the process and all its children."""
        started = self._tree()
        if hasattr(os, "killpg") and self._process.pid:
            with suppress(ProcessLookupError, PermissionError):  # ended, or not yet a group leader
                os.killpg(self._process.pid, signal.SIGKILL)
        for process in started:
            with suppress(psutil.Error):
                process.kill()
        self._process.join(REAPING_SECONDS)
        self._connection.close()

    def _ended(self, outcome: Outcome) -> Outcome:
        seconds = time.monotonic() - self._start
        self.peak_memory = max(self.peak_memory, self._memory())
        self.stop()
        details = outcome.details or ("" if outcome.ok else tail(self.log))
        return Outcome(
            outcome.name, outcome.status, outcome.result, outcome.reason, details, seconds, self.peak_memory
        )  # fmt: skip

    def _message(self) -> dict[str, Any] | None:
        try:
            return json.loads(self._connection.recv_bytes()) if self._connection.poll() else None
        except (EOFError, OSError):  # it ended without a message
            return None

    def _crashed(self) -> Outcome:
        code = self._process.exitcode
        if code is not None and code < 0:
            return Outcome(self.job.name, *_killed(-code))
        return Outcome(self.job.name, Status.CRASH, reason=f"its process ended with exit code {code} and no result")

    def _tree(self) -> list[psutil.Process]:
        try:
            first = psutil.Process(self._process.pid)
            return [first, *first.children(recursive=True)]
        except psutil.Error:
            return []

    def _memory(self) -> int:
        total = 0
        for process in self._tree():
            with suppress(psutil.Error):
                total += process.memory_info().rss
        return total

    def _place(self) -> str:
        """The Python line that a job hangs in, if it still responds to signals."""
        if child.DUMP_SIGNAL is None:
            return ""
        with suppress(ProcessLookupError):
            os.kill(self._process.pid, child.DUMP_SIGNAL)
        until = time.monotonic() + GRACE_SECONDS
        while time.monotonic() < until:
            if found := re.search(r'most recent call first\):\n  File "(.+)", line (\d+) in (.+)', tail(self.log, 400)):
                return f"{found[3]} ({pathlib.Path(found[1]).name}:{found[2]})"
            time.sleep(0.05)
        return ""


def _outcome_of(job: Job, message: dict[str, Any]) -> Outcome:
    if "error" not in message:
        return Outcome(job.name, Status.OK, result=message["result"])
    error = message["error"]
    status = Status.DISK if error.get("disk") else Status.MEMORY if error["memory"] else Status.ERROR
    first = error["message"].splitlines()[0]
    reason = f"{error['kind']}: {first}"
    return Outcome(job.name, status, error.get("disk"), reason=reason, details=error["traceback"])


def _killed(number: int) -> tuple[Status, Any, str]:
    try:
        name = signal.Signals(number).name
    except ValueError:
        name = f"signal {number}"
    why = "; the kernel does that when memory runs out" if name == "SIGKILL" else ""
    return Status.CRASH, None, f"its process was killed by {name}{why}"


def _gigabytes(count: int) -> str:
    return f"{count / 2**30:.1f} GiB"


def tail(log: pathlib.Path, lines: int = TAIL_LINES) -> str:
    """The last lines of a log."""
    with suppress(OSError), open(log, "rb") as file:
        file.seek(max(0, log.stat().st_size - 200 * lines))
        return "\n".join(file.read().decode("utf-8", "replace").splitlines()[-lines:])
    return ""
