"""Building blocks of the vector unit's kernels, above its instructions.

A Python float stands for a constant in the kernel's source, an array for a register. The difference matters for the
last bit: the compiler folds a constant that is a bfloat16 into the immediate of a separate multiply or add, which
rounds on its own. Every other a × b + c is one fused instruction.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ttnn_emulator.numerics.units.vector_unit import (
    Float,
    Int,
    add,
    bits,
    floats,
    mad,
    magnitude,
    mul,
    set_sign,
    sub,
    total_order,
)

# Name of a `UnaryOpType` member, lower case → its kernel: (x, *parameters, approx=, fp32=) → stored value. `fp32`:
# the destination register is 32 bits wide.
KERNELS: dict[str, Callable[..., Float]] = {}

IN_REGISTERS = (0.0, 1.0, -1.0)  # constant registers of the unit; they need no immediate
INFINITY = np.float32(np.inf)
QUIET_NAN = floats(np.int32(0x7FC00000))


def kernel(*names: str) -> Callable[[Callable[..., Float]], Callable[..., Float]]:
    """Register a kernel under the names of its operations."""

    def wrap(function: Callable[..., Float]) -> Callable[..., Float]:
        for name in names:
            if name in KERNELS:
                raise ValueError(f"two kernels for {name}")
            KERNELS[name] = function
        return function

    return wrap


def fused(*functions: Callable[..., Float]) -> None:
    """Register the variants that run fused into other operations: they use the polynomials for bfloat16.

    The macro INP_FLOAT32 selects the float32 polynomials; only elementwise operations of one tensor define it.
    """
    for function in functions:
        KERNELS[f"fused {function.__name__}"] = functools.partial(function, halves=True)


def is_immediate(value: Any) -> bool:
    """Whether the compiler folds this into an immediate: a source constant that is a bfloat16."""
    if not isinstance(value, float) or value in IN_REGISTERS:
        return False
    return not int(bits(np.float32(value))) & 0xFFFF


def times(a: Float, b: Float | float) -> Float:
    """a × b; a multiplication by one is optimised away."""
    return a if isinstance(b, float) and b == 1.0 else mul(a, np.float32(b) if isinstance(b, float) else b)


def plus(a: Float, b: Float | float) -> Float:
    """a + b."""
    return mad(np.float32(b), np.float32(1.0), a) if isinstance(b, float) else add(a, b)


def times_plus(a: Float, b: Float | float, c: Float | float) -> Float:
    """a × b + c as the compiler emits it: fused, or as two instructions with an immediate."""
    if isinstance(b, float) and b == 1.0:
        return plus(a, c)
    if is_immediate(b) or is_immediate(c):
        return plus(times(a, b), c)
    return mad(a, np.float32(b) if isinstance(b, float) else b, np.float32(c) if isinstance(c, float) else c)


def polynomial(x: Float, *coefficients: Float | float) -> Float:
    """c₀ + x (c₁ + x (c₂ + …))."""
    *lower, highest = coefficients
    second = lower.pop()
    result = times_plus(x, highest, second)
    for coefficient in reversed(lower):
        result = times_plus(x, result, coefficient)
    return result


# -- comparisons ------------------------------------------------------------------------------------------------------
#
# The unit compares by subtracting and looking at the result's sign and at whether its bits are all zero.


# A difference from a constant whose ULP is not denormal is never flushed to zero, so its sign follows from the order of
# the two, NaN included, and need not be computed.

SEPARABLE = 2.0**-100  # such constants have at least this magnitude


def _compared(compare: Callable[[Int, Int], np.ndarray], a: Float, b: Float | float) -> np.ndarray:
    if not isinstance(b, float):
        return compare(bits(sub(a, b)), np.int32(0))
    if b == 0.0:
        return compare(bits(a), np.int32(0))
    if SEPARABLE <= abs(b) < np.inf:
        return compare(total_order(a), total_order(np.float32(b)))
    return compare(bits(sub(a, np.float32(b))), np.int32(0))


def less(a: Float, b: Float | float) -> np.ndarray:
    return _compared(np.less, a, b)


def at_least(a: Float, b: Float | float) -> np.ndarray:
    return _compared(np.greater_equal, a, b)


def greater(a: Float, b: Float | float) -> np.ndarray:
    return _compared(np.greater, a, b)


def at_most(a: Float, b: Float | float) -> np.ndarray:
    return _compared(np.less_equal, a, b)


def equal(a: Float, b: Float | float) -> np.ndarray:
    return _compared(np.equal, a, b)


def integer_less(a: Int, b: Int) -> np.ndarray:
    """Integer comparison by subtraction: the difference wraps, so numbers more than 2³¹ apart compare wrongly."""
    return (np.asarray(a, np.int32) - np.asarray(b, np.int32)) < 0


def smaller_of(a: Float, b: Float | float) -> Float:
    """SFPSWAP: in sign-magnitude order, NaN beyond infinity."""
    other = np.float32(b)
    return np.where(total_order(a) <= total_order(other), a, other)


def larger_of(a: Float, b: Float | float) -> Float:
    other = np.float32(b)
    return np.where(total_order(a) > total_order(other), a, other)


def between(a: Float, low: float, high: float) -> Float:
    return smaller_of(larger_of(a, low), high)


def within(a: Float, limit: float) -> Float:
    """Clamp to ±limit; a negative NaN passes."""
    return set_sign(smaller_of(magnitude(a), limit), a)


# -- floats as integers -----------------------------------------------------------------------------------------------


def to_integer(value: Float, limit: int, *, signed: bool) -> Int:
    """SFPSTOCHRND to a sign-magnitude integer of at most `limit`, half away from zero; unsigned drops the sign."""
    raw = bits(value)
    exponent = ((raw >> 23) & 0xFF) - 127
    mantissa = (raw & 0x7FFFFF | 0x800000).astype(np.int64)
    shifted = np.where(exponent >= 0, mantissa << np.clip(exponent, 0, 16), mantissa >> np.clip(-exponent, 0, 40))
    size = (shifted >> 23) + ((shifted & 0x7FFFFF) >= 0x400000)
    size = np.where(exponent < -1, 0, np.where(exponent >= 16, limit, np.minimum(size, limit))).astype(np.int32)
    negative = (raw < 0) & (size != 0) if signed else np.zeros_like(raw, bool)
    return np.where(negative, size | np.int32(-0x80000000), size)


def two_complement(value: Int) -> Int:
    """A sign-magnitude integer as two's complement."""
    size = value & np.int32(0x7FFFFFFF)
    return np.where(value < 0, -size, size)


def to_float(value: Int) -> Float:
    """A two's-complement integer as float32: the magnitude is cast, then the sign is restored."""
    size = np.abs(np.asarray(value, np.int32).astype(np.int64)).astype(np.float32)
    return np.where(value < 0, -size, size)


def to_int16(value: Float) -> Int:
    return to_integer(value, 32767, signed=True)


def to_uint16(value: Float) -> Int:
    return to_integer(value, 65535, signed=False)


def to_uint8(value: Float) -> Int:
    return to_integer(value, 255, signed=False)


# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_conversions.h,
#     float32_to_bf16_rne
def round_to_even_bf16(value: Float) -> Float:
    """Round to bfloat16, to nearest even, by integer addition, as some kernels do in software."""
    raw = bits(value).view(np.uint32)
    rounded = raw + np.uint32(0x7FFF) + ((raw >> np.uint32(16)) & np.uint32(1))
    return (rounded & np.uint32(0xFFFF0000)).view(np.float32)


# -- tables of the unit -----------------------------------------------------------------------------------------------


def half_precision(value: float) -> np.float32:
    """A coefficient in a 16-bit table entry: float16, rounded to nearest even."""
    return np.float32(np.float16(value))


def piecewise_linear(x: Float, limits: tuple[float, ...], lines: Sequence[tuple[Any, Any]]) -> Float:
    """SFPLUT, SFPLUTFP32: slope × |x| + intercept of the first segment whose limit is above |x|."""
    size = bits(x) & 0x7FFFFFFF
    which = np.searchsorted(bits(np.array(limits, np.float32)), size, side="right")
    slopes, intercepts = np.array(lines, np.float32).T
    return mad(slopes[which], floats(size), intercepts[which])
