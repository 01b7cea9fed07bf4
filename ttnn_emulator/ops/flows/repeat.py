"""Repetition of a flow along its dimensions, by the newer kernel where that applies and by the older one elsewhere."""

from __future__ import annotations

import math

import torch

from ttnn_emulator.enums import BufferType, DataType, Layout, ShardOrientation, TensorMemoryLayout
from ttnn_emulator.errors import require
from ttnn_emulator.execution.call_context import current_board
from ttnn_emulator.ops.data_movement.layout import layout_flow
from ttnn_emulator.ops.flows.layout import untilize_flow
from ttnn_emulator.ops.flows.memory import memory_flow, shard_flow
from ttnn_emulator.ops.flows.permute import aligned_rows
from ttnn_emulator.ops.flows.reshape import Dims, checked_view_flow, last
from ttnn_emulator.ops.flows.value_flow import Flow, Step
from ttnn_emulator.ops.support.common_checks import require_on_device
from ttnn_emulator.ops.support.derived_shards import BLOCK, HEIGHT, WIDTH, cuts_width, fresh_shards, lacks_shards
from ttnn_emulator.tensors.memory_config import DRAM_MEMORY_CONFIG, L1_MEMORY_CONFIG, MemoryConfig, ShardSpec
from ttnn_emulator.tensors.shapes import TILE_SIZE, round_up
from ttnn_emulator.tensors.spec import ROW_MAJOR_BYTES, Spec

INTERLEAVED = TensorMemoryLayout.INTERLEAVED
ROW_DTYPES = frozenset({DataType.UINT16, DataType.BFLOAT16, DataType.UINT32, DataType.INT32, DataType.FLOAT32})
# tt-metal v0.81.1: ttnn/cpp/ttnn/operations/data_movement/repeat/codegen/repeat_codegen_supported.cpp,
# kShardRowHotspotMinCores
HOTSPOT_CORES = 8  # from this many shards per row on, the older kernel reads faster


def _repeated(repeats: Dims) -> Step:
    return lambda values: values.repeat(repeats)


def _grown(shape: Dims, repeats: Dims) -> Dims:
    return tuple(size * times for size, times in zip(shape, repeats))


def _in_buffer(buffer: BufferType) -> MemoryConfig:
    return MemoryConfig(INTERLEAVED, buffer)


def repeat_flow(
    flow: Flow, repeats: Dims, memory_config: MemoryConfig | None = None, output: Spec | None = None
) -> Flow:
    """`ttnn.repeat` on a flow. Fewer numbers than dimensions repeat the last ones, more add dimensions in front."""
    source = flow.spec
    flow, repeats = _same_rank(flow, repeats)
    spec = flow.spec
    config = _asked_for(source, memory_config, output)
    _require_output(source, _grown(spec.shape, repeats), memory_config, output)
    resolved = _resolved(spec, repeats, config)
    if not _is_demoted(spec, repeats, resolved) and _is_generated(spec, repeats, resolved):
        return _by_new_kernel(flow, repeats, resolved)
    return _by_old_kernel(flow, repeats, config, memory_config, output)


def _same_rank(flow: Flow, repeats: Dims) -> tuple[Flow, Dims]:
    rank = flow.spec.rank
    if rank < len(repeats):
        return checked_view_flow(flow, (1,) * (len(repeats) - rank) + flow.spec.shape), repeats
    return flow, (1,) * (rank - len(repeats)) + repeats


def _asked_for(spec: Spec, config: MemoryConfig | None, output: Spec | None) -> MemoryConfig:
    if output is not None:
        return output.memory_config
    if config is not None:
        return config
    source = spec.memory_config
    return MemoryConfig(source.memory_layout, source.buffer_type) if source.is_sharded() else source


def _require_output(spec: Spec, shape: Dims, config: MemoryConfig | None, output: Spec | None) -> None:
    if output is None:
        return
    if config is not None:
        found = output.memory_config
        same = config.buffer_type is found.buffer_type and config.memory_layout is found.memory_layout
        require(
            same and config.shard_spec in (None, found.shard_spec),
            f"the output is in {found.brief()}, not in {config.brief()}",
        )
    require(output.dtype is spec.dtype, f"the output is {output.dtype}, not {spec.dtype}")
    require(output.layout is spec.layout, f"the output is in {output.layout}, the input in {spec.layout}")
    require(output.shape == shape, f"the output has shape {list(output.shape)}, not {list(shape)}")


# -- shards of the result ---------------------------------------------------------------------------------------------


def _single(repeats: Dims) -> tuple[int, int] | None:
    """The one dimension that is repeated, and how often."""
    found = [(dim, times) for dim, times in enumerate(repeats) if times != 1]
    return found[0] if len(found) == 1 else None


def _resolved(spec: Spec, repeats: Dims, config: MemoryConfig) -> MemoryConfig:
    """A config that names only the kind of its shards, completed."""
    if not lacks_shards(config) or not spec.on_device:
        return config
    shape = _grown(spec.shape, repeats)
    single = _single(repeats)
    if single is not None and spec.shard_spec is not None and _repeats_in_place(spec, config, *single):
        height, width = spec.shard_spec.shape
        dim, times = single
        shard = (height, width * times) if dim == spec.rank - 1 else (height * times, width)
        shards = ShardSpec(spec.shard_spec.grid, shard, spec.shard_spec.orientation)
        return MemoryConfig(config.memory_layout, config.buffer_type, shards)
    padded = Spec.of(shape, spec.dtype, spec.layout, _in_buffer(config.buffer_type)).padded_shape
    made = _made_shards(spec, padded, config.memory_layout)
    if made is None:
        return _in_buffer(config.buffer_type)
    return MemoryConfig(config.memory_layout, config.buffer_type, made)


def _made_shards(
    spec: Spec, padded: Dims, layout: TensorMemoryLayout, orientation: ShardOrientation | None = None
) -> ShardSpec | None:
    if layout not in (HEIGHT, WIDTH, BLOCK) or math.prod(padded) == 0:
        return None
    if orientation is None and spec.shard_spec is not None:
        orientation = spec.shard_spec.orientation
    grid = current_board().grid
    made = aligned_rows(fresh_shards(grid, padded, layout, orientation, tiles=spec.is_tile), spec, last(padded), layout)
    if made is not None:
        return made
    tiles = fresh_shards(grid, padded, layout, orientation)
    width = tiles.shape[1]
    whole = width * ROW_MAJOR_BYTES[spec.dtype] % 16 == 0 and last(padded) % width == 0
    return tiles if whole else None


def _repeats_in_place(spec: Spec, config: MemoryConfig, dim: int, times: int) -> bool:
    """Whether each core can repeat its own shard."""
    source, shards = spec.memory_config, spec.shard_spec
    if not source.is_sharded() or source.is_dram or shards is None or len(spec.padded_shape) < 2:
        return False
    height = math.prod(spec.padded_shape[:-1])
    if height % shards.shape[0] or spec.padded_shape[-1] % shards.shape[1]:
        return False
    if spec.is_tile and (last(spec.shape) % TILE_SIZE or last(spec.shape, 2) % TILE_SIZE):
        return False
    if not spec.is_tile and dim == spec.rank - 1 and cuts_width(source):
        return False
    if config.is_sharded():
        if config.is_dram or config.memory_layout is not source.memory_layout:
            return False
        if config.shard_spec is not None and config.shard_spec.grid != shards.grid:
            return False
    if dim == spec.rank - 1 or times <= 1:
        return True
    group = math.prod(spec.padded_shape[dim:-1])
    return group != 0 and shards.shape[0] % group == 0


# -- the newer kernel -------------------------------------------------------------------------------------------------


def _goes_through_rows(spec: Spec, repeats: Dims) -> bool:
    odd = last(spec.shape) % TILE_SIZE or last(spec.shape, 2) % TILE_SIZE
    return bool(spec.is_tile and spec.rank >= 2 and odd and (repeats[-1] > 1 or repeats[-2] > 1))


def _is_generated(spec: Spec, repeats: Dims, config: MemoryConfig) -> bool:
    if not spec.on_device or not 2 <= spec.rank <= 4 or max(repeats) <= 1 or 0 in repeats:
        return False
    if spec.is_tile and spec.tile.tile_shape != (TILE_SIZE, TILE_SIZE):
        return False
    if config.is_sharded() and config.shard_spec is None:
        return False
    if spec.is_tile and not _goes_through_rows(spec, repeats):
        return True
    return spec.dtype is not DataType.BFLOAT8_B


def _pages_match(config: MemoryConfig, shape: Dims, *, tiles: bool) -> bool:
    """Whether a shard holds whole pages, so that the kernel can address it like interleaved memory."""
    if not config.is_sharded():
        return True
    shards = config.shard_spec
    if shards is None or len(shape) < 2:
        return False
    step = TILE_SIZE if tiles else 1
    height = math.prod(shape[:-2]) * round_up(shape[-2], step)
    width = round_up(shape[-1], step)
    down, across = shards.shape
    if not down or not across or height % down or width % across:
        return False
    rows, columns = height // down, width // across
    if not tiles and columns != 1:
        return False
    if config.memory_layout is BLOCK:
        size = shards.grid.bounding_box().grid_size()
        by_rows = shards.orientation is ShardOrientation.ROW_MAJOR
        return ((size.y, size.x) if by_rows else (size.x, size.y)) == (rows, columns)
    if (columns if config.memory_layout is HEIGHT else rows) != 1:
        return False
    return rows * columns <= shards.num_cores()


def _is_demoted(spec: Spec, repeats: Dims, config: MemoryConfig) -> bool:
    """Cases that the library leaves to the older kernel because it is faster there."""
    source, shards = spec.memory_config, spec.shard_spec
    if shards is None or not source.is_sharded():
        return False
    identical = _pages_match(source, spec.shape, tiles=spec.is_tile)
    extent = shards.grid.bounding_box().grid_size()
    in_rows = source.memory_layout is HEIGHT and source.is_l1
    only_last = repeats[-1] != 1 and all(times == 1 for times in repeats[:-1])
    wide_rows = in_rows and not spec.is_tile and config.memory_layout is HEIGHT and spec.rank >= 2 and identical
    if wide_rows and only_last and extent.x > extent.y:
        return True
    single = _single(repeats)
    if not spec.is_tile and not identical and single is not None and _repeats_in_place(spec, config, *single):
        return True
    return in_rows and spec.rank >= 3 and _is_hotspot(spec, repeats, config, identical, extent.x, extent.y)


def _is_hotspot(spec: Spec, repeats: Dims, config: MemoryConfig, identical: bool, columns: int, rows: int) -> bool:
    if not spec.is_tile and (config.is_sharded() or not config.is_l1):
        return False
    if not identical or _goes_through_rows(spec, repeats):
        return False
    legs = [dim for dim, times in enumerate(repeats) if times > 1]
    first = (legs[0] if spec.is_tile else legs[-1]) if legs else spec.rank
    return first + 2 < spec.rank and rows == 1 and columns >= HOTSPOT_CORES


def _by_new_kernel(flow: Flow, repeats: Dims, config: MemoryConfig) -> Flow:
    source = flow.spec
    shape = _grown(source.shape, repeats)
    through_rows = _goes_through_rows(source, repeats)
    if source.is_sharded and (
        through_rows or not _pages_match(source.memory_config, source.shape, tiles=source.is_tile)
    ):
        flow = memory_flow(flow, DRAM_MEMORY_CONFIG)
    if through_rows:
        flow = untilize_flow(flow)
    spec = flow.spec
    in_place = not through_rows and _pages_match(config, shape, tiles=spec.is_tile)
    written = config if in_place else _in_buffer(config.buffer_type)
    flow = flow.into(
        Spec.of(shape, spec.dtype, spec.layout, written), _repeated(repeats), by="RepeatCodegenDeviceOperation"
    )
    if through_rows:
        flow = layout_flow(flow, Layout.TILE, source.dtype)
    return memory_flow(flow, config)


# -- the older kernel -------------------------------------------------------------------------------------------------


def _by_old_kernel(
    flow: Flow, repeats: Dims, config: MemoryConfig, asked: MemoryConfig | None, output: Spec | None
) -> Flow:
    source = flow.spec
    if 0 in repeats:
        empty = asked or _in_buffer(source.memory_config.buffer_type)
        require_on_device(source)
        shape = _grown(source.shape, repeats)
        return flow.into(Spec.of(shape, source.dtype, source.layout, empty), _repeated(repeats), by=None)
    require(source.rank > 0, "a tensor of rank 0 cannot be repeated")
    orientation = source.shard_spec.orientation if source.shard_spec is not None else None
    if all(times == 1 for times in repeats):
        return memory_flow(flow, _kept(source, config, orientation))
    single = _single(repeats)
    in_place = source.is_sharded and single is not None and _repeats_in_place(source, config, *single)
    if not in_place and source.is_sharded:
        flow = memory_flow(flow, L1_MEMORY_CONFIG)
    written = config if in_place or not config.is_sharded() else _in_buffer(config.buffer_type)
    whole_tiles = (
        source.is_tile and source.rank >= 2 and not (source.shape[-1] % TILE_SIZE or source.shape[-2] % TILE_SIZE)
    )
    if source.is_tile and not whole_tiles:
        flow = layout_flow(flow, Layout.ROW_MAJOR)
    for dim in range(source.rank - 1, -1, -1):
        if repeats[dim] != 1:
            flow = _repeat_dim(flow, dim, repeats[dim], written)
    if source.is_tile and not whole_tiles:
        flow = layout_flow(flow, Layout.TILE, source.dtype)
    if in_place or not config.is_sharded():
        return flow
    if lacks_shards(config):
        made = _made_shards(flow.spec, flow.spec.padded_shape, config.memory_layout, orientation)
        if made is None:
            return flow
        config = MemoryConfig(config.memory_layout, config.buffer_type, made)
    return shard_flow(flow, config, None, output) if config.shard_spec is not None else memory_flow(flow, config)


def _kept(spec: Spec, config: MemoryConfig, orientation: ShardOrientation | None) -> MemoryConfig:
    if not lacks_shards(config):
        return config
    source = spec.memory_config
    if source.memory_layout is config.memory_layout and source.buffer_type is config.buffer_type:
        return source
    made = _made_shards(spec, spec.padded_shape, config.memory_layout, orientation)
    if made is None:
        return _in_buffer(config.buffer_type)
    return MemoryConfig(config.memory_layout, config.buffer_type, made)


def _repeat_dim(flow: Flow, dim: int, times: int, config: MemoryConfig) -> Flow:
    spec = flow.spec
    require_on_device(spec)
    require(spec.is_tile or spec.dtype in ROW_DTYPES, f"rows of {spec.dtype} cannot be repeated")
    shape = tuple(size * times if index == dim else size for index, size in enumerate(spec.shape))
    if lacks_shards(config):
        assert spec.shard_spec is not None
        height, width = spec.shard_spec.shape
        shard = (height, width * times) if dim == spec.rank - 1 else (height * times, width)
        shards = ShardSpec(spec.shard_spec.grid, shard, spec.shard_spec.orientation)
        config = MemoryConfig(config.memory_layout, config.buffer_type, shards)
    repeats = tuple(times if index == dim else 1 for index in range(spec.rank))
    return flow.into(Spec.of(shape, spec.dtype, spec.layout, config), _repeated(repeats), by="RepeatDeviceOperation")


def interleaved_step(times: int, dim: int) -> Step:
    """Each element repeated `times` times, adjacent to itself."""
    return lambda values: torch.repeat_interleave(values, times, dim)
