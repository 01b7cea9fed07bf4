"""Splits and merges attention heads with the library's operations, where they apply.

They need a head width D that is a multiple of the tile size; other heads use reshape and permute.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torch_ttnn.compiler.errors import StaysOnHost
from torch_ttnn.compiler.ir.storage_order import Form, Shape
from torch_ttnn.compiler.ir.value import TILE, Handle
from ttnn_emulator import TILE_SIZE, DataType

if TYPE_CHECKING:
    from torch_ttnn.compiler.ir.builder import ProgramBuilder

DTYPES = (DataType.BFLOAT16, DataType.FLOAT32, DataType.BFLOAT8_B)


def split_heads(ttnn: Any, builder: ProgramBuilder, handle: Handle, form: Form) -> Handle | None:
    """[B, S, H * D] in storage, viewed as [B, H, S, D]."""
    if form.axes != (0, 2, 1, 3) or not _is_split(handle, form.stored_shape):
        return None
    found = _split_merged(ttnn, builder, handle, form.stored_shape, key_heads=0)
    return None if found is None else found[0]


def split_qkv(ttnn: Any, builder: ProgramBuilder, handle: Handle, form: Form) -> tuple[Handle, Handle, Handle] | None:
    """[B, S, 3 * H * D] in storage, viewed as [3, B, H, S, D]: query, key and value."""
    if form.axes != (2, 0, 3, 1, 4) or form.stored_shape[2] != 3:
        return None
    batch, length, _, heads, width = form.stored_shape
    stored = (batch, length, heads, width)
    if not _is_split(handle, (batch, length, 3 * heads, width)):
        return None
    return _split_merged(ttnn, builder, handle, stored, key_heads=heads)


def joined_heads(ttnn: Any, builder: ProgramBuilder, handle: Handle, form: Form, shape: Shape) -> Handle | None:
    """[B, H, S, D] in storage, viewed as [B, S, H, D], to become [B, S, H * D] or [B * S, H * D]."""
    if form.axes != (0, 2, 1, 3) or handle.shape[-2:] != form.stored_shape[-2:] or handle.dtype not in DTYPES:
        return None
    batch, heads, length, width = form.stored_shape
    if shape not in ((batch, length, heads * width), (batch * length, heads * width)) or width % TILE_SIZE:
        return None
    merged = builder.tiled(builder.reshaped(handle, form.stored_shape))  # merging leading dimensions is free
    return builder.reshaped(ttnn.transformer.concatenate_heads(merged), shape)


def _is_split(handle: Handle, stored: Shape) -> bool:
    """Whether the last stored dimension is merged heads, each of whole tiles."""
    heads, width = stored[2:]
    wide = handle.shape and handle.shape[-1] == heads * width and width % TILE_SIZE == 0
    return bool(wide) and handle.layout is TILE and handle.dtype in DTYPES


def _split_merged(
    ttnn: Any, builder: ProgramBuilder, handle: Handle, stored: Shape, key_heads: int
) -> tuple[Handle, Handle, Handle] | None:
    batch, length, heads, _ = stored
    wide = builder.reshaped(handle, (batch, 1, length, handle.shape[-1]))
    try:
        return ttnn.experimental.nlp_create_qkv_heads(
            wide, num_heads=heads, num_kv_heads=key_heads, transpose_k_heads=False
        )
    except StaysOnHost:  # does not fit L1: reshape and permute always work
        return None
