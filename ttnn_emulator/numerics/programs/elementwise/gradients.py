"""Gradients that a single vector unit kernel computes: of tanh, sigmoid, both variants of gelu, and products.

Every step stores its result in the destination register, 16 or 32 bits wide, before the next step reads it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch

from ttnn_emulator.enums import DataType
from ttnn_emulator.numerics.broadcasting import of_one_shape
from ttnn_emulator.numerics.functions import derivative  # noqa: F401  its kernels register themselves
from ttnn_emulator.numerics.functions.apply import apply_function
from ttnn_emulator.numerics.programs.elementwise import binary
from ttnn_emulator.numerics.programs.elementwise.vector_binary import nearest_even, stored
from ttnn_emulator.numerics.units.packer import pack
from ttnn_emulator.numerics.units.vector_unit import Float, add, sub

Values = torch.Tensor
Compute = Callable[[Values, Values], Values]
FLOAT32, BFLOAT16 = DataType.FLOAT32, DataType.BFLOAT16

PRODUCT = {
    fp32: binary.prepare("MUL", binary.Setting(dtype, dtype, dtype, vector=True))
    for fp32, dtype in ((True, FLOAT32), (False, BFLOAT16))
}


def prepare(kind: str, grad: DataType, source: DataType, out: DataType) -> Compute:
    """The computation of one call: output gradient and input → input gradient, packed as `out`."""
    fp32 = kind == "sigmoid" or FLOAT32 in (grad, source, out)
    steps = STEPS[kind]

    def compute(g: Values, x: Values) -> Values:
        g = binary.copied_in(g, grad, fp32=fp32, vector=True)
        x = binary.copied_in(x, source, fp32=fp32, vector=True)
        return pack(steps(g, x, fp32, out is BFLOAT16), out, from_fp32=fp32)

    return compute


# tt-metal v0.81.1: ttnn/cpp/ttnn/operations/eltwise/binary_backward/device/kernels/compute/eltwise_bw_mul.cpp,
#     kernel_main
def product(grad: DataType, other: DataType, out: DataType) -> Compute:
    """The gradient of one factor of a product: the output gradient times the other factor."""
    fp32 = FLOAT32 in (grad, other, out)

    def compute(g: Values, y: Values) -> Values:
        g = binary.copied_in(g, grad, fp32=fp32, vector=True)
        y = binary.copied_in(y, other, fp32=fp32, vector=True)
        return pack(PRODUCT[fp32](g, y), out, from_fp32=fp32)

    return compute


# -- kernels ----------------------------------------------------------------------------------------------------------


def _by_derivative(name: str) -> Callable[[Values, Values, bool, bool], Values]:
    def steps(g: Values, x: Values, fp32: bool, nearest: bool) -> Values:
        return PRODUCT[fp32](g, apply_function(name, x, fp32_dest=fp32))

    return steps


# tt-metal v0.81.1: ttnn/cpp/ttnn/operations/eltwise/unary_backward/device/kernels/compute/eltwise_bw_sigmoid.cpp,
#     kernel_main
def _sigmoid(g: Values, x: Values, fp32: bool, nearest: bool) -> Values:
    s = apply_function("sigmoid", x, fp32_dest=fp32)
    return PRODUCT[fp32](PRODUCT[fp32](g, s), apply_function("rsub", s, 1.0, fp32_dest=fp32))


# tt-metal v0.81.1: ttnn/cpp/ttnn/operations/eltwise/unary_backward/device/kernels/compute/eltwise_bw_gelu_tanh.cpp,
#     kernel_main
BETA = np.float32(1.41421356237309504880) * np.float32(1.12837916709551257390) * np.float32(0.5)  # √(2/π)
KAPPA = np.float32(0.044715)


# tt-metal v0.81.1: ttnn/cpp/ttnn/operations/eltwise/unary_backward/device/kernels/compute/eltwise_bw_gelu_tanh.cpp,
#     kernel_main
# tt-metal v0.81.1: ttnn/cpp/ttnn/operations/eltwise/unary_backward/device/kernels/compute/eltwise_bw_gelu_tanh_fp32.cpp, kernel_main  # noqa: E501
def _gelu_tanh(g: Values, x: Values, fp32: bool, nearest: bool) -> Values:
    """g (½ (1 + t) + ½ β x (1 + 3 κ x²) (1 - t²)) with t = tanh(β (x + κ x³))."""

    def constant(value: float | np.float32) -> Values:
        return torch.from_numpy(np.asarray(stored(np.float32(value), fp32)))

    def combined(a: Values, b: Values, function: Callable[[Float, Float], Float]) -> Values:
        a, b = of_one_shape(a, b)
        total = function(a.contiguous().numpy(), b.contiguous().numpy())
        total = nearest_even(total) if nearest and not fp32 else total
        return torch.from_numpy(np.asarray(stored(total, fp32)))

    times = PRODUCT[fp32]
    square = apply_function("square", x, fp32_dest=fp32)
    inner = combined(times(times(square, x), constant(KAPPA)), x, add)
    slope = combined(times(square, constant(KAPPA * np.float32(3.0))), constant(1.0), add)
    if fp32:
        t = apply_function("tanh", times(inner, constant(BETA)), fp32_dest=True)
        share = times(combined(t, constant(1.0), add), constant(0.5))
        density = combined(constant(1.0), apply_function("square", t, fp32_dest=True), sub)
        density = times(times(slope, density), constant(BETA / np.float32(2.0)))
    else:
        # sigmoid(2 z) = ½ (1 + tanh z), without the cancellation of 1 + tanh z in 16 bits.
        share = apply_function("sigmoid", times(inner, constant(np.float32(2.0) * BETA)))
        density = times(share, combined(constant(1.0), share, sub))
        density = times(times(slope, density), constant(np.float32(2.0) * BETA))
    return times(g, combined(share, times(density, x), add))


STEPS: dict[str, Callable[[Values, Values, bool, bool], Values]] = {
    "tanh": _by_derivative("tanh_derivative"),
    "sigmoid": _sigmoid,
    "gelu": _by_derivative("gelu_derivative"),
    "gelu_tanh": _gelu_tanh,
}

__all__ = ["prepare", "product"]
