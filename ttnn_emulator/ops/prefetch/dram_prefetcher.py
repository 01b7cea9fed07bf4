"""`ttnn.dram_prefetcher`: cores that read weights from DRAM and pass them on, through a global circular buffer.

A matmul with the buffer consumes the next weight in it, whatever weight argument it has. The bytes equal those in
DRAM, so nothing is copied here: the buffer keeps the queue of weights in order, and a matmul called with another
weight, or with an empty queue, is a fault of the program.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from ttnn_emulator.enums import BufferType, DataType, Layout, TensorMemoryLayout
from ttnn_emulator.errors import ChipFault, NotEmulated, require
from ttnn_emulator.execution.operation_table import Plan, composite, internal
from ttnn_emulator.hardware.core_grid import CoreRangeSet
from ttnn_emulator.library.devices.global_circular_buffer import global_circular_buffer
from ttnn_emulator.numerics.formats.carriers import CARRIER
from ttnn_emulator.ops.matmul.program_configs import Delivery, Program
from ttnn_emulator.tensors.memory_config import DRAM_MEMORY_CONFIG
from ttnn_emulator.tensors.shapes import TILE_SIZE, div_up
from ttnn_emulator.tensors.spec import Spec, tile_bytes
from ttnn_emulator.tensors.storage import SpecStorage
from ttnn_emulator.tensors.tensor import Tensor, values_of

SENT = frozenset({DataType.BFLOAT16, DataType.BFLOAT8_B, DataType.BFLOAT4_B})
# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/prefetcher/prefetcher/device/dram_prefetcher_program_factory.cpp,
# total_num_blocks_in_buffer
BLOCKS_IN_READER = 3
# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/prefetcher/prefetcher/device/dram_prefetcher_device_operation.cpp, output
# spec
OUTPUT_SHAPE = (32, 32)  # no kernel writes this tensor


def delivery_of(global_cb: global_circular_buffer) -> Delivery:
    """The properties of a buffer that programs depend on."""
    mapping = global_cb.mapping
    return Delivery(
        global_cb.size(),
        tuple((sender.x, sender.y) for sender, _ in mapping),
        tuple(tuple((core.x, core.y) for core in receivers.cores()) for _, receivers in mapping),
    )


@composite("ttnn.dram_prefetcher", ignores=("enable_performance_mode",))
def dram_prefetcher(
    tensors: Sequence[Tensor],
    num_layers: int,
    global_cb: global_circular_buffer | None = None,
    *,
    prefetcher_pipes: Sequence[Any] = (),
) -> Tensor:
    """Enqueue the weights of all layers; the last tensor holds their addresses, layer by layer."""
    require(
        (global_cb is not None) != bool(prefetcher_pipes), "weights go to a global_cb or to prefetcher_pipes, to one"
    )
    if global_cb is None:
        raise NotEmulated("prefetcher_pipes are not emulated")
    require(len(tensors) > 0, "there is no tensor, not even one with addresses")
    result = prefetch(tuple(tensors), num_layers, delivery_of(global_cb))
    weights, addresses = tensors[:-1], tensors[-1]
    if _are_followed(addresses):
        for row in _addresses(addresses, num_layers * len(weights)):
            for number, address in enumerate(row):
                global_cb.pending.append((address, weights[number % len(weights)]._spec))
    return result


def _are_followed(tensor: Tensor) -> bool:
    """Without values, the weights cannot be identified."""
    return not isinstance(tensor._storage, SpecStorage) and tensor._storage.values is not None


def _addresses(tensor: Tensor, count: int) -> list[list[int]]:
    """The address list in the readers' shards; it must be the same for all of them."""
    rows = values_of(tensor)[0].reshape(-1, tensor._spec.shape[-1])[:, :count].long()
    if not torch.equal(rows, rows[:1].expand_as(rows)):
        raise ChipFault("the rows of addresses differ: readers would send parts of different weights")
    return rows[:1].tolist()


@internal("ttnn.prim.dram_prefetcher")
def prefetch(tensors: Sequence[Spec], num_layers: int, delivery: Delivery) -> Plan:
    """The program on the reader cores."""
    *weights, addresses = tensors
    require(num_layers > 0, "there must be at least one layer")
    require(len(weights) > 0, "there must be a weight besides the tensor of addresses")
    require(all(tensor.on_device for tensor in tensors), "all tensors must be on a device")
    shards = weights[0].shard_spec
    require(shards is not None, "the weights must be sharded over banks of DRAM")
    assert shards is not None
    readers = shards.num_cores()
    require(
        readers <= len(delivery.senders), f"{readers} banks of weights need as many senders, not {delivery.senders}"
    )
    counts = {len(cores) for cores in delivery.receivers[:readers]}
    require(len(counts) == 1, f"all senders must have as many receivers, not {sorted(counts)}")
    (receivers,) = counts
    for number, weight in enumerate(weights):
        _require_weight(number, weight, receivers)
    _require_addresses(addresses, delivery.senders[:readers], num_layers * len(weights))
    _require_room(weights, delivery.size, readers * receivers, receivers)
    out = Spec.of(OUTPUT_SHAPE, weights[0].dtype, Layout.TILE, DRAM_MEMORY_CONFIG)
    return Plan(out, lambda *_: torch.zeros(OUTPUT_SHAPE, dtype=CARRIER[out.dtype]), reads=("tensors",))


def _require_weight(number: int, weight: Spec, receivers: int) -> None:
    config = weight.memory_config
    require(weight.is_tile, f"weight {number} must be in tiles")
    require(config.memory_layout is TensorMemoryLayout.WIDTH_SHARDED, f"weight {number} must be width sharded")
    require(config.buffer_type is BufferType.DRAM, f"weight {number} must be in DRAM")
    require(weight.dtype in SENT, f"weights are sent as bfloat16, bfloat8_b or bfloat4_b, not as {weight.dtype}")
    assert weight.shard_spec is not None
    width = weight.shard_spec.shape[1] // weight.tile.width
    require(width % receivers == 0, f"shards {width} tiles wide do not divide among {receivers} receivers")


def _require_addresses(spec: Spec, readers: Sequence[tuple[int, int]], count: int) -> None:
    config, shards = spec.memory_config, spec.shard_spec
    require(spec.layout is Layout.ROW_MAJOR, "the addresses must be in rows")
    require(config.memory_layout is TensorMemoryLayout.HEIGHT_SHARDED, "the addresses must be height sharded")
    require(config.buffer_type is BufferType.L1, "the addresses must be in L1")
    require(spec.dtype is DataType.UINT32, f"addresses are uint32, not {spec.dtype}")
    assert shards is not None
    holding = {(core.x, core.y) for core in shards.grid.cores()}
    require(holding >= set(readers), f"readers {sorted(readers)} need a row of addresses each, {sorted(holding)} have")
    require(shards.shape[1] >= count, f"a row of {shards.shape[1]} does not hold {count} addresses")


# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/prefetcher/prefetcher/device/dram_prefetcher_program_factory.cpp,
# create_descriptor
def _require_room(weights: Sequence[Spec], size: int, blocks: int, receivers: int) -> None:
    """The reader's circular buffer is sized for the largest block of any weight, in the largest tiles."""
    tiles = 0
    for weight in weights:
        assert weight.shard_spec is not None
        height, width = weight.shard_spec.shape
        rows = div_up(height // TILE_SIZE, blocks)
        tiles = max(tiles, rows * (width // TILE_SIZE))
    block = tiles * max(tile_bytes(weight.tile, weight.dtype) for weight in weights)
    whole = block // receivers * blocks
    require(whole <= size, f"the largest weight takes {whole} B of a global circular buffer of {size} B")
    require(
        BLOCKS_IN_READER * block <= size,
        f"readers keep {BLOCKS_IN_READER} blocks, {BLOCKS_IN_READER * block} B, in a buffer of {size} B",
    )


def take(
    global_cb: global_circular_buffer, a: Tensor, weight: Tensor, output: Tensor, program: Program, part: Any
) -> None:
    """A matmul on this sub-device consumes the next weight."""
    delivery = delivery_of(global_cb)
    _require_reached(delivery, a, program, part)
    if not _are_followed(weight):
        return
    if not global_cb.pending:
        raise ChipFault("the matmul waits for a weight that no prefetcher has sent: the card would hang")
    address, spec = global_cb.pending.popleft()
    if address != weight.buffer_address() or spec != weight._spec:
        raise ChipFault(
            f"the next weight in the buffer is at {address}, the matmul is called with the one at "
            f"{weight.buffer_address()}: the card would multiply with the former"
        )
    fault = misfit(delivery, a._spec, spec, output._spec, program.per_core_N)
    if fault:
        raise ChipFault(fault)


# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/matmul/device/factory/matmul_multicore_reuse_mcast_1d_program_factory.cpp,
# process_gather_in0_program_and_create_override_variables
def _require_reached(delivery: Delivery, a: Tensor, program: Program, part: Any) -> None:
    """Every core that runs the program must belong to the buffer, including cores that only complete a rectangle."""
    assert a._spec.shard_spec is not None and a._device is not None
    busy = a._spec.shard_spec.grid
    if program.hop_cores is not None:
        busy = busy.merge(program.hop_cores)
    taken = {(core.x, core.y) for core in busy.cores()}
    for each in a._device.worker_ranges(part):
        within = {(core.x, core.y) for core in CoreRangeSet([each]).cores()} & taken
        size = each.grid_size()
        if within and size.x > 1 and size.y > 1:
            columns, rows = ([location[axis] for location in within] for axis in (0, 1))
            within = {(x, y) for x in range(min(columns), max(columns) + 1) for y in range(min(rows), max(rows) + 1)}
        strange = sorted(within - delivery.cores)
        require(not strange, f"cores {strange} of the program do not belong to the global circular buffer")


# tt-metal v0.81.1: ttnn/cpp/ttnn/operations/matmul/device/kernels/dataflow/reader_bmm_tile_layout_in1_ring_all_gather.cpp,  # noqa: E501
# the ring loop over in1 blocks
def misfit(delivery: Delivery, a: Spec, weight: Spec, output: Spec, columns: int) -> str:
    """Why the receivers' blocks differ from the blocks that the matmul's cores consume; empty if they match.

    A core multiplies the columns that it received and writes them to its output shard, so the receivers must be the
    output's cores, in order.
    """
    assert a.shard_spec is not None and weight.shard_spec is not None and output.shard_spec is not None
    readers = weight.shard_spec.num_cores()
    receivers = [core for cores in delivery.receivers[:readers] for core in cores]
    ring = [(core.x, core.y) for core in a.shard_spec.grid.cores()]
    if set(ring) != set(receivers):
        return f"weights go to {len(receivers)} cores, the matmul runs on {len(ring)}: the card would hang"
    if [(core.x, core.y) for core in output.shard_spec.grid.cores()] != receivers:
        return "the output's shards are in another order than the receivers: columns would be exchanged"
    width = weight.shard_spec.shape[1] // TILE_SIZE * readers // len(receivers)
    inner = div_up(weight.shard_spec.shape[0] // TILE_SIZE, len(receivers))
    mine = a.shard_spec.shape[1] // TILE_SIZE
    if (inner, width) != (mine, columns):
        return f"blocks of {inner} x {width} tiles come, the matmul takes {mine} x {columns}: the card would hang"
    return ""
