"""Images multiplied by a matrix along their height and width: how pools and resampling of any size are done."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

from torch_ttnn.compiler.lowering import images
from torch_ttnn.compiler.value import Value

LARGEST_STACK = 1 << 24  # elements up to which a matrix is repeated for every row of a batch


def along_images(ttnn: Any, x: Value, matrices: Sequence[torch.Tensor | None]) -> Value:
    """[N, C, *sizes] with each size mapped by a matrix [new, old]; None leaves it."""
    for axis in reversed(range(len(matrices))):
        matrix = matrices[axis]
        if matrix is not None:
            x = _along(ttnn, x, axis, matrix)
    return x


def _along(ttnn: Any, x: Value, axis: int, matrix: torch.Tensor) -> Value:
    """The stored images seen as [rows, old, inner]: a matrix from the left for every row leaves channels last."""
    batch, channels, *sizes = x.shape
    new, old = matrix.shape
    rows, inner = batch * math.prod(sizes[:axis]), math.prod(sizes[axis + 1 :]) * channels
    dtype = ttnn.device_dtype(x.dtype)
    sizes[axis] = new
    if rows * new * old > LARGEST_STACK:
        order = [dim for dim in range(x.ndim) if dim != axis + 2] + [axis + 2]
        made = ttnn.matmul(
            x.permute(order).tile(dtype),
            ttnn.static(matrix.t().contiguous()).tile(dtype),
            compute_kernel_config=ttnn.accurate,
        )
        back = [order.index(dim) for dim in range(x.ndim)]
        return ttnn.value(made, made.shape, x.dtype).permute(back)
    source = images.arranged(ttnn, x, (rows, old, inner), images.TILE, dtype)
    stack = ttnn.static(matrix.expand(rows, new, old).contiguous())
    made = ttnn.matmul(stack.tile(dtype), source, compute_kernel_config=ttnn.accurate)
    return images.value(
        ttnn, ttnn.reshaped(made, (1, 1, rows * new * inner // channels, channels)), batch, sizes, x.dtype
    )


def averaging(old: int, new: int) -> torch.Tensor | None:
    """Means over the windows that torch's adaptive pools take."""
    if old == new:
        return None
    matrix = torch.zeros(new, old)
    for row in range(new):
        start, end = row * old // new, -(-(row + 1) * old // new)
        matrix[row, start:end] = 1 / (end - start)
    return matrix
