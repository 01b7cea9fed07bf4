"""Tables of cases, one module a family of operations, each with a function `cases()`."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator

from ttnn_emulator.conformance.case import Case


def families() -> list[str]:
    """Names of all case tables."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__) if not module.name.startswith("_"))


def board_of(family: str) -> str:
    """The card that a family's cases are put to: a table may name one in `BOARD`."""
    return getattr(importlib.import_module(f"{__name__}.{family}"), "BOARD", "n150")


def cases_of(family: str) -> Iterator[Case]:
    return importlib.import_module(f"{__name__}.{family}").cases()
