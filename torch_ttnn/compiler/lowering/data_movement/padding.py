"""Constant, reflection and replication padding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from torch_ttnn.compiler.ir.builder import ProgramBuilder
from torch_ttnn.compiler.ir.storage_order import Form
from torch_ttnn.compiler.ir.value import Value
from torch_ttnn.compiler.lowering.data_movement.gather import picked
from torch_ttnn.compiler.lowering.data_movement.joining import join
from torch_ttnn.compiler.lowering.data_movement.slicing import cut
from torch_ttnn.compiler.lowering.registry import lowers
from torch_ttnn.compiler.lowering.support.stored import spread, stored_in
from ttnn_emulator import DataType

aten = torch.ops.aten
Sides = list[tuple[int, int]]  # (before, after) per dimension


def sides_of(x: Value, pad: Sequence[int]) -> Sides:
    """Torch lists the last dimension first."""
    pairs = list(zip(pad[::2], pad[1::2]))[::-1]
    return [(0, 0)] * (x.ndim - len(pairs)) + pairs


@lowers(aten.constant_pad_nd.default)
def constant_pad(ttnn: Any, builder: ProgramBuilder, x: Value, pad: Sequence[int], value: float = 0) -> Value:
    sides = sides_of(x, pad)
    for dim, (before, after) in enumerate(sides):
        if before < 0 or after < 0:
            x = cut(ttnn, builder, x, dim, max(0, -before), x.shape[dim] + min(0, after))
    return padded(ttnn, builder, x, [(max(0, before), max(0, after)) for before, after in sides], value)


def padded(ttnn: Any, builder: ProgramBuilder, x: Value, sides: Sides, value: float) -> Value:
    """Pads in storage order. The library pads tiles only at the end, and float32 rows not with an arbitrary value."""
    if not any(before or after for before, after in sides):
        return x
    in_front = any(before for before, _ in sides)
    if x.device_dtype is DataType.FLOAT32 and in_front and value != 0:
        for dim, (before, after) in enumerate(sides):
            parts = [_slab(builder, x, dim, before, value), x, _slab(builder, x, dim, after, value)]
            x = join(ttnn, builder, [each for each in parts if each is not None], dim)
        return x
    form = x.form
    along = [sides[dim] for dim in form.order]
    handle = spread(ttnn, builder, x, rows=in_front)
    number = float(value) if x.is_float or x.is_bool else int(value)
    shape = tuple([before + size + after for size, (before, after) in zip(form.stored_shape, along)])
    if handle.shape and len(handle.shape) == 1:
        flat = ttnn.pad(builder.reshaped(handle, (1, *handle.shape)), [(0, 0), *along], number)
        return stored_in(builder, x, builder.reshaped(flat, shape), Form(shape, form.axes))
    return stored_in(builder, x, ttnn.pad(handle, along, number), Form(shape, form.axes))


def _slab(builder: ProgramBuilder, x: Value, dim: int, size: int, value: float) -> Value | None:
    if not size:
        return None
    return builder.static(torch.full((*x.shape[:dim], size, *x.shape[dim + 1 :]), value, dtype=x.dtype))


@lowers(aten.reflection_pad1d.default, aten.reflection_pad2d.default, aten.reflection_pad3d.default)
def reflection_pad(ttnn: Any, builder: ProgramBuilder, x: Value, padding: Sequence[int]) -> Value:
    for dim, (before, after) in enumerate(sides_of(x, padding)):
        last = x.shape[dim] - 1
        positions = [last - abs(last - abs(position)) for position in range(-before, x.shape[dim] + after)]
        x = picked(ttnn, builder, x, dim, positions)
    return x


@lowers(aten.replication_pad1d.default, aten.replication_pad2d.default, aten.replication_pad3d.default)
def replication_pad(ttnn: Any, builder: ProgramBuilder, x: Value, padding: Sequence[int]) -> Value:
    for dim, (before, after) in enumerate(sides_of(x, padding)):
        positions = [min(max(position, 0), x.shape[dim] - 1) for position in range(-before, x.shape[dim] + after)]
        x = picked(ttnn, builder, x, dim, positions)
    return x
