"""Dtype conversions and copies."""

from __future__ import annotations

from typing import Any

import torch

from torch_ttnn.compiler.ir.builder import ProgramBuilder
from torch_ttnn.compiler.ir.value import Handle, Value
from torch_ttnn.compiler.lowering.elementwise.comparison import compared
from torch_ttnn.compiler.lowering.registry import find, lowers
from torch_ttnn.compiler.lowering.support.promotion import BFLOAT16, FLOAT32, INT32, wrapped
from ttnn_emulator import DataType

aten = torch.ops.aten


@lowers(
    aten.clone.default,
    aten.alias.default,
    aten.detach.default,
    aten.lift_fresh.default,
    aten.lift_fresh_copy.default,
    aten.contiguous.default,
)
def clone(ttnn: Any, x: Value, *, memory_format: Any = None) -> Value:
    return x


@lowers(torch.ops.prims.convert_element_type.default, aten.to.dtype)
def convert(ttnn: Any, builder: ProgramBuilder, x: Value, dtype: torch.dtype, *options: Any, **more: Any) -> Value:
    return cast(ttnn, builder, x, dtype)


@lowers(aten._to_copy.default)
def to_copy(ttnn: Any, builder: ProgramBuilder, x: Value, *, dtype: torch.dtype | None = None, **where: Any) -> Value:
    """Layout, memory format and torch device do not apply here."""
    return cast(ttnn, builder, x, dtype or x.dtype)


@lowers(aten.copy.default)
def copy(ttnn: Any, builder: ProgramBuilder, x: Value, source: Value, non_blocking: bool = False) -> Value:
    """The source, converted and broadcast to the dtype and shape of `x`."""
    return spread(ttnn, builder, cast(ttnn, builder, source, x.dtype), x.shape)


def spread(ttnn: Any, builder: ProgramBuilder, x: Value, shape: tuple[int, ...]) -> Any:
    """Broadcast to a shape."""
    return x if x.shape == tuple(shape) else find(aten.expand.default).function(ttnn, builder, x, list(shape))  # type: ignore[union-attr]


def cast(ttnn: Any, builder: ProgramBuilder, x: Value, dtype: torch.dtype) -> Value:
    """The value in another of torch's dtypes, in its storage order."""
    if x.dtype is dtype:
        return x
    if x.is_static:
        return x.prepared(torch.Tensor.to, dtype)
    (handle,), form = builder.aligned([x], x.shape)
    result = _cast_handle(ttnn, builder, handle, x, dtype)
    return builder.value(result, x.shape, dtype, form)


def _cast_handle(ttnn: Any, builder: ProgramBuilder, handle: Handle, x: Value, dtype: torch.dtype) -> Handle:
    if dtype is torch.bool:
        return compared(ttnn, "ne", handle, 0)
    if dtype.is_floating_point:
        return builder.cast(handle, _float_for(builder, handle, x, dtype))
    whole = builder.cast(handle, INT32)
    fits = x.is_bool or (x.is_integer and torch.promote_types(x.dtype, dtype) is dtype)
    return whole if fits else wrapped(ttnn, whole, dtype)


def _float_for(builder: ProgramBuilder, handle: Handle, x: Value, dtype: torch.dtype) -> DataType:
    """Floats converted from integers stay float32 on the device, as bfloat16 cannot represent 257."""
    if dtype is torch.bfloat16 or x.is_bool:
        return builder.device_dtype(dtype)
    return BFLOAT16 if handle.dtype is BFLOAT16 and builder.float_dtype is BFLOAT16 else FLOAT32
