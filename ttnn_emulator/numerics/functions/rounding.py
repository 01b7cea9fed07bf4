"""Kernels that round to whole numbers."""

from __future__ import annotations

import numpy as np

from ttnn_emulator.numerics.functions.kernel_vocabulary import kernel, plus
from ttnn_emulator.numerics.units.vector_unit import ONE, Float, add, bits, exponent, floats, mul, set_sign, shift, sub


# tt-metal v0.81.1: tt_metal/tt-llk/tt_llk_wormhole_b0/common/inc/sfpu/ckernel_sfpu_rounding_ops.h, _trunc_body_
def truncated(x: Float) -> Float:
    """Truncated toward zero; -0 between -1 and 0."""
    e = exponent(x)
    kept = np.where(e < 0, np.int32(-0x80000000), np.int32(-1))
    kept = np.where((e >= 0) & (e <= 23), shift(kept, np.int32(23) - e), kept)
    return floats(bits(x) & kept)


# tt-metal v0.81.1: tt_metal/tt-llk/tt_llk_wormhole_b0/common/inc/sfpu/ckernel_sfpu_rounding_ops.h, _floor_body_
def floored(x: Float) -> Float:
    whole = truncated(x)
    return np.where((bits(x) < 0) & (bits(whole) - bits(x) < 0), add(whole, -ONE), whole)


# tt-metal v0.81.1: tt_metal/tt-llk/tt_llk_wormhole_b0/common/inc/sfpu/ckernel_sfpu_rounding_ops.h, _ceil_body_
def ceiled(x: Float) -> Float:
    whole = truncated(x)
    return np.where((bits(x) >= 0) & (bits(whole) - bits(x) < 0), add(whole, ONE), whole)


# tt-metal v0.81.1: tt_metal/tt-llk/tt_llk_wormhole_b0/common/inc/sfpu/ckernel_sfpu_rounding_ops.h, _round_even_
def round_half_even(x: Float) -> Float:
    shifted = plus(plus(set_sign(x, 0), 8388608.0), -8388608.0)
    return np.where(exponent(x) < 23, set_sign(shifted, x), x)


def _power_of_ten(exponent_: int) -> float:
    if exponent_ > 38:
        return float("inf")
    return 0.0 if exponent_ < -45 else float(np.float32(10.0**exponent_))


@kernel("trunc")
def trunc(x: Float, *, approx: bool, fp32: bool) -> Float:
    return truncated(x)


@kernel("floor")
def floor(x: Float, *, approx: bool, fp32: bool) -> Float:
    return floored(x)


@kernel("ceil")
def ceil(x: Float, *, approx: bool, fp32: bool) -> Float:
    return ceiled(x)


# tt-metal v0.81.1: tt_metal/tt-llk/tt_llk_wormhole_b0/common/inc/sfpu/ckernel_sfpu_rounding_ops.h, _calculate_frac_
@kernel("frac")
def frac(x: Float, *, approx: bool, fp32: bool) -> Float:
    return sub(x, truncated(x))


# tt-metal v0.81.1: tt_metal/tt-llk/tt_llk_wormhole_b0/common/inc/sfpu/ckernel_sfpu_rounding_ops.h, _calculate_round_
@kernel("round")
def round_(x: Float, decimals: float = 0.0, *, approx: bool, fp32: bool) -> Float:
    scale, inverse = np.float32(_power_of_ten(int(decimals))), np.float32(_power_of_ten(-int(decimals)))
    return mul(inverse, round_half_even(mul(x, scale)))
