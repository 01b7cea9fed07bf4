"""Depthwise convolutions, and the matrix unit's adder, which they share with products."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

from ttnn_emulator.enums import BLOCK_FLOAT_DTYPES, DataType
from ttnn_emulator.numerics.broadcasting import shape_of
from ttnn_emulator.numerics.formats.carriers import bits_of, flush, from_bits
from ttnn_emulator.numerics.kernels.depthwise_convolution import accumulate_products
from ttnn_emulator.numerics.kernels.elementwise import add_16bit, add_32bit
from ttnn_emulator.numerics.kernels.product_endings import round_in_place
from ttnn_emulator.numerics.mode import exactly
from ttnn_emulator.numerics.programs.convolution.convolution import Windows, finished, fitted_matrix, volume_of
from ttnn_emulator.numerics.units import vector_unit
from ttnn_emulator.numerics.units.matrix_unit import PHASES, TF32_BITS, UPPER_HALF, MathConfig
from ttnn_emulator.numerics.units.packer import device_pack_block_float, pack


# tt-metal v0.81.1: ttnn/cpp/ttnn/operations/conv/conv2d/device/kernels/compute_depthwise_conv1d.cpp, kernel_main
@dataclass(frozen=True)
class Depthwise:
    """A 1D depthwise convolution: taps are multiplied and accumulated one by one, without sums over channels.

    whole_window  all taps are accumulated in the destination register; else each product is packed and added
    """

    windows: Windows
    math: MathConfig
    in_dtype: DataType
    weight_dtype: DataType
    out_dtype: DataType
    channels: int
    repeats: int  # rows of the prepared weights for each tap
    whole_window: bool

    def compute(self) -> Callable[..., torch.Tensor]:
        taps = self.windows.kernel[0] * self.windows.kernel[1]
        all_wide = {self.in_dtype, self.weight_dtype, self.out_dtype} == {DataType.FLOAT32}
        add = self._add_on_vector_unit if all_wide else self._add_on_matrix_unit

        def run(images: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
            images = images.reshape(-1)[: volume_of(self.windows.images)].reshape(self.windows.images).float()
            matrix = fitted_matrix(weight.reshape(-1, weight.shape[-1]).float(), self.repeats * taps, self.channels)
            each = matrix[:: self.repeats]
            rows = self.windows.rows(images).reshape(-1, taps, self.channels)
            if not exactly(rows.numel() * PHASES[self.math.fidelity]):
                return finished(round_in_place((rows * each).sum(1)), None, self.out_dtype, self.math.fp32_acc)
            if self.out_dtype in BLOCK_FLOAT_DTYPES:
                rows = device_pack_block_float(flush(rows), self.out_dtype)
            return add(rows, each)

        return run

    def _add_on_matrix_unit(self, rows: torch.Tensor, each: torch.Tensor) -> torch.Tensor:
        phases, fp32 = PHASES[self.math.fidelity], self.math.fp32_acc
        keep = int(TF32_BITS if fp32 else UPPER_HALF)
        before: torch.Tensor | None = None
        sums = np.zeros(rows.shape[0] * self.channels, np.int64)
        for tap in range(each.shape[0]):
            if not self.whole_window:
                sums = np.zeros_like(sums)
            left, right = (_patterns(values, keep) for values in (rows[:, tap], each[tap].expand(rows.shape[0], -1)))
            accumulate_products(left, right, phases, fp32, sums)
            if self.whole_window:
                continue
            product = _floats(sums, rows.shape[0])
            if before is not None:
                product = added(before, product, fp32=fp32)
            before = pack(product, self.out_dtype, from_fp32=fp32)
        return pack(_floats(sums, rows.shape[0]), self.out_dtype, from_fp32=fp32) if before is None else before

    def _add_on_vector_unit(self, rows: torch.Tensor, each: torch.Tensor) -> torch.Tensor:
        total = None
        for tap in range(each.shape[0]):
            product = vector_unit.mul(rows[:, tap].contiguous().numpy(), each[tap].numpy())
            total = product if total is None else vector_unit.add(total, product)
        return torch.from_numpy(np.ascontiguousarray(total, np.float32))


def _patterns(values: torch.Tensor, keep: int) -> np.ndarray:
    return (bits_of(values) & keep).reshape(-1).numpy().astype(np.int64) & 0xFFFFFFFF


def _floats(sums: np.ndarray, rows: int) -> torch.Tensor:
    return torch.from_numpy(sums.astype(np.uint32).view(np.float32)).reshape(rows, -1)


def added(a: torch.Tensor, b: torch.Tensor, *, fp32: bool) -> torch.Tensor:
    """a + b by the matrix unit, in a 16- or 32-bit destination register."""
    keep = int(TF32_BITS if fp32 else UPPER_HALF)
    shape = shape_of(a, b)
    left, right = ((bits_of(values.expand(shape)) & keep).reshape(-1).numpy() for values in (a, b))
    out = np.empty(left.size, np.int32)
    (add_32bit if fp32 else add_16bit)(left, right, np.int32(0), out)
    return from_bits(torch.from_numpy(out)).reshape(shape)
