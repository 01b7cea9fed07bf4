"""The gradient of weight normalisation (`nn.utils.weight_norm` and its parametrization).

torch decomposes the forward operator, but not the backward one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

Tensor = torch.Tensor
aten = torch.ops.aten


def weight_norm_backward(
    grad: Tensor, direction: Tensor, length: Tensor, norms: Tensor, dim: int
) -> tuple[Tensor, Tensor]:
    """`aten._weight_norm_interface_backward`: w = length · v ÷ |v|, with |v| over all dimensions but `dim`.

    The formula is that of aten/src/ATen/native/WeightNorm.cpp, computed in the dtype of the norms as its kernels do.
    """
    grad, v = grad.to(norms.dtype), direction.to(norms.dtype)
    others = [each for each in range(v.dim()) if each != dim]
    along = (grad * v).sum(others, keepdim=True) / norms  # the component of the gradient along v
    across = (length.to(norms.dtype) / norms) * (grad - v * (along / norms))
    return across.to(direction.dtype), along.to(length.dtype)


DECOMPOSITIONS: dict[Any, Callable[..., Any]] = {
    aten._weight_norm_interface_backward.default: weight_norm_backward,
}
