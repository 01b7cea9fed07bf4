"""Kernels of reciprocal, square root, reciprocal square root and cube root."""

from __future__ import annotations

import numpy as np

from ttnn_emulator.numerics.functions.kernel_vocabulary import QUIET_NAN, integer_less, kernel, times, times_plus
from ttnn_emulator.numerics.units.vector_unit import (
    ONE,
    Float,
    add,
    add_exponent,
    bits,
    exponent,
    floats,
    is_negative,
    mad,
    magnitude,
    mul,
    negate,
    round_to_bf16,
    set_mantissa,
    set_sign,
    sign_magnitude_to_float,
)

INFINITY_BITS = np.int32(0x7F800000)

# -- reciprocal -------------------------------------------------------------------------------------------------------

# Initial guess of 1 ÷ x for 1 ≤ x < 2: c₂ - c₁ x + c₀ x².
# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_recip.h, sfpu_reciprocal_init
MINIMAX_SEED = tuple(map(np.float32, (0.3232325017452240, 1.4545459747314453, 2.1212124824523926)))
BF16_SEED = tuple(map(np.float32, (0.32133400440216064, 1.4514148235321045, 2.1200883388519287)))


# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_recip.h, sfpu_reciprocal_iter
def reciprocal(x: Float, *, steps: int, to_bf16: bool = False, normalized: bool = False) -> Float:
    """1 ÷ x: a quadratic initial guess, then `steps` Newton iterations on the mantissa.

    `to_bf16` rounds before the exponent is restored. `normalized` arguments lie in [1, 2).
    """
    c0, c1, c2 = BF16_SEED if to_bf16 else MINIMAX_SEED
    minus_x = set_sign(x, 1) if normalized else set_mantissa(np.full_like(x, -1.0), bits(x))
    y = mad(c0, minus_x, c1)
    y = mad(y, minus_x, c2)
    for _ in range(steps):
        rest = mad(minus_x, y, ONE)
        y = mad(y, rest, y)
    if to_bf16:
        y = round_to_bf16(y)
    if not normalized:
        scale = set_mantissa(floats(~bits(x)), 0)
        y = mul(y, times(scale, 0.5))
    return set_sign(y, x)


# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_recip.h, calculate_reciprocal
@kernel("recip")
def recip(x: Float, *, approx: bool, fp32: bool) -> Float:
    if approx:
        return reciprocal(x, steps=1)
    return reciprocal(x, steps=2) if fp32 else reciprocal(x, steps=1, to_bf16=True)


# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_trigonometry.h,
#     _sfpu_reciprocal_gt0_, RECIPROCAL_GT0_MAGIC_SEED
def reciprocal_positive(x: Float, *, fp32: bool) -> Float:
    """1 ÷ x for x > 0, from a bit-trick initial guess."""
    y = floats(np.int32(-0x010C6D20) - bits(x))
    e = mad(x, y, ONE)
    if fp32:
        y = mad(y, e, y)
        e = mad(x, y, ONE)
    y = negate(y)
    return mad(y, mad(e, e, e), y)


# -- square roots -----------------------------------------------------------------------------------------------------


# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_sqrt.h,
#     _calculate_sqrt_body_, sqrt_init
def square_root(x: Float, *, inverse: bool, approx: bool, guarded: bool) -> Float:
    """√x or 1 ÷ √x from a bit-trick initial guess. `guarded` handles negative arguments and signed zeros."""
    half_bits = (bits(x).view(np.uint32) >> np.uint32(1)).view(np.int32)
    y = floats(np.int32(0x5F0B3892 if approx else 0x5F1110A0) - half_bits)
    if approx:
        c = mul(x, y)
        correction = mad(negate(y), c, np.float32(1.89099014875))
        root, inverse_root = mul(c, correction), mul(y, correction)
        finite = bits(x) != INFINITY_BITS
        result = np.where(finite, root, c)
    else:
        xy = mul(x, y)
        c = mul(negate(y), xy)
        y = mul(y, mad(c, add(np.float32(2.2533049), c), np.float32(2.2825186)))
        xy = mul(x, y)
        rest = mad(negate(y), xy, ONE)
        inverse_root = mad(rest, add_exponent(y, -1), y)
        result = np.where(integer_less(bits(x), INFINITY_BITS), mad(rest, times(xy, 0.5), xy), y)
    zero = (bits(x) << 1) == 0
    if inverse:
        to_infinity = INFINITY_BITS - bits(x)
        if guarded:
            inverse_root = np.where(is_negative(x), QUIET_NAN, inverse_root)
        return np.where((to_infinity != 0) & ~zero, inverse_root, floats(to_infinity))
    if not guarded:
        return result
    return np.where(zero, x, np.where(is_negative(x), QUIET_NAN, result))


@kernel("sqrt")
def sqrt(x: Float, fast: float = 0.0, *, approx: bool, fp32: bool) -> Float:
    root = square_root(x, inverse=False, approx=approx, guarded=not fast)
    return root if fp32 else round_to_bf16(root)


@kernel("rsqrt")
def rsqrt(x: Float, fast: float = 0.0, *, approx: bool, fp32: bool) -> Float:
    root = square_root(x, inverse=True, approx=approx, guarded=not fast)
    return root if fp32 else round_to_bf16(root)


# -- cube root --------------------------------------------------------------------------------------------------------

# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_cbrt.h,
#     calculate_cube_root, cube_root_init
MINUS_THIRD_OF_256 = np.float32(float.fromhex("-0x1.555556p-10"))
CUBE_ROOT_MAGIC = np.float32(np.float32(1418472267.0) / np.float32(256.0) + np.float32(8388608.0))
C0, C1, C2 = (np.float32(float.fromhex(value)) for value in ("0x1.c09806p0", "-0x1.403e6cp0", "0x1.04cdb2p-1"))


# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_cbrt.h, calculate_cube_root
@kernel("cbrt")
def cbrt(x: Float, *, approx: bool, fp32: bool) -> Float:
    size = magnitude(x)
    guess = mad(sign_magnitude_to_float(bits(size)), MINUS_THIRD_OF_256, CUBE_ROOT_MAGIC)
    y = floats(bits(guess) << 8)
    if not fp32:
        d = mul(size, mul(y, y))
        c = mul(d, y)
        t = mad(c, mad(C2, c, C1), C0)
        return round_to_bf16(mul(set_sign(d, x), mul(t, t)))
    c = mul(mul(size, y), mul(y, y))
    y = mul(y, mad(c, mad(C2, c, C1), C0))
    d = mul(size, mul(y, y))
    t = mad(mad(d, y, np.float32(-1.0)), add_exponent(MINUS_THIRD_OF_256, 8), ONE)
    return mul(set_sign(d, x), mul(t, t))


# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_sqrt_custom.h, sfpu_sqrt_custom
def square_root_newton(x: Float, steps: int = 2) -> Float:
    """√x from the bit-trick guess of 1 ÷ √x, for consumers that need only limited precision."""
    guess = np.int32(0x5F370000) - (bits(x).view(np.uint32) >> np.uint32(1)).view(np.int32)
    y = floats(guess)
    minus_half = times(x, -0.5)
    for _ in range(steps):
        y = mul(times_plus(mul(y, y), minus_half, 1.5), y)
    return np.where((bits(x) != 0) & (exponent(x, biased=True) < 255), mul(y, x), x)
