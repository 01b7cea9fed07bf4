"""Kernels of the logarithms."""

from __future__ import annotations

from typing import Any

import numpy as np

from ttnn_emulator.numerics.functions.kernel_vocabulary import (
    INFINITY,
    QUIET_NAN,
    at_least,
    integer_less,
    kernel,
    plus,
    polynomial,
    times,
    times_plus,
    to_float,
)
from ttnn_emulator.numerics.units.vector_unit import (
    ZERO,
    Float,
    add,
    add_exponent,
    bits,
    exponent,
    floats,
    mad,
    mul,
    round_to_bf16,
    set_exponent,
)

EXPONENT_AND_SIGN = np.int32(-0x800000)
THREE_QUARTERS = np.int32(0x3F400000)
LN2_PER_BIT = np.float32(np.float32(0.693147182) * np.float32(2.0**-23))


def _hex(*values: str) -> tuple[float, ...]:
    return tuple(map(float.fromhex, values))


# log(1 + m) = m + m² P(m) for -¼ ≤ m ≤ ½; the first two coefficients of the long one are in registers.
# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_log.h,
#     calculate_log_body, log_init
SERIES: dict[bool, tuple[Any, ...]] = {
    True: (
        -0.5,
        *map(np.float32, _hex("0x1.555572p-2", "-0x1.00001ap-2")),
        *_hex("0x1.998p-3", "-0x1.55p-3", "0x1.274p-3", "-0x1.0c4p-3", "0x1.b84p-4", "-0x1.92cp-5"),
    ),
    False: (*map(np.float32, _hex("-0x1.008p-1", "0x1.744p-2")), -0.25),
}


# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_log.h, calculate_log_body
def logarithm(x: Float, *, fp32: bool, clean: bool = True, scale: float | None = None, binary: bool = False) -> Float:
    """log(x), or scale × log(x); `binary` adds the exponent after scaling. `clean` flushes a denormal argument."""
    a = add(x, ZERO) if clean else x
    e = (bits(a) - THREE_QUARTERS) & EXPONENT_AND_SIGN
    m = plus(floats(bits(a) - e), -1.0)
    first, *rest = SERIES[fp32]
    r = mad(polynomial(m, *rest), m, np.float32(first)) if fp32 else polynomial(m, first, *rest)
    r = mad(r, mul(m, m), m)
    if binary:
        assert scale is not None
        result = mad(r, np.float32(scale), mul(to_float(e), np.float32(2.0**-23)))
    else:
        result = mad(to_float(e), LN2_PER_BIT, r)
        if scale is not None:
            result = times(result, scale)
    a = add_exponent(a, -1)
    result = np.where(exponent(a, biased=True) == 255, mul(result, a), result)
    return np.where(bits(x if not clean else add(x, ZERO)) >= 0, result, QUIET_NAN)


# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_log1p.h, calculate_log1p_fp32
def logarithm_1p(x: Float, fp32: bool) -> Float:
    """log(1 + x)."""
    u = plus(x, 1.0)
    e = (bits(u) - THREE_QUARTERS) & EXPONENT_AND_SIGN
    m = floats(bits(x) - e)
    s = floats(bits(np.float32(-4.0)) - e)
    m = add(m, mad(np.float32(-0.25), s, np.float32(-1.0)))
    coefficients = list(SERIES[fp32])
    if not fp32:
        coefficients[-1] = np.float32(-0.25)
    r = mad(polynomial(m, *coefficients), mul(m, m), m)
    r = mad(to_float(e), LN2_PER_BIT, r)
    r = np.where(~integer_less(bits(u), bits(INFINITY)), u, r)
    return np.where(at_least(u, 0.0), r, QUIET_NAN)


# tt-metal v0.81.1: tt_metal/tt-llk/tt_llk_wormhole_b0/common/inc/sfpu/ckernel_sfpu_log.h, _calculate_log_body_no_init_
def logarithm_cubic(x: Float) -> Float:
    """log(x) by a cubic of the mantissa, to some ten bits."""
    fraction = set_exponent(x, 127)
    series = polynomial(fraction, *_hex("-0x1.952992p+0", "0x2.4f5388p+0", "-0xd.e712ap-4", "0x2.44734p-4"))
    result = times_plus(to_float(exponent(x)), 0.692871, series)
    return np.where(bits(x) == 0, -INFINITY, result)


def _rounded(result: Float, fp32: bool) -> Float:
    return result if fp32 else round_to_bf16(result)


@kernel("log")
def log(x: Float, *, approx: bool, fp32: bool) -> Float:
    return _rounded(logarithm(x, fp32=fp32, clean=not approx), fp32)


@kernel("log10")
def log10(x: Float, *, approx: bool, fp32: bool) -> Float:
    return _rounded(logarithm(x, fp32=fp32, clean=not approx, scale=0.4342944920063019), fp32)


@kernel("log2")
def log2(x: Float, *, approx: bool, fp32: bool) -> Float:
    return _rounded(logarithm(x, fp32=fp32, clean=not approx, scale=1.4426950216293335, binary=True), fp32)


@kernel("log1p")
def log1p(x: Float, *, approx: bool, fp32: bool) -> Float:
    return _rounded(logarithm_1p(x, fp32), fp32)
