"""Weights of experts in the order that `ttnn.experimental.moe_compute` reads them in, packed on the device."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ttnn_emulator.enums import BufferType, DataType, Layout, TensorMemoryLayout
from ttnn_emulator.errors import require
from ttnn_emulator.execution.operation_table import composite, ttnn
from ttnn_emulator.hardware.core_grid import CoreCoord, CoreRange, CoreRangeSet
from ttnn_emulator.hardware.device import MeshDevice
from ttnn_emulator.ops.experts import weight_layout as layout
from ttnn_emulator.ops.prefill.mesh_positions import require_unsigned
from ttnn_emulator.ops.support.common_checks import require_on_device
from ttnn_emulator.tensors.memory_config import MemoryConfig, ShardSpec
from ttnn_emulator.tensors.shapes import TILE_SIZE
from ttnn_emulator.tensors.tensor import Tensor

EXPERIMENTAL = "ttnn.experimental"
STORED_WIDTH = layout.W0_W1_BLOCK_TILES_W * TILE_SIZE


@dataclass(frozen=True)
class WeightCoreShardMaps:
    """How many tiles of the weights every core of the ring has, and its banks of DRAM in the ring's order."""

    w0_w1_shard_map: list[int]
    w2_shard_map: list[tuple[int, int]]
    dram_core_range_set: CoreRangeSet


@dataclass(frozen=True)
class WeightMemoryConfigs:
    """The memory config of the packed weights."""

    w0_w1: MemoryConfig
    w2: MemoryConfig


@composite(f"{EXPERIMENTAL}.get_weight_core_shard_maps")
def get_weight_core_shard_maps(
    mesh_device: MeshDevice, hidden_size: int, intermediate_size: int
) -> WeightCoreShardMaps:
    """The tiles of every core; the ring goes from the last row of cores to the first, and from right to left."""
    require_unsigned(hidden_size=hidden_size, intermediate_size=intermediate_size)
    near = mesh_device.get_optimal_dram_bank_to_logical_worker_assignment(0)
    banks = sorted(range(len(near)), key=lambda bank: (near[bank].y, near[bank].x), reverse=True)
    hidden, intermediate = hidden_size // TILE_SIZE, intermediate_size // TILE_SIZE
    return WeightCoreShardMaps(
        layout.shares(intermediate, len(near)),
        layout.down_groups(hidden, intermediate, len(near)),
        CoreRangeSet([CoreRange(CoreCoord(bank, 0), CoreCoord(bank, 0)) for bank in banks]),
    )


@composite(f"{EXPERIMENTAL}.get_weight_mem_configs")
def get_weight_mem_configs(
    mesh_device: MeshDevice,
    *,
    num_layers: int,
    experts_per_device: int,
    hidden_size: int,
    intermediate_size: int,
    has_bias: bool = False,
) -> WeightMemoryConfigs:
    """Height shards in DRAM, one per bank."""
    require_unsigned(num_layers=num_layers, experts_per_device=experts_per_device)
    require_unsigned(hidden_size=hidden_size, intermediate_size=intermediate_size)
    _require_tiles("hidden_size", hidden_size)
    _require_tiles("intermediate_size", intermediate_size)
    maps = get_weight_core_shard_maps.function(mesh_device, hidden_size, intermediate_size)
    cores = len(maps.w0_w1_shard_map)
    hidden, intermediate = hidden_size // TILE_SIZE, intermediate_size // TILE_SIZE
    blocks = layout.Blocks(layout.tiles_per_transaction(hidden, intermediate, has_bias, cores))
    gate = layout.GateLayout(hidden + has_bias, intermediate, cores, cores, blocks)
    experts = num_layers * experts_per_device
    heights = (gate.bank_rows, blocks.down_rows(hidden, intermediate + has_bias, cores))
    return WeightMemoryConfigs(*(banked(maps.dram_core_range_set, experts * height) for height in heights))


def banked(banks: CoreRangeSet, height: int) -> MemoryConfig:
    """Shards of packed weights, one per DRAM bank."""
    shards = ShardSpec(banks, (height, STORED_WIDTH))
    return MemoryConfig(TensorMemoryLayout.HEIGHT_SHARDED, BufferType.DRAM, shards)


@composite(f"{EXPERIMENTAL}.prepare_w0_w1_tensor_for_moe_compute")
def prepare_w0_w1_tensor_for_moe_compute(tt_w0: Tensor, tt_w1: Tensor, *, L: int, E: int, K: int, N: int) -> Tensor:
    """Columns of W0 and W1 side by side, core after core."""
    _require_matrix(L, E, K, N)
    cores = _ring(tt_w0)
    return _packed_gate(tt_w0, tt_w1, (L, E, K, N), K // TILE_SIZE, has_bias=False, cores=cores)


@composite(f"{EXPERIMENTAL}.prepare_w0_w1_tensor_with_bias")
def prepare_w0_w1_tensor_with_bias(
    tt_w0: Tensor, tt_w1: Tensor, tt_b0: Tensor, tt_b1: Tensor, *, L: int, E: int, K: int, N: int
) -> Tensor:
    """The same with another row of tiles, whose first line is the bias."""
    _require_matrix(L, E, K, N)
    first, second = _bias_tiles((tt_b0, tt_b1), (L, E, N))
    first, second = ttnn.concat([tt_w0, first], dim=2), ttnn.concat([tt_w1, second], dim=2)
    cores = _ring(first)
    return _packed_gate(first, second, (L, E, K + TILE_SIZE, N), K // TILE_SIZE, has_bias=True, cores=cores)


@composite(f"{EXPERIMENTAL}.prepare_w2_tensor_for_moe_compute")
def prepare_w2_tensor_for_moe_compute(tt_w2: Tensor, *, L: int, E: int, N: int, K: int) -> Tensor:
    """Columns of W2 core after core, its rows in the order in which the ring delivers them."""
    _require_matrix(L, E, K, N)
    cores = _ring(tt_w2)
    turned = _turned(_grouped(tt_w2, (L, E, N, K), N, cores), N // TILE_SIZE, cores)
    return _in_down_blocks(turned, (L, E, N, K), has_bias=False)


@composite(f"{EXPERIMENTAL}.prepare_w2_tensor_with_bias")
def prepare_w2_tensor_with_bias(tt_w2: Tensor, tt_b2: Tensor, *, L: int, E: int, N: int, K: int) -> Tensor:
    """The same with the bias below, which is the same for all cores."""
    _require_matrix(L, E, K, N)
    cores = _ring(tt_w2)
    turned = _turned(_grouped(tt_w2, (L, E, N, K), N, cores), N // TILE_SIZE, cores)
    (bias,) = _bias_tiles((tt_b2,), (L, E, K))
    below = _grouped(bias, (L, E, TILE_SIZE, K), N, cores)
    return _in_down_blocks(ttnn.concat([turned, below], dim=4), (L, E, N, K), has_bias=True)


@composite(f"{EXPERIMENTAL}.quantize_weights_via_host")
def quantize_weights_via_host(device_tensor: Tensor, *, dtype: DataType, memory_config: MemoryConfig | None) -> Tensor:
    """Another dtype, rounded by the host; the result is on the device if a memory config is passed."""
    rounded = ttnn.to_dtype(ttnn.from_device(device_tensor), dtype)
    if memory_config is None:
        return rounded
    require_on_device(device_tensor._spec, "the tensor")
    return ttnn.to_device(rounded, device_tensor._device, memory_config=memory_config)


@composite(f"{EXPERIMENTAL}.add_shared_expert_weights")
def add_shared_expert_weights(
    routed_w0: Tensor,
    routed_w1: Tensor,
    routed_w2: Tensor,
    shared_w0: Tensor,
    shared_w1: Tensor,
    shared_w2: Tensor,
    cluster_axis: int,
) -> tuple[Tensor, Tensor, Tensor]:
    """Shared experts after the routed ones; each chip of the other axis has a part of their columns.

    A core's columns of the shared experts come before its columns of a routed expert.
    """
    require_unsigned(cluster_axis=cluster_axis)
    cores = _ring(routed_w0)
    full = layout.shares(routed_w0.shape[-1] // TILE_SIZE, cores)
    pairs = ((routed_w0, shared_w0, -1), (routed_w1, shared_w1, -1), (routed_w2, shared_w2, -2))
    own: list[int] | None = None
    made = []
    for routed, shared, dim in pairs:
        part = ttnn.mesh_partition(shared, dim, 1 - cluster_axis)
        if own is None:
            _require_tiles("the part of a shared expert's columns that a chip has", part.shape[-1])
            own = layout.shares(part.shape[-1] // TILE_SIZE, cores)
        made.append(ttnn.concat([routed, _spread(part, dim, own, full)], dim=1))
    return made[0], made[1], made[2]


def _spread(tensor: Tensor, dim: int, own: Sequence[int], full: Sequence[int]) -> Tensor:
    """The tiles of every core, padded with zeros to the number that it has of a routed expert."""
    axis = len(tensor.shape) + dim
    pieces, start = [], 0
    for core, (count, room) in enumerate(zip(own, full, strict=True)):
        require(count <= room, f"core {core} has {count} tiles of a shared expert, and {room} of a routed one")
        if count:
            pieces.append(_part(tensor, axis, start * TILE_SIZE, count * TILE_SIZE))
            start += count
        if room > count:
            shape = list(tensor.shape)
            shape[axis] = (room - count) * TILE_SIZE
            pieces.append(_zeros(shape, tensor))
    return ttnn.concat(pieces, dim=axis)


def _require_tiles(name: str, size: int) -> None:
    require(size % TILE_SIZE == 0, f"{name} is {size}, which is not a multiple of {TILE_SIZE}")


def _require_matrix(layers: int, experts: int, inner: int, outer: int) -> None:
    require_unsigned(L=layers, E=experts, K=inner, N=outer)
    _require_tiles("K", inner)
    _require_tiles("N", outer)


def _ring(tensor: Tensor) -> int:
    """Cores of the ring: one per DRAM bank."""
    require_on_device(tensor._spec, "a weight")
    assert tensor._device is not None
    return len(tensor._device.get_optimal_dram_bank_to_logical_worker_assignment(0))


def _zeros(shape: Sequence[int], like: Tensor) -> Tensor:
    spec = like._spec
    return ttnn.zeros(list(shape), spec.dtype, spec.layout, like._device, spec.memory_config)


def _part(tensor: Tensor, dim: int, start: int, length: int) -> Tensor:
    begins, ends = [0] * len(tensor.shape), list(tensor.shape)
    begins[dim], ends[dim] = start, start + length
    return ttnn.slice(tensor, begins, ends, [1] * len(begins))


def _with_zeros(tensor: Tensor, dim: int, length: int) -> Tensor:
    """Padded with zeros to this size along one dimension."""
    shape = list(tensor.shape)
    if shape[dim] >= length:
        return tensor
    shape[dim] = length - shape[dim]
    return ttnn.concat([tensor, _zeros(shape, tensor)], dim=dim)


def _bias_tiles(biases: Sequence[Tensor], shape: tuple[int, int, int]) -> list[Tensor]:
    """Biases of (layers, experts, width) as the first lines of rows of tiles."""
    layers, experts, width = shape
    lines = [ttnn.unsqueeze(bias, 2) for bias in biases]
    below = _zeros((layers, experts, TILE_SIZE - 1, width), biases[0])
    return [ttnn.concat([line, below], dim=2) for line in lines]


def _packed_gate(
    first: Tensor, second: Tensor, shape: tuple[int, int, int, int], hidden: int, *, has_bias: bool, cores: int
) -> Tensor:
    layers, experts, height, width = shape
    columns = width // TILE_SIZE
    # The permute then returns a view of the tensor that is deallocated next.
    # tt-metal v0.77.0: ttnn/cpp/ttnn/operations/experimental/ccl/moe_compute/moe_compute_utils.cpp, stacked and
    # permuted
    require(columns != 1, "the library crashes on weights of one column of tiles: it reads a tensor that it has freed")
    blocks = layout.Blocks(layout.tiles_per_transaction(hidden, columns, has_bias, cores))
    plan = layout.GateLayout(height // TILE_SIZE, columns, cores, cores, blocks)
    full, half = (rows * TILE_SIZE for rows in (blocks.padded(plan.stored), blocks.half_padded(plan.stored)))
    rows = max(full, half)
    split = (layers, experts, rows, columns, TILE_SIZE)
    chunks = [ttnn.unsqueeze(ttnn.reshape(_padded(weight, shape, rows), split), 4) for weight in (first, second)]
    paired = ttnn.reshape(ttnn.concat(chunks, dim=4), (layers, experts, rows, columns, 2 * TILE_SIZE))
    paired = ttnn.permute(paired, (0, 1, 3, 2, 4))
    pieces, start = [], 0
    for own, stored in zip(plan.own_columns, plan.stored_columns, strict=True):
        pieces += _columns_of_core(paired, start, own, stored, (full, half))
        start += own
    lacking = plan.banks * plan.bank_blocks - sum(plan.core_blocks)
    if lacking:
        pieces.append(_zeros((layers, experts, lacking * blocks.rows, STORED_WIDTH), paired))
    banks = (layers, experts, plan.banks, plan.bank_blocks, blocks.rows, STORED_WIDTH)
    packed = ttnn.permute(ttnn.reshape(ttnn.concat(pieces, dim=2), banks), (2, 0, 1, 3, 4, 5))
    if plan.uniform:
        groups = plan.stored_columns[0] // 2
        packed = ttnn.reshape(packed, (cores, layers, experts, groups, full, STORED_WIDTH))
    return ttnn.to_layout(packed, Layout.TILE)


def _padded(weight: Tensor, shape: tuple[int, int, int, int], rows: int) -> Tensor:
    layers, experts, height, width = shape
    if height >= rows:
        return weight
    return ttnn.concat([weight, _zeros((layers, experts, rows - height, width), weight)], dim=2)


def _columns_of_core(paired: Tensor, start: int, own: int, stored: int, heights: tuple[int, int]) -> list[Tensor]:
    """Pairs of columns beside each other; of one left over, pairs of rows of tiles."""
    if not stored:
        return []
    layers, experts = paired.shape[0], paired.shape[1]
    columns = _with_zeros(_part(paired, 2, start, own), 2, stored)
    full, half = heights
    pairs, pieces = stored // 2, []
    if pairs:
        whole = _part(_part(columns, 2, 0, 2 * pairs), 3, 0, full)
        whole = ttnn.reshape(whole, (layers, experts, pairs, 2, full, 2 * TILE_SIZE))
        whole = ttnn.permute(whole, (0, 1, 2, 4, 3, 5))
        pieces.append(ttnn.reshape(whole, (layers, experts, pairs * full, STORED_WIDTH)))
    if stored % 2:
        last = _part(_part(columns, 2, 2 * pairs, 1), 3, 0, half)
        pieces.append(_rows_in_pairs(last, (layers, experts), half))
    return pieces


def _rows_in_pairs(tensor: Tensor, outer: tuple[int, ...], height: int) -> Tensor:
    """A column of two tiles with every second row of tiles beside the one above it."""
    rank = len(outer)
    split = ttnn.reshape(tensor, (*outer, height // (2 * TILE_SIZE), 2, TILE_SIZE, 2 * TILE_SIZE))
    split = ttnn.permute(split, (*range(rank), rank, rank + 2, rank + 1, rank + 3))
    return ttnn.reshape(split, (*outer, height // 2, STORED_WIDTH))


def _grouped(weight: Tensor, shape: tuple[int, int, int, int], intermediate: int, cores: int) -> Tensor:
    """Groups of four columns of tiles, padded per core: (core, layer, expert, group, row, column)."""
    layers, experts, height, hidden = shape
    tiles = hidden // TILE_SIZE
    groups = layout.rounds(tiles, cores)
    pieces, start = [], 0
    for last, lacking in layout.down_groups(tiles, intermediate // TILE_SIZE, cores):
        for width in ((groups - 1) * STORED_WIDTH, last * TILE_SIZE):
            if width > 0:
                ends = [layers, experts, height, start + width]
                pieces.append(ttnn.slice(weight, [0, 0, 0, start], ends, [1] * 4))
                start += width
        if lacking:
            pieces.append(_zeros((layers, experts, height, lacking * TILE_SIZE), weight))
    joined = ttnn.reshape(ttnn.concat(pieces, dim=3), (layers, experts, height, cores, groups, STORED_WIDTH))
    return ttnn.permute(joined, (3, 0, 1, 4, 2, 5))


def _turned(grouped: Tensor, intermediate: int, cores: int) -> Tensor:
    """The rows of every core in the order of the ring: its own, then those of its predecessors."""
    bounds = [0]
    for count in layout.shares(intermediate, cores):
        bounds.append(bounds[-1] + count)
    each = []
    for core in range(cores):
        own = _part(grouped, 0, core, 1)
        chunks = []
        for step in range(cores):
            chunk = (core - step) % cores
            height = bounds[chunk + 1] - bounds[chunk]
            if height:
                chunks.append(_part(own, 4, bounds[chunk] * TILE_SIZE, height * TILE_SIZE))
        each.append(ttnn.concat(chunks, dim=4))
    return ttnn.concat(each, dim=0)


def _in_down_blocks(grouped: Tensor, shape: tuple[int, int, int, int], *, has_bias: bool) -> Tensor:
    """Whole blocks; a last group with two columns of tiles at most has pairs of rows of tiles beside each other."""
    layers, experts, height, width = shape
    intermediate, hidden, cores = height // TILE_SIZE, width // TILE_SIZE, grouped.shape[0]
    blocks = layout.Blocks(layout.tiles_per_transaction(hidden, intermediate, has_bias, cores))
    stored = intermediate + has_bias
    full, half = blocks.padded(stored) * TILE_SIZE, blocks.half_padded(stored) * TILE_SIZE
    if not blocks.half_last(hidden, cores):
        return ttnn.to_layout(_with_zeros(grouped, 4, full), Layout.TILE)
    outer: Any = (cores, layers, experts)
    groups = grouped.shape[3] - 1
    last = _part(_part(grouped, 3, groups, 1), 5, 0, layout.W2_HALF_A2A_ITER_TILES_W * TILE_SIZE)
    pieces = [_rows_in_pairs(_with_zeros(last, 4, half), outer, half)]
    if groups:
        whole = _with_zeros(_part(grouped, 3, 0, groups), 4, full)
        pieces.insert(0, ttnn.reshape(whole, (*outer, groups * full, STORED_WIDTH)))
    joined = ttnn.concat(pieces, dim=3)
    return ttnn.to_layout(ttnn.reshape(joined, (*outer, -1, blocks.rows, STORED_WIDTH)), Layout.TILE)
