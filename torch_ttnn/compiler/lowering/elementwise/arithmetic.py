"""Arithmetic of two operands: sums, products, quotients, remainders, powers."""

from __future__ import annotations

import math
from typing import Any

import torch

from torch_ttnn.compiler.analysis.ranges import Range
from torch_ttnn.compiler.analysis.ranges.rules import times
from torch_ttnn.compiler.errors import refuse
from torch_ttnn.compiler.ir.builder import ProgramBuilder
from torch_ttnn.compiler.ir.value import Handle
from torch_ttnn.compiler.lowering.support.extents import small_enough
from torch_ttnn.compiler.lowering.support.promotion import (
    BFLOAT16,
    FLOAT32,
    INT32,
    Operand,
    all_over,
    elementwise,
    fitted,
    is_number,
    result_dtype,
)

aten = torch.ops.aten

# -- sums -------------------------------------------------------------------------------------------------------------


@elementwise(aten.add.Tensor, aten.add.Scalar, constants=(0, 1), wraps=True)
def add(ttnn: Any, builder: ProgramBuilder, x: Operand, y: Operand, alpha: float = 1) -> Handle:
    if is_number(x):
        x, y, alpha = _scaled(ttnn, y, y, alpha), x, 1
    if result_dtype(builder) is torch.bool:
        return ttnn.logical_or(x, _scaled(ttnn, x, y, alpha))
    if not is_number(y) and alpha != 1 and x.dtype is not INT32:
        return ttnn.addalpha(x, y, float(alpha))
    return ttnn.add(x, _scaled(ttnn, x, y, alpha))


@elementwise(aten.sub.Tensor, aten.sub.Scalar, constants=(0, 1), wraps=True)
def sub(ttnn: Any, x: Operand, y: Operand, alpha: float = 1) -> Handle:
    if is_number(x):
        return rsub(ttnn, y, x, alpha)
    if not is_number(y) and alpha != 1 and x.dtype is not INT32:
        return ttnn.subalpha(x, y, float(alpha))
    return ttnn.subtract(x, _scaled(ttnn, x, y, alpha))


@elementwise(aten.rsub.Tensor, aten.rsub.Scalar, wraps=True)
def rsub(ttnn: Any, x: Handle, y: Operand, alpha: float = 1) -> Handle:
    """y - alpha × x."""
    return ttnn.rsub(_scaled(ttnn, x, x, alpha), _scaled(ttnn, x, y, 1))


def _scaled(ttnn: Any, x: Handle, y: Operand, alpha: float) -> Operand:
    """alpha × y, as an operand next to x or in its place."""
    if is_number(y):
        return fitted(y * alpha, x.dtype)
    if alpha == 1:
        return y
    return ttnn.multiply(y, fitted(alpha, x.dtype))


# -- products ---------------------------------------------------------------------------------------------------------


@elementwise(aten.mul.Tensor, aten.mul.Scalar, constants=(0, 1), wraps=True)
def mul(ttnn: Any, builder: ProgramBuilder, x: Operand, y: Operand) -> Handle:
    if is_number(x):
        x, y = y, x
    if is_number(y):
        y = fitted(y, x.dtype)
    return ttnn.logical_and(x, y) if result_dtype(builder) is torch.bool else ttnn.multiply(x, y)


@elementwise(aten.addcmul.default, constants=(), wraps=True)
def addcmul(ttnn: Any, x: Handle, y: Handle, z: Handle, value: float = 1) -> Handle:
    return ttnn.addcmul(x, y, z, value=fitted(value, x.dtype))


@elementwise(aten.addcdiv.default, constants=())
def addcdiv(ttnn: Any, x: Handle, y: Handle, z: Handle, value: float = 1) -> Handle:
    return ttnn.addcdiv(x, y, z, value=float(value))


@elementwise(aten.lerp.Scalar, aten.lerp.Tensor, constants=(2,))
def lerp(ttnn: Any, x: Handle, end: Handle, weight: Operand) -> Handle:
    """Interpolates from the nearer end, as torch does: from the other one, small values would be lost to rounding."""
    way = ttnn.subtract(end, x)
    if is_number(weight):
        start, share = (x, weight) if abs(weight) < 0.5 else (end, weight - 1)
        return ttnn.addalpha(start, way, float(share))
    from_start = ttnn.addcmul(x, way, weight)
    from_end = ttnn.addcmul(end, way, ttnn.subtract(weight, 1.0))
    return ttnn.where(ttnn.lt(ttnn.abs(weight), 0.5), from_start, from_end)


# -- quotients --------------------------------------------------------------------------------------------------------


@elementwise(aten.div.Tensor, aten.div.Scalar, aten.true_divide.Tensor)
def div(ttnn: Any, x: Handle, y: Operand) -> Handle:
    return ttnn.divide(x, fitted(y, x.dtype) if is_number(y) else y)


@elementwise(aten.div.Tensor_mode, aten.div.Scalar_mode, wraps=True)
def div_mode(ttnn: Any, builder: ProgramBuilder, x: Handle, y: Operand, *, rounding_mode: str | None = None) -> Handle:
    if rounding_mode is None:
        return div(ttnn, x, y)
    if x.dtype is INT32:
        return INTEGER_QUOTIENTS[rounding_mode](ttnn, builder, x, y)
    return _rounded_quotient(ttnn, builder, x, y, rounding_mode)


@elementwise(aten.floor_divide.default, aten.floor_divide.Scalar, wraps=True)
def floor_divide(ttnn: Any, builder: ProgramBuilder, x: Handle, y: Operand) -> Handle:
    return div_mode(ttnn, builder, x, y, rounding_mode="floor")


def _rounded_quotient(ttnn: Any, builder: ProgramBuilder, x: Handle, y: Operand, rounding_mode: str) -> Handle:
    """Always in float32: bfloat16 would round 2.999 up before truncation."""
    original_dtype = x.dtype
    x, y = builder.cast(x, FLOAT32), y if is_number(y) else builder.cast(y, FLOAT32)
    quotient = ttnn.divide(x, float(y) if is_number(y) else y)
    if rounding_mode == "trunc":
        return builder.cast(ttnn.trunc(quotient), original_dtype)
    # The quotient may have been rounded up to an integer; the remainder shows it. Larger floats have no fractions.
    integer, rest = _exact_division(ttnn, builder, x, y, quotient)
    opposite = _other_sign(ttnn, rest, y)
    exact = ttnn.subtract(integer, builder.cast(opposite, FLOAT32))
    known = ttnn.le(ttnn.abs(_in_reach(ttnn, quotient, y)), LARGEST_QUOTIENT)
    cut = ttnn.where(known, exact, ttnn.floor(quotient))
    # A negative number divided by infinity is floored to -1.
    vanished = ttnn.logical_and(ttnn.ne(x, 0.0), ttnn.eq(cut, 0.0))
    return builder.cast(ttnn.where(ttnn.logical_and(vanished, _other_sign(ttnn, x, y)), -1.0, cut), original_dtype)


def _other_sign(ttnn: Any, x: Handle, y: Operand) -> Handle:
    """Where x and the non-zero y have opposite signs."""
    if is_number(y):
        return ttnn.lt(x, 0.0) if y > 0 else ttnn.gt(x, 0.0)
    return ttnn.logical_and(ttnn.ne(x, 0.0), ttnn.ne(ttnn.lt(x, 0.0), ttnn.lt(y, 0.0)))


def _divisor(y: Operand) -> Operand:
    if not is_number(y):
        return y
    if y == 0:
        refuse("torch raises an error for a division of integers by zero")
    return fitted(y, INT32)


def floor_quotient(ttnn: Any, builder: ProgramBuilder, x: Handle, y: Operand) -> Handle:
    """Integer division rounded towards minus infinity. The chip's kernel is exact for all non-zero divisors."""
    y = _divisor(y)
    if is_number(y) and is_power_of_two(y):
        return ttnn.bitwise_right_shift(x, y.bit_length() - 1) if y > 1 else x
    return ttnn.divide(x, y, rounding_mode="floor")


def trunc_quotient(ttnn: Any, builder: ProgramBuilder, x: Handle, y: Operand) -> Handle:
    """Integer division rounded towards zero: subtracts the remainder first, so that the division is exact."""
    y = _divisor(y)
    return ttnn.divide(ttnn.subtract(x, ttnn.fmod(x, y)), y, rounding_mode="floor")


def is_power_of_two(number: int) -> bool:
    return number > 0 and number & (number - 1) == 0


INTEGER_QUOTIENTS = {"floor": floor_quotient, "trunc": trunc_quotient}

# -- remainders -------------------------------------------------------------------------------------------------------


@elementwise(aten.remainder.Tensor, aten.remainder.Scalar)
def remainder(ttnn: Any, builder: ProgramBuilder, x: Handle, y: Operand) -> Handle:
    """With the sign of the divisor."""
    if x.dtype is INT32:
        y = _divisor(y)
        if is_number(y) and is_power_of_two(y):
            return ttnn.bitwise_and(x, y - 1)
        return ttnn.remainder(x, y)
    original_dtype = x.dtype
    x, y, rest = _rest(ttnn, builder, x, y)
    return builder.cast(ttnn.where(_other_sign(ttnn, rest, y), ttnn.add(rest, y), rest), original_dtype)


@elementwise(aten.fmod.Tensor, aten.fmod.Scalar)
def fmod(ttnn: Any, builder: ProgramBuilder, x: Handle, y: Operand) -> Handle:
    """With the sign of the dividend."""
    if x.dtype is INT32:
        return ttnn.fmod(x, _divisor(y))
    return builder.cast(_rest(ttnn, builder, x, y)[2], x.dtype)


LARGEST_QUOTIENT = 2.0**16  # its product with an 8-bit number is exact in float32
SMALL_QUOTIENTS = Range(-LARGEST_QUOTIENT, LARGEST_QUOTIENT)
SMALLEST_DIVISOR = 2.0**-100  # its last bits are not denormal


def _in_reach(ttnn: Any, quotient: Handle, y: Operand) -> Handle:
    """The quotient, or infinity where the divisor is too small to be split."""
    if is_number(y):
        return quotient
    return ttnn.where(ttnn.lt(ttnn.abs(y), SMALLEST_DIVISOR), math.inf, quotient)


def _rest(ttnn: Any, builder: ProgramBuilder, x: Handle, y: Operand) -> tuple[Handle, Operand, Handle]:
    """Dividend, divisor and remainder in float32. A call with larger quotients falls back to torch."""
    if is_number(y) and (y == 0 or not math.isfinite(y)):
        refuse(f"the remainder of a division by {y} is infinite on the device")
    key = "quotient", x.node, y if is_number(y) else y.node
    x, y = builder.cast(x, FLOAT32), float(y) if is_number(y) else builder.cast(y, FLOAT32)
    quotient = ttnn.divide(x, y)
    if not is_number(y) or not builder.range_of(0).within(times(Range(-abs(y), abs(y)), SMALL_QUOTIENTS)):
        builder.require(key, lambda: small_enough(ttnn, builder, _in_reach(ttnn, quotient, y), LARGEST_QUOTIENT))
    return x, y, _exact_division(ttnn, builder, x, y, quotient)[1]


def _exact_division(
    ttnn: Any, builder: ProgramBuilder, x: Handle, y: Operand, quotient: Handle
) -> tuple[Handle, Handle]:
    """The quotient rounded towards zero and the remainder with the sign of x, both exact up to the largest quotient.

    The kernel of `ttnn.fmod` rounds the product of divisor and quotient. With the divisor split into three parts of 8
    bits, each product is exact, and so is each difference.
    """
    if is_number(y) and abs(y) < SMALLEST_DIVISOR:
        refuse(f"the last bits of the divisor {y} are denormal numbers, which the device does not have")
    integer = ttnn.trunc(quotient)
    rest = x
    for part in _parts_of_8_bits(ttnn, builder, y):
        rest = ttnn.subtract(rest, ttnn.multiply(integer, part))
    rest = ttnn.where(ttnn.eq(integer, 0.0), x, rest)  # infinity cannot be split
    # Correct a quotient that was rounded up to the next integer.
    one = ttnn.where(_other_sign(ttnn, x, y), -1.0, 1.0)
    step = ttnn.multiply(one, y)  # with the sign of x
    over = _other_sign(ttnn, rest, step)
    rest = ttnn.where(over, ttnn.add(rest, step), rest)
    return ttnn.where(over, ttnn.subtract(integer, one), integer), rest


def _parts_of_8_bits(ttnn: Any, builder: ProgramBuilder, y: Operand) -> list[Operand]:
    """Splits a float32 into three bfloat16 numbers with the same sum."""
    parts: list[Operand] = []
    if is_number(y):
        left = torch.tensor(y, dtype=torch.float32)
        for _ in range(3):
            parts.append(left.bfloat16().item())
            left = left - parts[-1]
        return parts
    for _ in range(3):
        parts.append(builder.cast(builder.cast(y, BFLOAT16), FLOAT32))
        y = ttnn.subtract(y, parts[-1])
    return parts


# -- powers -----------------------------------------------------------------------------------------------------------

# Exponents with a dedicated operation.
POWERS = {2: "square", 0.5: "sqrt", -0.5: "rsqrt", -1: "reciprocal"}


@elementwise(aten.pow.Tensor_Scalar, aten.pow.Tensor_Tensor, wraps=True)
def power(ttnn: Any, builder: ProgramBuilder, x: Handle, exponent: Operand) -> Any:
    if not is_number(exponent):
        if x.dtype is INT32:
            refuse("integers have no power of a tensor on the device")
        return ttnn.pow(x, exponent)
    if exponent == 0:
        return all_over(builder, 1)
    if exponent == 1:
        return x
    if x.dtype is INT32:
        if exponent < 0:
            refuse("torch raises an error for a negative power of integers")
        return ttnn.multiply(x, x) if exponent == 2 else ttnn.pow(x, int(exponent))
    named = POWERS.get(exponent)
    if named:
        return getattr(ttnn, named)(x)
    if x.dtype is BFLOAT16 and abs(exponent) > LARGEST_POWER:
        return builder.cast(power(ttnn, builder, builder.cast(x, FLOAT32), exponent), BFLOAT16)
    result = ttnn.pow(x, float(exponent))
    if x.dtype is FLOAT32:
        result = _at_the_ends(ttnn, x, float(exponent), result)
    if float(exponent).is_integer():
        return result
    # The kernel treats infinity as the largest number.
    infinite = builder.cast(ttnn.isinf(x), x.dtype)
    return ttnn.where(infinite, math.inf if exponent > 0 else 0.0, result)


LARGEST_POWER = 8  # up to which the bfloat16 kernel is accurate within 2 %
SMALLEST_EXPONENT = -126  # of a float32 that is not denormal


def _at_the_ends(ttnn: Any, x: Handle, exponent: float, result: Handle) -> Handle:
    """Underflow yields 0, and negative powers of 0 infinity, where the float32 kernel yields NaN."""
    if exponent < 0:
        result = ttnn.where(ttnn.eq(x, 0.0), math.inf, result)
    bound = SMALLEST_EXPONENT / exponent
    if not SMALLEST_EXPONENT < bound < -SMALLEST_EXPONENT:  # no number is that small or large
        return result
    if exponent.is_integer():  # negative bases are valid, too
        x = ttnn.abs(x)
    if exponent > 0:
        below = ttnn.logical_and(ttnn.ge(x, 0.0), ttnn.lt(x, 2.0**bound))
    else:
        below = ttnn.gt(x, 2.0**bound)
    return ttnn.where(below, 0.0, result)


LARGEST_EXPONENT = 160  # of 2, well beyond the range of float32


@elementwise(aten.pow.Scalar)
def power_of_number(ttnn: Any, builder: ProgramBuilder, base: Operand, exponent: Handle) -> Any:
    if exponent.dtype is INT32:
        refuse("integer powers of a number may need more than the 32 bits of integers on the device")
    if base == 2:
        return ttnn.exp2(exponent)
    if base <= 0:
        refuse(f"powers of {base} are not computed on the device")
    if base == 1:
        return all_over(builder, 1)
    original_dtype = exponent.dtype
    # In float32: the bfloat16 kernel has an error of 2.5 % at large exponents, and fails beyond 2^128.
    reach = LARGEST_EXPONENT / abs(math.log2(base))
    return builder.cast(
        ttnn.rpow(ttnn.clamp(builder.cast(exponent, FLOAT32), -reach, reach), float(base)), original_dtype
    )


# -- other binary functions -------------------------------------------------------------------------------------------


@elementwise(aten.atan2.default, constants=())
def atan2(ttnn: Any, x: Handle, y: Handle) -> Handle:
    return ttnn.atan2(x, y)


@elementwise(aten.hypot.default, constants=())
def hypot(ttnn: Any, x: Handle, y: Handle) -> Handle:
    """larger × hypot(1, smaller ÷ larger): the kernel's squares overflow from 2^64 on."""
    x, y = ttnn.abs(x), ttnn.abs(y)
    larger, smaller = ttnn.maximum(x, y), ttnn.minimum(x, y)
    share = ttnn.divide(smaller, larger)
    length = ttnn.multiply(larger, ttnn.sqrt(ttnn.add(ttnn.square(share), 1.0)))
    return ttnn.where(ttnn.eq(larger, 0.0), 0.0, length)


@elementwise(aten.logaddexp.default, constants=())
def logaddexp(ttnn: Any, x: Handle, y: Handle) -> Handle:
    return ttnn.logaddexp(x, y)


@elementwise(aten.logaddexp2.default, constants=())
def logaddexp2(ttnn: Any, x: Handle, y: Handle) -> Handle:
    return ttnn.logaddexp2(x, y)


@elementwise(aten.xlogy.Tensor, aten.xlogy.Scalar_Other)
def xlogy(ttnn: Any, x: Handle, y: Operand) -> Handle:
    """x × log(y), and 0 where x is 0 for any y (infinity times 0 is 0 on the chip, but not in float32)."""
    if is_number(y):
        if y <= 0:
            refuse(f"the logarithm of {y} is not a finite number")
        return ttnn.multiply(x, fitted(math.log(y), x.dtype))
    product = ttnn.multiply(x, ttnn.log(y))
    return ttnn.where(ttnn.eq(x, 0.0), 0.0, product)


@elementwise(aten.copysign.Tensor, aten.copysign.Scalar)
def copysign(ttnn: Any, x: Handle, y: Operand) -> Handle:
    magnitude = ttnn.abs(x)
    if is_number(y):
        return magnitude if math.copysign(1, y) > 0 else ttnn.neg(magnitude)
    return ttnn.where(ttnn.signbit(y), ttnn.neg(magnitude), magnitude)
