"""softmax, as its kernels compute it over the last dimension and over other dimensions."""

from __future__ import annotations

import torch

from ttnn_emulator.enums import DataType
from ttnn_emulator.numerics.kernels import normalization as kernels
from ttnn_emulator.numerics.programs.normalization.norms import compiled
from ttnn_emulator.numerics.units import reductions as numeric
from ttnn_emulator.numerics.units.compute_core import Core
from ttnn_emulator.numerics.units.matrix_unit import MathConfig


# tt-metal v0.81.1: ttnn/cpp/ttnn/operations/normalization/softmax/device/kernels/attention/compute/softmax.cpp,
#     kernel_main
def softmax_rows(
    values: torch.Tensor,
    dtype: DataType,
    config: MathConfig,
    *,
    stable: bool,
    bulk: DataType,
    scale: float | None = None,
    mask: torch.Tensor | None = None,
    mask_dtype: DataType = DataType.BFLOAT16,
    piece: int | None = None,
) -> torch.Tensor:
    """The kernel for the last of four dimensions. With a mask, the values are scaled first and the mask is added.

    `bulk` is the dtype of the buffers with whole rows; the sum of a row is in an intermediate buffer. `piece`: tiles
    processed at a time by the kernel for wide rows; the vector unit adds the sums of the pieces.
    """
    core = Core.of(config, values.numel())
    x = core.source(values, dtype)
    if mask is not None:
        factor = numeric.scaler_of(1.0 if scale is None else scale)
        x = core.add(core.through(core.mul(x, torch.tensor(factor)), bulk), core.source(mask, mask_dtype))
        if stable or piece is not None:
            x = core.through(x, bulk)
    if not core.exact and config.approx and bulk is DataType.BFLOAT16:
        return compiled(kernels.softmax_rows, x, dtype, core, stable)
    if not core.exact:
        return compiled(kernels.accurate_softmax_rows, x, dtype, core)
    if stable:
        x = core.sub(x, core.through(_largest_of_rows(core, x), bulk))
    powers = core.through(core.apply("exp", x, approx=config.approx), bulk)
    precise = core.wide or not config.approx
    total = core.row_sums(powers) if piece is None else _sum_of_pieces(core, powers, piece * numeric.TILE)
    inverse = core.through(core.apply("recip", total, approx=not precise))
    return core.packed(core.mul(powers, inverse), dtype)


# tt-metal v0.81.1: ttnn/cpp/ttnn/operations/normalization/softmax/device/kernels/attention/compute/softmax_large_tensor.cpp, kernel_main  # noqa: E501
def _sum_of_pieces(core: Core, powers: torch.Tensor, width: int) -> torch.Tensor:
    """The sum of a row in pieces; the running sum passes through a circular buffer between pieces."""
    first, *rest = powers.split(width, -1)
    total = core.through(core.row_sums(first))
    for part in rest:
        total = core.through(core.vector("add", core.row_sums(part), total))
    return total


def softmax_general(
    values: torch.Tensor,
    dim: int,
    dtype: DataType,
    config: MathConfig,
    *,
    negative: bool = False,
    logarithm: bool = False,
    in_pieces: bool = False,
    middle: DataType | None = None,
) -> torch.Tensor:
    """The kernels for any dimension: exp(±(x - max)) ÷ sum, or its logarithm.

    `in_pieces`: the kernels for lines that do not fit L1, which add all tiles into one and reduce that.
    """
    core = Core.of(config, values.numel())
    x = core.source(values, dtype)
    if not core.exact and dim in (-1, x.dim() - 1) and not logarithm:
        return compiled(kernels.accurate_softmax_rows, -x if negative else x, dtype, core)
    if not core.exact:
        function = torch.log_softmax if logarithm else torch.softmax
        return core.packed(function(-x if negative else x, dim), dtype)
    largest = core.source(_largest(core, x, dim, dtype), dtype if dim < -2 else core.middle)
    distance = core.through(core.sub(x, largest), middle)
    exponent = -distance if negative else distance
    powers = core.through(core.apply("exp", exponent), middle)
    total = _total(core, powers, dim, in_pieces, middle)
    if logarithm:
        rest = core.through(core.apply("log", total), middle)
        start = -distance if negative and dim < -2 else distance
        return core.packed(core.sub(start, rest), dtype)
    inverse = core.through(core.apply("recip", total, approx=config.approx), middle)
    return core.packed(core.mul(powers, inverse), dtype)


def _largest_of_rows(core: Core, x: torch.Tensor) -> torch.Tensor:
    """The matrix unit adds 0 when it transposes the row of maxima: NaN becomes infinity, a denormal 0."""
    return core.add(numeric.extreme(x, -1, largest=True).unsqueeze(-1), torch.zeros(()))


def _largest(core: Core, x: torch.Tensor, dim: int, dtype: DataType) -> torch.Tensor:
    """The maximum along `dim`, kept with size 1. In the last two dimensions it includes tile padding, as zeros."""
    maximum = _largest_of_rows(core, x) if dim == -1 else numeric.extreme(x, dim, largest=True).unsqueeze(dim)
    if dim >= -2 and x.shape[dim] % numeric.TILE:
        maximum = torch.maximum(maximum, torch.zeros(()))
    return core.packed(maximum, dtype if dim < -2 else core.middle)


def _total(core: Core, powers: torch.Tensor, dim: int, in_pieces: bool, middle: DataType | None) -> torch.Tensor:
    if dim < -2:
        first, *rest = powers.unbind(dim)
        total = first
        for part in rest:
            total = core.through(core.add(total, part), middle)
        return total.unsqueeze(dim)
    sums = core.row_sums if dim == -1 else core.column_sums
    if not in_pieces:
        return sums(powers)
    padding = [0, 0] * (-dim - 1) + [0, -powers.shape[dim] % numeric.TILE]
    tiles = torch.nn.functional.pad(powers, padding).unflatten(dim, (-1, numeric.TILE))
    first, *rest = tiles.unbind(dim - 1)
    total = first
    for part in rest:
        total = core.through(core.add(total, part), middle)
    return sums(total)
