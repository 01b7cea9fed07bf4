"""The number of slices of an operation in DRAM."""

from __future__ import annotations

import pytest

from ttnn_emulator.enums import Layout
from ttnn_emulator.errors import InvalidArgument
from ttnn_emulator.ops.conv.slicing import ALONG_WIDTH, Sliceable, Slicing, choose_slicing

WIDTH = 64


class Line(Sliceable):
    """One row of pixels. A slice takes `fixed` bytes plus one byte per pixel; the last one takes `last` more."""

    output_layout = Layout.ROW_MAJOR
    input_size = output_size = (1, WIDTH)

    def __init__(self, fixed: int, last: int = 0) -> None:
        self.fixed, self.last, self.asked = fixed, last, 0

    def input_slice(self, start, end):
        return start, end

    def l1_bytes(self, start, end, count):
        self.asked += 1
        return self.fixed + end[1] - start[1] + (self.last if end[1] == WIDTH else 0)


@pytest.mark.parametrize(
    ("line", "free", "count"), ((Line(0), 64, 1), (Line(0), 16, 4), (Line(8), 16, 8), (Line(0, 8), 16, 8))
)
def test_the_fewest_slices_that_all_fit(line: Line, free: int, count: int) -> None:
    assert choose_slicing(line, Slicing(ALONG_WIDTH, 0), free) == Slicing(ALONG_WIDTH, count)


def test_a_count_is_rejected_at_its_first_slice_that_does_not_fit() -> None:
    line = Line(fixed=100)
    with pytest.raises(InvalidArgument, match="could not find valid slice configuration"):
        choose_slicing(line, Slicing(ALONG_WIDTH, 0), 100)
    assert line.asked == WIDTH
