"""Kernels that go back and forth between the matrix unit, the vector unit and circular buffers: softmax and norms.

A value takes part in a product or sum as a source register holds it, arises in a destination register of 16 or 32
bits, and waits in L1 in the format of a circular buffer. `Core` has a word for each of these steps; the kernels below
are written with them in the order in which the card's kernels run. While the tensor is small every step is bit-true,
beyond that the same steps run in float32.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from ttnn_emulator.enums import DataType
from ttnn_emulator.numerics.broadcasting import of_one_shape
from ttnn_emulator.numerics.formats.carriers import pack, round_bf16_nearest_even, truncate_bf16
from ttnn_emulator.numerics.functions.apply import apply_function
from ttnn_emulator.numerics.kernels import normalization as kernels
from ttnn_emulator.numerics.kernels.reductions import add_all
from ttnn_emulator.numerics.mode import exactly
from ttnn_emulator.numerics.native.threaded_copies import contiguous
from ttnn_emulator.numerics.native.worker_threads import cut, share
from ttnn_emulator.numerics.units import reductions as numeric
from ttnn_emulator.numerics.units import vector_unit
from ttnn_emulator.numerics.units.matrix_unit import PHASES, MathConfig, truncate_mantissa

SIGN = np.uint32(0x80000000)
NO_ROWS = np.zeros((1, 0), np.float32)
ONE_WORKER = 1 << 18  # values of rows below which waking a thread takes longer than it saves


@dataclass(frozen=True)
class Core:
    """The compute core as a kernel configures it. `exact` is decided once a call, by the size of the tensor."""

    config: MathConfig
    exact: bool = True
    buffers: DataType | None = None  # the format of intermediate buffers, if it does not follow the registers

    @classmethod
    def of(cls, config: MathConfig, elements: int, buffers: DataType | None = None) -> Core:
        return cls(config, exactly(elements * 2 * numeric.PASS * PHASES[config.fidelity]), buffers)

    @property
    def wide(self) -> bool:
        """Whether the destination register holds 32 bits a value."""
        return self.config.fp32_acc

    @property
    def middle(self) -> DataType:
        """The format of intermediate buffers: float32 if the destination register is as wide, else bfloat16."""
        if self.buffers is not None:
            return self.buffers
        return DataType.FLOAT32 if self.wide else DataType.BFLOAT16

    def source(self, values: torch.Tensor, dtype: DataType) -> torch.Tensor:
        """What the unpacker puts into a source register: of a float32 11 bits, or 8 with a 16-bit destination."""
        if dtype is not DataType.FLOAT32:
            return values
        return truncate_mantissa(values, 11 if self.wide else 8)

    def packed(self, dest: torch.Tensor, dtype: DataType) -> torch.Tensor:
        """What the packer writes into a buffer."""
        if not self.exact and dtype is DataType.BFLOAT16:
            return round_bf16_nearest_even(dest)
        return pack(dest, dtype, from_fp32=self.wide)

    def through(self, dest: torch.Tensor, dtype: DataType | None = None) -> torch.Tensor:
        """A result on its way through a buffer, by default an intermediate one, back into a source register."""
        kept = dtype or self.middle
        return self.source(self.packed(dest, kept), kept)

    # -- the matrix unit --------------------------------------------------------------------------------------------

    def add(self, a: torch.Tensor, b: torch.Tensor, dest: torch.Tensor | None = None) -> torch.Tensor:
        return self._sum(a, b, np.uint32(0), dest)

    def sub(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return self._sum(a, b, SIGN, None)

    def _sum(self, a: torch.Tensor, b: torch.Tensor, flip: np.uint32, dest: torch.Tensor | None) -> torch.Tensor:
        if not self.exact:
            total = a - b if flip else a + b
            return total if dest is None else total + dest
        a, b = of_one_shape(a, b)
        starts = np.empty(0, np.uint32) if dest is None else _bits(dest.expand(a.shape))
        made = torch.empty(a.shape)
        end = (_bits(a), _bits(b), flip, starts, self.wide, _bits(made))
        share(add_all, [(*part, *end) for part in cut(made.numel(), numeric.ONE_WORKER)])
        return made

    def mul(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return numeric.multiply(a, b, self.config, exact=self.exact)

    def row_sums(self, values: torch.Tensor, scaler: float = 1.0) -> torch.Tensor:
        """[..., W] → [..., 1]."""
        return numeric.row_sums(values, scaler, self.config, exact=self.exact).unsqueeze(-1)

    def column_sums(self, values: torch.Tensor, scaler: float = 1.0) -> torch.Tensor:
        """[..., H, W] → [..., 1, W]."""
        return numeric.column_sums(values, scaler, self.config, exact=self.exact).unsqueeze(-2)

    # -- the vector unit --------------------------------------------------------------------------------------------

    def scaled(self, dest: torch.Tensor, factor: float) -> torch.Tensor:
        """The destination register times a float32."""
        number = np.float32(factor)
        if self.exact:
            product = torch.from_numpy(np.asarray(vector_unit.mul(dest.contiguous().numpy(), number)))
        else:
            product = dest * number.item()
        return product if self.wide else truncate_bf16(product)

    def vector(self, name: str, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        """`add`, `sub` or `mul` of two destination registers."""
        if self.exact:
            left, right = (each.contiguous().numpy() for each in of_one_shape(a, b))
            made = torch.from_numpy(np.asarray(getattr(vector_unit, name)(left, right)))
        else:
            made = getattr(torch, name)(a, b)
        return made if self.wide else round_bf16_nearest_even(made)

    def apply(self, name: str, dest: torch.Tensor, *params: float, approx: bool = False) -> torch.Tensor:
        return apply_function(name, dest, *params, approx=approx, fp32_dest=self.wide)


def _bits(values: torch.Tensor) -> np.ndarray:
    """Bit patterns, one after the other."""
    return values.contiguous().view(torch.int32).numpy().view(np.uint32).reshape(-1)


# -- layer norm and RMS norm ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Operand:
    """A tensor of a kernel and the dtype in which it lies in memory."""

    values: torch.Tensor
    dtype: DataType


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
    """The last dimension brought to unit variance, `centred` also to zero mean, then × weight + bias.

    `block` is the width of a shard: every core takes the mean of its own, and one core the mean of those. `line` is how
    many cores stand in line where the kernel adds in two stages: one core of every line, then the first of them over
    its own line and the sums of the others. `unit_rows` takes the place of all steps before the weight: another
    kernel's way to them, bit for bit.
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
        made = unit_rows(core)
    else:
        if centred:
            values = core.through(core.sub(values, core.through(_mean(core, values, block, line))))
        variance = core.through(_mean(core, core.through(core.mul(values, values)), block, line))
        shifted = core.add(variance, torch.tensor(numeric.scaler_of(epsilon)))
        inverse = core.through(core.apply("rsqrt", shifted, approx=config.approx))
        made = core.mul(values, inverse)
    for step, operand in ((core.mul, weight), (core.add, bias)):
        if operand is not None:
            made = step(core.through(made), core.source(operand.values, operand.dtype))
    if activation is not None:
        made = activation(made, core.wide)
    return core.packed(made, x.dtype)


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
    """Run a compiled kernel over the rows and pack what it leaves."""
    rows = _rows(values)
    made = np.empty_like(rows)
    end = (rows, *operands, made, *arguments, dtype is DataType.BFLOAT16)
    share(kernel, [(*part, *end) for part in cut(rows.shape[0], max(ONE_WORKER // max(rows.shape[1], 1), 1))])
    result = torch.from_numpy(made).reshape(values.shape)
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
    """Columns side by side, each the first of a tile."""
    return torch.cat([torch.nn.functional.pad(each, (0, numeric.TILE - 1)) for each in columns], -1)


# -- norms of rows that several devices share -------------------------------------------------------------------------


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
    """Of shards `block` wide the mean of squares in a tile's column 0, if `centred` after a tile with the mean.

    The second result is what they are means of: with a residual, the sum that the kernel leaves in place of the input.
    """
    core = Core.of(config, x.values.numel())
    kept = x.values
    if residual is not None:
        added = core.add(core.source(x.values, x.dtype), core.source(residual.values, residual.dtype))
        kept = core.packed(added, x.dtype)
    values = core.source(kept, x.dtype)
    means = [_mean(core, core.through(core.mul(values, values)), block, line)]
    if centred:
        means.insert(0, _mean(core, values, block, line))
    return core.packed(_tiles_of(means), dtype), kept


def row_statistics(
    x: Operand,
    config: MathConfig,
    dtype: DataType,
    *,
    centred: bool,
    residual: Operand | None = None,
    accurate: bool,
) -> torch.Tensor:
    """The sum of squares in column 0 of a tile and, if `centred`, the sum in column 0 of the next."""
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
    """The norm of rows by what each device found of its part, side by side; `of_means`: by `shard_statistics`."""
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
    made = core.mul(values, inverse)
    for apply, operand in ((core.mul, weight), (core.add, bias)):
        if operand is not None:
            made = apply(core.through(made), core.source(operand.values, operand.dtype))
    return core.packed(made, dtype)


# -- batch norm -------------------------------------------------------------------------------------------------------


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
    """(x - mean) ÷ √(variance + epsilon) × weight + bias: by the vector unit in 32 bits, else by the matrix unit."""
    core = Core.of(config, x.values.numel())
    given = [each for each in (x, mean, variance, weight, bias) if each is not None]
    wide = any(each.dtype is DataType.FLOAT32 for each in given) or dtype is DataType.FLOAT32
    shift = torch.tensor(epsilon)
    if not wide:
        shift = round_bf16_nearest_even(shift)
    middle = DataType.FLOAT32 if wide else DataType.BFLOAT16
    if core.wide or wide:
        inverse = core.packed(
            core.apply("rsqrt", core.vector("add", variance.values, shift), approx=config.approx), middle
        )
        made = core.vector("mul", core.vector("sub", x.values, mean.values), inverse)
        made = made if weight is None else core.vector("mul", made, weight.values)
        made = made if bias is None else core.vector("add", made, bias.values)
        return core.packed(made, dtype)
    inverse = core.through(core.apply("rsqrt", core.add(variance.values, shift), approx=config.approx), middle)
    made = core.mul(core.sub(x.values, mean.values), inverse)
    made = made if weight is None else core.mul(made, weight.values)
    made = made if bias is None else core.add(made, bias.values)
    return core.packed(made, dtype)


def running_statistic(old: Operand, batch: Operand, config: MathConfig, momentum: float) -> torch.Tensor:
    """(1 - momentum) × old + momentum × batch."""
    core = Core.of(config, old.values.numel())
    wide = DataType.FLOAT32 in (old.dtype, batch.dtype)
    share = torch.tensor(momentum) if wide else round_bf16_nearest_even(torch.tensor(momentum))
    kept = core.vector("mul", core.vector("sub", torch.ones(()), share), old.values)
    return core.packed(core.vector("add", kept, core.vector("mul", share, batch.values)), old.dtype)
