"""Lengths that programs are compiled for."""

from __future__ import annotations

TILE = 32  # rows of a tile: shorter buckets take as long


def bucket_of(length: int) -> int:
    """The length that a prompt is padded to.

    >>> [bucket_of(length) for length in (1, 32, 33)]
    [32, 32, 64]
    """
    return -(-length // TILE) * TILE
