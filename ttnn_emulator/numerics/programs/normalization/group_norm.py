"""group_norm as its kernels compute it: sums over whole tiles, scaled twice by 1 ÷ √count."""

from __future__ import annotations

import math

import torch

from ttnn_emulator.enums import DataType
from ttnn_emulator.numerics.formats.carriers import round_bf16_nearest_even
from ttnn_emulator.numerics.units import reductions as numeric
from ttnn_emulator.numerics.units.compute_core import Core, Operand
from ttnn_emulator.numerics.units.matrix_unit import MathConfig, truncate_mantissa

TILE = numeric.TILE
SLOT = 8  # elements between the partial sums of two cores, in the tile in which one core gathers them


# tt-metal v0.81.1: ttnn/cpp/ttnn/operations/normalization/groupnorm/device/kernels/compute/groupnorm.cpp, kernel_main
def group_norm(
    x: Operand,
    groups: int,
    config: MathConfig,
    epsilon: float,
    *,
    cores: int = 1,
    weight: Operand | None = None,
    bias: Operand | None = None,
) -> torch.Tensor:
    """x [batch, 1, rows, channels]: every group of channels normalised, then × weight + bias.

    `cores` share the rows of a batch element: each computes the mean of its rows, one of them the mean of the means.
    """
    core = Core.of(config, x.values.numel())
    middle = DataType.FLOAT32 if x.dtype is DataType.FLOAT32 else DataType.BFLOAT16
    batch, _, rows, channels = x.values.shape
    width = channels // groups
    values = core.source(x.values, x.dtype).reshape(batch, rows, groups, width).transpose(1, 2)
    shift = round_bf16_nearest_even(torch.tensor(epsilon))
    mean = _mean(core, values, width, cores, middle)
    centred = core.through(core.sub(values, mean), middle)
    variance = _mean(core, core.through(core.mul(centred, centred), middle), width, cores, middle)
    inverse = core.through(core.apply("rsqrt", core.add(variance, shift), approx=config.approx), middle)
    result = core.mul(centred, inverse).transpose(1, 2).reshape(x.values.shape)
    for step, operand in ((core.mul, weight), (core.add, bias)):
        if operand is not None:
            result = step(core.through(result, middle), core.source(operand.values, operand.dtype))
    return core.packed(core.through(result, middle) if weight is None and bias is None else result, x.dtype)


def _mean(core: Core, values: torch.Tensor, width: int, cores: int, middle: DataType) -> torch.Tensor:
    """The mean over rows and channels of values [batch, groups, rows, width], read by a source register."""
    rows = values.shape[-2]
    share = math.ceil(math.ceil(rows / TILE) / cores) * TILE
    wide = middle is DataType.FLOAT32
    parts = []
    for number, part in enumerate(values.split(share, -2)):
        scaler = numeric.scaler_of(1.0 / math.sqrt(part.shape[-2] * width), wide=False)
        parts.append(core.through(_over_tiles(core, _placed(part, width), scaler, wide), middle))
        assert number < cores
    collected = values.new_zeros(*values.shape[:-2], TILE * TILE)
    for number, part in enumerate(parts):
        collected[..., number * SLOT] = part
    faces = collected.unflatten(-1, (2, 2, 16, 16)).transpose(-3, -2).reshape(*values.shape[:-2], 1, TILE, TILE)
    scaler = numeric.scaler_of(1.0 / math.sqrt(len(parts)))
    total = core.through(_over_tiles(core, faces, scaler, wide), middle)
    return total.unsqueeze(-1).unsqueeze(-1)


def _placed(values: torch.Tensor, width: int) -> torch.Tensor:
    """Groups [batch, groups, rows, width] as zero-padded tiles, at their offset: [batch, groups, tiles, 32, 32]."""
    batch, groups, rows, _ = values.shape
    span = max((group * width % TILE + width + TILE - 1) // TILE for group in range(groups))
    height = math.ceil(rows / TILE) * TILE
    padded = values.new_zeros(batch, groups, height, span * TILE)
    for group in range(groups):
        start = group * width % TILE
        padded[:, group, :rows, start : start + width] = values[:, group]
    tiles = padded.unflatten(-1, (span, TILE)).unflatten(-3, (-1, TILE)).transpose(-3, -2)
    return tiles.flatten(2, 3)


def _over_tiles(core: Core, tiles: torch.Tensor, scaler: float, wide: bool) -> torch.Tensor:
    """scaler² × the sum of [..., tiles, 32, 32]: each tile is reduced to a row, and that is added to the sum."""
    if not core.exact:
        return tiles.sum((-3, -2, -1)) * scaler * scaler
    total: torch.Tensor | None = None
    bits = 11 if wide and core.wide else 8
    for tile in tiles.unbind(-3):
        faces = tile.unflatten(-1, (2, 16)).unflatten(-3, (2, 16)).transpose(-3, -2).flatten(-4, -2)
        row = truncate_mantissa(numeric.column_sums(faces, scaler, core.config, exact=True), bits)
        start = None if total is None else total.unsqueeze(-1)
        total = numeric.column_sums(row.unsqueeze(-1), scaler, core.config, start, exact=True).squeeze(-1)
    assert total is not None
    return total
