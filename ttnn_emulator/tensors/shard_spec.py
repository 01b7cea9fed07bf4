"""How a tensor is sharded: `ttnn.ShardSpec` and `ttnn.NdShardSpec`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ttnn_emulator.enums import ALL_ENUMS, ShardOrientation
from ttnn_emulator.errors import InvalidArgument
from ttnn_emulator.hardware.core_grid import JSON_SEPARATORS, CoreRangeSet, json_fields
from ttnn_emulator.tensors.shapes import Shape

if TYPE_CHECKING:
    from ttnn_emulator.tensors.memory_config import MemoryConfig

ShardDistributionStrategy = ALL_ENUMS["ShardDistributionStrategy"]

# asked ttnn 0.81.1: NdShardSpec.to_json writes this for the shape, whose type its writer does not support.
UNWRITTEN_SHAPE = "ttsl::json::to_json_t: Unsupported type span<const unsigned int>"


def _require_grid(grid: Any) -> CoreRangeSet:
    if not isinstance(grid, CoreRangeSet):
        raise TypeError(f"ShardSpec: grid must be a CoreRangeSet, not {grid!r}")
    return grid


def _shard_shape(shape: Sequence[int]) -> tuple[int, int]:
    if len(shape) != 2:
        raise TypeError(f"ShardSpec: shard_shape must have 2 values, not {len(shape)}")
    return int(shape[0]), int(shape[1])


def _grid_json(grid: CoreRangeSet, *, closed: bool) -> str:
    """The grid as the library prints it (its ShardSpec text lacks one brace; scripts may parse either)."""
    ranges = ",".join(
        f'{{"start":{{"x":{r.start.x},"y":{r.start.y}}},"end":{{"x":{r.end.x},"y":{r.end.y}}}' for r in grid.ranges()
    )
    return f"[{ranges}}}]" if closed else f"[{ranges}]"


class ShardShape(list):
    """Height and width of a shard. Every access returns a new list, as in the library.

    Inside the emulator it is equal to a tuple of the same numbers, with the same hash.
    """

    def __eq__(self, other: object) -> bool:
        return list.__eq__(self, list(other) if isinstance(other, tuple) else other)  # type: ignore[arg-type]

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(self))


class ShardSpec:
    """A two-dimensional shard of `shape` on every core of `grid`.

    All three can be set, as in the library: `config.shard_spec.shape = [64, 32]` changes that config.
    """

    __slots__ = ("_grid", "_owner", "_shape", "_orientation")

    def __init__(
        self,
        grid: CoreRangeSet,
        shard_shape: Sequence[int],
        shard_orientation: ShardOrientation = ShardOrientation.ROW_MAJOR,
    ) -> None:
        self._owner: MemoryConfig | None = None
        self._grid, self._shape = _require_grid(grid), _shard_shape(shard_shape)
        self._orientation = shard_orientation

    def owned_by(self, owner: MemoryConfig) -> ShardSpec:
        """A copy owned by a config: later changes of the original spec do not affect the config."""
        copy = object.__new__(ShardSpec)
        copy._owner, copy._grid, copy._shape, copy._orientation = owner, self._grid, self._shape, self._orientation
        return copy

    @property
    def grid(self) -> CoreRangeSet:
        return self._grid

    @grid.setter
    def grid(self, grid: CoreRangeSet) -> None:
        self._grid = _require_grid(grid)
        self._changed()

    @property
    def shape(self) -> ShardShape:
        return ShardShape(self._shape)

    @shape.setter
    def shape(self, shape: Sequence[int]) -> None:
        self._shape = _shard_shape(shape)
        self._changed()

    @property
    def extent(self) -> tuple[int, int]:
        """Its shape, immutable."""
        return self._shape

    @property
    def orientation(self) -> ShardOrientation:
        return self._orientation

    @orientation.setter
    def orientation(self, orientation: ShardOrientation) -> None:
        try:
            self._orientation = ShardOrientation(orientation)  # the library also takes its integer values
        except ValueError:
            raise TypeError(f"ShardSpec: orientation must be a ShardOrientation, not {orientation!r}") from None
        self._changed()

    def _changed(self) -> None:
        if self._owner is not None:
            self._owner.shards_changed()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ShardSpec):
            return NotImplemented
        return (self._shape, self._orientation, self._grid) == (other._shape, other._orientation, other._grid)

    def __hash__(self) -> int:
        return hash((self._grid, self._shape, self._orientation))

    def num_cores(self) -> int:
        return self.grid.num_cores()

    def to_json(self) -> str:
        fields = {
            "grid": json.loads(self.grid.to_json()),
            "orientation": self.orientation.value,
            "shape": list(self.shape),
        }
        return json.dumps(fields, separators=JSON_SEPARATORS)

    @staticmethod
    def from_json(text: str) -> ShardSpec:
        fields = json.loads(text)
        grid = CoreRangeSet.from_json(json.dumps(fields["grid"]))
        return ShardSpec(grid, fields["shape"], ShardOrientation(fields["orientation"]))

    def __repr__(self) -> str:
        return (
            f"ShardSpec{{grid={_grid_json(self.grid, closed=False)}, shape={list(self.shape)}, "
            f"orientation=ShardOrientation::{self.orientation.name}}}"
        )


@dataclass(frozen=True)
class NdShardSpec:
    """A shard of any rank, distributed over `grid`."""

    shard_shape: Shape
    grid: CoreRangeSet
    orientation: ShardOrientation = ShardOrientation.ROW_MAJOR
    shard_distribution_strategy: Any = ShardDistributionStrategy.ROUND_ROBIN_1D

    def __post_init__(self) -> None:
        object.__setattr__(self, "shard_shape", Shape(self.shard_shape))

    def num_cores(self) -> int:
        return self.grid.num_cores()

    def to_json(self) -> str:
        """The fields as JSON; release 0.81.1 writes an error text instead of the shape, which cannot be read back."""
        fields = {
            "grid": json.loads(self.grid.to_json()),
            "orientation": self.orientation.value,
            "shard_distribution_strategy": self.shard_distribution_strategy.value,
            "shard_shape": UNWRITTEN_SHAPE,
        }
        return json.dumps(fields, separators=JSON_SEPARATORS)

    @staticmethod
    def from_json(text: str) -> NdShardSpec:
        fields = json_fields(text)
        names = ("shard_shape", "grid", "orientation", "shard_distribution_strategy")
        if not all(name in fields for name in names) or not isinstance(fields["shard_shape"], list):
            raise InvalidArgument(f"an NdShardSpec must have {', '.join(names)}, with a list as shape, unlike {text!r}")
        return NdShardSpec(
            Shape(fields["shard_shape"]),
            CoreRangeSet.from_json(json.dumps(fields["grid"])),
            ShardOrientation(fields["orientation"]),
            ShardDistributionStrategy(fields["shard_distribution_strategy"]),
        )

    def __repr__(self) -> str:
        return (
            f'{{"shard_shape":{list(self.shard_shape)},"grid":{_grid_json(self.grid, closed=True)},'
            f'"orientation":"ShardOrientation::{self.orientation.name}","shard_distribution_strategy":'
            f'"ShardDistributionStrategy::{self.shard_distribution_strategy.name}"}}'
        )
