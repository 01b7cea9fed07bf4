"""The threads that torch computes with, for compiled loops of ours.

They are awake when torch has just used them, whereas to wake others takes longer than a small loop does; and two sets
of threads would be in each other's way. Where torch's threads are not those of GNU OpenMP, there is no team.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

_LONG = ir.IntType(64)


@functools.cache
def _parallel() -> Any:
    """GNU OpenMP's entry for a parallel region, in the library that torch has loaded."""
    try:
        with open("/proc/self/maps", encoding="utf-8") as file:
            found = {line.split()[-1] for line in file if "libgomp" in line}
        function = ctypes.CDLL(found.pop()).GOMP_parallel if len(found) == 1 else None
    except (OSError, AttributeError):
        return None
    if function is not None:
        function.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint)
        function.restype = None
    return function


def size() -> int:
    """Threads of a team, the caller among them; 1 if there is none."""
    return torch.get_num_threads() if _parallel() is not None else 1


def calling(loop: Any, pieces: int, arguments: Sequence[int]) -> Callable[[], None]:
    """A function that has a team run `loop`, a `cfunc` that takes the address of a task: numbers of 64 bits.

    They are the next piece, how many there are, and the arguments. It does pieces until none is left.
    """
    task = np.array([0, pieces, *arguments], np.int64)
    parallel, run, address = _parallel(), loop.address, task.ctypes.data

    def call() -> None:
        task[0] = 0
        parallel(run, address, 0, 0)

    def call_alone() -> None:
        task[0] = 0
        loop.ctypes(address)

    return call if parallel is not None and pieces > 1 else call_alone


def _next_piece(context, task):
    """The number of a piece that no other thread has or had, of the task at an address."""

    def generate(target_context, builder, signature, arguments):
        place = builder.inttoptr(arguments[0], _LONG.as_pointer())
        return builder.atomic_rmw("add", place, ir.Constant(_LONG, 1), "monotonic")

    return types.int64(types.int64), generate


next_piece: Any = intrinsic(_next_piece)
