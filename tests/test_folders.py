"""Folders of both packages: few files each, a docstring each, no test data."""

from __future__ import annotations

import pathlib

import pytest

ROOT = pathlib.Path(__file__).parents[1]
PACKAGES = tuple(ROOT / name for name in ("torch_ttnn", "ttnn_emulator"))
FOLDERS = sorted(path.parent for package in PACKAGES for path in package.rglob("__init__.py"))
MOST_MODULES = 25
LARGEST_FILE = 1 << 20  # bytes; recorded answers and golden vectors are test data


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.relative_to(ROOT).as_posix())
def test_a_folder_is_small_and_has_a_docstring(folder: pathlib.Path) -> None:
    assert len(list(folder.glob("*.py"))) - 1 <= MOST_MODULES
    assert (folder / "__init__.py").read_text(encoding="utf-8").startswith('"""')


def test_packages_contain_no_large_files() -> None:
    files = (path for package in PACKAGES for path in package.rglob("*") if path.is_file())
    assert [path for path in files if path.stat().st_size > LARGEST_FILE] == []
