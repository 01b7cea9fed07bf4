"""The gradient of a softmax."""

from __future__ import annotations

from typing import Any

from torch_ttnn.compiler.ir.builder import ProgramBuilder
from torch_ttnn.compiler.ir.value import Handle

SMALLEST_SUM = 2.0**-20  # of weights: they add up to 1, or are all zero where every position is masked


def softmax_gradient(ttnn: Any, builder: ProgramBuilder, grad: Handle, weights: Handle, dim: int) -> Handle:
    """w × (g - Σ g × w ÷ Σ w), of float32.

    Rounded weights do not add up to 1. Without the division a weight next to 1 would have a gradient of the rounding
    error times g.
    """
    total = ttnn.sum(ttnn.multiply(grad, weights), dim=dim, keepdim=True, compute_kernel_config=builder.accurate)
    weight = ttnn.sum(weights, dim=dim, keepdim=True, compute_kernel_config=builder.accurate)
    mean = ttnn.divide(total, ttnn.clamp(weight, min=SMALLEST_SUM))
    return ttnn.multiply(weights, ttnn.subtract(grad, mean))
