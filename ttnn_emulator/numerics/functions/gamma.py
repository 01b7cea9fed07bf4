"""Kernels of the gamma function's logarithm and derivatives."""

from __future__ import annotations

import math

import numpy as np

from ttnn_emulator.numerics.functions.kernel_vocabulary import (
    INFINITY,
    at_least,
    at_most,
    equal,
    fused,
    greater,
    kernel,
    less,
    plus,
    polynomial,
    round_to_even_bf16,
    times,
    times_plus,
)
from ttnn_emulator.numerics.functions.logarithm import logarithm, logarithm_cubic
from ttnn_emulator.numerics.functions.roots import reciprocal
from ttnn_emulator.numerics.functions.rounding import floored, truncated
from ttnn_emulator.numerics.functions.trigonometry import sine_of
from ttnn_emulator.numerics.units.vector_unit import (
    ONE,
    ZERO,
    Float,
    add,
    bits,
    mad,
    magnitude,
    mul,
    negate,
    round_to_bf16,
    store_bf16,
    store_fp32,
    sub,
)

# -- digamma ----------------------------------------------------------------------------------------------------------

# Numerator and denominator, lowest coefficients first: for bfloat16, and for float32 below and above 51.
# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_digamma.h, DIGAMMA_LUT_SIZE
DIGAMMA_BF16 = (
    (
        -3.3767190625e05,
        -6.0287050000e05,
        2.1532992188e05,
        2.1398454688e05,
        1.9496867188e04,
        2.4847094727e02,
        8.7151519954e-02,
    ),
    (1.0, 3.3760150000e05, 4.0892268750e05, 9.9775718750e04, 5.1246479492e03, 4.1351390839e01),
)
# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_digamma.h, DIGAMMA_LUT_SIZE
DIGAMMA_LOWER = (
    (
        -4.2596286535e-01,
        -1.2459139824e00,
        -7.0374596119e-01,
        3.5418295860e-01,
        3.9686101675e-01,
        1.0760356486e-01,
        1.1159370653e-02,
        4.5299832709e-04,
        6.4513715188e-06,
        2.3348954770e-08,
        3.3629592167e-12,
    ),
    (
        -6.3762914866e-08,
        4.2596703768e-01,
        1.0000000000e00,
        8.2736301422e-01,
        3.0081826448e-01,
        4.9985647202e-02,
        3.7117889151e-03,
        1.1463041301e-04,
        1.2610012732e-06,
        3.3732798776e-09,
    ),
)
# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_digamma.h, DIGAMMA_LUT_SIZE
DIGAMMA_UPPER = (
    (
        1.3856337913e05,
        -2.7915017828e05,
        5.5189096727e04,
        2.6230285816e04,
        2.0102400217e03,
        5.4774037756e01,
        6.1410588531e-01,
        2.8495312547e-03,
        4.9248967852e-06,
        2.2963254970e-09,
        3.8530168912e-14,
    ),
    (
        -1.6724299601e05,
        1.0000000000e00,
        6.3677231206e04,
        1.1013851737e04,
        5.9383811201e02,
        1.2890647910e01,
        1.2061770104e-01,
        4.7490052009e-04,
        6.9240316615e-07,
        2.5925175628e-10,
    ),
)


# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_digamma.h, calculate_digamma
@kernel("digamma")
def digamma(x: Float, *, approx: bool, fp32: bool, halves: bool = False) -> Float:
    if fp32 and not halves:
        upper = at_least(x, 51.005)
        top, bottom = (
            np.where(upper, polynomial(x, *above), polynomial(x, *below))
            for below, above in zip(DIGAMMA_LOWER, DIGAMMA_UPPER)
        )
    else:
        top, bottom = (polynomial(x, *coefficients) for coefficients in DIGAMMA_BF16)
    result = mul(top, reciprocal(bottom, steps=2))
    inverse = reciprocal(x, steps=2)
    squared = mul(inverse, inverse)
    bernoulli = sub(np.float32(0.0833333333), times(squared, 0.0083333333))
    asymptote = sub(sub(logarithm_cubic(x), times(inverse, 0.5)), mul(squared, bernoulli))
    asymptote = np.where((bits(x) & 0x7FFFFFFF) == 0x7F800000, INFINITY, asymptote)
    return np.where(greater(x, 102.0), asymptote, result)


fused(digamma)

# -- polygamma --------------------------------------------------------------------------------------------------------

TERMS = 6


# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_polygamma.h,
#     calculate_polygamma
@kernel("polygamma")
def polygamma(x: Float, order: float, scale: float, *, approx: bool, fp32: bool) -> Float:
    n, s = int(order), np.float32(scale)
    steps = 2 if fp32 else 1
    total = np.zeros_like(x)
    for k in range(TERMS):
        inverse = reciprocal(plus(x, float(k)) if k else add(x, ZERO), steps=steps)
        power = mul(inverse, s)
        for _ in range(n - 1):
            power = mul(power, inverse)
        total = mad(power, inverse, total)
    inverse = reciprocal(plus(x, float(TERMS)), steps=steps)
    tail = polynomial(mul(inverse, inverse), *_bernoulli_terms(n, s))
    tail = times_plus(inverse, float(np.float32(0.5) * s), tail)
    for _ in range(n - 1):
        tail = mul(tail, inverse)
    total = mad(tail, inverse, total)
    return total if fp32 else round_to_bf16(total)


def _bernoulli_terms(n: int, scale: np.float32) -> tuple[float, ...]:
    """Coefficients of the Euler-Maclaurin remainder, in float32: the compiler replaces divisions by multiplications."""
    n1, n2, n3, n4, n5 = (np.float32(n + k) for k in range(1, 6))
    terms = (
        scale / np.float32(n),
        scale * n1 * np.float32(1.0 / 12.0),
        -scale * (n1 * n2 * n3) * np.float32(1.0 / 720.0),
        scale * (n1 * n2 * n3 * n4 * n5) * np.float32(1.0 / 30240.0),
    )
    return tuple(map(float, terms))


# -- logarithm of the gamma function ----------------------------------------------------------------------------------

# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_lgamma.h,
#     calculate_lgamma_stirling_fp32
LOG_ROOT_TWO_PI = 0.9189385332046727
LOG_ROOT_PI = 0.57236494
LOG_PI = 1.1447298858
# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_lgamma.h,
#     calculate_lgamma_stirling_fp32
NEAR_ONE = (-0.57721566, 0.82246703, -0.40068563, 0.27058081, -0.20738555)
NEAR_TWO = (0.42278434, 0.32246703, -0.06735230, 0.02058081, -0.00738555)
STIRLING = (0.0833333333, -0.0027777777, 0.0007936507, -0.0005952380)


# tt-metal v0.81.1: ttnn/cpp/ttnn/operations/eltwise/unary/device/kernels/compute/lgamma_kernel.cpp, kernel_main
@kernel("lgamma")
def lgamma(x: Float, *, approx: bool, fp32: bool) -> Float:
    """Several passes through the destination register: Stirling's series, and the reflection formula below ½."""
    stirling = _stirling_accurate(x) if fp32 else round_to_bf16(_stirling_bf16(x))
    log_sine = _log_sine_pi(x, fp32)
    result = np.where(less(x, 0.5), sub(sub(np.float32(LOG_PI), log_sine), stirling), stirling)
    if not fp32:
        return round_to_bf16(result)
    return np.where((bits(x) & 0x7FFFFFFF) == 0x7F800000, INFINITY, result)


# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_lgamma.h,
#     calculate_lgamma_stirling
def _stirling_bf16(x: Float) -> Float:
    z = np.where(less(x, 0.5), sub(ONE, x), x)
    result = plus(mad(sub(z, np.float32(0.5)), logarithm_cubic(z), negate(z)), LOG_ROOT_TWO_PI)
    inverse = reciprocal(z, steps=2)
    result = add(result, mul(inverse, times_plus(mul(inverse, inverse), STIRLING[1], STIRLING[0])))
    return np.where(equal(x, 1.0) | equal(x, 2.0), ZERO, result)


# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_lgamma.h,
#     calculate_lgamma_stirling_fp32
def _stirling_accurate(x: Float) -> Float:
    from_half = bits(sub(x, np.float32(0.5)))
    below = (from_half < 0) & ((from_half & 0x7FFFFFFF) <= 0x7F800000)
    log_z = logarithm(store_fp32(np.where(below, store_fp32(sub(ONE, x)), x)), fp32=True)
    z = np.where(less(x, 0.5), sub(ONE, x), x)
    from_one, from_two = plus(z, -1.0), sub(z, np.float32(2.0))
    inverse = reciprocal(z, steps=2)
    far = plus(mad(sub(z, np.float32(0.5)), log_z, negate(z)), LOG_ROOT_TWO_PI)
    far = mad(inverse, polynomial(mul(inverse, inverse), *STIRLING), far)
    result: Float = np.where(at_most(magnitude(from_two), 0.25), mul(from_two, polynomial(from_two, *NEAR_TWO)), far)
    result = np.where(at_most(magnitude(from_one), 0.25), mul(from_one, polynomial(from_one, *NEAR_ONE)), result)
    return np.where(less(magnitude(sub(z, np.float32(0.5))), 0.01), np.float32(LOG_ROOT_PI), result)


def _log_sine_pi(x: Float, fp32: bool) -> Float:
    """log |sin(π x)|, -infinity at integers."""
    store = store_fp32 if fp32 else store_bf16
    fraction = store(sub(x, truncated(x)))
    pi = store(np.float32(math.pi))
    angle = mul(fraction, pi)
    if not fp32:
        angle = np.where((bits(fraction) == 0) | (bits(pi) == 0), ZERO, round_to_even_bf16(angle))
    sine = sine_of(store(angle), fp32)
    sine = store(sine if fp32 else round_to_bf16(sine))
    whole = store(floored(x))
    sum_of_sizes = bits(add(magnitude(whole), set_positive(x)))
    same = (sum_of_sizes == 0) | ((sum_of_sizes <= 0x7F800000) & (bits(x) == bits(whole)))
    size = store(magnitude(np.where(same, ZERO, sine)))
    result = logarithm(size, fp32=fp32)
    return result if fp32 else store(round_to_bf16(result))


def set_positive(x: Float) -> Float:
    return np.abs(x)
