"""The library and device that programs run on: the real `ttnn` with a card, or the emulator."""

from __future__ import annotations

import atexit
import os
import threading
import weakref
from contextlib import AbstractContextManager
from types import ModuleType
from typing import Any

import torch

import ttnn_emulator
from torch_ttnn.compiler.runtime.border import Border, CallListener
from torch_ttnn.devices import card
from ttnn_emulator.hardware.matching_device import matching_device

VARIABLE = "TORCH_TTNN_DEVICE"
L1_SMALL_BYTES = 32768  # convolutions and pools store their index tables there
TRACE_BYTES = 64 << 20
SIZES: dict[str, Any] = {"l1_small_size": L1_SMALL_BYTES, "trace_region_size": TRACE_BYTES}


class Target:
    """Where programs run. `typing` is the emulated device that infers specs: itself, or the counterpart of a card."""

    def __init__(self, library: ModuleType, device: Any, typing: Any) -> None:
        self.border = Border(library, device)
        self.typing = typing
        self.is_emulator = library is ttnn_emulator

    @property
    def ttnn(self) -> Any:
        return self.border.library

    @property
    def device(self) -> Any:
        return self.border.device

    @property
    def lock(self) -> threading.RLock:
        """Held while a program runs: calls of another thread during a trace capture would become part of the trace."""
        with _lock:
            if self.is_emulator:
                return _locks.setdefault(self.device, threading.RLock())
            # The library's devices cannot be weakly referenced; ids are not reused within a process.
            return _locks_of_cards.setdefault(self.device.id(), threading.RLock())

    @property
    def is_mock(self) -> bool:
        """Whether the card is a mock, which checks every call and computes nothing."""
        return not self.is_emulator and card.is_mock()

    @property
    def can_trace(self) -> bool:
        """Whether traces can be captured: a mock card aborts the process, and slow dispatch has no traces."""
        return self.is_emulator or not (self.is_mock or os.environ.get("TT_METAL_SLOW_DISPATCH_MODE"))

    @property
    def is_open(self) -> bool:
        if self.border.is_closed:
            return False
        if self.is_emulator:
            return self.device.is_open
        if self.device.id() in _closed_cards:
            return False
        try:  # the library has no other way to ask whether a device was closed
            self.ttnn.get_memory_view(self.device, self.ttnn.BufferType.L1_SMALL)
        except RuntimeError:
            _closed_cards.add(self.device.id())
            return False
        return True

    @property
    def name(self) -> str:
        kind = "emulated" if self.is_emulator else "mock" if self.is_mock else "real"
        return f"{kind} {self.typing.board.name}"

    def listening(self, listener: CallListener) -> AbstractContextManager[None]:
        """Report every call of the library that programs on this target make."""
        return self.border.listening(listener)


_lock = threading.Lock()
_opened: dict[str, Target] = {}
_locks: weakref.WeakKeyDictionary[Any, threading.RLock] = weakref.WeakKeyDictionary()
_locks_of_cards: dict[int, threading.RLock] = {}
_closed_cards: set[int] = set()
_cards: dict[int, Target] = {}  # targets of devices that users opened, by device id


def resolve(wanted: Any = None, number: int = 0) -> Target:
    """The target for the option `device`, else for the environment variable (its first name), else the default.

    number  of several emulated devices of one name
    """
    if wanted is None:
        wanted = os.environ.get(VARIABLE, "").partition(",")[0].strip() or None
    if wanted is None:
        wanted = "ttnn" if card.is_present() else "emulator"
    if not isinstance(wanted, str):
        return _for_device(wanted)
    kind, _, detail = wanted.partition(":")
    if kind not in ("emulator", "ttnn"):
        raise ValueError(
            f'no device is called {wanted!r}; choose "emulator", "emulator:<board>", "ttnn" or "ttnn:<id>"'
        )
    if kind == "ttnn" and detail and not detail.isdigit():
        raise ValueError(f'no device is called {wanted!r}; cards are numbered: "ttnn", "ttnn:0", "ttnn:1"')
    name = f"ttnn:{int(detail or 0)}" if kind == "ttnn" else wanted
    with _lock:
        key = f"{name}#{number}" if number and kind == "emulator" else name
        found = _opened.get(key)
        if found is None or not found.is_open:
            found = _opened[key] = _open_emulator(detail) if kind == "emulator" else _open_card(int(detail or 0))
        return found


def _for_device(device: Any) -> Target:
    """The target of a device that the user opened."""
    if isinstance(device, ttnn_emulator.MeshDevice):
        device.require_open()
        return Target(ttnn_emulator, device, device)
    module = type(device).__module__.split(".")[0]
    if module not in ("ttnn", "tt_lib"):
        raise TypeError(f"device must be an open ttnn device or a name, not {type(device).__name__}")
    with _lock:
        for number in [number for number, target in _cards.items() if not target.is_open]:
            _cards.pop(number).border.close()
        if device.id() in _closed_cards:
            raise card.CardError("the device passed to the compiler is closed; open one and compile with it")
        if device.id() not in _cards:
            library = card.library()
            card.check_version()
            _cards[device.id()] = Target(library, device, _counterpart(library, device))
        return _cards[device.id()]


def _open_emulator(board: str) -> Target:
    device = ttnn_emulator.open_device(device_id=0, board=board or None, **SIZES)
    return Target(ttnn_emulator, device, device)


def _open_card(device_id: int) -> Target:
    library, device = card.open_card(device_id, **SIZES)
    return Target(library, device, matching_device(library, device))


def _counterpart(library: ModuleType, device: Any) -> Any:
    try:
        return matching_device(library, device)
    except RuntimeError as error:
        _closed_cards.add(device.id())
        raise card.CardError("the device passed to the compiler is closed; open one and compile with it") from error


def _close(target: Target) -> None:
    if target.is_open:
        if not target.is_emulator:
            _closed_cards.add(target.device.id())
        target.ttnn.close_device(target.device)


@atexit.register
def _close_all() -> None:
    """Close devices that were opened by name.

    Dynamo keeps compiled programs, and options with devices, until the interpreter exits. Their objects of the library
    are released before that, because the library reports every object that is still alive.
    """
    if _cards or _closed_cards:
        torch._dynamo.reset()
    for target in _cards.values():
        target.border.close()
    for target in _opened.values():
        if not target.is_emulator:
            target.border.release_programs()
        _close(target)
        target.border.close()
