"""Embedding lookup, and the gradient of its table."""

from __future__ import annotations

from typing import Any

import torch
import torch.fx

from torch_ttnn.compiler.errors import refuse
from torch_ttnn.compiler.ir.builder import ProgramBuilder
from torch_ttnn.compiler.ir.value import TILE, Handle, Value
from torch_ttnn.compiler.lowering.data_movement.gather import across, constant_positions
from torch_ttnn.compiler.lowering.data_movement.scatter import scattered
from torch_ttnn.compiler.lowering.registry import lowers
from ttnn_emulator import DataType

aten = torch.ops.aten


@lowers(aten.embedding.default)
def embedding(
    ttnn: Any,
    builder: ProgramBuilder,
    weight: Value,
    indices: Value,
    padding_idx: int = -1,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Value:
    constant_positions(indices, weight.shape[0])
    shape, width = indices.shape, weight.shape[1]
    if weight.device_dtype is DataType.FLOAT32:
        flat = indices.view((indices.numel,))
        wide = across(ttnn, builder, flat, width).tile(DataType.INT32)
        rows = ttnn.gather(weight.tile(), 0, builder.cast(wide, DataType.UINT32))
    else:
        rows = ttnn.embedding(_tokens(ttnn, builder, indices), weight.row_major(), layout=TILE)
    return builder.value(rows, (indices.numel, width), weight.dtype).view((*shape, width))


def _tokens(ttnn: Any, builder: ProgramBuilder, indices: Value) -> Handle:
    """Tokens as the library takes them: row-major uint32, of rank 1 or 2."""
    shape = indices.shape if indices.ndim == 2 else (1, indices.numel)
    if indices.is_static:
        return indices.prepared(torch.reshape, list(shape)).row_major(DataType.UINT32)
    if shape == indices.shape and not indices.is_on_device and _only_looked_up(builder.origin.args[1]):
        return indices.row_major(DataType.UINT32)
    return ttnn.typecast(indices.view(shape).row_major(DataType.INT32), DataType.UINT32)


def _only_looked_up(tokens: torch.fx.Node) -> bool:
    """Whether the tokens have no use as signed integers."""
    return all(user.target is aten.embedding.default and user.args[1] is tokens for user in tokens.users)


@lowers(aten.embedding_dense_backward.default)
def embedding_dense_backward(
    ttnn: Any,
    builder: ProgramBuilder,
    grad: Value,
    indices: Value,
    num_weights: int,
    padding_idx: int,
    scale_grad_by_freq: bool,
) -> Value:
    """Sums gradient rows by token. The library's own operation accumulates in bfloat16; scatter does not."""
    if scale_grad_by_freq:
        refuse("gradients are not scaled by how often a token occurs")
    constant_positions(indices, num_weights)
    width, count = grad.shape[-1], indices.numel
    rows = grad.view((count, width))
    flat = indices.view((count, 1))
    if padding_idx >= 0:
        handle = rows.tile()
        is_padding = builder.cast(ttnn.eq(flat.tile(DataType.INT32), padding_idx), handle.dtype)
        rows = builder.value(ttnn.where(is_padding, 0.0, handle), rows.shape, grad.dtype)
    table = builder.static(torch.zeros(num_weights, width, dtype=grad.dtype))
    return scattered(ttnn, builder, table, 0, across(ttnn, builder, flat, width), rows, "add")
