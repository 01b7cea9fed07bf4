"""An operation's arguments taken apart: the storages of its tensors, and the key that its program is looked up by."""

from __future__ import annotations

from typing import Any

import torch

from torch_ttnn.compiler.analysis.index_bounds import Bounds
from torch_ttnn.compiler.ir.arguments import leaves, mapped
from torch_ttnn.eager.capture import View
from torch_ttnn.eager.quiet import quiet
from torch_ttnn.eager.storage import Place, Storage
from torch_ttnn.eager.tensor import TtnnTensor


class Call:
    """One call of an operation.

    key       equal for calls that the same program runs
    storages  those of its tensors on `ttnn`, each once
    scalars   its tensors of the host, which have one element or none: torch allows no others beside a device's
    """

    __slots__ = ("function", "args", "kwargs", "storages", "scalars", "key")

    def __init__(self, function: Any, args: tuple, kwargs: dict[str, Any]) -> None:
        self.function = function
        self.args = args
        self.kwargs = kwargs
        self.storages: list[Storage] = []
        self.scalars: list[torch.Tensor] = []
        key: Any = tuple([self._key_of(each) for each in args])
        if kwargs:
            key = key, tuple([(name, self._key_of(each)) for name, each in kwargs.items()])
        self.key = function, key

    def _key_of(self, item: Any) -> Any:
        kind = item.__class__
        if kind is TtnnTensor:
            return self._slot_of(item._held), item._held.key, item._chain
        if kind is float:  # 0.0 equals -0.0, and NaN not itself
            return (float, item) if item and item == item else (float, str(item))
        if kind is int or kind is bool:
            return kind, item
        if kind is list or kind is tuple:
            return tuple([self._key_of(each) for each in item])
        if isinstance(item, torch.Tensor):
            self._require_scalar(item)
            self.scalars.append(item)
            return "scalar", item.dtype, tuple(item.shape)
        return item

    def _slot_of(self, held: Storage) -> int:
        for slot, each in enumerate(self.storages):
            if each is held:
                return slot
        if self.storages and held.board is not self.storages[0].board:
            raise RuntimeError(self._other_device(held.board.device))
        held.define()
        self.storages.append(held)
        return len(self.storages) - 1

    def _require_scalar(self, tensor: torch.Tensor) -> None:
        if tensor.dim() and tensor.numel():
            raise RuntimeError(self._other_device(tensor.device))

    def _other_device(self, device: torch.device) -> str:
        here = self.storages[0].board.device if self.storages else "ttnn"
        return (
            f"{self.function}: Expected all tensors to be on the same device, but found at least two devices, "
            f"{here} and {device}!"
        )

    @property
    def held_on_host(self) -> str:
        """Why the host holds one of its tensors; an empty string if it holds none."""
        for each in self.storages:
            if each.place is Place.HOST:
                return each.reason
        return ""

    @property
    def is_empty(self) -> bool:
        """Whether none of its tensors has elements."""
        return all(each.place is Place.EMPTY for each in self.storages)

    @property
    def inputs(self) -> list[Any]:
        """The inputs of its program."""
        return [each.payload for each in self.storages] + self.scalars

    def views_within(self, slot: int, bounds: Bounds) -> bool:
        """Whether the integers that the call reads of a storage are within bounds: those of its views, no others."""
        held = self.storages[slot]
        with quiet(), torch.no_grad():
            return all(
                bounds.hold(each._chain.of(held.host()))
                for each in leaves((self.args, self.kwargs))
                if isinstance(each, TtnnTensor) and each._held is held
            )

    def pattern(self) -> tuple[tuple, dict[str, Any]]:
        """The arguments with a `View` of the program's inputs in place of each tensor."""
        scalars = iter(range(len(self.storages), len(self.storages) + len(self.scalars)))

        def pattern_of(item: Any) -> Any:
            if isinstance(item, TtnnTensor):
                return View(self._slot_of(item._held), item._chain)
            return View(next(scalars)) if isinstance(item, torch.Tensor) else item

        return mapped(self.args, pattern_of), mapped(self.kwargs, pattern_of)
