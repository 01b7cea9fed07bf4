"""Which libraries that zoo models come from are installed: they are optional."""

from __future__ import annotations

import importlib.util

import pytest

from torch_ttnn.zoo import ModelEntry


def need(*libraries: str) -> None:
    """Skip the test if one of the libraries is not installed."""
    for name in libraries:
        if importlib.util.find_spec(name) is None:
            pytest.skip(f"{name} is not installed")


def need_source(entry: ModelEntry) -> None:
    if entry.source != "ours":
        need(entry.source)
