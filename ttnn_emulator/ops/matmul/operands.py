"""The two operands of a matmul after the requested transposes, with sizes in elements and in tiles."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from ttnn_emulator.enums import DataType
from ttnn_emulator.errors import require
from ttnn_emulator.tensors.memory_config import MemoryConfig
from ttnn_emulator.tensors.shapes import DEFAULT_TILE, Tile
from ttnn_emulator.tensors.spec import Spec, tile_bytes


def batch_of(shape: Sequence[int]) -> int:
    return math.prod(shape[:-2])


def is_batched(shape: Sequence[int]) -> bool:
    return any(dim > 1 for dim in shape[:-2])


def height_of(shape: Sequence[int]) -> int:
    """The last dimension but one; a vector counts as one row."""
    return shape[-2] if len(shape) > 1 else 1


def default_tile_bytes(dtype: DataType) -> int:
    return tile_bytes(DEFAULT_TILE, dtype)


def _transposed(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The last two dimensions swapped; a vector counts as one row."""
    return (*shape[:-2], shape[-1], shape[-2]) if len(shape) > 1 else (1,)


def _transposed_tile(tile: Tile) -> Tile:
    return Tile((tile.width, tile.height), not tile.transpose_tile)


@dataclass(frozen=True)
class Operands:
    """in0 × in1."""

    a: Spec
    b: Spec
    transpose_a: bool = False
    transpose_b: bool = False

    @cached_property
    def a_shape(self) -> tuple[int, ...]:
        return _transposed(self.a.shape) if self.transpose_a else self.a.shape

    @cached_property
    def b_shape(self) -> tuple[int, ...]:
        return _transposed(self.b.shape) if self.transpose_b else self.b.shape

    @cached_property
    def a_padded(self) -> tuple[int, ...]:
        return _transposed(self.a.padded_shape) if self.transpose_a else self.a.padded_shape

    @cached_property
    def b_padded(self) -> tuple[int, ...]:
        return _transposed(self.b.padded_shape) if self.transpose_b else self.b.padded_shape

    @cached_property
    def in0_tile(self) -> Tile:
        return _transposed_tile(self.a.tile) if self.transpose_a else self.a.tile

    @cached_property
    def in1_tile(self) -> Tile:
        return _transposed_tile(self.b.tile) if self.transpose_b else self.b.tile

    @cached_property
    def batch_a(self) -> int:
        return batch_of(self.a_padded)

    @cached_property
    def batch_b(self) -> int:
        return batch_of(self.b_padded)

    # Sizes in tiles. With `fused`, the rows of all batches count as one matrix.

    def rows(self, fused: bool = False) -> int:
        height = math.prod(self.a_padded[:-1]) if fused else self.a_padded[-2]
        return height // self.in0_tile.height

    @cached_property
    def inner(self) -> int:
        return self.a_padded[-1] // self.in0_tile.width

    @cached_property
    def columns(self) -> int:
        return self.b_padded[-1] // self.in1_tile.width


def output_shape(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of a product. Vectors lose their dimension; b's batches must match a's, unless a has none."""
    vectors = len(a) == 1 or len(b) == 1
    extra = max(max(len(a), len(b)) - vectors - len(a), 0)
    shape = list(b if len(b) > len(a) else a)
    require(
        all(size == 1 for size in b[:extra]),
        f"of the second operand's shape {list(b)}, the {extra} leading dimensions that the first one's {list(a)} lacks "
        "must be 1",
    )
    for index, size in enumerate(a[:-1]):
        shape[extra + index] = size
    shape[-1] = b[-1]
    if len(a) == 1 and len(shape) > 1:
        del shape[-2]
    if len(b) == 1:
        del shape[-1]
    if len(a) >= 3 and len(a) == len(b):
        for index in range(len(a) - 2):
            if a[index] == 1 and b[index] > 1:
                shape[index] = b[index]
    return tuple(shape)


def output_tile(operands: Operands, memory_config: MemoryConfig, asked: Tile | None, of_output: Tile | None) -> Tile:
    """The tile of the result: in0's height by in1's width, unless the caller requests another."""
    in0, in1 = operands.in0_tile, operands.in1_tile
    if asked is None and of_output is None:
        return Tile((in0.height, in1.width))
    require(asked is None or of_output is None, "give an output_tile or an optional_output_tensor, not both")
    tile = asked if asked is not None else of_output
    assert tile is not None
    require(
        tile.width % in1.width == 0,
        f"the output tile's width {tile.width} must be a multiple of in1's tile width {in1.width}",
    )
    require(tile.height == in0.height, f"the output tile's height {tile.height} must be in0's tile height {in0.height}")
    if tile.width != in1.width:
        require(
            tile.height <= 16, f"an output tile that is wider than in1's must be at most 16 high, not {tile.height}"
        )
        require(
            memory_config.is_sharded(),
            f"only a sharded output takes tiles {tile.width} wide where in1's are {in1.width} wide",
        )
    return tile
