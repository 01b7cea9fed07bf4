"""Where programs run: `target.py` turns a name or an open device into a target, `card.py` finds and opens cards.

The names of `target.py` are imported on first use, because `card` is needed before torch is imported.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch_ttnn.devices.target import TRACE_BYTES, VARIABLE, Target, resolve

__all__ = ["TRACE_BYTES", "VARIABLE", "Target", "resolve"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module("torch_ttnn.devices.target"), name)
