"""Kernels of tanh."""

from __future__ import annotations

import numpy as np

from ttnn_emulator.numerics.functions.kernel_vocabulary import (
    kernel,
    piecewise_linear,
    plus,
    polynomial,
    smaller_of,
    to_uint8,
)
from ttnn_emulator.numerics.units.vector_unit import (
    ONE,
    ZERO,
    Float,
    add,
    bits,
    exponent,
    floats,
    mad,
    magnitude,
    mul,
    round_to_bf16,
    set_exponent,
    set_sign,
    sign_magnitude_to_float,
    sub,
)

HALF = np.float32(0.5)

# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_tanh.h,
#     _sfpu_tanh_polynomial_, tanh_init
TANH_POLYNOMIAL = (
    0.999004364013671875,
    3.0897438526153564e-2,
    -0.48906597495079040,
    np.float32(0.28191763162612915),
    np.float32(-6.6649019718170166e-2),
    np.float32(5.8767339214682579e-3),
)
# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_tanh.h, tanh_init
TANH_LIMITS = (0.5, 1.0, 1.5, 2.0, 3.0)
TANH_LINES = (
    (0.9619140625, 0.0),
    (0.576171875, 0.1928710938),
    (0.287109375, 0.4819335938),
    (0.0964355469, 0.7680664062),
    (0.0390625, 0.8828125),
    (0.0, 1.0),
)


# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_tanh.h,
#     _sfpu_tanh_fp32_accurate_
def tanh_accurate(x: Float) -> Float:
    """tanh to the precision of float32: t ÷ (t + 1) with t = (exp(|2x|) - 1) ÷ 2."""
    whole = to_uint8(mul(x, np.float32(2.0 * np.float32(1.442695))))
    j = sign_magnitude_to_float(whole)
    a = set_sign(add(x, x), 0)
    f = mad(j, np.float32(-0.6931471805599453), a)
    r = polynomial(f, np.float32(1.666667163e-1), 4.166680202e-2, 8.331298828e-3, 1.393318176e-3, 1.974105835e-04)
    r = mad(mad(r, f, HALF), mul(f, f), f)
    scale = set_exponent(np.zeros_like(x), whole + np.int32(126))
    t = mad(r, scale, sub(scale, HALF))
    # Decrementing the bits keeps a NaN non-finite and everything else finite: times zero gives NaN or zero.
    saturated = mad(floats(bits(a) - np.int32(1)), ZERO, ONE)
    t_plus_1 = plus(t, 1.0)
    minus_inverse = floats(np.int32(-0x010D0000) - bits(t_plus_1))
    rest = mad(t_plus_1, minus_inverse, ONE)
    minus_inverse = mad(minus_inverse, mad(rest, rest, rest), minus_inverse)
    quotient = mul(t, minus_inverse)
    quotient = mad(mad(t_plus_1, quotient, t), minus_inverse, quotient)
    small = np.where(exponent(x, biased=True) >= 115, quotient, x)
    return set_sign(np.where(whole < 61, small, saturated), x)


@kernel("tanh")
def tanh(x: Float, *, approx: bool, fp32: bool) -> Float:
    if approx:
        return set_sign(piecewise_linear(x, TANH_LIMITS, TANH_LINES), x)
    if fp32:
        return tanh_accurate(x)
    size = magnitude(x)
    result = mul(polynomial(size, *TANH_POLYNOMIAL), size)
    return round_to_bf16(set_sign(smaller_of(result, 1.0), x))
