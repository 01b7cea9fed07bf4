"""Histograms of the sizes of an operation's tensors, as PNG files.

A report has several hundred of them, so matplotlib draws the shared frame (axis, ticks, labels) once, and each one adds
its bars and numbers to a copy: a few milliseconds instead of fifty or more for a new figure. All histograms of a
folder have the same horizontal axis, so that operations can be compared by eye.
"""

from __future__ import annotations

import io
import math
from collections import Counter
from dataclasses import dataclass

import numpy as np
from matplotlib import font_manager
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image, ImageDraw, ImageFont

INCHES, DPI = (6.4, 3.4), 80
PIXELS = tuple(round(inches * DPI) for inches in INCHES)
BINS = 4  # per decade
NONE = -1.0  # position of calls without elements, in decades: left of one element
START = NONE - 0.15  # of the axis
INK, QUIET, LINE, BAR = "#1f2328", "#6e7781", "#d0d7de", "#3b7ddd"
PREFIXES = ("", "k", "M", "G", "T", "P", "E")
LEFT, BOTTOM, WIDTH, HEIGHT = 0.095, 0.16, 0.875, 0.66  # position of the axes in the figure
LONGEST_TITLE = 52  # characters


@dataclass(frozen=True)
class Bar:
    left: float  # decades
    width: float
    calls: int


def bars(counts: Counter[int]) -> list[Bar]:
    """Calls by size in quarters of a decade; calls without elements have a separate bar."""
    by_bin: Counter[int] = Counter()
    for size, calls in counts.items():
        if size:
            by_bin[math.floor(math.log10(size) * BINS + 1e-9)] += calls
    found = [Bar(number / BINS, 1 / BINS, calls) for number, calls in sorted(by_bin.items())]
    return [Bar(NONE, 1 / BINS, counts[0]), *found] if counts[0] else found


def decades(largest: int) -> int:
    """The decades of an axis up to the largest size; at least a few, so that a single bar is not too wide."""
    return max(4, math.floor(math.log10(max(largest, 1))) + 1)


def ticks(most: int) -> list[int]:
    """Two to four round numbers of calls, the last at least the maximum.

    >>> ticks(7360), ticks(3)
    ([2000, 4000, 6000, 8000], [1, 2, 3])
    """
    scale = 10 ** max(0, math.floor(math.log10(max(most, 1) / 4)))
    step = next(each * scale for each in (1, 2, 5, 10) if each * scale * 4 >= most)
    return list(range(step, most + step, step))


def short(number: float) -> str:
    """A number in few characters.

    >>> short(950), short(2000), short(1500000)
    ('950', '2k', '1.5M')
    """
    power = 0
    while number >= 1000 and power < len(PREFIXES) - 1:
        number, power = number / 1000, power + 1
    return f"{number:.3g}{PREFIXES[power]}"


class Sheet:
    """Draws histograms with the same axis, one after another."""

    def __init__(self, label: str, largest: int) -> None:
        self._last = decades(largest)
        self._empty = _frame(label, self._last)
        self._title, self._small = _font("bold", 11), _font("normal", 8.5)

    def png(self, op_type: str, counts: Counter[int]) -> bytes:
        heights = bars(counts)
        steps = ticks(max((bar.calls for bar in heights), default=1))
        picture = self._empty.copy()
        pen = ImageDraw.Draw(picture)
        for step in steps:
            y = _y(step / steps[-1])
            pen.line((_x(0), y, _x(1), y), fill=LINE)
            pen.text((_x(0) - 5, y), short(step), QUIET, self._small, anchor="rm")
        for bar in heights:
            self._draw_bar(pen, bar, steps[-1])
        pen.text((_x(0), PIXELS[1] * 0.075), _title(op_type), INK, self._title, anchor="ls")
        pen.text((_x(0), PIXELS[1] * 0.142), _note(counts), QUIET, self._small, anchor="ls")
        file = io.BytesIO()
        picture.save(file, "png", compress_level=1)
        return file.getvalue()

    def _draw_bar(self, pen: ImageDraw.ImageDraw, bar: Bar, top: int) -> None:
        """At least one pixel high, so that every call is visible."""
        left, right = (_x((place - START) / (self._last - START)) for place in (bar.left, bar.left + bar.width))
        floor = _y(0) - 1
        pen.rectangle((left + 1, min(_y(bar.calls / top), floor), right - 1, floor), fill=BAR)


def _frame(label: str, last: int) -> Image.Image:
    """What all histograms of a sheet share, drawn by matplotlib."""
    figure = Figure(figsize=INCHES, dpi=DPI, facecolor="white")
    canvas = FigureCanvasAgg(figure)
    axes = figure.add_axes((LEFT, BOTTOM, WIDTH, HEIGHT))
    axes.set(xlim=(START, last), ylim=(0, 1))
    axes.set_xlabel(label, fontsize=9, color=INK)
    places = range(last + 1)
    axes.set_xticks([NONE + 0.5 / BINS, *places], ["none", *(short(10**place) for place in places)])
    axes.set_yticks([0], ["0"])
    axes.tick_params(labelsize=8.5, labelcolor=QUIET, color=LINE)
    axes.tick_params(axis="y", length=0)
    for side, spine in axes.spines.items():
        spine.set_visible(side == "bottom")
        spine.set_color("#afb8c1")
    figure.text(0.012, BOTTOM + HEIGHT / 2, "calls", fontsize=9, color=INK, rotation=90, va="center")
    canvas.draw()
    return Image.fromarray(np.asarray(canvas.buffer_rgba())).convert("RGB")


def _font(weight: str, points: float) -> ImageFont.FreeTypeFont:
    """The font of the frame."""
    path = font_manager.findfont(font_manager.FontProperties(family="DejaVu Sans", weight=weight))
    return ImageFont.truetype(path, points * DPI / 72)


def _x(share: float) -> int:
    """The pixel at this share of the axis, from the left."""
    return round(PIXELS[0] * (LEFT + WIDTH * share))


def _y(share: float) -> int:
    return round(PIXELS[1] * (1 - BOTTOM - HEIGHT * share))


def _title(op_type: str) -> str:
    """One line that fits, for any operation name."""
    line = "".join(each if each.isprintable() else "�" for each in op_type)
    return line if len(line) <= LONGEST_TITLE else f"{line[: LONGEST_TITLE - 1]}…"


def _note(counts: Counter[int]) -> str:
    total = counts.total()
    seen, middle = 0, 0
    for size, calls in sorted(counts.items()):
        seen, middle = seen + calls, size
        if 2 * seen >= total:
            break
    sizes = f"{len(counts)} different size{'s' if len(counts) != 1 else ''}"
    return f"{total:,} call{'s' if total != 1 else ''}, {sizes}, median {short(middle)} elements"
