"""`tracy`: the profiler of the library's wheel; scripts use its signposts."""

from __future__ import annotations

from typing import Any

from ttnn_emulator.errors import NotEmulated
from ttnn_emulator.library.queries import tracy_message


def signpost(header: str, message: str | None = None) -> None:
    """Mark a point in the profile."""
    tracy_message(f"`TT_SIGNPOST: {header}\n{message}`" if message else f"`TT_SIGNPOST: {header}`")


class Profiler:
    """Zones of Python functions; nothing is recorded, as the profiler never runs here."""

    def enable(self) -> None:
        """Start profiling."""

    def disable(self) -> None:
        """Stop profiling."""


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    raise NotEmulated(f"tracy.{name} reads profiles of a card; the profiler is not emulated")
