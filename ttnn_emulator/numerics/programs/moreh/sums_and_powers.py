"""Sums, means, norms and powers, as the `moreh` kernels compute them, all in bfloat16."""

from __future__ import annotations

import math

import torch

from ttnn_emulator.enums import DataType
from ttnn_emulator.numerics.formats.carriers import round_bf16_nearest_even, wrap_integer
from ttnn_emulator.numerics.units import reductions as numeric
from ttnn_emulator.numerics.units.compute_core import Core
from ttnn_emulator.numerics.units.matrix_unit import MathConfig

TILE = numeric.TILE
BF16 = DataType.BFLOAT16


def scalar(core: Core, value: float, dtype: DataType | None = None) -> torch.Tensor:
    """A constant tile, as read by a source register."""
    exact = torch.tensor(value, dtype=torch.float32)
    if (dtype or core.middle) is DataType.FLOAT32:
        return core.source(exact, DataType.FLOAT32)
    return torch.tensor(numeric.scaler_of(value))


def chained(core: Core, parts: list[torch.Tensor], dtype: DataType | None = None) -> torch.Tensor:
    """Tiles added one after another; the running sum is stored in a buffer."""
    total = parts[0]
    for part in parts[1:]:
        total = core.through(core.add(total, part), dtype)
    return total


# -- sums and means ---------------------------------------------------------------------------------------------------


# tt-metal v0.81.1: ttnn/cpp/ttnn/operations/moreh/moreh_sum/device/moreh_sum_nc_impl_kernels/moreh_sum_nc.cpp,
#     kernel_main
def summed(values: torch.Tensor, dim: int, config: MathConfig, *, mean: bool = False) -> torch.Tensor:
    """The sum or mean along the negative dimension `dim`, which is kept with size 1."""
    if not values.is_floating_point():
        return wrap_integer(values.to(torch.int64).sum(dim, keepdim=True), DataType.INT32)
    core = Core.of(config, values.numel())
    if dim >= -2:
        return _over_tiles(core, values, dim, mean)
    if not mean:
        return core.packed(numeric.accumulate(values, values.dim() + dim, config), BF16).unsqueeze(dim)
    total = chained(core, list(values.unbind(dim)), BF16)
    share = scalar(core, 1.0 / values.shape[dim], BF16)
    return core.packed(core.mul(total, share), BF16).unsqueeze(dim)


# tt-metal v0.81.1: ttnn/cpp/ttnn/operations/moreh/moreh_sum/device/moreh_sum_w_impl_kernels/moreh_sum_w.cpp,
#     kernel_main
# tt-metal v0.81.1: ttnn/cpp/ttnn/operations/moreh/moreh_sum/device/moreh_sum_h_impl_kernels/moreh_sum_h.cpp,
#     kernel_main
def _over_tiles(core: Core, values: torch.Tensor, dim: int, mean: bool) -> torch.Tensor:
    """The sum of all tiles but the last is stored in a buffer and reloaded to add the last one."""
    by_row = dim == -1
    sums = numeric.row_sums if by_row else numeric.column_sums
    size = values.shape[dim]
    share = 1.0
    if mean:
        exact = torch.tensor(1.0 / size)
        share = round_bf16_nearest_even(exact).item() if by_row else numeric.scaler_of(1.0 / size)
    head = (size - 1) // TILE * TILE
    first, last = values.split([head, size - head], dim)
    start = None
    if head:
        start = core.packed(sums(first, share, core.config, exact=core.exact), core.middle)
        start = core.source(start, core.middle) if mean and by_row else start
    return core.packed(sums(last, share, core.config, start, exact=core.exact), BF16).unsqueeze(dim)


# tt-metal v0.81.1: ttnn/cpp/ttnn/operations/moreh/moreh_mean_backward/device/kernels/moreh_mean_backward.cpp,
#     kernel_main
def spread(gradient: torch.Tensor, shape: tuple[int, ...], config: MathConfig, divisor: int) -> torch.Tensor:
    """The gradient of a mean over `divisor` values: broadcast and divided."""
    core = Core.of(config, math.prod(shape))
    values = torch.broadcast_to(gradient, shape)
    return core.packed(core.mul(values, scalar(core, 1.0 / divisor, BF16)), BF16)


# -- powers and norms -------------------------------------------------------------------------------------------------


def split_power(power: float) -> tuple[int, float, bool]:
    """An exponent as the kernels take it: integer magnitude, fraction, and whether the integer is negative."""
    whole = math.floor(power)
    return abs(whole), power - whole, whole < 0


def raised(core: Core, x: torch.Tensor, power: tuple[int, float, bool], dtype: DataType | None = None) -> torch.Tensor:
    """x^power in the destination register: x^whole by multiplication, times exp(rest × log x)."""
    whole, rest, negative = power
    powers = core.apply("power_iterative", x, float(whole))
    if negative:
        powers = core.apply("recip", powers, approx=core.config.approx)
    logarithm = core.through(core.apply("log", x), dtype)
    correction = core.through(core.apply("exp", core.mul(logarithm, scalar(core, rest, dtype))), dtype)
    return core.mul(core.through(powers, dtype), correction)


# tt-metal v0.81.1: ttnn/cpp/ttnn/operations/moreh/moreh_abs_pow/device/kernels/moreh_abs_pow_kernel.cpp, kernel_main
def absolute_power(values: torch.Tensor, power: float, config: MathConfig) -> torch.Tensor:
    core = Core.of(config, values.numel())
    return core.packed(raised(core, values.abs(), split_power(power)), BF16)


# tt-metal v0.81.1: ttnn/cpp/ttnn/operations/moreh/moreh_norm/device/ord_other/moreh_norm_w/kernels/moreh_norm_w_kernel.cpp, kernel_main  # noqa: E501
def extreme_norm(values: torch.Tensor, dim: int, power: float, config: MathConfig) -> torch.Tensor:
    """The norms of order 0 and ±∞: the number of nonzero values, the largest or the smallest magnitude."""
    if power == 0.0:
        core = Core.of(config, values.numel())
        kept = (values != 0).to(torch.float32)
        if dim < -2:
            return core.packed(chained(core, list(kept.unbind(dim))), BF16).unsqueeze(dim)
        padding = [0, 0] * (-dim - 1) + [0, -values.shape[dim] % TILE]
        tiles = torch.nn.functional.pad(kept, padding).unflatten(dim, (-1, TILE))
        total = chained(core, list(tiles.unbind(dim - 1)))
        sums = numeric.row_sums if dim == -1 else numeric.column_sums
        return core.packed(sums(total, 1.0, config, exact=core.exact), BF16).unsqueeze(dim)
    return numeric.extreme(values.abs(), dim, largest=power > 0).unsqueeze(dim)


# tt-metal v0.81.1: ttnn/cpp/ttnn/operations/moreh/moreh_norm_backward/device/kernels/moreh_norm_backward_kernel.cpp,
#     kernel_main
def norm_gradient(
    x: torch.Tensor, norm: torch.Tensor, gradient: torch.Tensor, power: float, config: MathConfig
) -> torch.Tensor:
    """The gradient of a norm: sign(x) × |x|^(p-1) × norm × gradient ÷ norm^p; norm and gradient broadcast."""
    core = Core.of(config, x.numel())
    sign = torch.sign(x)
    if math.isinf(power):
        reached = (core.through(core.sub(x.abs(), norm)) == 0).to(torch.float32)
        return core.packed(core.mul(core.through(core.mul(sign, gradient)), reached), BF16)
    lowered = core.through(raised(core, x.abs(), split_power(power - 1.0)))
    product = core.through(core.mul(core.through(core.mul(lowered, norm)), gradient))
    inverse = core.through(core.apply("recip", raised(core, norm, split_power(power)), approx=config.approx))
    result = core.mul(sign, core.through(core.mul(product, inverse)))
    return core.packed(torch.where(sign == 0, 0.0, result), BF16)


# tt-metal v0.81.1: ttnn/cpp/ttnn/operations/moreh/moreh_clip_grad_norm/moreh_clip_grad_norm_step1/device/kernels/moreh_clip_grad_norm_step1_kernel.cpp, kernel_main  # noqa: E501
def power_total(values: torch.Tensor, power: float, config: MathConfig) -> torch.Tensor:
    """The sum of |x|^power over all values: the first step of gradient clipping."""
    core = Core.of(config, values.numel())
    planes = values.abs().reshape(-1, *values.shape[-2:]) if values.dim() > 1 else values.abs().reshape(1, 1, -1)
    height, width = planes.shape[-2:]
    planes = torch.nn.functional.pad(planes, (0, -width % TILE, 0, -height % TILE))
    tiles = planes.unflatten(-1, (-1, TILE)).unflatten(-3, (-1, TILE)).transpose(-3, -2).flatten(0, 2)
    powers = core.through(raised(core, tiles, split_power(power)))
    return core.packed(scalar_total(core, chained(core, list(powers.unbind(0)))), BF16)


def scalar_total(core: Core, tile: torch.Tensor, scaler: float = 1.0) -> torch.Tensor:
    """The sum of a tile [..., 32, 32] as a scalar: columns of faces first; the scaler is applied twice."""
    if not core.exact:
        return tile.sum((-2, -1)) * scaler * scaler
    faces = tile.unflatten(-1, (2, 16)).unflatten(-3, (2, 16)).transpose(-3, -2).flatten(-4, -2)
    row = core.source(numeric.column_sums(faces, scaler, core.config, exact=True), core.middle)
    return numeric.column_sums(row.unsqueeze(-1), scaler, core.config, exact=True).squeeze(-1)
