"""Gradients of elementwise operations of three operands."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ttnn_emulator.errors import require
from ttnn_emulator.execution.operation_table import composite, ttnn
from ttnn_emulator.ops.backward.registration import INFINITY, NAN
from ttnn_emulator.ops.backward.unary import require_placed
from ttnn_emulator.tensors.memory_config import MemoryConfig
from ttnn_emulator.tensors.tensor import Tensor


@composite("ttnn.addcmul_bw")
def addcmul_bw(
    grad_tensor: Tensor,
    input_tensor_a: Tensor,
    input_tensor_b: Tensor,
    input_tensor_c: Tensor,
    alpha: float,
    *,
    memory_config: MemoryConfig | None = None,
) -> list:
    """Of a + α b c: g, α g c and α g b."""
    m = {"memory_config": memory_config if memory_config is not None else input_tensor_a.memory_config()}
    factors = (input_tensor_c, input_tensor_b)
    return [grad_tensor, *(ttnn.multiply(ttnn.multiply(grad_tensor, x, **m), alpha, **m) for x in factors)]


@composite("ttnn.addcdiv_bw")
def addcdiv_bw(
    grad_tensor: Tensor,
    input_tensor_a: Tensor,
    input_tensor_b: Tensor,
    input_tensor_c: Tensor,
    alpha: float,
    *,
    memory_config: MemoryConfig | None = None,
) -> list:
    """Of a + α b ÷ c: g, α g ÷ c and -α g b ÷ c²."""
    m = {"memory_config": memory_config if memory_config is not None else input_tensor_a.memory_config()}
    g, b, c = grad_tensor, input_tensor_b, input_tensor_c

    def unless_zero(value: Tensor, limit: float) -> Tensor:
        at_zero = ttnn.eqz(c, **m)
        return ttnn.where(at_zero, ttnn.where(ttnn.eqz(g, **m), NAN, limit, **m), value, **m)

    inverse = ttnn.reciprocal(c, **m)
    first = unless_zero(ttnn.multiply(ttnn.multiply(g, alpha, **m), inverse), INFINITY)
    product = ttnn.multiply(ttnn.multiply(ttnn.neg(g, **m), alpha, **m), b, **m)
    second = ttnn.multiply(ttnn.multiply(product, inverse, **m), inverse, **m)
    return [g, first, unless_zero(second, -INFINITY)]


@composite("ttnn.where_bw")
def where_bw(
    grad_tensor: Tensor,
    input_tensor_a: Tensor,
    input_tensor_b: Tensor,
    input_tensor_c: Tensor,
    *,
    memory_config: MemoryConfig | None = None,
    are_required_outputs: Sequence[bool] = (True, True),
    input_a_grad: Tensor | None = None,
    input_b_grad: Tensor | None = None,
) -> list:
    """The gradient where the condition holds, and where it does not."""
    require(len(are_required_outputs) >= 2, f"two outputs are to be named, not {len(are_required_outputs)}")
    for given in (input_a_grad, input_b_grad):
        require_placed(given)
    m = {"memory_config": memory_config}
    choices = ((grad_tensor, 0.0, input_a_grad), (0.0, grad_tensor, input_b_grad))
    return [
        ttnn.where(input_tensor_a, if_true, if_false, output_tensor=out, **m) if wanted else None
        for wanted, (if_true, if_false, out) in zip(are_required_outputs, choices)
    ]


@composite("ttnn.lerp_bw")
def lerp_bw(
    grad_tensor: Tensor,
    input_tensor_a: Tensor,
    input_tensor_b: Tensor,
    input_tensor_c: Tensor | None = None,
    scalar: float | None = None,
    *,
    memory_config: MemoryConfig | None = None,
) -> list:
    """Of a + w (b - a): g (1 - w), g w and, if the weight is a tensor, g (b - a)."""
    m, g = {"memory_config": memory_config}, grad_tensor
    if input_tensor_c is None:
        weight = np.float32(scalar)
        return [ttnn.multiply(g, float(share), **m) for share in (np.float32(1.0) - weight, weight)]
    first = ttnn.multiply(g, ttnn.rsub(input_tensor_c, 1.0, **m), **m)
    second = ttnn.multiply(g, input_tensor_c, **m)
    return [first, second, ttnn.multiply(g, ttnn.subtract(input_tensor_b, input_tensor_a, **m), **m)]
