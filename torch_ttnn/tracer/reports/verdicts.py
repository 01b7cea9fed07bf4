"""Where calls end up, by what the compiler said of them, and the share of them that is lowered."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from fractions import Fraction

DEVICE, DECOMPOSED, PARTLY, HOST, UNKNOWN = "device", "decomposed", "partly", "host", "unknown"
LOWERED = (DEVICE, DECOMPOSED)  # nothing of the call is left to the host
KNOWN = (DEVICE, DECOMPOSED, PARTLY, HOST)


def place(status: str, reason: str = "") -> str:
    """An operation that is taken apart with a reason leaves a part of itself to the host.

    >>> place("decomposed"), place("decomposed", "aten.sort: no lowering"), place("")
    ('decomposed', 'partly', 'unknown')
    """
    if status == DECOMPOSED and reason:
        return PARTLY
    return status if status in KNOWN else UNKNOWN


def places(lowering: Mapping[tuple[str, str], int]) -> Counter[str]:
    """Calls of an operation by their place."""
    found: Counter[str] = Counter()
    for (status, reason), calls in lowering.items():
        found[place(status, reason)] += calls
    return found


def lowered_share(found: Mapping[str, int]) -> Fraction | None:
    """The exact share of calls that leave nothing to the host, of those of which it is known; None if of none."""
    known = sum(found.get(each, 0) for each in KNOWN)
    return Fraction(sum(found.get(each, 0) for each in LOWERED), known) if known else None
