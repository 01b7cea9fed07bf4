"""Small convolutions in compiled loops of our own: windows are read where they lie, sums stay in registers.

torch's library needs some time to begin, and little work for each core keeps it from its speed. The larger images are,
the less that matters.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numba import cfunc, njit, types

from ttnn_emulator.numerics import team
from ttnn_emulator.numerics.addresses import floats, longs
from ttnn_emulator.numerics.processor import MULTIPLIES_FAST
from ttnn_emulator.numerics.product_kernels import RELU, ROUNDED, finish_rows
from ttnn_emulator.numerics.register_tile import COLUMNS
from ttnn_emulator.numerics.team import next_piece
from ttnn_emulator.numerics.window_tile import PIXELS, UNROLLED, multiply_windows, multiply_windows_one_by_one

MOST_WORK = 1 << 25  # multiplications, up to which this is faster than torch, also if images must be padded first
LEAST_USE = 0.85  # of a tile's pixels, on average over a line: others are computed twice
ALONE = 1 << 20  # multiplications that one thread does before another is woken
NOTHING = np.empty(0, np.float32)


@njit(cache=True, nogil=True)
def convolve_lines(first, last, images, filters, target, sizes, steps, bias, finish):
    """Lines `first` to `last` of the outputs of all images; all is given by address.

    sizes  lines and pixels of an output, its channels; runs of a window, and the values of one
    steps  floats from image to image, from window to window downwards and sideways, from run to run
    """
    lines, width, channels, runs, length = sizes[0], sizes[1], sizes[2], sizes[3], sizes[4]
    by_image, down, along, by_run = steps[0], steps[1], steps[2], steps[3]
    for line in range(first, last):
        top = images + 4 * (line // lines * by_image + line % lines * down)
        made = target + 4 * line * width * channels
        for panel in range(0, channels, COLUMNS):
            for tile in range(0, width, PIXELS):
                pixel = min(tile, width - PIXELS)  # the last tile goes over some pixels once more
                goal = made + 4 * (pixel * channels + panel)
                for run in range(runs):
                    seen = top + 4 * (pixel * along + run * by_run)
                    matrix = filters + 4 * (panel * runs + run * COLUMNS) * length
                    if length % UNROLLED == 0:
                        multiply_windows(length, seen, along, matrix, goal, channels, run > 0)
                    else:
                        multiply_windows_one_by_one(length, seen, along, matrix, goal, channels, run > 0)
        finish_rows(line * width, (line + 1) * width, target, channels, 0, channels, bias, finish, NOTHING)


@cfunc(types.void(types.int64), cache=True)
def convolve_pieces(task):
    """Some lines after some others, until all are done; `task` is as `binding` makes it."""
    given = longs(task, 10)
    pieces, lines, step, bias, finish = given[1], given[3], given[4], given[8], given[9]
    images, filters, target = given[5], given[6], given[7]
    sizes, steps = longs(task + 8 * 10, 5), longs(task + 8 * 15, 4)
    row = floats(bias, sizes[2] if bias else 0)
    while True:
        piece = next_piece(task)
        if piece >= pieces:
            break
        first = piece * step
        convolve_lines(first, min(first + step, lines), images, filters, target, sizes, steps, row, finish)


@dataclass(frozen=True)
class DirectConvolution:
    """One convolution of images [N, H, W, C] that are padded already."""

    images: tuple[int, int, int, int]
    kernel: tuple[int, int]
    stride: tuple[int, int]
    dilation: tuple[int, int]
    size: tuple[int, int]  # of the output
    channels: int  # of the output

    @property
    def is_fit(self) -> bool:
        """Whether it can be done here, and pays."""
        return (
            MULTIPLIES_FAST
            and self.channels % COLUMNS == 0
            and self.size[1] >= LEAST_USE * -(-self.size[1] // PIXELS) * PIXELS
            and self.dilation[1] == 1
            and self._work <= MOST_WORK
        )

    @property
    def _work(self) -> int:
        """Multiplications."""
        return self.images[0] * self.size[0] * self.size[1] * self.channels * self._taps

    @property
    def _taps(self) -> int:
        return self.kernel[0] * self.kernel[1] * self.images[3]

    def packed(self, matrix: torch.Tensor) -> torch.Tensor:
        """Filters [kernel rows × kernel columns × C, channels] in panels of neighbouring output channels."""
        return matrix.reshape(self._taps, -1, COLUMNS).permute(1, 0, 2).contiguous()

    def binding(
        self, images: torch.Tensor, filters: torch.Tensor, bias: torch.Tensor | None, made: torch.Tensor, *, relu: bool
    ) -> Callable[[], None]:
        """A function that convolves what `images` hold by then into `made` [pixels, channels], rounded to bfloat16.

        Whoever calls it keeps them alive.
        """
        batch, height, width, depth = self.images
        line, lines = width * depth, batch * self.size[0]
        pieces = min(lines, 2 * team.size() if self._work > ALONE else 1)
        operands = (images.data_ptr(), filters.data_ptr(), made.data_ptr(), 0 if bias is None else bias.data_ptr())
        sizes = (*self.size, self.channels, self.kernel[0], self.kernel[1] * depth)
        steps = (height * line, self.stride[0] * line, self.stride[1] * depth, self.dilation[0] * line)
        end = RELU if relu else ROUNDED
        return team.calling(convolve_pieces, pieces, (lines, -(-lines // pieces), *operands, end, *sizes, *steps))
