"""Reshapes and views of a flow: which shapes are views of the buffer, and which need a kernel."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ttnn_emulator.enums import BLOCK_FLOAT_DTYPES, DataType, Layout, ShardOrientation, TensorMemoryLayout
from ttnn_emulator.errors import require
from ttnn_emulator.hardware.core_grid import CoreCoord, CoreRange, CoreRangeSet
from ttnn_emulator.ops.data_movement.typecast import typecast_flow
from ttnn_emulator.ops.flows.memory import memory_flow, shard_flow, unshard_flow
from ttnn_emulator.ops.flows.value_flow import Flow, Step, reshaped
from ttnn_emulator.ops.support.buffer_views import Reread
from ttnn_emulator.ops.support.derived_shards import BLOCK, HEIGHT, WIDTH, lacks_shards
from ttnn_emulator.tensors.memory_config import (
    DRAM_MEMORY_CONFIG,
    MemoryConfig,
    NdShardSpec,
    ShardDistributionStrategy,
    ShardSpec,
)
from ttnn_emulator.tensors.shapes import TILE_SIZE, Shape, div_up, round_up
from ttnn_emulator.tensors.spec import ROW_MAJOR_BYTES, Spec, padded_spec

Dims = tuple[int, ...]

MOVABLE = frozenset({DataType.BFLOAT16, DataType.FLOAT32, DataType.INT32, DataType.UINT32})
INTERLEAVED = TensorMemoryLayout.INTERLEAVED
# tt-metal v0.77.0: tt_metal/impl/tensor/spec/layout/page_config.cpp, RECOMMENDED_MEMORY_ALIGNMENT_BYTES
RECOMMENDED_ROW_BYTES = 64  # row alignment in bytes of shards that the library chooses


def last(shape: Dims, back: int = 1) -> int:
    """The size of a dimension counted from the end; missing ones count as 1."""
    return shape[-back] if back <= len(shape) else 1


def tile_padded(shape: Dims) -> Dims:
    """A shape in whole tiles; of rank 1 it becomes one of rank 2."""
    if len(shape) == 0:
        return shape
    if len(shape) == 1:
        shape = (1, *shape)
    return (*shape[:-2], round_up(shape[-2], TILE_SIZE), round_up(shape[-1], TILE_SIZE))


def to_rank(shape: Dims, rank: int) -> Dims:
    """Ones in front, or the leading dimensions multiplied together."""
    if len(shape) <= rank:
        return (1,) * (rank - len(shape)) + shape
    keep = rank - 1
    return (math.prod(shape[:-keep]), *shape[-keep:])


def infer_dims(shape: Sequence[int], volume: int) -> Dims:
    """A shape with its -1 resolved; the volume must match."""
    unknown = [index for index, size in enumerate(shape) if size == -1]
    require(len(unknown) <= 1, f"shape {list(shape)} has more than one -1")
    known = math.prod(size for size in shape if size != -1)
    if not unknown:
        require(known == volume, f"{volume} values do not fit the shape {list(shape)}")
        return tuple(shape)
    require(known != 0, f"the -1 in {list(shape)} could be anything: another dimension is 0")
    require(volume % known == 0, f"{volume} values do not fit the shape {list(shape)}")
    return tuple(volume // known if size == -1 else size for size in shape)


# -- views ------------------------------------------------------------------------------------------------------------


def view_flow(flow: Flow, shape: Dims, padded: Dims | None = None) -> Flow:
    """Another shape over the same buffer, with no more checks than the library has."""
    spec = flow.spec
    padded = shape if padded is None else padded
    if spec.volume == 0:
        require(math.prod(shape) == 0, f"an empty tensor has no view of shape {list(shape)}")
    config = spec.memory_config
    if config.memory_layout is TensorMemoryLayout.ND_SHARDED:
        config = _nd_view_config(spec, padded)
    elif config.is_sharded() and last(padded) != last(spec.padded_shape):
        shards = spec.shard_spec
        assert shards is not None
        require(
            shards.shape[1] == last(spec.padded_shape),
            f"shards of width {shards.shape[1]} cut the rows: their length cannot become {last(padded)}",
        )
        if not spec.is_tile:
            rows = shards.shape[0] * shards.shape[1] // last(padded)
            config = MemoryConfig(
                config.memory_layout,
                config.buffer_type,
                ShardSpec(shards.grid, (rows, last(padded)), shards.orientation),
            )
    tile = spec.tile if spec.is_tile else None
    out = padded_spec(shape, padded, spec.dtype, spec.layout, config, on_device=spec.on_device, tile=tile)
    if spec.on_device:
        _require_room(spec, out)
    return flow.view(out, _seen_as(spec, out))


def _require_room(old: Spec, new: Spec) -> None:
    size = old.num_pages * old.page_bytes
    needed = new.num_pages * new.page_bytes
    require(needed <= size, f"a buffer of {size} B is too small for a view {list(new.padded_shape)} of {needed} B")
    if not new.is_tile and not new.is_sharded:
        require(size % new.page_bytes == 0, f"a buffer of {size} B does not divide into rows of {new.page_bytes} B")


def _nd_view_config(spec: Spec, padded: Dims) -> MemoryConfig:
    config = spec.memory_config
    if padded == spec.padded_shape:
        return config
    rank = len(spec.padded_shape)
    require(
        rank < 2 and len(padded) == 2 and padded[0] == 1,
        f"n-dimensional shards of {list(spec.padded_shape)} have no view {list(padded)}",
    )
    nd = config.nd_shard_spec
    assert nd is not None
    shard = Shape((1, nd.shard_shape[-1] if rank else 1))
    return MemoryConfig(config.buffer_type, NdShardSpec(shard, nd.grid, nd.orientation, nd.shard_distribution_strategy))


def _seen_as(old: Spec, new: Spec) -> Step | None:
    """The step of the carrier: most views regroup rows; others read the buffer in storage order."""
    if new.shape == old.shape:
        return None
    if new.volume == old.volume:
        plain = not old.is_tile and old.padded_shape == old.shape and new.padded_shape == new.shape
        same_rows = last(old.shape) == last(new.shape) and last(old.padded_shape) == last(new.padded_shape)
        heights = last(old.shape, 2), last(new.shape, 2)
        step = old.tile.height if old.is_tile else 1
        if plain or (same_rows and (heights[0] == heights[1] or not any(height % step for height in heights))):
            return reshaped(new.shape)
    return Reread(old, new)


def checked_view_flow(flow: Flow, shape: Dims) -> Flow:
    """`ttnn.view`: a view that keeps the values where they belong."""
    spec = flow.spec
    if spec.shape == shape:
        return flow
    require(math.prod(shape) == spec.volume, f"{spec.volume} values do not fit the shape {list(shape)}")
    require(spec.on_device, "a view needs a tensor on a device", hint="Use ttnn.reshape.")
    require(last(spec.shape) == last(shape), f"the last dimension cannot become {last(shape)}: use ttnn.reshape")
    old, new, step = last(spec.shape, 2), last(shape, 2), spec.tile.height
    require(
        not spec.is_tile or old == new or not (old % step or new % step),
        f"the height of tiles cannot change from {old} to {new} in a view: use ttnn.reshape",
    )
    return perform_view(flow, shape, shape)


def perform_view(flow: Flow, shape: Dims, padded: Dims) -> Flow:
    spec = flow.spec
    if spec.shape == shape and spec.padded_shape == padded:
        return flow
    if len(shape) == 1:
        return view_flow(flow, shape)
    if spec.is_tile and (last(shape) % TILE_SIZE or last(shape, 2) % TILE_SIZE):
        return view_flow(flow, shape, tile_padded(shape))
    return view_flow(flow, shape, padded)


# -- reshapes ---------------------------------------------------------------------------------------------------------


def reshape_flow(
    flow: Flow,
    shape: Dims,
    padded: Dims | None = None,
    memory_config: MemoryConfig | None = None,
    *,
    subgrid: bool = False,
) -> Flow:
    """`ttnn.reshape` on a flow: a view where that is possible, else a copy."""
    spec = flow.spec
    padded = shape if padded is None else padded
    config = memory_config or spec.memory_config
    explicit = memory_config is not None
    same_shape = spec.shape == shape and spec.padded_shape == padded
    differs = not _same_memory(config, spec.memory_config)
    if same_shape and not differs:
        return flow
    volume = math.prod(shape)
    if spec.volume == 0:
        require(volume == 0, f"an empty tensor cannot become {list(shape)}")
        return view_flow(flow, shape, padded)
    require(volume != 0, f"{spec.volume} values cannot become {list(shape)}")
    if not spec.on_device:
        return view_flow(flow, shape, padded)
    if same_shape and not lacks_shards(config):
        return memory_flow(flow, config)
    if config.shard_spec is not None and config.nd_shard_spec is not None:
        config = MemoryConfig(config.memory_layout, config.buffer_type, config.shard_spec)
    if _is_nd(config) or _is_nd(spec.memory_config):
        between = reshape_flow(memory_flow(flow, DRAM_MEMORY_CONFIG), shape, padded, DRAM_MEMORY_CONFIG)
        return memory_flow(between, config)
    if _is_view(spec, shape, config):
        return perform_view(flow, shape, padded)
    if volume != spec.volume:
        whole_tiles = (
            spec.is_tile and len(padded) >= 2 and not (padded[-2] % spec.tile.height or padded[-1] % spec.tile.width)
        )
        require(
            whole_tiles and last(spec.padded_shape) == padded[-1],
            f"{spec.volume} values do not fit the shape {list(shape)}",
        )
        return view_flow(flow, shape, padded)
    if spec.is_tile:
        return _reshape_tiles(flow, shape, config, explicit, subgrid)
    return _reshape_rows(flow, shape, padded, config, subgrid)


def _is_nd(config: MemoryConfig) -> bool:
    return config.memory_layout is TensorMemoryLayout.ND_SHARDED


def _same_memory(a: MemoryConfig, b: MemoryConfig) -> bool:
    if a == b:
        return True
    same = a.memory_layout is b.memory_layout and a.buffer_type is b.buffer_type
    return same and not _is_nd(a) and a.shard_spec == b.shard_spec


def _is_view(spec: Spec, shape: Dims, config: MemoryConfig) -> bool:
    source = spec.memory_config
    if last(spec.shape) != last(shape) or config.is_sharded() != source.is_sharded() or config.is_l1 != source.is_l1:
        return False
    old, new = last(spec.shape, 2), last(shape, 2)
    return not spec.is_tile or old == new or not (old % TILE_SIZE or new % TILE_SIZE)


def _regroup(flow: Flow, shape: Dims, out: Spec, *, l1_bytes: int = 0) -> Flow:
    require(flow.spec.dtype in MOVABLE, f"values of {flow.spec.dtype} cannot be regrouped, only {_names(MOVABLE)} can")
    return flow.into(out, reshaped(shape), by="ReshapeViewDeviceOperation", l1_bytes=l1_bytes)


def _names(dtypes: frozenset[DataType]) -> str:
    return ", ".join(sorted(dtype.name.lower() for dtype in dtypes))


def _reshape_rows(flow: Flow, shape: Dims, padded: Dims, config: MemoryConfig, subgrid: bool) -> Flow:
    spec = flow.spec
    require(spec.rank > 0 and len(shape) > 0, "row-major tensors of rank 0 cannot be reshaped")
    old = (math.prod(spec.shape[:-1]), spec.shape[-1])
    flow = perform_view(flow, old, (math.prod(spec.padded_shape[:-1]), spec.padded_shape[-1]))
    source = flow.spec.memory_config
    if source.is_sharded():
        require(not subgrid, "sub_core_grids does not support shards")
        flow = unshard_flow(flow, MemoryConfig(INTERLEAVED, source.buffer_type))
    flat, flat_padded = (math.prod(shape[:-1]), shape[-1]), (math.prod(padded[:-1]), padded[-1])
    between = MemoryConfig(INTERLEAVED, config.buffer_type) if config.is_sharded() else config
    staged = _staging_bytes(old[1], flat[1], ROW_MAJOR_BYTES[spec.dtype], to_dram=not between.is_l1)
    flow = _regroup(flow, flat, padded_spec(flat, flat_padded, spec.dtype, spec.layout, between), l1_bytes=staged)
    if config.is_sharded():
        require(not subgrid, "sub_core_grids does not support shards")
        target = derived_shards(config, flow.spec, explicit=False, source=source.shard_spec)
        if target.is_sharded():
            flow = shard_flow(flow, target)
    return perform_view(flow, shape, padded)


def _staging_bytes(source: int, target: int, element: int, *, to_dram: bool) -> int:
    """L1 of the row buffers: two old rows and one new row, for each kernel."""
    old, new = source * element, target * element
    reading, writing = 2 * (round_up(old, 64) + 64), round_up(new, 64) + 16
    whole = old % new == 0 or new % old == 0
    kernels = 2 if whole and (new % 16 == 0 or not to_dram) else 1
    return kernels * (reading + writing)


def _reshape_tiles(flow: Flow, shape: Dims, config: MemoryConfig, explicit: bool, subgrid: bool) -> Flow:
    spec = flow.spec
    blocks = spec.dtype in BLOCK_FLOAT_DTYPES
    source = spec.memory_config
    old, new = to_rank(spec.shape, 3), to_rank(shape, 3)
    flow = perform_view(flow, old, tile_padded(old))
    require(
        not (config.is_sharded() or blocks) or not subgrid, "sub_core_grids does not support shards or block floats"
    )
    if blocks:
        if config.is_sharded() and source.is_sharded():
            flow = unshard_flow(flow, MemoryConfig(INTERLEAVED, source.buffer_type))
        flow = typecast_flow(flow, DataType.BFLOAT16)
    plain = MemoryConfig(INTERLEAVED, config.buffer_type)
    target = config
    if config.is_sharded():
        interleaved = padded_spec(new, tile_padded(new), flow.spec.dtype, spec.layout, plain)
        target = derived_shards(config, interleaved, explicit=explicit, source=source.shard_spec)
        if not blocks and flow.spec.is_sharded and not target.is_sharded():
            flow = unshard_flow(flow, MemoryConfig(INTERLEAVED, source.buffer_type))
    written = plain if blocks and config.is_sharded() else target
    flow = _regroup(flow, new, padded_spec(new, tile_padded(new), flow.spec.dtype, spec.layout, written))
    if blocks:
        flow = typecast_flow(flow, spec.dtype)
        if target.is_sharded():
            flow = shard_flow(flow, target)
    return perform_view(flow, shape, tile_padded(shape))


# -- shards of the result ---------------------------------------------------------------------------------------------


def derived_shards(config: MemoryConfig, out: Spec, *, explicit: bool, source: ShardSpec | None = None) -> MemoryConfig:
    """The sharded config of a reshaped tensor, on the cores of the given shards or of the input's."""
    if config.shard_spec is None and source is not None:
        config, explicit = MemoryConfig(config.memory_layout, config.buffer_type, source), False
    shards = config.shard_spec
    require(shards is not None, f"{config.brief()} has no shard spec, and neither has the input")
    assert shards is not None
    box = shards.grid.bounding_box()
    if box.size() != shards.num_cores():
        return MemoryConfig(INTERLEAVED, config.buffer_type)
    height, width = out.physical_shape
    step_down, step_across = _shard_steps(out, recommended=True)
    size = box.grid_size()
    by_rows = shards.orientation is ShardOrientation.ROW_MAJOR
    rows, columns = (size.y, size.x) if by_rows else (size.x, size.y)
    if config.memory_layout is BLOCK:
        shard_height, shard_width = shards.shape
        aligned = shard_height % step_down == 0 and shard_width % step_across == 0
        if explicit and aligned and rows * shard_height >= height and columns * shard_width >= width:
            return config
        down, across = _most_parts(height, rows, step_down), _most_parts(width, columns, step_across)
        if down == 0 or across == 0:
            return MemoryConfig(INTERLEAVED, config.buffer_type)
        x, y = (across, down) if by_rows else (down, across)
        end = CoreCoord(box.start.x + x - 1, box.start.y + y - 1)
        grid = CoreRangeSet([CoreRange(box.start, end)])
        shard = (round_up(div_up(height, down), step_down), round_up(div_up(width, across), step_across))
        return _as_sharded(out, config, shard, grid, shards.orientation, ShardDistributionStrategy.GRID_2D)
    require(config.memory_layout in (HEIGHT, WIDTH), f"{config.memory_layout} is no way to shard")
    cores = shards.num_cores()
    down_step, across_step = _shard_steps(out, recommended=False)
    pieces = (cores, 1) if config.memory_layout is HEIGHT else (1, cores)
    shard = (round_up(div_up(height, pieces[0]), down_step), round_up(div_up(width, pieces[1]), across_step))
    strategy = ShardDistributionStrategy.ROUND_ROBIN_1D
    return _as_sharded(out, config, shard, shards.grid, shards.orientation, strategy)


def _shard_steps(spec: Spec, *, recommended: bool) -> tuple[int, int]:
    if spec.layout is Layout.TILE:
        return spec.tile.height, spec.tile.width
    size = ROW_MAJOR_BYTES[spec.dtype]
    return 1, math.lcm(RECOMMENDED_ROW_BYTES, size) // size if recommended else 1


def _as_sharded(
    out: Spec,
    config: MemoryConfig,
    shard: tuple[int, int],
    grid: CoreRangeSet,
    orientation: ShardOrientation,
    strategy: object,
) -> MemoryConfig:
    """Shards as the library creates them, n-dimensional first: their two-dimensional layout may then differ."""
    nd = NdShardSpec(Shape(shard), grid, orientation, strategy)
    return Spec.of(out.shape, out.dtype, out.layout, MemoryConfig(config.buffer_type, nd)).memory_config


def _most_parts(size: int, limit: int, step: int) -> int:
    return next((parts for parts in range(limit, 0, -1) if size % parts == 0 and (size // parts) % step == 0), 0)
