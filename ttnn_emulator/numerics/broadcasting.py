"""Broadcast shapes, cached: torch recomputes them in every call, which takes longer than a small sum."""

from __future__ import annotations

import functools

import torch


def shape_of(a: torch.Tensor, b: torch.Tensor) -> torch.Size:
    """The shape of an elementwise result of two tensors."""
    return a.shape if a.shape == b.shape else joined(a.shape, b.shape)


@functools.lru_cache(4096)
def joined(*shapes: torch.Size) -> torch.Size:
    return torch.broadcast_shapes(*shapes)


def of_one_shape(a: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Both tensors expanded to their broadcast shape."""
    if a.shape == b.shape:
        return a, b
    shape = joined(a.shape, b.shape)
    return a.expand(shape), b.expand(shape)
