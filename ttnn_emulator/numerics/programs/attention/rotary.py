"""Rotary embeddings as the kernels compute them: x × cos + rotated x × sin, with a buffer after every step."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import torch

from ttnn_emulator.enums import DataType
from ttnn_emulator.numerics.units.compute_core import Core
from ttnn_emulator.numerics.units.matrix_unit import MathConfig, matmul

TILE = 32


# tt-metal v0.81.1: ttnn/cpp/ttnn/operations/experimental/transformer/rotary_embedding/device/kernels/compute/rotary_embedding.cpp, kernel_main  # noqa: E501
# tt-metal v0.81.1: ttnn/cpp/ttnn/operations/experimental/transformer/rotary_embedding_llama/device/kernels/compute/rotary_embedding_llama.cpp, kernel_main  # noqa: E501
@dataclass(frozen=True)
class Rotation:
    """The dtypes of one call: of its input and output, of cos and sin, and of the buffers for their products."""

    config: MathConfig
    dtype: DataType
    trigonometry: DataType
    products: DataType

    def core(self, x: torch.Tensor) -> Core:
        return Core.of(self.config, x.numel())

    def halves(self, x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, *, copied: bool = False) -> torch.Tensor:
        """Swap the halves of the last dimension and negate the second; `copied`: both pass through a buffer."""
        core = self.core(x)
        source = core.source(x, self.dtype)
        first, second = source.chunk(2, -1)
        negated = core.through(core.mul(second, torch.tensor(-1.0)), self.dtype)
        kept = core.through(first, self.dtype) if copied else first
        return self._joined(core, source, torch.cat([negated, kept], -1), cos, sin)

    def by_matrix(self, x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        """Multiply every 32 columns by a 32 × 32 matrix: one for all, or one per leading dimension."""
        core = self.core(x)
        source = core.source(x, self.dtype)
        *outer, rows, width = source.shape
        tiles = source.reshape(*outer, rows, width // TILE, TILE).transpose(-2, -3).reshape(*outer, -1, TILE)
        rotated = matmul(tiles, matrix, self.config)
        rotated = rotated.reshape(*outer, width // TILE, rows, TILE).transpose(-2, -3).reshape(source.shape)
        return self._joined(core, source, core.through(rotated, self.dtype), cos, sin)

    def _joined(
        self, core: Core, x: torch.Tensor, rotated: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor
    ) -> torch.Tensor:
        by_sin = core.through(core.mul(rotated, core.source(sin, self.trigonometry)), self.products)
        by_cos = core.through(core.mul(x, core.source(cos, self.trigonometry)), self.products)
        return core.packed(core.add(by_cos, by_sin), self.dtype)


@functools.cache
def rotate_half_matrix() -> torch.Tensor:
    """The matrix that swaps the halves of 32 columns and negates the second; the reader kernel writes it to L1."""
    matrix = torch.zeros(TILE, TILE)
    half = TILE // 2
    index = torch.arange(half)
    matrix[index, half + index] = 1.0
    matrix[half + index, index] = -1.0
    return matrix
