"""Gradients of activations for which torch has no decomposition, or one of several more operations.

All others (threshold, silu, hardswish, elu …) are decomposed into operations that have lowerings.
"""

from __future__ import annotations

import math
from typing import Any

import torch

from torch_ttnn.compiler.ir.value import Handle
from torch_ttnn.compiler.lowering.support.promotion import BFLOAT16, elementwise

aten = torch.ops.aten


@elementwise(aten.gelu_backward.default, constants=())
def gelu_backward(ttnn: Any, grad: Handle, x: Handle, *, approximate: str = "none") -> Handle:
    if approximate == "tanh":
        return ttnn.gelu_bw(grad, x, variant=ttnn.GeluVariant.Tanh)[0]
    if x.dtype is BFLOAT16:
        return ttnn.gelu_bw(grad, x)[0]
    # The library's operation is no more accurate in float32 than in bfloat16.
    distribution = ttnn.multiply(ttnn.add(ttnn.erf(ttnn.multiply(x, math.sqrt(0.5))), 1.0), 0.5)
    density = ttnn.multiply(ttnn.exp(ttnn.multiply(ttnn.square(x), -0.5)), 1 / math.sqrt(2 * math.pi))
    return ttnn.multiply(grad, ttnn.addcmul(distribution, x, density))


@elementwise(aten.hardshrink_backward.default, aten.softshrink_backward.default, constants=())
def shrink_backward(ttnn: Any, grad: Handle, x: Handle, lambd: float) -> Handle:
    """The gradient passes where |x| is beyond lambd."""
    return ttnn.where(ttnn.gt(ttnn.abs(x), float(lambd)), grad, 0.0)
