"""The image layout of convolutions, pools and resampling: channels last, all pixels of the batch in one dimension.

torch uses [N, C, *sizes]; the library takes and returns [1, 1, N × pixels, C]. The result of one such operation is
passed to the next without a move: its form records the storage order.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

from torch_ttnn.compiler.ir.builder import ProgramBuilder
from torch_ttnn.compiler.ir.storage_order import Form, Shape
from torch_ttnn.compiler.ir.value import ROW_MAJOR, TILE, Handle, Value

WIDEST = 1 << 17  # pixels: to move a row of them, the library needs several copies of it in L1
NARROW = 16  # channels up to which tiles, 32 wide, are mostly padding


def channels_last(rank: int) -> Shape:
    """The order of dimensions in storage: [N, *sizes, C]."""
    return (0, *range(2, rank), 1)


def form_of(batch: int, channels: int, sizes: Sequence[int]) -> Form:
    """The form of [N, C, *sizes] stored as [N, *sizes, C]."""
    rank = len(sizes) + 2
    return Form((batch, *sizes, channels), (0, rank - 1, *range(1, rank - 1)))


def is_stored(x: Value) -> bool:
    """Whether it is on the device with channels last."""
    return x.is_on_device and not x.is_static and x.form.permuted(channels_last(x.ndim)).is_plain


def stored(ttnn: Any, builder: ProgramBuilder, x: Value, layout: Any = None, dtype: Any = None) -> Handle:
    """[N, C, *sizes] as [1, 1, N × pixels, C]; in tiles unless they would be mostly padding."""
    return arranged(ttnn, builder, x, (1, 1, x.numel // x.shape[1], x.shape[1]), layout, dtype)


def videos(ttnn: Any, builder: ProgramBuilder, x: Value, layout: Any = None, dtype: Any = None) -> Handle:
    """[N, C, *sizes] as [N, *sizes, C]."""
    return arranged(ttnn, builder, x, (x.shape[0], *x.shape[2:], x.shape[1]), layout, dtype)


def arranged(ttnn: Any, builder: ProgramBuilder, x: Value, shape: Sequence[int], layout: Any, dtype: Any) -> Handle:
    """Channels last, with the other dimensions merged as in `shape`."""
    narrow = x.shape[1] <= NARROW
    if narrow and not is_stored(x):
        x.row_major()  # a host value is uploaded in rows; the permutation works on rows
        x = x if x.base().layout is ROW_MAJOR else builder.value(x.row_major(), x.shape, x.dtype)
        if math.prod(x.shape[2:]) > WIDEST:
            permuted = ttnn.permute(x.row_major(), list(channels_last(x.ndim)))
            x = value(builder, permuted, x.shape[0], x.shape[2:], x.dtype)
    seen = x.permute(channels_last(x.ndim)).view(shape)
    layout = layout or (seen.base().layout if is_stored(x) else ROW_MAJOR if narrow else TILE)
    return seen.tile(dtype) if layout is TILE else seen.row_major(dtype)


def value(builder: ProgramBuilder, handle: Handle, batch: int, sizes: Sequence[int], dtype: torch.dtype) -> Value:
    """[N, C, *sizes] stored in a tensor with channels last."""
    channels = handle.shape[-1]
    assert math.prod(handle.shape) == batch * channels * math.prod(sizes), (handle, batch, sizes)
    return builder.value(handle, (batch, channels, *sizes), dtype, form=form_of(batch, channels, sizes))


def per_channel(vector: Value, rank: int) -> Value:
    """[C] reshaped to broadcast against [N, C, *sizes]."""
    return vector.view((1, vector.numel) + (1,) * (rank - 2))
