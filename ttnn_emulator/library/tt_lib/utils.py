"""`tt_lib.utils`: padding to tiles, and comparing results."""

from __future__ import annotations

import math
import struct
import warnings
from typing import Any

import torch

LIBRARY_PRIVATE = ("_nearest_32", "_nearest_y")
TILE = 32


def _nearest_y(x: int, y: int) -> int:
    return math.ceil(x / y) * y


def _nearest_32(x: int) -> int:
    return _nearest_y(x, TILE)


def divup(a: int, b: int) -> int:
    return (a + b - 1) // b


def roundup(a: int, b: int) -> int:
    return divup(a, b) * b


def roundup32(a: int) -> int:
    return roundup(a, TILE)


def float_to_bits(x: float) -> int:
    """The bits of a float32 as a signed integer."""
    return struct.unpack(">l", struct.pack(">f", x))[0]


def pad_activation(x: torch.Tensor) -> torch.Tensor:
    """Pad with zeros to full tiles, as a tensor of rank 4; each row of a matrix starts its own tile."""
    assert isinstance(x, torch.Tensor), "Input to this function must be an instance of torch.Tensor"
    assert 1 <= x.ndim <= 4, "Only tensors with dimension 1-4 supported"
    if x.ndim == 4:
        return _padded(x)
    batch = 1 if x.ndim == 1 else x.shape[0]
    return _padded(x.reshape(batch, 1, *(x.shape[-2:] if x.ndim == 3 else (1, x.shape[-1]))))


def pad_weight(x: torch.Tensor) -> torch.Tensor:
    """Pad the last two dimensions with zeros to full tiles; vectors and matrices become rank 4."""
    assert isinstance(x, torch.Tensor), "Input to this function must be an instance of torch.Tensor"
    assert 1 <= x.ndim <= 4, "Only tensors with dimension 1-4 supported"
    if x.ndim == 1:
        return _padded(x.reshape(1, 1, 1, -1))
    return _padded(x.reshape(1, 1, *x.shape) if x.ndim == 2 else x)


def _padded(x: torch.Tensor) -> torch.Tensor:
    height, width = x.shape[-2:]
    padded = torch.zeros(*x.shape[:-2], _nearest_32(height), _nearest_32(width))
    padded[..., :height, :width] = x
    return padded


def convert_weights_2d_matrix(weights: torch.Tensor, w_shape: Any) -> torch.Tensor:
    """[out, in, height, width] → [1, 1, height × width × in, out]."""
    out, channels, height, width = w_shape
    flat = torch.as_tensor(weights).reshape(out, channels, height, width).permute(0, 2, 3, 1)
    return flat.reshape(1, 1, out, height * width * channels).float().transpose(2, 3)


def convert_act_2d_matrix(
    activation: torch.Tensor, kernel_y: int, kernel_x: int, stride_y: int, stride_x: int, pad_y: int, pad_x: int
) -> torch.Tensor:
    """Windows of an image as rows: [1, batch, positions, height × width × channels]."""
    batch, channels = activation.shape[:2]
    windows = torch.nn.functional.unfold(
        torch.as_tensor(activation).float(), (kernel_y, kernel_x), padding=(pad_y, pad_x), stride=(stride_y, stride_x)
    )
    rows = windows.reshape(batch, channels, kernel_y * kernel_x, -1).permute(0, 3, 2, 1)
    return rows.reshape(1, batch, rows.shape[1], -1)


def tilize(x: Any) -> Any:
    """No effect: tensors are tilized automatically."""
    _deprecated()
    return x


def untilize(x: Any) -> Any:
    """No effect: tensors are untilized automatically."""
    _deprecated()
    return x


def tilize_to_list(x: torch.Tensor) -> list:
    """The values as a flat list."""
    _deprecated()
    return x.reshape(-1).tolist()


def _deprecated() -> None:
    warnings.warn("PyTorch data is handled automatically in tensor infra", DeprecationWarning, stacklevel=3)


def tt2torch(ttx: Any) -> torch.Tensor:
    return ttx.cpu().to_torch()


def tt2torch_rm(ttx: Any) -> torch.Tensor:
    return ttx.cpu().to_torch()


def print_diff_argmax(a: torch.Tensor, b: torch.Tensor, annotation: str = "") -> float:
    """Print where two tensors differ most, and return the difference."""
    difference = (a - b).abs().reshape(-1)
    position = int(difference.argmax())
    here, there = a.reshape(-1)[position].item(), b.reshape(-1)[position].item()
    print(f"Abs diff= {difference[position]}  at  {position}  ---  {annotation}")
    print(f"  (a= {here} )\n  (b= {there} )")
    return difference[position].item()


def is_close(
    a: torch.Tensor,
    b: torch.Tensor,
    rtol: float = 8e-2,
    atol: float = 8e-2,
    max_mag: float = 4.0,
    max_mag_fraction: float = 0.02,
) -> torch.Tensor:
    """Whether all values are close: absolutely, relatively, or relative to the largest magnitude."""
    difference = (a - b).abs()
    ratio = a.abs() / b.abs() - 1.0
    ratio_beside_zero = (a.abs() + 1.0) / (b.abs() + 1.0) - 1.0
    near = (difference < atol) | (ratio.abs() < rtol) | (ratio_beside_zero.abs() < rtol)
    near |= difference < max_mag * max_mag_fraction
    if not near.all():
        position = int(near.reshape(-1).to(torch.int32).argmin())
        print(f"is_close mismatch at index= {position}: {a.reshape(-1)[position]} and {b.reshape(-1)[position]}")
    return near.all()


def find_closest_largest_divisor(num: int, start_divisor: int) -> int:
    """The largest divisor of `num` that is at most `start_divisor`."""
    return next(divisor for divisor in range(start_divisor, 0, -1) if num % divisor == 0)


def find_closest_largest_divisor_with_num_padding(num: int, start_divisor: int) -> int:
    """The largest number up to `start_divisor` that divides `num` padded by less than one part."""
    divisor = start_divisor
    while _nearest_y(num, divisor) - num >= int(_nearest_y(num, divisor) / divisor):
        divisor -= 1
    return divisor
