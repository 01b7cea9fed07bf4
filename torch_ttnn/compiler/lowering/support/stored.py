"""Helpers for lowerings that work on a value in its storage order."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from torch_ttnn.compiler.ir.builder import ProgramBuilder
from torch_ttnn.compiler.ir.storage_order import Form
from torch_ttnn.compiler.ir.value import ROW_MAJOR, TILE, Handle, Value
from ttnn_emulator import DataType

WASTE = 4  # times the volume up to which tiles may grow by their padding before rows are taken instead


def tile_volume(shape: Sequence[int]) -> int:
    """Elements of a tensor in whole tiles."""
    *outer, height, width = (1, 1, *shape)
    return math.prod(outer) * -(-height // 32) * -(-width // 32) * 1024


def spread(ttnn: Any, builder: ProgramBuilder, x: Value, *, rows: bool = False) -> Handle:
    """Its tensor, with the dimensions of its form (storage order): in tiles, or in rows if tiles are mostly padding."""
    return reshaped(ttnn, builder, x.base(), x.form.held, rows=rows)


def reshaped(ttnn: Any, builder: ProgramBuilder, handle: Handle, shape: Sequence[int], *, rows: bool = False) -> Handle:
    """A reshape, in row-major layout if tiles of the new shape would be mostly padding."""
    shape = tuple(shape)
    if handle.layout is TILE and (rows or is_wasteful(handle, shape)):
        handle = ttnn.to_layout(handle, ROW_MAJOR)
    return builder.reshaped(handle, shape)


def is_wasteful(handle: Handle, shape: Sequence[int]) -> bool:
    return tuple(shape) != handle.shape and tile_volume(shape) > WASTE * tile_volume(handle.shape)


def held_by(builder: ProgramBuilder, x: Value, handle: Handle, form: Form) -> Value:
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
