"""Selection: where, masked_fill, clamp, maximum and minimum."""

from __future__ import annotations

import math
from typing import Any

import torch

from torch_ttnn.compiler.errors import refuse
from torch_ttnn.compiler.ir.builder import ProgramBuilder
from torch_ttnn.compiler.ir.value import Handle
from torch_ttnn.compiler.lowering.support.promotion import (
    BFLOAT16,
    FLOAT32,
    INT32,
    Number,
    Operand,
    elementwise,
    fitted,
    is_number,
    result_dtype,
)

aten = torch.ops.aten
EXACT_IN_FLOAT32 = 1 << 24  # magnitude up to which integers are exact in float32


# -- where ------------------------------------------------------------------------------------------------------------


@elementwise(aten.where.self, aten.where.ScalarSelf, aten.where.ScalarOther, aten.where.Scalar, constants=(1, 2))
def where(ttnn: Any, builder: ProgramBuilder, condition: Handle, x: Operand, y: Operand) -> Handle:
    return chosen(ttnn, builder, condition, x, y)


@elementwise(aten.masked_fill.Scalar, aten.masked_fill.Tensor, constants=(0, 2))
def masked_fill(ttnn: Any, builder: ProgramBuilder, x: Operand, mask: Handle, value: Operand) -> Handle:
    """By selection, not by arithmetic, so that -inf is exact."""
    return chosen(ttnn, builder, mask, value, x)


def chosen(ttnn: Any, builder: ProgramBuilder, condition: Handle, x: Operand, y: Operand) -> Handle:
    """x where the condition holds, else y; the condition must have the dtype of the operands."""
    dtype = condition.dtype
    if is_number(x) and is_number(y):
        return _of_numbers(ttnn, builder, condition, fitted(x, dtype), fitted(y, dtype))
    return ttnn.where(condition, *[fitted(item, dtype) if is_number(item) else item for item in (x, y)])


def _of_numbers(ttnn: Any, builder: ProgramBuilder, condition: Handle, x: Number, y: Number) -> Handle:
    """Of two numbers. The library returns float32 for integers, and truncates numbers to bfloat16 without rounding."""
    if condition.dtype is INT32:
        if max(abs(x), abs(y)) > EXACT_IN_FLOAT32:
            refuse(f"a choice between {x} and {y} is not exact on the device")
        return builder.cast(ttnn.where(condition, float(x), float(y)), INT32)
    if condition.dtype is BFLOAT16:
        x, y = (torch.tensor(number, dtype=torch.bfloat16).item() for number in (x, y))
    return ttnn.where(condition, x, y)


# -- clamp ------------------------------------------------------------------------------------------------------------


@elementwise(aten.clamp.default, aten.clamp.Tensor, aten.clamp_min.default, aten.clamp_min.Tensor, constants=(1, 2))
def clamp(ttnn: Any, x: Handle, min: Operand | None = None, max: Operand | None = None) -> Handle:
    return limited(ttnn, x, min, max)


@elementwise(aten.clamp_max.default, aten.clamp_max.Tensor)
def clamp_max(ttnn: Any, x: Handle, max: Operand) -> Handle:
    return limited(ttnn, x, None, max)


@elementwise(aten.hardtanh.default)
def hardtanh(ttnn: Any, x: Handle, min_val: Number = -1, max_val: Number = 1) -> Handle:
    return limited(ttnn, x, min_val, max_val)


def limited(ttnn: Any, x: Handle, low: Operand, high: Operand) -> Handle:
    """min(max(x, low), high). The library's clamp needs two finite bounds: it substitutes its own for missing ones."""
    low = fitted(low, x.dtype) if is_number(low) else low
    high = fitted(high, x.dtype) if is_number(high) else high
    bound = EXACT_IN_FLOAT32 if x.dtype is INT32 else math.inf
    if is_number(low) and is_number(high) and max(abs(low), abs(high)) < bound:
        return ttnn.clamp(x, min(low, high), high)
    if low is not None and low != -math.inf:
        x = ttnn.maximum(x, low)
    if high is not None and high != math.inf:
        x = ttnn.minimum(x, high)
    return x


# -- maximum and minimum ----------------------------------------------------------------------------------------------


def _register_extreme(overload: Any, name: str, of_booleans: str) -> None:
    @elementwise(overload)
    def extreme(ttnn: Any, builder: ProgramBuilder, x: Handle, y: Operand) -> Handle:
        y = fitted(y, x.dtype) if is_number(y) else y
        return getattr(ttnn, of_booleans if result_dtype(builder) is torch.bool else name)(x, y)


_register_extreme(aten.maximum.default, "maximum", "logical_or")
_register_extreme(aten.minimum.default, "minimum", "logical_and")
_register_extreme(aten.fmax.default, "maximum", "logical_or")
_register_extreme(aten.fmin.default, "minimum", "logical_and")


@elementwise(aten.nan_to_num.default)
def nan_to_num(
    ttnn: Any,
    builder: ProgramBuilder,
    x: Handle,
    nan: float | None = None,
    posinf: float | None = None,
    neginf: float | None = None,
) -> Handle:
    if x.dtype is INT32 or result_dtype(builder) is torch.bool:
        return x
    largest = torch.finfo(torch.float32 if x.dtype is FLOAT32 else torch.bfloat16).max
    result = ttnn.where(ttnn.isnan(x), fitted(nan or 0.0, x.dtype), x)
    result = ttnn.where(ttnn.isposinf(x), fitted(largest if posinf is None else posinf, x.dtype), result)
    return ttnn.where(ttnn.isneginf(x), fitted(-largest if neginf is None else neginf, x.dtype), result)


@elementwise(aten.heaviside.default)
def heaviside(ttnn: Any, builder: ProgramBuilder, x: Handle, at_zero: Operand) -> Handle:
    if x.dtype is INT32:
        refuse("integers are not handled on the device")
    return chosen(ttnn, builder, ttnn.eq(x, 0.0), at_zero, ttnn.gt(x, 0.0))
