"""Views of a buffer in storage order: tile by tile or row by row, including padding."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from ttnn_emulator.tensors.spec import Spec

Dims = tuple[int, ...]


@dataclass(frozen=True)
class Reread:
    """The buffer of `old` read as `new`. The padding of a carrier without padding counts as zeros."""

    old: Spec
    new: Spec

    def __call__(self, values: torch.Tensor) -> torch.Tensor:
        old, new = self.old, self.new
        if new.volume == 0:
            return values.new_zeros(new.shape)
        buffer = _padded(values, old.padded_shape).reshape(-1)
        if old.is_tile:
            height, width = old.tile.height, old.tile.width
            rows, columns = old.physical_shape[1] // width, new.physical_shape[1] // width
            tiles = buffer.reshape(-1, height, rows, width).transpose(1, 2).reshape(-1, height, width)
            count = (new.physical_shape[0] // height) * columns
            tiles = _resized(tiles, count)
            buffer = tiles.reshape(-1, columns, height, width).transpose(1, 2).reshape(-1)
        buffer = _resized(buffer, math.prod(new.padded_shape)).reshape(new.padded_shape)
        return buffer[tuple(slice(size) for size in _aligned(new))].reshape(new.shape)


def _aligned(spec: Spec) -> Dims:
    """The logical shape with the rank of the padded one."""
    return (1,) * (len(spec.padded_shape) - len(spec.shape)) + spec.shape


def _padded(values: torch.Tensor, padded: Dims) -> torch.Tensor:
    values = values.reshape((1,) * (len(padded) - values.dim()) + tuple(values.shape))
    growth = [(0, large - small) for small, large in zip(values.shape, padded)]
    if any(grow for _, grow in growth):
        values = torch.nn.functional.pad(values, [side for pair in reversed(growth) for side in pair])
    return values


def _resized(items: torch.Tensor, count: int) -> torch.Tensor:
    if len(items) < count:
        return torch.cat([items, items.new_zeros((count - len(items), *items.shape[1:]))])
    return items[:count]
