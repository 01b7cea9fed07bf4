"""Tilize and untilize on specs, each with and without padding."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from ttnn_emulator.enums import BLOCK_FLOAT_DTYPES, BufferType, DataType, Layout, ShardOrientation, TensorMemoryLayout
from ttnn_emulator.errors import ChipFault, require
from ttnn_emulator.execution.call_context import current_board
from ttnn_emulator.hardware.core_grid import CoreCoord, CoreRange, CoreRangeSet
from ttnn_emulator.numerics.formats.carriers import CARRIER
from ttnn_emulator.numerics.formats.casts import repacked
from ttnn_emulator.ops.flows.memory import page_alignment_of
from ttnn_emulator.ops.flows.reshape import Dims, last, reshape_flow, to_rank
from ttnn_emulator.ops.flows.value_flow import Flow, Step
from ttnn_emulator.ops.support.common_checks import require_on_device
from ttnn_emulator.ops.support.derived_shards import BLOCK, HEIGHT, WIDTH
from ttnn_emulator.tensors.memory_config import MemoryConfig, ShardSpec
from ttnn_emulator.tensors.shapes import DEFAULT_TILE, TILE_SIZE, Tile, div_up, round_up
from ttnn_emulator.tensors.spec import ROW_MAJOR_BYTES, Spec, padded_spec

ND = TensorMemoryLayout.ND_SHARDED
INTERLEAVED = TensorMemoryLayout.INTERLEAVED
TILIZABLE = frozenset(DataType) - BLOCK_FLOAT_DTYPES
PADDED_TILIZABLE = TILIZABLE - {DataType.UINT8}
TILIZE, TILIZE_PADDED = "TilizeDeviceOperation", "TilizeWithValPaddingDeviceOperation"
UNTILIZE, UNTILIZE_UNPADDED = "UntilizeDeviceOperation", "UntilizeWithUnpaddingDeviceOperation"


@dataclass(frozen=True)
class Run:
    """Kernel options that the checks depend on."""

    multicore: bool = True
    subgrid: CoreRangeSet | None = None


WHOLE = Run()


def squeezed_to_4d(flow: Flow) -> Flow:
    """A tensor of more dimensions as one of four."""
    spec = flow.spec
    if spec.rank <= 4:
        return flow
    shape = spec.shape
    while len(flow.spec.shape) > 4 and flow.spec.shape[0] == 1:
        flow = reshape_flow(flow, flow.spec.shape[1:], flow.spec.padded_shape[1:])
    return flow if len(flow.spec.shape) <= 4 else reshape_flow(flow, to_rank(shape, 4))


def _rows(spec: Spec) -> int:
    width = last(spec.padded_shape)
    return math.prod(spec.padded_shape) // width if width else 0


def _repack(source: DataType, target: DataType) -> Step | None:
    wide = source is DataType.FLOAT32 or target is DataType.BFLOAT8_B
    return repacked(source, target, fp32_dest=wide)


# -- rows to tiles ----------------------------------------------------------------------------------------------------


def tilize_flow(
    flow: Flow,
    memory_config: MemoryConfig | None = None,
    dtype: DataType | None = None,
    *,
    tile: Tile = DEFAULT_TILE,
    run: Run = WHOLE,
) -> Flow:
    """Tilize rows that are already whole tiles."""
    spec = flow.spec
    config, dtype = memory_config or spec.memory_config, dtype or spec.dtype
    if math.prod(spec.padded_shape) == 0:
        require_on_device(spec)
        return flow.into(Spec.of(spec.shape, dtype, Layout.TILE, config, tile=_own(tile)), by=None)
    if spec.rank > 4:
        inner = tilize_flow(squeezed_to_4d(flow), config, dtype, tile=tile, run=run)
        return reshape_flow(inner, spec.shape)
    require_on_device(spec)
    retile = spec.is_tile and spec.tile.tile_shape != tile.tile_shape
    require(retile or not spec.is_tile, "the tensor is in tiles already")
    require(tile.width == TILE_SIZE, f"tiles must be 32 wide, not {tile.width}")
    require(
        tile.height == TILE_SIZE or dtype not in BLOCK_FLOAT_DTYPES,
        f"{dtype} needs tiles of 32 rows, not {tile.height}",
    )
    width, height = last(spec.padded_shape), last(spec.padded_shape, 2)
    require(
        width % tile.width == 0 and (retile or height % tile.height == 0),
        f"{height} x {width} does not consist of whole tiles of {list(tile.tile_shape)}",
    )
    require(spec.dtype in TILIZABLE, f"{spec.dtype} cannot be tilized")
    if spec.is_sharded:
        require(run.multicore, "shards need use_multicore")
        require(
            spec.page_bytes % page_alignment_of(spec.memory_config) == 0,
            f"pages of {spec.page_bytes} B of a sharded input must be aligned",
        )
    step = _repack(spec.dtype, dtype)
    if config.is_sharded() and config.memory_layout is not ND and _tilizes_in_place(spec, config, tile, run):
        kept = MemoryConfig(spec.memory_config.memory_layout, config.buffer_type, spec.shard_spec)
        out = padded_spec(spec.shape, spec.padded_shape, dtype, Layout.TILE, kept, tile=_own(tile))
        return flow.into(out, step, by=TILIZE, how=run.multicore)
    out = Spec.of(spec.shape, dtype, Layout.TILE, config, tile=_own(tile))
    return flow.into(out, step, by=TILIZE, how=run.multicore)


def _own(tile: Tile) -> Tile | None:
    return None if tile == DEFAULT_TILE else tile


def _tilizes_in_place(spec: Spec, config: MemoryConfig, tile: Tile, run: Run) -> bool:
    """Each core tilizes its own shard; the output then has the input's shards, whatever was requested."""
    source = spec.memory_config
    if source.memory_layout not in (HEIGHT, WIDTH, BLOCK) or not (source.is_l1 and config.is_l1):
        return False
    if not spec.is_tile and tile.height < TILE_SIZE:
        return False
    if config.memory_layout is not source.memory_layout or run.subgrid is not None:
        return False
    shards = spec.shard_spec if source.memory_layout is HEIGHT else config.shard_spec
    require(shards is not None, f"{config.brief()} has no shard spec")
    assert shards is not None and spec.shard_spec is not None
    if shards.shape[0] % tile.height or shards.shape[1] % tile.width:
        return False
    columns, rows = current_board().grid
    whole = CoreRangeSet([CoreRange(CoreCoord(0, 0), CoreCoord(columns - 1, rows - 1))])
    return whole.contains(spec.shard_spec.grid)


def tilize_padded_flow(
    flow: Flow,
    padded: Dims,
    memory_config: MemoryConfig | None = None,
    dtype: DataType | None = None,
    *,
    run: Run = WHOLE,
) -> Flow:
    """Tilize and pad to a padded shape. A tiled tensor is unchanged."""
    spec = flow.spec
    if spec.is_tile:
        return flow
    config, dtype = memory_config or spec.memory_config, dtype or spec.dtype
    if math.prod(spec.padded_shape) == 0:
        require_on_device(spec)
        return flow.into(
            Spec.of(padded, dtype, Layout.TILE, config),
            lambda _: torch.zeros(padded, dtype=CARRIER[dtype]),
            by=None,
        )
    if spec.rank > 4:
        inner = tilize_padded_flow(squeezed_to_4d(flow), to_rank(padded, 4), config, dtype, run=run)
        return reshape_flow(inner, spec.shape)
    require_on_device(spec)
    require(spec.dtype in PADDED_TILIZABLE, f"{spec.dtype} cannot be padded and tilized")
    shape = spec.shape if spec.rank != 1 else (1, *spec.shape)
    target = padded if spec.rank != 1 or len(padded) > 1 else (1, *padded)
    require(
        len(target) >= len(shape) and all(small <= large for small, large in zip(shape, target)),
        f"{list(spec.shape)} does not fit into {list(padded)}",
    )
    height, width = last(padded, 2), last(padded)
    require(height % TILE_SIZE == 0 and width % TILE_SIZE == 0, f"{list(padded)} does not consist of whole tiles")
    if spec.is_sharded and spec.memory_config.memory_layout is not HEIGHT:
        require(
            spec.page_bytes % page_alignment_of(spec.memory_config) == 0,
            f"pages of {spec.page_bytes} B of a sharded input must be aligned",
        )
    if _pads_in_place(spec, padded, config, run):
        assert spec.shard_spec is not None
        shards = ShardSpec(
            spec.shard_spec.grid, (math.prod(padded[:-1]), spec.shard_spec.shape[1]), spec.shard_spec.orientation
        )
        config = MemoryConfig(spec.memory_config.memory_layout, config.buffer_type, shards)
    out = padded_spec(spec.shape, padded, dtype, Layout.TILE, config)
    return flow.into(out, _repack(spec.dtype, dtype), by=TILIZE_PADDED, how=run.multicore)


def _pads_in_place(spec: Spec, padded: Dims, config: MemoryConfig, run: Run) -> bool:
    source = spec.memory_config
    if not (source.is_l1 and config.is_l1) or source.memory_layout is not WIDTH or config.memory_layout is not WIDTH:
        return False
    rank = len(spec.padded_shape)
    same = all(index == rank - 2 or spec.padded_shape[index] == padded[index] for index in range(rank))
    return same and run.subgrid is None


# -- tiles to rows ----------------------------------------------------------------------------------------------------


def untilized(dtype: DataType) -> DataType:
    return DataType.BFLOAT16 if dtype is DataType.BFLOAT8_B else dtype


def untilize_flow(
    flow: Flow, memory_config: MemoryConfig | None = None, *, run: Run = WHOLE, native: bool = False
) -> Flow:
    """Untilize; interleaved tensors lose their padding, shards keep it. `native` forces the older kernel."""
    spec = flow.spec
    config = memory_config or spec.memory_config
    if spec.volume == 0:
        require_on_device(spec)
        if not spec.is_sharded and spec.shape != spec.padded_shape:
            return untilize_unpadded_flow(flow, tuple(spec.shape), config, run=run)
        return _untilize(flow, config, run)
    unpads = not spec.is_sharded and spec.shape != spec.padded_shape
    if spec.rank > 4 and not (native and unpads):
        inner = untilize_flow(squeezed_to_4d(flow), memory_config, run=run, native=native)
        return reshape_flow(inner, spec.shape, spec.padded_shape)
    if unpads:
        if not native and _is_generated(spec, config, run):
            require_on_device(spec)
            out = Spec.of(spec.shape, untilized(spec.dtype), Layout.ROW_MAJOR, config)
            return flow.into(out, repacked(spec.dtype, out.dtype), by=UNTILIZE, how=run.multicore)
        return untilize_unpadded_flow(flow, spec.shape, config, run=run)
    return _untilize(flow, config, run)


def _is_generated(spec: Spec, config: MemoryConfig, run: Run) -> bool:
    """The newer kernel, which takes ranks that the older one does not."""
    return (
        spec.is_tile
        and spec.dtype is DataType.BFLOAT16
        and not config.is_sharded()
        and run == WHOLE
        and spec.tile == DEFAULT_TILE
    )


def _untilize(flow: Flow, config: MemoryConfig, run: Run) -> Flow:
    spec = flow.spec
    width, height = last(spec.padded_shape), _rows(spec)
    require_on_device(spec)
    require(spec.is_tile, "the tensor is in rows already")
    require(width % TILE_SIZE == 0 and height % TILE_SIZE == 0, f"{height} x {width} does not consist of whole tiles")
    if run.subgrid is not None:
        require(not spec.is_sharded and not config.is_sharded(), "sub_core_grids does not support shards")
        require(run.multicore, "sub_core_grids needs use_multicore")
        require(height in (0, spec.tile.height), f"sub_core_grids needs a tensor one tile high, not {height} rows")
    dtype = untilized(spec.dtype)
    if config.is_sharded():
        shard_width = _shard_shape(config)[1]
        require(
            shard_width * ROW_MAJOR_BYTES[dtype] % page_alignment_of(config) == 0,
            f"rows of shards of width {shard_width} must be aligned",
        )
        require(config.memory_layout is not BLOCK or config.is_l1, "blocks cannot be sharded over DRAM")
    if not run.multicore:
        for side in (spec.memory_config, config):
            if side.is_sharded():
                shard = _shard_shape(side)
                even = width % shard[1] == 0 and height % shard[0] == 0 and shard[1] % TILE_SIZE == 0
                require(even, f"shards of {list(shard)} must divide {height} x {width} on a single core")
    out = padded_spec(spec.shape, spec.padded_shape, dtype, Layout.ROW_MAJOR, config)
    return flow.into(out, repacked(spec.dtype, dtype), by=UNTILIZE, how=run.multicore)


def _shard_shape(config: MemoryConfig) -> tuple[int, int]:
    if config.shard_spec is not None:
        return config.shard_spec.extent
    require(config.nd_shard_spec is not None, f"{config.brief()} has no shard spec")
    assert config.nd_shard_spec is not None
    shape = tuple(config.nd_shard_spec.shard_shape)
    return last(shape, 2), last(shape)


def untilize_unpadded_flow(
    flow: Flow, shape: Dims, memory_config: MemoryConfig | None = None, *, run: Run = WHOLE
) -> Flow:
    """Untilize and unpad to `shape`."""
    spec = flow.spec
    config = memory_config or spec.memory_config
    require(len(shape) >= spec.rank, f"an end for each of {spec.rank} dimensions is needed, not {len(shape)}")
    shape = shape[: spec.rank]
    if spec.volume == 0:
        require_on_device(spec)
        fits = math.prod(shape) == 0 and all(new <= old for new, old in zip(shape, spec.padded_shape))
        require(fits, f"an empty tensor {list(spec.shape)} cannot become {list(shape)}")
    elif spec.rank > 4:
        inner = untilize_unpadded_flow(squeezed_to_4d(flow), to_rank(shape, 4), config, run=run)
        return reshape_flow(inner, shape)
    require_on_device(spec)
    require(spec.is_tile, "the tensor is in rows already")
    require(not spec.is_sharded or run.subgrid is None, "sub_core_grids does not support shards")
    dtype = untilized(spec.dtype)
    target = _unpadded_config(spec, shape, config)
    out = Spec.of(shape, dtype, Layout.ROW_MAJOR, target)
    if spec.is_sharded:
        _require_unpaddable(spec, shape, config, out)
    convert = repacked(spec.dtype, dtype)
    if shape == spec.shape:
        return flow.into(out, convert, by=UNTILIZE_UNPADDED, how=run.multicore)
    cut = tuple(slice(size) for size in shape)
    step = lambda values: values[cut] if convert is None else convert(values[cut])  # noqa: E731
    return flow.into(out, step, by=UNTILIZE_UNPADDED, how=run.multicore)


def uncovering(spec: Spec, shape: Dims) -> Step:
    """`untilize_unpadded_flow` of a carrier with its padding, to a shape that some of the padding becomes part of."""
    convert = repacked(spec.dtype, untilized(spec.dtype))
    stored = to_rank(spec.padded_shape, 4) if spec.rank > 4 else spec.padded_shape
    wanted = to_rank(shape, len(stored))
    cut = tuple(slice(size) for size in wanted)

    def step(values: torch.Tensor) -> torch.Tensor:
        if any(want > have for want, have in zip(wanted, stored)):
            raise ChipFault(f"tiles of {list(spec.padded_shape)} do not fill {list(shape)}: the rest is never written")
        part = values.reshape(stored)[cut].reshape(shape)
        return part.clone() if convert is None else convert(part)

    return step


def _unpadded_config(spec: Spec, shape: Dims, config: MemoryConfig) -> MemoryConfig:
    """The result's shards: derived from the remaining rows, on the input's cores or as requested."""
    if not config.is_sharded():
        return config
    source = spec.memory_config
    if not source.is_sharded():
        shards = config.shard_spec
        require(shards is not None, f"{config.brief()} has no shard spec")
        assert shards is not None
        return _divided(config.memory_layout, config, shards, shape, spec)
    if spec.shard_spec is None or config.memory_layout is not source.memory_layout:
        return config
    return _divided(source.memory_layout, config, spec.shard_spec, shape, spec, of_input=True)


def _divided(
    layout: TensorMemoryLayout,
    config: MemoryConfig,
    shards: ShardSpec,
    shape: Dims,
    spec: Spec,
    *,
    of_input: bool = False,
) -> MemoryConfig:
    height, width = math.prod(shape[:-1]), last(shape)
    tile_height, tile_width = spec.tile.height, spec.tile.width
    kept_height, kept_width = shards.shape
    cores = shards.num_cores()
    if layout is WIDTH:
        across = kept_width if of_input else round_up(div_up(width, cores), tile_width)
        new = (height, across)
    elif layout is BLOCK:
        size = shards.grid.bounding_box().grid_size()
        by_rows = shards.orientation is ShardOrientation.ROW_MAJOR
        rows, columns = (size.y, size.x) if by_rows else (size.x, size.y)
        new = (round_up(div_up(height, rows), tile_height), round_up(div_up(width, columns), tile_width))
    elif of_input:
        matrix = last(spec.padded_shape, 2) * last(spec.padded_shape)
        batch = max(1, kept_height * kept_width // max(1, matrix))
        new = (batch * last(shape, 2) if batch > 1 else round_up(div_up(height, cores), tile_height), width)
    else:
        new = (round_up(div_up(height, cores), tile_height), kept_width)
    if spec.volume == 0:
        new = (new[0] or kept_height, new[1] or kept_width)
    return MemoryConfig(layout, config.buffer_type, ShardSpec(shards.grid, new, shards.orientation))


def _require_unpaddable(spec: Spec, shape: Dims, config: MemoryConfig, out: Spec) -> None:
    """What the kernels for sharded inputs can write."""
    source, layout = spec.memory_config, spec.memory_config.memory_layout
    if spec.shard_spec is None:
        return
    require(spec.volume == 0 or source.is_l1, f"shards of the input must be in L1, not {source.brief()}")
    require(config.memory_layout is not ND, "two-dimensional shards cannot become n-dimensional ones")
    matrix = last(spec.padded_shape, 2) * last(spec.padded_shape)
    single = spec.volume == 0 or math.prod(spec.padded_shape) // matrix == 1
    same, sharded = config.memory_layout is layout, config.is_sharded()
    if same:
        require(
            config.buffer_type is BufferType.L1, f"shards like those of the input must be in L1, not {config.brief()}"
        )
    if layout is HEIGHT:
        require(same or not sharded, f"{source.brief()} cannot become {config.brief()}")
        return
    crosses = sharded and not same
    if crosses:
        require(config.memory_layout in (WIDTH, BLOCK), f"{source.brief()} cannot become {config.brief()}")
        require(config.shard_spec is not None, f"{config.brief()} has no shard spec")
        assert config.shard_spec is not None
        require(config.shard_spec.shape[1] == spec.shard_spec.shape[1], "both must have shards of the same width")
        across = _columns(spec.shard_spec, layout)
        found = div_up(last(out.padded_shape), config.shard_spec.shape[1])
        require(across == found, f"{across} shards side by side cannot become {found}")
    if layout is BLOCK:
        require(single, "blocks of a batch of matrices are not untilized")
        return
    require(
        all(old == new for old, new in zip(spec.padded_shape[:-2], out.padded_shape[:-2])),
        f"a batch of {list(spec.padded_shape[:-2])} cannot become {list(out.padded_shape[:-2])}",
    )
    old, new = last(spec.padded_shape), last(out.padded_shape)
    if same:
        full = old == new or div_up(new, spec.shard_spec.shape[1]) == spec.shard_spec.num_cores()
        require(full, f"a width of {new} leaves cores of the input without a shard")
    else:
        require(single, "shards of the width of a batch of matrices are not untilized")
        require(crosses or old - new < spec.shard_spec.shape[1], f"a width of {new} leaves out whole shards")


def _columns(shards: ShardSpec, layout: TensorMemoryLayout) -> int:
    if layout is WIDTH:
        return shards.num_cores()
    size = shards.grid.bounding_box().grid_size()
    return size.x if shards.orientation is ShardOrientation.ROW_MAJOR else size.y
