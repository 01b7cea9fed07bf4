"""Layer norm and RMS norm of rows that do not fit L1.

The kernel reads the row three times: for the mean, for the variance and for the result. The vector unit squares the
deviation from the mean and adds a residual in the destination register; the kernel for rows that fit does both on the
matrix unit, on values that passed through a circular buffer.
"""

from __future__ import annotations

import torch

from ttnn_emulator.enums import DataType
from ttnn_emulator.numerics.units import reductions as numeric
from ttnn_emulator.numerics.units.compute_core import Core, Operand
from ttnn_emulator.numerics.units.matrix_unit import MathConfig


# tt-metal v0.81.1: ttnn/cpp/ttnn/operations/normalization/layernorm/device/kernels/compute/layernorm_large_tensor.cpp,
#     kernel_main
def norm_wide_rows(
    core: Core,
    x: Operand,
    config: MathConfig,
    epsilon: float,
    *,
    centred: bool,
    residual: Operand | None,
    order: int | None,
) -> torch.Tensor:
    """The normalised rows in the destination register, before weight and bias.

    `order`: input tiles that alternate with as many of the residual in the sum for the mean; None: no alternation.
    """
    values = core.source(x.values, x.dtype)
    added = None if residual is None else core.source(residual.values, residual.dtype)
    share = 1.0 / values.shape[-1]
    deviation = values
    if centred:
        summed = values if added is None else _alternating(values, added, order)
        mean = core.through(core.scaled(core.row_sums(summed), share))
        deviation = core.sub(values, mean)
    if added is not None:
        deviation = core.add(added, core.source(deviation, DataType.FLOAT32))
    squares = core.through(core.vector("mul", deviation, deviation))
    variance = core.through(core.scaled(core.row_sums(squares), share))
    shifted = core.add(variance, torch.tensor(numeric.scaler_of(epsilon)))
    inverse = core.through(core.apply("rsqrt", shifted, approx=config.approx))
    return core.mul(core.through(deviation), inverse)


def _alternating(values: torch.Tensor, added: torch.Tensor, order: int | None) -> torch.Tensor:
    """Both rows in the order in which their tiles are summed: concatenated or alternating."""
    missing = -values.shape[-1] % numeric.TILE
    first, second = (torch.nn.functional.pad(each, (0, missing)) for each in (values, added))
    if order is None:
        return torch.cat([first, second], -1)
    width = order * numeric.TILE
    turns = [part for pair in zip(first.split(width, -1), second.split(width, -1)) for part in pair]
    return torch.cat(turns, -1)
