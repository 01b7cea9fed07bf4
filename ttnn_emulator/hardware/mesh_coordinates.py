"""Shapes of meshes, and the coordinates of their chips."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ttnn_emulator.errors import require


class MeshShape:
    """Rows and columns of chips: `MeshShape(1, 2)`, `MeshShape([2, 4])`."""

    __slots__ = ("_dims",)

    def __init__(self, *dims: Any, x: int | None = None, y: int | None = None) -> None:
        if len(dims) == 1 and not isinstance(dims[0], int):
            dims = tuple(dims[0])
        if x is not None and y is not None:
            dims = (y, x)
        self._dims = tuple(int(dim) for dim in dims)

    def dims(self) -> int:
        return len(self._dims)

    def mesh_size(self) -> int:
        size = 1
        for dim in self._dims:
            size *= dim
        return size

    def __iter__(self) -> Iterator[int]:
        return iter(self._dims)

    def __len__(self) -> int:
        return len(self._dims)

    def __getitem__(self, index: int) -> int:
        return self._dims[index]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MeshShape | tuple | list) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash(self._dims)

    def __repr__(self) -> str:
        return f"MeshShape({list(self._dims)})"


class MeshCoordinate:
    """The coordinate of a chip in a mesh: `MeshCoordinate(row, column)`."""

    __slots__ = ("_values",)

    def __init__(self, *values: Any) -> None:
        self._values = tuple(values[0]) if len(values) == 1 and not isinstance(values[0], int) else values

    def dims(self) -> int:
        return len(self._values)

    def number_in(self, shape: MeshShape) -> int:
        """The row-major index of the chip."""
        inside = len(self._values) == len(shape) and all(0 <= v < s for v, s in zip(self._values, shape))
        require(inside, f"{self!r} is not in a mesh of {list(shape)}")
        number = 0
        for value, size in zip(self._values, shape):
            number = number * size + value
        return number

    def __iter__(self) -> Iterator[int]:
        return iter(self._values)

    def __getitem__(self, index: int) -> int:
        return self._values[index]

    def __len__(self) -> int:
        return len(self._values)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MeshCoordinate) and self._values == other._values

    def __hash__(self) -> int:
        return hash(self._values)

    def __repr__(self) -> str:
        return f"MeshCoordinate({list(self._values)})"
