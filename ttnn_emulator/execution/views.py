"""Views: tensors of another shape over the buffer of a tensor."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

from ttnn_emulator.execution.operation_table import Plan
from ttnn_emulator.tensors import padding_values
from ttnn_emulator.tensors.spec import Spec
from ttnn_emulator.tensors.storage import SpecStorage, Storage
from ttnn_emulator.tensors.tensor import Tensor


def view(plan: Plan, spec: Spec, source: Tensor) -> Tensor:
    """A tensor over the same buffer; the carrier is reshaped without a copy."""
    storage = source._storage
    if storage.__class__ is SpecStorage:
        return Tensor.of(spec, SpecStorage(storage.device), source._device)
    reshape, padded = plan.compute, plan.padded
    if padded is not None and reshape is not None:
        shared = SharedStorage.of(storage, functools.partial(_reshape_with_padding, reshape, storage, padded))
    else:
        shared = SharedStorage.of(storage, reshape)
    if plan.padding is not None:
        padding_values.note(storage, plan.padding)
        padding_values.note(shared, plan.padding)
    return Tensor.of(spec, shared, source._device)


def _reshape_with_padding(reshape: Callable[..., Any], storage: Storage, spec: Spec, values: torch.Tensor) -> Any:
    """A view that includes padding: filled with its value where that is known."""
    return reshape(padding_values.with_known(storage, spec, values))


class SharedStorage(Storage):
    """A view's storage: another shape over the buffer of `owner`, which stays alive as long as the view."""

    __slots__ = ("owner", "reshape")

    owner: Storage
    reshape: Any

    @classmethod
    def of(cls, owner: Storage, reshape: Any) -> SharedStorage:
        shared = cls(None, owner.device)
        shared.owner = owner
        shared.reshape = reshape
        shared.address = owner.address
        shared.placement = owner.placement
        return shared

    @property
    def root(self) -> Storage:
        return self.owner.root

    @property
    def values(self) -> Any:  # type: ignore[override]
        stored = self.owner.values
        if stored is None or self.reshape is None:
            return stored
        return [self.reshape(item) for item in stored]

    @values.setter
    def values(self, new: Any) -> None:
        if new is not None:
            self.owner.values = [item.reshape(old.shape) for item, old in zip(new, self.owner.values or new)]

    @property
    def freed_by(self) -> str:  # type: ignore[override]
        owner = getattr(self, "owner", None)
        return owner.freed_by if owner is not None else ""

    @freed_by.setter
    def freed_by(self, by: str) -> None:
        if by:
            self.owner.freed_by = by

    def release(self, by: str) -> None:
        self.owner.release(by)
