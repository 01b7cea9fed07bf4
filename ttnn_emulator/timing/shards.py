"""Shards as data movement sees them: how many cores hold how many pages of what size."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

from ttnn_emulator.enums import ShardOrientation, TensorMemoryLayout
from ttnn_emulator.tensors.shapes import div_up
from ttnn_emulator.tensors.spec import Spec

CACHED = 10_000  # specs


@dataclass(frozen=True, slots=True)
class Shards:
    """The shards of a tensor. Pages are tiles, or rows of a shard.

    down, across  cores along the height and along the width
    rows, columns pages of a full shard along its height and along its width
    page          bytes of a page
    """

    down: int
    across: int
    rows: int
    columns: int
    page: int

    @property
    def cores(self) -> int:
        return self.down * self.across

    @property
    def pages(self) -> int:
        """Pages of a full shard."""
        return self.rows * self.columns

    @property
    def bytes(self) -> int:
        """Bytes of a full shard."""
        return self.rows * self.columns * self.page


@functools.lru_cache(maxsize=CACHED)
def shards_of(spec: Spec) -> Shards | None:
    """The shards of a tensor; None if it is interleaved."""
    config = spec.memory_config
    if not config.is_sharded():
        return None
    height, width = spec.physical_shape
    if config.shard_spec is not None:
        tall, wide = config.shard_spec.shape
    else:
        nd = config.nd_shard_spec
        assert nd is not None
        shape = tuple(nd.shard_shape)
        tall, wide = math.prod(shape[:-1]), shape[-1]
    page_height, page_width = spec.page_shape
    tall, wide = min(tall, height), min(wide, width)
    return Shards(
        div_up(height, max(tall, 1)),
        div_up(width, max(wide, 1)),
        div_up(tall, page_height),
        div_up(wide, page_width),
        spec.page_bytes,
    )


@functools.lru_cache(maxsize=CACHED)
def grid_of(spec: Spec) -> tuple[int, int]:
    """Cores along the height and along the width of the grid that a sharded tensor is placed on."""
    config = spec.memory_config
    shard = config.shard_spec
    if shard is None:
        found = shards_of(spec)
        return (1, 1) if found is None else (found.down, found.across)
    if config.memory_layout is TensorMemoryLayout.HEIGHT_SHARDED:
        return shard.num_cores(), 1
    if config.memory_layout is TensorMemoryLayout.WIDTH_SHARDED:
        return 1, shard.num_cores()
    extent = shard.grid.bounding_box().grid_size()
    return (extent.y, extent.x) if shard.orientation is ShardOrientation.ROW_MAJOR else (extent.x, extent.y)


def is_local(spec: Spec) -> bool:
    """Whether every core has its part of the tensor in its own L1."""
    return spec.is_sharded and spec.memory_config.is_l1


def bytes_of(spec: Spec) -> int:
    """Bytes of all pages of a tensor."""
    return spec.num_pages * spec.page_bytes
