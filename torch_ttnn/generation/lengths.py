"""Lengths that programs are compiled for."""

from __future__ import annotations

import torch

TILE = 32  # rows of a tile: shorter buckets take as long


def bucket_of(length: int) -> int:
    """The length that a prompt is padded to.

    >>> [bucket_of(length) for length in (1, 32, 33)]
    [32, 32, 64]
    """
    return -(-length // TILE) * TILE


def padded(tokens: torch.Tensor, *, right: bool = False) -> torch.Tensor:
    """Token ids, padded with -1 to the length of their bucket."""
    lacking = bucket_of(tokens.shape[1]) - tokens.shape[1]
    return torch.nn.functional.pad(tokens, (0, lacking) if right else (lacking, 0), value=-1)
