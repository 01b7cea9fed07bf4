"""Comparisons and numeric predicates. Results are booleans, 0 and 1 in bfloat16."""

from __future__ import annotations

from typing import Any

import torch

from torch_ttnn.compiler.ir.builder import ProgramBuilder
from torch_ttnn.compiler.ir.value import Handle
from torch_ttnn.compiler.lowering.support.promotion import (
    BFLOAT16,
    Operand,
    all_over,
    as_held,
    elementwise,
    fitted,
    in_common_dtype,
    is_number,
)

aten = torch.ops.aten


def compared(ttnn: Any, name: str, x: Handle, y: Operand) -> Handle:
    """A library comparison, with result 0 or 1 in bfloat16."""
    y = fitted(y, x.dtype) if is_number(y) else y
    function = getattr(ttnn, name)
    return function(x, y) if x.dtype is BFLOAT16 else function(x, y, dtype=BFLOAT16)


def _register(name: str) -> None:
    packet = getattr(aten, name)

    @elementwise(packet.Tensor, packet.Scalar, computes=in_common_dtype)
    def compare(ttnn: Any, x: Handle, y: Operand) -> Handle:
        return compared(ttnn, name, x, y)


for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    _register(_name)


# -- numeric predicates -----------------------------------------------------------------------------------------------


# For integers the answer is a constant.
TESTS = {
    aten.isfinite.default: ("isfinite", True),
    aten.isinf.default: ("isinf", False),
    aten.isposinf.default: ("isposinf", False),
    aten.isneginf.default: ("isneginf", False),
    aten.isnan.default: ("isnan", False),
    aten.signbit.default: ("signbit", None),
}


def _register_test(overload: Any, name: str, of_integers: bool | None) -> None:
    @elementwise(overload, computes=as_held)
    def test(ttnn: Any, builder: ProgramBuilder, x: Handle) -> Any:
        if not builder.origin.args[0].meta["val"].is_floating_point():
            return all_over(builder, of_integers) if of_integers is not None else compared(ttnn, "lt", x, 0)
        return builder.cast(getattr(ttnn, name)(x), BFLOAT16)


for _overload, (_name, _of_integers) in TESTS.items():
    _register_test(_overload, _name, _of_integers)
