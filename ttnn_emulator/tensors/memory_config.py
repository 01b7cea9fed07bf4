"""Where a tensor is stored: DRAM or L1, interleaved over all banks or sharded."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

from ttnn_emulator.enums import BufferType, ShardOrientation, ShardStrategy, TensorMemoryLayout
from ttnn_emulator.hardware.core_grid import JSON_SEPARATORS, CoreCoord, CoreGrid, CoreRange, CoreRangeSet
from ttnn_emulator.tensors.shapes import Shape, div_up, round_up
from ttnn_emulator.tensors.shard_spec import NdShardSpec, ShardDistributionStrategy, ShardSpec


class MemoryConfig:
    """Memory layout, buffer type and, if sharded, the shard spec. Equal configs have equal hashes.

    Only its `shard_spec` is mutable; calls keep an equal, `frozen` config.
    """

    __slots__ = (
        "memory_layout", "buffer_type", "shard_spec", "nd_shard_spec", "created_with_nd_shard_spec",
        "per_core_allocation", "range_lockstep_allocation", "_hash", "_frozen",
    )  # fmt: skip

    memory_layout: TensorMemoryLayout
    buffer_type: BufferType
    shard_spec: ShardSpec | None
    nd_shard_spec: NdShardSpec | None
    created_with_nd_shard_spec: bool
    per_core_allocation: bool
    range_lockstep_allocation: bool
    _hash: int
    _frozen: MemoryConfig | None

    def __init__(
        self,
        memory_layout: TensorMemoryLayout | BufferType = TensorMemoryLayout.INTERLEAVED,
        buffer_type: BufferType | NdShardSpec = BufferType.DRAM,
        shard_spec: ShardSpec | None = None,
        *,
        nd_shard_spec: NdShardSpec | None = None,
    ) -> None:
        if isinstance(memory_layout, BufferType):  # MemoryConfig(buffer_type, nd_shard_spec)
            memory_layout, buffer_type, nd_shard_spec = TensorMemoryLayout.ND_SHARDED, memory_layout, buffer_type  # type: ignore[assignment]
        if not isinstance(memory_layout, TensorMemoryLayout) or not isinstance(buffer_type, BufferType):
            raise TypeError(
                "MemoryConfig(TensorMemoryLayout, BufferType, ShardSpec | None) "
                f"does not take ({memory_layout!r}, {buffer_type!r}, {shard_spec!r})"
            )
        if shard_spec is not None and not isinstance(shard_spec, ShardSpec):
            raise TypeError(f"MemoryConfig: shard_spec must be a ShardSpec, not {type(shard_spec).__name__}")
        if nd_shard_spec is not None and memory_layout is TensorMemoryLayout.INTERLEAVED:
            memory_layout = TensorMemoryLayout.ND_SHARDED
        self._set(memory_layout, buffer_type, shard_spec, nd_shard_spec, nd_shard_spec is not None)

    def _set(self, layout: Any, buffer: Any, shard: Any, nd_shard: Any, created_with_nd: bool) -> None:
        for name, value in (
            ("memory_layout", layout),
            ("buffer_type", buffer),
            ("shard_spec", None if shard is None else shard.owned_by(self)),
            ("nd_shard_spec", nd_shard),
            ("created_with_nd_shard_spec", created_with_nd),
            ("per_core_allocation", False),
            ("range_lockstep_allocation", False),
            ("_hash", hash((layout, buffer, shard, nd_shard if created_with_nd else None))),
            ("_frozen", None),
        ):
            object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"MemoryConfig is immutable; build a new one instead of setting {name}")

    def shards_changed(self) -> None:
        """Called by its own `shard_spec` after a change: the ND shard spec is outdated."""
        if not self.created_with_nd_shard_spec:
            object.__setattr__(self, "nd_shard_spec", None)
        self._rehash()

    def frozen(self) -> MemoryConfig:
        """An equal, immutable config: the config itself if it has no shards."""
        if self.shard_spec is None:
            return self
        if self._frozen is None:
            copy = self._copy()
            object.__setattr__(copy, "_frozen", copy)
            object.__setattr__(self, "_frozen", copy)
        assert self._frozen is not None
        return self._frozen

    def thawed(self) -> MemoryConfig:
        """An equal config that may be modified."""
        if self.shard_spec is None:
            return self
        copy = self._copy()
        object.__setattr__(copy, "_frozen", self._frozen)
        return copy

    def _copy(self) -> MemoryConfig:
        return self.with_both_specs(self.memory_layout, self.shard_spec, self.nd_shard_spec)

    def experimental_set_per_core_allocation(self, enabled: bool) -> None:
        """Whether every core has a separate address."""
        self._set_allocation("per_core_allocation", enabled)

    def experimental_set_range_lockstep_allocation(self, enabled: bool) -> None:
        """Whether the address range is free on all cores, including buffers of single cores."""
        self._set_allocation("range_lockstep_allocation", enabled)

    def _set_allocation(self, name: str, enabled: bool) -> None:
        object.__setattr__(self, name, bool(enabled))
        self._rehash()

    def _rehash(self) -> None:
        kind = (self.per_core_allocation, self.range_lockstep_allocation)
        nd_shard = self.nd_shard_spec if self.created_with_nd_shard_spec else None
        parts: tuple = (self.memory_layout, self.buffer_type, self.shard_spec, nd_shard)
        object.__setattr__(self, "_hash", hash((*parts, kind) if any(kind) else parts))
        object.__setattr__(self, "_frozen", None)

    @property
    def interleaved(self) -> bool:
        return self.memory_layout is TensorMemoryLayout.INTERLEAVED

    def is_sharded(self) -> bool:
        return self.memory_layout is not TensorMemoryLayout.INTERLEAVED

    @property
    def is_l1(self) -> bool:
        return self.buffer_type in (BufferType.L1, BufferType.L1_SMALL)

    @property
    def is_dram(self) -> bool:
        return self.buffer_type is BufferType.DRAM

    def with_shard_spec(self, shard_spec: ShardSpec | None) -> MemoryConfig:
        return MemoryConfig(self.memory_layout, self.buffer_type, shard_spec)

    def with_both_specs(
        self, layout: TensorMemoryLayout, shard: ShardSpec | None, nd_shard: NdShardSpec | None
    ) -> MemoryConfig:
        """A config whose 2D and ND shard specs agree, as for an allocated tensor."""
        config = object.__new__(MemoryConfig)
        config._set(layout, self.buffer_type, shard, nd_shard, self.created_with_nd_shard_spec)
        for name in ("per_core_allocation", "range_lockstep_allocation"):
            if getattr(self, name):
                config._set_allocation(name, True)
        return config

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, MemoryConfig):
            return NotImplemented
        return (
            self.memory_layout is other.memory_layout
            and self.buffer_type is other.buffer_type
            and self.shard_spec == other.shard_spec
            and (not self.created_with_nd_shard_spec or self.nd_shard_spec == other.nd_shard_spec)
            and self.per_core_allocation is other.per_core_allocation
            and self.range_lockstep_allocation is other.range_lockstep_allocation
        )

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        def optional(value: Any) -> str:
            return "std::nullopt" if value is None else repr(value)

        return (
            f"MemoryConfig(memory_layout=TensorMemoryLayout::{self.memory_layout.name},"
            f"buffer_type=BufferType::{self.buffer_type.name},shard_spec={optional(self.shard_spec)},"
            f"nd_shard_spec={optional(self.nd_shard_spec)},"
            f"created_with_nd_shard_spec={int(self.created_with_nd_shard_spec)},"
            f"per_core_allocation={int(self.per_core_allocation)},"
            f"range_lockstep_allocation={int(self.range_lockstep_allocation)})"
        )

    def to_json(self) -> str:
        """The library's JSON format, in which enums are numbers."""
        fields: dict[str, Any] = {
            "buffer_type": self.buffer_type.value,
            "created_with_nd_shard_spec": self.created_with_nd_shard_spec,
            "memory_layout": self.memory_layout.value,
            "per_core_allocation": self.per_core_allocation,
        }
        if self.range_lockstep_allocation:
            fields["range_lockstep_allocation"] = True
        if self.nd_shard_spec is not None and self.created_with_nd_shard_spec:
            nd = self.nd_shard_spec
            fields["nd_shard_spec"] = {
                "grid": json.loads(nd.grid.to_json()),
                "orientation": nd.orientation.value,
                "shard_distribution_strategy": nd.shard_distribution_strategy.value,
                "shard_shape": list(nd.shard_shape),
            }
        elif self.shard_spec is not None:
            fields["shard_spec"] = json.loads(self.shard_spec.to_json())
        return json.dumps(fields, separators=JSON_SEPARATORS)

    @staticmethod
    def from_json(text: str) -> MemoryConfig:
        fields = json.loads(text)
        config = MemoryConfig._from_fields(fields)
        for name in ("per_core_allocation", "range_lockstep_allocation"):
            if fields.get(name):
                config._set_allocation(name, True)
        return config

    @staticmethod
    def _from_fields(fields: dict[str, Any]) -> MemoryConfig:
        buffer = BufferType(fields["buffer_type"])
        if nd := fields.get("nd_shard_spec"):
            grid = CoreRangeSet.from_json(json.dumps(nd["grid"]))
            strategy = ShardDistributionStrategy(nd["shard_distribution_strategy"])
            orientation = ShardOrientation(nd["orientation"])
            return MemoryConfig(buffer, NdShardSpec(Shape(nd["shard_shape"]), grid, orientation, strategy))
        shard = fields.get("shard_spec")
        spec = ShardSpec.from_json(json.dumps(shard)) if shard else None
        return MemoryConfig(TensorMemoryLayout(fields["memory_layout"]), buffer, spec)

    def brief(self) -> str:
        """A short form for messages: `L1`, `DRAM`, `L1 HEIGHT_SHARDED [32, 64] on 8 cores`."""
        if not self.is_sharded():
            return self.buffer_type.name
        text = f"{self.buffer_type.name} {self.memory_layout.name}"
        spec = self.shard_spec
        if spec is None:
            return text
        return f"{text} {list(spec.shape)} on {spec.num_cores()} cores"


DRAM_MEMORY_CONFIG = MemoryConfig(TensorMemoryLayout.INTERLEAVED, BufferType.DRAM)
L1_MEMORY_CONFIG = MemoryConfig(TensorMemoryLayout.INTERLEAVED, BufferType.L1)
L1_BLOCK_SHARDED_MEMORY_CONFIG = MemoryConfig(TensorMemoryLayout.BLOCK_SHARDED, BufferType.L1)
L1_HEIGHT_SHARDED_MEMORY_CONFIG = MemoryConfig(TensorMemoryLayout.HEIGHT_SHARDED, BufferType.L1)
L1_WIDTH_SHARDED_MEMORY_CONFIG = MemoryConfig(TensorMemoryLayout.WIDTH_SHARDED, BufferType.L1)

STRATEGY_LAYOUT = {
    ShardStrategy.HEIGHT: TensorMemoryLayout.HEIGHT_SHARDED,
    ShardStrategy.WIDTH: TensorMemoryLayout.WIDTH_SHARDED,
    ShardStrategy.BLOCK: TensorMemoryLayout.BLOCK_SHARDED,
}


def _grid_of(core_grid: Any) -> CoreRangeSet:
    if isinstance(core_grid, CoreGrid):
        return CoreRangeSet([CoreRange(CoreCoord(0, 0), CoreCoord(core_grid.x - 1, core_grid.y - 1))])
    if isinstance(core_grid, CoreRangeSet):
        return core_grid
    if isinstance(core_grid, list | tuple) and len(core_grid) == 2 and all(isinstance(g, CoreGrid) for g in core_grid):
        whole, last = core_grid
        return CoreRangeSet(
            [
                CoreRange(CoreCoord(0, 0), CoreCoord(whole.x - 1, whole.y - 1)),
                CoreRange(CoreCoord(0, whole.y), CoreCoord(last.x - 1, whole.y)),
            ]
        )
    raise RuntimeError(f"Invalid core_grid {core_grid!r}: pass a CoreGrid, a CoreRangeSet or two CoreGrids")


def _shape_list(shape: Any) -> list[int]:
    if not isinstance(shape, list | tuple | Shape):
        raise RuntimeError(f"Invalid input shape {shape!r}")
    return list(shape)


def create_sharded_memory_config(
    shape: Sequence[int],
    core_grid: CoreGrid | CoreRangeSet | Sequence[CoreGrid],
    strategy: ShardStrategy,
    orientation: ShardOrientation | None = None,
    use_height_and_width_as_shard_shape: bool = False,
) -> MemoryConfig:
    """An L1 memory config that shards `shape`, seen as [product of the other dims, width], evenly over `core_grid`.

    >>> create_sharded_memory_config((1, 1, 64, 32), CoreGrid(y=1, x=2), ShardStrategy.HEIGHT).shard_spec.shape
    [32, 32]
    """
    dims = _shape_list(shape)
    if strategy not in STRATEGY_LAYOUT:
        raise RuntimeError(f"Invalid sharding strategy {strategy!r}")
    orientation = orientation or ShardOrientation.ROW_MAJOR
    grid = _grid_of(core_grid)
    *batch, height, width = dims
    row_major = orientation is ShardOrientation.ROW_MAJOR
    shard = (height, width) if row_major else (width, height)
    if not use_height_and_width_as_shard_shape:
        if not isinstance(core_grid, CoreGrid):
            raise RuntimeError("height and width must be shard shape with CoreRangeSet")
        rows, columns = math.prod(batch) * height, width
        cuts = {
            ShardStrategy.HEIGHT: (core_grid.num_cores, 1),
            ShardStrategy.WIDTH: (1, core_grid.num_cores),
            ShardStrategy.BLOCK: (core_grid.y, core_grid.x) if row_major else (core_grid.x, core_grid.y),
        }[strategy]
        if rows % cuts[0] or columns % cuts[1]:
            raise RuntimeError(
                f"Invalid sharding core_grid: [{rows}, {columns}] does not divide into {cuts[0]} × {cuts[1]} shards"
            )
        shard = (rows // cuts[0], columns // cuts[1])
    return MemoryConfig(STRATEGY_LAYOUT[strategy], BufferType.L1, ShardSpec(grid, shard, orientation))


def create_sharded_memory_config_(
    shape: Sequence[int],
    core_grid: CoreGrid | CoreRangeSet | Sequence[CoreGrid],
    strategy: ShardStrategy | TensorMemoryLayout,
    orientation: ShardOrientation,
    use_height_and_width_as_shard_shape: bool = False,
    tile_layout: bool = False,
) -> MemoryConfig:
    """As `create_sharded_memory_config`, for shapes that need not divide evenly: shards round up."""
    dims = _shape_list(shape)
    layout = STRATEGY_LAYOUT.get(strategy, strategy)  # type: ignore[arg-type,call-overload]
    if not isinstance(layout, TensorMemoryLayout):
        raise RuntimeError(f"Invalid type of sharding strategy {strategy!r}")
    grid = _grid_of(core_grid)
    *batch, height, width = dims
    row_major = orientation is ShardOrientation.ROW_MAJOR
    shard = (height, width) if row_major else (width, height)
    if not use_height_and_width_as_shard_shape:
        rows, extent, cores = math.prod(batch) * height, grid.bounding_box().grid_size(), grid.num_cores()
        if layout is TensorMemoryLayout.BLOCK_SHARDED:
            if extent.x * extent.y != cores:
                raise RuntimeError("Invalid CoreRangeSet for block sharding strategy")
            down, across = (extent.y, extent.x) if row_major else (extent.x, extent.y)
            padded = round_up(rows, down * 32) if tile_layout else rows
            shard = (div_up(padded, down), div_up(width, across))
        elif layout is TensorMemoryLayout.HEIGHT_SHARDED:
            padded = round_up(rows, cores) if tile_layout else rows
            shard = (div_up(padded, cores), width)
        elif layout is TensorMemoryLayout.WIDTH_SHARDED:
            shard = (rows, div_up(width, cores))
        else:
            raise RuntimeError(f"Invalid sharding scheme {layout!r}")
    if tile_layout and shard[0] % 32 and shard[1] % 32:
        raise RuntimeError(f"Incorrect tensor shape: shards of {list(shard)} are not full tiles")
    return MemoryConfig(layout, BufferType.L1, ShardSpec(grid, shard, orientation))


__all__ = [
    "DRAM_MEMORY_CONFIG",
    "L1_BLOCK_SHARDED_MEMORY_CONFIG",
    "L1_HEIGHT_SHARDED_MEMORY_CONFIG",
    "L1_MEMORY_CONFIG",
    "L1_WIDTH_SHARDED_MEMORY_CONFIG",
    "MemoryConfig",
    "NdShardSpec",
    "ShardSpec",
    "create_sharded_memory_config",
    "create_sharded_memory_config_",
]
