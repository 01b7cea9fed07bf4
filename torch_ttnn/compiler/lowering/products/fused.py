"""Lowerings of fusion composites: products with activations, split heads, rotary embedding, masked softmax."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from torch_ttnn.compiler.errors import StaysOnHost
from torch_ttnn.compiler.fusion import composites
from torch_ttnn.compiler.ir.builder import ProgramBuilder
from torch_ttnn.compiler.ir.value import Handle, Value
from torch_ttnn.compiler.lowering.convolutions import forward as convolutions
from torch_ttnn.compiler.lowering.products import matmul as products
from torch_ttnn.compiler.lowering.registry import lowers, pointwise
from ttnn_emulator import TILE_SIZE, DataType

aten = torch.ops.aten

BFLOAT16, FLOAT32 = DataType.BFLOAT16, DataType.FLOAT32


@lowers(composites.linear)
def linear(ttnn: Any, builder: ProgramBuilder, x: Value, weight: Value, bias: Value | None, activation: str) -> Handle:
    return products.product(ttnn, builder, x, weight, bias, activation)


@lowers(composites.convolution, when=convolutions.no_convolution)
def convolution(
    ttnn: Any, builder: ProgramBuilder, x: Value, weight: Value, bias: Value | None, *settings: Any
) -> Value:
    *rest, activation = settings
    return convolutions.convolution(ttnn, builder, x, weight, bias, *rest, activation=activation)


@pointwise(composites.quick_gelu)
def quick_gelu(ttnn: Any, x: Handle) -> Handle:
    return ttnn.multiply(x, ttnn.sigmoid(ttnn.multiply(x, 1.702)))


# -- heads ------------------------------------------------------------------------------------------------------------


@lowers(composites.qkv_heads)
def qkv_heads(ttnn: Any, builder: ProgramBuilder, x: Value, heads: int, kv_heads: int) -> tuple[Any, Any, Any]:
    split = ttnn.transformer.split_query_key_value_and_split_heads
    try:
        q, k, v = split(x, num_heads=heads, num_kv_heads=kv_heads, transpose_key=False)
    except StaysOnHost:
        return _sliced_heads(ttnn, builder, x, heads, kv_heads)
    return q, k, v


def _sliced_heads(
    ttnn: Any, builder: ProgramBuilder, x: Value, heads: int, kv_heads: int
) -> tuple[Value, Value, Value]:
    """For heads that the library's operation does not support: three slices, each viewed as heads."""
    batch, length, total = x.shape
    width = total // (heads + 2 * kv_heads)
    handle, start, result = x.tile(), 0, []
    for count in (heads, kv_heads, kv_heads):
        end = start + count * width
        piece = ttnn.slice(handle, [0, 0, start], [batch, length, end], [1, 1, 1])
        seen = builder.value(piece, (batch, length, count * width), x.dtype).view((batch, length, count, width))
        result.append(seen.permute((0, 2, 1, 3)))
        start = end
    return result[0], result[1], result[2]


# -- softmax ----------------------------------------------------------------------------------------------------------


@lowers(composites.scale_mask_softmax)
def scale_mask_softmax(ttnn: Any, builder: ProgramBuilder, x: Value, scale: float, mask: Value | None) -> Handle:
    options = {"numeric_stable": True, "compute_kernel_config": builder.accurate}
    if mask is None or _is_row_for_each_batch(mask, x.shape):
        try:
            return ttnn.scale_mask_softmax(x, scale, mask, **options)
        except StaysOnHost:
            pass
    scores = ttnn.multiply(x, scale)
    if mask is not None:
        scores = ttnn.add(scores, builder.cast(mask.tile(), scores.dtype))
    return ttnn.softmax(scores, dim=-1, **options)


def _is_row_for_each_batch(mask: Value, shape: Sequence[int]) -> bool:
    """The library's kernel reads one row of a mask for all heads and queries of a batch."""
    return len(shape) == 4 and mask.shape == (shape[0], 1, 1, shape[3])


# -- rotary embedding -------------------------------------------------------------------------------------------------


@lowers(composites.rotary_embedding)
def rotary_embedding(
    ttnn: Any, builder: ProgramBuilder, x: Value, cos: Value, sin: Value, interleaved: bool, width: int
) -> Any:
    cos, sin = cos.with_rank(x.ndim), sin.with_rank(x.ndim)
    if x.ndim == 4 and cos.shape[2] == sin.shape[2] == 1 and x.shape[2] > 1:
        # [B, S, H, D]: move positions next to the width, as attention needs them and as fills tiles.
        swapped = [each.permute((0, 2, 1, 3)) for each in (x, cos, sin)]
        result = rotary_embedding(ttnn, builder, *swapped, interleaved, width)
        return builder.value(result, swapped[0].shape, x.dtype).permute((0, 2, 1, 3))
    if not interleaved and _is_whole(ttnn, x, cos, sin, width):
        handle = ttnn.experimental.rotary_embedding(x.tile(), cos.tile(BFLOAT16), sin.tile(BFLOAT16))
        if handle.shape == x.shape:
            return handle
        return ttnn.slice(handle, [0] * x.ndim, list(x.shape), [1] * x.ndim)
    missing = x.shape[-1] - width
    cosines, sines = [_widened(ttnn, each, missing, fill) for each, fill in ((cos, 1.0), (sin, 0.0))]
    rotated = _rotated(ttnn, builder, x, builder.static(rotation_matrix(x.shape[-1], width, interleaved)))
    return ttnn.add(ttnn.multiply(x, cosines), ttnn.multiply(rotated, sines))


def _is_whole(ttnn: Any, x: Value, cos: Value, sin: Value, width: int) -> bool:
    """Whether the library's kernel applies: whole heads in bfloat16, one table of positions for all of them."""
    table = (1, 1, *x.shape[-2:])
    fits = x.ndim == 4 and cos.shape == sin.shape == table and width == x.shape[-1]
    return fits and (width == TILE_SIZE or width % (2 * TILE_SIZE) == 0) and x.device_dtype is BFLOAT16


def _widened(ttnn: Any, x: Value, missing: int, fill: float) -> Any:
    if not missing:
        return x
    if x.is_static:
        return x.prepared(torch.constant_pad_nd, [0, missing], fill)
    return ttnn.pad(x.tile(), [(0, 0)] * (x.ndim - 1) + [(0, missing)], fill)


def rotation_matrix(size: int, width: int, interleaved: bool) -> torch.Tensor:
    """x @ matrix maps each pair (a, b) within the width to (-b, a), and yields 0 beyond it."""
    matrix = torch.zeros(size, size)
    half = width // 2
    first = torch.arange(0, width, 2) if interleaved else torch.arange(half)
    second = first + 1 if interleaved else first + half
    matrix[second, first] = -1
    matrix[first, second] = 1
    return matrix


def _rotated(ttnn: Any, builder: ProgramBuilder, x: Value, matrix: Value) -> Handle:
    """Exact in bfloat16, as every sum has one term; a float32 operand is multiplied in three bfloat16 parts."""
    handle = x.tile()
    if handle.dtype is not FLOAT32:
        return ttnn.matmul(handle, matrix.tile(handle.dtype), compute_kernel_config=builder.accurate)
    total = None
    for _ in range(3):
        part = builder.cast(handle, BFLOAT16)
        handle = ttnn.subtract(handle, builder.cast(part, FLOAT32))
        term = ttnn.matmul(part, matrix.tile(BFLOAT16), dtype=FLOAT32, compute_kernel_config=builder.accurate)
        total = term if total is None else ttnn.add(total, term)
    assert total is not None
    return total
