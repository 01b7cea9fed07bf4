"""Measured times in one form, whatever file they come from."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass


class Unpredictable(Exception):
    """A row whose program the timing model does not know; the message says what is missing."""


class UnknownFormat(Exception):
    """A file that cannot be read."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """One measured time and the prediction for it.

    row       number of the row in its file, from 0
    family    rows are grouped by family and board
    ideal_ns  the library's own PM IDEAL, where the file has it
    predict   the predicted time in nanoseconds; raises `Unpredictable`
    """

    file: str
    row: int
    family: str
    board: str
    measured_ns: float
    predict: Callable[[], float]
    ideal_ns: float | None = None


Row = Mapping[str, str]
Measure = Callable[[int, Row], Measurement]


def measured_in(row: Row, column: str) -> float:
    """The measured nanoseconds of a row."""
    text = row.get(column)
    try:
        found = float(text or "")
    except ValueError:
        found = math.nan
    if not found > 0 or math.isinf(found):
        raise Unpredictable(f"{column} is {text or 'missing'!r}, not a time")
    return found


def integers_in(row: Row, *columns: str) -> tuple[int, ...]:
    """Cells that are whole numbers."""
    found = []
    for column in columns:
        try:
            found.append(int(float(row.get(column) or "")))
        except (ValueError, OverflowError):
            raise Unpredictable(f"{column} is {row.get(column) or 'missing'!r}, not a number") from None
    return tuple(found)


def unreadable(file: str, number: int, family: str = "unreadable") -> Measurement:
    """A row that is not a measurement; it counts as a miss."""

    def predict() -> float:
        raise Unpredictable("the row cannot be read")

    return Measurement(file, number, family, "", math.nan, predict)
