"""Layer norm, group norm and their gradients, and the gradient of softmax, as the `moreh` kernels compute them.

The values of one norm are a block of tiles. The kernels add all tiles of a block into one and reduce it: along rows if
only the last dimension is normalised, else to a scalar.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from ttnn_emulator.enums import DataType
from ttnn_emulator.numerics.programs.moreh.sums_and_powers import BF16, TILE, chained, scalar, scalar_total
from ttnn_emulator.numerics.units import reductions as numeric
from ttnn_emulator.numerics.units.compute_core import Core
from ttnn_emulator.numerics.units.matrix_unit import MathConfig


@dataclass(frozen=True)
class Blocks:
    """Values of `shape` as norms over their last `dims` dimensions; `rows`: only over the last one.

    Blocks are [norms, ..., height, width], rows [norms, width].
    """

    shape: tuple[int, ...]
    dims: int

    @property
    def rows(self) -> bool:
        return self.dims == 1

    @property
    def count(self) -> int:
        return math.prod(self.shape[-self.dims :])

    def of(self, values: torch.Tensor) -> torch.Tensor:
        """Values of the whole shape."""
        return values.reshape(-1, *self.shape[-self.dims :])

    def statistic(self, values: torch.Tensor) -> torch.Tensor:
        """One value per norm, in a shape that broadcasts."""
        return values.reshape(-1, *(1,) * self.dims)

    def total(self, core: Core, values: torch.Tensor, scaler: float) -> torch.Tensor:
        """The sum of each norm: its tiles added into one, which is reduced; in a shape that broadcasts."""
        if self.rows:
            tiles = torch.nn.functional.pad(values, (0, -values.shape[-1] % TILE)).unflatten(-1, (-1, TILE))
            return core.row_sums(chained(core, list(tiles.unbind(-2))), scaler)
        return self.statistic(scalar_total(core, chained(core, list(tiles_of(values).unbind(1))), scaler))

    @property
    def mean_scaler(self) -> float:
        return numeric.scaler_of(1.0 / self.count if self.rows else 1.0 / math.sqrt(self.count))


def tiles_of(values: torch.Tensor) -> torch.Tensor:
    """[norms, ..., height, width] → [norms, tiles, 32, 32], padded with zeros."""
    height, width = values.shape[-2:]
    planes = torch.nn.functional.pad(values, (0, -width % TILE, 0, -height % TILE))
    tiles = planes.unflatten(-1, (-1, TILE)).unflatten(-3, (-1, TILE)).transpose(-3, -2)
    return tiles.reshape(values.shape[0], -1, TILE, TILE)


# -- forward ----------------------------------------------------------------------------------------------------------


# tt-metal v0.81.1: ttnn/cpp/ttnn/operations/moreh/moreh_layer_norm/device/kernels/moreh_layer_norm_small_kernel.cpp,
#     kernel_main
def block_norm(
    x: torch.Tensor,
    blocks: Blocks,
    config: MathConfig,
    epsilon: float,
    weight: torch.Tensor | None,
    bias: torch.Tensor | None,
    *,
    buffers: DataType | None = None,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Normalised values, means and reciprocal standard deviations. Weight and bias broadcast to blocks."""
    core = Core.of(config, x.numel(), buffers)
    values = blocks.of(x)
    mean = core.packed(blocks.total(core, values, blocks.mean_scaler), core.middle)
    centred = core.through(core.sub(values, core.source(mean, core.middle)))
    squares = core.through(core.mul(centred, centred))
    variance = core.through(blocks.total(core, squares, blocks.mean_scaler))
    shifted = core.add(variance, scalar(core, epsilon, BF16))
    inverse = core.packed(core.apply("rsqrt", shifted, approx=config.approx), core.middle)
    result = core.mul(centred, core.source(inverse, core.middle))
    for step, operand in ((core.mul, weight), (core.add, bias)):
        if operand is not None:
            result = step(core.through(result), operand)
    return core.packed(result, BF16).reshape(x.shape), _stored(core, mean), _stored(core, inverse)


def _stored(core: Core, statistic: torch.Tensor) -> torch.Tensor:
    """An intermediate copied to a buffer of the output's dtype."""
    return core.packed(core.source(statistic, core.middle), BF16)


# -- backward ---------------------------------------------------------------------------------------------------------


# tt-metal v0.81.1: ttnn/cpp/ttnn/operations/moreh/moreh_layer_norm_backward/device/kernels/moreh_layer_norm_backward_input_grad_small_kernel.cpp, kernel_main  # noqa: E501
def block_norm_input_gradient(
    gradient: torch.Tensor,
    x: torch.Tensor,
    mean: torch.Tensor,
    inverse: torch.Tensor,
    blocks: Blocks,
    config: MathConfig,
    weight: torch.Tensor | None,
) -> torch.Tensor:
    """((n·dy - Σdy) - y·Σ(y·dy)) × inverse ÷ n, with dy = gradient × weight."""
    core = Core.of(config, x.numel())
    factor = blocks.statistic(inverse)
    normal = core.through(core.mul(_centred(core, x, mean, blocks), factor))
    dy = blocks.of(gradient)
    if weight is not None:
        dy = core.through(core.mul(dy, weight))
    sums = [core.through(blocks.total(core, each, 1.0)) for each in (dy, core.through(core.mul(normal, dy)))]
    count = scalar(core, float(blocks.count), BF16)
    share = core.through(core.mul(scalar(core, 1.0 / blocks.count, BF16), factor))
    difference = core.through(core.sub(core.through(core.mul(count, dy)), sums[0]))
    rest = core.through(core.sub(difference, core.through(core.mul(normal, sums[1]))))
    return core.packed(core.mul(rest, share), BF16).reshape(x.shape)


# tt-metal v0.81.1: ttnn/cpp/ttnn/operations/moreh/moreh_layer_norm_backward/device/kernels/moreh_layer_norm_backward_gamma_beta_grad_kernel.cpp, kernel_main  # noqa: E501
def block_norm_weight_gradients(
    gradient: torch.Tensor,
    x: torch.Tensor,
    mean: torch.Tensor,
    inverse: torch.Tensor,
    blocks: Blocks,
    config: MathConfig,
    channels: int | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """The gradients of weight and bias: Σ y·dy and Σ dy over all norms; for group norm, per channel."""
    core = Core.of(config, x.numel())
    normal = core.through(core.mul(_centred(core, x, mean, blocks), blocks.statistic(inverse)))
    dy = blocks.of(gradient)
    products = core.through(core.mul(normal, dy))
    return _over_norms(core, products, blocks, channels), _over_norms(core, dy, blocks, channels)


def _over_norms(core: Core, values: torch.Tensor, blocks: Blocks, channels: int | None) -> torch.Tensor:
    if channels is not None:  # group norm: one plane per channel, summed over the batch
        planes = values.reshape(-1, channels, *blocks.shape[-2:]).transpose(0, 1)
        return core.packed(scalar_total(core, chained(core, list(tiles_of(planes).unbind(1)))), BF16)
    if not blocks.rows:
        return core.packed(chained(core, list(values.unbind(0))), BF16)
    tiles = torch.nn.functional.pad(values, (0, 0, 0, -values.shape[0] % TILE)).unflatten(0, (-1, TILE))
    return core.packed(core.column_sums(chained(core, list(tiles.unbind(0)))), BF16)


def _centred(core: Core, x: torch.Tensor, mean: torch.Tensor, blocks: Blocks) -> torch.Tensor:
    return core.through(core.sub(blocks.of(x), blocks.statistic(mean)))


# -- softmax ----------------------------------------------------------------------------------------------------------


# tt-metal v0.81.1: ttnn/cpp/ttnn/operations/moreh/moreh_softmax_backward/device/kernels/moreh_softmax_backward_w.cpp,
#     kernel_main
def softmax_gradient(
    y: torch.Tensor,
    gradient: torch.Tensor,
    dim: int,
    dtype: DataType,
    config: MathConfig,
    *,
    negative: bool,
    logarithm: bool,
    in_pieces: bool,
) -> torch.Tensor:
    """±(dy - Σ y·dy) × y, or for log-softmax dy - Σ dy × exp(y), along the negative dimension `dim`."""
    core = Core.of(config, y.numel())
    middle = core.middle if core.wide else dtype
    outer = dim < -2  # there the kernel swaps its operands, whose fidelity phases round differently
    if logarithm:
        total = core.through(_line_sum(core, gradient, dim, middle, in_pieces, apart=True), middle)
        powers = core.through(core.apply("exp", y), middle)
        share = core.mul(total, powers) if outer else core.mul(powers, total)
        return core.packed(core.sub(gradient, core.through(share, middle)), dtype)
    products = core.through(core.mul(y, gradient), middle)
    total = core.through(_line_sum(core, products, dim, middle, in_pieces), middle)
    rest = core.through(core.sub(gradient, total), middle)
    result = core.mul(rest, y) if outer else core.mul(y, rest)
    return core.packed(-result if negative else result, dtype)


def _line_sum(
    core: Core, values: torch.Tensor, dim: int, middle: DataType, in_pieces: bool, apart: bool = False
) -> torch.Tensor:
    """The sum along `dim`; `apart`: the last tile is reduced separately and added."""
    if dim < -2:
        return chained(core, list(values.unbind(dim)), middle).unsqueeze(dim)
    sums = core.row_sums if dim == -1 else core.column_sums
    padding = [0, 0] * (-dim - 1) + [0, -values.shape[dim] % TILE]
    tiles = torch.nn.functional.pad(values, padding).unflatten(dim, (-1, TILE))
    if in_pieces:
        return sums(chained(core, list(tiles.unbind(dim - 1)), middle))
    head = (values.shape[dim] - 1) // TILE * TILE
    if not apart or not head:
        return sums(values)
    first, last = values.split([head, values.shape[dim] - head], dim)
    return core.add(core.through(sums(first), middle), core.through(sums(last), middle))
