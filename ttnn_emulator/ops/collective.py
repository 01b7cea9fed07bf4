"""Collectives: operations in which the chips of a mesh exchange data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from ttnn_emulator.device import MeshCoordinate
from ttnn_emulator.dispatch import current_device
from ttnn_emulator.enums import Layout
from ttnn_emulator.errors import ChipFault, require
from ttnn_emulator.memory_config import MemoryConfig
from ttnn_emulator.numerics.formats import store
from ttnn_emulator.ops._common import into, memory_of, require_on_device
from ttnn_emulator.shapes import div_up
from ttnn_emulator.spec import Spec
from ttnn_emulator.table import Plan, operation

Carriers = list[torch.Tensor]

LINKS = ("subdevice_id", "num_links", "topology", "use_l1_small_for_semaphores")
WORKERS = ("chunks_per_sync", "num_workers_per_link", "num_buffers_per_channel", "sub_core_grids")


def groups(cluster_axis: int | None) -> list[list[int]]:
    """Numbers of the chips that exchange with each other: all of them, or those along one axis of the mesh."""
    device = current_device()
    assert device is not None
    shape = tuple(device.shape)
    chips = list(range(device.num_devices))
    if cluster_axis is None:
        return [chips]
    require(0 <= cluster_axis < len(shape), f"cluster_axis {cluster_axis} does not exist in a mesh of {list(shape)}")
    rows, columns = (1, *shape) if len(shape) == 1 else shape
    if cluster_axis == 0:
        return [chips[column::columns] for column in range(columns)]
    return [chips[row * columns : (row + 1) * columns] for row in range(rows)]


def _require_mesh(spec: Spec, what: str) -> None:
    require_on_device(spec)
    device = current_device()
    require(device is not None and device.num_devices > 1, f"{what} needs a mesh of more than one device")


def _front(dim: int, spec: Spec) -> int:
    require(-spec.rank <= dim < spec.rank, f"dimension {dim} is out of range for a tensor of rank {spec.rank}")
    return dim % spec.rank


def _resized(spec: Spec, dim: int, size: int, memory_config: MemoryConfig | None) -> Spec:
    shape = list(spec.shape)
    shape[dim] = size
    return spec.with_(shape=tuple(shape), memory_config=memory_of(memory_config, spec))


def _each_group(among: list[list[int]], exchange: Callable[[Carriers], Carriers]) -> Callable[[Carriers], Carriers]:
    """Apply `exchange` to the carriers of every group, and put the results back to their chips."""

    def compute(carriers: Carriers) -> Carriers:
        results: list[Any] = [None] * len(carriers)
        for group in among:
            for chip, result in zip(group, exchange([carriers[chip] for chip in group])):
                results[chip] = result
        return results

    return compute


def _sum(carriers: Sequence[torch.Tensor], spec: Spec) -> torch.Tensor:
    """Partial sums travel from chip to chip in the tensor's dtype."""
    total = carriers[0]
    for carrier in carriers[1:]:
        total = store(total + carrier, spec.dtype)
    return total


@operation("ttnn.all_gather", ignores=LINKS + WORKERS)
def all_gather(
    input_tensor: Spec,
    dim: int,
    *,
    cluster_axis: int | None = None,
    memory_config: MemoryConfig | None = None,
    output_tensor: Spec | None = None,
) -> Plan:
    """Every chip gets the tensors of all chips, joined along `dim`."""
    _require_mesh(input_tensor, "all_gather")
    dim = _front(dim, input_tensor)
    among = groups(cluster_axis)
    out = _resized(input_tensor, dim, input_tensor.shape[dim] * len(among[0]), memory_config)
    return Plan(
        out,
        _each_group(among, lambda carriers: [torch.cat(carriers, dim)] * len(carriers)),
        reads=("input_tensor",),
        into=into(output_tensor),
        across=True,
    )


def _scatter_size(spec: Spec, dim: int, count: int) -> int:
    """What each chip keeps of a dimension that is dealt out; tiles are dealt out whole where they are cut."""
    require(spec.rank > 1, "reduce_scatter needs a tensor of rank 2 or more")
    size = spec.shape[dim]
    cut = spec.rank - dim
    if spec.layout is Layout.TILE and cut <= 2:
        tiles = div_up(size, spec.tile.tile_shape[2 - cut])
        require(
            tiles % count == 0 or (cut == 2 and size % count == 0 and tiles == 1),
            f"the {tiles} tiles of dimension {dim} do not divide over {count} devices",
        )
        if size % count:
            raise ChipFault(
                f"dimension {dim} of size {size} is dealt out by tiles and then labelled {size // count}: values are lost"
            )
    else:
        require(size % count == 0, f"dimension {dim} of size {size} does not divide over {count} devices")
    return size // count


@operation("ttnn.reduce_scatter", ignores=(*LINKS, *WORKERS, "intermediate_memory_config", "compute_kernel_config"))
def reduce_scatter(
    input_tensor: Spec,
    dim: int,
    *,
    cluster_axis: int | None = None,
    memory_config: MemoryConfig | None = None,
    output_tensor: Spec | None = None,
) -> Plan:
    """The tensors of all chips are added; each chip gets its part along `dim`."""
    _require_mesh(input_tensor, "reduce_scatter")
    dim = _front(dim, input_tensor)
    among = groups(cluster_axis)
    count = len(among[0])
    out = _resized(input_tensor, dim, _scatter_size(input_tensor, dim, count), memory_config)
    return Plan(
        out,
        _each_group(among, lambda carriers: list(_sum(carriers, input_tensor).chunk(count, dim))),
        reads=("input_tensor",),
        into=into(output_tensor),
        across=True,
    )


@operation("ttnn.all_reduce", ignores=LINKS)
def all_reduce(
    input_tensor: Spec, cluster_axis: int | None = None, *, memory_config: MemoryConfig | None = None
) -> Plan:
    """Every chip gets the sum of the tensors of all chips."""
    _require_mesh(input_tensor, "all_reduce")
    out = input_tensor.with_(memory_config=memory_of(memory_config, input_tensor))
    exchange = _each_group(groups(cluster_axis), lambda carriers: [_sum(carriers, input_tensor)] * len(carriers))
    return Plan(out, exchange, across=True)


@operation("ttnn.all_broadcast", ignores=LINKS)
def all_broadcast(
    input_tensor: Spec, *, cluster_axis: int | None = None, memory_config: MemoryConfig | None = None
) -> Plan:
    """Every chip gets the tensor of each chip, as a list."""
    _require_mesh(input_tensor, "all_broadcast")
    among = groups(cluster_axis)
    out = input_tensor.with_(memory_config=memory_of(memory_config, input_tensor))
    count = len(among[0])
    chips = sum(len(group) for group in among)
    member = {chip: group for group in among for chip in group}
    return Plan(
        [out] * count,
        lambda carriers: [[carriers[member[chip][number]] for chip in range(chips)] for number in range(count)],
        across=True,
    )


@operation("ttnn.broadcast", ignores=LINKS)
def broadcast(
    input_tensor: Spec,
    sender_coord: MeshCoordinate,
    *,
    memory_config: MemoryConfig | None = None,
    cluster_axis: int | None = None,
) -> Plan:
    """Every chip gets the tensor of one of them; with `cluster_axis`, of the one at its place along that axis."""
    _require_mesh(input_tensor, "broadcast")
    sender = _chip_at(sender_coord)
    out = input_tensor.with_(memory_config=memory_of(memory_config, input_tensor))
    among = groups(cluster_axis)
    place = next(group.index(sender) for group in among if sender in group)
    return Plan(out, _each_group(among, lambda carriers: [carriers[place]] * len(carriers)), across=True)


@operation("ttnn.mesh_partition")
def mesh_partition(
    input_tensor: Spec, dim: int, cluster_axis: int | None = None, *, memory_config: MemoryConfig | None = None
) -> Plan:
    """Each chip keeps its part of a replicated tensor along `dim`."""
    _require_mesh(input_tensor, "mesh_partition")
    dim = _front(dim, input_tensor)
    among = groups(cluster_axis)
    count = len(among[0])
    size = input_tensor.shape[dim]
    require(size % count == 0, f"dimension {dim} of size {size} does not divide over {count} devices")
    out = _resized(input_tensor, dim, size // count, memory_config)
    exchange = _each_group(
        among, lambda carriers: [carrier.chunk(count, dim)[place] for place, carrier in enumerate(carriers)]
    )
    return Plan(out, exchange, across=True)


@operation("ttnn.point_to_point", ignores=("topology", "intermediate_tensor"))
def point_to_point(
    input_tensor: Spec,
    sender_coord: MeshCoordinate,
    receiver_coord: MeshCoordinate,
    *,
    output_tensor: Spec | None = None,
) -> Plan:
    """One chip sends its tensor to another; the rest of the output is zero."""
    _require_mesh(input_tensor, "point_to_point")
    sender, receiver = _chip_at(sender_coord), _chip_at(receiver_coord)
    require(sender != receiver, "sender and receiver must be different devices")

    def compute(carriers: Carriers) -> Carriers:
        return [
            carriers[sender] if chip == receiver else torch.zeros_like(carrier) for chip, carrier in enumerate(carriers)
        ]

    return Plan(input_tensor, compute, reads=("input_tensor",), into=into(output_tensor), across=True)


def _chip_at(coordinate: MeshCoordinate) -> int:
    device = current_device()
    assert device is not None
    return coordinate.number_in(device.shape)
