"""Programs as pipelines: a reader, a compute kernel and a writer that work on consecutive items at the same time."""

from __future__ import annotations

from collections.abc import Iterable


def pipeline(items: float, stages: Iterable[float]) -> float:
    """The time of `items` through overlapping stages: the slowest sets the pace, the others delay the first item.

    >>> pipeline(10, (1.0, 4.0, 2.0))
    43.0
    """
    times = list(stages)
    slowest = max(times)
    return items * slowest + sum(times) - slowest


def shared(bytes_per_ns: float, total_bytes_per_ns: float, cores: float) -> float:
    """One core's rate when `cores` share a total.

    >>> shared(28.0, 256.0, 64)
    4.0
    """
    return min(bytes_per_ns, total_bytes_per_ns / max(cores, 1))
