"""How far the matrix unit is followed bit for bit.

auto    bit for bit up to EXACT_LIMIT multiplications a call, float32 accumulation beyond (the default)
exact   always bit for bit: 10 ns a multiplication
fast    never
"""

from __future__ import annotations

import os
import threading

MODES = ("auto", "exact", "fast")
VARIABLE = "TTNN_EMULATOR_NUMERICS"
EXACT_LIMIT = 1 << 23  # multiplications times fidelity phases: some 50 ms


class _Mode(threading.local):
    value = os.environ.get(VARIABLE, "auto")


_mode = _Mode()


def current() -> str:
    """The mode that this thread computes in."""
    return _mode.value


def exactly(work: int) -> bool:
    """Whether a call of so many multiplications is to be computed bit for bit."""
    if _mode.value == "auto":
        return work <= EXACT_LIMIT
    return _mode.value == "exact"


class numerics:
    """Within this block the matrix unit is emulated in the given mode.

    >>> with numerics("exact"):
    ...     pass
    """

    __slots__ = ("_mode", "_before")

    def __init__(self, mode: str) -> None:
        if mode not in MODES:
            raise ValueError(f"no numerics mode is called {mode!r}; there are {', '.join(MODES)}")
        self._mode = mode

    def __enter__(self) -> None:
        self._before, _mode.value = _mode.value, self._mode

    def __exit__(self, *error: object) -> None:
        _mode.value = self._before
