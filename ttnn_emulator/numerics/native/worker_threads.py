"""Worker threads for compiled loops: the caller and its helpers process pieces of work until none is left.

Pieces are scheduled dynamically, so a busy core delays the end by at most one piece. The helpers are torch's threads if
available (`openmp`), else our own.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any

from ttnn_emulator.numerics.native import openmp

WORKERS = min(8, os.cpu_count() or 1)


@functools.cache
def pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(WORKERS, thread_name_prefix="emulator")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=pool.cache_clear)  # a child process has none of its parent's threads


def share(loop: Callable[..., Any], pieces: list[tuple]) -> None:
    """Call `loop`, which releases the GIL, once with each tuple of arguments."""
    if len(pieces) == 1 or WORKERS == 1:
        for piece in pieces:
            loop(*piece)
        return
    waiting = iter(pieces)
    if openmp.parallel() is not None:
        openmp.call(functools.partial(_work, loop, waiting))
        return
    helpers = [pool().submit(_work, loop, waiting) for _ in range(min(WORKERS, len(pieces)) - 1)]
    try:
        _work(loop, waiting)
    finally:
        _finish(helpers)


def _work(loop: Callable[..., Any], waiting: Iterator[tuple]) -> None:
    for piece in waiting:
        loop(*piece)


def _finish(helpers: Iterable[Future]) -> None:
    """Wait for calls that have started: none may still run when this returns."""
    running = [helper for helper in helpers if not helper.cancel()]
    wait(running)
    for helper in running:
        helper.result()


def cut(count: int, least: int) -> list[tuple[int, int]]:
    """Split a count into ranges for `share`: one if it is small, else several per worker, to balance the load."""
    if count <= least or WORKERS == 1:
        return [(0, count)]
    parts = min(4 * WORKERS, -(-count // least))
    step = -(-count // parts)
    return [(at, min(at + step, count)) for at in range(0, count, step)]
