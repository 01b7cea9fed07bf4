"""How a tensor is dealt out over the chips of a mesh, and put together again."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from ttnn_emulator.errors import require

if TYPE_CHECKING:
    from ttnn_emulator.device import MeshDevice


@dataclass(frozen=True)
class PlacementReplicate:
    """Every chip along this axis of the mesh gets the same."""

    def __repr__(self) -> str:
        return "PlacementReplicate()"


@dataclass(frozen=True)
class PlacementShard:
    """The tensor is cut along `dim` over the chips of this axis of the mesh."""

    dim: int

    def __repr__(self) -> str:
        return f"PlacementShard({self.dim})"


class MeshMapperConfig:
    """One placement an axis of the mesh: `MeshMapperConfig([PlacementShard(0), PlacementReplicate()])`."""

    def __init__(
        self,
        placements: Sequence[Any] | int | None = None,
        mesh_shape_override: Any = None,
        mesh_offset_override: Any = None,
        *,
        row_dim: int | None = None,
        col_dim: int | None = None,
    ) -> None:
        if isinstance(placements, int) or placements is None:
            rows = placements if placements is not None else row_dim
            columns = mesh_shape_override if isinstance(mesh_shape_override, int) else col_dim
            placements = [_placement(rows), _placement(columns)]
        self.placements = list(placements)
        self.mesh_shape_override = mesh_shape_override


class MeshComposerConfig:
    """Along which dimension of the tensor the shards of each axis of the mesh are joined."""

    def __init__(self, dims: Sequence[int] | int, mesh_shape_override: Any = None) -> None:
        self.dims = [dims] if isinstance(dims, int) else list(dims)
        self.mesh_shape_override = mesh_shape_override


def _placement(dim: int | None) -> PlacementReplicate | PlacementShard:
    return PlacementReplicate() if dim is None else PlacementShard(dim)


class MeshMapper:
    """Deals a tensor out: one placement for every axis of the mesh."""

    def __init__(
        self, device: MeshDevice | None, placements: Sequence[Any], shape: Sequence[int] | None = None
    ) -> None:
        self.device = device
        self.placements = list(placements)
        self.mesh_shape = tuple(shape) if shape is not None else tuple(device.shape) if device is not None else (1,)
        if len(self.placements) == 1 and len(self.mesh_shape) > 1:
            self.mesh_shape = (math.prod(self.mesh_shape),)
        require(
            len(self.placements) == len(self.mesh_shape),
            f"{len(self.placements)} placements do not fit a mesh of {list(self.mesh_shape)}",
        )

    @property
    def replicates(self) -> bool:
        return all(isinstance(placement, PlacementReplicate) for placement in self.placements)

    def split(self, tensor: torch.Tensor, device: MeshDevice | None) -> list[torch.Tensor]:
        pieces = [tensor]
        for placement, count in zip(self.placements, self.mesh_shape):
            pieces = [part for piece in pieces for part in self._along(piece, placement, count)]
        return pieces

    @staticmethod
    def _along(piece: torch.Tensor, placement: Any, count: int) -> list[torch.Tensor]:
        if isinstance(placement, PlacementReplicate):
            return [piece] * count
        require(
            -piece.dim() <= placement.dim < piece.dim(),
            f"a tensor of rank {piece.dim()} cannot be sharded along dimension {placement.dim}",
        )
        size = piece.shape[placement.dim]
        require(size % count == 0, f"dimension {placement.dim} of size {size} does not divide over {count} devices")
        return list(piece.chunk(count, placement.dim))


class MeshComposer:
    """Joins shards: one dimension for every axis of the mesh."""

    def __init__(self, device: MeshDevice | None, dims: Sequence[int], shape: Sequence[int] | None = None) -> None:
        self.dims = list(dims)
        mesh = tuple(shape) if shape is not None else tuple(device.shape) if device is not None else None
        if len(self.dims) == 1:
            mesh = None  # one row of chips, however many there are
        self.mesh_shape = mesh

    def join(self, pieces: list[torch.Tensor]) -> torch.Tensor:
        if self.mesh_shape is None:
            return torch.cat(pieces, self.dims[0])
        for count, dim in zip(reversed(self.mesh_shape), reversed(self.dims)):
            groups = [pieces[start : start + count] for start in range(0, len(pieces), count)]
            pieces = [torch.cat(group, dim) for group in groups]
        return pieces[0]


def create_mesh_mapper(mesh_device: MeshDevice, config: MeshMapperConfig) -> MeshMapper:
    return MeshMapper(mesh_device, config.placements, config.mesh_shape_override)


def create_mesh_composer(mesh_device: MeshDevice, config: MeshComposerConfig) -> MeshComposer:
    return MeshComposer(mesh_device, config.dims, config.mesh_shape_override)


def ReplicateTensorToMesh(mesh_device: MeshDevice) -> MeshMapper:
    """The whole tensor on every chip."""
    return MeshMapper(mesh_device, [PlacementReplicate()] * len(tuple(mesh_device.shape)))


def ShardTensorToMesh(mesh_device: MeshDevice, dim: int) -> MeshMapper:
    """The tensor cut along `dim`, one part a chip."""
    return MeshMapper(mesh_device, [PlacementShard(dim)])


def ShardTensor2dMesh(mesh_device: MeshDevice, mesh_shape: Sequence[int], dims: Sequence[int | None]) -> MeshMapper:
    """The tensor cut along two dimensions over rows and columns of the mesh; None replicates."""
    return MeshMapper(mesh_device, [_placement(dim) for dim in dims], tuple(mesh_shape))


def ConcatMeshToTensor(mesh_device: MeshDevice, dim: int) -> MeshComposer:
    """Shards joined along `dim`."""
    return MeshComposer(mesh_device, [dim])


def ConcatMesh2dToTensor(mesh_device: MeshDevice, mesh_shape: Sequence[int], dims: Sequence[int]) -> MeshComposer:
    """Shards of a two-dimensional mesh joined along two dimensions."""
    return MeshComposer(mesh_device, dims, tuple(mesh_shape))


replicate_tensor_to_mesh_mapper = ReplicateTensorToMesh
shard_tensor_to_mesh_mapper = ShardTensorToMesh
concat_mesh_to_tensor_composer = ConcatMeshToTensor


def as_mapper(value: Any) -> MeshMapper | None:
    if value is None or isinstance(value, MeshMapper):
        return value
    raise TypeError(f"mesh_mapper must be made by ShardTensorToMesh, ReplicateTensorToMesh or the like, not {value!r}")


def as_composer(value: Any) -> MeshComposer | None:
    if value is None or isinstance(value, MeshComposer):
        return value
    raise TypeError(f"mesh_composer must be made by ConcatMeshToTensor or the like, not {value!r}")


def get_device_tensors(tensor: Any) -> list[Any]:
    """One tensor for every chip."""
    from ttnn_emulator.storage import Storage
    from ttnn_emulator.tensor import Tensor, values_of

    return [Tensor.of(tensor._spec, Storage([values], None), tensor._device) for values in values_of(tensor)]


def aggregate_tensor(tensors: Any, composer: MeshComposer) -> Any:
    """Host tensors joined into one."""
    from ttnn_emulator.host import from_torch_tensor
    from ttnn_emulator.numerics.formats import to_torch_dtype
    from ttnn_emulator.tensor import values_of

    items = list(tensors) if isinstance(tensors, list | tuple) else [tensors]
    pieces = [to_torch_dtype(values, item.dtype) for item in items for values in values_of(item)]
    return from_torch_tensor(composer.join(pieces), items[0].dtype, layout=items[0].layout)


def distribute_tensor(tensor: Any, mapper: MeshMapper, mesh_device: MeshDevice | None = None) -> Any:
    """A host tensor dealt out over a mesh."""
    from ttnn_emulator.host import from_torch_tensor

    return from_torch_tensor(
        tensor.to_torch(), tensor.dtype, layout=tensor.layout, device=mesh_device, mesh_mapper=mapper
    )
