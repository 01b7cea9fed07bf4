"""Case tables, read from the test data: one module per family of operations.

A table has a function `cases()`. It may name a board in `BOARD`, and list numeric rows in `NUMERIC_ROWS`.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import pathlib
import sys
from collections.abc import Iterator, Sequence
from types import ModuleType

from ttnn_emulator.conformance.case import Case
from ttnn_emulator.conformance.numeric_row import Row
from ttnn_emulator.conformance.test_data import folder_of

PACKAGE = "ttnn_conformance_cases"  # the tables import each other relative to it


def families() -> list[str]:
    """Names of all case tables."""
    return sorted(_paths(folder_of("cases")))


def board_of(family: str) -> str:
    """The board that a family's cases run on."""
    return getattr(_table(family), "BOARD", "n150")


def cases_of(family: str) -> Iterator[Case]:
    return _table(family).cases()


def numeric_rows_of(family: str) -> Sequence[Row]:
    return getattr(_table(family), "NUMERIC_ROWS", ())


def _table(family: str) -> ModuleType:
    folder = folder_of("cases")
    package = _package(folder)
    inside = _paths(folder)[family].relative_to(folder).with_suffix("")
    return importlib.import_module(".".join((package, *inside.parts)))


def _paths(folder: pathlib.Path) -> dict[str, pathlib.Path]:
    return {path.stem: path for path in folder.rglob("*.py") if not path.stem.startswith("_")}


@functools.cache
def _package(folder: pathlib.Path) -> str:
    """Make a folder of tables importable as a package, and return the package's name."""
    name = f"{PACKAGE}_{len([each for each in sys.modules if each.startswith(PACKAGE) and '.' not in each])}"
    spec = importlib.util.spec_from_file_location(
        name, folder / "__init__.py", submodule_search_locations=[str(folder)]
    )
    assert spec is not None and spec.loader is not None
    sys.modules[name] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return name
