"""Hides the operations by which the emulator computes from active dispatch modes."""

from __future__ import annotations

from typing import Any

from torch.utils._python_dispatch import _disable_current_modes


def unobserved() -> Any:
    """Disable dispatch modes; a context manager and a decorator.

    The work of a device is not an operation of torch. During the first call AOTAutograd has a mode active that inspects
    the arguments of every operation, also of the thousands that prepare weights and emulate programs.
    """
    return _disable_current_modes()
