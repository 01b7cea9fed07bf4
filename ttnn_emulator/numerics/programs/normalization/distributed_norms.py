"""Norms of rows distributed over devices, as the kernels of diffusion transformers compute them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch

from ttnn_emulator.enums import DataType
from ttnn_emulator.numerics.formats.carriers import flush, truncate_bf16
from ttnn_emulator.numerics.mode import exactly
from ttnn_emulator.numerics.programs.products.matmul import Kernel
from ttnn_emulator.numerics.units import reductions as numeric
from ttnn_emulator.numerics.units import vector_unit as v
from ttnn_emulator.numerics.units.compute_core import Core, Operand
from ttnn_emulator.numerics.units.matrix_unit import MathConfig
from ttnn_emulator.numerics.units.packer import pack

TILE = numeric.TILE
STEPS = 5  # vector unit instructions per value
BF16 = DataType.BFLOAT16

# -- layer norm -------------------------------------------------------------------------------------------------------


# tt-metal v0.81.1: tt_metal/tt-llk/common/ckernel_sfpu_welfords_common.h, _compute_welfords_row_
def running_statistics(values: torch.Tensor, reciprocals: torch.Tensor, wide: bool) -> torch.Tensor:
    """Mean and variance of rows [..., W] by Welford's algorithm → [..., 2], in the destination register.

    `reciprocals` are 1, 1/2, 1/3 ….
    """
    width = values.shape[-1]
    usual = torch.allclose(reciprocals, 1.0 / torch.arange(1, width + 1), rtol=1e-5, atol=0.0)
    if usual and not exactly(values.numel() * STEPS * numeric.PASS):
        exact = values.double()
        statistics = torch.stack([exact.mean(-1), exact.var(-1, correction=0)], -1).float()
        return statistics if wide else truncate_bf16(statistics)
    columns = np.ascontiguousarray(values.movedim(-1, 0).numpy())
    shares = reciprocals.numpy().astype(np.float32)
    mean, squares = np.zeros_like(columns[0]), np.zeros_like(columns[0])
    for column, share in zip(columns, shares):
        before = v.sub(column, mean)
        mean = v.mad(before, share, mean)
        squares = v.mad(before, v.sub(column, mean), squares)
    statistics = torch.from_numpy(np.stack([mean, v.mul(squares, shares[width - 1])], -1))
    return statistics if wide else truncate_bf16(statistics)


def statistics_tiles(statistics: torch.Tensor, dtype: DataType, wide: bool) -> torch.Tensor:
    """[..., rows, 2] → [..., rows, 64]: each in column 0 of a tile, after it was packed to L1 as a row."""
    rows = statistics.shape[-2]
    row = torch.nn.functional.pad(statistics.mT, (0, -rows % TILE)).contiguous()
    column = pack(row, dtype, from_fp32=wide)[..., :rows].mT.unsqueeze(-1)
    tiles = torch.nn.functional.pad(column, (0, TILE - 1)).flatten(-2)
    return pack(tiles.contiguous(), dtype, from_fp32=wide)


# tt-metal v0.81.1: ttnn/cpp/ttnn/operations/normalization/kernel_util/compute/combine_welford.h,
#     combine_welford_partials
def combined(core: Core, statistics: Operand, width: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Mean and variance over all devices, each with `width` values per row."""
    past_registers = core.wide and statistics.dtype is DataType.FLOAT32
    values = statistics.values if past_registers else core.source(statistics.values, statistics.dtype)
    parts = values.unflatten(-1, (-1, 2, TILE))[..., :1]
    mean = torch.zeros((*parts.shape[:-3], 1))
    squares = torch.zeros_like(mean)
    number = np.float32
    count, each = number(0), number(width)
    for part in parts.unbind(-3):
        own = part[..., 1, :]
        other = part[..., 0, :].contiguous()
        share, other_share = count / (count + each), each / (count + each)
        distance = core.vector("sub", other, mean)
        mean = core.vector("add", core.scaled(mean, float(share)), core.scaled(other, float(other_share)))
        spread = core.scaled(core.apply("square", distance), float(count * other_share))
        squares = core.vector("add", squares, spread)
        squares = core.vector("add", squares, core.scaled(own.contiguous(), float(width)))
        count = number(count + each)
    return mean, core.scaled(squares, float(number(1) / count))


# tt-metal v0.81.1: ttnn/cpp/ttnn/operations/experimental/transformer/dit_layernorm_post_all_gather/device/kernels/compute/layernorm_post_allgather_welford.cpp, kernel_main  # noqa: E501
def layer_norm(
    x: Operand,
    statistics: Operand,
    config: MathConfig,
    epsilon: float,
    dtype: DataType,
    width: int,
    weight: Operand | None = None,
    bias: Operand | None = None,
) -> torch.Tensor:
    """(x - mean) ÷ √(variance + epsilon) × weight + bias, from gathered statistics of `width` values each."""
    core = Core.of(config, x.values.numel())
    mean, variance = (core.through(each) for each in combined(core, statistics, width))
    inverse = _inverse_root(core, variance, epsilon)
    result = core.mul(core.through(core.sub(core.source(x.values, x.dtype), mean)), inverse)
    for step, operand in ((core.mul, weight), (core.add, bias)):
        if operand is not None:
            result = step(core.through(result), core.source(operand.values, operand.dtype))
    return core.packed(result, dtype)


def _inverse_root(core: Core, values: torch.Tensor, epsilon: float) -> torch.Tensor:
    shifted = core.add(values, torch.tensor(numeric.scaler_of(epsilon)))
    return core.through(core.apply("rsqrt", shifted))


# -- RMS norm ---------------------------------------------------------------------------------------------------------


# tt-metal v0.81.1: ttnn/cpp/ttnn/operations/experimental/transformer/fused_distributed_rmsnorm/device/kernels/compute/rmsnorm_pre_allgather.cpp, kernel_main  # noqa: E501
def sums_of_squares(values: torch.Tensor, config: MathConfig, dtype: DataType) -> torch.Tensor:
    """Rows [..., W] of bfloat16 → [..., 32] with the sum of squares in column 0.

    The packer accumulates the squared tiles of a row in L1, in float32; then the resulting tile is reduced.
    """
    core = Core.of(config, values.numel())
    squares = core.packed(core.mul(values, values), DataType.FLOAT32)
    tiles = torch.nn.functional.pad(squares, (0, -squares.shape[-1] % TILE)).unflatten(-1, (-1, TILE))
    total = tiles[..., 0, :]
    for tile in tiles.unbind(-2)[1:]:
        total = flush(total + tile)
    total = core.row_sums(core.source(total.contiguous(), DataType.FLOAT32))
    return core.packed(torch.nn.functional.pad(total, (0, TILE - 1)), dtype)


Rotation = tuple[Operand, Operand, Operand]  # rotation matrix of a tile, cosines and sines


# tt-metal v0.81.1: ttnn/cpp/ttnn/operations/experimental/transformer/fused_distributed_rmsnorm/device/kernels/compute/rmsnorm_post_allgather.cpp, kernel_main  # noqa: E501
def rms_norm(
    x: Operand,
    statistics: Operand,
    config: MathConfig,
    epsilon: float,
    dtype: DataType,
    heads: int,
    weight: Operand | None,
    rotation: Rotation | None,
) -> torch.Tensor:
    """[1, 1, S, W] → [1, heads, S, W ÷ heads]: x ÷ √(mean square + epsilon) × weight, optionally rotated."""
    core = Core.of(config, x.values.numel())
    devices = statistics.values.shape[-1] // TILE
    share = numeric.scaler_of(1.0 / (x.values.shape[-1] * devices))
    mean = core.through(core.row_sums(core.source(statistics.values, statistics.dtype), share))
    result = core.mul(x.values, _inverse_root(core, mean, epsilon))
    if weight is not None:
        result = core.mul(core.through(result), core.source(weight.values, weight.dtype))
    if rotation is not None:
        result = _rotated(core, result, heads, rotation)
    return core.packed(result, dtype).unflatten(-1, (heads, -1)).transpose(-2, -3).flatten(1, 2).contiguous()


def _rotated(core: Core, normalized: torch.Tensor, heads: int, rotation: Rotation) -> torch.Tensor:
    matrix, *waves = rotation
    cosines, sines = (core.source(wave.values, wave.dtype).unsqueeze(-2) for wave in waves)
    kept = core.packed(normalized, core.middle)
    rotate: Callable[..., torch.Tensor] = Kernel(core.config, core.middle, matrix.dtype, BF16).compute()
    tiles = kept.reshape(-1, TILE)
    rotated = rotate(tiles, matrix.values.reshape(TILE, TILE).contiguous()).reshape(normalized.shape)

    def times(values: torch.Tensor, wave: torch.Tensor, buffer: DataType) -> torch.Tensor:
        product = core.mul(values.unflatten(-1, (heads, -1)), wave)
        return core.through(product.flatten(-2), buffer)

    unrotated = times(core.source(kept, core.middle), cosines, core.middle)
    return core.add(unrotated, times(rotated, sines, BF16))
