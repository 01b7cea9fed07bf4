"""Layer norm, RMS norm and batch norm, as their kernels compute them (see `units.compute_core`)."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from ttnn_emulator.enums import DataType
from ttnn_emulator.numerics.formats.carriers import round_bf16_nearest_even
from ttnn_emulator.numerics.kernels import normalization as kernels
from ttnn_emulator.numerics.native.threaded_copies import contiguous
from ttnn_emulator.numerics.native.worker_threads import cut, share
from ttnn_emulator.numerics.units import reductions as numeric
from ttnn_emulator.numerics.units.compute_core import Core, Operand
from ttnn_emulator.numerics.units.matrix_unit import MathConfig

NO_ROWS = np.zeros((1, 0), np.float32)
ONE_WORKER = 1 << 18  # values below which waking another thread does not pay off


# -- layer norm and RMS norm ------------------------------------------------------------------------------------------


# tt-metal v0.81.1: ttnn/cpp/ttnn/operations/normalization/layernorm/device/kernels/compute/layernorm.cpp, kernel_main
def norm_rows(
    x: Operand,
    config: MathConfig,
    epsilon: float,
    *,
    centred: bool,
    residual: Operand | None = None,
    weight: Operand | None = None,
    bias: Operand | None = None,
    activation: Callable[[torch.Tensor, bool], torch.Tensor] | None = None,
    block: int | None = None,
    line: int | None = None,
    unit_rows: Callable[[Core], torch.Tensor] | None = None,
) -> torch.Tensor:
    """Rows normalised to unit variance and, if `centred`, to zero mean; then × weight + bias.

    block      width of a shard: every core computes the mean of its shard, and one core the mean of the means
    line       cores per line if the kernel reduces in two stages: within each line, then the first core over its line
               and the sums of the other lines
    unit_rows  replaces all steps before the weight: the bit-exact steps of another kernel
    """
    core = Core.of(config, x.values.numel())
    at_once = not core.exact and activation is None
    values = x.values if at_once and core.wide else core.source(x.values, x.dtype)
    added = NO_ROWS
    if residual is not None and at_once and core.wide:
        added = _rows(residual.values)
    elif residual is not None and (at_once or unit_rows is None):
        values = core.through(core.add(values, core.source(residual.values, residual.dtype)))
    if at_once:
        rows = [NO_ROWS[0] if each is None else _row(core, each) for each in (weight, bias)]
        shift = np.float32(numeric.scaler_of(epsilon))
        return compiled(kernels.norm_rows, values, x.dtype, core, shift, centred, core.wide, operands=(added, *rows))
    if unit_rows is not None:
        result = unit_rows(core)
    else:
        if centred:
            values = core.through(core.sub(values, core.through(_mean(core, values, block, line))))
        variance = core.through(_mean(core, core.through(core.mul(values, values)), block, line))
        shifted = core.add(variance, torch.tensor(numeric.scaler_of(epsilon)))
        inverse = core.through(core.apply("rsqrt", shifted, approx=config.approx))
        result = core.mul(values, inverse)
    for step, operand in ((core.mul, weight), (core.add, bias)):
        if operand is not None:
            result = step(core.through(result), core.source(operand.values, operand.dtype))
    if activation is not None:
        result = activation(result, core.wide)
    return core.packed(result, x.dtype)


def bind_norm_rows(
    x: Operand,
    config: MathConfig,
    epsilon: float,
    *,
    centred: bool,
    residual: Operand | None = None,
    weight: Operand | None = None,
    bias: Operand | None = None,
) -> Any:
    """See `Bindable`: the same for rows and a residual at fixed addresses, with a constant weight and bias."""
    core = Core.of(config, x.values.numel())
    if core.exact or not core.wide or x.dtype is not DataType.BFLOAT16:
        return None
    operands = [NO_ROWS if residual is None else _rows(residual.values)]
    operands += [NO_ROWS[0] if each is None else _row(core, each) for each in (weight, bias)]
    rows, result = _rows(x.values), torch.empty(x.values.shape)
    end = (rows, *operands, _rows(result), np.float32(numeric.scaler_of(epsilon)), centred, core.wide)
    parts = cut(rows.shape[0], max(ONE_WORKER // max(rows.shape[1], 1), 1))
    return functools.partial(share, kernels.norm_rows, [(*part, *end, True) for part in parts]), result


def _rows(values: torch.Tensor) -> np.ndarray:
    return contiguous(values).reshape(-1, values.shape[-1]).numpy()


def _row(core: Core, operand: Operand) -> np.ndarray:
    return core.source(operand.values, operand.dtype).reshape(-1).contiguous().numpy()


def compiled(
    kernel: Callable[..., None],
    values: torch.Tensor,
    dtype: DataType,
    core: Core,
    *arguments: Any,
    operands: Sequence[np.ndarray] = (),
) -> torch.Tensor:
    """Run a compiled kernel over the rows and pack its result."""
    rows = _rows(values)
    out = np.empty_like(rows)
    end = (rows, *operands, out, *arguments, dtype is DataType.BFLOAT16)
    share(kernel, [(*part, *end) for part in cut(rows.shape[0], max(ONE_WORKER // max(rows.shape[1], 1), 1))])
    result = torch.from_numpy(out).reshape(values.shape)
    return result if dtype is DataType.BFLOAT16 else core.packed(result, dtype)


def _mean(core: Core, values: torch.Tensor, block: int | None, line: int | None) -> torch.Tensor:
    width = values.shape[-1]
    if block is None:
        return core.scaled(core.row_sums(values), 1.0 / width)
    parts = values.split(block, -1)
    first, second = len(parts) / width, 1.0 / len(parts)
    share, of_cores = (round_bf16_nearest_even(torch.tensor(each)).item() for each in (first, second))
    means = [core.through(core.row_sums(part, share)) for part in parts]
    if line is not None:
        sums = [core.row_sums(_tiles_of(means[start : start + line])) for start in range(line, len(means), line)]
        means = [*means[:line], *(core.through(each) for each in sums)]
    return core.row_sums(_tiles_of(means), of_cores)


def _tiles_of(columns: Sequence[torch.Tensor]) -> torch.Tensor:
    """A tile per column, with the column in its first column."""
    return torch.cat([torch.nn.functional.pad(each, (0, numeric.TILE - 1)) for each in columns], -1)


# -- norms of rows distributed over devices ---------------------------------------------------------------------------


# tt-metal v0.81.1: ttnn/cpp/ttnn/operations/normalization/layernorm/device/kernels/compute/layernorm_sharded_pre_allgather.cpp, kernel_main  # noqa: E501
def shard_statistics(
    x: Operand,
    config: MathConfig,
    dtype: DataType,
    *,
    centred: bool,
    block: int,
    line: int | None,
    residual: Operand | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """The mean of squares, of shards `block` wide, in column 0 of a tile; if `centred`, after a tile with the mean.

    The second result is the input; with a residual, their sum, which the kernel writes over the input.
    """
    core = Core.of(config, x.values.numel())
    total = x.values
    if residual is not None:
        added = core.add(core.source(x.values, x.dtype), core.source(residual.values, residual.dtype))
        total = core.packed(added, x.dtype)
    values = core.source(total, x.dtype)
    means = [_mean(core, core.through(core.mul(values, values)), block, line)]
    if centred:
        means.insert(0, _mean(core, values, block, line))
    return core.packed(_tiles_of(means), dtype), total


# tt-metal v0.81.1: ttnn/cpp/ttnn/operations/normalization/layernorm_distributed/device/kernels/compute/layernorm_pre_allgather.cpp, kernel_main  # noqa: E501
def row_statistics(
    x: Operand,
    config: MathConfig,
    dtype: DataType,
    *,
    centred: bool,
    residual: Operand | None = None,
    accurate: bool,
) -> torch.Tensor:
    """The sum of squares in column 0 of a tile and, if `centred`, the sum in column 0 of the next tile."""
    core = Core.of(config, x.values.numel())
    if accurate:
        values = x.values if residual is None else core.vector("add", x.values, residual.values)
        squares = core.vector("mul", values, values)
        sums = [numeric.vector_row_sums(each).unsqueeze(-1) for each in (squares, values)]
    else:
        values = core.source(x.values, x.dtype)
        if residual is not None:
            values = core.through(core.add(values, core.source(residual.values, residual.dtype)))
        sums = [core.row_sums(core.through(core.mul(values, values))), core.row_sums(values)]
    return core.packed(_tiles_of(sums[: 2 if centred else 1]), dtype)


# tt-metal v0.81.1: ttnn/cpp/ttnn/operations/normalization/layernorm_distributed/device/kernels/compute/layernorm_post_allgather.cpp, kernel_main  # noqa: E501
def norm_by_statistics(
    x: Operand,
    statistics: Operand,
    config: MathConfig,
    epsilon: float,
    dtype: DataType,
    *,
    centred: bool,
    weight: Operand | None = None,
    bias: Operand | None = None,
    of_means: bool = False,
) -> torch.Tensor:
    """The norm of rows from the concatenated statistics of all devices; `of_means`: from `shard_statistics`."""
    core = Core.of(config, x.values.numel())
    tiles = core.source(statistics.values, statistics.dtype).unflatten(-1, (-1, numeric.TILE))
    devices = tiles.shape[-2] // (2 if centred else 1)
    wide = x.dtype is DataType.FLOAT32 and core.wide
    share = numeric.scaler_of(1.0 / (devices if of_means else x.values.shape[-1] * devices), wide=wide)
    values = core.source(x.values, x.dtype)
    step = 2 if centred else 1
    squares = 1 if centred and of_means else 0
    variance = core.through(core.row_sums(tiles[..., squares::step, :].flatten(-2), share))
    if centred:
        mean = core.through(core.row_sums(tiles[..., 1 - squares :: 2, :].flatten(-2), share))
        variance = core.through(core.sub(variance, core.through(core.mul(mean, mean))))
        values = core.through(core.sub(values, mean))
    shifted = core.add(variance, torch.tensor(numeric.scaler_of(epsilon)))
    inverse = core.through(core.apply("rsqrt", shifted, approx=config.approx))
    result = core.mul(values, inverse)
    for apply, operand in ((core.mul, weight), (core.add, bias)):
        if operand is not None:
            result = apply(core.through(result), core.source(operand.values, operand.dtype))
    return core.packed(result, dtype)


# -- batch norm -------------------------------------------------------------------------------------------------------


# tt-metal v0.81.1: ttnn/cpp/ttnn/operations/normalization/batch_norm/device/kernels/compute/batch_norm_kernel.cpp,
#     batchnorm_bcast_tiles
# tt-metal v0.81.1: ttnn/cpp/ttnn/operations/normalization/batch_norm/device/kernels/compute/batch_norm_sfpu_kernel.cpp,
#     batchnorm_bcast_tiles
def batch_norm(
    x: Operand,
    mean: Operand,
    variance: Operand,
    config: MathConfig,
    epsilon: float,
    dtype: DataType,
    *,
    weight: Operand | None = None,
    bias: Operand | None = None,
) -> torch.Tensor:
    """(x - mean) ÷ √(variance + epsilon) × weight + bias: on the vector unit in 32 bits, else on the matrix unit."""
    core = Core.of(config, x.values.numel())
    operands = [each for each in (x, mean, variance, weight, bias) if each is not None]
    wide = any(each.dtype is DataType.FLOAT32 for each in operands) or dtype is DataType.FLOAT32
    shift = torch.tensor(epsilon)
    if not wide:
        shift = round_bf16_nearest_even(shift)
    middle = DataType.FLOAT32 if wide else DataType.BFLOAT16
    if core.wide or wide:
        inverse = core.packed(
            core.apply("rsqrt", core.vector("add", variance.values, shift), approx=config.approx), middle
        )
        result = core.vector("mul", core.vector("sub", x.values, mean.values), inverse)
        result = result if weight is None else core.vector("mul", result, weight.values)
        result = result if bias is None else core.vector("add", result, bias.values)
        return core.packed(result, dtype)
    inverse = core.through(core.apply("rsqrt", core.add(variance.values, shift), approx=config.approx), middle)
    result = core.mul(core.sub(x.values, mean.values), inverse)
    result = result if weight is None else core.mul(result, weight.values)
    result = result if bias is None else core.add(result, bias.values)
    return core.packed(result, dtype)


# tt-metal v0.81.1: ttnn/cpp/ttnn/operations/normalization/batch_norm/device/kernels/compute/running_statistics_kernel.cpp, kernel_main  # noqa: E501
def running_statistic(old: Operand, batch: Operand, config: MathConfig, momentum: float) -> torch.Tensor:
    """(1 - momentum) × old + momentum × batch."""
    core = Core.of(config, old.values.numel())
    wide = DataType.FLOAT32 in (old.dtype, batch.dtype)
    share = torch.tensor(momentum) if wide else round_bf16_nearest_even(torch.tensor(momentum))
    kept = core.vector("mul", core.vector("sub", torch.ones(()), share), old.values)
    return core.packed(core.vector("add", kept, core.vector("mul", share, batch.values)), old.dtype)
