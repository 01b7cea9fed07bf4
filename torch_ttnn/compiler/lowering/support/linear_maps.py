"""Multiplies images by a matrix along height and width, for pools and resampling of any size.

A product also adds zero times every unrelated pixel, and zero times infinity is NaN: one infinite pixel would spread
over its whole row. So only finite pixels are multiplied, and products of zeros and ones determine where infinities go.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from torch_ttnn.compiler.ir.builder import ProgramBuilder
from torch_ttnn.compiler.ir.value import Handle, Value
from torch_ttnn.compiler.lowering.support import image_layout

LARGEST_STACK = 1 << 24  # elements up to which a matrix is repeated for every row of the batch


@dataclass(frozen=True)
class LinearMap:
    """A linear map of the pixels along one dimension.

    weights  [new, old], the matrix
    reach    [new, old], the effect of an infinite pixel: 1 or -1 where the result is infinite with the same or the
             opposite sign, 0 where it has no effect, NaN where torch yields NaN
    """

    weights: torch.Tensor
    reach: torch.Tensor

    def transposed(self) -> LinearMap:
        return LinearMap(self.weights.t().contiguous(), self.reach.t().contiguous())

    @property
    def is_full(self) -> bool:
        """Whether the product itself is correct for infinite pixels: no weight is zero."""
        return bool((self.weights != 0).all())


def along_images(ttnn: Any, builder: ProgramBuilder, x: Value, maps: Sequence[LinearMap | None]) -> Value:
    """[N, C, *sizes] with each size mapped; None leaves a size unchanged."""
    for axis in reversed(range(len(maps))):
        here = maps[axis]
        if here is not None:
            x = _along(ttnn, builder, x, axis, here)
    return x


def _along(ttnn: Any, builder: ProgramBuilder, x: Value, axis: int, here: LinearMap) -> Value:
    """Views the stored images as [rows, old, inner]: multiplying each row from the left keeps channels last."""
    batch, channels, *sizes = x.shape
    new, old = here.weights.shape
    rows, inner = batch * math.prod(sizes[:axis]), math.prod(sizes[axis + 1 :]) * channels
    dtype = builder.device_dtype(x.dtype)
    sizes[axis] = new
    if rows * new * old > LARGEST_STACK:
        order = [dim for dim in range(x.ndim) if dim != axis + 2] + [axis + 2]

        def from_the_right(source: Handle, matrix: torch.Tensor) -> Handle:
            factor = builder.static(matrix.t().contiguous()).tile(dtype)
            return ttnn.matmul(source, factor, compute_kernel_config=builder.accurate)

        result = _mapped(ttnn, builder, x.permute(order).tile(dtype), here, from_the_right)
        back = [order.index(dim) for dim in range(x.ndim)]
        return builder.value(result, result.shape, x.dtype).permute(back)

    def from_the_left(source: Handle, matrix: torch.Tensor) -> Handle:
        stack = builder.static(matrix.expand(rows, new, old).contiguous()).tile(dtype)
        return ttnn.matmul(stack, source, compute_kernel_config=builder.accurate)

    result = _mapped(
        ttnn,
        builder,
        image_layout.arranged(ttnn, builder, x, (rows, old, inner), image_layout.TILE, dtype),
        here,
        from_the_left,
    )
    return image_layout.value(
        builder, builder.reshaped(result, (1, 1, rows * new * inner // channels, channels)), batch, sizes, x.dtype
    )


def _mapped(
    ttnn: Any, builder: ProgramBuilder, x: Handle, here: LinearMap, product: Callable[[Handle, torch.Tensor], Handle]
) -> Handle:
    """The product of the finite pixels, and infinity where an infinite pixel has an effect."""
    if here.is_full:
        return product(x, here.weights)
    infinite = builder.cast(ttnn.isinf(x), x.dtype)
    signs = ttnn.multiply(infinite, ttnn.sign(x))
    finite = ttnn.where(infinite, 0.0, x)
    reached = product(infinite, (here.reach != 0).float())
    signed = product(signs, here.reach.nan_to_num(0.0))
    # Where both signs meet, torch yields NaN, which is infinity on the device.
    to_infinity = ttnn.where(ttnn.lt(signed, 0.0), -math.inf, math.inf)
    return ttnn.where(ttnn.gt(reached, 0.0), to_infinity, product(finite, here.weights))


def averaging(old: int, new: int) -> LinearMap | None:
    """Means over the windows of torch's adaptive pools."""
    if old == new:
        return None
    matrix = torch.zeros(new, old)
    for row in range(new):
        start, end = row * old // new, -(-(row + 1) * old // new)
        matrix[row, start:end] = 1 / (end - start)
    return LinearMap(matrix, (matrix != 0).float())
