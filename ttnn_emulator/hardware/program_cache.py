"""The program cache of a device."""

from __future__ import annotations

from collections import deque
from typing import Any

MOST_SEEDED = 1024


class ProgramCache:
    """Prepared plans, one per distinct call: operation, tensor specs, other arguments.

    `programs` and `own_programs` mirror the library's program cache: views and host-filled tensors launch no program,
    and calls that differ only in shapes or scalars may share one.
    """

    def __init__(self) -> None:
        self.enabled = True
        self.misses_allowed = True
        self.hits = 0
        self.misses = 0
        self.plans: dict[Any, Any] = {}
        self.programs: set[Any] = set()  # keys of programs that several calls may share
        self.own_programs = 0  # programs of single calls
        self._seeded: deque[Any] = deque()  # keys of plans whose arguments include a seed

    def has_program(self, program: Any) -> bool:
        """Whether the program of a call without a plan is cached; None is an unshared program."""
        return program is not None and program in self.programs

    def add_program(self, program: Any) -> None:
        if program is None:
            self.own_programs += 1
        else:
            self.programs.add(program)

    def keep(self, key: Any, prepared: Any, *, is_seeded: bool) -> None:
        """Add a plan. Only the latest seeded plans are kept: a new seed per call would grow the cache without bound."""
        self.plans[key] = prepared
        if is_seeded:
            self._seeded.append(key)
            if len(self._seeded) > MOST_SEEDED:
                self.plans.pop(self._seeded.popleft(), None)

    def clear(self) -> None:
        self.plans.clear()
        self.programs.clear()
        self.own_programs = 0
        self._seeded.clear()
