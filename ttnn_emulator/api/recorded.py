"""Reads `ttnn_api.json`, which `python -m ttnn_emulator.conformance api` writes from the real library."""

from __future__ import annotations

import functools
import json
from importlib import resources
from typing import Any


@functools.cache
def recorded_api() -> dict[str, Any]:
    """The whole document: `version`, `operations`, `types`, `enums`."""
    text = resources.files(__package__).joinpath("ttnn_api.json").read_text(encoding="utf-8")
    return json.loads(text)


@functools.cache
def operation_names() -> frozenset[str]:
    """Names of all that `ttnn` offers to call."""
    return frozenset(recorded_api()["operations"])


@functools.cache
def public_names() -> dict[str, str]:
    """All names that scripts may look up in `ttnn` and its modules: function, class, value or module."""
    return json.loads(resources.files(__package__).joinpath("public_names.json").read_text(encoding="utf-8"))


def ttnn_version() -> str:
    """The release of `ttnn` whose API, rules and numerics are emulated."""
    return recorded_api()["version"]
