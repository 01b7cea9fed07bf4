"""Bilinear interpolation as the pooling kernels do it: four pixels times four bfloat16 weights in the matrix unit."""

from __future__ import annotations

import torch

from ttnn_emulator.enums import DataType
from ttnn_emulator.numerics.formats.carriers import round_bf16_nearest_even
from ttnn_emulator.numerics.units.matrix_unit import MathConfig, matmul
from ttnn_emulator.numerics.units.packer import pack

ONE = 1 << 16  # of the kernels' fixed-point numbers
MOST_WEIGHTS = 1024  # distinct weight sets that are emulated bit-exactly, each a separate product


def fixed_to_bf16(fixed: torch.Tensor) -> torch.Tensor:
    """Fixed-point numbers from 0 to 1 as bfloat16: the mantissa is cut, not rounded."""
    values = fixed.double() / ONE
    return (values.float().view(torch.int32) & -0x10000).view(torch.float32)


def corner_weights(down: torch.Tensor, across: torch.Tensor) -> torch.Tensor:
    """Weights of the four pixels around a point, [..., 4], from its fixed-point fractions down and across."""
    above, left = ONE - down, ONE - across
    products = [above * left, above * across, down * left, down * across]
    return torch.stack([fixed_to_bf16(product >> 16) for product in products], dim=-1)


# tt-metal v0.81.1: ttnn/cpp/ttnn/operations/pool/upsample/device/kernels/compute/bilinear.cpp, kernel_main
def interpolate(pixels: torch.Tensor, weights: torch.Tensor, dtype: DataType, config: MathConfig) -> torch.Tensor:
    """Σ weight × pixel: pixels [points, 4, channels], weights [points, 4] → [points, channels]."""
    points, _, channels = pixels.shape
    kinds, kind = torch.unique(weights, dim=0, return_inverse=True)
    result = torch.empty(points, channels)
    if kinds.shape[0] <= MOST_WEIGHTS:
        for number, row in enumerate(kinds):
            chosen = (kind == number).nonzero().reshape(-1)
            columns = pixels[chosen].permute(1, 0, 2).reshape(4, -1)
            result[chosen] = matmul(row.reshape(1, 4), columns, config).reshape(-1, channels)
    else:
        result = (pixels * weights.unsqueeze(-1)).sum(1)
        if not config.fp32_acc:
            result = round_bf16_nearest_even(result)
    return pack(result, dtype, from_fp32=config.fp32_acc)
