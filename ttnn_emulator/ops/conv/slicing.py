"""Slicing of operations on images in DRAM that do not fit L1: number of slices and dimension."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ttnn_emulator.enums import ALL_ENUMS, Layout
from ttnn_emulator.errors import InvalidArgument, require
from ttnn_emulator.ops.conv.sliding_window import TILE, Pair
from ttnn_emulator.tensors.shapes import div_up

SliceType = Any  # a member of the library's SliceTypeEnum
ALONG_HEIGHT = ALL_ENUMS["SliceTypeEnum"].DRAMSliceHeight
ALONG_WIDTH = ALL_ENUMS["SliceTypeEnum"].DRAMSliceWidth
WHOLE = ALL_ENUMS["SliceTypeEnum"].L1Full

# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/sliding_window/op_slicing/op_slicing.cpp, threshold_ratio and input_width
# in best_guess_slice_type
TALL = 3.0  # ratio of height to width above which a row-major image is sliced along its height
NARROW = 200  # columns below which a tiled image is sliced along its height


@dataclass(frozen=True)
class Slicing:
    """The number of output slices, and their dimension."""

    kind: SliceType
    count: int


class Sliceable(ABC):
    """An operation on one slice of its output. Corners are (row, column), end exclusive."""

    output_layout: Layout
    input_size: Pair
    output_size: Pair

    @abstractmethod
    def input_slice(self, start: Pair, end: Pair) -> tuple[Pair, Pair]:
        """The input region of an output slice."""

    @abstractmethod
    def l1_bytes(self, start: Pair, end: Pair, count: int) -> int:
        """L1 bytes per core of a slice."""


def output_slices(op: Sliceable, slicing: Slicing) -> Iterator[tuple[Pair, Pair]]:
    """The output slices with a non-empty input region."""
    along_height = slicing.kind is ALONG_HEIGHT
    axis = 0 if along_height else 1
    extent = op.output_size[axis]
    step = _step(op, slicing.kind)
    least, rest = divmod(div_up(extent, step), slicing.count)
    begin = 0
    for number in range(slicing.count):
        if begin >= extent:
            return
        end = min(extent, begin + step * (least + (number < rest)))
        if end == begin:
            continue
        corners = ((begin, 0), (end, op.output_size[1])) if along_height else ((0, begin), (op.output_size[0], end))
        first, last = op.input_slice(*corners)
        if max(0, first[axis]) < min(op.input_size[axis], last[axis]):
            yield corners
            begin = begin + step * (least + (number < rest))


def most_slices(op: Sliceable, kind: SliceType) -> int:
    """The largest number of slices; slices of a tiled output end at tile boundaries."""
    extent = op.output_size[0 if kind is ALONG_HEIGHT else 1]
    return div_up(extent, _step(op, kind)) if op.output_layout is Layout.TILE else extent


def _step(op: Sliceable, kind: SliceType) -> int:
    return TILE if op.output_layout is Layout.TILE and kind is ALONG_WIDTH else 1


def choose_slicing(op: Sliceable, given: Slicing | None, free_bytes: int) -> Slicing:
    """The requested slicing, or the fewest slices that fit into free L1."""
    if given is not None and given.count > 0:
        return given
    kinds = [given.kind] if given is not None else _both(best_guess(op))
    for kind in kinds:
        for count in range(1, most_slices(op, kind) + 1):
            slicing = Slicing(kind, count)
            if all(op.l1_bytes(*corners, count) <= free_bytes for corners in output_slices(op, slicing)):
                return slicing
    raise InvalidArgument(
        f"could not find valid slice configuration: no number of slices fits into {free_bytes} B of L1 per core",
        hint="Deallocate tensors in L1, or use fewer channels or a smaller window.",
    )


# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/sliding_window/op_slicing/op_slicing.cpp, best_guess_slice_type
def best_guess(op: Sliceable) -> SliceType:
    """The preferred dimension: width, because slices overlap less, except for tall or narrow images."""
    height, width = op.input_size
    if op.output_layout is Layout.ROW_MAJOR:
        return ALONG_HEIGHT if height > width * TALL else ALONG_WIDTH
    return ALONG_HEIGHT if width < NARROW or height > width else ALONG_WIDTH


def _both(first: SliceType) -> list[SliceType]:
    return [first, ALONG_WIDTH if first is ALONG_HEIGHT else ALONG_HEIGHT]


def require_countable(op: Sliceable, slicing: Slicing) -> None:
    most = most_slices(op, slicing.kind)
    require(slicing.count <= most, f"{slicing.count} slices are too many: the output can be cut into {most} at most")
