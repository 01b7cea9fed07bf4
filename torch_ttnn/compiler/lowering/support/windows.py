"""Windows over images from slices, pads and concatenations, for operations that the library lacks.

Convolutions with computed weights, gradients of convolutions and pools, and pools with indices or in float32 read their
input as one slice per tap of the kernel. Tensors here are [N, *sizes, C], in rows.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from torch_ttnn.compiler.errors import refuse
from torch_ttnn.compiler.ir.builder import ProgramBuilder
from torch_ttnn.compiler.ir.value import Handle

MOST_TAPS = 64  # limit on the slices into which one operation is unrolled


@dataclass(frozen=True)
class Windows:
    """The windows of a kernel over images; `padding` is a (before, after) pair per dimension."""

    sizes: tuple[int, ...]
    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    padding: tuple[tuple[int, int], ...]
    dilation: tuple[int, ...]

    @classmethod
    def of(
        cls,
        sizes: Sequence[int],
        kernel: Sequence[int],
        stride: Sequence[int],
        padding: Sequence[int],
        dilation: Sequence[int],
        output: Sequence[int] | None = None,
    ) -> Windows:
        """Equal padding on both sides; more at the end if ceil mode needs it."""
        rank = len(sizes)
        kernel, stride, padding, dilation = (spread(each, rank) for each in (kernel, stride, padding, dilation))
        sides = []
        for axis, pad in enumerate(padding):
            after = pad
            if output is not None:
                reach = dilation[axis] * (kernel[axis] - 1) + 1
                after = max(pad, (output[axis] - 1) * stride[axis] + reach - sizes[axis] - pad)
            sides.append((pad, after))
        return cls(tuple(sizes), kernel, stride, tuple(sides), dilation)

    @property
    def output(self) -> tuple[int, ...]:
        rows = zip(self.sizes, self.kernel, self.stride, self.padding, self.dilation)
        return tuple(
            [(size + sum(pad) - dilation * (taps - 1) - 1) // step + 1 for size, taps, step, pad, dilation in rows]
        )

    @property
    def taps(self) -> list[tuple[int, ...]]:
        """Positions in the kernel, in row-major order."""
        return list(itertools.product(*[range(size) for size in self.kernel]))

    @property
    def are_adjacent(self) -> bool:
        """Whether windows neither overlap nor leave gaps, as in patch embeddings."""
        dense = set(self.dilation) == {1} and not any(side for pair in self.padding for side in pair)
        return dense and self.kernel == self.stride and len(self.sizes) <= 2

    @property
    def has_empty_window(self) -> bool:
        """Whether some window is entirely in the padding."""
        for axis, (size, taps) in enumerate(zip(self.sizes, self.kernel)):
            for position in range(self.output[axis]):
                start = position * self.stride[axis] - self.padding[axis][0]
                if not any(0 <= start + tap * self.dilation[axis] < size for tap in range(taps)):
                    return True
        return False

    def start(self, tap: Sequence[int]) -> list[int]:
        """The position of a tap's first pixel in the padded images."""
        return [position * dilation for position, dilation in zip(tap, self.dilation)]


def spread(values: int | Sequence[int], rank: int) -> tuple[int, ...]:
    """One number for all dimensions, or one for each."""
    given = (values,) if isinstance(values, int) else tuple(values)
    return given * rank if len(given) == 1 else given


def padded_images(ttnn: Any, x: Handle, sides: Sequence[tuple[int, int]], value: float = 0.0) -> Handle:
    """Pads images, or crops them where a side is negative."""
    if any(side < 0 for pair in sides for side in pair):
        starts = [max(-before, 0) for before, _ in sides]
        ends = [size - max(-after, 0) for size, (_, after) in zip(x.shape[1:-1], sides)]
        x = ttnn.slice(x, [0, *starts, 0], [x.shape[0], *ends, x.shape[-1]])
    grown = [(max(before, 0), max(after, 0)) for before, after in sides]
    if not any(side for pair in grown for side in pair):
        return x
    return ttnn.pad(x, [(0, 0), *grown, (0, 0)], value=value)


def taps_of(ttnn: Any, images: Handle, windows: Windows) -> list[Handle]:
    """The pixels of padded images under each tap of the kernel: one [N, *output, C] per tap."""
    taps = windows.taps
    if len(taps) > MOST_TAPS:
        refuse(f"a kernel of {len(taps)} taps needs too many slices")
    if len(taps) == 1 and windows.output == tuple(images.shape[1:-1]):
        return [images]
    batch, channels = images.shape[0], images.shape[-1]
    seen = []
    for tap in taps:
        start = windows.start(tap)
        rows = zip(start, windows.output, windows.stride)
        end = [first + (count - 1) * step + 1 for first, count, step in rows]
        seen.append(ttnn.slice(images, [0, *start, 0], [batch, *end, channels], [1, *windows.stride, 1]))
    return seen


def side_by_side(ttnn: Any, builder: ProgramBuilder, images: Handle, windows: Windows) -> Handle:
    """[N × output pixels, taps × C] from padded images, in rows."""
    if windows.are_adjacent and len(windows.taps) > 1:
        return _adjacent_windows(ttnn, builder, images, windows)
    seen = taps_of(ttnn, images, windows)
    joined = ttnn.concat(seen, dim=-1) if len(seen) > 1 else seen[0]
    return builder.reshaped(joined, (math.prod(joined.shape[:-1]), joined.shape[-1]))


def _adjacent_windows(ttnn: Any, builder: ProgramBuilder, images: Handle, windows: Windows) -> Handle:
    """Adjacent windows without overlap need no slices: a permutation swaps rows of pixels with rows of taps."""
    batch, channels = images.shape[0], images.shape[-1]
    used = [count * size for count, size in zip(windows.output, windows.kernel)]
    if used != list(images.shape[1:-1]):
        images = ttnn.slice(images, [0] * len(images.shape), [batch, *used, channels])
    rows, columns = (1,) * (2 - len(used)) + windows.output
    high, wide = (1,) * (2 - len(used)) + windows.kernel
    lines = builder.reshaped(images, (batch * rows, high, columns, wide * channels))
    swapped = ttnn.permute(lines, [0, 2, 1, 3]) if high > 1 else lines
    return builder.reshaped(swapped, (batch * rows * columns, high * wide * channels))


def patches(ttnn: Any, builder: ProgramBuilder, images: Handle, windows: Windows) -> Handle:
    """[N × output pixels, taps × C] from padded images, in tiles."""
    return builder.tiled(side_by_side(ttnn, builder, images, windows))


def dilate(ttnn: Any, builder: ProgramBuilder, x: Handle, steps: Sequence[int]) -> Handle:
    """Inserts zeros between pixels, and after the last: [N, *sizes, C] → [N, *(size × step), C]."""
    for axis, step in enumerate(steps, start=1):
        if step == 1:
            continue
        shape = x.shape
        # Append rows of zeros to every row of pixels, with the contents of a row merged into the last dimension.
        rows, inner = math.prod(shape[: axis + 1]), math.prod(shape[axis + 1 :])
        wide = ttnn.pad(builder.reshaped(x, (rows, 1, inner)), [(0, 0), (0, step - 1), (0, 0)], value=0.0)
        x = builder.reshaped(wide, (*shape[:axis], shape[axis] * step, *shape[axis + 1 :]))
    return x


def sum_of_taps(ttnn: Any, builder: ProgramBuilder, parts: Sequence[Handle], windows: Windows) -> Handle:
    """The adjoint of `taps_of` and the padding: scatter-adds each tap to the pixels that it read."""
    total = None
    for part, tap in zip(parts, windows.taps):
        starts = [start - pad[0] for start, pad in zip(windows.start(tap), windows.padding)]
        extents = [(count - 1) * step + 1 for count, step in zip(windows.output, windows.stride)]
        if any(start + extent <= 0 or start >= size for start, extent, size in zip(starts, extents, windows.sizes)):
            continue  # it reads only padding
        dilated = dilate(ttnn, builder, part, windows.stride)
        rows = zip(starts, windows.sizes, dilated.shape[1:-1])
        padded = builder.tiled(
            padded_images(ttnn, dilated, [(start, size - start - extent) for start, size, extent in rows])
        )
        total = padded if total is None else ttnn.add(total, padded)
    if total is None:
        refuse("no tap of the kernel reads any pixel")
    return total
