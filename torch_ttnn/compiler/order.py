"""Checks ordered lists whose members state what must run before them: stages and families of fusions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol


class Ordered(Protocol):
    """A member of an ordered list."""

    @property
    def name(self) -> str: ...

    @property
    def after(self) -> tuple[str, ...]: ...


def violations(members: Iterable[Ordered]) -> list[str]:
    """Members listed before a member that they need, or that need one that is not in the list."""
    done: set[str] = set()
    found = []
    for member in members:
        found += [f"{member.name!r} must run after {name!r}" for name in member.after if name not in done]
        done.add(member.name)
    return found
