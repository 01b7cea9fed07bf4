"""`ttnn.TensorSpec`, as users build it, and its sharded variants.

>>> import ttnn_emulator as ttnn
>>> cores = ttnn.num_cores_to_corerangeset(4, ttnn.CoreCoord(8, 8), True)
>>> spec = ttnn.TensorSpec((2, 64, 96), ttnn.bfloat16, ttnn.TILE_LAYOUT, buffer_type=ttnn.BufferType.L1)
>>> spec.height_sharded(cores).memory_config.shard_spec.shape
[32, 96]
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ttnn_emulator.enums import ALL_ENUMS, BufferType, DataType, Layout, ShardOrientation, TensorMemoryLayout
from ttnn_emulator.errors import require
from ttnn_emulator.hardware.core_grid import CoreRange, CoreRangeSet
from ttnn_emulator.tensors.memory_config import MemoryConfig, NdShardSpec, ShardDistributionStrategy
from ttnn_emulator.tensors.shapes import Shape, Tile, div_up, normalize_dim, round_up
from ttnn_emulator.tensors.spec import ROW_MAJOR_BYTES, Spec

ShardShapeAlignment = ALL_ENUMS["ShardShapeAlignment"]
# tt-metal v0.77.0: tt_metal/impl/tensor/spec/layout/page_config.cpp, RECOMMENDED_MEMORY_ALIGNMENT_BYTES
RECOMMENDED_BYTES = 64  # of a row of a row-major shard
ROW_MAJOR = ShardOrientation.ROW_MAJOR


class _IsSpec(type):
    """Every spec is an instance of `ttnn.TensorSpec`."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, Spec)


class TensorSpec(metaclass=_IsSpec):
    """Shape, dtype, layout and memory config of a tensor; constructing it returns the emulator's `Spec`."""

    def __new__(  # type: ignore[misc]
        cls,
        shape: Sequence[int],
        dtype: DataType,
        layout: Layout,
        memory_layout: Any = None,
        shard_spec: Any = None,
        buffer_type: BufferType = BufferType.DRAM,
        tile: Tile | None = None,
        *,
        nd_shard_spec: NdShardSpec | None = None,
    ) -> Spec:
        # TensorSpec(shape, dtype, layout, nd_shard_spec, buffer_type) and (shape, dtype, layout, buffer_type, tile)
        if isinstance(memory_layout, NdShardSpec):
            nd_shard_spec, memory_layout = memory_layout, None
            if isinstance(shard_spec, BufferType):
                buffer_type, shard_spec = shard_spec, None
        elif isinstance(memory_layout, BufferType):
            buffer_type, memory_layout = memory_layout, None
            if isinstance(shard_spec, Tile):
                tile, shard_spec = shard_spec, None
        if nd_shard_spec is not None:
            config = MemoryConfig(buffer_type, nd_shard_spec)
        else:
            config = MemoryConfig(memory_layout or TensorMemoryLayout.INTERLEAVED, buffer_type, shard_spec)
        return Spec.of(tuple(shape), dtype, layout, config, tile=tile)


def _with_shards(
    spec: Spec, shape: Sequence[int], grid: CoreRangeSet, orientation: ShardOrientation, strategy: Any
) -> Spec:
    nd_shards = NdShardSpec(Shape(shape), grid, orientation, strategy)
    return spec.with_(memory_config=MemoryConfig(spec.memory_config.buffer_type, nd_shards))


def _aligned(spec: Spec, shape: Sequence[int], alignment: Any = ShardShapeAlignment.RECOMMENDED) -> list[int]:
    """A shard shape rounded up to the required, or to the recommended, alignment of the layout."""
    aligned = list(shape)
    if alignment is ShardShapeAlignment.NONE:
        return aligned
    if spec.layout is Layout.TILE:
        steps = spec.tile.tile_shape
        for back in range(1, min(len(aligned), len(steps)) + 1):
            aligned[-back] = round_up(aligned[-back], steps[-back])
    elif alignment is ShardShapeAlignment.RECOMMENDED:
        aligned[-1] = round_up(aligned[-1], RECOMMENDED_BYTES // ROW_MAJOR_BYTES[spec.dtype])
    return aligned


def sharded(
    spec: Spec,
    shard_shape: Sequence[int] | NdShardSpec,
    grid: Any = None,
    shard_alignment: Any = ShardShapeAlignment.RECOMMENDED,
    orientation: ShardOrientation = ROW_MAJOR,
    shard_distribution_strategy: Any = ShardDistributionStrategy.ROUND_ROBIN_1D,
) -> Spec:
    """The same tensor in shards of any rank: `sharded(shape, grid, …)` or `sharded(nd_shard_spec, alignment)`."""
    if isinstance(shard_shape, NdShardSpec):
        shards = shard_shape
        alignment = grid if grid is not None else shard_alignment
        shape = _aligned(spec, shards.shard_shape, alignment)
        return _with_shards(spec, shape, shards.grid, shards.orientation, shards.shard_distribution_strategy)
    shape = _aligned(spec, shard_shape, shard_alignment)
    return _with_shards(spec, shape, grid, orientation, shard_distribution_strategy)


def sharded_across_dims(
    spec: Spec, dims: Sequence[int], grid: CoreRangeSet, orientation: ShardOrientation = ROW_MAJOR
) -> Spec:
    """Shards of minimal size in `dims` and full size in the others."""
    thin = {normalize_dim(dim, len(spec.shape)) for dim in dims}
    return sharded(
        spec, [1 if dim in thin else size for dim, size in enumerate(spec.shape)], grid, orientation=orientation
    )


def sharded_across_dims_except(
    spec: Spec, dims: Sequence[int], grid: CoreRangeSet, orientation: ShardOrientation = ROW_MAJOR
) -> Spec:
    """Shards of full size in `dims` and minimal size in the others."""
    whole = {normalize_dim(dim, len(spec.shape)) for dim in dims}
    return sharded_across_dims(spec, [dim for dim in range(len(spec.shape)) if dim not in whole], grid, orientation)


def height_sharded(spec: Spec, grid: CoreRangeSet, orientation: ShardOrientation = ROW_MAJOR) -> Spec:
    """One shard per core, of equal heights and full width."""
    height, width = spec.physical_shape
    shape = (div_up(height, grid.num_cores()), width)
    return sharded(spec, shape, grid, ShardShapeAlignment.REQUIRED, orientation)


def width_sharded(spec: Spec, grid: CoreRangeSet, orientation: ShardOrientation = ROW_MAJOR) -> Spec:
    """One shard per core, of equal widths and full height."""
    height, width = spec.physical_shape
    shape = (height, div_up(width, grid.num_cores()))
    return sharded(spec, shape, grid, ShardShapeAlignment.REQUIRED, orientation)


def block_sharded(spec: Spec, grid: CoreRangeSet | CoreRange, orientation: ShardOrientation = ROW_MAJOR) -> Spec:
    """One block per core of a rectangle of cores."""
    cores = grid if isinstance(grid, CoreRangeSet) else CoreRangeSet([grid])
    require(cores.size() == 1, f"block sharding needs one rectangle of cores, not {cores}")
    extent = cores.bounding_box().grid_size()
    down, across = (extent.y, extent.x) if orientation is ROW_MAJOR else (extent.x, extent.y)
    height, width = spec.physical_shape
    shape = (div_up(height, down), div_up(width, across))
    strategy = ShardDistributionStrategy.GRID_2D
    return sharded(spec, shape, cores, orientation=orientation, shard_distribution_strategy=strategy)


for _variant in (
    sharded, sharded_across_dims, sharded_across_dims_except, height_sharded, width_sharded, block_sharded
):  # fmt: skip
    setattr(Spec, _variant.__name__, _variant)
    setattr(TensorSpec, _variant.__name__, _variant)
for _field in ("shape", "dtype", "layout", "memory_config", "tile"):
    setattr(TensorSpec, _field, vars(Spec)[_field])
