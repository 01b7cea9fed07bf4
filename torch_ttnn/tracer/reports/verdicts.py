"""Where calls run, from the compiler's answers, and the share that is lowered."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from fractions import Fraction

DEVICE, DECOMPOSED, PARTLY, HOST, UNKNOWN = "device", "decomposed", "partly", "host", "unknown"
LOWERED = (DEVICE, DECOMPOSED)  # no part of the call runs on the host
KNOWN = (DEVICE, DECOMPOSED, PARTLY, HOST)


def location(status: str, reason: str = "") -> str:
    """A decomposed operation with a reason leaves a part to the host.

    >>> location("decomposed"), location("decomposed", "aten.sort: no lowering"), location("")
    ('decomposed', 'partly', 'unknown')
    """
    if status == DECOMPOSED and reason:
        return PARTLY
    return status if status in KNOWN else UNKNOWN


def locations(lowering: Mapping[tuple[str, str], int]) -> Counter[str]:
    """Calls of an operation by location."""
    found: Counter[str] = Counter()
    for (status, reason), calls in lowering.items():
        found[location(status, reason)] += calls
    return found


def lowered_share(found: Mapping[str, int]) -> Fraction | None:
    """The exact share of calls with no part on the host, among calls with an answer; None if there are none."""
    known = sum(found.get(each, 0) for each in KNOWN)
    return Fraction(sum(found.get(each, 0) for each in LOWERED), known) if known else None
