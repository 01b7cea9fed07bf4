"""When the matrix unit is emulated bit-exactly.

auto    bit-exact up to EXACT_LIMIT multiplications per call, accumulates in float32 beyond (the default)
exact   always bit-exact: 10 ns per multiplication
fast    never bit-exact
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
    """The numerics mode of this thread."""
    return _mode.value


def exactly(work: int) -> bool:
    """Whether a call with `work` multiplications is emulated bit-exactly."""
    if _mode.value == "auto":
        return work <= EXACT_LIMIT
    return _mode.value == "exact"


class numerics:
    """A context manager that selects the numerics mode.

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
