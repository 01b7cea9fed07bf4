"""Progress of `torch-ttnn demo`: the current model, and kernels that are compiled for the first time."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from torch_ttnn.cli import kernels

FIRST_TIME = "compiling kernels of the emulator: once on this machine, about half a minute"
POLL_SECONDS = 0.2


class Demonstrating:
    """A progress bar on standard error while models are compiled and run; in a file or a pipe, a line for slow steps.

    Missing kernels are compiled in separate processes from the start, while torch and the compiler are imported.
    """

    def __init__(self, quiet: bool = False) -> None:
        self.quiet = quiet
        self._model = ""
        self._has_shown = False
        self._ahead: list[subprocess.Popen[bytes]] = []
        self._listener = KernelListener(self._compiling)
        columns = (BarColumn(20), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
        self._progress = Progress(*columns, console=Console(stderr=True), transient=True, disable=quiet)
        self._task = self._progress.add_task("importing torch and the compiler", total=None)

    def __enter__(self) -> Demonstrating:
        self._progress.start()
        if kernels.missing():
            self._show(FIRST_TIME)
            self._ahead = kernels.compile_ahead() if _cores() > 1 else []
        self._listener.start()
        return self

    def __exit__(self, *error: Any) -> None:
        for process in self._ahead:
            if process.poll() is None:
                process.kill()
            process.wait()
        self._listener.stop()
        self._progress.stop()

    def begin(self, count: int) -> None:
        """Models are about to be compiled: wait for the kernels."""
        self._progress.update(self._task, total=count)
        while any(process.poll() is None for process in self._ahead):
            time.sleep(POLL_SECONDS)

    def started(self, model: str) -> None:
        if self._model:
            self._progress.advance(self._task)
        self._model = model
        self._progress.update(self._task, description=model)

    def _compiling(self, kernel: str, count: int) -> None:
        where = f"{self._model}: " if self._model else ""
        self._show(f"{where}{FIRST_TIME} ({kernel}, {count} so far)")

    def _show(self, text: str) -> None:
        if not (self.quiet or self._has_shown or sys.stderr.isatty()):
            print(FIRST_TIME, file=sys.stderr)
        self._has_shown = True
        self._progress.update(self._task, description=text)


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class KernelListener:
    """Reports every kernel that numba compiles, but not those that it loads from disk."""

    def __init__(self, report: Any) -> None:
        self.report = report
        self.compiled: list[str] = []
        self._last: Any = None
        self._listener: Any = None

    def start(self) -> None:
        from numba.core import event

        owner = self

        class Listener(event.Listener):
            def on_start(self, event: Any) -> None:
                owner._pass(event.data)

            def on_end(self, event: Any) -> None:
                pass

        self._listener = Listener()
        event.register("numba:run_pass", self._listener)

    def stop(self) -> None:
        from numba.core import event

        event.unregister("numba:run_pass", self._listener)

    def _pass(self, data: Any) -> None:
        """Called at the start of a compiler pass of numba; each function has some thirty."""
        function = (data["qualname"], str(data.get("args")))
        module = str(data.get("module", ""))
        if function == self._last or "ttnn_emulator" not in module:
            return
        self._last = function
        self.compiled.append(data["qualname"])
        self.report(data["qualname"], len(self.compiled))
