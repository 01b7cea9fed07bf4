"""Compiles models on torch's meta device by giving their tensors addresses but no memory."""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.utils._pytree as pytree

NO_RESERVE = getattr(mmap, "MAP_NORESERVE", 0x4000)  # Linux; Python has the name since 3.13


@contextmanager
def addressed(model: Any, args: tuple, kwargs: dict[str, Any]) -> Iterator[tuple[tuple, dict[str, Any], bool]]:
    """Replace meta tensors by CPU tensors within the block; also yields whether there were any."""
    replaced: dict[int, torch.Tensor] = {}

    def stand_in(item: Any) -> Any:
        if not isinstance(item, torch.Tensor) or not item.is_meta:
            return item
        if id(item) not in replaced:
            tensor = addressed_like(item)
            replaced[id(item)] = torch.nn.Parameter(tensor, item.requires_grad) if _is_parameter(item) else tensor
        return replaced[id(item)]

    inputs, settings = pytree.tree_map(stand_in, (args, kwargs))
    places = list(_tensor_places(model)) if isinstance(model, torch.nn.Module) else []
    originals = [owner[name] for owner, name in places]
    try:
        for owner, name in places:
            owner[name] = stand_in(owner[name])
        yield inputs, settings, bool(replaced)
    finally:
        for (owner, name), original in zip(places, originals):
            owner[name] = original


def addressed_like(like: torch.Tensor) -> torch.Tensor:
    """A CPU tensor whose pages are reserved but never touched, so they take no memory."""
    size = torch.empty_strided(like.shape, like.stride(), dtype=like.dtype, device="meta").untyped_storage().nbytes()
    if size == 0:
        return torch.empty_strided(like.shape, like.stride(), dtype=like.dtype, device="cpu")
    pages = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | NO_RESERVE)
    flat = torch.frombuffer(pages, dtype=torch.uint8).view(like.dtype)
    return flat.as_strided(tuple(like.shape), tuple(like.stride()))


def _is_parameter(item: torch.Tensor) -> bool:
    return isinstance(item, torch.nn.Parameter)


def _tensor_places(model: torch.nn.Module) -> Iterator[tuple[dict[str, Any], str]]:
    """The dictionaries and names of a model's meta tensors: parameters, buffers, and plain attributes."""
    for module in model.modules():
        for owner in (module._parameters, module._buffers, module.__dict__):
            for name, item in list(owner.items()):
                if isinstance(item, torch.Tensor) and item.is_meta:
                    yield owner, name
