"""Tensors filled with a number. Their values do not depend on inputs, so they are constants of the program."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from torch_ttnn.compiler.ir.builder import ProgramBuilder
from torch_ttnn.compiler.ir.value import Value
from torch_ttnn.compiler.lowering.elementwise.casts import cast, spread
from torch_ttnn.compiler.lowering.registry import lowers
from torch_ttnn.compiler.lowering.support.promotion import Number, all_over

aten = torch.ops.aten


@lowers(aten.zeros_like.default, aten.zero.default, aten.new_zeros.default)
def zeros(ttnn: Any, builder: ProgramBuilder, x: Value, *sizes: Sequence[int], **options: Any) -> Value:
    return all_over(builder, 0)


@lowers(aten.ones_like.default, aten.new_ones.default)
def ones(ttnn: Any, builder: ProgramBuilder, x: Value, *sizes: Sequence[int], **options: Any) -> Value:
    return all_over(builder, 1)


@lowers(aten.full_like.default, aten.fill.Scalar)
def filled(ttnn: Any, builder: ProgramBuilder, x: Value, number: Number, **options: Any) -> Value:
    return all_over(builder, number)


@lowers(aten.new_full.default)
def new_filled(
    ttnn: Any, builder: ProgramBuilder, x: Value, size: Sequence[int], number: Number, **options: Any
) -> Value:
    return all_over(builder, number)


@lowers(aten.fill.Tensor)
def filled_with(ttnn: Any, builder: ProgramBuilder, x: Value, source: Value) -> Any:
    return spread(ttnn, builder, cast(ttnn, builder, source, x.dtype), x.shape)
