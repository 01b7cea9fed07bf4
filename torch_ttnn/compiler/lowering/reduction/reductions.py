"""Reductions in storage order: sums, means, extremes, variances and norms."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch

from torch_ttnn.compiler.errors import refuse
from torch_ttnn.compiler.ir.builder import ProgramBuilder
from torch_ttnn.compiler.ir.storage_order import Form, Shape
from torch_ttnn.compiler.ir.value import Handle, Value
from torch_ttnn.compiler.lowering.registry import lowers
from ttnn_emulator import DataType

aten = torch.ops.aten

Dims = int | Sequence[int] | None
FLOAT32, INT32 = DataType.FLOAT32, DataType.INT32


# -- the dimensions -----------------------------------------------------------------------------------------------


def dims_of(dim: Dims, rank: int) -> list[int]:
    """The dimensions to reduce, non-negative; none given means all."""
    if dim is None or (not isinstance(dim, int) and not dim):
        return list(range(rank))
    dims = [dim] if isinstance(dim, int) else list(dim)
    return sorted({each % rank for each in dims}) if rank else []


def in_storage(builder: ProgramBuilder, x: Value, dtype: DataType | None = None) -> tuple[Handle, Form]:
    """Tiles in storage order, with one dimension for each of torch's."""
    if x.is_static:
        return x.tile(dtype), Form.plain(x.shape)
    handle, form = x.stored()
    handle = builder.tiled(builder.reshaped(handle, form.stored_shape))
    return (handle if dtype is None else builder.cast(handle, dtype)), form


class Reduction:
    """A value to reduce: its tiles in storage order, and the stored dimensions to reduce.

    Dimensions merged in storage (a convolution's N × H × W) are reduced without being split where possible.
    """

    def __init__(self, ttnn: Any, builder: ProgramBuilder, x: Value, dim: Dims, dtype: DataType | None = None) -> None:
        self.builder = builder
        self.x = x
        self.dims = dims_of(dim, x.ndim)
        self.count = math.prod([x.shape[each] for each in self.dims])
        handle, self.form = (x.tile(), Form.plain(x.shape)) if x.is_static else x.stored()
        axes = {self.form.axes[each] for each in self.dims}
        positions = _places(self.form.stored_shape, axes, handle.shape)
        if positions is None:
            grouped, positions = _grouped(self.form.stored_shape, axes)
            handle = builder.reshaped(handle, grouped)
        handle = builder.tiled(handle)
        self.handle: Handle = handle if dtype is None else builder.cast(handle, dtype)
        self.positions = positions

    def over(self, operation: Callable[..., Handle], handle: Handle | None = None, **options: Any) -> Handle:
        """Apply a library reduction to the prepared tiles, or to a tensor of their shape; reduced sizes become 1."""
        handle = self.handle if handle is None else handle
        if not self.positions:
            return handle
        options = {"compute_kernel_config": self.builder.accurate, **options}
        return operation(handle, dim=self.positions, keepdim=True, **options)

    def result(self, handle: Handle, keepdim: bool, dtype: torch.dtype) -> Value:
        """The result as a value with torch's shape."""
        axes = {self.form.axes[dim] for dim in self.dims}
        if keepdim:
            stored_shape = [1 if axis in axes else size for axis, size in enumerate(self.form.stored_shape)]
            form = Form(tuple(stored_shape), self.form.axes)
        else:
            kept = [axis for axis in range(len(self.form.stored_shape)) if axis not in axes]
            left = [self.form.axes[dim] for dim in range(self.x.ndim) if dim not in self.dims]
            sizes = [self.form.stored_shape[axis] for axis in kept]
            form = Form(tuple(sizes), tuple([kept.index(axis) for axis in left]))
        return self.builder.value(handle, form.shape, dtype, form=form)


def _places(stored_shape: Shape, axes: set[int], actual: Shape) -> list[int] | None:
    """The dimensions of `actual` that are exactly these axes of `stored_shape`; None if one is only partly covered."""
    strides = _strides(stored_shape)
    ranges = [(strides[axis], strides[axis] * stored_shape[axis]) for axis in axes if stored_shape[axis] != 1]
    ranges = _joined(sorted(ranges))
    found = []
    for position, (size, stride) in enumerate(zip(actual, _strides(actual))):
        if size == 1:
            continue
        low, high = stride, stride * size
        if any(start <= low and high <= end for start, end in ranges):
            found.append(position)
        elif any(low < end and start < high for start, end in ranges):
            return None
    covered = math.prod([actual[position] for position in found])
    return found if covered == math.prod([stored_shape[axis] for axis in axes]) else None


def _strides(shape: Shape) -> list[int]:
    return [math.prod(shape[position + 1 :]) for position in range(len(shape))]


def _joined(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    joined: list[tuple[int, int]] = []
    for start, end in ranges:
        if joined and joined[-1][1] == start:
            joined[-1] = joined[-1][0], end
        else:
            joined.append((start, end))
    return joined


def _grouped(stored_shape: Shape, axes: set[int]) -> tuple[Shape, list[int]]:
    """The shape with adjacent dimensions merged where both or neither are reduced, and the reduced positions."""
    sizes: list[int] = []
    is_reduced: list[bool] = []
    for axis, size in enumerate(stored_shape):
        if size == 1:
            continue
        if is_reduced and is_reduced[-1] == (axis in axes):
            sizes[-1] *= size
        else:
            sizes.append(size)
            is_reduced.append(axis in axes)
    return tuple(sizes), [position for position, each in enumerate(is_reduced) if each]


# -- sums and means -----------------------------------------------------------------------------------------------


def _summed(ttnn: Any, builder: ProgramBuilder, x: Value, dim: Dims, keepdim: bool, dtype: torch.dtype | None) -> Value:
    out = dtype or (x.dtype if x.is_float else torch.int64)
    if not out.is_floating_point and x.is_float:
        refuse("a sum of floats as integers")
    reduction = Reduction(ttnn, builder, x, dim, _summing_dtype(builder, x, out))
    return reduction.result(reduction.over(ttnn.sum), keepdim, out)


def _summing_dtype(builder: ProgramBuilder, x: Value, out: torch.dtype) -> DataType | None:
    """Integers and booleans are summed in 32 bits; floats keep their dtype, unless a wider result is requested."""
    if not x.is_float:
        return FLOAT32 if out.is_floating_point else INT32
    return None if out is x.dtype or x.device_dtype is FLOAT32 else builder.device_dtype(out)


@lowers(aten.sum.default)
def sum_all(ttnn: Any, builder: ProgramBuilder, x: Value, *, dtype: torch.dtype | None = None) -> Value:
    return _summed(ttnn, builder, x, None, False, dtype)


@lowers(aten.sum.dim_IntList)
def sum_dims(
    ttnn: Any, builder: ProgramBuilder, x: Value, dim: Dims, keepdim: bool = False, *, dtype: torch.dtype | None = None
) -> Value:
    return _summed(ttnn, builder, x, dim, keepdim, dtype)


@lowers(aten._trilinear.default)
def trilinear(
    ttnn: Any,
    builder: ProgramBuilder,
    x: Value,
    y: Value,
    z: Value,
    expand1: Sequence[int],
    expand2: Sequence[int],
    expand3: Sequence[int],
    sumdim: Sequence[int],
    unroll_dim: int = 1,
) -> Value:
    """The sum of products of three operands, each unsqueezed first."""
    result = None
    for factor, positions in zip((x, y, z), (expand1, expand2, expand3)):
        shape = list(factor.shape)
        for position in sorted(positions):
            shape.insert(position, 1)
        handle = factor.view(shape).tile()
        result = handle if result is None else ttnn.multiply(result, handle)
    assert result is not None
    return _summed(ttnn, builder, builder.value(result, result.shape, x.dtype), list(sumdim), False, None)


@lowers(aten.mean.default)
def mean_all(ttnn: Any, builder: ProgramBuilder, x: Value, *, dtype: torch.dtype | None = None) -> Value:
    return mean(ttnn, builder, x, None, dtype=dtype)


@lowers(aten.mean.dim)
def mean(
    ttnn: Any, builder: ProgramBuilder, x: Value, dim: Dims, keepdim: bool = False, *, dtype: torch.dtype | None = None
) -> Value:
    out = dtype or x.dtype
    reduction = Reduction(ttnn, builder, x, dim, _summing_dtype(builder, x, out))
    return reduction.result(reduction.over(ttnn.mean), keepdim, out)


@lowers(aten.count_nonzero.default)
def count_nonzero(ttnn: Any, builder: ProgramBuilder, x: Value, dim: int | None = None) -> Value:
    return _nonzero_count(ttnn, builder, x, dim)


@lowers(aten.count_nonzero.dim_IntList)
def count_nonzero_dims(ttnn: Any, builder: ProgramBuilder, x: Value, dim: Sequence[int]) -> Value:
    return _nonzero_count(ttnn, builder, x, dim)


def _nonzero_count(ttnn: Any, builder: ProgramBuilder, x: Value, dim: Dims) -> Value:
    reduction = Reduction(ttnn, builder, x, dim)
    truth = builder.cast(_truth(ttnn, x, reduction.handle), INT32)
    return reduction.result(reduction.over(ttnn.sum, truth), False, torch.int64)


# -- extremes, any, all -------------------------------------------------------------------------------------------


def extreme(
    ttnn: Any, builder: ProgramBuilder, x: Value, dim: Dims, keepdim: bool, operation: Callable[..., Handle]
) -> Value:
    """The largest or the smallest over dimensions: `operation` is `ttnn.max` or `ttnn.min`."""
    reduction = Reduction(ttnn, builder, x, dim)
    return reduction.result(reduction.over(operation), keepdim, x.dtype)


@lowers(aten.amax.default)
def amax(ttnn: Any, builder: ProgramBuilder, x: Value, dim: Dims = (), keepdim: bool = False) -> Value:
    return extreme(ttnn, builder, x, dim, keepdim, ttnn.max)


@lowers(aten.amin.default)
def amin(ttnn: Any, builder: ProgramBuilder, x: Value, dim: Dims = (), keepdim: bool = False) -> Value:
    return extreme(ttnn, builder, x, dim, keepdim, ttnn.min)


@lowers(aten.max.default)
def max_all(ttnn: Any, builder: ProgramBuilder, x: Value) -> Value:
    return extreme(ttnn, builder, x, None, False, ttnn.max)


@lowers(aten.min.default)
def min_all(ttnn: Any, builder: ProgramBuilder, x: Value) -> Value:
    return extreme(ttnn, builder, x, None, False, ttnn.min)


def _truth(ttnn: Any, x: Value, handle: Handle) -> Handle:
    return handle if x.is_bool else ttnn.ne(handle, 0)


def _truths(
    ttnn: Any, builder: ProgramBuilder, x: Value, dim: Dims, keepdim: bool, operation: Callable[..., Handle]
) -> Value:
    if x.dtype is torch.uint8:
        refuse("any and all of uint8 give uint8")
    reduction = Reduction(ttnn, builder, x, dim)
    return reduction.result(reduction.over(operation, _truth(ttnn, x, reduction.handle)), keepdim, torch.bool)


@lowers(aten.any.default)
def any_all(ttnn: Any, builder: ProgramBuilder, x: Value) -> Value:
    return _truths(ttnn, builder, x, None, False, ttnn.max)


@lowers(aten.any.dim, aten.any.dims)
def any_dims(ttnn: Any, builder: ProgramBuilder, x: Value, dim: Dims = None, keepdim: bool = False) -> Value:
    return _truths(ttnn, builder, x, dim, keepdim, ttnn.max)


@lowers(aten.all.default)
def all_all(ttnn: Any, builder: ProgramBuilder, x: Value) -> Value:
    return _truths(ttnn, builder, x, None, False, ttnn.min)


@lowers(aten.all.dim, aten.all.dims)
def all_dims(ttnn: Any, builder: ProgramBuilder, x: Value, dim: Dims = None, keepdim: bool = False) -> Value:
    return _truths(ttnn, builder, x, dim, keepdim, ttnn.min)


# -- products -----------------------------------------------------------------------------------------------------


def _product(
    ttnn: Any, builder: ProgramBuilder, x: Value, dim: Dims, keepdim: bool, dtype: torch.dtype | None
) -> Value:
    out = dtype or x.dtype
    if not x.is_float or not out.is_floating_point:
        refuse("products of integers soon exceed 32 bits")
    reduction = Reduction(ttnn, builder, x, dim, FLOAT32)
    handle = reduction.handle
    for position in reduction.positions:
        handle = ttnn.prod(handle, dim=position, keepdim=True)
    return reduction.result(builder.cast(handle, builder.device_dtype(out)), keepdim, out)


@lowers(aten.prod.default)
def prod_all(ttnn: Any, builder: ProgramBuilder, x: Value, *, dtype: torch.dtype | None = None) -> Value:
    return _product(ttnn, builder, x, None, False, dtype)


@lowers(aten.prod.dim_int)
def prod(
    ttnn: Any, builder: ProgramBuilder, x: Value, dim: int, keepdim: bool = False, *, dtype: torch.dtype | None = None
) -> Value:
    return _product(ttnn, builder, x, dim, keepdim, dtype)


# -- variances: in float32, as differences from a rounded mean would be lost --------------------------------------


def _variance(
    ttnn: Any, builder: ProgramBuilder, x: Value, dim: Dims, correction: float | None
) -> tuple[Reduction, Handle, Handle]:
    """The reduction, the mean and the variance."""
    reduction = Reduction(ttnn, builder, x, dim, FLOAT32)
    freedom = reduction.count - (1 if correction is None else correction)
    if freedom <= 0:
        refuse(f"a variance of {reduction.count} values with correction {correction} is not a number")
    mean = reduction.over(ttnn.mean)
    centred = ttnn.subtract(reduction.handle, mean)
    total = reduction.over(ttnn.sum, ttnn.multiply(centred, centred))
    return reduction, mean, ttnn.multiply(total, 1 / freedom)


def _rounded(builder: ProgramBuilder, reduction: Reduction, handle: Handle, keepdim: bool) -> Value:
    return reduction.result(builder.cast(handle, builder.device_dtype(reduction.x.dtype)), keepdim, reduction.x.dtype)


@lowers(aten.var.correction)
def var(
    ttnn: Any,
    builder: ProgramBuilder,
    x: Value,
    dim: Dims = None,
    *,
    correction: float | None = None,
    keepdim: bool = False,
) -> Value:
    reduction, _, variance = _variance(ttnn, builder, x, dim, correction)
    return _rounded(builder, reduction, variance, keepdim)


@lowers(aten.std.correction)
def std(
    ttnn: Any,
    builder: ProgramBuilder,
    x: Value,
    dim: Dims = None,
    *,
    correction: float | None = None,
    keepdim: bool = False,
) -> Value:
    reduction, _, variance = _variance(ttnn, builder, x, dim, correction)
    return _rounded(builder, reduction, ttnn.sqrt(variance), keepdim)


@lowers(aten.var_mean.correction)
def var_mean(
    ttnn: Any,
    builder: ProgramBuilder,
    x: Value,
    dim: Dims = None,
    *,
    correction: float | None = None,
    keepdim: bool = False,
) -> tuple[Value, Value]:
    reduction, mean, variance = _variance(ttnn, builder, x, dim, correction)
    return _rounded(builder, reduction, variance, keepdim), _rounded(builder, reduction, mean, keepdim)


# -- norms and log-sums -------------------------------------------------------------------------------------------


@lowers(aten.logsumexp.default)
def logsumexp(ttnn: Any, builder: ProgramBuilder, x: Value, dim: Dims, keepdim: bool = False) -> Value:
    if not x.is_float:
        refuse("logsumexp of integers")
    reduction = Reduction(ttnn, builder, x, dim, FLOAT32)
    return _rounded(builder, reduction, log_sum(ttnn, reduction), keepdim)


def log_sum(ttnn: Any, reduction: Reduction) -> Handle:
    """log Σ exp x; the maximum is subtracted first, unless it is infinite."""
    largest = reduction.over(ttnn.max)
    shift = ttnn.where(ttnn.isinf(largest), 0.0, largest)
    total = reduction.over(ttnn.sum, ttnn.exp(ttnn.subtract(reduction.handle, shift)))
    return ttnn.add(ttnn.log(total), shift)


def _norm(
    ttnn: Any, builder: ProgramBuilder, x: Value, order: float, dim: Dims, keepdim: bool, dtype: torch.dtype | None
) -> Value:
    out = dtype or x.dtype
    reduction = Reduction(ttnn, builder, x, dim, FLOAT32)
    return reduction.result(
        builder.cast(_norm_of(ttnn, reduction, float(order)), builder.device_dtype(out)), keepdim, out
    )


def _norm_of(ttnn: Any, reduction: Reduction, order: float) -> Handle:
    handle = reduction.handle
    if order == 2:
        return ttnn.sqrt(reduction.over(ttnn.sum, ttnn.multiply(handle, handle)))
    if order == 0:
        return reduction.over(ttnn.sum, ttnn.ne(handle, 0.0))
    size = ttnn.abs(handle)
    if math.isinf(order):
        return reduction.over(ttnn.max if order > 0 else ttnn.min, size)
    if order == 1:
        return reduction.over(ttnn.sum, size)
    if order < 0:
        refuse(f"a norm of order {order}")
    return ttnn.pow(reduction.over(ttnn.sum, ttnn.pow(size, order)), 1 / order)


@lowers(aten.linalg_vector_norm.default)
def vector_norm(
    ttnn: Any,
    builder: ProgramBuilder,
    x: Value,
    ord: float = 2,
    dim: Dims = None,
    keepdim: bool = False,
    *,
    dtype: torch.dtype | None = None,
) -> Value:
    return _norm(ttnn, builder, x, ord, dim, keepdim, dtype)


@lowers(aten.norm.Scalar)
def norm_all(ttnn: Any, builder: ProgramBuilder, x: Value, p: float = 2) -> Value:
    return _norm(ttnn, builder, x, p, None, False, None)


@lowers(aten.norm.ScalarOpt_dim)
def norm(ttnn: Any, builder: ProgramBuilder, x: Value, p: float | None, dim: Dims, keepdim: bool = False) -> Value:
    return _norm(ttnn, builder, x, 2 if p is None else p, dim, keepdim, None)
