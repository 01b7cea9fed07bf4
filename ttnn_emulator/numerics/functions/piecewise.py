"""Piecewise kernels: rectifiers, clamps, thresholds, shrinks, steps."""

from __future__ import annotations

import numpy as np

from ttnn_emulator.numerics.functions.exponential import exp_accurate_in_range
from ttnn_emulator.numerics.functions.kernel_vocabulary import (
    at_least,
    at_most,
    between,
    equal,
    greater,
    kernel,
    larger_of,
    less,
    plus,
    polynomial,
    round_to_even_bf16,
    smaller_of,
    times,
    times_plus,
)
from ttnn_emulator.numerics.functions.roots import reciprocal
from ttnn_emulator.numerics.units.vector_unit import (
    ONE,
    ZERO,
    Float,
    bits,
    floats,
    mad,
    magnitude,
    mul,
    negate,
    round_to_bf16,
    set_sign,
    sub,
)

# -- rectifiers and clamps --------------------------------------------------------------------------------------------


@kernel("relu")
def relu(x: Float, *, approx: bool, fp32: bool) -> Float:
    return larger_of(x, 0.0)


# tt-metal v0.81.1: tt_metal/tt-llk/tt_llk_wormhole_b0/common/inc/sfpu/ckernel_sfpu_relu.h, _relu_min_impl_
@kernel("relu_min")
def relu_min(x: Float, low: float, *, approx: bool, fp32: bool) -> Float:
    return larger_of(x, low)


# tt-metal v0.81.1: tt_metal/tt-llk/tt_llk_wormhole_b0/common/inc/sfpu/ckernel_sfpu_relu.h, _relu_max_body_
@kernel("relu_max")
def relu_max(x: Float, high: float, *, approx: bool, fp32: bool) -> Float:
    capped = np.where(greater(x, high), np.float32(high), x)
    return np.where(less(capped, 0.0), ZERO, capped)


@kernel("relu6")
def relu6(x: Float, *, approx: bool, fp32: bool) -> Float:
    return relu_max(x, 6.0, approx=approx, fp32=fp32)


# tt-metal v0.81.1: tt_metal/tt-llk/tt_llk_wormhole_b0/common/inc/sfpu/ckernel_sfpu_relu.h, _calculate_lrelu_
# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_prelu.h, calculate_prelu
@kernel("leaky_relu", "prelu_sfpu")
def leaky_relu(x: Float, slope: float, *, approx: bool, fp32: bool) -> Float:
    return np.where(less(x, 0.0), times(x, slope), x)


# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_clamp.h, calculate_clamp
# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_hardtanh.h, calculate_hardtanh
@kernel("clamp_tss", "hardtanh")
def clamp(x: Float, low: float, high: float, *, approx: bool, fp32: bool) -> Float:
    return between(x, low, high)


# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_unary_max_min.h,
#     calculate_unary_max_min
@kernel("maximum")
def maximum(x: Float, other: float, *, approx: bool, fp32: bool) -> Float:
    return larger_of(x, other)


@kernel("minimum")
def minimum(x: Float, other: float, *, approx: bool, fp32: bool) -> Float:
    return smaller_of(x, other)


# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_activations.h, hardsigmoid_init
@kernel("hardsigmoid")
def hardsigmoid(x: Float, *, approx: bool, fp32: bool) -> Float:
    line = mad(x, np.float32(0.1666666716337204), np.float32(0.5))
    return relu_max(line, 1.0, approx=approx, fp32=fp32)


# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_hardmish.h, hardmish
@kernel("hardmish")
def hardmish(x: Float, *, approx: bool, fp32: bool) -> Float:
    return mul(x, between(times_plus(x, 0.5, 1.0), 0.0, 1.0))


# -- shrinks, thresholds, steps ---------------------------------------------------------------------------------------


# tt-metal v0.81.1: tt_metal/tt-llk/tt_llk_wormhole_b0/common/inc/sfpu/ckernel_sfpu_threshold.h, _calculate_threshold_
@kernel("threshold")
def threshold(x: Float, limit: float, value: float, *, approx: bool, fp32: bool) -> Float:
    return np.where(at_most(x, limit), np.float32(value), x)


# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_hardshrink.h,
#     calculate_hardshrink
@kernel("hardshrink")
def hardshrink(x: Float, limit: float, *, approx: bool, fp32: bool) -> Float:
    return np.where(at_least(sub(np.full_like(x, limit), set_sign(x, 0)), 0.0), ZERO, x)


# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_softshrink.h,
#     calculate_softshrink
@kernel("softshrink")
def softshrink(x: Float, limit: float, *, approx: bool, fp32: bool) -> Float:
    return sub(x, between(x, -limit, limit))


# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_softsign.h, calculate_softsign
@kernel("softsign")
def softsign(x: Float, *, approx: bool, fp32: bool) -> Float:
    return mul(x, reciprocal(plus(magnitude(x), 1.0), steps=2))


# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_tanhshrink.h,
#     calculate_tanhshrink
TANHSHRINK_INNER = {
    True: (
        3.3333331347e-01,
        -1.3333128393e-01,
        5.3934831172e-02,
        -2.1660288796e-02,
        8.2192532718e-03,
        -2.5107525289e-03,
        4.2079269770e-04,
    ),
    False: (3.3329936862e-01, -1.3223160803e-01, 4.8076551408e-02, -1.0762925260e-02),
}


# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_tanhshrink.h,
#     calculate_tanhshrink
@kernel("tanhshrink")
def tanhshrink(x: Float, *, approx: bool, fp32: bool) -> Float:
    size = set_sign(x, 0)
    squared = mul(x, x)
    inner = mul(mul(x, squared), polynomial(squared, *TANHSHRINK_INNER[fp32]))
    if fp32:
        power = exp_accurate_in_range(times(smaller_of(size, 9.0), -2.0))
        tanh = times_plus(reciprocal(plus(power, 1.0), steps=2), 2.0, -1.0)
        outer = set_sign(sub(size, tanh), x)
    else:
        tanh = polynomial(size, 6.1829000893e-02, 1.0561303143e00, -4.0859283753e-01, 5.3348409333e-02)
        outer = sub(x, set_sign(smaller_of(tanh, 1.0), x))
    result = np.where(greater(size, 1.0), outer, inner)
    return result if fp32 else round_to_bf16(result)


# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_heaviside.h,
#     calculate_heaviside
@kernel("heaviside")
def heaviside(x: Float, at_zero: float, *, approx: bool, fp32: bool) -> Float:
    return np.where(equal(magnitude(x), 0.0), np.float32(at_zero), plus(set_sign(np.full_like(x, 0.5), x), 0.5))


# -- signs ------------------------------------------------------------------------------------------------------------


# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_sign.h, calculate_sign
@kernel("sign")
def sign(x: Float, *, approx: bool, fp32: bool) -> Float:
    return np.where(equal(magnitude(x), 0.0), ZERO, set_sign(np.full_like(x, 1.0), x))


# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_signbit.h, calculate_signbit
@kernel("signbit")
def signbit(x: Float, *, approx: bool, fp32: bool) -> Float:
    return np.where(bits(x) < 0, ONE, ZERO)


@kernel("abs")
def absolute(x: Float, *, approx: bool, fp32: bool) -> Float:
    return magnitude(x)


@kernel("neg")
def neg(x: Float, *, approx: bool, fp32: bool) -> Float:
    return negate(x)


@kernel("identity")
def identity(x: Float, *, approx: bool, fp32: bool) -> Float:
    return x


# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_bitwise_not.h,
#     calculate_bitwise_not
@kernel("bitwise_not")
def bitwise_not(x: Float, *, approx: bool, fp32: bool) -> Float:
    """Inverts the bits of the float in the register."""
    return floats(~bits(x) & np.int32(-1 if fp32 else -0x10000))


@kernel("fill")
def fill(x: Float, value: float, *, approx: bool, fp32: bool) -> Float:
    return np.full_like(x, value)


# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_square.h, calculate_square
@kernel("square")
def square(x: Float, *, approx: bool, fp32: bool) -> Float:
    product = mul(x, x)
    return product if fp32 else round_to_even_bf16(product)


# -- predicates: one where they hold, zero elsewhere ------------------------------------------------------------------

INFINITY_BITS = np.int32(0x7F800000)


def _predicate(name: str, holds) -> None:
    def compute(x: Float, *, approx: bool, fp32: bool) -> Float:
        return np.where(holds(bits(x), bits(x) & np.int32(0x7FFFFFFF)), ONE, ZERO)

    kernel(name)(compute)


for _name, _holds in {
    # tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_comp.h, calculate_comp
    # tt-metal v0.81.1: tt_metal/tt-llk/tt_llk_wormhole_b0/common/inc/sfpu/ckernel_sfpu_isinf_isnan.h,
    #     _calculate_sfpu_isinf_isnan_
    # tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_logical_not.h,
    #     calculate_logical_not
    # (bits, bits without the sign) → whether
    "eqz": lambda raw, size: size == 0,
    "nez": lambda raw, size: size != 0,
    "ltz": lambda raw, size: (raw < 0) & (size != 0) & (size <= INFINITY_BITS),
    "gtz": lambda raw, size: (raw >= 0) & (size != 0) & (size <= INFINITY_BITS),
    "gez": lambda raw, size: ((raw >= 0) | (size == 0)) & (size <= INFINITY_BITS),
    "lez": lambda raw, size: ((raw < 0) | (size == 0)) & (size <= INFINITY_BITS),
    "isinf": lambda raw, size: size == INFINITY_BITS,
    "isposinf": lambda raw, size: raw == INFINITY_BITS,
    "isneginf": lambda raw, size: (size == INFINITY_BITS) & (raw < 0),
    "isnan": lambda raw, size: size > INFINITY_BITS,
    "isfinite": lambda raw, size: size < INFINITY_BITS,
    "logical_not_unary": lambda raw, size: raw == 0,
}.items():
    _predicate(_name, _holds)


def _comparison(name: str, holds) -> None:
    def compute(x: Float, other: float, *, approx: bool, fp32: bool) -> Float:
        return np.where(holds(x, np.float32(other)), ONE, ZERO)

    kernel(name)(compute)


for _name, _holds in {
    # tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_unary_comp.h,
    #     calculate_unary_eq
    "unary_eq": equal,
    "unary_ne": lambda a, b: ~equal(a, b),
    "unary_gt": greater,
    "unary_lt": less,
    "unary_ge": at_least,
    "unary_le": lambda a, b: ~greater(a, b),
}.items():
    _comparison(_name, _holds)
