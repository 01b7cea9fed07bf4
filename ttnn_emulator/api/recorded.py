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
    """Names of all callables of `ttnn`."""
    return frozenset(recorded_api()["operations"])


@functools.cache
def recorded_names() -> dict[str, dict[str, Any]]:
    """The file written by conformance/record_names.py.

    modules      names of every module, with their kinds
    classes      members of every class, with their kinds
    importable   names under which modules can be imported, and the names under which their contents are recorded
    """
    return json.loads(resources.files(__package__).joinpath("public_names.json").read_text(encoding="utf-8"))


@functools.cache
def public_names() -> dict[str, str]:
    """All public names of `ttnn` and its modules, with their kinds.

    module, operation, function, class, value; `= name` for the same object as `name`, `~ name` for the bound function
    behind an operation.
    """
    return {
        f"{module}.{name}": kind
        for module, names in recorded_names()["modules"].items()
        for name, kind in names.items()
    }


def ttnn_version() -> str:
    """The release of `ttnn` whose API, rules and numerics are emulated."""
    return recorded_api()["version"]
