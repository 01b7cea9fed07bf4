"""Collectives that are one program on every chip: gathering, scattering sums, broadcasting, sending, partitioning."""

from __future__ import annotations

from typing import Any

import torch

from ttnn_emulator.enums import BLOCK_FLOAT_DTYPES, BufferType, Layout, TensorMemoryLayout
from ttnn_emulator.errors import require
from ttnn_emulator.execution.call_context import current_board, current_device
from ttnn_emulator.execution.operation_table import NO_PROGRAM, Plan, composite, internal, operation
from ttnn_emulator.hardware import fabric
from ttnn_emulator.hardware.mesh_coordinates import MeshCoordinate
from ttnn_emulator.ops.collective.exchange import (
    LINKS,
    Carriers,
    adder,
    chip_at,
    count_along,
    each_group,
    fault,
    groups,
    is_line,
    lies_in_mesh,
    require_links,
    require_several,
    sum_along_line,
)
from ttnn_emulator.ops.support.common_checks import into, memory_of, require_on_device
from ttnn_emulator.tensors.memory_config import MemoryConfig
from ttnn_emulator.tensors.shapes import TILE_SIZE
from ttnn_emulator.tensors.spec import Spec
from ttnn_emulator.tensors.tensor import Tensor


def resized(spec: Spec, dim: int, size: int, memory_config: MemoryConfig | None) -> Spec:
    shape = list(spec.shape)
    shape[dim] = size
    return spec.with_(shape=tuple(shape), memory_config=memory_of(memory_config, spec))


def _page_alignment(spec: Spec) -> int:
    board = current_board()
    return board.dram_alignment if spec.memory_config.buffer_type is BufferType.DRAM else board.l1_alignment


def require_same_kind(output: Spec, like: Spec) -> None:
    require(output.on_device, "the output tensor must be on a device")
    require(
        output.layout is like.layout and output.dtype is like.dtype and output.tile == like.tile,
        f"the output tensor must have the input's layout, dtype and tile: {output.brief()} against {like.brief()}",
    )


# -- gathering --------------------------------------------------------------------------------------------------------


@internal("ttnn.prim.all_gather")
def gather(
    input_tensor: Spec,
    dim: int,
    cluster_axis: int | None = None,
    memory_config: MemoryConfig | None = None,
    output_tensor: Spec | None = None,
) -> Plan:
    """Every chip gets the tensors of all chips of its group, joined along `dim`."""
    require_on_device(input_tensor)
    among = groups(cluster_axis)
    count = require_several(among, "all_gather")
    device = current_device()
    assert device is not None
    require(
        cluster_axis is not None or fabric.is_two_dimensional() or is_line(device),
        f"a mesh of {list(device.shape)} on a fabric of one dimension needs a cluster_axis",
    )
    out = resized(input_tensor, dim, input_tensor.shape[dim] * count, memory_config)
    if output_tensor is not None:
        require_same_kind(output_tensor, input_tensor)
        expected = list(input_tensor.padded_shape)
        expected[dim - input_tensor.rank] *= count
        require(
            list(output_tensor.padded_shape) == expected,
            f"the output tensor has padded shape {list(output_tensor.padded_shape)}, {expected} is needed",
        )
    exchange = each_group(among, lambda carriers: [torch.cat(carriers, dim)] * len(carriers))
    return Plan(out, exchange, reads=("input_tensor",), into=into(output_tensor), across=True)


# -- scattering sums --------------------------------------------------------------------------------------------------


@internal("ttnn.prim.reduce_scatter")
def scatter_sum(
    input_tensor: Spec,
    dim: int,
    cluster_axis: int | None = None,
    memory_config: MemoryConfig | None = None,
    intermediate_memory_config: MemoryConfig | None = None,
    output_tensor: Spec | None = None,
    fp32_acc: bool = False,
    num_links: int | None = None,
) -> Plan:
    """Add the tensors of a group; each chip gets its part along `dim`, in whole tiles."""
    require_on_device(input_tensor)
    among = groups(cluster_axis)
    count = require_several(among, "reduce_scatter")
    require_links(num_links, current_device())
    require(
        input_tensor.page_bytes % _page_alignment(input_tensor) == 0,
        f"pages of {input_tensor.page_bytes} B are not aligned to {_page_alignment(input_tensor)} B",
    )
    _require_divides(input_tensor, dim, count)
    for config in (input_tensor.memory_config, *([output_tensor.memory_config] if output_tensor else [])):
        block = config.memory_layout is TensorMemoryLayout.BLOCK_SHARDED
        require(not block or config.buffer_type is BufferType.L1, "block shards must be in L1")
    _require_intermediate_fits(input_tensor, intermediate_memory_config)
    size = input_tensor.shape[dim]
    out = resized(input_tensor, dim, size // count, memory_config)
    if output_tensor is not None:
        require(output_tensor == out, f"the output tensor is {output_tensor.brief()}, {out.brief()} is needed")
    compute: Any
    if size % count:
        compute = fault(
            f"dimension {dim} of size {size} is split by tiles and then labelled {size // count}: values are lost"
        )
    else:
        add = adder(input_tensor.dtype, fp32_acc=fp32_acc)
        compute = each_group(among, lambda carriers: _scattered(carriers, dim, add))
    return Plan(out, compute, reads=("input_tensor",), into=into(output_tensor), across=True)


def _scattered(carriers: Carriers, dim: int, add: Any) -> Carriers:
    count = len(carriers)
    pieces = [carrier.chunk(count, dim) for carrier in carriers]
    return [sum_along_line([piece[index] for piece in pieces], index, add) for index in range(count)]


def _require_divides(spec: Spec, dim: int, count: int) -> None:
    require(spec.rank > 1, "reduce_scatter needs a tensor of rank 2 or more")
    size = spec.padded_shape[dim]
    if in_four_dimensions(dim, spec.rank) in (2, 3):
        tiles = size // TILE_SIZE
        require(tiles % count == 0, f"the {tiles} tiles of dimension {dim} do not divide over {count} devices")
    else:
        require(size % count == 0, f"dimension {dim} of size {size} does not divide over {count} devices")


def _require_intermediate_fits(spec: Spec, config: MemoryConfig | None) -> None:
    """The buffer for partial sums of both directions, twice the input's size."""
    if config is not None:
        spec.with_(shape=(spec.shape[0] * 2, *spec.shape[1:]), memory_config=config)


def in_four_dimensions(dim: int, rank: int) -> int:
    """The index of a dimension after the library has extended the tensor to rank 4."""
    if rank == 2:
        return 2 + dim
    excess = rank - 4
    return dim if dim < abs(excess) else dim - excess


# -- broadcasting -----------------------------------------------------------------------------------------------------


@internal("ttnn.prim.all_broadcast")
def broadcast_all(
    input_tensor: Spec,
    cluster_axis: int | None = None,
    memory_config: MemoryConfig | None = None,
    num_links: int | None = None,
) -> Plan:
    """Every chip gets the tensor of each chip of its group, as a list."""
    require_on_device(input_tensor)
    among = groups(cluster_axis)
    count = require_several(among, "all_broadcast")
    require_links(num_links, current_device())
    out = input_tensor.with_(memory_config=memory_of(memory_config, input_tensor))
    member = {chip: group for group in among for chip in group}
    return Plan(
        [out] * count,
        lambda carriers: [[carriers[member[chip][number]] for chip in sorted(member)] for number in range(count)],
        across=True,
    )


@composite("ttnn.all_broadcast", ignores=LINKS)
def all_broadcast(
    input_tensor: Tensor,
    *,
    cluster_axis: int | None = None,
    memory_config: MemoryConfig | None = None,
    num_links: int | None = 1,
) -> list[Tensor]:
    """Every chip gets the tensor of each chip, as a list; over two axes of a mesh, first along one, then the other."""
    device = input_tensor._device
    count_along(device, cluster_axis)
    assert device is not None
    if cluster_axis is not None or is_line(device):
        return broadcast_all(input_tensor, cluster_axis, memory_config, num_links)
    tensors = [input_tensor]
    for axis in range(len(device.shape)):
        tensors = [
            each
            for tensor in tensors
            for each in all_broadcast(tensor, cluster_axis=axis, memory_config=memory_config, num_links=num_links)
        ]
    return tensors


@operation("ttnn.broadcast", ignores=LINKS)
def broadcast(
    input_tensor: Spec,
    sender_coord: MeshCoordinate,
    *,
    num_links: int | None = None,
    memory_config: MemoryConfig | None = None,
    cluster_axis: int | None = None,
) -> Plan:
    """Every chip gets the tensor of one of them; with `cluster_axis`, of the one at its place along that axis."""
    require_on_device(input_tensor)
    among = groups(cluster_axis)
    require_several(among, "broadcast")
    device = current_device()
    require_links(num_links, device)
    assert device is not None
    require(cluster_axis is not None or is_line(device), "broadcast over a mesh of two axes needs a cluster_axis")
    out = input_tensor.with_(memory_config=memory_of(memory_config, input_tensor))
    compute: Any
    if lies_in_mesh(sender_coord):
        sender = chip_at(sender_coord)
        index = next(group.index(sender) for group in among if sender in group)
        compute = each_group(among, lambda carriers: [carriers[index]] * len(carriers))
    else:
        compute = fault(f"the sender {sender_coord!r} is not in the mesh: no chip sends, and all chips wait forever")
    return Plan(out, compute, across=True)


# -- sending and partitioning -----------------------------------------------------------------------------------------


@composite("ttnn.point_to_point", ignores=("topology", "intermediate_tensor"))
def point_to_point(
    input_tensor: Tensor,
    sender_coord: MeshCoordinate,
    receiver_coord: MeshCoordinate,
    *,
    output_tensor: Tensor | None = None,
) -> Tensor:
    """One chip sends its tensor to another; a tensor sent in place to the same chip is only checked."""
    to_itself = sender_coord == receiver_coord and output_tensor is not None
    stays = to_itself and output_tensor._storage is input_tensor._storage  # type: ignore[union-attr]
    return send(input_tensor, sender_coord, receiver_coord, output_tensor, stays)


@internal("ttnn.prim.point_to_point")
def send(
    input_tensor: Spec,
    sender_coord: MeshCoordinate,
    receiver_coord: MeshCoordinate,
    output_tensor: Spec | None = None,
    stays: bool = False,
) -> Plan:
    """The output of chips that receive nothing is unspecified; here it is zero."""
    require_on_device(input_tensor)
    require(not input_tensor.is_sharded, "point_to_point does not support sharded tensors")
    sender, receiver = chip_at(sender_coord), chip_at(receiver_coord)
    alignment = current_board().l1_alignment
    require(
        input_tensor.page_bytes % alignment == 0, f"pages of {input_tensor.page_bytes} B are not aligned to {alignment}"
    )
    if sender != receiver:
        require(
            input_tensor.dtype not in BLOCK_FLOAT_DTYPES,
            f"{input_tensor.dtype.name} cannot be cut into packets of whole elements",
        )
        require(
            any(a == b for a, b in zip(sender_coord, receiver_coord)),
            f"{sender_coord!r} and {receiver_coord!r} share neither row nor column",
        )
    if output_tensor is None:
        return Plan(
            input_tensor,
            lambda carriers: [
                carriers[sender] if chip == receiver else torch.zeros_like(each) for chip, each in enumerate(carriers)
            ],
            reads=("input_tensor",),
            across=True,
        )
    require(
        output_tensor == input_tensor,
        f"the output tensor must be like the input: {output_tensor.brief()} against {input_tensor.brief()}",
    )
    return Plan(
        input_tensor,
        lambda carriers, kept: [carriers[sender] if chip == receiver else each for chip, each in enumerate(kept)],
        reads=("input_tensor", "output_tensor"),
        into=("output_tensor",),
        across=True,
        program=NO_PROGRAM if stays else None,
    )


@internal("ttnn.prim.mesh_partition")
def partition(
    input_tensor: Spec, dim: int, cluster_axis: int | None = None, memory_config: MemoryConfig | None = None
) -> Plan:
    """Each chip keeps its part of a replicated tensor along `dim`."""
    require_on_device(input_tensor)
    require(0 <= dim < input_tensor.rank, f"dimension {dim} does not exist in a tensor of rank {input_tensor.rank}")
    among = groups(cluster_axis)
    count, size = len(among[0]), input_tensor.shape[dim]
    require(size % count == 0, f"dimension {dim} of size {size} does not divide over {count} devices")
    out = resized(input_tensor, dim, size // count, memory_config)
    padded = input_tensor.padded_shape
    if input_tensor.layout is Layout.TILE:
        part = padded[dim] // count
        cut = dim - len(padded)
        require(
            cut < -2 or part % TILE_SIZE == 0, f"parts of {part} along dimension {dim} do not begin at edges of tiles"
        )
    compute: Any
    if padded[dim - input_tensor.rank] != size:
        compute = fault(f"dimension {dim} of size {size} is cut together with its padding: parts lose values")
    else:
        compute = each_group(
            among, lambda carriers: [each.chunk(count, dim)[index] for index, each in enumerate(carriers)]
        )
    return Plan(out, compute, across=True)


@composite("ttnn.mesh_partition")
def mesh_partition(
    input_tensor: Tensor, dim: int, cluster_axis: int | None = None, *, memory_config: MemoryConfig | None = None
) -> Tensor:
    """Each chip keeps its part of a replicated tensor along `dim`; a no-op along an axis of one chip."""
    device = input_tensor._device
    require(device is not None, "the input tensor must be on a device")
    assert device is not None
    rows, columns = tuple(device.shape)
    count = device.num_devices if cluster_axis is None else rows if cluster_axis == 0 else columns
    if count == 1:
        return input_tensor
    require(cluster_axis in (None, 0, 1), f"cluster_axis {cluster_axis} is neither None nor 0 nor 1")
    rank = input_tensor._spec.rank
    return partition(input_tensor, dim + rank if dim < 0 else dim, cluster_axis, memory_config)
