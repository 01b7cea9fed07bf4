"""Torch counterparts of the pools of `ttnn.operations.pool`. Images are flat, [1, 1, N × H × W, C]."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.nn import functional

from ttnn_emulator.enums import BLOCK_FLOAT_DTYPES, DataType, Layout
from ttnn_emulator.golden_functions import GOLDEN_FUNCTIONS
from ttnn_emulator.numerics.formats.carriers import TORCH_DTYPE
from ttnn_emulator.tensors.host_transfer import from_torch, to_torch

Pair = Sequence[int]


def _image(flat: torch.Tensor, *sizes: int) -> torch.Tensor:
    """The flat form as [N, C, H, W]."""
    return flat.reshape(sizes).permute(0, 3, 1, 2)


def _padded(image: torch.Tensor, padding: Pair, fill: float) -> tuple[torch.Tensor, tuple[int, int]]:
    """The image and the padding left to torch; asymmetric padding is applied here."""
    if len(padding) == 2:
        return image, (padding[0], padding[1])
    top, bottom, left, right = padding
    if top == bottom and left == right:
        return image, (top, left)
    return functional.pad(image, (left, right, top, bottom), value=fill), (0, 0)


def _flat(image: torch.Tensor) -> torch.Tensor:
    rows = image.permute(0, 2, 3, 1)
    return rows.reshape(1, 1, -1, rows.shape[-1])


def _stored(values: torch.Tensor, dtype: DataType | None) -> torch.Tensor:
    if dtype is None:
        return values
    if dtype in BLOCK_FLOAT_DTYPES:
        return to_torch(from_torch(values, dtype=dtype, layout=Layout.TILE))
    return values.to(TORCH_DTYPE[dtype])


def golden_maxpool2d(
    input_tensor: torch.Tensor,
    batch_size: int,
    input_h: int,
    input_w: int,
    channels: int,
    kernel_size: Pair,
    stride: Pair,
    padding: Pair,
    dilation: Pair,
    ceil_mode: bool = False,
    return_indices: bool = False,
    dtype: DataType | None = None,
    **_: Any,
) -> Any:
    image = _image(input_tensor, batch_size, input_h, input_w, channels)
    image, around = _padded(image, padding, float("-inf"))
    maxima, indices = functional.max_pool2d(
        image, tuple(kernel_size), tuple(stride), around, tuple(dilation), ceil_mode, return_indices=True
    )
    largest = _stored(_flat(maxima), dtype)
    return (largest, _flat(indices)) if return_indices else largest


def golden_avg_pool2d(
    input_tensor: torch.Tensor,
    batch_size: int,
    input_h: int,
    input_w: int,
    channels: int,
    kernel_size: Pair,
    stride: Pair,
    padding: Pair,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
    dtype: DataType | None = None,
    **_: Any,
) -> torch.Tensor:
    image, around = _padded(_image(input_tensor, batch_size, input_h, input_w, channels), padding, 0.0)
    window = tuple(kernel_size), tuple(stride), around
    return _stored(_flat(functional.avg_pool2d(image, *window, ceil_mode, count_include_pad, divisor_override)), dtype)


def golden_adaptive_avg_pool2d(
    input_tensor: torch.Tensor,
    batch_size: int,
    input_h: int,
    input_w: int,
    channels: int,
    output_size: Pair,
    **_: Any,
) -> torch.Tensor:
    image = _image(input_tensor, batch_size, input_h, input_w, channels)
    return _flat(functional.adaptive_avg_pool2d(image, (output_size[0], output_size[1])))


def golden_adaptive_max_pool2d(
    input_tensor: torch.Tensor,
    batch_size: int,
    input_h: int,
    input_w: int,
    channels: int,
    output_size: Pair,
    **_: Any,
) -> torch.Tensor:
    image = _image(input_tensor, batch_size, input_h, input_w, channels)
    return _flat(functional.adaptive_max_pool2d(image, (output_size[0], output_size[1])))


GOLDEN_FUNCTIONS["ttnn.max_pool2d"] = golden_maxpool2d
GOLDEN_FUNCTIONS["ttnn.avg_pool2d"] = golden_avg_pool2d
GOLDEN_FUNCTIONS["ttnn.adaptive_avg_pool2d"] = golden_adaptive_avg_pool2d
GOLDEN_FUNCTIONS["ttnn.adaptive_max_pool2d"] = golden_adaptive_max_pool2d
