"""The process of a job: it detaches from its parent's session, writes to its log, and sends one message back."""

from __future__ import annotations

import errno
import faulthandler
import io
import json
import os
import signal
import sys
import threading
import traceback
from collections.abc import Mapping
from multiprocessing import parent_process
from multiprocessing.connection import Connection, wait
from typing import Any

from torch_ttnn.jobs.job import Job

DUMP_SIGNAL = getattr(signal, "SIGUSR1", None)  # makes a job write its stack before it is killed
ORPHANED = 71  # exit code of a job whose parent died
DISK_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EROFS)
NO_MEMORY = ("can't allocate memory", "not enough memory", "std::bad_alloc", "Cannot allocate memory")


def main(connection: Connection, job: Job, log: str, environment: Mapping[str, str], threads: int | None) -> None:
    """Run a job and send `{"result": …}` or `{"error": …}`."""
    _detach()
    os.environ.clear()
    os.environ.update(environment)
    _redirect_output(log)
    _limit_threads(threads)
    try:
        message = {"result": job.call()}
        text = json.dumps(message, allow_nan=False)
    except BaseException as error:
        text = json.dumps({"error": describe(error)})
    sys.stdout.flush()
    sys.stderr.flush()
    connection.send_bytes(text.encode())
    connection.close()


def describe(error: BaseException) -> dict[str, Any]:
    """An exception as data."""
    lines = traceback.format_exception(type(error), error, error.__traceback__)
    message = str(error).strip() or "no message"
    memory = isinstance(error, MemoryError) or any(words in message for words in NO_MEMORY)
    fields = {"kind": type(error).__name__, "message": message, "traceback": "".join(lines), "memory": memory}
    return {**fields, "disk": _disk_error(error)}


def _disk_error(error: BaseException | None) -> list[Any] | None:
    """Number, message and file of a failed write to a disk, if that is the error or its cause."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        if isinstance(error, OSError) and error.errno in DISK_ERRORS:
            return [error.errno, error.strerror, error.filename and os.fspath(error.filename)]
        error = error.__cause__ or error.__context__
    return None


def _detach() -> None:
    """Start a new session: Ctrl-C reaches the parent only, and the job can be killed with all its children."""
    if hasattr(os, "setsid"):
        os.setsid()
    parent = parent_process()
    if parent is not None:
        threading.Thread(target=_exit_with, args=(parent.sentinel,), daemon=True).start()


def _exit_with(sentinel: Any) -> None:
    wait([sentinel])
    if hasattr(os, "killpg"):
        os.killpg(0, signal.SIGKILL)
    os._exit(ORPHANED)


def _redirect_output(log: str) -> None:
    """Redirect output to the log, including that of C libraries and the stack after a crash."""
    file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o644)
    sys.stdout.flush()
    sys.stderr.flush()
    os.dup2(file, 1)
    os.dup2(file, 2)
    os.close(file)
    sys.stdout, sys.stderr = (
        io.TextIOWrapper(io.FileIO(number, "w", closefd=False), "utf-8", "backslashreplace", write_through=True)
        for number in (1, 2)
    )
    faulthandler.enable(sys.stderr)
    if DUMP_SIGNAL is not None:
        faulthandler.register(DUMP_SIGNAL, file=sys.stderr, all_threads=False)


def _limit_threads(threads: int | None) -> None:
    if threads is None:
        return
    os.environ["OMP_NUM_THREADS"] = os.environ["MKL_NUM_THREADS"] = str(threads)
    if "torch" in sys.modules:  # it has already read the variables
        sys.modules["torch"].set_num_threads(threads)
