"""The compute core, which drives the matrix unit, the vector unit, the unpackers and the packer.

Operands are read from source registers, results are written to a destination register of 16 or 32 bits, and
intermediates are stored in L1 in the format of a circular buffer. `Core` has a method for each of these steps; programs
call them in the order of the card's kernels. Every step is bit-exact for small tensors; larger ones run the same steps
in float32.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from ttnn_emulator.enums import DataType
from ttnn_emulator.numerics.broadcasting import of_one_shape
from ttnn_emulator.numerics.formats.carriers import round_bf16_nearest_even, truncate_bf16
from ttnn_emulator.numerics.functions.apply import apply_function
from ttnn_emulator.numerics.kernels.reductions import add_all
from ttnn_emulator.numerics.mode import exactly
from ttnn_emulator.numerics.native.worker_threads import cut, share
from ttnn_emulator.numerics.units import reductions as numeric
from ttnn_emulator.numerics.units import vector_unit
from ttnn_emulator.numerics.units.matrix_unit import PHASES, MathConfig, truncate_mantissa
from ttnn_emulator.numerics.units.packer import pack

SIGN = np.uint32(0x80000000)


@dataclass(frozen=True)
class Core:
    """The compute core as a kernel configures it. `exact` is decided once per call, by the size of the tensor."""

    config: MathConfig
    exact: bool = True
    buffers: DataType | None = None  # the format of intermediate buffers, unless it follows the registers

    @classmethod
    def of(cls, config: MathConfig, elements: int, buffers: DataType | None = None) -> Core:
        return cls(config, exactly(elements * 2 * numeric.PASS * PHASES[config.fidelity]), buffers)

    @property
    def wide(self) -> bool:
        """Whether the destination register has 32 bits per value."""
        return self.config.fp32_acc

    @property
    def middle(self) -> DataType:
        """The format of intermediate buffers: float32 if the destination register is as wide, else bfloat16."""
        if self.buffers is not None:
            return self.buffers
        return DataType.FLOAT32 if self.wide else DataType.BFLOAT16

    def source(self, values: torch.Tensor, dtype: DataType) -> torch.Tensor:
        """Unpacked into a source register: float32 keeps 11 mantissa bits, or 8 with a 16-bit destination."""
        if dtype is not DataType.FLOAT32:
            return values
        return truncate_mantissa(values, 11 if self.wide else 8)

    def packed(self, dest: torch.Tensor, dtype: DataType) -> torch.Tensor:
        """Packed into a buffer."""
        if not self.exact and dtype is DataType.BFLOAT16:
            return round_bf16_nearest_even(dest)
        return pack(dest, dtype, from_fp32=self.wide)

    def through(self, dest: torch.Tensor, dtype: DataType | None = None) -> torch.Tensor:
        """A result packed into a buffer, by default an intermediate one, and unpacked into a source register."""
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
        out = torch.empty(a.shape)
        end = (_bits(a), _bits(b), flip, starts, self.wide, _bits(out))
        share(add_all, [(*part, *end) for part in cut(out.numel(), numeric.ONE_WORKER)])
        return out

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
            result = torch.from_numpy(np.asarray(getattr(vector_unit, name)(left, right)))
        else:
            result = getattr(torch, name)(a, b)
        return result if self.wide else round_bf16_nearest_even(result)

    def apply(self, name: str, dest: torch.Tensor, *params: float, approx: bool = False) -> torch.Tensor:
        return apply_function(name, dest, *params, approx=approx, fp32_dest=self.wide)


def _bits(values: torch.Tensor) -> np.ndarray:
    """Bit patterns as a flat array."""
    return values.contiguous().view(torch.int32).numpy().view(np.uint32).reshape(-1)


@dataclass(frozen=True)
class Operand:
    """A tensor operand and its dtype in memory."""

    values: torch.Tensor
    dtype: DataType
