"""Kernels with a scalar operand, and kernels of several passes through the destination register."""

from __future__ import annotations

import numpy as np

from ttnn_emulator.numerics.functions.exponential import exp
from ttnn_emulator.numerics.functions.kernel_vocabulary import (
    at_least,
    between,
    kernel,
    less,
    plus,
    polynomial,
    round_to_even_bf16,
    times,
)
from ttnn_emulator.numerics.functions.logarithm import log
from ttnn_emulator.numerics.functions.piecewise import hardsigmoid
from ttnn_emulator.numerics.functions.roots import reciprocal
from ttnn_emulator.numerics.functions.rounding import floored, truncated
from ttnn_emulator.numerics.kernels.elementwise import multiply_in_phases
from ttnn_emulator.numerics.programs.elementwise.vector_binary import division
from ttnn_emulator.numerics.units.vector_unit import (
    Float,
    bits,
    floats,
    mul,
    negate,
    round_to_bf16,
    store_bf16,
    store_fp32,
    sub,
)

FIDELITY_PHASES = 4  # these programs run the matrix unit in HiFi4


def stored(value: Float, fp32: bool) -> Float:
    return store_fp32(value) if fp32 else store_bf16(value)


# -- with a number ----------------------------------------------------------------------------------------------------


# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_binop_with_unary.h,
#     calculate_add
@kernel("add_unary_sfpu")
def add_number(x: Float, other: float, *, approx: bool, fp32: bool) -> Float:
    return plus(x, other)


# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_binop_with_unary.h,
#     calculate_sub
@kernel("sub_unary_sfpu")
def subtract_number(x: Float, other: float, *, approx: bool, fp32: bool) -> Float:
    return sub(x, np.float32(other))


# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_binop_with_unary.h,
#     calculate_mul
@kernel("mul_unary_sfpu")
def multiply_number(x: Float, other: float, *, approx: bool, fp32: bool) -> Float:
    return times(x, other)


# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_binop_with_unary.h,
#     calculate_div
@kernel("div_unary_sfpu")
def divide_by_number(x: Float, other: float, *, approx: bool, fp32: bool) -> Float:
    return times(x, float(np.float32(1.0) / np.float32(other)))


# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_binop_with_unary.h,
#     calculate_rsub
@kernel("rsub")
def subtract_from_number(x: Float, other: float, *, approx: bool, fp32: bool) -> Float:
    rest = sub(np.float32(other), x)
    return rest if fp32 else round_to_even_bf16(rest)


WHOLE_PART = {0: lambda value: value, 1: truncated, 2: floored}


# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_rdiv.h, calculate_rdiv
@kernel("rdiv")
def divide_number(x: Float, other: float, rounding: float = 0.0, *, approx: bool, fp32: bool) -> Float:
    inverse = reciprocal(x, steps=2) if fp32 else round_to_bf16(reciprocal(x, steps=1))
    return WHOLE_PART[int(rounding)](times(inverse, other))


# -- several steps ----------------------------------------------------------------------------------------------------


# tt-metal v0.81.1: ttnn/cpp/ttnn/operations/eltwise/unary/device/kernels/compute/hardswish_kernel.cpp, kernel_main
@kernel("hardswish")
def hardswish(x: Float, *, approx: bool, fp32: bool) -> Float:
    slope = stored(hardsigmoid(x, approx=approx, fp32=fp32), fp32)
    if fp32:
        return mul(slope, x)
    product = np.empty(x.size, np.int32)
    multiply_in_phases(bits(slope).reshape(-1), bits(x).reshape(-1), FIDELITY_PHASES, False, product)
    return floats(product).reshape(x.shape)


# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_logsigmoid.h,
#     calculate_logsigmoid
LOGSIGMOID = (
    0.6924354434013367,
    0.49275708198547363,
    0.12142381817102432,
    0.0031102809589356184,
    -0.00330807245336473,
    -0.00028794066747650504,
    5.3185409342404455e-05,
    7.1853546614875086e-06,
    7.4961114648886e-08,
)


# tt-metal v0.81.1: ttnn/cpp/ttnn/operations/eltwise/unary/device/kernels/compute/logsigmoid_kernel.cpp, kernel_main
@kernel("logsigmoid")
def logsigmoid(x: Float, *, approx: bool, fp32: bool) -> Float:
    minus_x = negate(x)
    power = stored(exp(stored(minus_x, fp32), approx=True, fp32=fp32), fp32)
    middle = at_least(minus_x, -4.0) & less(minus_x, 4.0)
    result = np.where(middle, negate(polynomial(minus_x, *LOGSIGMOID)), x)
    return np.where(less(minus_x, -4.0), negate(power), result)


# tt-metal v0.81.1: ttnn/cpp/ttnn/operations/eltwise/unary/device/kernels/compute/logit_kernel.cpp, kernel_main
@kernel("logit")
def logit(x: Float, eps: float = -1.0, *, approx: bool, fp32: bool) -> Float:
    if eps >= 0.0:
        x = stored(between(x, *_logit_bounds(eps, fp32)), fp32)
    rest = stored(subtract_from_number(x, 1.0, approx=False, fp32=fp32), fp32)
    odds = stored(division(x, rest, fp32=fp32), fp32)
    return log(odds, approx=False, fp32=fp32)


def _logit_bounds(eps: float, fp32: bool) -> tuple[float, float]:
    """ε and 1 - ε in order, rounded to bfloat16 for 16-bit tensors where torch rounds them."""
    one, low = np.float32(1.0), np.float32(eps)
    if fp32:
        bounds = (low, one - low)
    elif eps <= 0.5:
        low = round_to_even_bf16(low)[()]
        bounds = (low, round_to_even_bf16(one - low)[()])
    else:
        bounds = (round_to_even_bf16(low)[()], round_to_even_bf16(one - low)[()])
    return float(min(bounds)), float(max(bounds))
