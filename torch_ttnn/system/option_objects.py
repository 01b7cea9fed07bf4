"""Options as users pass them: an object, a dict of its fields, or nothing."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, TypeVar

Options = TypeVar("Options")


def options_of(kind: type[Options], given: Any, noun: str = "option") -> Options:
    """An object of a dataclass of options; `noun` names one of them in errors."""
    if given is None:
        return kind()
    if isinstance(given, kind):
        return given
    if not isinstance(given, Mapping):
        raise TypeError(f"{noun}s must be a {kind.__name__}, a dict or None, not {type(given).__name__}")
    known = [each.name for each in dataclasses.fields(kind) if each.init]  # type: ignore[arg-type]
    unknown = sorted(map(repr, set(given) - set(known)))
    if unknown:
        raise TypeError(f"unknown {noun} {', '.join(unknown)}; known are {', '.join(known)}")
    return kind(**given)
