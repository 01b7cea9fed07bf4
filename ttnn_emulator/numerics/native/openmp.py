"""torch's threads: those of GNU OpenMP, if torch is built with it.

After their work they spin for some milliseconds; other threads would compete with them for the cores.
"""

from __future__ import annotations

import ctypes
import functools
import os
from collections.abc import Callable
from typing import Any

import torch

_CALLBACK = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_forked = False


def _after_fork() -> None:
    global _forked
    _forked = _forked or _entry.cache_info().currsize > 0


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def parallel() -> Any:
    """GNU OpenMP's entry for a parallel region, in the library that torch has loaded.

    None if torch uses another OpenMP runtime, or if this process was forked after OpenMP was used: the runtime would
    wait for threads that exist only in the parent.
    """
    return None if _forked else _entry()


@functools.cache
def _entry() -> Any:
    """Other packages ship copies of the runtime, with their own threads."""
    try:
        with open("/proc/self/maps", encoding="utf-8") as file:
            loaded = {line.split(maxsplit=5)[-1].rstrip("\n") for line in file if "libgomp" in line}
        own = os.path.dirname(torch.__file__)
        candidates = [path for path in loaded if path.startswith(own)] or list(loaded)
        function = ctypes.CDLL(candidates[0]).GOMP_parallel if len(candidates) == 1 else None
    except (OSError, AttributeError):
        return None
    if function is not None:
        function.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint)
        function.restype = None
    return function


def call(function: Callable[[], Any]) -> None:
    """Call it once on every thread and wait for all; then raise the first failure."""
    failures: list[BaseException] = []

    def guarded(_: int | None) -> None:
        try:
            function()
        except BaseException as error:
            failures.append(error)

    entry = _CALLBACK(guarded)
    parallel()(ctypes.cast(entry, ctypes.c_void_p), None, 0, 0)
    if failures:
        raise failures[0]
