"""Shapes, tiles, and the arithmetic of rounding up."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

TILE_SIZE = 32
FACE_SIZE = 16


def div_up(value: int, divisor: int) -> int:
    return -(-value // divisor)


def round_up(value: int, multiple: int) -> int:
    return value if multiple == 0 else -(-value // multiple) * multiple


class Shape(Sequence[int]):
    """A tensor's shape, as `ttnn.Shape`: comparable with lists and tuples, indexed by plain integers."""

    __slots__ = ("dims",)
    dims: tuple[int, ...]

    def __init__(self, dims: Iterable[int]) -> None:
        self.dims = tuple(int(dim) for dim in dims)

    @property
    def rank(self) -> int:
        return len(self.dims)

    def to_rank(self, rank: int) -> Shape:
        """The same shape with leading ones added or removed."""
        extra = rank - len(self.dims)
        if extra >= 0:
            return Shape((1,) * extra + self.dims)
        if any(dim != 1 for dim in self.dims[:-extra]):
            raise RuntimeError(f"Shape {self} cannot be changed to rank {rank}: its leading dimensions are not 1")
        return Shape(self.dims[-extra:])

    def __len__(self) -> int:
        return len(self.dims)

    def __iter__(self) -> Iterator[int]:
        return iter(self.dims)

    def __getitem__(self, index: Any) -> Any:
        if not isinstance(index, int):
            raise TypeError(f"Shape is indexed by an integer, not {type(index).__name__}; use tuple(shape)[...]")
        return self.dims[index]

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Shape):
            return self.dims == other.dims
        return self.dims == tuple(other) if isinstance(other, list | tuple) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.dims)

    def __repr__(self) -> str:
        return f"Shape({list(self.dims)})"


class Tile:
    """The height and width of a tile, by default 32 × 32."""

    __slots__ = ("tile_shape", "transpose_tile", "_hash")

    def __init__(self, tile_shape: Sequence[int] = (TILE_SIZE, TILE_SIZE), transpose_tile: bool = False) -> None:
        shape = tuple(int(dim) for dim in tile_shape)
        allowed = {(h, w) for h in (32, 16, 8, 4, 2, 1) for w in (32, 16)}
        if shape not in allowed:
            raise RuntimeError(f"Tile size {list(shape)} is not supported by the hardware: {sorted(allowed)}")
        self.tile_shape = shape
        self.transpose_tile = transpose_tile
        self._hash = hash((shape, transpose_tile))

    @property
    def height(self) -> int:
        return self.tile_shape[0]

    @property
    def width(self) -> int:
        return self.tile_shape[1]

    @property
    def face_shape(self) -> list[int]:
        """The shape of a face: 16 × 16, the operand size of the matrix unit, or less in a smaller tile."""
        return [min(self.height, FACE_SIZE), FACE_SIZE]

    @property
    def num_faces(self) -> int:
        return self.height * self.width // (self.face_shape[0] * FACE_SIZE)

    @property
    def partial_face(self) -> int:
        """1 if the tile has fewer rows than two faces: a flag of the kernels."""
        return int(self.height < TILE_SIZE)

    @property
    def narrow_tile(self) -> int:
        return int(self.width < TILE_SIZE)

    @property
    def transpose_of_faces(self) -> bool:
        return self.transpose_tile

    @property
    def transpose_within_face(self) -> bool:
        return self.transpose_tile

    def get_tile_size(self, dtype: Any) -> int:
        """Bytes of one tile."""
        from ttnn_emulator.tensors.spec import tile_bytes

        return tile_bytes(self, dtype)

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, Tile)
            and (self.tile_shape, self.transpose_tile)
            == (
                other.tile_shape,
                other.transpose_tile,
            )
        )

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return f"Tile with shape: {list(self.tile_shape)}"


DEFAULT_TILE = Tile()


def volume(dims: Iterable[int]) -> int:
    return math.prod(dims)


def normalize_dim(dim: int, rank: int) -> int:
    """A negative dimension counted from the end; out of range raises IndexError."""
    if not -rank <= dim < rank:
        raise IndexError(f"dimension {dim} is out of range for a tensor of rank {rank}")
    return dim % rank if rank else 0
