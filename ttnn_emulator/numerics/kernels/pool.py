"""Compiled loops of pooling over channels-last images."""

from __future__ import annotations

from numba import int32, njit

from ttnn_emulator.numerics.native.addresses import words

LEAST = -0x7F800001  # `_ordered` of -infinity


@njit(cache=True, nogil=True, inline="always")
def _ordered(raw):
    """Integers in the order of sign and magnitude, by which the chip compares floats; its own inverse."""
    return int32(raw ^ (int32(raw >> int32(31)) & int32(0x7FFFFFFF)))


@njit(cache=True, nogil=True)
def _update_maximum(line, raws):
    for i in range(line.size):
        line[i] = max(line[i], _ordered(raws[i]))


@njit(cache=True, nogil=True)
def _packed(line):
    """From ordered integers to packed floats: NaN as infinity of its sign, denormals and -0 as +0."""
    for i in range(line.size):
        raw = _ordered(line[i])
        size = min(int32(raw & int32(0x7FFFFFFF)), int32(0x7F800000))
        line[i] = int32(size | int32(raw & int32(-0x80000000))) if size >= int32(0x00800000) else int32(0)


@njit(cache=True, nogil=True)
def largest(first, last, source, target, size, out, window, channels):
    """Maximum pooling of output rows `first` to `last`, counted over all images.

    size    rows and columns of an image; `out`: of an output
    window  kernel size, dilation, stride and padding (top, left)
    """
    (height, width), (out_height, out_width) = size, out
    (high, wide), (apart_y, apart_x), (step_y, step_x), (above, beside) = window
    for row in range(first, last):
        image, top = row // out_height * height, row % out_height * step_y - above
        for column in range(out_width):
            left = column * step_x - beside
            line = words(target + 4 * (row * out_width + column) * channels, channels)
            line[:] = int32(LEAST)
            for y in range(top, top + high * apart_y, apart_y):
                for x in range(left, left + wide * apart_x, apart_x):
                    if 0 <= y < height and 0 <= x < width:
                        _update_maximum(line, words(source + 4 * ((image + y) * width + x) * channels, channels))
            _packed(line)
