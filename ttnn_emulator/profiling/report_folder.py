"""Profiles a block of code into a folder; each writer records what it needs and writes its own files.

    with profiling("out"):
        …

The files are written when the block ends, also if it raises. To add files, add a writer to `WRITERS`.
"""

from __future__ import annotations

import logging
import os
import pathlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any, Protocol

from ttnn_emulator.profiling import device_log, sheet
from ttnn_emulator.profiling.memory_report import MemoryReport
from ttnn_emulator.profiling.recorder import Recorder
from ttnn_emulator.profiling.timeline import timeline

log = logging.getLogger(__name__)


class Writer(Protocol):
    """Records while its context is open, and writes files once it is closed."""

    def recording(self) -> AbstractContextManager[Any]: ...

    def write(self, folder: pathlib.Path) -> Any: ...


class PerformanceWriter:
    """The performance sheet and the two files that belong beside it."""

    def __init__(self) -> None:
        self.recorder = Recorder()

    def recording(self) -> AbstractContextManager[Any]:
        return self.recorder.recording()

    def write(self, folder: pathlib.Path) -> None:
        rows = timeline(self.recorder.entries)
        sheet.write(sheet.sheet(rows), folder / sheet.FILE)
        device_log.write_log(rows, folder / device_log.LOG)
        device_log.write_tracy_placeholder(folder / device_log.TRACY)


WRITERS: list[Callable[[], Writer]] = [PerformanceWriter, MemoryReport]


@contextmanager
def profiling(folder: str | os.PathLike, writers: Sequence[Callable[[], Writer]] | None = None) -> Iterator[None]:
    """Profile the block into this folder, which is created now: a folder that cannot be written fails before the block.

    An error of the block is raised unchanged. A writer that fails does not keep the others from writing.
    """
    target = pathlib.Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    active = [make() for make in (WRITERS if writers is None else writers)]
    failed: BaseException | None = None
    try:
        with ExitStack() as stack:
            for writer in active:
                stack.enter_context(writer.recording())
            yield
    except BaseException as error:
        failed = error
        raise
    finally:
        problems = [problem for problem in (_error_of(writer, target) for writer in active) if problem is not None]
        for problem in problems:
            log.error("a part of the profile was not written: %s", problem)
        if problems and failed is None:
            raise problems[0]


def _error_of(writer: Writer, folder: pathlib.Path) -> Exception | None:
    try:
        writer.write(folder)
    except Exception as error:
        return error
    return None
