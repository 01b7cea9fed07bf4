"""Interleaved timing of several functions, so that changes in machine load affect all alike."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

WARM_UP_SHARE = 4  # no warm-up round if it takes more than a quarter of the time


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


def interleaved(
    runs: Sequence[Callable[[], float]], calls: int, seconds: float = float("inf"), *, warm_up: bool = False
) -> Times:
    """`calls` rounds of all runs, each of which returns its seconds; fewer rounds if they take more than `seconds`.

    At least one round runs, if any is requested. With `warm_up`, the first round does not count, unless it took so
    long that there is no time for a few more.
    """
    rounds: list[tuple[float, ...]] = []
    spent = 0.0
    while len(rounds) < calls and (not rounds or spent + sum(rounds[-1]) <= seconds):
        taken = tuple([run() for run in runs])
        spent += sum(taken)
        if warm_up and WARM_UP_SHARE * spent < seconds:
            warm_up = False
            continue
        warm_up = False
        rounds.append(taken)
    medians = [statistics.median(times) for times in zip(*rounds)] if rounds else [0.0 for _ in runs]
    return Times(tuple(medians), len(rounds))
