"""Convolutions as the chip computes them: windows gathered into rows (im2col), multiplied by the matrix unit.

A row is the window of one output pixel, ordered by kernel row, kernel column and channel. It is split into blocks, one
per kernel row and per core that shares the channels; every block is padded to whole tiles. Partial sums are packed to
L1 between blocks.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from ttnn_emulator.enums import BLOCK_FLOAT_DTYPES, DataType
from ttnn_emulator.errors import ChipFault
from ttnn_emulator.numerics.formats.carriers import bits_of, flush, from_bits, in_parts, version_of, wide
from ttnn_emulator.numerics.kernels.product_endings import ending_of, round_at, round_in_place
from ttnn_emulator.numerics.programs.convolution.direct import DirectConvolution
from ttnn_emulator.numerics.programs.convolution.packed_weights import TorchConvolution
from ttnn_emulator.numerics.programs.convolution.windows import Pair, Windows
from ttnn_emulator.numerics.programs.products.matmul import Kernel
from ttnn_emulator.numerics.units.matrix_unit import (
    BFLOAT16_BITS,
    FLOAT32_BITS,
    TF32_BITS,
    TILE,
    MathConfig,
    is_exact,
    matmul,
    operand_bits,
    truncate_mantissa,
)
from ttnn_emulator.numerics.units.packer import device_pack_block_float, pack

TF32_MANTISSA = 11  # bits, including the implicit one


# -- blocks -----------------------------------------------------------------------------------------------------------

PADDING = -1  # column without a source


@dataclass(frozen=True)
class BlockOrder:
    """How rows are split into blocks.

    channels     channels without padding
    per_core     channels per core, including padding
    kernel_rows  every kernel row is a separate block
    chunks       blocks per core's channels (width sharding)
    """

    kernel: Pair
    channels: int
    per_core: int
    cores: int
    kernel_rows: bool = True
    chunks: int = 1

    def columns(self) -> tuple[np.ndarray, int]:
        """The source column of each column of the padded rows, and the tiles per block."""
        high, wide = self.kernel
        taps = np.arange(high * wide).reshape(high, wide)
        width = self.per_core // self.chunks
        groups = taps.reshape(high, 1, wide) if self.kernel_rows else taps.reshape(1, high, wide)
        blocks = []
        for kernel_part in groups:
            for chunk in range(self.chunks):
                for core in range(self.cores):
                    first = core * self.per_core + chunk * width
                    channel = np.arange(first, first + width)
                    index = kernel_part.reshape(-1, 1) * self.channels + channel
                    index = np.where(channel < self.channels, index, PADDING).reshape(-1)
                    blocks.append(np.pad(index, (0, -index.size % TILE), constant_values=PADDING))
        return np.concatenate(blocks), blocks[0].size // TILE


def identity(columns: np.ndarray) -> bool:
    return bool((columns == np.arange(columns.size)).all())


# -- the kernel -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Sums(Kernel):
    """The matmul of a convolution: partial sums have the output's format unless the packer accumulates them in L1.

    They are reloaded through a source register, which keeps 19 bits of a float32.

    untilized  the result passes through L1 and a source register once more, to be untilized
    """

    untilized: bool = False

    def _exact(
        self, a: torch.Tensor, b: torch.Tensor, bias: torch.Tensor | None, bits: tuple[int, int]
    ) -> torch.Tensor:
        if bias is not None:
            return self._finished(self._with_bias(self._sums(a, b, bits, whole=True), bias))
        return self._finished(self._sums(a, b, bits, whole=False))

    def _sums(self, a: torch.Tensor, b: torch.Tensor, bits: tuple[int, int], *, whole: bool) -> torch.Tensor:
        """The final destination register; with L1 accumulation and `whole`, the sum in L1."""
        if self.math.l1_acc:
            if whole or not self.math.fp32_acc:
                return matmul(a, b, self.math, all_in_l1=whole, bits=bits)
            last = (a.shape[-1] - 1) // self._step * self._step
            before = matmul(a[:, :last], b[:last], self.math, all_in_l1=True, bits=bits)
            one = replace(self.math, l1_acc=False, inner_block=None)
            return matmul(a[:, last:], b[last:], one, start=self._reloaded(before), bits=bits)
        if self.math.fp32_acc or self.between in BLOCK_FLOAT_DTYPES:
            return self._spilled(a, b, bits)
        return matmul(a, b, self.math, bits=bits)

    @property
    def _step(self) -> int:
        assert self.math.inner_block is not None
        return self.math.inner_block * TILE

    def _spilled(self, a: torch.Tensor, b: torch.Tensor, bits: tuple[int, int]) -> torch.Tensor:
        one = replace(self.math, inner_block=None)
        sums: torch.Tensor | None = None
        for at in range(0, a.shape[-1], self._step):
            start = None if sums is None else self._reloaded(self._packed(sums))
            sums = matmul(a[:, at : at + self._step], b[at : at + self._step], one, start=start, bits=bits)
        assert sums is not None
        return sums

    def _packed(self, sums: torch.Tensor) -> torch.Tensor:
        return pack(sums, self.between, from_fp32=self.math.fp32_acc)

    def _reloaded(self, packed: torch.Tensor) -> torch.Tensor:
        return from_bits(bits_of(packed) & int(TF32_BITS)) if self.between is DataType.FLOAT32 else packed

    def _with_bias(self, sums: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        return super()._with_bias(sums if self.math.l1_acc else self._packed(sums), bias)

    def _finished(self, sums: torch.Tensor) -> torch.Tensor:
        if not self.untilized:
            return super()._finished(sums)
        packed = replace(self, out=self.between, untilized=False)._finished(sums)
        return pack(self._reloaded(packed), self.out, from_fp32=self.math.fp32_acc)


@dataclass(frozen=True)
class Convolution:
    """One convolution, prepared.

    order      how rows are split into blocks
    out_dtype  also the dtype of the gathered rows
    math       `l1_acc`: the packer accumulates sums of blocks in L1
    untilized  the kernel untilizes its result
    """

    windows: Windows
    order: BlockOrder
    math: MathConfig
    in_dtype: DataType
    weight_dtype: DataType
    out_dtype: DataType
    between: DataType
    out_channels: int
    groups: int = 1
    activation: Any = None
    untilized: bool = False

    def compute(self) -> Callable[..., torch.Tensor]:
        """(input, weights [.., taps × channels, out], bias or None) → [pixels, out]."""
        columns, block = self._columns
        plain = identity(columns)
        index = torch.from_numpy(np.where(columns == PADDING, 0, columns))
        empty = torch.from_numpy(columns == PADDING)
        kernel = _Sums(
            replace(self.math, inner_block=block),
            self.out_dtype,
            self.weight_dtype,
            self.out_dtype,
            between=self.between,
            activation=self.activation,
            untilized=self.untilized,
        )
        product = kernel.compute()
        weights_of, row_of = remembered(self._prepared), remembered(self._bias_for_torch)
        shape, volume = self.windows.images, volume_of(self.windows.images)

        def arranged(values: torch.Tensor, dim: int) -> torch.Tensor:
            if plain:
                return values
            shape = (-1, 1) if dim == 0 else (1, -1)
            return torch.where(empty.reshape(shape), 0.0, values.index_select(dim, index))

        def run(images: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
            images = images.reshape(shape) if images.numel() == volume else images.reshape(-1)[:volume].reshape(shape)
            images = wide(images) if images.is_floating_point() else images.float()
            if self._is_exact:
                rows = self._tilized(arranged(self.windows.rows(images), 1))
                matrix = fitted_matrix(weight.reshape(-1, weight.shape[-1]).float(), self.taps, self.out_channels)
                last = None if bias is None else bias.reshape(1, -1)[:, : self.out_channels].float()
                return product(rows, arranged(matrix, 0), last)
            return self._fast(images, weights_of(weight), None if bias is None else row_of(bias))

        return run

    def bind(self, carriers: Sequence[torch.Tensor | None], constant: Sequence[bool]) -> Any:
        """See `Bindable`: convolutions with constant weights whose sums are only rounded and rectified."""
        images, weight, bias = carriers
        assert images is not None and weight is not None
        if (
            not all(constant[1:])
            or images.dtype is not torch.float32
            or images.numel() != volume_of(self.windows.images)
        ):
            return None
        if self._ending is None or self._image_bits is not None or self._is_exact:
            return None
        filters = self._prepared(weight)
        row = None if bias is None else self._bias_for_torch(bias)
        pixels = images.reshape(self.windows.images)
        out = torch.empty(self._pixels, self.out_channels)
        if self._direct is not None:
            return self._bound_directly(self._direct, pixels, filters, row, out), out
        seen = self.windows.for_torch(pixels) if self.windows.is_plain else None
        target, count, ending = out.data_ptr(), out.numel(), self._ending
        convolve, rest = self._in_torch.call(filters, row)

        def run() -> None:
            result = convolve(self.windows.for_torch(pixels) if seen is None else seen, *rest)
            if not result.is_contiguous(memory_format=torch.channels_last):
                result = result.contiguous(memory_format=torch.channels_last)
            in_parts(round_at, result.data_ptr(), target, count, (4, 4), ending)

        return run, out

    def _bound_directly(
        self,
        direct: DirectConvolution,
        pixels: torch.Tensor,
        filters: torch.Tensor,
        bias: torch.Tensor | None,
        out: torch.Tensor,
    ) -> Callable[[], None]:
        in_place = not any(self.windows.padding) and self.windows.spread == (1, 1) and direct.dtype is pixels.dtype
        padded = pixels if in_place else torch.zeros(direct.images, dtype=direct.dtype)
        assert self._ending is not None
        convolve = direct.binding(padded, filters, bias, out, self._ending)

        def run(alive: Any = (filters, bias)) -> None:
            if padded is not pixels:
                self.windows.pad_into(padded, pixels)
            convolve()

        return run

    @functools.cached_property
    def _pixels(self) -> int:
        return self.windows.images[0] * self.windows.size[0] * self.windows.size[1]

    @functools.cached_property
    def _columns(self) -> tuple[np.ndarray, int]:
        return self.order.columns()

    @property
    def _is_exact(self) -> bool:
        return is_exact(1, self._pixels, self._columns[0].size, self.out_channels, self.math.fidelity)

    @functools.cached_property
    def _ending(self) -> int | None:
        """How sums become the output if they are only rounded and rectified, else None."""
        return ending_of(self.activation) if self.out_dtype is DataType.BFLOAT16 else None

    @property
    def _image_bits(self) -> int | None:
        """Mantissa bits of the images that the matrix unit reads, if they have more; else None."""
        bits = FLOAT32_BITS if self.in_dtype is DataType.FLOAT32 else BFLOAT16_BITS
        seen = operand_bits(self.math.fidelity, self.math.fp32_acc)[0]
        return seen if seen < bits else None

    @property
    def taps(self) -> int:
        return self.order.kernel[0] * self.order.kernel[1] * self.order.channels

    def _tilized(self, rows: torch.Tensor) -> torch.Tensor:
        """Gathered rows, tilized to the output's dtype."""
        if self.out_dtype is DataType.FLOAT32:
            return rows
        if self.out_dtype in BLOCK_FLOAT_DTYPES:
            return device_pack_block_float(flush(rows), self.out_dtype)
        return pack(rows, DataType.BFLOAT16, from_fp32=self.math.fp32_acc)

    def _matrix(self, weight: torch.Tensor) -> torch.Tensor:
        """Weights [taps, out], truncated to the bits that the matrix unit reads."""
        matrix = fitted_matrix(weight.reshape(-1, weight.shape[-1]).float(), self.taps, self.out_channels)
        bits = FLOAT32_BITS if self.weight_dtype is DataType.FLOAT32 else BFLOAT16_BITS
        seen = operand_bits(self.math.fidelity, self.math.fp32_acc)[1]
        return truncate_mantissa(matrix, seen) if seen < bits else matrix

    @functools.cached_property
    def _direct(self) -> DirectConvolution | None:
        """The compiled loops, if they apply to this convolution."""
        if self.groups > 1 or self._ending is None or self._image_bits is not None:
            return None
        direct = self.windows.directly(self.out_channels, narrow=self.weight_dtype is not DataType.FLOAT32)
        return direct if direct.is_fit else None

    def _prepared(self, weight: torch.Tensor) -> torch.Tensor:
        return self._weight_for_torch(weight) if self._direct is None else self._direct.packed(self._matrix(weight))

    def _weight_for_torch(self, weight: torch.Tensor) -> torch.Tensor:
        """Weights [out, in / groups, rows, columns] for torch's convolution, packed."""
        high, across = self.order.kernel
        channels, out, groups = self.order.channels, self.out_channels, self.groups
        matrix = self._matrix(weight)
        convolution = self._in_torch
        if self._groups_in_torch > 1:
            parts = matrix.reshape(high, across, groups, channels // groups, groups, out // groups)
            each = parts.diagonal(dim1=2, dim2=4)  # [rows, columns, in, out, groups]
            filters = each.permute(4, 3, 2, 0, 1).reshape(out, channels // groups, high, across).contiguous()
            return convolution.packed(filters)
        filters = matrix.reshape(high, across, channels, out).permute(3, 2, 0, 1)
        return convolution.packed(filters.contiguous(memory_format=torch.channels_last))

    @functools.cached_property
    def _in_torch(self) -> TorchConvolution:
        return self.windows.in_torch(self._groups_in_torch)

    @property
    def _groups_in_torch(self) -> int:
        divides = self.order.channels % self.groups == 0 and self.out_channels % self.groups == 0
        return self.groups if divides else 1  # then the weights are zero for the other groups

    def _bias_for_torch(self, bias: torch.Tensor) -> torch.Tensor:
        return bias.reshape(-1)[: self.out_channels].float()

    def _fast(self, images: torch.Tensor, filters: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
        if self.out_dtype in BLOCK_FLOAT_DTYPES:
            images = device_pack_block_float(flush(images), self.out_dtype)
        if self._direct is not None:
            out = torch.empty(self._pixels, self.out_channels)
            self._bound_directly(self._direct, images.contiguous(), filters, bias, out)()
            return out
        if self._image_bits is not None:
            images = truncate_mantissa(images, self._image_bits)
        result = self._in_torch(self.windows.for_torch(images), filters, bias)
        sums = result.permute(0, 2, 3, 1).reshape(-1, self.out_channels)
        if self._ending is not None:
            return round_in_place(sums, self._ending)
        if not self.math.fp32_acc:
            sums = round_in_place(sums)
        result = finished(sums, self.activation, self.out_dtype, self.math.fp32_acc)
        if self.untilized and self.out_dtype is DataType.FLOAT32:
            return truncate_mantissa(result, TF32_MANTISSA)
        return result


def finished(sums: torch.Tensor, activation: Any, dtype: DataType, fp32: bool) -> torch.Tensor:
    """Destination register → activation → packer."""
    if activation is not None:
        sums = sums.clamp(min=0.0) if activation.name == "relu" else activation(sums, fp32_dest=fp32)
    return pack(sums, dtype, from_fp32=fp32)


def fitted_matrix(matrix: torch.Tensor, rows: int, columns: int) -> torch.Tensor:
    """Prepared weights; surplus output channels are dropped."""
    if matrix.shape[0] != rows and matrix.any():
        raise ChipFault(
            f"the weights were prepared with {matrix.shape[0]} rows, but this convolution reads {rows}",
            hint="Prepare the weights for this convolution.",
        )
    return matrix[:rows, :columns] if matrix.shape[0] >= rows else matrix.new_zeros(rows, columns)


def volume_of(shape: tuple[int, ...]) -> int:
    return int(np.prod(shape, dtype=np.int64))


def remembered(make: Callable[[torch.Tensor], torch.Tensor]) -> Callable[[torch.Tensor], torch.Tensor]:
    """`make` with a cache per input tensor, valid while the tensor is alive and unchanged.

    Several convolutions of a model share one program, with different weights.
    """
    cache: dict[int, tuple[weakref.ref, int, torch.Tensor]] = {}

    def recall(values: torch.Tensor) -> torch.Tensor:
        key = id(values)
        entry = cache.get(key)
        if entry is not None and entry[0]() is values and entry[1] == version_of(values):
            return entry[2]
        result = make(values)
        cache[key] = weakref.ref(values, lambda _: cache.pop(key, None)), version_of(values), result
        return result

    return recall
