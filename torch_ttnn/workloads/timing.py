"""Times of calls that are to be compared: taken in turns, so that a slow minute of the machine meets all."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

SHARE_OF_WARMING = 4  # a round that takes more than the 4th part of the time is not spent on warming up


@dataclass(frozen=True)
class Times:
    """Medians in seconds, in the order of what was timed, and how many calls each is the median of."""

    medians: tuple[float, ...]
    calls: int


def elapsed(call: Callable[[], Any]) -> float:
    """Seconds that a call takes."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def in_turns(
    runs: Sequence[Callable[[], float]], calls: int, seconds: float = float("inf"), *, warming: bool = False
) -> Times:
    """`calls` rounds of all runs, each of which gives the seconds it took; fewer if they take more than `seconds`.

    At least one round is made, if any is asked for. With `warming` there is one before them that does not count; it
    does if it took so long that the time would not suffice for a few more.
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
