"""Helpers for lowerings that work on a value in its storage order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch_ttnn.compiler.ir.builder import ProgramBuilder
from torch_ttnn.compiler.ir.storage_order import Form
from torch_ttnn.compiler.ir.tile_padding import is_mostly_padding
from torch_ttnn.compiler.ir.value import ROW_MAJOR, TILE, Handle, Value
from ttnn_emulator import DataType


def spread(ttnn: Any, builder: ProgramBuilder, x: Value, *, rows: bool = False) -> Handle:
    """Its tensor, with the dimensions of its form (storage order): in tiles, or in rows if tiles are mostly padding."""
    return reshaped(ttnn, builder, x.base(), x.form.stored_shape, rows=rows)


def reshaped(ttnn: Any, builder: ProgramBuilder, handle: Handle, shape: Sequence[int], *, rows: bool = False) -> Handle:
    """A reshape, in row-major layout if tiles of the new shape would be mostly padding."""
    shape = tuple(shape)
    if handle.layout is TILE and (rows or is_mostly_padding(shape, handle.shape)):
        handle = ttnn.to_layout(handle, ROW_MAJOR)
    return builder.reshaped(handle, shape)


def stored_in(builder: ProgramBuilder, x: Value, handle: Handle, form: Form) -> Value:
    """A value of `x`'s dtype, stored in another tensor."""
    return builder.value(handle, form.shape, x.dtype, form)


def common_dtype(builder: ProgramBuilder, dtype: Any, values: Sequence[Value]) -> DataType:
    """The device's dtype for a result of torch's `dtype` that holds these values."""
    found = {value.device_dtype for value in values}
    wanted = builder.device_dtype(dtype)
    if dtype.is_floating_point:
        return DataType.FLOAT32 if DataType.FLOAT32 in found else wanted
    if len(found) == 1 and all(value.dtype is dtype for value in values):
        return found.pop()
    return wanted
