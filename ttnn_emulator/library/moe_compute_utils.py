"""`ttnn.experimental.moe_compute_utils`: packs expert weights with torch for `ttnn.experimental.moe_compute`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch

from ttnn_emulator.enums import Arch
from ttnn_emulator.hardware.core_grid import CoreRangeSet
from ttnn_emulator.ops.experts import weight_layout as layout
from ttnn_emulator.ops.experts.packed_weights import STORED_WIDTH, banked
from ttnn_emulator.ops.experts.packed_weights import get_weight_core_shard_maps as _shard_maps
from ttnn_emulator.ops.experts.weight_layout import (
    ALT_TILES_PER_TXN,
    BLOCK_TILES_H,
    DEFAULT_TILES_PER_TXN,
    W0_W1_BLOCK_TILES_W,
    W0_W1_HALF_BLOCK_TILES_W,
    W0_W1_TXNS_PER_BLOCK,
    W2_HALF_A2A_ITER_TILES_W,
    W2_TILES_PER_A2A_ITER_W,
)
from ttnn_emulator.tensors.memory_config import MemoryConfig
from ttnn_emulator.tensors.shapes import TILE_SIZE

if TYPE_CHECKING:
    from ttnn_emulator.hardware.device import MeshDevice

__all__ = [
    "ALT_TILES_PER_TXN",
    "BLOCK_TILES_H",
    "DEFAULT_TILES_PER_TXN",
    "W0_W1_BLOCK_TILES_W",
    "W0_W1_HALF_BLOCK_TILES_W",
    "W0_W1_TXNS_PER_BLOCK",
    "W2_HALF_A2A_ITER_TILES_W",
    "W2_TILES_PER_A2A_ITER_W",
    "add_shared_expert_weights",
    "auto_output_width_shard_dim",
    "cluster_distance",
    "effective_matmul_ring_size",
    "get_shared_experts_per_device",
    "get_weight_core_shard_maps",
    "get_weight_mem_configs",
    "map_shared_experts",
    "prepare_w0_w1_tensor_for_moe_compute",
    "prepare_w0_w1_tensor_with_bias",
    "prepare_w2_tensor_for_moe_compute",
    "prepare_w2_tensor_with_bias",
    "w0_w1_bank_rows_per_expert",
    "w2_core_rows_per_expert",
]
WORMHOLE_RING = 12  # effective_matmul_ring_size: Wormhole's DRAM banks are never harvested


def cluster_distance(d0: int, d1: int, mesh_shape: Sequence[int], cluster_axis: int) -> int | None:
    """Hops between two chips along an axis; None if they are not on one line of it."""
    first, second = divmod(d0, mesh_shape[1]), divmod(d1, mesh_shape[1])
    if first[1 - cluster_axis] != second[1 - cluster_axis]:
        return None
    return abs(first[cluster_axis] - second[cluster_axis])


def get_shared_experts_per_device(shared_expert_ids_to_devices: Mapping[int, Sequence[int]], devices: int) -> list[int]:
    """The number of shared experts per chip."""
    counts = [0] * devices
    for holders in shared_expert_ids_to_devices.values():
        for holder in holders:
            counts[holder] += 1
    return counts


def map_shared_experts(
    expert_mapping_tensor: torch.Tensor,
    shared_expert_ids_to_devices: Mapping[int, Sequence[int]],
    mesh_shape: Sequence[int],
    cluster_axis: int,
) -> torch.Tensor:
    """(chips, experts) → the chip of each expert, with columns for shared experts: the nearest chip on the axis."""
    if expert_mapping_tensor.dim() != 2:
        raise RuntimeError(f"the mapping must have 2 dimensions, not {expert_mapping_tensor.dim()}")
    devices, routed = expert_mapping_tensor.shape
    if len(set(get_shared_experts_per_device(shared_expert_ids_to_devices, devices))) != 1:
        raise RuntimeError("all devices must have the same number of shared experts")
    shared = len(shared_expert_ids_to_devices)
    if sorted(shared_expert_ids_to_devices) != list(range(routed, routed + shared)):
        raise RuntimeError(f"shared experts must be numbered from {routed} on: {sorted(shared_expert_ids_to_devices)}")
    more = torch.zeros((devices, shared), dtype=expert_mapping_tensor.dtype)
    mapping = torch.cat([expert_mapping_tensor, more], dim=1)
    beyond = mesh_shape[cluster_axis] + 1
    for device in range(devices):
        for expert, holders in shared_expert_ids_to_devices.items():

            def steps(holder: int, device: int = device) -> int:
                distance = cluster_distance(device, holder, mesh_shape, cluster_axis)
                return beyond if distance is None else distance

            mapping[device, expert] = min(holders, key=steps)
    return mapping


def add_shared_expert_weights(
    routed_w0: torch.Tensor,
    routed_w1: torch.Tensor,
    routed_w2: torch.Tensor,
    shared_w0: Mapping[int, torch.Tensor],
    shared_w1: Mapping[int, torch.Tensor],
    shared_w2: Mapping[int, torch.Tensor],
    shared_expert_ids_to_device: Mapping[int, Sequence[int]],
    num_devices: int,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """(layers, experts, …) with the shared experts of each chip after its routed experts."""
    own = routed_w0.shape[1] // num_devices
    holds: list[list[int]] = [[] for _ in range(num_devices)]
    for expert in sorted(shared_expert_ids_to_device):
        for device in shared_expert_ids_to_device[expert]:
            holds[device].append(expert)

    def joined(routed: torch.Tensor, shared: Mapping[int, torch.Tensor]) -> torch.Tensor:
        pieces = []
        for device, experts in enumerate(holds):
            pieces.append(routed[:, device * own : (device + 1) * own])
            pieces += [shared[expert].to(routed.dtype) for expert in experts]
        return torch.cat(pieces, dim=1)

    return joined(routed_w0, shared_w0), joined(routed_w1, shared_w1), joined(routed_w2, shared_w2)


def effective_matmul_ring_size(mesh_device: MeshDevice, bh_ring_size: int = 8) -> int:
    """Number of cores of the ring on this device."""
    if mesh_device.board.arch is Arch.BLACKHOLE:
        return len(mesh_device.get_optimal_dram_bank_to_logical_worker_assignment(0))
    return WORMHOLE_RING


def auto_output_width_shard_dim(hidden_size: int, tile_size: int = 32, max_dim: int = 4) -> int:
    """The largest number of cores, at most `max_dim`, that divides the tiles of a token."""
    tiles = hidden_size // tile_size
    return next((count for count in range(max_dim, 0, -1) if tiles % count == 0), 1)


def w0_w1_bank_rows_per_expert(
    k_dram_tiles: int,
    Nt: int,
    num_cores: int,
    num_banks: int | None = None,
    tiles_per_txn: int = DEFAULT_TILES_PER_TXN,
) -> int:
    """Rows of an expert's W0 and W1 per bank."""
    banks = num_cores if num_banks is None else num_banks
    return layout.GateLayout(k_dram_tiles, Nt, num_cores, banks, layout.Blocks(tiles_per_txn)).bank_rows


def w2_core_rows_per_expert(Ht: int, k_w2_tiles: int, num_cores: int, tiles_per_txn: int) -> int:
    """Rows of an expert's W2 per core."""
    return layout.Blocks(tiles_per_txn).down_rows(Ht, k_w2_tiles, num_cores)


def get_weight_core_shard_maps(
    mesh_device: MeshDevice, hidden_size: int, intermediate_size: int
) -> tuple[list[int], list[tuple[int, int]], CoreRangeSet]:
    """Per core: tiles of W0 and W1, tiles and padding of its last group of W2, and its bank."""
    maps = _shard_maps(mesh_device, hidden_size, intermediate_size)
    return maps.w0_w1_shard_map, maps.w2_shard_map, maps.dram_core_range_set


def get_weight_mem_configs(
    num_layers: int,
    experts_per_device: int,
    hidden_size: int,
    intermediate_size: int,
    w0_w1_shard_map: Sequence[int],
    w2_shard_map: Sequence[Sequence[int]],
    dram_core_range_set: CoreRangeSet,
    has_bias: bool = False,
) -> tuple[MemoryConfig, MemoryConfig, int, int]:
    """Memory configs of packed weights, and the heights of the padded weights."""
    _require_tiles("hidden_size", hidden_size)
    _require_tiles("intermediate_size", intermediate_size)
    hidden, intermediate = hidden_size // TILE_SIZE, intermediate_size // TILE_SIZE
    cores, banks, experts = len(w0_w1_shard_map), dram_core_range_set.num_cores(), num_layers * experts_per_device
    blocks = layout.Blocks(layout.tiles_per_transaction(hidden, intermediate, has_bias, cores))
    _require_map(w0_w1_shard_map, intermediate)
    gate = layout.GateLayout(hidden + has_bias, intermediate, cores, banks, blocks)
    down = experts * cores * blocks.down_rows(hidden, intermediate + has_bias, cores)
    if down % banks:
        raise RuntimeError(f"the {down} rows of W2 cannot be divided evenly among {banks} banks")
    return (
        banked(dram_core_range_set, experts * gate.bank_rows),
        banked(dram_core_range_set, down // banks),
        blocks.padded(hidden + has_bias) * TILE_SIZE,
        blocks.padded(intermediate + has_bias) * TILE_SIZE,
    )


def prepare_w0_w1_tensor_for_moe_compute(
    torch_w0: torch.Tensor,
    torch_w1: torch.Tensor,
    L: int,
    E: int,
    K: int,
    N: int,
    shard_map: Sequence[int],
    num_banks: int | None = None,
    tiles_per_txn: int | None = None,
) -> torch.Tensor:
    """W0 and W1 of (layers, experts, K, N) → (banks, layers, experts, blocks, rows, 128)."""
    _require_tiles("K", K)
    _require_tiles("N", N)
    cores, columns = len(shard_map), N // TILE_SIZE
    if not cores:
        raise ValueError("shard_map must have one entry per core of the ring")
    _require_map(shard_map, columns)
    if tiles_per_txn is None:
        tiles_per_txn = layout.tiles_per_transaction(K // TILE_SIZE, columns, False, cores)
    blocks = layout.Blocks(tiles_per_txn)
    plan = layout.GateLayout(K // TILE_SIZE, columns, cores, cores if num_banks is None else num_banks, blocks)
    full, half = (rows * TILE_SIZE for rows in (blocks.padded(plan.stored), blocks.half_padded(plan.stored)))
    stacked = torch.stack([weight.reshape(L, E, K, columns, TILE_SIZE) for weight in (torch_w0, torch_w1)], dim=4)
    paired = _padded(stacked.reshape(L, E, K, columns, 2 * TILE_SIZE).permute(0, 1, 3, 2, 4), 3, max(full, half))
    pieces, start = [paired.new_zeros(L, E, 0, STORED_WIDTH)], 0
    for own, stored in zip(plan.own_columns, plan.stored_columns, strict=True):
        mine = _padded(paired[:, :, start : start + own], 2, stored)
        pairs = stored // 2
        whole = mine[:, :, : 2 * pairs, :full].reshape(L, E, pairs, 2, full, 2 * TILE_SIZE)
        pieces.append(whole.permute(0, 1, 2, 4, 3, 5).reshape(L, E, pairs * full, STORED_WIDTH))
        if stored % 2:
            pieces.append(_rows_in_pairs(mine[:, :, 2 * pairs, :half]))
        start += own
    stream = _padded(torch.cat(pieces, dim=2), 2, plan.banks * plan.bank_rows)
    packed = stream.reshape(L, E, plan.banks, plan.bank_blocks, blocks.rows, STORED_WIDTH).permute(2, 0, 1, 3, 4, 5)
    if plan.uniform:
        return packed.reshape(cores, L, E, plan.stored_columns[0] // 2, full, STORED_WIDTH)
    return packed.contiguous()


def prepare_w0_w1_tensor_with_bias(
    torch_w0: torch.Tensor,
    torch_w1: torch.Tensor,
    torch_b0: torch.Tensor,
    torch_b1: torch.Tensor,
    L: int,
    E: int,
    K: int,
    N: int,
    shard_map: Sequence[int],
) -> torch.Tensor:
    """The same with biases of (layers, experts, N) in one more row of tiles."""
    _require_tiles("K", K)
    _require_tiles("N", N)
    first = torch.cat([torch_w0, _bias_tile(torch_b0, (L, E, N))], dim=2)
    second = torch.cat([torch_w1, _bias_tile(torch_b1, (L, E, N))], dim=2)
    size = layout.tiles_per_transaction(K // TILE_SIZE, N // TILE_SIZE, True, len(shard_map))
    return prepare_w0_w1_tensor_for_moe_compute(first, second, L, E, K + TILE_SIZE, N, shard_map, tiles_per_txn=size)


def prepare_w2_tensor_for_moe_compute(
    torch_w2: torch.Tensor,
    L: int,
    E: int,
    N: int,
    K: int,
    w2_shard_map: Sequence[Sequence[int]],
    w0_w1_shard_map: Sequence[int],
    tiles_per_txn: int | None = None,
) -> torch.Tensor:
    """(layers, experts, N, K) → (cores, layers, experts, groups, rows, 128), rows in the order of the ring."""
    _require_tiles("N", N)
    _require_tiles("K", K)
    turned = _rotated(_grouped(torch_w2, w2_shard_map), w0_w1_shard_map)
    if tiles_per_txn is None:
        tiles_per_txn = layout.tiles_per_transaction(K // TILE_SIZE, N // TILE_SIZE, False, len(w2_shard_map))
    return _in_down_blocks(turned, N // TILE_SIZE, K // TILE_SIZE, layout.Blocks(tiles_per_txn))


def prepare_w2_tensor_with_bias(
    torch_w2: torch.Tensor,
    torch_b2: torch.Tensor,
    L: int,
    E: int,
    N: int,
    K: int,
    w2_shard_map: Sequence[Sequence[int]],
    w0_w1_shard_map: Sequence[int],
) -> torch.Tensor:
    """The same with a bias of (layers, experts, K) below; its row is the same for all cores."""
    _require_tiles("N", N)
    _require_tiles("K", K)
    turned = _rotated(_grouped(torch_w2, w2_shard_map), w0_w1_shard_map)
    below = _grouped(_bias_tile(torch_b2, (L, E, K)), w2_shard_map)
    size = layout.tiles_per_transaction(K // TILE_SIZE, N // TILE_SIZE, True, len(w2_shard_map))
    joined = torch.cat([turned, below], dim=4)
    return _in_down_blocks(joined, N // TILE_SIZE + 1, K // TILE_SIZE, layout.Blocks(size))


def _require_tiles(name: str, size: int) -> None:
    if size % TILE_SIZE:
        raise ValueError(f"{name} is {size}, which is not a multiple of {TILE_SIZE}")


def _require_map(shard_map: Sequence[int], columns: int) -> None:
    expected = layout.shares(columns, len(shard_map))
    if list(shard_map) != expected:
        raise RuntimeError(f"the shards of W0 and W1 must be {expected}, not {list(shard_map)}")


def _padded(tensor: torch.Tensor, dim: int, length: int) -> torch.Tensor:
    shape = list(tensor.shape)
    shape[dim] = max(length - shape[dim], 0)
    return torch.cat([tensor, tensor.new_zeros(shape)], dim=dim)


def _bias_tile(bias: torch.Tensor, shape: tuple[int, int, int]) -> torch.Tensor:
    layers, experts, width = shape
    tile = bias.new_zeros(layers, experts, TILE_SIZE, width)
    tile[:, :, 0] = bias
    return tile


def _rows_in_pairs(column: torch.Tensor) -> torch.Tensor:
    """Pair rows of tiles: each odd row is moved beside the even row above it."""
    *outer, height, _ = column.shape
    split = column.reshape(*outer, height // (2 * TILE_SIZE), 2, TILE_SIZE, 2 * TILE_SIZE)
    return split.transpose(-3, -2).reshape(*outer, height // 2, STORED_WIDTH)


def _grouped(weight: torch.Tensor, shard_map: Sequence[Sequence[int]]) -> torch.Tensor:
    """Columns per core and group of four tiles: (core, layer, expert, group, row, column)."""
    layers, experts, height, width = weight.shape
    groups = layout.rounds(width // TILE_SIZE, len(shard_map))
    pieces, start = [], 0
    for last, lacking in shard_map:
        own = (groups - 1) * STORED_WIDTH + last * TILE_SIZE
        pieces.append(weight[..., start : start + own])
        pieces.append(weight.new_zeros(layers, experts, height, lacking * TILE_SIZE))
        start += own
    joined = torch.cat(pieces, dim=-1).reshape(layers, experts, height, len(shard_map), groups, STORED_WIDTH)
    return joined.permute(3, 0, 1, 4, 2, 5)


def _rotated(grouped: torch.Tensor, shard_map: Sequence[int]) -> torch.Tensor:
    """Rows of each core in ring order: its own, then those of its predecessors."""
    chunks: Any = grouped.split([count * TILE_SIZE for count in shard_map], dim=4)
    cores = len(shard_map)
    each = [torch.cat([chunks[(core - step) % cores][core] for step in range(cores)], dim=3) for core in range(cores)]
    return torch.stack(each)


def _in_down_blocks(grouped: torch.Tensor, stored: int, hidden: int, blocks: layout.Blocks) -> torch.Tensor:
    """Complete blocks; the last one is two tiles wide where that suffices."""
    cores, layers, experts = grouped.shape[:3]
    if not blocks.half_last(hidden, cores):
        return _padded(grouped, 4, blocks.padded(stored) * TILE_SIZE)
    whole = _padded(grouped[:, :, :, :-1], 4, blocks.padded(stored) * TILE_SIZE)
    last = _padded(grouped[:, :, :, -1, :, : 2 * TILE_SIZE], 3, blocks.half_padded(stored) * TILE_SIZE)
    stream = torch.cat([whole.reshape(cores, layers, experts, -1, STORED_WIDTH), _rows_in_pairs(last)], dim=3)
    return stream.reshape(cores, layers, experts, -1, blocks.rows, STORED_WIDTH)
