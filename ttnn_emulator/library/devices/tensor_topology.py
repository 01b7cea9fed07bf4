"""`ttnn.TensorTopology`: how a tensor is distributed over the chips of a mesh."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ttnn_emulator.hardware.mesh_coordinates import MeshCoordinate, MeshShape


class TensorTopology:
    """The distribution shape, the placement along each of its dimensions, and the chips."""

    def __init__(
        self, distribution_shape: MeshShape, placements: Sequence[Any], mesh_coords: Sequence[MeshCoordinate]
    ) -> None:
        self._shape, self._placements, self._coords = distribution_shape, list(placements), list(mesh_coords)

    def distribution_shape(self) -> MeshShape:
        return self._shape

    def placements(self) -> list[Any]:
        return list(self._placements)

    def mesh_coords(self) -> list[MeshCoordinate]:
        return list(self._coords)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TensorTopology) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((self._shape, tuple(self._coords)))

    def __repr__(self) -> str:
        coords = ", ".join(map(repr, self._coords))
        return (
            f"TensorTopology(distribution_shape={self._shape!r}, placements={self._placements}, mesh_coords={coords})"
        )
