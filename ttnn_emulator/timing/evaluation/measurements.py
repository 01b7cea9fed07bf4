"""Measured times in one form, whatever file they come from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


class Unpredictable(Exception):
    """A row whose program the timing model does not know; the message says what is missing."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """One measured time and the prediction for it.

    row       number of the row in its file, from 0
    family    rows are summed up by family and board
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
