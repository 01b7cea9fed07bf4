"""Reductions as the chip computes them: sums on the matrix unit or the vector unit, extremes, and variances.

The matrix unit sums by multiplying with a scaler: rows of a tile times a column of scalers, or a row of scalers times
faces of 16 rows, accumulated in the destination register tile by tile. The vector unit adds whole tiles and then folds
the last one. Both are bit-exact for small tensors (see `mode`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from ttnn_emulator.numerics.bound_stages import Stages
from ttnn_emulator.numerics.broadcasting import of_one_shape
from ttnn_emulator.numerics.formats.carriers import bits_of, from_bits, round_bf16_nearest_even, truncate_bf16
from ttnn_emulator.numerics.kernels.normalization import sum_rows
from ttnn_emulator.numerics.kernels.reductions import (
    FACE,
    add_bits,
    largest_of_rows,
    multiply_all,
    pool_columns,
    pool_rows,
    smallest_of_rows,
)
from ttnn_emulator.numerics.mode import exactly
from ttnn_emulator.numerics.native.addresses import address_of
from ttnn_emulator.numerics.native.worker_threads import cut, share
from ttnn_emulator.numerics.units import vector_unit as v
from ttnn_emulator.numerics.units.matrix_unit import (
    PHASES,
    MathConfig,
    _registers,
    mantissa_mask,
    operand_bits,
    truncate_mantissa,
)

TILE = 32
ALONE = 1 << 17  # elements of a float32 sum below which threads cost more than they save
ONE_WORKER = 1 << 12  # the same for a bit-exact sum
PASS = 8  # weight of a product in a reduction: reading a tensor once has a smaller budget than a matmul


def scaler_of(value: float, *, wide: bool = False) -> float:
    """A scaler as stored in its tile: truncated to bfloat16, or float32 of which the registers keep 11 bits."""
    exact = torch.tensor(value, dtype=torch.float32)
    return (truncate_mantissa(exact, 11) if wide else truncate_bf16(exact)).item()


# -- sums of the matrix unit ------------------------------------------------------------------------------------------


# tt-metal v0.81.1: tt_metal/tt-llk/tt_llk_wormhole_b0/llk_lib/llk_math_reduce.h, _llk_math_reduce_
def row_sums(
    values: torch.Tensor,
    scaler: float,
    config: MathConfig,
    start: torch.Tensor | None = None,
    exact: bool | None = None,
) -> torch.Tensor:
    """scaler × the sum over the last dimension: [..., W] → [...], in destination format."""
    if not _exact_sum(values, config, exact):
        return _with_start(_fast_sum(values, -1, scaler, config, values_in_b=True), start)
    width = values.shape[-1]
    rows = torch.nn.functional.pad(values.reshape(-1, width), (0, -width % TILE))
    return _pooled(pool_rows, rows, TILE, scaler, config, start, values.shape[:-1])


def column_sums(
    values: torch.Tensor,
    scaler: float,
    config: MathConfig,
    start: torch.Tensor | None = None,
    exact: bool | None = None,
) -> torch.Tensor:
    """scaler × the sum over the dimension before the last: [..., H, W] → [..., W]."""
    if not _exact_sum(values, config, exact):
        return _with_start(_fast_sum(values, -2, scaler, config, values_in_b=False), start)
    height = values.shape[-2]
    columns = torch.nn.functional.pad(values.transpose(-1, -2).reshape(-1, height), (0, -height % FACE))
    return _pooled(pool_columns, columns, FACE, scaler, config, start, (*values.shape[:-2], values.shape[-1]))


def _exact_sum(values: torch.Tensor, config: MathConfig, exact: bool | None) -> bool:
    return exactly(values.numel() * PHASES[config.fidelity] * PASS) if exact is None else exact


def _pooled(
    kernel: Callable[..., None],
    values: torch.Tensor,
    step: int,
    scaler: float,
    config: MathConfig,
    start: torch.Tensor | None,
    shape: tuple,
) -> torch.Tensor:
    data, weights = _registers(values), _registers(torch.full((step,), scaler))
    result = np.zeros(values.shape[0], np.uint32)
    if start is not None:
        result[:] = start.reshape(-1).contiguous().numpy().view(np.uint32)
    operands = (*data, *weights) if kernel is pool_rows else (*weights, *data)
    end = (*operands, result, PHASES[config.fidelity], config.fp32_acc)
    share(kernel, [(*part, *end) for part in cut(values.shape[0], max(ONE_WORKER // max(values.shape[1], 1), 1))])
    return torch.from_numpy(result.view(np.float32)).reshape(shape)


def _with_start(total: torch.Tensor, start: torch.Tensor | None) -> torch.Tensor:
    return total if start is None else total + start


def _fast_sum(values: torch.Tensor, dim: int, scaler: float, config: MathConfig, *, values_in_b: bool) -> torch.Tensor:
    """The sum in float32, on operands truncated to the bits that the fidelity phases read."""
    phases = PHASES[config.fidelity]
    weight = torch.tensor(scaler)
    high = truncate_mantissa(weight, 5 if values_in_b else 7).item()
    high_bits = 7 if values_in_b else 5
    sees_low_values = phases >= (3 if values_in_b else 2)
    sees_low_weight = phases >= (2 if values_in_b else 3)
    if not sees_low_values:
        values = truncate_mantissa(values, high_bits)
    total = _sum(values, dim)
    if high == scaler or (sees_low_weight and (phases == 4 or not sees_low_values)):
        return total * scaler
    if not sees_low_weight:
        return total * high
    upper = _sum(truncate_mantissa(values, high_bits), dim)  # HiFi3 has no phase for low × low
    lower = torch.where(upper.isfinite(), total - upper, 0.0)  # an infinity has no low part
    return upper * scaler + lower * high


def _sum(values: torch.Tensor, dim: int) -> torch.Tensor:
    if dim != -1 or not values.numel():
        return values.sum(dim)
    rows = values.contiguous().reshape(-1, values.shape[-1]).numpy()
    out = torch.empty(values.shape[:-1])
    end = rows, out.numpy().reshape(-1)
    share(sum_rows, [(*part, *end) for part in cut(rows.shape[0], max(ALONE // rows.shape[1], 1))])
    return out


def accumulate(values: torch.Tensor, dim: int, config: MathConfig) -> torch.Tensor:
    """Tiles added one after another into the destination register (add_tiles with a tile of zeros)."""
    if config.fp32_acc and not exactly(values.numel() * PASS):
        return values.sum(dim)
    total = np.zeros(values.shape[:dim] + values.shape[dim + 1 :], np.uint32)
    for part in values.unbind(dim):
        raw = part.contiguous().numpy().view(np.uint32)
        total = add_bits(raw, np.uint32(0), total, np.uint64(config.fp32_acc))
    return torch.from_numpy(np.asarray(total, np.uint32).view(np.float32))


def product(values: torch.Tensor, dim: int, config: MathConfig, *, wide: bool) -> torch.Tensor:
    """Tiles multiplied in sequence; the destination register passes through a source register before each product.

    The source register keeps 11 bits of a `wide` (float32) operand with a 32-bit destination, else the 8 of a bfloat16.
    """
    parts = values.unbind(dim)
    exact = exactly(values.numel() * PHASES[config.fidelity] * PASS)
    bits = 11 if wide and config.fp32_acc else 8
    total = truncate_mantissa(parts[0], bits)
    for part in parts[1:]:
        total = multiply(truncate_mantissa(total, bits), truncate_mantissa(part, bits), config, exact=exact)
    return total


# tt-metal v0.81.1: tt_metal/tt-llk/tt_llk_wormhole_b0/llk_lib/llk_math_eltwise_binary.h, _llk_math_eltwise_binary_
def multiply(a: torch.Tensor, b: torch.Tensor, config: MathConfig, *, exact: bool) -> torch.Tensor:
    """a × b on the matrix unit (ELWMUL), in destination format: a is in source A, b in source B."""
    if not exact:
        bits_b, bits_a = operand_bits(config.fidelity)
        a = truncate_mantissa(a, bits_a) if bits_a < 8 else a
        b = truncate_mantissa(b, bits_b) if bits_b < 8 else b
        return a * b if config.fp32_acc else round_bf16_nearest_even(a * b)
    left, right = of_one_shape(a, b)
    raw = [each.contiguous().view(torch.int32).numpy().view(np.uint32).reshape(-1) for each in (left, right)]
    out = torch.empty(left.shape)
    end = (*raw, PHASES[config.fidelity], config.fp32_acc, out.view(torch.int32).numpy().view(np.uint32).reshape(-1))
    share(multiply_all, [(*part, *end) for part in cut(out.numel(), ONE_WORKER)])
    return out


# -- sums of the vector unit ------------------------------------------------------------------------------------------


def _added(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return torch.from_numpy(np.asarray(v.add(a.numpy(), b.numpy())))


def _folded_tiles(values: torch.Tensor, dim: int) -> list[torch.Tensor]:
    """Tiles along `dim` added elementwise, first to last; returns the 32 lines of the sum."""
    size = values.shape[dim]
    if size % TILE:
        padding = [0, 0] * (-dim - 1) + [0, -size % TILE]
        values = torch.nn.functional.pad(values, padding)
    tiles = values.unflatten(dim, (-1, TILE)).movedim(dim - 1, 0)
    total = tiles[0]
    for tile in tiles[1:]:
        total = _added(total, tile.contiguous())
    return list(total.movedim(dim, 0).contiguous())


# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_reduce.h,
#     perform_reduce_row_sum_tile
def vector_row_sums(values: torch.Tensor) -> torch.Tensor:
    """The sum over the last dimension in full float32: [..., W] → [...]."""
    if not exactly(values.numel() * 2 * PASS):
        return values.sum(-1)
    line = _folded_tiles(values, -1)
    # Even and odd columns of the left and of the right face, then eight lanes folded by halves.
    lanes = [_added(line[2 * i], _added(line[2 * i + 1], _added(line[16 + 2 * i], line[17 + 2 * i]))) for i in range(8)]
    fours = [_added(lanes[i], lanes[i + 4]) for i in range(4)]
    twos = [_added(fours[i], fours[i + 2]) for i in range(2)]
    return _added(twos[0], twos[1])


# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_reduce.h,
#     perform_reduce_col_sum_avg
def vector_column_sums(values: torch.Tensor) -> torch.Tensor:
    """The sum over the dimension before the last in full float32: [..., H, W] → [..., W]."""
    if not exactly(values.numel() * 2 * PASS):
        return values.sum(-2)
    line = _folded_tiles(values, -2)

    def face(first: int) -> torch.Tensor:
        inner = _added(line[first + 8], line[first + 12])
        return _added(line[first], _added(line[first + 4], inner))

    rows = [_added(face(i), face(16 + i)) for i in range(4)]
    return _added(_added(rows[0], rows[1]), _added(rows[2], rows[3]))


# -- extremes ---------------------------------------------------------------------------------------------------------


def _ordered(values: torch.Tensor) -> torch.Tensor:
    """Integers in sign-magnitude order, by which the chip compares floats; an involution."""
    raw = bits_of(values)
    return raw ^ ((raw >> 31) & 0x7FFFFFFF)


def extreme(values: torch.Tensor, dim: int, *, largest: bool) -> torch.Tensor:
    """The largest or smallest along `dim`; NaNs are beyond the infinity of their sign."""
    if values.dtype is torch.float32 and dim == -1 and 0 < values.numel() <= ALONE:
        source = values.contiguous()
        run, out = _extremes_of_rows(source, largest)
        run()
        return out
    result = values.amax(dim) if largest else values.amin(dim)
    if result.is_floating_point() and not (result.isfinite() & (result != 0)).all():
        keys = _ordered(values)
        keys = keys.amax(dim) if largest else keys.amin(dim)
        return from_bits((keys ^ ((keys >> 31) & 0x7FFFFFFF)).contiguous())
    return result


def _extremes_of_rows(values: torch.Tensor, largest: bool) -> tuple[Callable[[], Any], torch.Tensor]:
    out = torch.empty(values.shape[:-1])
    loop = largest_of_rows if largest else smallest_of_rows
    return functools.partial(loop, address_of(values), address_of(out), out.numel(), values.shape[-1]), out


# -- on memory that stays ---------------------------------------------------------------------------------------------


def finding_extremes(stages: Stages, values: torch.Tensor, *, largest: bool) -> torch.Tensor | None:
    """`extreme` of rows."""
    return stages.add(*_extremes_of_rows(values, largest)) if 0 < values.numel() <= ALONE else None


def adding_by_vector_unit(stages: Stages, values: torch.Tensor) -> torch.Tensor | None:
    """`vector_row_sums` on fixed buffers, where torch sums."""
    if exactly(values.numel() * 2 * PASS):
        return None
    out = torch.empty(values.shape[:-1])
    return stages.add(functools.partial(torch.sum, values, -1, out=out), out)


def adding_rows(stages: Stages, values: torch.Tensor, scaler: float, config: MathConfig) -> torch.Tensor | None:
    """`row_sums` in float32 on fixed buffers, for a scaler without low mantissa bits."""
    high = truncate_mantissa(torch.tensor(scaler), 5).item()
    if _exact_sum(values, config, None) or high != scaler or not 0 < values.numel() <= ALONE:
        return None
    if PHASES[config.fidelity] < 3:
        values = stages.masked(values, mantissa_mask(7))
    out = torch.empty(values.shape[:-1])
    rows = values.reshape(-1, values.shape[-1]).numpy()
    stages.add(functools.partial(sum_rows, 0, rows.shape[0], rows, out.numpy().reshape(-1)), out)
    return stages.add(functools.partial(torch.mul, out, scaler, out=out), out)


# -- variance ---------------------------------------------------------------------------------------------------------


# tt-metal v0.81.1: tt_metal/tt-llk/common/ckernel_sfpu_welfords_common.h, _two_pass_accumulate_shifted_sum_row_
def variance(values: torch.Tensor, correction: bool) -> torch.Tensor:
    """The variance over the last dimension: [..., N] → [...].

    Two passes in float32: the first sums differences from the first value, with separate accumulators for even and odd
    positions, and yields the mean; the second sums squared deviations in the same way.
    """
    count = values.shape[-1]
    if not exactly(values.numel() * 4 * PASS):
        return variance_of_all(values, correction)
    lines = np.ascontiguousarray(values.movedim(-1, 0).numpy())
    mean_weight, weight = np.float32(1 / count), np.float32(1 / (count - correction))
    anchor = lines[0]
    sums = [np.zeros_like(anchor), np.zeros_like(anchor)]
    for place, line in enumerate(lines):
        sums[place & 1] = v.add(sums[place & 1], v.sub(line, anchor))
    mean = v.mad(v.add(*sums), mean_weight, anchor)
    squares = [np.zeros_like(anchor), np.zeros_like(anchor)]
    for place, line in enumerate(lines):
        distance = v.sub(line, mean)
        squares[place & 1] = v.mad(distance, distance, squares[place & 1])
    return torch.from_numpy(np.asarray(v.mul(v.add(*squares), weight)))


def variance_of_all(values: torch.Tensor, correction: bool) -> torch.Tensor:
    """The variance over several dimensions: the chip combines the variances of columns without loss."""
    return values.double().var(-1, correction=int(correction)).float()
