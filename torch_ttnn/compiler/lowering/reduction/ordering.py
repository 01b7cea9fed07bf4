"""argmax, topk, sort, and cumulative sums and products."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from torch_ttnn.compiler.errors import refuse
from torch_ttnn.compiler.ir.builder import ProgramBuilder
from torch_ttnn.compiler.ir.storage_order import Form
from torch_ttnn.compiler.ir.value import TILE, Handle, Value
from torch_ttnn.compiler.lowering.reduction.reductions import extreme, in_storage
from torch_ttnn.compiler.lowering.registry import lowers
from torch_ttnn.compiler.lowering.support.routing import routes
from ttnn_emulator import DataType

aten = torch.ops.aten

FLOAT32, INT32 = DataType.FLOAT32, DataType.INT32
TIES = 'of equal values the device may choose others than torch does; accept="ties" allows it'


def _comparable(builder: ProgramBuilder, x: Value) -> tuple[Handle, Form]:
    """Its tiles in storage order. Host values are uploaded unrounded: rounding would make different values equal."""
    if x.dtype is torch.float32 and not x.is_on_device and not x.is_static:
        return builder.upload(x, TILE, FLOAT32), Form.plain(x.shape)
    return in_storage(builder, x)


# -- argmax and argmin --------------------------------------------------------------------------------------------


def _index_of_largest(
    ttnn: Any, builder: ProgramBuilder, x: Value, dim: int | None, keepdim: bool, negated: bool
) -> Value:
    """The index of the first of equal values, as in torch."""
    shape = tuple([1] * x.ndim if keepdim else []) if dim is None else _without(x.shape, dim, keepdim)
    if dim is None:
        x, dim, keepdim = x.view((x.numel,)), 0, False
    if x.ndim == 0:
        return builder.static(torch.zeros(shape, dtype=torch.int64))
    dim %= x.ndim
    if x.is_integer:
        order = [each for each in range(x.ndim) if each != dim] + [dim]
        handle = x.permute(order).tile()
        handle = ttnn.to_layout(ttnn.bitwise_not(handle) if negated else handle, ttnn.ROW_MAJOR_LAYOUT)
        return builder.value(builder.cast(ttnn.argmax(handle, dim=-1), INT32), shape, torch.int64)
    handle, form = _comparable(builder, x)
    handle = ttnn.neg(handle) if negated else handle
    found = builder.cast(ttnn.argmax(handle, dim=form.axes[dim], keepdim=True), INT32)
    stored_shape = tuple([1 if axis == form.axes[dim] else size for axis, size in enumerate(form.stored_shape)])
    kept = Form(stored_shape, form.axes)
    return builder.value(found, kept.shape, torch.int64, form=kept).view(shape)


def _without(shape: tuple[int, ...], dim: int, keepdim: bool) -> tuple[int, ...]:
    if not shape:
        return ()
    dim %= len(shape)
    return shape[:dim] + ((1,) if keepdim else ()) + shape[dim + 1 :]


@lowers(aten.argmax.default)
def argmax(ttnn: Any, builder: ProgramBuilder, x: Value, dim: int | None = None, keepdim: bool = False) -> Value:
    return _index_of_largest(ttnn, builder, x, dim, keepdim, negated=False)


@lowers(aten.argmin.default)
def argmin(ttnn: Any, builder: ProgramBuilder, x: Value, dim: int | None = None, keepdim: bool = False) -> Value:
    return _index_of_largest(ttnn, builder, x, dim, keepdim, negated=True)


def _with_index(
    ttnn: Any,
    builder: ProgramBuilder,
    x: Value,
    dim: int,
    keepdim: bool,
    operation: Callable[..., Handle],
    negated: bool,
) -> tuple[Any, Any]:
    index = _index_of_largest(ttnn, builder, x, dim, keepdim, negated) if 1 in builder.used else None
    return extreme(ttnn, builder, x, dim, keepdim, operation), index


@lowers(aten.max.dim)
def max_dim(ttnn: Any, builder: ProgramBuilder, x: Value, dim: int, keepdim: bool = False) -> tuple[Any, Any]:
    return _with_index(ttnn, builder, x, dim, keepdim, ttnn.max, negated=False)


@lowers(aten.min.dim)
def min_dim(ttnn: Any, builder: ProgramBuilder, x: Value, dim: int, keepdim: bool = False) -> tuple[Any, Any]:
    return _with_index(ttnn, builder, x, dim, keepdim, ttnn.min, negated=True)


# -- topk and sort ------------------------------------------------------------------------------------------------


def _require_ordered_floats(builder: ProgramBuilder, x: Value, keeps_ties: bool) -> None:
    if not x.is_float:
        refuse("the device orders floats only")
    if 1 in builder.used and not keeps_ties and not builder.accepts("ties"):
        refuse(TIES)


@lowers(aten.topk.default)
def topk(
    ttnn: Any, builder: ProgramBuilder, x: Value, k: int, dim: int = -1, largest: bool = True, sorted: bool = True
) -> tuple[Any, Any]:
    _require_ordered_floats(builder, x, keeps_ties=routes(builder.origin))
    if x.ndim == 0:
        return x, builder.static(torch.zeros((), dtype=torch.int64))
    handle, form = _comparable(builder, x)
    values, indices = ttnn.topk(handle, k, dim=form.axes[dim], largest=largest)
    return _values_and_indices(builder, x, values, indices, form.resized(dim % x.ndim, k))


def _values_and_indices(
    builder: ProgramBuilder, x: Value, values: Handle, indices: Handle, form: Form
) -> tuple[Any, Any]:
    """Values in the dtype that their users expect, and indices as integers."""
    is_wide = x.is_on_device and x.base().dtype is FLOAT32  # like the value that they may be compared with
    dtype = values.dtype if is_wide else builder.device_dtype(x.dtype)
    result = builder.value(builder.cast(values, dtype), form.shape, x.dtype, form=form)
    if 1 not in builder.used:
        return result, None
    return result, builder.value(builder.cast(indices, INT32), form.shape, torch.int64, form=form)


@lowers(aten.sort.default)
def sort(ttnn: Any, builder: ProgramBuilder, x: Value, dim: int = -1, descending: bool = False) -> tuple[Any, Any]:
    return stable_sort(ttnn, builder, x, stable=False, dim=dim, descending=descending)


@lowers(aten.sort.stable)
def stable_sort(
    ttnn: Any, builder: ProgramBuilder, x: Value, *, stable: bool | None, dim: int = -1, descending: bool = False
) -> tuple[Any, Any]:
    """The device's sort is always stable; torch's only on request."""
    _require_ordered_floats(builder, x, keeps_ties=bool(stable))
    if x.ndim == 0:
        return x, builder.static(torch.zeros((), dtype=torch.int64))
    handle, form = _comparable(builder, x)
    values, indices = ttnn.sort(handle, dim=form.axes[dim], descending=descending, stable=True)
    return _values_and_indices(builder, x, values, indices, form)


# -- cumulative ---------------------------------------------------------------------------------------------------


def _accumulated(
    builder: ProgramBuilder, x: Value, dim: int, dtype: torch.dtype | None, operation: Callable[..., Handle]
) -> Value:
    """Floats in float32: a bfloat16 sum would soon stop growing."""
    out = dtype or (x.dtype if x.is_float else torch.int64)
    if x.is_float and not out.is_floating_point:
        refuse("running totals of floats as integers")
    handle, form = in_storage(builder, x, FLOAT32 if out.is_floating_point else INT32)
    if x.ndim:
        handle = operation(handle, dim=form.axes[dim])
    return builder.value(builder.cast(handle, builder.device_dtype(out)), x.shape, out, form=form)


@lowers(aten.cumsum.default)
def cumsum(ttnn: Any, builder: ProgramBuilder, x: Value, dim: int, *, dtype: torch.dtype | None = None) -> Value:
    return _accumulated(builder, x, dim, dtype, ttnn.cumsum)


@lowers(aten.cumprod.default)
def cumprod(ttnn: Any, builder: ProgramBuilder, x: Value, dim: int, *, dtype: torch.dtype | None = None) -> Value:
    if not (dtype or x.dtype).is_floating_point:
        refuse("products of integers soon exceed 32 bits")
    return _accumulated(builder, x, dim, dtype, ttnn.cumprod)


# -- host fallbacks ----------------------------------------------------------------------------------------------

HOST_REASONS = {
    "how many results there are depends on values": (
        aten.nonzero.default,
        aten.masked_select.default,
        aten._unique2.default,
        aten.unique_consecutive.default,
    ),
    "random numbers are drawn by the host, so that its seeds hold": (aten.multinomial.default,),
    "the device has no such search": (
        aten.median.default,
        aten.median.dim,
        aten.nanmedian.default,
        aten.nanmedian.dim,
        aten.kthvalue.default,
        aten.mode.default,
        aten.bincount.default,
        aten.histc.default,
        aten.searchsorted.Tensor,
        aten.bucketize.Tensor,
    ),
    "the device has no running maximum": (aten.cummax.default, aten.cummin.default),
    "early terms would be lost next to the largest": (aten.logcumsumexp.default,),
}


def _stays(reason: str) -> Callable[..., Any]:
    def lowering(ttnn: Any, *args: Any, **kwargs: Any) -> Any:
        return refuse(reason)

    return lowering


for _reason, _overloads in HOST_REASONS.items():
    lowers(*_overloads)(_stays(_reason))
