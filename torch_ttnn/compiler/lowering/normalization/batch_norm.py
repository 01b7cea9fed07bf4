"""Batch norms: a scale and shift per channel with running statistics; batch statistics in training."""

from __future__ import annotations

import math
from typing import Any

import torch

from torch_ttnn.compiler.ir.builder import ProgramBuilder
from torch_ttnn.compiler.ir.value import TILE, Handle, Value
from torch_ttnn.compiler.lowering.registry import lowers
from torch_ttnn.compiler.lowering.support import image_layout
from ttnn_emulator import DataType

aten = torch.ops.aten

FLOAT32 = DataType.FLOAT32


# -- with running statistics -----------------------------------------------------------------------------------------


@lowers(aten._native_batch_norm_legit_no_training.default)
def batch_norm_no_training(
    ttnn: Any,
    builder: ProgramBuilder,
    x: Value,
    weight: Value | None,
    bias: Value | None,
    running_mean: Value,
    running_var: Value,
    momentum: float,
    eps: float,
) -> tuple[Any, ...]:
    return inference(ttnn, builder, x, weight, bias, running_mean, running_var, eps), None, None


def inference(
    ttnn: Any,
    builder: ProgramBuilder,
    x: Value,
    weight: Value | None,
    bias: Value | None,
    mean: Value,
    variance: Value,
    eps: float,
) -> Value:
    """x × scale + shift, with one of each per channel."""
    parameters = [each for each in (weight, bias, mean, variance) if each is not None]
    if all(each.is_static for each in parameters):
        scale, shift = prepared_scale(weight, bias, mean, variance, eps)
    else:
        scale, shift = device_scale(ttnn, builder, weight, bias, mean, variance, eps)
    return scaled(ttnn, builder, x, scale, shift)


def prepared_scale(
    weight: Value | None, bias: Value | None, mean: Value, variance: Value, eps: float
) -> tuple[Value, Value]:
    """Scale and shift, prepared once, in float32."""
    scale = variance.prepared(torch.add, eps).prepared(torch.rsqrt)
    if weight is not None:
        scale = scale.prepared(torch.mul, weight)
    shift = mean.prepared(torch.mul, scale).prepared(torch.neg)
    return scale, shift.prepared(torch.add, bias) if bias is not None else shift


def device_scale(
    ttnn: Any,
    builder: ProgramBuilder,
    weight: Value | None,
    bias: Value | None,
    mean: Value,
    variance: Value,
    eps: float,
) -> tuple[Value, Value]:
    """Scale and shift, computed on every call, also in float32."""
    scale = ttnn.rsqrt(ttnn.add(row(variance), eps))
    if weight is not None:
        scale = ttnn.multiply(scale, row(weight))
    shift = ttnn.neg(ttnn.multiply(row(mean), scale))
    if bias is not None:
        shift = ttnn.add(shift, row(bias))
    return vector(builder, scale), vector(builder, shift)


def row(per_channel: Value) -> Handle:
    """[C] as float32 tiles, [1, C]."""
    return per_channel.view((1, per_channel.numel)).tile(FLOAT32)


def vector(builder: ProgramBuilder, handle: Handle) -> Value:
    """One number per channel, with torch's shape [C]."""
    channels = math.prod(handle.shape)
    return builder.value(handle, (channels,), torch.float32)


def scaled(ttnn: Any, builder: ProgramBuilder, x: Value, scale: Value, shift: Value) -> Value:
    """x × scale + shift in one operation, in the storage order of x."""
    dtype = builder.device_dtype(x.dtype)
    factors = [image_layout.per_channel(each, x.ndim) for each in (scale, shift)]
    (source, scale_here, shift_here), form = builder.aligned([x, *factors], x.shape)
    source, scale_here, shift_here = (builder.cast(each, dtype) for each in (source, scale_here, shift_here))
    result = ttnn.addcmul(shift_here, source, scale_here, value=1.0)
    return builder.value(result, x.shape, x.dtype, form=form)


# -- with batch statistics -------------------------------------------------------------------------------------------


@lowers(aten._native_batch_norm_legit_functional.default)
def batch_norm_functional(
    ttnn: Any,
    builder: ProgramBuilder,
    x: Value,
    weight: Value | None,
    bias: Value | None,
    running_mean: Value,
    running_var: Value,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[Any, ...]:
    if not training:
        result = inference(ttnn, builder, x, weight, bias, running_mean, running_var, eps)
        return result, None, None, running_mean, running_var
    result, mean, rstd, variance = training_norm(ttnn, builder, x, weight, bias, eps)
    count = x.numel // x.shape[1]
    spread = ttnn.multiply(variance, count / (count - 1)) if count > 1 else variance
    moved_mean = moved(ttnn, builder, running_mean, mean, momentum)
    moved_var = moved(ttnn, builder, running_var, spread, momentum)
    return result, vector(builder, mean), vector(builder, rstd), moved_mean, moved_var


@lowers(aten._native_batch_norm_legit.no_stats)
def batch_norm_no_stats(
    ttnn: Any,
    builder: ProgramBuilder,
    x: Value,
    weight: Value | None,
    bias: Value | None,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[Any, ...]:
    result, mean, rstd, _ = training_norm(ttnn, builder, x, weight, bias, eps)
    return result, vector(builder, mean), vector(builder, rstd)


def training_norm(
    ttnn: Any, builder: ProgramBuilder, x: Value, weight: Value | None, bias: Value | None, eps: float
) -> tuple[Value, Handle, Handle, Handle]:
    """The norm with batch statistics; also mean, 1 ÷ standard deviation and variance, [1, C] in float32."""
    batch, channels, *sizes = x.shape
    dtype = builder.device_dtype(x.dtype)
    pixels = builder.reshaped(image_layout.stored(ttnn, builder, x, TILE), (x.numel // channels, channels))
    mean = column_mean(ttnn, builder, builder.cast(pixels, FLOAT32))
    centred = ttnn.subtract(builder.cast(pixels, FLOAT32), mean)
    variance = column_mean(ttnn, builder, ttnn.multiply(centred, centred))
    rstd = ttnn.rsqrt(ttnn.add(variance, eps))
    scale = rstd if weight is None else ttnn.multiply(rstd, row(weight))
    result = ttnn.multiply(centred, scale)
    if bias is not None:
        result = ttnn.add(result, row(bias))
    result = builder.reshaped(builder.cast(result, dtype), (1, 1, x.numel // channels, channels))
    return image_layout.value(builder, result, batch, sizes, x.dtype), mean, rstd, variance


def column_mean(ttnn: Any, builder: ProgramBuilder, rows: Handle) -> Handle:
    """[n, C] → [1, C]."""
    return ttnn.mean(rows, dim=0, keepdim=True, compute_kernel_config=builder.accurate)


def moved(ttnn: Any, builder: ProgramBuilder, running: Value, batch: Handle, momentum: float) -> Value:
    """A running statistic, updated with that of the batch."""
    kept = ttnn.multiply(row(running), 1 - momentum)
    return vector(builder, ttnn.add(kept, ttnn.multiply(batch, momentum)))
