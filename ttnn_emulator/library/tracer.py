"""`ttnn.tracer`: draws calls as a graph of operations, in the library's slow runtime mode."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ttnn_emulator.errors import NotEmulated
from ttnn_emulator.library import config

ENABLE_TRACER = False


def enable_tracing() -> None:
    """Start tracing, which the library refuses in its fast runtime mode."""
    if config.current().enable_fast_runtime_mode:
        raise ValueError("Tracing is not supported in fast runtime mode.")
    raise NotEmulated(
        "ttnn.tracer draws calls of the library's slow runtime mode, which is not emulated",
        hint="ttnn.graph captures the same calls: ttnn.graph.begin_graph_capture, ttnn.graph.pretty_print.",
    )


def disable_tracing() -> None:
    """Stop tracing; nothing is said if it never began."""


def is_tracing_enabled() -> bool:
    return ENABLE_TRACER


@contextmanager
def trace() -> Iterator[None]:
    enable_tracing()
    try:
        yield
    finally:
        disable_tracing()
