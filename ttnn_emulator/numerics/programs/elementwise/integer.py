"""Integer kernels: wrapping arithmetic, shifts, comparisons, division; on carriers and their dtype."""

from __future__ import annotations

from collections.abc import Callable

import torch

from ttnn_emulator.enums import DataType
from ttnn_emulator.errors import ChipFault
from ttnn_emulator.numerics.broadcasting import of_one_shape
from ttnn_emulator.numerics.formats.carriers import CARRIER, wrap_integer
from ttnn_emulator.numerics.mode import exactly
from ttnn_emulator.numerics.programs.elementwise import vector_binary

Values = torch.Tensor
DIVISION_COST = 12  # fused multiply-adds per element
# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_lcm.h, calculate_sfpu_lcm
LCM_LIMIT = 2**15  # the kernel multiplies and divides 16-bit magnitudes


def _wrapping(function: Callable[[Values, Values], Values]) -> Callable[..., Values]:
    return lambda a, b, dtype: wrap_integer(function(a.to(torch.int64), b.to(torch.int64)), dtype)


def _flag(relation: Callable[[Values, Values], Values]) -> Callable[..., Values]:
    return lambda a, b, dtype: relation(a, b).to(CARRIER[dtype])


def _test(relation: Callable[[Values], Values]) -> Callable[..., Values]:
    return lambda values, dtype: relation(values).to(CARRIER[dtype])


def _nonzero(values: Values) -> Values:
    """-2³¹ counts as zero: in sign-magnitude no bit of its magnitude is set."""
    return (values != 0) & (values != -(2**31))


# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_shift.h,
#     calculate_binary_left_shift, calculate_binary_right_shift
def _shift(a: Values, b: Values, dtype: DataType, *, left: bool, signed: bool) -> Values:
    """A shift by a negative amount, or by 32 or more, gives 0."""
    raw = a.to(torch.int64)
    value = raw if signed and dtype is DataType.INT32 else raw & 0xFFFFFFFF
    if signed and dtype is DataType.UINT32:
        value = raw - ((raw >> 31) << 32)
    amount = b.to(torch.int64)
    if dtype is DataType.UINT32:
        amount = amount - ((amount >> 31) << 32)
    fits = (amount >= 0) & (amount < 32)
    amount = amount.clamp(0, 31)
    shifted = value << amount if left else value >> amount
    return wrap_integer(torch.where(fits, shifted & 0xFFFFFFFF, 0), dtype)


# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_binary_remainder.h,
#     calculate_remainder_int32
# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_binary_fmod.h,
#     calculate_fmod_int32
def _remainder(a: Values, b: Values, dtype: DataType, *, floor: bool) -> Values:
    """The remainder of a division by zero is the dividend."""
    left, right = of_one_shape(a.to(torch.int64), b.to(torch.int64))
    safe = torch.where(right == 0, 1, right)
    rest = torch.remainder(left, safe) if floor else torch.fmod(left, safe)
    return wrap_integer(torch.where(right == 0, left, rest), dtype)


# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_div_int32_floor.h,
#     calculate_div_int32_body
def _quotient(a: Values, b: Values, dtype: DataType, *, mode: str) -> Values:
    left, right = of_one_shape(a.to(torch.int64), b.to(torch.int64))
    safe = torch.where(right == 0, 1, right)
    return wrap_integer(torch.div(left, safe, rounding_mode=mode), dtype)


# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_div_int32.h,
#     calculate_div_int32
def _division(a: Values, b: Values, dtype: DataType) -> Values:
    """The quotient as float32. -2³¹ counts as zero: in sign-magnitude no bit of its magnitude is set."""
    left, right = of_one_shape(_without_least(a).float(), _without_least(b).float())
    if not exactly(left.numel() * DIVISION_COST):
        return left / right
    quotient = vector_binary.integer_division(left.numpy(), right.numpy(), fp32=True)
    return torch.from_numpy(vector_binary.stored(quotient, True))


def _without_least(values: Values) -> Values:
    return torch.where(values == -(2**31), 0, values)


def _lcm(a: Values, b: Values, dtype: DataType) -> Values:
    if bool((a.abs() > LCM_LIMIT).any()) or bool((b.abs() > LCM_LIMIT).any()):
        raise ChipFault(f"lcm is correct only for operands up to {LCM_LIMIT}")
    return wrap_integer(torch.lcm(a.to(torch.int64), b.to(torch.int64)), dtype)


INTEGER_KERNELS: dict[str, Callable[..., Values]] = {
    "addition": _wrapping(torch.add),
    "subtraction": _wrapping(torch.sub),
    "reversed_subtraction": _wrapping(lambda a, b: b - a),
    "multiplication": _wrapping(torch.mul),
    "division": _division,
    "DIV_FLOOR": lambda a, b, dtype: _quotient(a, b, dtype, mode="floor"),
    "DIV_TRUNC": lambda a, b, dtype: _quotient(a, b, dtype, mode="trunc"),
    "remainder": lambda a, b, dtype: _remainder(a, b, dtype, floor=True),
    "fmod": lambda a, b, dtype: _remainder(a, b, dtype, floor=False),
    "equals": _flag(torch.eq),
    "differs": _flag(torch.ne),
    "precedes": _flag(torch.lt),
    "follows": _flag(torch.gt),
    "not_after": _flag(torch.le),
    "not_before": _flag(torch.ge),
    "largest": lambda a, b, dtype: torch.maximum(a, b),
    "smallest": lambda a, b, dtype: torch.minimum(a, b),
    "BITWISE_AND": _wrapping(torch.bitwise_and),
    "BITWISE_OR": _wrapping(torch.bitwise_or),
    "BITWISE_XOR": _wrapping(torch.bitwise_xor),
    "LEFT_SHIFT": lambda a, b, dtype: _shift(a, b, dtype, left=True, signed=False),
    "RIGHT_SHIFT": lambda a, b, dtype: _shift(a, b, dtype, left=False, signed=True),
    "LOGICAL_RIGHT_SHIFT": lambda a, b, dtype: _shift(a, b, dtype, left=False, signed=False),
    "GCD": _wrapping(torch.gcd),
    "LCM": _lcm,
}

# Unary functions that may be fused: values, their dtype, parameters → values of that dtype.
INTEGER_FUNCTIONS: dict[str, Callable[..., Values]] = {
    "nez": _test(_nonzero),
    "eqz": _test(lambda values: ~_nonzero(values)),
    "ltz": _test(lambda values: _nonzero(values) & (values < 0)),
    "gtz": _test(lambda values: values > 0),
    "lez": _test(lambda values: ~(values > 0)),
    "gez": _test(lambda values: ~(_nonzero(values) & (values < 0))),
    "logical_not_unary": _test(lambda values: ~_nonzero(values)),
    "square": lambda values, dtype: wrap_integer(values.to(torch.int64) ** 2, dtype),
    "relu": lambda values, dtype: values.clamp(min=0),
    "neg": lambda values, dtype: wrap_integer(-values.to(torch.int64), dtype),
    "abs": lambda values, dtype: wrap_integer(values.to(torch.int64).abs(), dtype),
    "mul_unary_sfpu": lambda values, dtype, factor: wrap_integer(values.to(torch.int64) * int(factor), dtype),
}
