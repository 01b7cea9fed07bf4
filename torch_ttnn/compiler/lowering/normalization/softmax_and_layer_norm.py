"""Softmax, layer norm and RMS norm, and their gradients."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

from torch_ttnn.compiler.ir.builder import ProgramBuilder
from torch_ttnn.compiler.ir.value import Handle, Value
from torch_ttnn.compiler.lowering.reduction.reductions import in_storage
from torch_ttnn.compiler.lowering.registry import lowers
from torch_ttnn.compiler.lowering.support.norm_summands import summands
from torch_ttnn.compiler.lowering.support.softmax_gradient import softmax_gradient
from ttnn_emulator import DataType

aten = torch.ops.aten

FLOAT32 = DataType.FLOAT32


# -- softmax ------------------------------------------------------------------------------------------------------


def _normalised(ttnn: Any, builder: ProgramBuilder, handle: Handle, axis: int) -> Handle:
    return ttnn.softmax(handle, dim=axis, numeric_stable=True, compute_kernel_config=builder.accurate)


@lowers(aten._softmax.default)
def softmax(ttnn: Any, builder: ProgramBuilder, x: Value, dim: int, half_to_float: bool) -> Value:
    handle, form = in_storage(builder, x)
    result = _normalised(ttnn, builder, handle, form.axes[dim] if x.ndim else 0)
    return builder.value(result, x.shape, x.dtype, form=form)


@lowers(aten._safe_softmax.default)
def safe_softmax(ttnn: Any, builder: ProgramBuilder, x: Value, dim: int, dtype: torch.dtype | None = None) -> Value:
    """A softmax that returns 0 instead of NaN where all inputs are -inf."""
    handle, form = in_storage(builder, x, FLOAT32 if dtype is torch.float32 and x.device_dtype is FLOAT32 else None)
    return builder.value(
        softmax_of_visible(ttnn, builder, handle, form.axes[dim] if x.ndim else 0), x.shape, x.dtype, form=form
    )


def softmax_of_visible(ttnn: Any, builder: ProgramBuilder, handle: Handle, axis: int) -> Handle:
    result = _normalised(ttnn, builder, handle, axis)
    largest = (
        ttnn.max(handle, dim=axis, keepdim=True, compute_kernel_config=builder.accurate) if handle.shape else handle
    )
    return ttnn.where(ttnn.eq(largest, -math.inf), 0.0, result)


@lowers(aten._log_softmax.default)
def log_softmax(ttnn: Any, builder: ProgramBuilder, x: Value, dim: int, half_to_float: bool) -> Value:
    """In float32: the result is a difference of large numbers."""
    handle, form = in_storage(builder, x, FLOAT32)
    axis = form.axes[dim] if x.ndim else 0
    if not x.ndim:
        return builder.value(ttnn.multiply(handle, 0.0), x.shape, x.dtype)
    options = {"dim": axis, "keepdim": True, "compute_kernel_config": builder.accurate}
    largest = ttnn.max(handle, **options)
    powers = ttnn.subtract(handle, largest, activations=[ttnn.UnaryWithParam(ttnn.UnaryOpType.EXP)])
    logarithm = [ttnn.UnaryWithParam(ttnn.UnaryOpType.LOG)]
    total = ttnn.add(largest, ttnn.sum(powers, **options), input_tensor_b_activations=logarithm)
    result = ttnn.subtract(handle, total)
    return builder.value(builder.cast(result, x.device_dtype), x.shape, x.dtype, form=form)


@lowers(aten._softmax_backward_data.default)
def softmax_backward(
    ttnn: Any, builder: ProgramBuilder, grad: Value, output: Value, dim: int, input_dtype: torch.dtype
) -> Handle:
    if not grad.ndim:
        return ttnn.multiply(grad, 0.0)
    result = softmax_gradient(ttnn, builder, grad.tile(FLOAT32), output.tile(FLOAT32), dim)
    return builder.cast(result, builder.device_dtype(input_dtype))


@lowers(aten._log_softmax_backward_data.default)
def log_softmax_backward(
    ttnn: Any, builder: ProgramBuilder, grad: Value, output: Value, dim: int, input_dtype: torch.dtype
) -> Handle:
    """g - exp(y) × Σ g."""
    wide = grad.tile(FLOAT32)
    if not grad.ndim:
        return ttnn.multiply(wide, 0.0)
    total = ttnn.sum(wide, dim=dim, keepdim=True, compute_kernel_config=builder.accurate)
    result = ttnn.subtract(wide, ttnn.multiply(ttnn.exp(output.tile(FLOAT32)), total))
    return builder.cast(result, builder.device_dtype(input_dtype))


# -- norms over the last dimensions -------------------------------------------------------------------------------


def _flat(x: Value, shape: Sequence[int]) -> Value:
    """`x` with the normalised dimensions merged into the last."""
    return x if len(shape) == 1 else x.view((*x.shape[: x.ndim - len(shape)], math.prod(shape)))


def _row(x: Value | None) -> Value | None:
    return None if x is None else x.view((1, x.numel))


@lowers(aten.native_layer_norm.default)
def layer_norm(
    ttnn: Any,
    builder: ProgramBuilder,
    x: Value,
    shape: Sequence[int],
    weight: Value | None,
    bias: Value | None,
    eps: float,
) -> tuple[Any, Any, Any]:
    flat = _flat(x, shape)
    result = _normed(builder, ttnn.layer_norm, x, flat, epsilon=eps, weight=_row(weight), bias=_row(bias))
    if not builder.used & {1, 2}:
        return result, None, None
    handle = flat.tile(FLOAT32)
    mean = _mean(ttnn, builder, handle)
    centred = ttnn.subtract(handle, mean)
    variance = _mean(ttnn, builder, ttnn.multiply(centred, centred))
    return result, mean, ttnn.rsqrt(ttnn.add(variance, eps))


def _normed(builder: ProgramBuilder, norm: Any, x: Value, flat: Value, **options: Any) -> Value:
    """A library norm over the last dimension. If only it reads a sum, the norm adds the summands itself."""
    tiles = flat.tile()
    parts = summands(builder.origin.args[0], tiles)
    if parts is not None:
        tiles, options["residual_input_tensor"] = [builder.reshaped(each, tiles.shape) for each in parts]
    return builder.value(norm(tiles, **options, compute_kernel_config=builder.accurate), x.shape, x.dtype)


def _mean(ttnn: Any, builder: ProgramBuilder, handle: Handle) -> Handle:
    return ttnn.mean(handle, dim=-1, keepdim=True, compute_kernel_config=builder.accurate)


@lowers(aten._fused_rms_norm.default)
def rms_norm(
    ttnn: Any, builder: ProgramBuilder, x: Value, shape: Sequence[int], weight: Value | None, eps: float | None
) -> tuple[Any, Any]:
    eps = torch.finfo(x.dtype).eps if eps is None else eps
    flat = _flat(x, shape)
    result = _normed(builder, ttnn.rms_norm, x, flat, epsilon=eps, weight=_row(weight))
    if 1 not in builder.used:
        return result, None
    handle = flat.tile(FLOAT32)
    return result, ttnn.rsqrt(ttnn.add(_mean(ttnn, builder, ttnn.multiply(handle, handle)), eps))


@lowers(aten.native_layer_norm_backward.default)
def layer_norm_backward(
    ttnn: Any,
    builder: ProgramBuilder,
    grad: Value,
    x: Value,
    shape: Sequence[int],
    mean: Value,
    rstd: Value,
    weight: Value | None,
    bias: Value | None,
    output_mask: Sequence[bool],
) -> tuple[Any, Any, Any]:
    """All in float32: rstd × (h - mean(h) - y × mean(h × y)) with h = g × weight, and sums over the rows."""
    rows, width = x.numel // math.prod(shape), math.prod(shape)

    def as_rows(value: Value, columns: int) -> Handle:
        return value.view((value.numel // columns, columns)).tile(FLOAT32)

    gradients, scale = as_rows(grad, width), as_rows(rstd, 1)
    normal = ttnn.multiply(ttnn.subtract(as_rows(x, width), as_rows(mean, 1)), scale)
    results: list[Any] = [None, None, None]
    if output_mask[0]:
        h = gradients if weight is None else ttnn.multiply(gradients, as_rows(weight, width))
        along = _mean(ttnn, builder, ttnn.multiply(h, normal))
        difference = ttnn.subtract(ttnn.subtract(h, _mean(ttnn, builder, h)), ttnn.multiply(normal, along))
        results[0] = _cast_to(builder, ttnn.multiply(difference, scale), x, (rows, width))
    if output_mask[1] and weight is not None:
        results[1] = _cast_to(builder, _total(ttnn, builder, ttnn.multiply(gradients, normal)), weight, (1, width))
    if output_mask[2] and bias is not None:
        results[2] = _cast_to(builder, _total(ttnn, builder, gradients), bias, (1, width))
    return results[0], results[1], results[2]


def _total(ttnn: Any, builder: ProgramBuilder, handle: Handle) -> Handle:
    return ttnn.sum(handle, dim=0, keepdim=True, compute_kernel_config=builder.accurate)


def _cast_to(builder: ProgramBuilder, handle: Handle, like: Value, shape: tuple[int, int]) -> Value:
    """Cast to the type of a gradient of `like`."""
    result = builder.value(builder.cast(handle, builder.device_dtype(like.dtype)), shape, like.dtype)
    return result.view(like.shape)
