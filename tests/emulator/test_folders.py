"""The emulator's folders: none too full to be read at a glance, each saying what it holds, no test data among them."""

from __future__ import annotations

import pathlib

import pytest

import ttnn_emulator

ROOT = pathlib.Path(ttnn_emulator.__file__).parent
FOLDERS = sorted(path.parent for path in ROOT.rglob("__init__.py"))
MOST_MODULES = 25
LARGEST_FILE = 1 << 20  # bytes; recorded answers and golden vectors are test data


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.relative_to(ROOT.parent).as_posix())
def test_a_folder_is_small_and_says_what_it_holds(folder: pathlib.Path) -> None:
    assert len(list(folder.glob("*.py"))) - 1 <= MOST_MODULES
    assert (folder / "__init__.py").read_text(encoding="utf-8").startswith('"""')


def test_the_package_holds_no_large_files() -> None:
    files = (path for path in ROOT.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    assert [path for path in files if path.stat().st_size > LARGEST_FILE] == []
