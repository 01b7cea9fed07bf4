"""What a library hears from programs: every call in order, with the specs of its tensors and of its results."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
import torch.utils._pytree as pytree

from tests.card.paired import described
from torch_ttnn import card
from torch_ttnn.compiler.arguments import leaves
from torch_ttnn.compiler.border import is_description
from torch_ttnn.devices import Target


class Heard:
    """Listens at the border of one target."""

    def __init__(self, target: Target) -> None:
        self._is_emulator = target.is_emulator
        self.calls: list[tuple[str, list[Any], Any]] = []
        self.foreign: list[str] = []  # objects of the emulator that reached another library

    def __call__(self, path: str, args: tuple, kwargs: Mapping[str, Any], result: Any) -> None:
        given = leaves((args, dict(kwargs)))
        if not self._is_emulator:
            self.foreign += [f"{path}: {item!r}" for item in given if is_description(item)]
        tensors = [_specs(item) for item in given if _is_tensor(item)]
        self.calls.append((path, tensors, [_specs(item) for item in leaves(result) if _is_tensor(item)]))

    @property
    def paths(self) -> list[str]:
        return [path for path, _, _ in self.calls]


def _is_tensor(item: Any) -> bool:
    return isinstance(item, torch.Tensor) or hasattr(item, "padded_shape")


def _specs(item: Any) -> Any:
    if isinstance(item, torch.Tensor):
        return list(item.shape), item.dtype
    return described(item)


def first_difference(one: Heard, other: Heard) -> str:
    """Where two sequences of calls part; empty if they do not."""
    for number, (ours, theirs) in enumerate(zip(one.calls, other.calls)):
        if ours != theirs:
            return f"call {number}: {ours} on the card, {theirs} on the emulator"
    if len(one.calls) != len(other.calls):
        return f"{len(one.calls)} calls on the card, {len(other.calls)} on the emulator"
    return ""


def assert_alike(got: Any, want: Any) -> None:
    """Outputs of a card and of the emulator: shapes, dtypes and strides, and values where the card computes any."""
    ours, theirs = ([each for each in pytree.tree_leaves(one) if isinstance(each, torch.Tensor)] for one in (got, want))
    assert [(each.shape, each.dtype, each.stride()) for each in ours] == [
        (each.shape, each.dtype, each.stride()) for each in theirs
    ]
    if not card.is_mock():
        for one, other in zip(ours, theirs):
            torch.testing.assert_close(one, other, rtol=0.05, atol=0.05 * float(other.abs().max()))
