"""A tensor without its values: shape, dtype, layout, memory config, residence, and what follows from them.

Specs are immutable, interned and hashed once, because every call of every operation looks up its plan by them.
The rules (padding, pages, sharding) are those of the library's TensorSpec and TensorLayout.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ttnn_emulator.enums import BLOCK_FLOAT_DTYPES, DataType, Layout, ShardOrientation, TensorMemoryLayout
from ttnn_emulator.errors import InvalidArgument, NotEmulated, require
from ttnn_emulator.tensors.memory_config import (
    DRAM_MEMORY_CONFIG,
    MemoryConfig,
    NdShardSpec,
    ShardDistributionStrategy,
    ShardSpec,
)
from ttnn_emulator.tensors.shapes import DEFAULT_TILE, Shape, Tile, div_up, round_up

ROW_MAJOR_BYTES = {
    DataType.BFLOAT16: 2,
    DataType.FLOAT32: 4,
    DataType.UINT32: 4,
    DataType.INT32: 4,
    DataType.UINT16: 2,
    DataType.UINT8: 1,
    DataType.INT8: 1,
    DataType.FP8_E4M3: 1,
    DataType.BFLOAT8_B: 4,  # block floats in row-major order exist on the host only, as plain floats
    DataType.BFLOAT4_B: 4,
}
FACE_WIDTH = 16
# tt-metal v0.77.0: tt_metal/hw/inc/internal/tt-1xx/wormhole/noc/noc_parameters.h, L1_ALIGNMENT
L1_ALIGNMENT = 16

_interned: dict[tuple, Spec] = {}
_INTERNED_LIMIT = 200_000


def tile_bytes(tile: Tile, dtype: DataType) -> int:
    """Bytes of one tile; block floats add one shared exponent for every 16 values, 16-byte aligned per tile."""
    values = tile.height * tile.width
    if dtype in BLOCK_FLOAT_DTYPES:
        exponents = round_up(values // FACE_WIDTH, L1_ALIGNMENT)
        return exponents + (values if dtype is DataType.BFLOAT8_B else values // 2)
    return values * ROW_MAJOR_BYTES[dtype]


class Spec:
    """The properties that operations check and the compiler infers. Build with `Spec.of`."""

    __slots__ = (
        "shape",
        "dtype",
        "layout",
        "memory_config",
        "tile",
        "alignment",
        "on_device",
        "padded_shape",
        "physical_shape",
        "_hash",
    )

    shape: tuple[int, ...]
    dtype: DataType
    layout: Layout
    memory_config: MemoryConfig
    tile: Tile
    alignment: tuple[int, ...]
    on_device: bool
    padded_shape: tuple[int, ...]
    physical_shape: tuple[int, int]

    @staticmethod
    def of(
        shape: Sequence[int],
        dtype: DataType,
        layout: Layout,
        memory_config: MemoryConfig = DRAM_MEMORY_CONFIG,
        *,
        on_device: bool = True,
        tile: Tile | None = None,
        alignment: Sequence[int] = (),
    ) -> Spec:
        """The one spec with these properties; refuses what `ttnn.TensorSpec` refuses."""
        key = (tuple(shape), dtype, layout, memory_config, on_device, tile, tuple(alignment))
        found = _interned.get(key)
        if found is None:
            if len(_interned) >= _INTERNED_LIMIT:
                _interned.clear()
            found = _interned[key] = Spec(*key)
        return found

    def __init__(
        self,
        shape: tuple[int, ...],
        dtype: DataType,
        layout: Layout,
        memory_config: MemoryConfig,
        on_device: bool,
        tile: Tile | None,
        alignment: tuple[int, ...],
    ) -> None:
        if dtype is DataType.INVALID:
            raise NotEmulated(f"tensors of {dtype} are not emulated")
        if dtype is DataType.FP8_E4M3 and layout is not Layout.ROW_MAJOR:
            raise InvalidArgument("fp8_e4m3 exists in ROW_MAJOR layout only")
        if layout is Layout.ROW_MAJOR and tile is not None and tile != DEFAULT_TILE:
            raise InvalidArgument("a ROW_MAJOR tensor takes no custom tile")
        if any(dim < 0 or dim > 0xFFFFFFFF for dim in shape):
            raise InvalidArgument(f"shape {list(shape)} has a dimension that is not an unsigned 32-bit integer")
        self.shape = shape
        self.dtype = dtype
        self.layout = layout
        self.on_device = on_device
        self.tile = tile or DEFAULT_TILE
        self.alignment = _full_alignment(layout, self.tile, memory_config, alignment)
        self.padded_shape = _padded_shape(shape, self.alignment)
        self.physical_shape = _physical_shape(shape, self.alignment)
        if dtype in BLOCK_FLOAT_DTYPES and layout is not Layout.TILE:
            raise InvalidArgument(f"{dtype} requires TILE layout")
        if memory_config.is_sharded():
            memory_config = self._checked_sharding(memory_config)
        self.memory_config = memory_config
        self._hash = hash((shape, dtype, layout, memory_config, on_device, self.tile, self.alignment))

    # -- sharding -------------------------------------------------------------------------------------------------

    def _checked_sharding(self, config: MemoryConfig) -> MemoryConfig:
        shard, nd_shard = config.shard_spec, config.nd_shard_spec
        if self.layout is Layout.TILE and (shard or nd_shard):
            last_two = shard.shape if shard else tuple(nd_shard.shard_shape)[-2:]  # type: ignore[union-attr]
            require(
                all(size % step == 0 for size, step in zip(last_two[-2:], self.tile.tile_shape[-len(last_two) :])),
                f"shard shape {list(last_two)} must be full tiles of {list(self.tile.tile_shape)}",
            )
        if shard is not None and not config.created_with_nd_shard_spec:
            self._require_shards_fit(config.memory_layout, shard)
            return config.with_both_specs(config.memory_layout, shard, self._as_nd(config.memory_layout, shard))
        if nd_shard is not None:
            found = self._as_2d(nd_shard)
            if found is not None:
                layout, shard = found
                return config.with_both_specs(layout, shard, nd_shard)
        return config

    def _require_shards_fit(self, layout: TensorMemoryLayout, shard: ShardSpec) -> None:
        height, width = self.physical_shape
        shard_height, shard_width = shard.shape
        require(shard_height > 0 and shard_width > 0, f"shard shape {list(shard.shape)} must not be empty")
        cores = shard.num_cores()
        if layout is TensorMemoryLayout.HEIGHT_SHARDED:
            require(width == shard_width, f"shard width {shard_width} must match physical width {width}")
            count = div_up(height, shard_height)
            require(count <= cores, f"{count} shards along the height do not fit on {cores} cores")
        elif layout is TensorMemoryLayout.WIDTH_SHARDED:
            require(height == shard_height, f"shard height {shard_height} must match physical height {height}")
            count = div_up(width, shard_width)
            require(count <= cores, f"{count} shards along the width do not fit on {cores} cores")
        elif layout is TensorMemoryLayout.BLOCK_SHARDED:
            require(shard.grid.size() == 1, "block sharding needs one full rectangle of cores")
            grid = shard.grid.bounding_box().grid_size()
            rows, columns = (grid.y, grid.x) if shard.orientation is ShardOrientation.ROW_MAJOR else (grid.x, grid.y)
            down, across = div_up(height, shard_height), div_up(width, shard_width)
            require(down <= rows, f"{down} shards along the height do not fit on {rows} rows of cores")
            require(across <= columns, f"{across} shards along the width do not fit on {columns} columns of cores")

    def _as_nd(self, layout: TensorMemoryLayout, shard: ShardSpec) -> NdShardSpec:
        shape: tuple[int, ...] = shard.extent
        if len(self.padded_shape) == 1:
            require(shard.shape[0] == 1, "a tensor of rank 1 requires shards of height 1")
            shape = shard.extent[1:]
        strategy = (
            ShardDistributionStrategy.GRID_2D
            if layout is TensorMemoryLayout.BLOCK_SHARDED
            else ShardDistributionStrategy.ROUND_ROBIN_1D
        )
        return NdShardSpec(Shape(shape), shard.grid, shard.orientation, strategy)

    def _as_2d(self, nd: NdShardSpec) -> tuple[TensorMemoryLayout, ShardSpec] | None:
        """The two-dimensional sharding that places the same shards, if there is one."""
        if nd.shard_distribution_strategy.name == "CONTIGUOUS_1D":
            return None
        padded, nd_shape = self.padded_shape, tuple(nd.shard_shape)
        require(len(nd_shape) <= len(padded), f"shard rank {len(nd_shape)} exceeds tensor rank {len(padded)}")
        height, covered = 1, padded[-1]
        for dim in range(-2, -len(nd_shape) - 1, -1):
            covered *= padded[dim]
            height *= nd_shape[dim]
            if padded[dim] == nd_shape[dim]:
                continue
            if math.prod(nd_shape) != height * nd_shape[-1]:
                return None
            last = dim == -len(nd_shape)
            if last or padded[dim] % nd_shape[dim] == 0 or math.prod(padded) == covered:
                break
            return None
        shard = ShardSpec(nd.grid, (height, nd_shape[-1]), nd.orientation)
        down, across = div_up(self.physical_shape[0], height), div_up(self.physical_shape[1], nd_shape[-1])
        if nd.orientation is not ShardOrientation.ROW_MAJOR:
            down, across = across, down
        if down * across > nd.grid.num_cores():
            return None
        round_robin = nd.shard_distribution_strategy is ShardDistributionStrategy.ROUND_ROBIN_1D
        if round_robin and height == math.prod(padded) // padded[-1]:
            return TensorMemoryLayout.WIDTH_SHARDED, shard
        if round_robin and nd_shape[-1] == padded[-1]:
            return TensorMemoryLayout.HEIGHT_SHARDED, shard
        if nd.grid.size() != 1:
            return None
        grid = nd.grid.ranges()[0].grid_size()
        if (round_robin and across != grid.x) or across > grid.x or down > grid.y:
            return None
        return TensorMemoryLayout.BLOCK_SHARDED, shard

    # -- derived --------------------------------------------------------------------------------------------------

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def volume(self) -> int:
        return math.prod(self.shape)

    @property
    def is_sharded(self) -> bool:
        return self.memory_config.memory_layout is not TensorMemoryLayout.INTERLEAVED

    @property
    def shard_spec(self) -> ShardSpec | None:
        return self.memory_config.shard_spec

    @property
    def is_tile(self) -> bool:
        return self.layout is Layout.TILE

    @property
    def page_shape(self) -> tuple[int, int]:
        """Height and width of one page: a tile, or a row (a row of the shard if the width is sharded)."""
        if self.layout is Layout.TILE:
            return self.tile.tile_shape  # type: ignore[return-value]
        height, width = self.physical_shape
        if height == 0 or width == 0:
            return 1, max(4 // ROW_MAJOR_BYTES[self.dtype], 1)
        config = self.memory_config
        if config.shard_spec is not None and config.memory_layout is not TensorMemoryLayout.HEIGHT_SHARDED:
            return 1, config.shard_spec.shape[1]
        if config.nd_shard_spec is not None:
            return 1, config.nd_shard_spec.shard_shape[-1]
        return 1, width

    @property
    def page_bytes(self) -> int:
        height, width = self.page_shape
        if self.layout is Layout.TILE:
            return tile_bytes(self.tile, self.dtype)
        return height * width * ROW_MAJOR_BYTES[self.dtype]

    @property
    def num_pages(self) -> int:
        height, width = self.page_shape
        area = self.physical_shape[0] * self.physical_shape[1]
        return area // (height * width)

    @property
    def total_bytes(self) -> int:
        """Bytes of all pages, padding included."""
        return self.page_bytes * self.num_pages

    def bytes_per_bank(self, banks: int, alignment: int) -> int:
        """Bytes of this tensor in each bank of its memory."""
        aligned = round_up(self.page_bytes, alignment)
        config = self.memory_config
        if not config.is_sharded():
            return div_up(self.num_pages, banks) * aligned
        page_height, page_width = self.page_shape
        if config.shard_spec is not None:
            height, width = config.shard_spec.shape
            return div_up(height, page_height) * div_up(width, page_width) * aligned
        assert config.nd_shard_spec is not None
        nd = config.nd_shard_spec
        shard = tuple(nd.shard_shape)
        padded = (1,) * (len(shard) - len(self.padded_shape)) + self.padded_shape
        lead = len(padded) - len(shard)
        shards = math.prod(padded[:lead]) * math.prod(div_up(p, s) for p, s in zip(padded[lead:], shard))
        rows = math.prod(shard[:-1])
        pages = div_up(rows, page_height) * div_up(shard[-1], page_width)
        return div_up(shards, nd.num_cores()) * pages * aligned

    def with_(self, **changes: Any) -> Spec:
        """A copy with some properties changed; the padding is recomputed unless `alignment` is passed."""
        values: dict[str, Any] = {
            "shape": self.shape,
            "dtype": self.dtype,
            "layout": self.layout,
            "memory_config": self.memory_config,
            "on_device": self.on_device,
            "tile": self.tile if self.tile != DEFAULT_TILE else None,
        }
        values.update(changes)
        if values["layout"] is Layout.ROW_MAJOR:
            values["tile"] = None
        return Spec.of(**values)

    def brief(self) -> str:
        """For messages: `[2, 40, 50] bfloat16 TILE L1`."""
        where = self.memory_config.brief() if self.on_device else "host"
        return f"{list(self.shape)} {self.dtype.name.lower()} {self.layout.name} {where}"

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Spec):
            return NotImplemented
        return self._hash == other._hash and self._fields() == other._fields()

    def _fields(self) -> tuple:
        return (
            self.shape,
            self.dtype,
            self.layout,
            self.memory_config,
            self.on_device,
            self.tile,
            self.alignment,
        )

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return f"Spec({self.brief()})"


def _full_alignment(
    layout: Layout, tile: Tile, memory_config: MemoryConfig, alignment: tuple[int, ...]
) -> tuple[int, ...]:
    if layout is Layout.TILE:
        default: tuple[int, ...] = tile.tile_shape
    elif memory_config.shard_spec is not None:
        default = (memory_config.shard_spec.shape[1],)
    elif memory_config.nd_shard_spec is not None:
        default = (memory_config.nd_shard_spec.shard_shape[-1],)
    else:
        default = (1,)
    if not alignment:
        return default
    rank = max(len(alignment), len(default))
    merged = [1] * (rank - len(alignment)) + list(alignment)
    for index in range(1, len(default) + 1):
        merged[-index] = round_up(merged[-index], default[-index])
    return tuple(merged)


def _padded_shape(shape: tuple[int, ...], alignment: tuple[int, ...]) -> tuple[int, ...]:
    rank, aligned = len(shape), len(alignment)
    padded = [0] * max(rank, aligned)
    accumulated = 1
    for back in range(1, aligned + 1):
        size = shape[-back] if back <= rank else 1
        step = alignment[-back]
        if back <= 2:
            value = round_up(size, step)
        elif accumulated and accumulated % step == 0:
            value = size
        elif accumulated and step % accumulated == 0:
            value = round_up(size, step // accumulated)
        else:
            raise InvalidArgument(f"padding to {list(alignment)} is not possible for shape {list(shape)}")
        padded[-back] = value
        if back != 1:
            accumulated *= value
    for back in range(aligned + 1, rank + 1):
        padded[-back] = shape[-back]
    return tuple(padded)


def _physical_shape(shape: tuple[int, ...], alignment: tuple[int, ...]) -> tuple[int, int]:
    height = width = 1
    rank, aligned = len(shape), len(alignment)
    for back in range(1, max(rank, aligned) + 1):
        size = shape[-back] if back <= rank else 1
        if back == 1:
            width = round_up(size, alignment[-1]) if aligned else size
        else:
            height *= size
            if back <= aligned:
                height = round_up(height, alignment[-back])
    return height, width


def padded_spec(
    shape: Sequence[int],
    padded: Sequence[int],
    dtype: DataType,
    layout: Layout,
    memory_config: MemoryConfig,
    *,
    on_device: bool = True,
    tile: Tile | None = None,
) -> Spec:
    """The spec of `shape` in a buffer of shape `padded`, as in the library's TensorLayout.fromPaddedShape."""
    alignment = _alignment_to_pad(tuple(shape), tuple(padded), layout, memory_config, tile or DEFAULT_TILE)
    return Spec.of(shape, dtype, layout, memory_config, on_device=on_device, tile=tile, alignment=alignment)


def _alignment_to_pad(
    shape: tuple[int, ...], padded: tuple[int, ...], layout: Layout, memory_config: MemoryConfig, tile: Tile
) -> tuple[int, ...]:
    if shape == padded:
        return ()
    rank = len(padded)
    # Missing leading dimensions count as ones.
    aligned = (1,) * (rank - len(shape)) + shape if rank > len(shape) else shape[len(shape) - rank :]
    only_height_and_width = aligned[:-2] == padded[:-2]
    if memory_config.shard_spec is not None:
        require(only_height_and_width, f"shape {list(shape)} padded to {list(padded)} cannot be sharded")
        return (memory_config.shard_spec.shape[1],) if layout is Layout.ROW_MAJOR else ()
    inner = list(padded[-2:])
    if layout is Layout.TILE:
        # Rounding to tiles is not an explicit alignment.
        for back, step in enumerate(reversed(tile.tile_shape[-len(inner) :]), start=1):
            if inner[-back] <= round_up(aligned[-back], step):
                inner[-back] = step
    if only_height_and_width:
        return tuple(inner)
    outer, height = [], padded[-2]
    for size in reversed(padded[:-2]):
        height *= size
        outer.append(height)
    return tuple(value or 1 for value in (*reversed(outer), *inner))
