"""Finds and opens cards, and explains why that failed."""

from __future__ import annotations

import importlib.util
import logging
import os
import re
import warnings
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from types import ModuleType
from typing import Any

import psutil

from torch_ttnn.compiler.errors import TorchTtnnError
from torch_ttnn.errors import UserError

log = logging.getLogger("torch_ttnn")

DEVICE_FILES = Path("/dev/tenstorrent")  # created by the kernel driver, one per card
# With either of them the library finds cards without device files: a mock cluster, or a simulator.
STAND_INS = ("TT_METAL_MOCK_CLUSTER_DESC_PATH", "TT_METAL_SIMULATOR")
# Releases that the calls of our models were checked with (docs/conformance.md), newest first.
SUPPORTED = ("0.81.1", "0.80.0", "0.79.0")
EMULATOR_HINT = 'To run without a card, set TORCH_TTNN_DEVICE=emulator or options={"device": "emulator"}.'


class CardError(TorchTtnnError, UserError):
    """A card was requested and cannot be used."""


def is_stand_in() -> bool:
    """Whether the library uses a mock or a simulator in place of a card."""
    return any(map(os.environ.get, STAND_INS))


def is_mock() -> bool:
    """Whether the library uses a mock card, which checks every call and computes nothing."""
    return bool(os.environ.get(STAND_INS[0])) and not os.environ.get(STAND_INS[1])


def is_present() -> bool:
    """Whether the library is installed and finds a card.

    The library logs a page of text if it finds none, so it is queried only if there is a driver or a stand-in.
    """
    if importlib.util.find_spec("ttnn") is None or not (_device_files() or is_stand_in()):
        return False
    try:
        return library().GetNumAvailableDevices() > 0
    except Exception as error:  # any error of the library or its driver
        log.warning("%s The emulator runs instead.", explained(error))
        return False


def library() -> ModuleType:
    """The real `ttnn`."""
    try:
        import ttnn
    except ImportError as error:
        raise _not_installed(str(error)) from error
    return ttnn


def require_likely() -> None:
    """Raise if there can be no card: no library, or neither a driver nor a stand-in.

    The library is not queried: that locks the card for this process, which may only start others.
    """
    if importlib.util.find_spec("ttnn") is None:
        raise _not_installed("No module named 'ttnn'")
    if not (_device_files() or is_stand_in()):
        raise CardError(f"{_no_card()}. {EMULATOR_HINT}")


def _not_installed(why: str) -> CardError:
    return CardError(
        f"the device ttnn was requested, but `import ttnn` fails ({why}). Install the library with "
        f"`pip install ttnn=={SUPPORTED[0]}` (wheels are for Python 3.10 and 3.12 on Linux). {EMULATOR_HINT}"
    )


def _no_card() -> str:
    return (
        f"no card was found: there is no {DEVICE_FILES}, so either no card is plugged in or its driver (tt-kmd) is not "
        "loaded; `lspci -d 1e52:` lists the cards that the machine sees"
    )


def open_card(device_id: int, **sizes: int) -> tuple[ModuleType, Any]:
    """The library and an open device."""
    ttnn = library()
    check_version()
    for process in _holders(device_id):
        log.warning("card %d is in use by %s; opening it waits until that process releases it", device_id, process)
    try:
        found = ttnn.GetNumAvailableDevices()
        if device_id < found:
            return ttnn, ttnn.open_device(device_id=device_id, **sizes)
    except Exception as error:
        raise CardError(explained(error)) from error
    raise CardError(f"there is no card {device_id}: the library finds {found}, numbered from 0. {EMULATOR_HINT}")


def check_version() -> None:
    """Warn if our calls were not checked with the installed release."""
    try:
        installed = metadata.version("ttnn")
    except metadata.PackageNotFoundError:
        installed = "of an unknown version"
    if installed not in SUPPORTED:
        warnings.warn(
            f"ttnn {installed} is not among the releases that torch_ttnn is checked against "
            f"({', '.join(SUPPORTED)}). `python -m torch_ttnn.check --ttnn {installed}` shows which calls it "
            "rejects or types differently.",
            stacklevel=2,
        )


# -- causes of errors -------------------------------------------------------------------------------------------------

# Messages of the library and its driver, and what to do about them. The messages are those of ttnn 0.81.1
# (libtt-umd.so, libtt_metal.so); the first match applies.
REASONS: tuple[tuple[str, str], ...] = (
    (
        r"(?i)firmware (bundle )?version .*(older|mismatch|newer)|minimum (compatible|supported) version",
        "the card's firmware does not fit this release of ttnn. Update it with tt-flash, or install a release of ttnn "
        "that fits it",
    ),
    (
        r"requires KMD version|KMD version .* (older|too old)",
        "the kernel driver (tt-kmd) is older than this release of ttnn needs. Update the driver",
    ),
    (
        r"another process is already holding|currently held by|resource lock|already in use|Device or resource busy",
        "the card is in use by another process. End that process, or reset the card with tt-smi -r",
    ),
    (
        r"Permission denied",
        "this user may not open the card. Add the user to the group that owns /dev/tenstorrent",
    ),
    (
        r"hugepage|Hugepage|IOMMU is required",
        "the host has no huge pages set up for the card. Run the driver's set-up of huge pages (tt-system-tools)",
    ),
    (
        r"[Tt]imed? ?out|heartbeat|ARC",
        "the card does not answer. Reset it with tt-smi -r, or restart the machine",
    ),
    (
        r"[Nn]o chips (were )?detected|No devices|no devices",
        "no card was found",
    ),
)


def explained(error: BaseException) -> str:
    """The meaning of an error when opening a card, and what to do.

    >>> explained(RuntimeError("Running UMD requires KMD version 2.0.0 or newer.")).partition(".")[0]
    'the kernel driver (tt-kmd) is older than this release of ttnn needs'
    """
    text = str(error)
    reason = next((meaning for pattern, meaning in REASONS if re.search(pattern, text)), "")
    if reason == "no card was found":
        if not _device_files():
            reason = _no_card()
        else:
            reason += ", though the driver is loaded; `tt-smi -ls` lists what it sees"
    if not reason:
        reason = "the library could not open the card"
    return f"{reason}. {EMULATOR_HINT} ttnn says: {_first_line(text)}"


def _first_line(text: str) -> str:
    """The library's message, without source position and backtrace."""
    _, _, info = text.partition("info:\n")
    lines = (info or text).partition("backtrace:")[0].split("\n")
    return " ".join(line.strip() for line in lines if line.strip())[:500]


def _device_files() -> list[Path]:
    return sorted(each for each in DEVICE_FILES.glob("*") if each.name.isdigit()) if DEVICE_FILES.is_dir() else []


def _holders(device_id: int) -> Iterator[str]:
    """Other processes that have the card's device file open, if this user may see them."""
    path = str(DEVICE_FILES / str(device_id))
    if not os.path.exists(path):
        return
    for process in psutil.process_iter(["pid", "name"]):
        if process.pid != os.getpid() and path in _open_files(process.pid):
            yield f"process {process.pid} ({process.info['name']})"


def _open_files(pid: int) -> set[str]:
    found = set()
    try:
        with os.scandir(f"/proc/{pid}/fd") as links:
            for link in links:
                try:
                    found.add(os.readlink(link.path))
                except OSError:  # closed meanwhile
                    continue
    except OSError:  # gone meanwhile, or another user's
        return set()
    return found
