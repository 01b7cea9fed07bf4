"""Boards as data. No other module depends on a board's name."""

from __future__ import annotations

import functools
import json
import os
from dataclasses import dataclass
from importlib import resources

from ttnn_emulator.enums import Arch
from ttnn_emulator.errors import InvalidArgument

DEFAULT_BOARD = "n150"
BOARD_VARIABLE = "TTNN_EMULATOR_BOARD"
OF_ONE_GRID = ("grids", "l1_banks", "near_dram")  # entries that depend on the grid


@dataclass(frozen=True)
class Board:
    """A card: its chips, their core grid, and the memory of each chip."""

    name: str
    arch: Arch
    mesh: tuple[int, int]
    grid: tuple[int, int]
    dispatch: str
    clock_ghz: float
    l1_bytes: int
    l1_base: int
    l1_max_unreserved: int
    dram_banks: int
    dram_bank_bytes: int
    dram_base: int
    l1_alignment: int
    dram_alignment: int

    @property
    def chips(self) -> int:
        return self.mesh[0] * self.mesh[1]

    @property
    def cores(self) -> int:
        return self.grid[0] * self.grid[1]

    @property
    def l1_bank_bytes(self) -> int:
        """L1 per core that is available to programs."""
        return self.l1_bytes - self.l1_base

    @property
    def dram_usable_bank_bytes(self) -> int:
        return self.dram_bank_bytes - self.dram_base


@functools.cache
def _table() -> dict:
    return json.loads(resources.files(__package__).joinpath("boards.json").read_text(encoding="utf-8"))


def board_names() -> list[str]:
    """The boards that reports compare; a galaxy with its 32 chips is opened by its name only."""
    return [name for name, entry in _table()["boards"].items() if not entry.get("on_request")]


def dispatch_grids(name: str) -> dict[str, tuple[int, int]]:
    """The compute grid of a board, by the kind of dispatch cores."""
    return {how: tuple(grid) for how, grid in _entry(name)["grids"].items()}


def names_with_grids() -> list[str]:
    """All board names, including variants with fewer harvested cores."""
    boards = _table()["boards"]
    return [*boards, *(f"{board}-{grid}" for board in boards for grid in boards[board].get("variants", ()))]


def _entry(name: str) -> dict:
    """A board by its name, or by name and grid for a variant with fewer harvested cores: `p150-13x10`."""
    boards = _table()["boards"]
    if name in boards:
        return boards[name]
    base, _, grid = name.partition("-")
    variants = boards.get(base, {}).get("variants", {})
    if grid not in variants:
        raise InvalidArgument(f"there is no board {name!r}", hint=f"known boards: {', '.join(names_with_grids())}")
    shared = {key: value for key, value in boards[base].items() if key not in OF_ONE_GRID}
    return shared | variants[grid]


@functools.cache
def find_board(name: str, dispatch: str | None = None) -> Board:
    """The board of this name, with the given kind of dispatch cores or its default."""
    table, entry = _table(), _entry(name)
    chip = dict(table["chips"][entry["chip"]])
    dispatch = dispatch or entry["dispatch"]
    if dispatch not in entry["grids"]:
        raise InvalidArgument(
            f"board {name} cannot dispatch from {dispatch}", hint=f"it can from {list(entry['grids'])}"
        )
    return Board(
        name=name,
        arch=Arch[chip.pop("arch")],
        mesh=tuple(entry["mesh"]),
        grid=tuple(entry["grids"][dispatch]),
        dispatch=dispatch,
        **chip,
    )


def near_dram(name: str, dispatch: str) -> list[list[int]] | None:
    """Per DRAM bank, the core (column, row) with the fewest NoC hops to it; None if it was not recorded.

    The candidates depend on which cores are used for dispatch.
    """
    return _entry(name).get("near_dram", {}).get(dispatch)


def l1_banks(name: str) -> list[tuple[int, int]] | None:
    """The core (column, row) of every L1 bank with the default dispatch; None if it was not recorded."""
    found = _entry(name).get("l1_banks")
    return None if found is None else [(x, y) for x, y in found]


def default_board_name() -> str:
    """`TTNN_EMULATOR_BOARD`, or the n150."""
    return os.environ.get(BOARD_VARIABLE, DEFAULT_BOARD)
