"""Cores on the chip: coordinates, ranges and sets of ranges."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ttnn_emulator.errors import InvalidArgument

JSON_SEPARATORS = (",", ":")  # as the library writes it


@dataclass(frozen=True, order=True, init=False)
class CoreCoord:
    """One core by its column and row: `CoreCoord(x, y)` or `CoreCoord((x, y))`."""

    x: int
    y: int

    def __init__(self, x: int | Sequence[int], y: int | None = None, /) -> None:
        if y is None:
            if not isinstance(x, tuple | list) or len(x) != 2:
                raise TypeError(f"CoreCoord takes x and y, or one pair of them, not {x!r}")
            x, y = x
        if not (isinstance(x, int) and isinstance(y, int)) or x < 0 or y < 0:
            raise TypeError(f"CoreCoord takes two non-negative integers, not {x!r} and {y!r}")
        object.__setattr__(self, "x", x)
        object.__setattr__(self, "y", y)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, CoreCoord):
            return self.x == other.x and self.y == other.y
        return (self.x, self.y) == tuple(other) if isinstance(other, tuple | list) else NotImplemented

    def __hash__(self) -> int:
        return hash((self.x, self.y))

    def __repr__(self) -> str:
        return f"{self.x}-{self.y}"

    def __iter__(self):
        return iter((self.x, self.y))

    __str__ = __repr__

    def to_json(self) -> str:
        return json.dumps(_core_fields(self), separators=JSON_SEPARATORS)

    @staticmethod
    def from_json(text: str) -> CoreCoord:
        return _core_of(json_fields(text))


Coordinates = CoreCoord | tuple[int, int] | Sequence[int]  # the library accepts a pair wherever it accepts a core


def as_core(core: Coordinates) -> CoreCoord:
    return core if isinstance(core, CoreCoord) else CoreCoord(core)


@dataclass(frozen=True, init=False)
class CoreRange:
    """All cores of the rectangle from `start` to `end`, both included."""

    start: CoreCoord
    end: CoreCoord

    def __init__(self, start: Coordinates, end: Coordinates) -> None:
        object.__setattr__(self, "start", as_core(start))
        object.__setattr__(self, "end", as_core(end))
        if self.end.x < self.start.x or self.end.y < self.start.y:
            raise InvalidArgument(f"CoreRange: end core {self.end} must not be before start core {self.start}")

    def grid_size(self) -> CoreCoord:
        return CoreCoord(self.end.x - self.start.x + 1, self.end.y - self.start.y + 1)

    def size(self) -> int:
        extent = self.grid_size()
        return extent.x * extent.y

    def contains(self, other: Coordinates | CoreRange) -> bool:
        inner = other if isinstance(other, CoreRange) else CoreRange(other, other)
        return (
            self.start.x <= inner.start.x
            and self.start.y <= inner.start.y
            and inner.end.x <= self.end.x
            and inner.end.y <= self.end.y
        )

    def intersects(self, other: CoreRange) -> bool:
        return not (
            other.end.x < self.start.x
            or self.end.x < other.start.x
            or other.end.y < self.start.y
            or self.end.y < other.start.y
        )

    def cores(self, row_wise: bool = True) -> list[CoreCoord]:
        xs, ys = range(self.start.x, self.end.x + 1), range(self.start.y, self.end.y + 1)
        if row_wise:
            return [CoreCoord(x, y) for y in ys for x in xs]
        return [CoreCoord(x, y) for x in xs for y in ys]

    def to_json(self) -> str:
        return json.dumps(_range_fields(self), separators=JSON_SEPARATORS)

    @staticmethod
    def from_json(text: str) -> CoreRange:
        return _range_of(json_fields(text))

    def __repr__(self) -> str:
        return f"[{self.start} - {self.end}]"

    __str__ = __repr__


class CoreRangeSet:
    """Disjoint core ranges, in the order of the argument (a Python set is sorted, as in the library)."""

    def __init__(self, ranges: Iterable[CoreRange], /) -> None:
        items = list(ranges)
        if not all(isinstance(item, CoreRange) for item in items):
            raise TypeError(f"CoreRangeSet takes core ranges, not {items}")
        if isinstance(ranges, set | frozenset):
            items.sort(key=_row_order)
        for index, first in enumerate(items):
            for second in items[index + 1 :]:
                if first.intersects(second):
                    raise InvalidArgument(f"CoreRangeSet: ranges {first} and {second} overlap")
        self._ranges: tuple[CoreRange, ...] = tuple(items)

    def ranges(self) -> list[CoreRange]:
        return list(self._ranges)

    def size(self) -> int:
        return len(self._ranges)

    def empty(self) -> bool:
        return not self._ranges

    @cached_property
    def _count(self) -> int:
        return sum(core_range.size() for core_range in self._ranges)

    def num_cores(self) -> int:
        return self._count

    def bounding_box(self) -> CoreRange:
        return CoreRange(
            CoreCoord(min(r.start.x for r in self._ranges), min(r.start.y for r in self._ranges)),
            CoreCoord(max(r.end.x for r in self._ranges), max(r.end.y for r in self._ranges)),
        )

    def contains(self, other: Coordinates | CoreRange | CoreRangeSet) -> bool:
        inner: Sequence[Coordinates | CoreRange] = other._ranges if isinstance(other, CoreRangeSet) else (other,)
        return all(any(outer.contains(item) for outer in self._ranges) for item in inner)

    def cores(self, row_wise: bool = True) -> list[CoreCoord]:
        return [core for core_range in self._ranges for core in core_range.cores(row_wise)]

    def merge(self, other: CoreRangeSet) -> CoreRangeSet:
        """The union, as rectangles that are grown row by row."""
        return _covering({*self.cores(), *other.cores()})

    def subtract(self, other: CoreRangeSet) -> CoreRangeSet:
        """The difference: the rest of every range, columns left and right of the removed part first."""
        left = list(self._ranges)
        for taken in other._ranges:
            left = [piece for core_range in left for piece in _cut(core_range, taken)]
        return CoreRangeSet(left)

    def to_json(self) -> str:
        return json.dumps([_range_fields(core_range) for core_range in self._ranges], separators=JSON_SEPARATORS)

    @staticmethod
    def from_json(text: str) -> CoreRangeSet:
        return CoreRangeSet([_range_of(fields) for fields in json.loads(text)])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, CoreRangeSet):
            return NotImplemented
        return self._ranges == other._ranges or set(self._ranges) == set(other._ranges)

    @cached_property
    def _hash(self) -> int:
        return hash(frozenset(self._ranges))

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return "{" + ", ".join(repr(core_range) for core_range in self._ranges) + "}"

    __str__ = __repr__


def _cut(core_range: CoreRange, taken: CoreRange) -> list[CoreRange]:
    """`core_range` without `taken`: the columns left and right of it, then the rows above and below."""
    if not core_range.intersects(taken):
        return [core_range]
    (x0, y0), (x1, y1) = core_range.start, core_range.end
    left, right = max(x0, taken.start.x), min(x1, taken.end.x)
    top, bottom = max(y0, taken.start.y), min(y1, taken.end.y)
    sides = [(x0, y0, left - 1, y1), (right + 1, y0, x1, y1), (left, y0, right, top - 1), (left, bottom + 1, right, y1)]
    return [CoreRange(CoreCoord(ax, ay), CoreCoord(bx, by)) for ax, ay, bx, by in sides if ax <= bx and ay <= by]


def _covering(cores: set[CoreCoord]) -> CoreRangeSet:
    """Rectangles over exactly these cores: runs of each row, joined with the same run of the row below."""
    ranges: list[CoreRange] = []
    for y in sorted({core.y for core in cores}):
        columns = sorted(core.x for core in cores if core.y == y)
        starts = [x for x in columns if x - 1 not in columns]
        ends = [x for x in columns if x + 1 not in columns]
        for start, end in zip(starts, ends):
            above = next((r for r in ranges if (r.start.x, r.end.x, r.end.y) == (start, end, y - 1)), None)
            if above is None:
                ranges.append(CoreRange(CoreCoord(start, y), CoreCoord(end, y)))
            else:
                ranges[ranges.index(above)] = CoreRange(above.start, CoreCoord(end, y))
    return CoreRangeSet(ranges)


def json_fields(text: str) -> dict[str, Any]:
    """The parsed JSON object. The library aborts the process if fields are missing; the emulator raises an error."""
    if not isinstance(text, str):
        raise TypeError(f"from_json takes a string, not {text!r}")
    try:
        fields = json.loads(text)
    except json.JSONDecodeError as error:
        raise InvalidArgument(f"{text!r} is not JSON: {error}") from None
    if not isinstance(fields, dict):
        raise InvalidArgument(f"a JSON object is expected, not {text!r}")
    return fields


def _core_fields(core: CoreCoord) -> dict[str, int]:
    return {"x": core.x, "y": core.y}


def _core_of(fields: Any) -> CoreCoord:
    try:
        values = [fields[name] for name in ("x", "y")]
    except (KeyError, TypeError):
        raise InvalidArgument(f"a core must have fields x and y, unlike {fields!r}") from None
    if any(isinstance(value, bool) or not isinstance(value, int | float) for value in values):
        raise InvalidArgument(f"the coordinates of a core must be numbers, unlike {fields!r}")
    return CoreCoord(*(int(value) & 0xFFFFFFFF for value in values))  # read as unsigned 32-bit integers


def _range_fields(core_range: CoreRange) -> dict[str, dict[str, int]]:
    return {"end": _core_fields(core_range.end), "start": _core_fields(core_range.start)}


def _range_of(fields: Any) -> CoreRange:
    try:
        start, end = fields["start"], fields["end"]
    except (KeyError, TypeError):
        raise InvalidArgument(f"a core range must have fields start and end, unlike {fields!r}") from None
    return CoreRange(_core_of(start), _core_of(end))


def _row_order(core_range: CoreRange) -> tuple[int, int]:
    return core_range.start.y, core_range.start.x


@dataclass(frozen=True, kw_only=True)
class CoreGrid:
    """A grid of cores that starts at the origin; arguments by name, as in the library."""

    x: int
    y: int

    @property
    def num_cores(self) -> int:
        return self.x * self.y

    def __repr__(self) -> str:
        return f"ttnn.CoreGrid(x={self.x}, y={self.y})"


def num_cores_to_corerangeset(target_num_cores: int, grid_size: Coordinates, row_wise: bool = False) -> CoreRangeSet:
    """The first `target_num_cores` cores of a grid, row by row or column by column, in as few ranges as possible."""
    grid_size = as_core(grid_size)
    total = grid_size.x * grid_size.y
    if not 0 < target_num_cores <= total:
        raise InvalidArgument(f"num_cores_to_corerangeset: {target_num_cores} cores do not fit a grid of {total}")
    line = grid_size.x if row_wise else grid_size.y
    full, rest = divmod(target_num_cores, line)
    make = (
        (lambda along, across: CoreCoord(along, across))
        if row_wise
        else (lambda along, across: CoreCoord(across, along))
    )
    ranges = []
    if full:
        ranges.append(CoreRange(make(0, 0), make(line - 1, full - 1)))
    if rest:
        ranges.append(CoreRange(make(0, full), make(rest - 1, full)))
    return CoreRangeSet(ranges)


def corerange_to_cores(grid: CoreRangeSet, max_cores: int | None = None, row_wise: bool = False) -> list[CoreCoord]:
    """All cores of a set, in order, at most `max_cores` of them."""
    cores = grid.cores(row_wise)
    return cores if max_cores is None else cores[:max_cores]
