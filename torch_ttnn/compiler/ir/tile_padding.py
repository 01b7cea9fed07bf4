"""Decides between tiles and rows: tiles of a shape can be mostly padding."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ttnn_emulator import TILE_SIZE

UPLOAD_LIMIT = 1 << 20  # padded elements up to which an upload is always in tiles
UPLOAD_FACTOR = 8  # times its elements that a larger upload may occupy in tiles
RESHAPE_FACTOR = 4  # times its present tiles that a tensor may occupy after a reshape


def tile_volume(shape: Sequence[int]) -> int:
    """Elements of a tensor, including the padding to whole tiles."""
    *outer, height, width = (1, 1, *shape)
    return math.prod(outer) * -(-height // TILE_SIZE) * -(-width // TILE_SIZE) * TILE_SIZE**2


def is_mostly_padding(shape: Sequence[int], stored: Sequence[int] | None = None) -> bool:
    """Whether tiles of `shape` would waste so much memory that rows are better.

    stored  the shape that a tensor has in tiles before a reshape; None for an upload. Convolution weights,
            [out, in, 3, 3], occupy 113 times their elements. Vectors are always uploaded in tiles.
    """
    if stored is not None:
        return tuple(shape) != tuple(stored) and tile_volume(shape) > RESHAPE_FACTOR * tile_volume(stored)
    volume = tile_volume(shape)
    return len(shape) >= 2 and volume > UPLOAD_LIMIT and volume > UPLOAD_FACTOR * math.prod(shape)
