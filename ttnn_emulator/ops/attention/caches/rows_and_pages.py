"""Shared parts of the key-value cache operations: writing rows into tiles, and views of pages."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch

from ttnn_emulator.enums import DataType
from ttnn_emulator.errors import ChipFault
from ttnn_emulator.numerics.formats.carriers import flush, truncate_bf16
from ttnn_emulator.numerics.units.packer import pack
from ttnn_emulator.tensors.shapes import TILE_SIZE

Convert = Callable[[torch.Tensor], torch.Tensor]


def untiled(dtype: DataType, *, wide: bool) -> Convert:
    """Untilize in a compute kernel, to bfloat16 or, with a 32-bit destination register, to float32."""
    if dtype is not DataType.FLOAT32:
        return flush
    return _unchanged if wide else lambda values: flush(truncate_bf16(values))


def _unchanged(values: torch.Tensor) -> torch.Tensor:
    return values


def tiled(dtype: DataType, *, wide: bool) -> Convert:
    """Tilize rows of bfloat16 or float32 into tiles of `dtype`."""
    if dtype is DataType.FLOAT32:
        return _unchanged
    return lambda values: pack(values, dtype, from_fp32=wide)


@dataclass(frozen=True)
class RowWriter:
    """Writes rows into a cache as the kernels do: untilize the tiles of the row, write it, tilize them again."""

    cache: DataType
    input: DataType
    fp32_acc: bool = False

    @property
    def wide(self) -> bool:
        """Whether the untilized rows are float32: on request, and always for a float32 cache."""
        return self.fp32_acc or self.cache is DataType.FLOAT32

    def rows(self, values: torch.Tensor) -> torch.Tensor:
        """The new rows as stored in the cache."""
        return tiled(self.cache, wide=self.wide)(untiled(self.input, wide=self.wide)(values))

    def around(self, tiles: torch.Tensor) -> torch.Tensor:
        """The cache rows that share a tile with a new one, after the round trip."""
        return tiled(self.cache, wide=self.wide)(untiled(self.cache, wide=self.wide)(tiles))

    def write(self, target: torch.Tensor, row: int, values: torch.Tensor) -> None:
        """`values` [..., D], already by `rows`, into row `row` of `target` [..., S, D], in place."""
        if not 0 <= row < target.shape[-2]:
            raise ChipFault(f"row {row} is outside a cache of {target.shape[-2]} rows")
        first = row // TILE_SIZE * TILE_SIZE
        around = target[..., first : first + TILE_SIZE, :]
        around.copy_(self.around(around.contiguous()))
        target[..., row, :] = values


@dataclass(frozen=True)
class Pages:
    """A cache of pages [P, heads, rows, D], viewed with other numbers of heads, rows and columns per page.

    The tiles of a page keep their order; only their shape changes.
    """

    own: tuple[int, int, int, int]
    seen: tuple[int, int, int, int]

    def view(self, cache: torch.Tensor) -> torch.Tensor:
        return _relabelled(cache, self.seen) if self.seen != self.own else cache

    def back(self, values: torch.Tensor) -> torch.Tensor:
        return _relabelled(values, self.own) if self.seen != self.own else values


def seen_as(cache: torch.Tensor, heads: int, rows: int, width: int) -> torch.Tensor:
    """Pages of any shape [P, …] as pages of `heads` × `rows` × `width` of the same tiles."""
    room = [(-size) % TILE_SIZE for size in cache.shape[2:]]
    cache = torch.nn.functional.pad(cache, (0, room[1], 0, room[0])) if any(room) else cache
    return Pages(tuple(cache.shape), (cache.shape[0], heads, rows, width)).view(cache)  # type: ignore[arg-type]


def _relabelled(values: torch.Tensor, shape: tuple[int, int, int, int]) -> torch.Tensor:
    pages, heads, rows, width = values.shape
    split = (pages, heads, rows // TILE_SIZE, TILE_SIZE, width // TILE_SIZE, TILE_SIZE)
    tiles = values.reshape(split).transpose(3, 4)
    pages, heads, rows, width = shape
    tiles = tiles.reshape(pages, heads, rows // TILE_SIZE, width // TILE_SIZE, TILE_SIZE, TILE_SIZE)
    return tiles.transpose(3, 4).reshape(shape).contiguous()
