"""Who watches torch's operations does not watch those by which the emulator computes."""

from __future__ import annotations

from typing import Any

from torch.utils._python_dispatch import _disable_current_modes


def unobserved() -> Any:
    """Modes of dispatch are off meanwhile; it also decorates functions.

    What happens on a device is no operation of torch. AOTAutograd has a mode of its own on during the first call, which
    looks at the arguments of every operation: of the thousands that prepare weights and emulate programs as well.
    """
    return _disable_current_modes()
