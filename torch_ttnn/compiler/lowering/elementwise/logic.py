"""Logical and bitwise operations. Booleans are 0 and 1 in bfloat16; integers have 32 bits."""

from __future__ import annotations

from typing import Any

import torch

from torch_ttnn.compiler.errors import refuse
from torch_ttnn.compiler.ir.builder import ProgramBuilder
from torch_ttnn.compiler.ir.value import Handle
from torch_ttnn.compiler.lowering.elementwise.comparison import compared
from torch_ttnn.compiler.lowering.support.promotion import (
    BFLOAT16,
    INT32,
    Operand,
    as_held,
    elementwise,
    fitted,
    is_number,
    result_dtype,
)

aten = torch.ops.aten

# -- logical ----------------------------------------------------------------------------------------------------------


def truth(ttnn: Any, builder: ProgramBuilder, x: Handle, node: torch.fx.Node) -> Handle:
    """The truth value of `node` as 0 or 1 in bfloat16; every non-zero number is true."""
    if node.meta["val"].dtype is torch.bool:
        return builder.cast(x, BFLOAT16)
    return compared(ttnn, "ne", x, 0)


def _register_logical(overload: Any, name: str) -> None:
    @elementwise(overload, computes=as_held, constants=())
    def logical(ttnn: Any, builder: ProgramBuilder, x: Handle, y: Handle) -> Handle:
        first, second = builder.origin.args
        return getattr(ttnn, name)(truth(ttnn, builder, x, first), truth(ttnn, builder, y, second))


for _name in ("logical_and", "logical_or", "logical_xor"):
    _register_logical(getattr(aten, _name).default, _name)


@elementwise(aten.logical_not.default, computes=as_held)
def logical_not(ttnn: Any, builder: ProgramBuilder, x: Handle) -> Handle:
    if builder.origin.args[0].meta["val"].dtype is torch.bool:
        return ttnn.logical_not(builder.cast(x, BFLOAT16))
    return compared(ttnn, "eq", x, 0)


# -- bitwise ----------------------------------------------------------------------------------------------------------


def _register_bitwise(word: str) -> None:
    packet = getattr(aten, f"bitwise_{word}")

    @elementwise(packet.Tensor, packet.Scalar)
    def bitwise(ttnn: Any, builder: ProgramBuilder, x: Handle, y: Operand) -> Handle:
        kind = "logical" if result_dtype(builder) is torch.bool else "bitwise"
        return getattr(ttnn, f"{kind}_{word}")(x, fitted(y, x.dtype) if is_number(y) else y)


for _word in ("and", "or", "xor"):
    _register_bitwise(_word)


@elementwise(aten.bitwise_not.default, wraps=True)
def bitwise_not(ttnn: Any, builder: ProgramBuilder, x: Handle) -> Handle:
    return ttnn.logical_not(x) if result_dtype(builder) is torch.bool else ttnn.bitwise_not(x)


# -- shifts -----------------------------------------------------------------------------------------------------------

LARGEST_LEFT_SHIFT = 16  # of int64: a longer shift is likely to need more than 32 bits
LEFT = (
    aten.bitwise_left_shift.Tensor,
    aten.bitwise_left_shift.Tensor_Scalar,
    aten.__lshift__.Tensor,
    aten.__lshift__.Scalar,
)
RIGHT = (
    aten.bitwise_right_shift.Tensor,
    aten.bitwise_right_shift.Tensor_Scalar,
    aten.__rshift__.Tensor,
    aten.__rshift__.Scalar,
)


def _require_shiftable(x: Handle, y: Operand) -> None:
    if x.dtype is not INT32:
        refuse("only integers are shifted on the device")
    if is_number(y) and not 0 <= y < 32:
        refuse(f"a shift by {y} is not handled on the device")


@elementwise(*LEFT, wraps=True)
def left_shift(ttnn: Any, builder: ProgramBuilder, x: Handle, y: Operand) -> Handle:
    _require_shiftable(x, y)
    if result_dtype(builder) is torch.int64 and (not is_number(y) or y > LARGEST_LEFT_SHIFT):
        refuse("int64 shifted left may need more than the 32 bits of integers on the device")
    return ttnn.bitwise_left_shift(x, y)


@elementwise(*RIGHT)
def right_shift(ttnn: Any, x: Handle, y: Operand) -> Handle:
    _require_shiftable(x, y)
    return ttnn.bitwise_right_shift(x, y)
