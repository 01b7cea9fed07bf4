"""Bilinear interpolation as the pooling kernels compute it: four pixels × four bfloat16 weights on the matrix unit."""

from __future__ import annotations

import torch

from ttnn_emulator.enums import DataType
from ttnn_emulator.numerics.formats.carriers import round_bf16_nearest_even
from ttnn_emulator.numerics.units.matrix_unit import MathConfig, matmul
from ttnn_emulator.numerics.units.packer import pack

MOST_WEIGHTS = 1024  # distinct weight sets up to which emulation is bit-exact, with one product per set
# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/pool/device/kernels/fixed_point_arithmetic.hpp, FIXED_ONE
ONE = 1 << 16  # of the kernels' fixed-point numbers


# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/pool/device/kernels/fixed_point_arithmetic.hpp, fixed_to_bf16
def fixed_to_bf16(fixed: torch.Tensor) -> torch.Tensor:
    """Fixed-point numbers from 0 to 1 as bfloat16, truncated."""
    values = fixed.double() / ONE
    return (values.float().view(torch.int32) & -0x10000).view(torch.float32)


def corner_weights(down: torch.Tensor, across: torch.Tensor) -> torch.Tensor:
    """Weights of the four pixels around a point, [..., 4], from its vertical and horizontal fixed-point fractions."""
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
