"""Interleaved timing of several functions, so that changes in machine load affect all of them."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

SHARE_OF_WARMING = 4  # no warm-up round if it takes more than a quarter of the time


@dataclass(frozen=True)
class Times:
    """Medians in seconds, in the order of the functions, and the number of calls behind each."""

    medians: tuple[float, ...]
    calls: int


def elapsed(call: Callable[[], Any]) -> float:
    """Seconds of one call."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def in_turns(
    runs: Sequence[Callable[[], float]], calls: int, seconds: float = float("inf"), *, warming: bool = False
) -> Times:
    """`calls` rounds of all runs, each of which returns its seconds; fewer rounds if they take more than `seconds`.

    At least one round runs, if any is requested. With `warming`, the first round does not count, unless it took so
    long that there is no time for a few more.
    """
    rounds: list[tuple[float, ...]] = []
    spent = 0.0
    while len(rounds) < calls and (not rounds or spent + sum(rounds[-1]) <= seconds):
        taken = tuple([run() for run in runs])
        spent += sum(taken)
        if warming and SHARE_OF_WARMING * spent < seconds:
            warming = False
            continue
        warming = False
        rounds.append(taken)
    medians = [statistics.median(times) for times in zip(*rounds)] if rounds else [0.0 for _ in runs]
    return Times(tuple(medians), len(rounds))
