"""Matmul kernels around the matrix unit: blocks of the inner dimension, bias, activation.

Each step rounds as in the kernel: partial sums are rounded to the dtype they are packed in, the matrix unit adds the
bias, the vector unit computes the activation, and the packer rounds the result.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from ttnn_emulator.enums import BLOCK_FLOAT_DTYPES, DataType
from ttnn_emulator.numerics.formats.carriers import bits_of, flush, from_bits, wide
from ttnn_emulator.numerics.functions.apply import Activation, table_of_chain
from ttnn_emulator.numerics.kernels.product_endings import AS_IT_IS, ROUNDED, ending_of, round_in_place
from ttnn_emulator.numerics.kernels.reductions import add_bits
from ttnn_emulator.numerics.programs.products.float32_product import multiply, multiplying
from ttnn_emulator.numerics.units.matrix_unit import (
    BFLOAT16_BITS,
    FLOAT32_BITS,
    TF32_BITS,
    TILE,
    UPPER_HALF,
    MathConfig,
    is_exact,
    matmul,
    seen_bits,
)
from ttnn_emulator.numerics.units.packer import device_pack_block_float, pack

RELU = "relu"
PLAIN = (DataType.BFLOAT16, DataType.FLOAT32)  # output dtypes of the product loops


# tt-metal v0.81.1: ttnn/cpp/ttnn/operations/matmul/device/kernels/compute/bmm_large_block_zm_fused_bias_activation.cpp,
#     kernel_main
@dataclass(frozen=True)
class Kernel:
    """One matmul, prepared.

    math          `inner_block`: tiles per block; `l1_acc`: whether the packer accumulates the sums of blocks
    in0, in1, out dtypes
    between       dtype of partial sums in L1
    through_l1    the last block is packed to L1 like the others, and the sum is reloaded through a source register
    adds_last     the last block is summed separately, then added to the sum of the others
    activation    applied to the destination register; `relu` by the packer
    """

    math: MathConfig
    in0: DataType
    in1: DataType
    out: DataType
    transpose_a: bool = False
    transpose_b: bool = False
    between: DataType = DataType.BFLOAT16
    through_l1: bool = False
    adds_last: bool = False
    activation: Activation | None = None

    def compute(self) -> Callable[..., torch.Tensor]:
        """(in0, in1) or (in0, in1, bias) → the product, packed."""

        def product(a: torch.Tensor, b: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
            bias = None if bias is None else wide(bias)
            a = a if a.dim() > 1 else a.unsqueeze(0)
            a = self._transposed(a) if self.transpose_a else a
            columns, inner = (b.shape[-2:]) if self.transpose_b else (b.shape[-1], b.shape[-2])
            batches = max(a.shape[:-2].numel(), b.shape[:-2].numel())
            if is_exact(batches, a.shape[-2], inner, columns, self.math.fidelity):
                return self._exact(wide(a), wide(b), bias, self._bits)
            return self._fast(a, b, bias)

        return product

    def _transposed(self, a: torch.Tensor) -> torch.Tensor:
        """in0 is transposed by tiles and packed again, so that different block float values share exponents."""
        if self.in0 in BLOCK_FLOAT_DTYPES:
            return device_pack_block_float(a.mT.contiguous(), self.in0)
        return a.mT

    # -- bit-exact ------------------------------------------------------------------------------------------------

    def _exact(
        self, a: torch.Tensor, b: torch.Tensor, bias: torch.Tensor | None, bits: tuple[int, int]
    ) -> torch.Tensor:
        math = self.math
        if self.adds_last and math.l1_acc:
            sums = self._with_last(a, b, bits)
        elif math.l1_acc or not self._changes_between():
            sums = matmul(
                a,
                b,
                math,
                transposed=self.transpose_b,
                all_in_l1=bias is not None or self.through_l1,
                bits=bits,
            )
        else:
            sums = self._spilled(a, b, bits)
        if bias is not None:
            sums = self._with_bias(sums, bias)
        elif self.through_l1 and math.fp32_acc:
            sums = from_bits(bits_of(sums) & int(TF32_BITS))
        return self._finished(sums)

    def _changes_between(self) -> bool:
        """Whether packing a sum to L1 and reloading it changes it."""
        return not self.math.fp32_acc and self.between in BLOCK_FLOAT_DTYPES

    def _spilled(self, a: torch.Tensor, b: torch.Tensor, bits: tuple[int, int]) -> torch.Tensor:
        """Sum blocks in order, each starting from the packed sum of the previous ones."""
        step = (self.math.inner_block or -(-a.shape[-1] // TILE)) * TILE
        whole = replace(self.math, inner_block=None)
        sums: torch.Tensor | None = None
        for at in range(0, a.shape[-1], step):
            right = b[..., at : at + step] if self.transpose_b else b[..., at : at + step, :]
            start = None if sums is None else device_pack_block_float(flush(sums), self.between)
            sums = matmul(a[..., at : at + step], right, whole, transposed=self.transpose_b, start=start, bits=bits)
        assert sums is not None
        return sums

    def _with_last(self, a: torch.Tensor, b: torch.Tensor, bits: tuple[int, int]) -> torch.Tensor:
        step = (self.math.inner_block or 1) * TILE
        last = (a.shape[-1] - 1) // step * step
        before = matmul(a[..., :last], b[..., :last, :], self.math, all_in_l1=True, bits=bits)
        return self._with_bias(before, matmul(a[..., last:], b[..., last:, :], self.math, all_in_l1=True, bits=bits))

    def _with_bias(self, sums: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        """The sum passes through L1; the adder reads it and the bias through the source registers."""
        if not self.math.fp32_acc and not self.math.l1_acc and self.between in BLOCK_FLOAT_DTYPES:
            sums = device_pack_block_float(flush(sums), self.between)
        seen = int(TF32_BITS if self.math.fp32_acc else UPPER_HALF)
        left, right = ((bits_of(values) & seen).numpy().view(np.uint32) for values in (sums, bias))
        total = add_bits(left, right, np.uint32(0), np.uint64(self.math.fp32_acc))
        return torch.from_numpy(total.view(np.float32))

    def _finished(self, sums: torch.Tensor) -> torch.Tensor:
        if self.activation is not None:
            if self.activation.name == RELU:
                sums = torch.where(bits_of(sums) < 0, 0.0, sums)
            else:
                sums = self.activation(sums, fp32_dest=self.math.fp32_acc)
        return pack(sums, self.out, from_fp32=self.math.fp32_acc)

    # -- fast -----------------------------------------------------------------------------------------------------

    @functools.cached_property
    def _bits(self) -> tuple[int, int]:
        """Significant bits of the operands' dtypes."""
        one, other = (FLOAT32_BITS if dtype is DataType.FLOAT32 else BFLOAT16_BITS for dtype in (self.in0, self.in1))
        return one, other

    @functools.cached_property
    def _masks(self) -> tuple[int, int]:
        return seen_bits(self.math, self._bits)

    def _fast(self, a: torch.Tensor, b: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
        right = b.mT if self.transpose_b else b
        ending, table = self._end
        if bias is None or bias.numel() == right.shape[-1]:
            sums = multiply(a, right, masks=self._masks, bias=bias, ending=ending, table=table)
            at_once = self._ends_at_once
        else:
            sums = multiply(a, right, masks=self._masks).add_(bias)
            sums = sums if ending == AS_IT_IS else round_in_place(sums, ending)
            at_once = self._ends_at_once and table is None
        if at_once:
            return sums
        if ending != AS_IT_IS and self.activation is None and self.out in BLOCK_FLOAT_DTYPES:
            return device_pack_block_float(sums, self.out)
        return self._finished(sums)

    def bind(self, carriers: Sequence[torch.Tensor], constant: Sequence[bool]) -> Any:
        """See `Bindable`: products of two matrices whose sums are rounded or returned unchanged."""
        a, b, *rest = carriers
        right = b.mT if self.transpose_b else b
        bias = rest[0] if rest else None
        if self.transpose_a or a.shape[:-2].numel() * right.shape[:-2].numel() != 1:
            return None
        if a.dim() < 2 or is_exact(1, a.shape[-2], right.shape[-2], right.shape[-1], self.math.fidelity):
            return None
        if bias is not None and (bias.numel() != right.shape[-1] or not _is_plain(bias)):
            return None
        ending, table = self._end
        if not self._ends_at_once and (self.activation is not None or self.out not in PLAIN):
            return None
        left, matrix = a.reshape(a.shape[-2:]), right.reshape(right.shape[-2:])
        bound = multiplying(left, matrix, masks=self._masks, bias=bias, ending=ending, table=table)
        return None if bound is None else (bound[0], bound[1].reshape(*a.shape[:-2], *bound[1].shape))

    @functools.cached_property
    def _end(self) -> tuple[int, np.ndarray | None]:
        """How the product loop rounds a sum, and the lookup table of its activation."""
        ending = ending_of(self.activation)
        if self._ends_at_once:
            return (ROUNDED, self._table) if ending is None else (ending, None)
        return (AS_IT_IS if self.math.fp32_acc else ROUNDED), None

    @functools.cached_property
    def _ends_at_once(self) -> bool:
        """Whether the output is a function of the rounded sum."""
        return self.out is DataType.BFLOAT16 and (not self.math.fp32_acc or ending_of(self.activation) is not None)

    @functools.cached_property
    def _table(self) -> np.ndarray:
        assert self.activation is not None
        return table_of_chain((self.activation,), True)


def _is_plain(values: torch.Tensor) -> bool:
    return values.dtype is torch.float32 and values.is_contiguous()
