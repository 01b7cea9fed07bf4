"""Two libraries as one: every call runs on both, results are compared by their specs, values are the emulator's.

With the real library on a mock card as the first, every call of a program is checked by the library itself, while tests
compare values as usual. With the emulator as both, it proves that only objects of the device's library
reach it.
"""

from __future__ import annotations

import os
import pathlib
import types
from collections.abc import Iterator
from typing import Any

import torch

import ttnn_emulator
from torch_ttnn.compiler.runtime.border import is_description
from torch_ttnn.devices import card
from ttnn_emulator.conformance import exchange

PLAIN = (str, int, float, bool, type(None), torch.dtype)
OWN = ("id",)  # chosen by each library itself


class Paired:
    """An object of the real library and its emulated counterpart."""

    def __init__(self, real: Any, emulated: Any, path: str) -> None:
        self.real, self.emulated, self.path = real, emulated, path

    def __getattr__(self, name: str) -> Any:
        return paired(getattr(self.real, name), getattr(self.emulated, name), f"{self.path}.{name}")

    def __getitem__(self, index: Any) -> Any:
        return paired(self.real[index], self.emulated[index], f"{self.path}[{index}]")

    def __iter__(self) -> Iterator[Any]:
        mine, other = list(self.real), list(self.emulated)
        assert len(mine) == len(other), self.path
        return iter([paired(a, b, self.path) for a, b in zip(mine, other)])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Paired) and self.emulated == other.emulated

    def __hash__(self) -> int:
        return hash(self.emulated)


class PairedCallable(Paired):
    """A function or class of both libraries."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        mine = self.real(*side(args, "real", self.path), **side(kwargs, "real", self.path))
        other = self.emulated(*side(args, "emulated", self.path), **side(kwargs, "emulated", self.path))
        return paired(mine, other, self.path)


class PairedClass(PairedCallable):
    """A class of both libraries, which says so to `isinstance(…, type)`."""

    __class__ = type  # type: ignore[assignment]


class PairedModule(Paired):
    """A namespace of both libraries, which says so to `isinstance(…, ModuleType)`."""

    __class__ = types.ModuleType  # type: ignore[assignment]


def paired(real: Any, emulated: Any, path: str) -> Any:
    """Both results of one call, or their common value."""
    if path.rpartition(".")[2] in OWN and isinstance(real, int):
        return real
    if isinstance(emulated, PLAIN):
        assert real == emulated, f"{path} is {real!r} in the library, {emulated!r} in the emulator"
        return emulated
    if isinstance(emulated, torch.Tensor):
        assert (real.shape, real.dtype) == (emulated.shape, emulated.dtype), path
        if not card.is_mock():
            largest = float(emulated.abs().max()) if emulated.numel() else 0.0
            torch.testing.assert_close(real, emulated, rtol=0.02, atol=0.02 * largest, msg=path)
        return emulated
    if isinstance(emulated, (list, tuple)) and isinstance(real, (list, tuple)):
        assert len(real) == len(emulated), path
        return type(emulated)([paired(a, b, path) for a, b in zip(real, emulated)])
    if isinstance(emulated, ttnn_emulator.Tensor):
        theirs, ours = described(real), described(emulated)
        assert theirs == ours, f"{path} is {theirs} in the library, {ours} in the emulator"
    for of, kind in ((type, PairedClass), (types.ModuleType, PairedModule)):
        if isinstance(emulated, of):
            return kind(real, emulated, path)
    return (PairedCallable if callable(emulated) else Paired)(real, emulated, path)


def side(item: Any, which: str, path: str) -> Any:
    """An argument as one of the two libraries gets it."""
    if issubclass(type(item), Paired):
        return getattr(item, which)
    if isinstance(item, (list, tuple)):
        return type(item)([side(each, which, path) for each in item])
    if isinstance(item, dict):
        return {name: side(each, which, path) for name, each in item.items()}
    assert not is_description(item), f"{path} got {item!r}, which is the emulator's own"
    return item


def described(tensor: Any) -> Any:
    """Shape, padded shape, dtype, layout and memory of a tensor of either library."""
    tensor = tensor.emulated if isinstance(tensor, Paired) else tensor  # both were compared
    library = ttnn_emulator
    if not isinstance(tensor, ttnn_emulator.Tensor):
        import ttnn as library
    return exchange.describe(library, tensor)


_open_card = card.open_card  # before a test replaces it


def open_paired(device_id: int, **sizes: Any) -> tuple[Any, Any]:
    """In place of `torch_ttnn.devices.card.open_card`: the real library's mock card and an emulated one like it."""
    library, device = _open_card(device_id, **sizes)
    board = pathlib.Path(os.environ[card.STAND_INS[0]]).stem
    return opened_with(library, device, board, device_id, sizes)


def opened_twice(device_id: int, **sizes: Any) -> tuple[Any, Any]:
    """In place of `torch_ttnn.devices.card.open_card`: the emulator as both libraries."""
    device = ttnn_emulator.open_device(device_id=device_id, board="n150", **sizes)
    return opened_with(ttnn_emulator, device, "n150", device_id, sizes)


def opened_with(library: Any, device: Any, board: str, device_id: int, sizes: dict[str, Any]) -> tuple[Any, Any]:
    emulated = ttnn_emulator.open_device(device_id=device_id, board=board, **sizes)
    return Paired(library, ttnn_emulator, "ttnn"), Paired(device, emulated, "device")
