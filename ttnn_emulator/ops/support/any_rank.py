"""Rank-4 kernels for tensors of any rank: reshaping to rank 4 and back, and moving a dimension to the end."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ttnn_emulator.errors import require
from ttnn_emulator.execution.operation_table import ttnn
from ttnn_emulator.tensors.tensor import Tensor


def to_4d(tensor: Tensor) -> Tensor:
    """Extend a shape to rank 4 with leading ones, or merge its leading dimensions."""
    shape = tensor._spec.shape
    if len(shape) < 4:
        return ttnn.unsqueeze_to_4D(tensor)
    if len(shape) == 4:
        return tensor
    return ttnn.reshape(tensor, [math.prod(shape[:-3]), *shape[-3:]])


def from_4d(tensor: Tensor, shape: Sequence[int]) -> Tensor:
    """Back to the rank of `shape`; tiles do not go back to rank 1."""
    if len(shape) == 4:
        return tensor
    padded = tensor._spec.padded_shape
    require(
        len(shape) > 4 or all(size == 1 for size in padded[: 4 - len(shape)]),
        f"a tensor of padded shape {list(padded)} cannot be brought to rank {len(shape)}",
    )
    return ttnn.reshape(tensor, list(shape))


def with_last(tensor: Tensor, dim: int) -> Tensor:
    """`dim` exchanged with the last dimension, in the same memory."""
    if dim == tensor._spec.rank - 1:
        return tensor
    return ttnn.transpose(tensor, dim, -1, memory_config=tensor._spec.memory_config)
