"""Compiled loops on torch's threads.

They are awake if torch has just used them, whereas waking other threads takes longer than a small loop; and two thread
pools would compete for the cores. If torch does not use GNU OpenMP, `worker_threads` run the loops.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from llvmlite import ir
from numba import cfunc, types
from numba.extending import intrinsic

from ttnn_emulator.numerics.native import openmp
from ttnn_emulator.numerics.native.worker_threads import WORKERS, share

_LONG = ir.IntType(64)


def size() -> int:
    """Threads of a team, including the caller."""
    return torch.get_num_threads() if openmp.parallel() is not None else WORKERS


class Loop:
    """A loop over the pieces of a task, which takes the address of the task. It is JIT-compiled on first use.

    Compiling all such loops takes fifteen seconds with a cold cache.
    """

    def __init__(self, function: Callable[[int], None]) -> None:
        self.function = function
        self.__doc__ = function.__doc__

    @functools.cached_property
    def _compiled(self) -> Any:
        return cfunc(types.void(types.int64), cache=True)(self.function)

    @property
    def ctypes(self) -> Callable[[int], Any]:
        return self._compiled.ctypes

    @property
    def address(self) -> int:
        return self._compiled.address


def calling(loop: Loop, pieces: int, arguments: Sequence[int]) -> Callable[[], None]:
    """A function that runs `loop` on a team of threads. Its task is an array of 64-bit integers.

    They are the next piece, the number of pieces, the number of threads that have started, and the arguments. Each
    thread processes pieces until none is left.
    """
    task = np.array([0, pieces, 0, *arguments], np.int64)
    address = task.ctypes.data
    begin = _beginning(loop, pieces)

    def call() -> None:
        task[0] = task[2] = 0
        begin(address)

    return call


def _beginning(loop: Loop, pieces: int) -> Callable[[int], Any]:
    """A function that runs the task at an address and waits for it."""
    parallel = openmp.parallel()
    if pieces == 1 or size() == 1:
        return loop.ctypes
    if parallel is not None:
        run = loop.address
        return lambda address: parallel(run, address, 0, 0)
    return lambda address: share(loop.ctypes, [(address,)] * min(pieces, WORKERS))


def _counting(place: int) -> Any:
    """An intrinsic: atomic fetch-and-increment of a word of the task."""

    def typed(context, task):
        def generate(target_context, builder, signature, arguments):
            counter = builder.gep(builder.inttoptr(arguments[0], _LONG.as_pointer()), [ir.Constant(_LONG, place)])
            return builder.atomic_rmw("add", counter, ir.Constant(_LONG, 1), "monotonic")

        return types.int64(types.int64), generate

    return intrinsic(typed)


next_piece = _counting(0)
own_number = _counting(2)  # index of the calling thread; called once per task
