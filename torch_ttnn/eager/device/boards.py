"""The boards behind `ttnn:0`, `ttnn:1` …: which they are, and the current one."""

from __future__ import annotations

import os
import threading
from typing import Any

import torch

from torch_ttnn import devices
from torch_ttnn.devices import Target, card


class Board:
    """One board by its index. Its device is opened at the first use."""

    def __init__(self, index: int, wanted: Any, number: int) -> None:
        self.index = index
        self.wanted = wanted  # a name or an open device, as the option `device` takes them
        self._number = number  # among boards of this name
        self.device = torch.device("ttnn", index)
        self._target: Target | None = None

    @property
    def target(self) -> Target:
        if self._target is None or not self._target.is_open:
            self._target = devices.resolve(self.wanted, self._number)
        return self._target

    def __repr__(self) -> str:
        return f"Board({self.index}, {self.wanted!r})"


_boards: list[Board] = []
_lock = threading.Lock()


def use(*wanted: Any) -> None:
    """Choose the boards `ttnn:0`, `ttnn:1` …: names as the option `device` takes them, or open devices.

    Tensors stay on the board that they were made on.
    """
    if not wanted:
        raise ValueError('use takes at least one board, such as "emulator:n150"')
    with _lock:
        names = [each if isinstance(each, str) else "" for each in wanted]
        _boards[:] = [Board(index, each, names[:index].count(each)) for index, each in enumerate(wanted)]


def all_boards() -> list[Board]:
    """All boards: those of `use`, else of TORCH_TTNN_DEVICE (several separated by commas), else the cards, else one."""
    if not _boards:
        names = [name.strip() for name in os.environ.get(devices.VARIABLE, "").split(",") if name.strip()]
        if not names and card.is_present():
            names = [f"ttnn:{number}" for number in range(card.library().GetNumAvailableDevices())]
        use(*(names or ["emulator"]))
    return _boards


def board_of(device: torch.device | str | int | None = None) -> Board:
    """The board of a device; without an index, the first."""
    index = device if isinstance(device, int) else (torch.device(device).index if device is not None else None) or 0
    boards = all_boards()
    if not 0 <= index < len(boards):
        raise RuntimeError(
            f"there is no device ttnn:{index}: there are {len(boards)}, numbered from 0. torch.ttnn.use(...) and the "
            f"variable {devices.VARIABLE} choose boards, such as emulator:n150,emulator:p150"
        )
    return boards[index]
