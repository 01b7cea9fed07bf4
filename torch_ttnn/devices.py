"""Which library and which device a program runs on: the real `ttnn` with a card, or the emulator."""

from __future__ import annotations

import atexit
import importlib.util
import logging
import operator
import os
import threading
import weakref
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import ttnn_emulator

log = logging.getLogger("torch_ttnn")

VARIABLE = "TORCH_TTNN_DEVICE"
L1_SMALL_BYTES = 32768  # convolutions and pools keep their index tables there
TRACE_BYTES = 64 << 20


@dataclass(frozen=True)
class Target:
    """Where programs run. `typing` is the emulated device that types them: the same one, or a twin of the card."""

    ttnn: ModuleType
    device: Any
    typing: Any

    @property
    def lock(self) -> threading.RLock:
        """Held while a program runs: what a device is told while a trace is captured becomes part of that trace."""
        with _lock:
            return _locks.setdefault(self.device, threading.RLock())

    @property
    def is_emulator(self) -> bool:
        return self.ttnn is ttnn_emulator

    @property
    def is_open(self) -> bool:
        return not self.is_emulator or self.device.is_open

    @property
    def name(self) -> str:
        kind = "emulated" if self.is_emulator else "real"
        return f"{kind} {self.typing.board.name}"


def library_function(library: ModuleType, path: str) -> Any:
    """What programs call by this path in one of the libraries, for example `ttnn.transformer.concatenate_heads`."""
    return operator.attrgetter(path.removeprefix("ttnn."))(library)


_lock = threading.Lock()
_opened: dict[str, Target] = {}
_locks: weakref.WeakKeyDictionary[Any, threading.RLock] = weakref.WeakKeyDictionary()


def resolve(wanted: Any = None) -> Target:
    """The target for an option, an environment variable, or neither."""
    if wanted is None:
        wanted = os.environ.get(VARIABLE) or None
    if wanted is None:
        wanted = "ttnn" if _has_card() else "emulator"
    if not isinstance(wanted, str):
        return _around(wanted)
    kind, _, detail = wanted.partition(":")
    if kind not in ("emulator", "ttnn"):
        raise ValueError(f'no device is called {wanted!r}; say "emulator", "emulator:<board>", "ttnn" or "ttnn:<id>"')
    with _lock:
        found = _opened.get(wanted)
        if found is None or not found.is_open:
            found = _opened[wanted] = _open_emulator(detail) if kind == "emulator" else _open_card(detail)
        return found


def _around(device: Any) -> Target:
    """A device that the user opened."""
    if isinstance(device, ttnn_emulator.MeshDevice):
        device.require_open()
        return Target(ttnn_emulator, device, device)
    module = type(device).__module__.split(".")[0]
    if module not in ("ttnn", "tt_lib"):
        raise TypeError(f"device must be an open ttnn device or a name, not {type(device).__name__}")
    import ttnn

    return Target(ttnn, device, _twin(device))


def _open_emulator(board: str) -> Target:
    device = ttnn_emulator.open_device(
        device_id=0, board=board or None, l1_small_size=L1_SMALL_BYTES, trace_region_size=TRACE_BYTES
    )
    return Target(ttnn_emulator, device, device)


def _open_card(device_id: str) -> Target:
    try:
        import ttnn
    except ImportError:
        raise RuntimeError(
            "the device ttnn was asked for, but the package is not installed: pip install ttnn"
        ) from None
    device = ttnn.open_device(
        device_id=int(device_id or 0), l1_small_size=L1_SMALL_BYTES, trace_region_size=TRACE_BYTES
    )
    return Target(ttnn, device, _twin(device))


def _twin(device: Any) -> Any:
    """An emulated board that types programs for a card; it holds no values."""
    board = "p150" if "blackhole" in str(device.arch()).lower() else "n150"
    return ttnn_emulator.open_device(
        device_id=0, board=board, l1_small_size=L1_SMALL_BYTES, trace_region_size=TRACE_BYTES, holds_values=False
    )


def _has_card() -> bool:
    if importlib.util.find_spec("ttnn") is None:
        return False
    try:
        import ttnn

        return ttnn.GetNumAvailableDevices() > 0
    except Exception as error:  # the library raises whatever its driver says; without a card the emulator answers
        log.info("ttnn is installed but finds no device (%s); using the emulator", error)
        return False


@atexit.register
def _close_all() -> None:
    for target in _opened.values():
        if target.is_open:
            target.ttnn.close_device(target.device)
