"""What a thread is doing: the device that it prepares a call for, and whether it only infers specs."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from ttnn_emulator.hardware.boards import Board, default_board_name, find_board
from ttnn_emulator.hardware.device import MeshDevice


class _CallContext(threading.local):
    """The dispatch state of a thread."""

    device: MeshDevice | None = None  # whose call is being prepared
    board: Board | None = None  # what a call is planned for without a device
    specs_only: bool = False  # infer specs only: no allocation, no computation


context = _CallContext()


def current_board() -> Board:
    """The board that the call being prepared will run on."""
    if context.board is not None:
        return context.board
    device = context.device
    return device.board if device is not None else find_board(default_board_name())


def current_device() -> MeshDevice | None:
    """The device that the call being prepared will run on."""
    return context.device


@contextmanager
def planning_for(board: Board) -> Iterator[None]:
    """Within this block, operations are planned for this board, whatever device there is."""
    before, context.board = context.board, board
    try:
        yield
    finally:
        context.board = before


@contextmanager
def specs_only():
    """Within this block, operations check and infer, but neither allocate nor compute."""
    before, context.specs_only = context.specs_only, True
    try:
        yield
    finally:
        context.specs_only = before
