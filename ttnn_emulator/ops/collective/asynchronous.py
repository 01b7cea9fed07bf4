"""The asynchronous collectives of `ttnn.experimental`: callers pass persistent semaphores and buffers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from ttnn_emulator.enums import BufferType, DataType, TensorMemoryLayout
from ttnn_emulator.errors import require
from ttnn_emulator.execution.call_context import current_board
from ttnn_emulator.execution.operation_table import Plan, composite, internal
from ttnn_emulator.hardware.device import MeshDevice
from ttnn_emulator.numerics.units.packer import pack
from ttnn_emulator.ops.collective.composite import (
    front,
    gathered_by_broadcast,
    gathers_by_broadcast,
    scattered_in_parts,
    scatters_in_parts,
    summed,
)
from ttnn_emulator.ops.collective.exchange import (
    LINKS,
    WORKERS,
    Carriers,
    adder,
    count_along,
    each_group,
    groups,
    require_several,
)
from ttnn_emulator.ops.collective.single_program import require_same_kind, resized, scatter_sum
from ttnn_emulator.ops.support.common_checks import into, require_on_device
from ttnn_emulator.tensors.memory_config import MemoryConfig
from ttnn_emulator.tensors.shapes import TILE_SIZE, div_up
from ttnn_emulator.tensors.spec import Spec
from ttnn_emulator.tensors.tensor import Tensor

GATHER_SEMAPHORES = 2
ASYNC = (*LINKS, *WORKERS, "num_links", "barrier_semaphore", "mesh_device", "use_optimal_ccl_for_llama")


@composite("ttnn.experimental.all_gather_async", ignores=ASYNC)
def all_gather_async(
    input_tensor: Tensor,
    dim: int,
    multi_device_global_semaphore: Any,
    persistent_output_buffer: Tensor | None = None,
    persistent_output_tensor: Tensor | None = None,
    *,
    cluster_axis: int | None = None,
    memory_config: MemoryConfig | None = None,
    use_broadcast: bool = False,
    sub_core_grids: Any = None,
) -> Tensor:
    """Every chip gets the tensors of all chips, joined along `dim`, in the caller's buffer if one is passed."""
    return _gathered(
        input_tensor,
        dim,
        multi_device_global_semaphore,
        persistent_output_buffer if persistent_output_buffer is not None else persistent_output_tensor,
        cluster_axis,
        memory_config,
        sub_core_grids,
        use_broadcast=use_broadcast,
    )


def _gathered(
    tensor: Tensor,
    dim: int,
    semaphores: Any,
    persistent: Tensor | None,
    cluster_axis: int | None,
    memory_config: MemoryConfig | None,
    sub_core_grids: Any,
    *,
    use_broadcast: bool = False,
    backwards: bool = False,
) -> Tensor:
    spec = tensor._spec
    count_along(tensor._device, cluster_axis)
    positive_dim = dim + spec.rank if dim < 0 else dim
    if not use_broadcast and gathers_by_broadcast(spec, positive_dim):
        require(sub_core_grids is None, "a gather by broadcasts does not take sub_core_grids")
        return gathered_by_broadcast(tensor, front(dim, spec), cluster_axis, memory_config)
    given = len(semaphores) if isinstance(semaphores, tuple) else 1
    require(use_broadcast or given == GATHER_SEMAPHORES, f"{GATHER_SEMAPHORES} semaphores are needed, {given} given")
    return gather_async(tensor, front(dim, spec), cluster_axis, memory_config, persistent, use_broadcast, backwards)


@composite("ttnn.experimental.all_gather_async_reversed", ignores=(*ASYNC, "use_broadcast"))
def all_gather_async_reversed(
    input_tensor: Tensor,
    dim: int,
    multi_device_global_semaphore: Any,
    persistent_output_buffer: Tensor | None = None,
    persistent_output_tensor: Tensor | None = None,
    *,
    cluster_axis: int | None = None,
    memory_config: MemoryConfig | None = None,
    sub_core_grids: Any = None,
) -> Tensor:
    """As all_gather_async, with the last chip's tensor first; composite implementations use the usual order."""
    return _gathered(
        input_tensor,
        dim,
        multi_device_global_semaphore,
        persistent_output_buffer if persistent_output_buffer is not None else persistent_output_tensor,
        cluster_axis,
        memory_config,
        sub_core_grids,
        backwards=True,
    )


@internal("ttnn.prim.all_gather_async")
def gather_async(
    input_tensor: Spec,
    dim: int,
    cluster_axis: int | None = None,
    memory_config: MemoryConfig | None = None,
    persistent: Spec | None = None,
    use_broadcast: bool = False,
    backwards: bool = False,
) -> Plan:
    require_on_device(input_tensor)
    _require_aligned(input_tensor)
    among = groups(cluster_axis)
    count = require_several(among, "all_gather_async")
    out = resized(input_tensor, dim, input_tensor.shape[dim] * count, memory_config)
    block = TensorMemoryLayout.BLOCK_SHARDED
    if use_broadcast:
        require(input_tensor.rank == 4, f"a gather by broadcast takes tensors of rank 4, not {input_tensor.rank}")
        require(
            all(size == 1 for size in _pages(input_tensor)[:dim]),
            f"a gather by broadcast along dimension {dim} needs dimensions of one page before it",
        )
    else:
        require(input_tensor.rank >= 2, "all_gather_async needs a tensor of rank 2 or more")
        config = input_tensor.memory_config
        require(config.memory_layout is not block or config.is_l1, "block shards must be in L1")
    if persistent is not None:
        _require_holds(persistent, input_tensor, out, dim, count)
        layouts = persistent.memory_config.memory_layout, input_tensor.memory_config.memory_layout
        require(not use_broadcast or layouts[0] is layouts[1], f"a gather by broadcast keeps {layouts[1].name}")
        require(layouts[0] is not block or persistent.memory_config.is_l1, "block shards must be in L1")
    if backwards:
        width = (persistent or out).padded_shape[3] if input_tensor.rank > 3 else 0
        require(
            width and width % (TILE_SIZE * count) == 0,
            f"a reversed gather over {count} devices takes rank 4 or more and a width of {count} tiles or a multiple",
        )
    size = out.shape[dim] if persistent is None else persistent.shape[dim]
    step = -1 if backwards else 1
    exchange = each_group(among, lambda carriers: [torch.cat(carriers[::step], dim).narrow(dim, 0, size)] * count)
    return Plan(out, exchange, reads=("input_tensor",), into=into(persistent, "persistent"), across=True)


def _require_aligned(spec: Spec) -> None:
    board = current_board()
    alignment = board.dram_alignment if spec.memory_config.buffer_type is BufferType.DRAM else board.l1_alignment
    require(spec.page_bytes % alignment == 0, f"pages of {spec.page_bytes} B are not aligned to {alignment} B")


def _pages(spec: Spec) -> list[int]:
    """The number of pages along each dimension."""
    sizes = list(spec.padded_shape)
    if spec.is_tile:
        sizes[-2:] = [div_up(size, TILE_SIZE) for size in sizes[-2:]]
    return sizes


def _require_holds(persistent: Spec, source: Spec, out: Spec, dim: int, count: int) -> None:
    require_same_kind(persistent, source)
    require(
        persistent.memory_config == out.memory_config,
        f"the buffer is in {persistent.memory_config.brief()}, the result in {out.memory_config.brief()}",
    )
    have, need = persistent.padded_shape, source.padded_shape
    require(len(have) == len(need), f"the buffer has rank {len(have)}, the input {len(need)}")
    for index, (there, here) in enumerate(zip(have, need)):
        fits = there <= here * count if index == dim else there == here
        require(fits, f"dimension {index} of the buffer is {there}, of the input {here}")


@composite("ttnn.experimental.reduce_scatter_minimal_async", ignores=(*ASYNC, "multi_device_global_semaphore"))
def reduce_scatter_minimal_async(
    input_tensor: Tensor,
    persistent_output_buffers: Sequence[Tensor] | None,
    dim: int,
    *,
    cluster_axis: int | None = None,
    memory_config: MemoryConfig | None = None,
    intermediate_memory_config: MemoryConfig | None = None,
    compute_kernel_config: Any = None,
) -> Tensor:
    """Add the tensors of all chips; each chip gets its part along `dim`, in the caller's buffers if passed."""
    spec = input_tensor._spec
    count = count_along(input_tensor._device, cluster_axis)
    require(count > 1, f"reduce_scatter_minimal_async needs more than one device, there is {count}")
    dim = front(dim, spec)
    fp32_acc = bool(compute_kernel_config is not None and compute_kernel_config.fp32_dest_acc_en)
    if scatters_in_parts(spec, dim, count):
        return scattered_in_parts(input_tensor, dim, count, cluster_axis, memory_config, fp32_acc)
    target = memory_config if memory_config is not None else spec.memory_config
    buffers = list(persistent_output_buffers or ())
    if buffers:
        _require_intermediate(buffers[0]._spec, spec, intermediate_memory_config)
    output = buffers[1] if len(buffers) > 1 else None
    return scatter_sum(input_tensor, dim, cluster_axis, target, intermediate_memory_config, output, fp32_acc)


def _require_intermediate(given: Spec, source: Spec, memory_config: MemoryConfig | None) -> None:
    require_same_kind(given, source)
    if memory_config is not None:
        require(
            given.memory_config == memory_config,
            f"the intermediate buffer is in {given.memory_config.brief()}, not in {memory_config.brief()}",
        )


@composite(
    "ttnn.experimental.all_reduce_async",
    ignores=(*LINKS, "num_links", "num_devices", "math_op", "use_noc1_only", "use_optimal_ccl_for_llama"),
)
def all_reduce_async(
    input_tensor: Tensor,
    buffer_tensor: Tensor | None = None,
    cluster_axis: int | None = None,
    mesh_device: MeshDevice | None = None,
    multi_device_global_semaphore: Any = None,
    barrier_semaphores: Any = None,
    rs_global_semaphores: Any = None,
    ag_global_semaphores: Any = None,
    *,
    dtype: DataType | None = None,
    memory_config: MemoryConfig | None = None,
    fp32_dest_acc: bool = False,
) -> Tensor:
    """Every chip gets the sum of the tensors of all chips; with a buffer, in one program over width shards."""
    if buffer_tensor is not None:
        target = memory_config if memory_config is not None else input_tensor._spec.memory_config
        return sum_in_buffer(input_tensor, buffer_tensor, cluster_axis, target, dtype, fp32_dest_acc)
    apart = barrier_semaphores is not None and ag_global_semaphores is not None
    if apart and mesh_device is not None:
        require(len(barrier_semaphores) == 2, f"two barrier semaphores are needed, {len(barrier_semaphores)} given")
        require(cluster_axis is not None, "a sum with semaphores of the caller's needs a cluster_axis")
    if not apart:
        return summed(input_tensor, cluster_axis, memory_config)

    def scatter(tensor: Tensor, dim: int, config: MemoryConfig | None) -> Tensor:
        return reduce_scatter_minimal_async(
            tensor, None, dim, rs_global_semaphores, memory_config=config, cluster_axis=cluster_axis
        )

    def gather(tensor: Tensor, dim: int, config: MemoryConfig | None) -> Tensor:
        require(len(ag_global_semaphores) == GATHER_SEMAPHORES, f"{GATHER_SEMAPHORES} semaphores are needed")
        return gather_async(tensor, dim, cluster_axis, config)

    return summed(input_tensor, cluster_axis, memory_config, steps=(scatter, gather))


@internal("ttnn.prim.all_reduce_async")
def sum_in_buffer(
    input_tensor: Spec,
    buffer_tensor: Spec,
    cluster_axis: int | None,
    memory_config: MemoryConfig,
    dtype: DataType | None = None,
    fp32_dest_acc: bool = False,
) -> Plan:
    """All chips send their shards to all others, into one buffer; every core adds the shards in its part of it."""
    require_on_device(input_tensor)
    require_on_device(buffer_tensor, "the buffer tensor")
    _require_aligned(input_tensor)
    among = groups(cluster_axis)
    count = len(among[0])
    require(count % 2 == 0, f"the sum adds pairs: {count} devices are not even")
    for name, config in (
        ("input", input_tensor.memory_config),
        ("buffer", buffer_tensor.memory_config),
        ("output", memory_config),
    ):
        require(config.memory_layout is TensorMemoryLayout.WIDTH_SHARDED, f"the {name} must be sharded by width")
    room, shard = buffer_tensor.shard_spec, memory_config.shard_spec
    require(room is not None and shard is not None, "buffer and output need shard specs")
    assert room is not None and shard is not None
    require(room.grid.contains(shard.grid), "the output must be on cores of the buffer")
    need, have = shard.shape[0] * shard.shape[1] * count, room.shape[0] * room.shape[1]
    require(need <= have, f"a shard of the buffer holds {have} elements, {need} are needed")
    out = input_tensor.with_(dtype=dtype or input_tensor.dtype, memory_config=memory_config)
    wide = fp32_dest_acc or out.dtype is DataType.FLOAT32
    add = adder(input_tensor.dtype, fp32_acc=wide)

    def exchange(carriers: Carriers) -> Carriers:
        total = carriers[0]
        for carrier in carriers[1:]:
            total = add(total, carrier)
        return [pack(total, out.dtype, from_fp32=wide)] * count

    return Plan(out, each_group(among, exchange), reads=("input_tensor",), across=True)
