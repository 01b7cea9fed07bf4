"""Permutations of a flow: the library's two kernels for them, and how it chooses and chains them."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

import torch

from ttnn_emulator.enums import BLOCK_FLOAT_DTYPES, BufferType, DataType, ShardOrientation, TensorMemoryLayout
from ttnn_emulator.errors import ChipFault, require
from ttnn_emulator.execution.call_context import current_board
from ttnn_emulator.hardware.core_grid import CoreCoord, num_cores_to_corerangeset
from ttnn_emulator.numerics.formats import carriers
from ttnn_emulator.numerics.units import packer
from ttnn_emulator.ops.data_movement.reshape import from_4d_flow, to_4d_flow
from ttnn_emulator.ops.data_movement.typecast import typecast_flow
from ttnn_emulator.ops.flows.memory import clone_flow, memory_flow
from ttnn_emulator.ops.flows.reshape import Dims, last
from ttnn_emulator.ops.flows.value_flow import Flow, Permuted, Step
from ttnn_emulator.ops.support.common_checks import require_on_device
from ttnn_emulator.ops.support.derived_shards import (
    BLOCK,
    WIDTH,
    cuts_width,
    fresh_shards,
    lacks_shards,
    scaled_shards,
    tile_aligned,
)
from ttnn_emulator.tensors.memory_config import L1_MEMORY_CONFIG, MemoryConfig, NdShardSpec, ShardSpec
from ttnn_emulator.tensors.shapes import TILE_SIZE, Shape, div_up, round_up
from ttnn_emulator.tensors.spec import Spec, padded_spec

IDENTITY = (0, 1, 2, 3)
CN, HC, WH = (1, 0, 2, 3), (0, 2, 1, 3), (0, 1, 3, 2)
PERMUTE = "PermuteDeviceOperation"


# -- values -----------------------------------------------------------------------------------------------------------


def _permuting(order: Dims, spec: Spec, *, computes: bool) -> Step:
    """The step of a kernel that moves values; one that transposes within tiles passes them through the packer."""
    if spec.dtype in BLOCK_FLOAT_DTYPES:
        whole_tiles = order[-2:] == (len(order) - 2, len(order) - 1)
        if whole_tiles:
            return Permuted(order)
        if not computes or set(order[-2:]) != {len(order) - 2, len(order) - 1}:
            return functools.partial(_torn_blocks, order=order, dtype=spec.dtype)
        return lambda values: packer.device_pack_block_float(values.permute(order).contiguous(), spec.dtype)
    if computes and spec.dtype is DataType.BFLOAT16:
        return Permuted(order, carriers.flush)
    return Permuted(order)


def _torn_blocks(values: torch.Tensor, *, order: Dims, dtype: DataType) -> torch.Tensor:
    if bool(values.any()):
        raise ChipFault(
            f"the order {list(order)} moves rows of {dtype} out of their tiles, away from their shared exponents",
            hint="Cast to bfloat16 before.",
        )
    return values.permute(order)


def _twice(values: torch.Tensor, *, order: Dims, shape: Dims) -> torch.Tensor:
    if bool(values.any()):
        raise ChipFault(f"the order {list(order)} names a dimension twice: the chip returns garbage")
    return values.new_zeros(shape)


# -- the permute kernel -----------------------------------------------------------------------------------------------


def prim_permute(flow: Flow, order: Dims, config: MemoryConfig) -> Flow:
    spec = flow.spec
    require_on_device(spec)
    shape = tuple(spec.shape[dim] for dim in order)
    config = _permuted_config(spec, order, shape, config)
    computes = order[-1] != spec.rank - 1
    # The library crashes on it.
    require(not computes or spec.volume > 0, f"the last dimension of an empty tensor {list(spec.shape)} cannot move")
    out = Spec.of(shape, spec.dtype, spec.layout, config)
    if len(set(order)) < len(order):
        return flow.into(out, functools.partial(_twice, order=order, shape=shape), by=PERMUTE, how=order)
    return flow.into(out, _permuting(order, spec, computes=computes), by=PERMUTE, how=order)


def _permuted_config(spec: Spec, order: Dims, shape: Dims, config: MemoryConfig) -> MemoryConfig:
    nd = config.nd_shard_spec
    if config.created_with_nd_shard_spec and nd is not None:
        given = spec.memory_config.nd_shard_spec
        if spec.memory_config.created_with_nd_shard_spec and given is not None:
            shard = Shape(given.shard_shape[dim] for dim in order)
            nd = NdShardSpec(shard, nd.grid, nd.orientation, nd.shard_distribution_strategy)
        return MemoryConfig(config.buffer_type, nd)
    if not config.is_sharded() or config.shard_spec is not None:
        return config
    padded = shape
    if spec.is_tile and len(shape) >= 2:
        padded = (*shape[:-2], round_up(shape[-2], TILE_SIZE), round_up(shape[-1], TILE_SIZE))
    return _synthesized(spec, padded, config)


def _synthesized(spec: Spec, padded: Dims, config: MemoryConfig) -> MemoryConfig:
    """Shards for a config that names only their kind: those of the input in proportion, or new ones."""
    layout = config.memory_layout
    if spec.shard_spec is not None and spec.memory_config.memory_layout is layout:
        scaled = scaled_shards(spec.shard_spec, spec.padded_shape, padded)
        if scaled is not None and (not spec.is_tile or tile_aligned(scaled)):
            return MemoryConfig(layout, config.buffer_type, scaled)
    return MemoryConfig(layout, config.buffer_type, _fresh(spec, padded, layout))


def _fresh(
    spec: Spec,
    padded: Dims,
    layout: TensorMemoryLayout,
    orientation: ShardOrientation | None = None,
    *,
    tiles: bool = True,
) -> ShardSpec:
    if orientation is None and spec.shard_spec is not None:
        orientation = spec.shard_spec.orientation
    shards = fresh_shards(current_board().grid, padded, layout, orientation, tiles=tiles)
    if tiles:
        return shards
    aligned = aligned_rows(shards, spec, last(padded), layout)
    if aligned is None and layout is WIDTH and last(padded):
        part = round_up(div_up(last(padded), current_board().cores), TILE_SIZE)
        return _on_cores(shards, div_up(last(padded), part), part)
    return aligned or shards


def aligned_rows(shards: ShardSpec, spec: Spec, width: int, layout: TensorMemoryLayout) -> ShardSpec | None:
    """Shards of rows whose pages are whole 16 B and divide the row; None if no number of cores gives such."""
    size = _element_bytes(spec)

    def fits(part: int) -> bool:
        return part > 0 and part * size % 16 == 0 and width % part == 0

    if spec.is_tile or fits(shards.shape[1]):
        return shards
    if layout is not WIDTH or width == 0:
        return None
    columns, rows = current_board().grid
    count = next((n for n in range(columns * rows, 0, -1) if width % n == 0 and fits(width // n)), None)
    return None if count is None else _on_cores(shards, count, width // count)


def _on_cores(shards: ShardSpec, count: int, width: int) -> ShardSpec:
    by_rows = shards.orientation is ShardOrientation.ROW_MAJOR
    grid = num_cores_to_corerangeset(count, CoreCoord(*current_board().grid), by_rows)
    return ShardSpec(grid, (shards.shape[0], width), shards.orientation)


# -- the transpose kernel ---------------------------------------------------------------------------------------------


def prim_transpose(flow: Flow, order: Dims, config: MemoryConfig, pad_value: float) -> Flow:
    """Two neighbouring dimensions of four swapped: CN, HC or WH."""
    spec = flow.spec
    require_on_device(spec)
    require(order == HC or pad_value == 0.0, f"only a transpose of C and H pads, with {pad_value} or anything else")
    shape, padded = _transposed_shapes(spec, order)
    if spec.is_tile:
        whole = last(spec.padded_shape) % TILE_SIZE == 0 and last(spec.padded_shape, 2) % TILE_SIZE == 0
        require(whole, f"{list(spec.padded_shape)} does not consist of whole tiles")
    if lacks_shards(config):
        config = _synthesized(spec, padded, config)
    out = padded_spec(shape, padded, spec.dtype, spec.layout, config)
    return flow.into(out, _permuting(order, spec, computes=order == WH), by="TransposeDeviceOperation", how=order)


def _transposed_shapes(spec: Spec, order: Dims) -> tuple[Dims, Dims]:
    shape = tuple(spec.shape[dim] for dim in order)
    if order == HC and spec.is_tile:
        rows = round_up(spec.shape[1], spec.tile.height)
        return shape, (spec.padded_shape[0], spec.shape[2], rows, spec.padded_shape[3])
    return shape, tuple(spec.padded_shape[dim] for dim in order)


def _is_native(spec: Spec) -> bool:
    """Shards that the sharded transpose kernels take: in L1, not block sharded, and evenly distributed."""
    config, shards = spec.memory_config, spec.shard_spec
    if not config.is_sharded() or config.is_dram or config.memory_layout is BLOCK:
        return False
    if shards is None or len(spec.padded_shape) < 2:
        return False
    if not spec.is_tile and shards.shape[0] * shards.shape[1] % (TILE_SIZE * TILE_SIZE):
        return False
    height = math.prod(spec.padded_shape[:-1])
    return height % shards.shape[0] == 0 and spec.padded_shape[-1] % shards.shape[1] == 0


def _transposed_config(spec: Spec, order: Dims, asked: MemoryConfig | None) -> MemoryConfig:
    if asked is not None and not lacks_shards(asked):
        return asked
    source = spec.memory_config
    if not _is_native(spec):
        if asked is not None:
            return asked
        if not source.is_sharded():
            return source
        if source.created_with_nd_shard_spec and source.nd_shard_spec is not None:
            return MemoryConfig(source.buffer_type, source.nd_shard_spec)
        return MemoryConfig(source.memory_layout, source.buffer_type)
    assert spec.shard_spec is not None
    seed = asked or source
    fallback = L1_MEMORY_CONFIG if asked is None else MemoryConfig(asked.memory_layout, asked.buffer_type)
    if (
        order == WH
        and asked is None
        and spec.padded_shape[:2] == (1, 1)
        and spec.shard_spec.shape[1] == spec.padded_shape[3]
    ):
        turned = ShardSpec(spec.shard_spec.grid, spec.shard_spec.shape[::-1], spec.shard_spec.orientation)
        if spec.is_tile and not tile_aligned(turned):
            return fallback
        return MemoryConfig(WIDTH, seed.buffer_type, turned)
    if order == WH or (order == HC and spec.is_tile):
        _, padded = _transposed_shapes(spec, order)
        scaled = scaled_shards(spec.shard_spec, spec.padded_shape, padded)
        matches = asked is None or asked.memory_layout is source.memory_layout
        if scaled is None or not matches or (spec.is_tile and not tile_aligned(scaled)):
            return fallback
        return MemoryConfig(seed.memory_layout, seed.buffer_type, scaled)
    return seed


def _transpose_4d(flow: Flow, order: Dims, config: MemoryConfig | None, pad_value: float) -> Flow:
    spec = flow.spec
    if order not in (CN, HC, WH):
        return permute_flow(flow, order, config, pad_value)
    target = _transposed_config(spec, order, config)
    rows = not spec.is_tile
    if rows and (not spec.is_sharded or (order == WH and _exceeds_l1(spec))):
        return prim_permute(flow, order, target)
    return prim_transpose(flow, order, target, pad_value)


def _exceeds_l1(spec: Spec) -> bool:
    width, height = (round_up(last(spec.shape, back), TILE_SIZE) for back in (1, 2))
    needed = (2 * width + 2 * height + height * width) * (spec.page_bytes // max(spec.page_shape[1], 1))
    return needed > current_board().l1_bank_bytes


def transpose_flow(flow: Flow, dim1: int, dim2: int, config: MemoryConfig | None, pad_value: float) -> Flow:
    """`ttnn.transpose` on a flow."""
    spec = flow.spec
    rank = spec.rank
    first, second = _position(dim1, rank), _position(dim2, rank)
    order = list(range(rank))
    order[first], order[second] = second, first
    staged = _staged(flow, tuple(order), config)
    if staged is not None:
        return transpose_flow(staged[0], dim1, dim2, staged[1], pad_value)
    if rank > 4:
        return permute_flow(flow, tuple(order), config, pad_value)
    flow = to_4d_flow(flow)
    full = tuple(range(4 - rank)) + tuple(dim + 4 - rank for dim in order)
    one, two = first + 4 - rank, second + 4 - rank
    casts = spec.dtype is DataType.BFLOAT8_B and one + two not in (5, 1)
    if casts:
        flow = typecast_flow(flow, DataType.BFLOAT16)
    padded = flow.spec.padded_shape
    if one == two or (padded[one] == 1 and padded[two] == 1):
        if config is not None and flow.spec.memory_config != config:
            flow = clone_flow(flow, config)
    else:
        flow = _transpose_4d(flow, full, config, pad_value)
    flow = from_4d_flow(flow, rank) if rank < 4 else flow
    return typecast_flow(flow, DataType.BFLOAT8_B) if casts else flow


def _position(dim: int, rank: int) -> int:
    require(-rank <= dim < rank, f"dimension {dim} is out of range for a tensor of rank {rank}")
    return dim % rank


def _staged(flow: Flow, order: Dims, config: MemoryConfig | None) -> tuple[Flow, MemoryConfig | None] | None:
    """Rows cut by shards of width or blocks, of odd size: the library makes them interleaved first."""
    spec = flow.spec
    if spec.is_tile or not spec.is_sharded or not cuts_width(spec.memory_config) or spec.rank < 2:
        return None
    if last(spec.shape) % TILE_SIZE == 0 and last(spec.shape, 2) % TILE_SIZE == 0:
        return None
    if config is not None and lacks_shards(config):
        padded = tuple(spec.padded_shape[dim] for dim in order)
        orientation = spec.shard_spec.orientation if spec.shard_spec is not None else None
        shards = _fresh(spec, padded, config.memory_layout, orientation, tiles=False)
        config = MemoryConfig(config.memory_layout, config.buffer_type, shards)
    return memory_flow(flow, MemoryConfig(TensorMemoryLayout.INTERLEAVED, BufferType.L1)), config


# -- permute ----------------------------------------------------------------------------------------------------------


def permute_flow(flow: Flow, order: Sequence[int], config: MemoryConfig | None, pad_value: float) -> Flow:
    """`ttnn.permute` on a flow."""
    spec = flow.spec
    rank = spec.rank
    require(
        len(order) == rank,
        "The number of dimensions in the tensor input does not match the length of the desired ordering: "
        f"{rank} and {list(order)}",
    )
    require_on_device(spec)
    dims = tuple(_position(dim, rank) for dim in order)
    if _changes_nothing(spec, dims):
        return memory_flow(flow, config or spec.memory_config)
    flow = to_4d_flow(flow) if rank < 4 else flow
    if rank < 4:
        dims = tuple(range(4 - rank)) + tuple(dim + 4 - rank for dim in dims)
    if not spec.is_tile and config is not None and config.shard_spec is not None:
        size = config.shard_spec.shape[1] * _element_bytes(spec)
        require(size % 16 == 0, f"rows of shards of width {config.shard_spec.shape[1]} must be whole 16 B")
    flow = _permute_nd(flow, dims, config, pad_value)
    return from_4d_flow(flow, rank) if rank < 4 else flow


def _element_bytes(spec: Spec) -> int:
    return spec.page_bytes // max(spec.page_shape[0] * spec.page_shape[1], 1)


def _changes_nothing(spec: Spec, dims: Dims) -> bool:
    rank = len(dims)
    if rank <= 1 or dims == tuple(range(rank)):
        return True
    kept = 2 if spec.is_tile else 1
    if any(dims[rank - back] != rank - back for back in range(1, kept + 1)):
        return False
    shape = spec.shape
    if tuple(shape[dim] for dim in dims) != shape:
        return False
    return all(index == dim or shape[index] <= 1 for index, dim in enumerate(dims))


def _permute_nd(flow: Flow, dims: Dims, config: MemoryConfig | None, pad_value: float) -> Flow:
    staged = _staged(flow, dims, config)
    if staged is not None:
        return _permute_nd(staged[0], dims, staged[1], pad_value)
    spec = flow.spec
    if spec.rank > 4:
        return prim_permute(flow, dims, config or _inherited(spec))
    cast = spec.dtype is DataType.BFLOAT8_B and dims not in (WH, CN, (1, 0, 3, 2)) and not spec.is_sharded
    if cast:
        flow = typecast_flow(flow, DataType.BFLOAT16)
    chain = (SHARDED_CHAINS if spec.is_sharded else INTERLEAVED_CHAINS).get(dims)
    if chain is None:
        flow = prim_permute(flow, dims, config or (_inherited(spec) if spec.is_sharded else spec.memory_config))
    else:
        for index, order in enumerate(chain):
            final = index == len(chain) - 1
            value = pad_value if order == HC else 0.0
            one, two = (dim for dim in range(4) if order[dim] != dim)
            flow = transpose_flow(flow, one, two, config if final else None, value)
    return typecast_flow(flow, DataType.BFLOAT8_B) if cast else flow


def _inherited(spec: Spec) -> MemoryConfig:
    """The memory of the input; of shards only their kind, for the kernel to work out."""
    config = spec.memory_config
    if not config.is_sharded():
        return config
    if config.created_with_nd_shard_spec and config.nd_shard_spec is not None:
        return MemoryConfig(config.buffer_type, config.nd_shard_spec)
    return MemoryConfig(config.memory_layout, config.buffer_type)


# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/data_movement/permute/permute.cpp, permute_impl
# Permutations that the library composes of transposes, first to last.
INTERLEAVED_CHAINS: dict[Dims, tuple[Dims, ...]] = {IDENTITY: (), WH: (WH,), HC: (HC,), CN: (CN,)}
SHARDED_CHAINS: dict[Dims, tuple[Dims, ...]] = {
    **INTERLEAVED_CHAINS,
    (0, 2, 3, 1): (HC, WH),
    (0, 3, 1, 2): (WH, HC),
    (0, 3, 2, 1): (WH, HC, WH),
}
