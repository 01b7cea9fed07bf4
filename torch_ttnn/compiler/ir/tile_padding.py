"""Decides between tiles and rows: tiles of a shape can be mostly padding."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ttnn_emulator import TILE_SIZE

MOST_PADDING = 4  # times its present size that a tensor may occupy in tiles
UPLOAD_LIMIT = 1 << 20  # padded elements up to which an upload is always in tiles


def tile_volume(shape: Sequence[int]) -> int:
    """Elements of a tensor, including the padding to whole tiles."""
    *outer, height, width = (1, 1, *shape)
    return math.prod(outer) * -(-height // TILE_SIZE) * -(-width // TILE_SIZE) * TILE_SIZE**2


def is_mostly_padding(shape: Sequence[int], stored: Sequence[int] | None = None) -> bool:
    """Whether tiles of `shape` would waste so much memory that rows are better.

    stored  the shape that a tensor has in tiles before a reshape; None for an upload, whose present size is that of
            its elements. Convolution weights, [out, in, 3, 3], occupy 113 times their elements. Vectors are always
            uploaded in tiles.
    """
    volume = tile_volume(shape)
    if stored is not None:
        return tuple(shape) != tuple(stored) and volume > MOST_PADDING * tile_volume(stored)
    return len(shape) >= 2 and volume > max(UPLOAD_LIMIT, MOST_PADDING * math.prod(shape))


def merged_for_tiles(shape: Sequence[int]) -> tuple[int, ...]:
    """The matrix with the same elements in the same order that takes the least memory in tiles.

    >>> merged_for_tiles((64, 32, 3, 3)), merged_for_tiles((16, 512, 1, 1))
    ((64, 288), (16, 512))
    """
    splits = [(math.prod(shape[:dim]), math.prod(shape[dim:])) for dim in range(1, len(shape))]
    return min(splits, key=tile_volume, default=tuple(shape))
