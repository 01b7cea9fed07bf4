"""Predicted times as text."""

from __future__ import annotations

UNITS = ((1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns"))


def duration_text(ns: float) -> str:
    """
    >>> duration_text(1_912_345), duration_text(26_400), duration_text(12e9)
    ('1.91 ms', '26.4 µs', '12.0 s')
    """
    size, unit = next((each for each in UNITS if ns >= each[0]), UNITS[-1])
    return f"{_three_digits(ns / size)} {unit}"


def rate_text(per_second: float) -> str:
    """
    >>> rate_text(526.31), rate_text(0.0123), rate_text(20_512)
    ('526/s', '0.0123/s', '20,512/s')
    """
    return f"{_three_digits(per_second)}/s"


def share_text(share: float) -> str:
    """
    >>> share_text(0.287), share_text(0)
    ('29 %', '0 %')
    """
    return f"{100 * share:.0f} %"


def _three_digits(number: float) -> str:
    if number >= 100:
        return f"{number:,.0f}"
    return f"{number:.1f}" if number >= 10 else f"{number:.2f}" if number >= 1 else f"{number:.3g}"
