"""The folder of case tables, recorded answers and golden vectors: part of a checkout, not of the package."""

from __future__ import annotations

import pathlib

import ttnn_emulator
from ttnn_emulator.errors import EmulatorError

IN_CHECKOUT = pathlib.Path("tests") / "conformance"
_named: list[pathlib.Path] = []


class MissingTestData(EmulatorError):
    """The data folder of a command does not exist."""


def use(folder: pathlib.Path) -> None:
    """Read the data from this folder instead of the checkout."""
    _named[:] = [folder.resolve()]


def folder_of(part: str) -> pathlib.Path:
    """The folder `cases`, `answers` or `golden`: below the folder of `use`, beside the package, or below the working
    directory."""
    checkouts = (pathlib.Path(ttnn_emulator.__file__).resolve().parents[1], pathlib.Path.cwd())
    candidates = _named or [checkout / IN_CHECKOUT for checkout in checkouts]
    for candidate in candidates:
        if (candidate / part).is_dir():
            return candidate / part
    raise MissingTestData(
        f"there is no folder {candidates[-1] / part}: case tables, recorded answers and golden vectors come with a "
        "checkout of the repository and not with the installed package; run this in a checkout, or name its "
        f"{IN_CHECKOUT.as_posix()} with --data"
    )
