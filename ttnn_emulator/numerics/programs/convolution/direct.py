"""Convolutions in compiled loops of our own: windows are read where they lie, sums stay in registers.

torch's library needs some time to begin, and little work for each core keeps it from its speed. The larger images are,
the less that matters; but where the processor multiplies pairs of bfloat16, neighbouring channels are such pairs, and
large convolutions take half of the time as well.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numba import njit

from ttnn_emulator.numerics.kernels.product_endings import end_rows
from ttnn_emulator.numerics.kernels.register_tiles.products import COLUMNS
from ttnn_emulator.numerics.kernels.register_tiles.windows import (
    PIXELS,
    UNROLLED,
    multiply_windows,
    multiply_windows_of_pairs,
    multiply_windows_of_pairs_one_by_one,
    multiply_windows_one_by_one,
)
from ttnn_emulator.numerics.native import torch_threads
from ttnn_emulator.numerics.native.addresses import floats, longs
from ttnn_emulator.numerics.native.instruction_set import MULTIPLIES_FAST, MULTIPLIES_PAIRS
from ttnn_emulator.numerics.native.torch_threads import Loop, next_piece

MOST_WORK = 1 << 25  # multiplications, up to which this is faster than torch, also if images must be padded first
LEAST_USE = 0.85  # of a tile's pixels, on average over a line: others are computed twice
ALONE = 1 << 20  # multiplications that one thread does before another is woken
NOTHING = np.empty(0, np.float32)


@njit(cache=True, nogil=True)
def convolve_lines(lines_done, panels_done, images, filters, target, pairs, sizes, steps, bias, ending):
    """Some lines of the outputs of all images, and some of their channels; all is given by address.

    lines_done   the first of the lines, and the one after the last
    panels_done  the same of panels of COLUMNS channels
    sizes        lines and pixels of an output, its channels; runs of a window, and the words of one
    steps        words from image to image, from window to window downwards and sideways, from run to run
    """
    lines, width, channels, runs, length = sizes[0], sizes[1], sizes[2], sizes[3], sizes[4]
    by_image, down, along, by_run = steps[0], steps[1], steps[2], steps[3]
    for panel in range(panels_done[0], panels_done[1]):
        first = panel * COLUMNS
        for line in range(lines_done[0], lines_done[1]):
            top = images + 4 * (line // lines * by_image + line % lines * down)
            made = target + 4 * (line * width * channels + first)
            for tile in range(0, width, PIXELS):
                pixel = min(tile, width - PIXELS)  # the last tile goes over some pixels once more
                goal = made + 4 * pixel * channels
                for run in range(runs):
                    seen = top + 4 * (pixel * along + run * by_run)
                    matrix = filters + 4 * (first * runs + run * COLUMNS) * length
                    _multiply(pairs, length, seen, along, matrix, goal, channels, run > 0)
            end_rows(line * width, (line + 1) * width, target, channels, first, first + COLUMNS, bias, ending, NOTHING)


@njit(cache=True, nogil=True, inline="always")
def _multiply(pairs, length, seen, along, matrix, goal, channels, add):
    if pairs:
        if length % UNROLLED == 0:
            multiply_windows_of_pairs(length, seen, along, matrix, goal, channels, add)
        else:
            multiply_windows_of_pairs_one_by_one(length, seen, along, matrix, goal, channels, add)
    elif length % UNROLLED == 0:
        multiply_windows(length, seen, along, matrix, goal, channels, add)
    else:
        multiply_windows_one_by_one(length, seen, along, matrix, goal, channels, add)


@Loop
def convolve_pieces(task):
    """Some lines and channels after some others, until all are done; `task` is as `binding` makes it."""
    given = longs(task, 13)
    pieces, lines, line_step, panels, panel_step = given[1], given[3], given[4], given[5], given[6]
    images, filters, target, bias = given[7], given[8], given[9], given[10]
    ending, pairs = given[11], given[12] != 0
    sizes, steps = longs(task + 8 * 13, 5), longs(task + 8 * 18, 4)
    row = floats(bias, sizes[2] if bias else 0)
    across = -(-lines // line_step)
    while True:
        piece = next_piece(task)
        if piece >= pieces:
            break
        line, panel = piece % across * line_step, piece // across * panel_step
        these, those = (line, min(line + line_step, lines)), (panel, min(panel + panel_step, panels))
        convolve_lines(these, those, images, filters, target, pairs, sizes, steps, row, ending)


@dataclass(frozen=True)
class DirectConvolution:
    """One convolution of images [N, H, W, C] that are padded already."""

    images: tuple[int, int, int, int]
    kernel: tuple[int, int]
    stride: tuple[int, int]
    dilation: tuple[int, int]
    size: tuple[int, int]  # of the output
    channels: int  # of the output
    narrow: bool = False  # whether images and filters are bfloat16

    @property
    def is_fit(self) -> bool:
        """Whether it can be done here, and pays."""
        return (
            MULTIPLIES_FAST
            and self.channels % COLUMNS == 0
            and self.size[1] >= max(PIXELS, LEAST_USE * -(-self.size[1] // PIXELS) * PIXELS)
            and self.dilation[1] == 1
            and (self.in_pairs or self._work <= MOST_WORK)
        )

    @property
    def in_pairs(self) -> bool:
        """Whether it takes bfloat16, two neighbouring channels at a time."""
        return MULTIPLIES_PAIRS and self.narrow and self.images[3] % 2 == 0

    @property
    def dtype(self) -> torch.dtype:
        """Of images and filters."""
        return torch.bfloat16 if self.in_pairs else torch.float32

    @property
    def _work(self) -> int:
        """Multiplications."""
        return self.images[0] * self.size[0] * self.size[1] * self.channels * self._taps

    @property
    def _taps(self) -> int:
        return self.kernel[0] * self.kernel[1] * self.images[3]

    def packed(self, matrix: torch.Tensor) -> torch.Tensor:
        """Filters [kernel rows × kernel columns × C, channels] in panels of neighbouring output channels."""
        held = 2 if self.in_pairs else 1
        words = matrix.reshape(self._taps // held, held, -1, COLUMNS)
        return words.permute(2, 0, 3, 1).to(self.dtype).contiguous()

    def binding(
        self, images: torch.Tensor, filters: torch.Tensor, bias: torch.Tensor | None, made: torch.Tensor, ending: int
    ) -> Callable[[], None]:
        """A function that convolves what `images` hold by then into `made` [pixels, channels].

        `ending` is what becomes of sums. Whoever calls it keeps the operands alive.
        """
        batch, height, width, _ = self.images
        held = 2 if self.in_pairs else 1
        depth = self.images[3] // held
        line, lines, panels = width * depth, batch * self.size[0], self.channels // COLUMNS
        line_step, panel_step = self._shares(lines, panels)
        pieces = -(-lines // line_step) * -(-panels // panel_step)
        operands = (images.data_ptr(), filters.data_ptr(), made.data_ptr(), 0 if bias is None else bias.data_ptr())
        sizes = (*self.size, self.channels, self.kernel[0], self.kernel[1] * depth)
        steps = (height * line, self.stride[0] * line, self.stride[1] * depth, self.dilation[0] * line)
        end = (ending, self.in_pairs)
        task = (lines, line_step, panels, panel_step, *operands, *end, *sizes, *steps)
        return torch_threads.calling(convolve_pieces, pieces, task)

    def _shares(self, lines: int, panels: int) -> tuple[int, int]:
        """Lines and panels that a thread does at a time. Many panels are shared, since each is large; few are not."""
        if self._work <= ALONE:
            return lines, panels
        most = 2 * torch_threads.size()
        return (lines, -(-panels // most)) if panels >= most else (-(-lines // most), panels)
