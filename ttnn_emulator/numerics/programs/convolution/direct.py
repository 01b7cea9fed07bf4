"""Direct convolutions in compiled loops: windows are read in place, sums stay in registers.

torch's library has a startup cost, and it is slow with little work per core; both matter less for large images. If the
processor multiplies pairs of bfloat16, neighbouring channels form the pairs, and large convolutions also take half the
time.
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

MOST_WORK = 1 << 25  # multiplications up to which this is faster than torch, including padding
LEAST_USE = 0.85  # share of a line's tile pixels that are not computed twice
ALONE = 1 << 20  # multiplications below which one thread runs alone
NO_TABLE = np.empty(0, np.float32)


@njit(cache=True, nogil=True)
def convolve_lines(line_range, panel_range, images, filters, target, pairs, sizes, steps, bias, ending):
    """A range of output lines, over all images, and a range of their channels; all operands are addresses.

    line_range   first line, and last + 1
    panel_range  the same for panels of COLUMNS channels
    sizes        output lines, pixels per line and channels; runs per window, and words per run
    steps        strides in words: between images, between windows vertically and horizontally, between runs
    """
    lines, width, channels, runs, length = sizes[0], sizes[1], sizes[2], sizes[3], sizes[4]
    by_image, down, along, by_run = steps[0], steps[1], steps[2], steps[3]
    for panel in range(panel_range[0], panel_range[1]):
        first = panel * COLUMNS
        for line in range(line_range[0], line_range[1]):
            top = images + 4 * (line // lines * by_image + line % lines * down)
            line_target = target + 4 * (line * width * channels + first)
            for tile in range(0, width, PIXELS):
                pixel = min(tile, width - PIXELS)  # the last tile overlaps the one before it
                tile_target = line_target + 4 * pixel * channels
                for run in range(runs):
                    window = top + 4 * (pixel * along + run * by_run)
                    matrix = filters + 4 * (first * runs + run * COLUMNS) * length
                    _multiply(pairs, length, window, along, matrix, tile_target, channels, run > 0)
            end_rows(line * width, (line + 1) * width, target, channels, first, first + COLUMNS, bias, ending, NO_TABLE)


@njit(cache=True, nogil=True, inline="always")
def _multiply(pairs, length, window, along, matrix, target, channels, add):
    if pairs:
        if length % UNROLLED == 0:
            multiply_windows_of_pairs(length, window, along, matrix, target, channels, add)
        else:
            multiply_windows_of_pairs_one_by_one(length, window, along, matrix, target, channels, add)
    elif length % UNROLLED == 0:
        multiply_windows(length, window, along, matrix, target, channels, add)
    else:
        multiply_windows_one_by_one(length, window, along, matrix, target, channels, add)


@Loop
def convolve_pieces(task):
    """Convolve pieces until none is left; `binding` lays out the task."""
    fields = longs(task, 13)
    pieces, lines, line_step, panels, panel_step = fields[1], fields[3], fields[4], fields[5], fields[6]
    images, filters, target, bias = fields[7], fields[8], fields[9], fields[10]
    ending, pairs = fields[11], fields[12] != 0
    sizes, steps = longs(task + 8 * 13, 5), longs(task + 8 * 18, 4)
    row = floats(bias, sizes[2] if bias else 0)
    across = -(-lines // line_step)
    while True:
        piece = next_piece(task)
        if piece >= pieces:
            break
        line, panel = piece % across * line_step, piece // across * panel_step
        line_range, panel_range = (line, min(line + line_step, lines)), (panel, min(panel + panel_step, panels))
        convolve_lines(line_range, panel_range, images, filters, target, pairs, sizes, steps, row, ending)


@dataclass(frozen=True)
class DirectConvolution:
    """One convolution of padded images [N, H, W, C]."""

    images: tuple[int, int, int, int]
    kernel: tuple[int, int]
    stride: tuple[int, int]
    dilation: tuple[int, int]
    size: tuple[int, int]  # of the output
    channels: int  # of the output
    narrow: bool = False  # whether images and filters are bfloat16

    @property
    def is_fit(self) -> bool:
        """Whether it is supported, and faster than torch."""
        return (
            MULTIPLIES_FAST
            and self.channels % COLUMNS == 0
            and self.size[1] >= max(PIXELS, LEAST_USE * -(-self.size[1] // PIXELS) * PIXELS)
            and self.dilation[1] == 1
            and (self.in_pairs or self._work <= MOST_WORK)
        )

    @property
    def in_pairs(self) -> bool:
        """Whether operands are bfloat16, in pairs of neighbouring channels."""
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
        per_word = 2 if self.in_pairs else 1
        words = matrix.reshape(self._taps // per_word, per_word, -1, COLUMNS)
        return words.permute(2, 0, 3, 1).to(self.dtype).contiguous()

    def binding(
        self, images: torch.Tensor, filters: torch.Tensor, bias: torch.Tensor | None, out: torch.Tensor, ending: int
    ) -> Callable[[], None]:
        """A function that convolves the current values of `images` into `out` [pixels, channels].

        `ending`: how sums are rounded. The caller keeps the operands alive.
        """
        batch, height, width, _ = self.images
        per_word = 2 if self.in_pairs else 1
        depth = self.images[3] // per_word
        line, lines, panels = width * depth, batch * self.size[0], self.channels // COLUMNS
        line_step, panel_step = self._shares(lines, panels)
        pieces = -(-lines // line_step) * -(-panels // panel_step)
        operands = (images.data_ptr(), filters.data_ptr(), out.data_ptr(), 0 if bias is None else bias.data_ptr())
        sizes = (*self.size, self.channels, self.kernel[0], self.kernel[1] * depth)
        steps = (height * line, self.stride[0] * line, self.stride[1] * depth, self.dilation[0] * line)
        end = (ending, self.in_pairs)
        task = (lines, line_step, panels, panel_step, *operands, *end, *sizes, *steps)
        return torch_threads.calling(convolve_pieces, pieces, task)

    def _shares(self, lines: int, panels: int) -> tuple[int, int]:
        """Lines and panels per piece: pieces are split by panels if there are many, else by lines."""
        if self._work <= ALONE:
            return lines, panels
        most = 2 * torch_threads.size()
        return (lines, -(-panels // most)) if panels >= most else (-(-lines // most), panels)
