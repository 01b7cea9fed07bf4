"""`tracy`: the profiler that ships with the library, of which scripts use the signposts."""

from __future__ import annotations

from typing import Any

from ttnn_emulator.errors import NotEmulated
from ttnn_emulator.library.queries import tracy_message


def signpost(header: str, message: str | None = None) -> None:
    """Mark a place in the profile."""
    tracy_message(f"`TT_SIGNPOST: {header}\n{message}`" if message else f"`TT_SIGNPOST: {header}`")


class Profiler:
    """Zones of Python functions, of which nothing is recorded unless the profiler runs; here it never does."""

    def enable(self) -> None:
        """Begin."""

    def disable(self) -> None:
        """End."""


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    raise NotEmulated(f"tracy.{name} reads what a card's profiler wrote; there is no card")
