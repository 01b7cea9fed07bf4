"""Distribution of a tensor over the chips of a mesh, and its composition."""

from __future__ import annotations

import itertools
import math
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from ttnn_emulator.errors import require
from ttnn_emulator.hardware.mesh_coordinates import MeshCoordinate, MeshShape

if TYPE_CHECKING:
    from ttnn_emulator.hardware.device import MeshDevice


@dataclass(frozen=True)
class PlacementReplicate:
    """Replicate along this mesh axis."""

    def __repr__(self) -> str:
        return "PlacementReplicate()"


@dataclass(frozen=True)
class PlacementShard:
    """Shard the tensor along `dim` over the chips of this mesh axis."""

    dim: int

    def __repr__(self) -> str:
        return f"PlacementShard({self.dim})"


class MeshMapperConfig:
    """One placement per mesh axis: `MeshMapperConfig([PlacementShard(0), PlacementReplicate()])`."""

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

    def __repr__(self) -> str:
        shape = "" if self.mesh_shape_override is None else f", mesh_shape_override={self.mesh_shape_override!r}"
        return f"MeshMapperConfig(placements: {self.placements!r}{shape})"


class MeshComposerConfig:
    """The tensor dimension along which the shards of each mesh axis are concatenated."""

    def __init__(self, dims: Sequence[int], mesh_shape_override: Any = None) -> None:
        self.dims = list(dims)
        self.mesh_shape_override = mesh_shape_override

    def __repr__(self) -> str:
        return f"MeshComposerConfig(dims: {self.dims!r})"


def _placement(dim: int | None) -> PlacementReplicate | PlacementShard:
    return PlacementReplicate() if dim is None else PlacementShard(dim)


class MeshMapper:
    """Distributes a tensor: one placement per mesh axis."""

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

    def config(self) -> MeshMapperConfig:
        """The config of the mapper."""
        return MeshMapperConfig(self.placements, MeshShape(*self.mesh_shape))

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
        require(size % count == 0, f"dimension {placement.dim} of size {size} is not divisible by {count} devices")
        return list(piece.chunk(count, placement.dim))


class MeshComposer:
    """Concatenates shards: one dimension per mesh axis."""

    def __init__(self, device: MeshDevice | None, dims: Sequence[int], shape: Sequence[int] | None = None) -> None:
        self.dims = list(dims)
        mesh = tuple(shape) if shape is not None else tuple(device.shape) if device is not None else None
        if len(self.dims) == 1:
            mesh = None  # one row of any number of chips
        self.mesh_shape = mesh

    def join(self, pieces: list[torch.Tensor]) -> torch.Tensor:
        if self.mesh_shape is None:
            return torch.cat(pieces, self.dims[0])
        for count, dim in zip(reversed(self.mesh_shape), reversed(self.dims)):
            groups = [pieces[start : start + count] for start in range(0, len(pieces), count)]
            pieces = [torch.cat(group, dim) for group in groups]
        return pieces[0]


def _require_an_entry_an_axis(entries: Sequence[Any], mesh_device: MeshDevice, config: Any) -> None:
    shape = config.mesh_shape_override if config.mesh_shape_override is not None else mesh_device.shape
    require(len(entries) == len(shape), f"{config!r} does not fit a mesh of {list(shape)}: it needs one entry per axis")


def create_mesh_mapper(mesh_device: MeshDevice, config: MeshMapperConfig) -> MeshMapper:
    """A mapper with this config."""
    _require_an_entry_an_axis(config.placements, mesh_device, config)
    return MeshMapper(mesh_device, config.placements, config.mesh_shape_override)


def create_mesh_composer(mesh_device: MeshDevice, config: MeshComposerConfig) -> MeshComposer:
    """A composer with this config."""
    _require_an_entry_an_axis(config.dims, mesh_device, config)
    return MeshComposer(mesh_device, config.dims, config.mesh_shape_override)


def ReplicateTensorToMesh(mesh_device: MeshDevice) -> MeshMapper:
    """Replicate the tensor on every chip."""
    return MeshMapper(mesh_device, [PlacementReplicate()] * len(tuple(mesh_device.shape)))


def ShardTensorToMesh(mesh_device: MeshDevice, dim: int) -> MeshMapper:
    """Shard the tensor along `dim`, one part per chip."""
    return MeshMapper(mesh_device, [PlacementShard(dim)])


def ShardTensor2dMesh(mesh_device: MeshDevice, mesh_shape: Sequence[int], dims: Sequence[int | None]) -> MeshMapper:
    """Shard the tensor along two dimensions over rows and columns of the mesh; None replicates."""
    return MeshMapper(mesh_device, [_placement(dim) for dim in dims], tuple(mesh_shape))


def ConcatMeshToTensor(mesh_device: MeshDevice, dim: int) -> MeshComposer:
    """Concatenate shards along `dim`."""
    return MeshComposer(mesh_device, [dim])


def ConcatMesh2dToTensor(mesh_device: MeshDevice, mesh_shape: Sequence[int], dims: Sequence[int]) -> MeshComposer:
    """Concatenate the shards of a 2D mesh along two dimensions."""
    return MeshComposer(mesh_device, dims, tuple(mesh_shape))


replicate_tensor_to_mesh_mapper = ReplicateTensorToMesh
shard_tensor_to_mesh_mapper = ShardTensorToMesh
concat_mesh_to_tensor_composer = ConcatMeshToTensor


def compute_distribution_to_mesh_mapping(distribution_shape: MeshShape, mesh_shape: MeshShape) -> list[MeshCoordinate]:
    """The chip of each piece of a distribution: the same coordinate if the mesh contains it, otherwise in order."""
    pieces, chips = tuple(distribution_shape), tuple(mesh_shape)
    fits = len(pieces) == len(chips) and all(piece <= size for piece, size in zip(pieces, chips))
    extents = pieces if fits else chips
    places = [MeshCoordinate(*place) for place in itertools.product(*(range(extent) for extent in extents))]
    return places[: math.prod(pieces)]


class MeshCoordinateRange:
    """A rectangle of mesh coordinates: from `start` to `end`, both included, or a whole mesh."""

    def __init__(self, start: MeshCoordinate | MeshShape, end: MeshCoordinate | None = None) -> None:
        if end is None:
            start, end = MeshCoordinate(*(0 for _ in start)), MeshCoordinate(*(size - 1 for size in start))
        require(len(start) == len(end), f"{start!r} and {end!r} have different ranks")  # type: ignore[arg-type]
        require(all(a <= b for a, b in zip(start, end)), f"{end!r} is before {start!r}")
        self.start, self.end = start, end

    def __iter__(self) -> Iterator[MeshCoordinate]:
        ranges = (range(first, last + 1) for first, last in zip(self.start, self.end))
        return (MeshCoordinate(*place) for place in itertools.product(*ranges))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MeshCoordinateRange) and (self.start, self.end) == (other.start, other.end)

    def __hash__(self) -> int:
        return hash((self.start, self.end))

    def __repr__(self) -> str:
        return f"MeshCoordinateRange(start={self.start!r}, end={self.end!r})"


class MeshDeviceView:
    """The chips of a mesh by coordinate; all belong to this host."""

    def __init__(self, device: MeshDevice) -> None:
        self._device = device

    def shape(self) -> MeshShape:
        return self._device.shape

    def num_devices(self) -> int:
        return self._device.num_devices

    def is_local(self, coord: MeshCoordinate) -> bool:
        coord.number_in(self._device.shape)
        return True

    def get_local_mesh_coord_range(self) -> MeshCoordinateRange:
        return MeshCoordinateRange(self._device.shape)


class MeshCoordinateRangeSet:
    """Rectangles of mesh coordinates."""

    def __init__(self, range: MeshCoordinateRange | None = None) -> None:
        self._ranges = [] if range is None else [range]

    def merge(self, range: MeshCoordinateRange) -> None:
        """Add a rectangle."""
        if range not in self._ranges:
            self._ranges.append(range)

    def ranges(self) -> list[MeshCoordinateRange]:
        return list(self._ranges)

    def __repr__(self) -> str:
        return f"MeshCoordinateRangeSet({self._ranges!r})"


def as_mapper(value: Any) -> MeshMapper | None:
    if value is None:
        return defaults.mapper
    if isinstance(value, MeshMapper):
        return value
    raise TypeError(f"mesh_mapper must be a mapper, e.g. ShardTensorToMesh or ReplicateTensorToMesh, not {value!r}")


def as_composer(value: Any) -> MeshComposer | None:
    if value is None:
        return defaults.composer
    if isinstance(value, MeshComposer):
        return value
    raise TypeError(f"mesh_composer must be a composer, e.g. ConcatMeshToTensor, not {value!r}")


def get_device_tensors(tensor: Any) -> list[Any]:
    """One tensor per chip."""
    from ttnn_emulator.tensors.storage import Storage
    from ttnn_emulator.tensors.tensor import Tensor, read_back

    return [Tensor.of(tensor._spec, Storage([values], None), tensor._device) for values in read_back(tensor)]


def from_host_shards(tensors: Sequence[Any], mesh_shape: MeshShape) -> Any:
    """Combine host tensors, one per chip, to a host tensor of a mesh."""
    require(len(tensors) > 0, "there are no shards")
    require(all(not each._spec.on_device for each in tensors), "shards must be on the host")
    chips = math.prod(mesh_shape)
    require(len(tensors) == chips, f"{len(tensors)} shards do not fill a mesh of {chips} devices")
    return _combined(tensors, None)


def combine_device_tensors(*, tensors: Sequence[Any]) -> Any:
    """Combine tensors of single chips, from `get_device_tensors`, to a tensor of the mesh."""
    require(len(tensors) > 0, "there are no shards")
    require(all(each._spec.on_device for each in tensors), "shards must be on a device")
    device = tensors[0]._device
    require(all(each._device is device for each in tensors), "shards must be on one mesh")
    require(len(tensors) == device.num_devices, f"{len(tensors)} shards do not fill {device.num_devices} devices")
    return _combined(tensors, device)


def _combined(tensors: Sequence[Any], device: MeshDevice | None) -> Any:
    from ttnn_emulator.tensors.storage import Storage
    from ttnn_emulator.tensors.tensor import Tensor, values_of

    spec = tensors[0]._spec
    for each in tensors[1:]:
        require(each._spec == spec, f"shards differ: {spec.brief()} and {each._spec.brief()}")
    combined = Tensor.of(spec, Storage([values_of(each)[0] for each in tensors], None), device)
    combined.topology = MeshMapper(None, [PlacementShard(0)], (len(tensors),))
    return combined


@contextmanager
def distribute(default: MeshMapper | MeshComposer) -> Iterator[None]:
    """Within this block, `default` is the default mapper of `from_torch` or composer of `to_torch`."""
    slot = "mapper" if isinstance(default, MeshMapper) else "composer"
    before = getattr(defaults, slot)
    setattr(defaults, slot, as_mapper(default) if slot == "mapper" else as_composer(default))
    try:
        yield
    finally:
        setattr(defaults, slot, before)


class _Defaults(threading.local):
    """The defaults that `distribute` set in this thread."""

    mapper: MeshMapper | None = None
    composer: MeshComposer | None = None


defaults = _Defaults()


def aggregate_tensor(tensors: Any, composer: MeshComposer) -> Any:
    """Compose host tensors into one."""
    from ttnn_emulator.numerics.formats.carriers import to_torch_dtype
    from ttnn_emulator.tensors.host_transfer import from_torch_tensor
    from ttnn_emulator.tensors.tensor import read_back

    items = list(tensors) if isinstance(tensors, list | tuple) else [tensors]
    pieces = [to_torch_dtype(values, item.dtype) for item in items for values in read_back(item)]
    return from_torch_tensor(composer.join(pieces), items[0].dtype, layout=items[0].layout)


def distribute_tensor(tensor: Any, mapper: MeshMapper, mesh_device: MeshDevice | None = None) -> Any:
    """Distribute a host tensor over a mesh."""
    from ttnn_emulator.tensors.host_transfer import from_torch_tensor

    return from_torch_tensor(
        tensor.to_torch(), tensor.dtype, layout=tensor.layout, device=mesh_device, mesh_mapper=mapper
    )
