"""Convolutions as the chip computes them: windows gathered into rows, and the matrix unit.

A row holds the window of one output pixel: kernel rows, in them kernel columns, in them channels. It is cut into
blocks, one for each kernel row and each core that shares the channels, and every block is padded to whole tiles. Sums
of blocks are packed to L1 between them.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch.nn.functional import pad

from ttnn_emulator.enums import BLOCK_FLOAT_DTYPES, DataType
from ttnn_emulator.errors import ChipFault
from ttnn_emulator.numerics.conv_kernels import round_at
from ttnn_emulator.numerics.formats import (
    bits_of,
    device_pack_block_float,
    flush,
    from_bits,
    in_parts,
    pack,
    version_of,
    wide,
)
from ttnn_emulator.numerics.matmul import Kernel, round_in_place
from ttnn_emulator.numerics.matrix_unit import (
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
from ttnn_emulator.numerics.packed_convolution import TorchConvolution

Pair = tuple[int, int]
Sides = tuple[int, int, int, int]  # top, bottom, left, right
TF32_MANTISSA = 11  # bits, the hidden one counted


# -- windows ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Windows:
    """Where windows lie in images [N, H, W, C].

    spread  images are spread by these steps, with zeros between their pixels: a transposed convolution
    edges   padding repeats the outermost pixels instead of being zero
    """

    images: tuple[int, int, int, int]
    kernel: Pair
    stride: Pair
    padding: Sides
    dilation: Pair
    size: Pair  # of the output
    spread: Pair = (1, 1)
    edges: bool = False

    def padded(self, images: torch.Tensor) -> torch.Tensor:
        """Images with all that windows see around them and between their pixels."""
        top, bottom, left, right = self.padding
        if self.spread != (1, 1):
            batch, height, width, channels = images.shape
            step_y, step_x = self.spread
            wide = images.new_zeros(batch, (height - 1) * step_y + 1, (width - 1) * step_x + 1, channels)
            wide[:, ::step_y, ::step_x] = images
            images = wide
        if self.edges:
            around = (left, right, top, bottom)
            return pad(images.permute(0, 3, 1, 2), around, mode="replicate").permute(0, 2, 3, 1)
        return pad(images, (0, 0, left, right, top, bottom)) if any(self.padding) else images

    def rows(self, images: torch.Tensor) -> torch.Tensor:
        """Images [N, H, W, C] → [pixels, kernel rows × kernel columns × C]."""
        source = self.padded(images).contiguous()
        batch, channels = source.shape[0], source.shape[3]
        by_image, by_row, by_pixel, by_channel = source.stride()
        (step_y, step_x), (apart_y, apart_x) = self.stride, self.dilation
        view = source.as_strided(
            (batch, *self.size, *self.kernel, channels),
            (by_image, by_row * step_y, by_pixel * step_x, by_row * apart_y, by_pixel * apart_x, by_channel),
        )
        return view.reshape(batch * self.size[0] * self.size[1], -1)

    @property
    def is_plain(self) -> bool:
        """Whether torch pads as much as these windows need."""
        top, bottom, left, right = self.padding
        return top == bottom and left == right and self.spread == (1, 1) and not self.edges

    def in_torch(self, groups: int) -> TorchConvolution:
        """Torch's convolution of what `seen` gives."""
        batch, height, width, channels = self.images
        if self.is_plain:
            size, around = (height, width), (self.padding[0], self.padding[2])
        else:
            steps, around = zip((height, width), self.spread, (sum(self.padding[:2]), sum(self.padding[2:]))), (0, 0)
            size = tuple([(count - 1) * step + 1 + more for count, step, more in steps])  # type: ignore[assignment]
        return TorchConvolution((batch, channels, *size), self.stride, around, self.dilation, groups)

    def seen(self, images: torch.Tensor) -> torch.Tensor:
        """Images [N, H, W, C] as torch takes them."""
        return (images if self.is_plain else self.padded(images)).permute(0, 3, 1, 2)


# -- blocks -----------------------------------------------------------------------------------------------------------

NOTHING = -1


@dataclass(frozen=True)
class BlockOrder:
    """How rows are cut into blocks.

    channels      real channels, and those that each core holds of them, padding included
    kernel_rows   kernel rows are blocks of their own
    chunks        blocks into which a core's channels are cut (width sharding)
    by_kernel     blocks follow each other by kernel row, then by core; else by chunk and core
    """

    kernel: Pair
    channels: int
    per_core: int
    cores: int
    kernel_rows: bool = True
    chunks: int = 1

    def columns(self) -> tuple[np.ndarray, int]:
        """For each column of the padded rows, where it comes from; and the tiles of one block."""
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
                    index = np.where(channel < self.channels, index, NOTHING).reshape(-1)
                    blocks.append(np.pad(index, (0, -index.size % TILE), constant_values=NOTHING))
        return np.concatenate(blocks), blocks[0].size // TILE


def identity(columns: np.ndarray) -> bool:
    return bool((columns == np.arange(columns.size)).all())


# -- the kernel -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Sums(Kernel):
    """The matmul of a convolution: sums between blocks have the format of the output unless the packer adds them up.

    They come back through a source register, which takes 19 bits of a float32.

    untilized  the result goes the same way once more, to be put into row-major order
    """

    untilized: bool = False

    def _exact(
        self, a: torch.Tensor, b: torch.Tensor, bias: torch.Tensor | None, bits: tuple[int, int]
    ) -> torch.Tensor:
        if bias is not None:
            return self._finished(self._with_bias(self._sums(a, b, bits, whole=True), bias))
        return self._finished(self._sums(a, b, bits, whole=False))

    def _sums(self, a: torch.Tensor, b: torch.Tensor, bits: tuple[int, int], *, whole: bool) -> torch.Tensor:
        """What the destination register holds at the end; if the packer adds and `whole` is set, what is in L1."""
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

    order      how rows are cut into blocks
    dtypes     of the input, the weights and the output; gathered rows take that of the output
    l1_acc     in `math` means that the packer adds sums of blocks up in L1
    untilized  the kernel puts its result into row-major order
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
        index = torch.from_numpy(np.where(columns == NOTHING, 0, columns))
        empty = torch.from_numpy(columns == NOTHING)
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
        weights_of, row_of = remembered(self._weight_for_torch), remembered(self._bias_for_torch)
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
        """See `Bindable`: what torch convolves and the packer only rounds, with weights that stay."""
        images, weight, bias = carriers
        assert images is not None and weight is not None
        if (
            not all(constant[1:])
            or images.dtype is not torch.float32
            or images.numel() != volume_of(self.windows.images)
        ):
            return None
        if not self._is_only_rounded or self._image_bits is not None or self._is_exact:
            return None
        filters = self._weight_for_torch(weight)
        row = None if bias is None else self._bias_for_torch(bias)
        pixels = images.reshape(self.windows.images)
        seen = self.windows.seen(pixels) if self.windows.is_plain else None
        made = torch.empty(self._pixels, self.out_channels)
        target, count, relu = made.data_ptr(), made.numel(), self._rectifies
        convolve, rest = self._in_torch.call(filters, row)

        def run() -> None:
            result = convolve(self.windows.seen(pixels) if seen is None else seen, *rest)
            if not result.is_contiguous(memory_format=torch.channels_last):
                result = result.contiguous(memory_format=torch.channels_last)
            in_parts(round_at, result.data_ptr(), target, count, (4, 4), relu)

        return run, made

    @functools.cached_property
    def _pixels(self) -> int:
        return self.windows.images[0] * self.windows.size[0] * self.windows.size[1]

    @functools.cached_property
    def _columns(self) -> tuple[np.ndarray, int]:
        return self.order.columns()

    @property
    def _is_exact(self) -> bool:
        return is_exact(1, self._pixels, self._columns[0].size, self.out_channels, self.math.fidelity)

    @property
    def _rectifies(self) -> bool:
        return self.activation is not None and self.activation.name == "relu"

    @property
    def _is_only_rounded(self) -> bool:
        """Whether nothing happens to a sum but a `relu` and being rounded to bfloat16."""
        return (self.activation is None or self._rectifies) and self.out_dtype is DataType.BFLOAT16

    @property
    def _image_bits(self) -> int | None:
        """Bits of the images' mantissas that the matrix unit sees, if they have more."""
        bits = FLOAT32_BITS if self.in_dtype is DataType.FLOAT32 else BFLOAT16_BITS
        seen = operand_bits(self.math.fidelity, self.math.fp32_acc)[0]
        return seen if seen < bits else None

    @property
    def taps(self) -> int:
        return self.order.kernel[0] * self.order.kernel[1] * self.order.channels

    def _tilized(self, rows: torch.Tensor) -> torch.Tensor:
        """Gathered rows, brought into tile order in the format of the output."""
        if self.out_dtype is DataType.FLOAT32:
            return rows
        if self.out_dtype in BLOCK_FLOAT_DTYPES:
            return device_pack_block_float(flush(rows), self.out_dtype)
        return pack(rows, DataType.BFLOAT16, from_fp32=self.math.fp32_acc)

    def _weight_for_torch(self, weight: torch.Tensor) -> torch.Tensor:
        """Weights [out, in / groups, rows, columns] with the bits that the matrix unit sees."""
        high, across = self.order.kernel
        channels, out, groups = self.order.channels, self.out_channels, self.groups
        matrix = fitted_matrix(weight.reshape(-1, weight.shape[-1]).float(), self.taps, out)
        bits = FLOAT32_BITS if self.weight_dtype is DataType.FLOAT32 else BFLOAT16_BITS
        seen = operand_bits(self.math.fidelity, self.math.fp32_acc)[1]
        if seen < bits:
            matrix = truncate_mantissa(matrix, seen)
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
        return self.groups if divides else 1  # else the weights hold zeros for the other groups

    def _bias_for_torch(self, bias: torch.Tensor) -> torch.Tensor:
        return bias.reshape(-1)[: self.out_channels].float()

    def _fast(self, images: torch.Tensor, filters: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
        if self.out_dtype in BLOCK_FLOAT_DTYPES:
            images = device_pack_block_float(flush(images), self.out_dtype)
        if self._image_bits is not None:
            images = truncate_mantissa(images, self._image_bits)
        result = self._in_torch(self.windows.seen(images), filters, bias)
        sums = result.permute(0, 2, 3, 1).reshape(-1, self.out_channels)
        if self._is_only_rounded:
            return round_in_place(sums, relu=self._rectifies)
        if not self.math.fp32_acc:
            sums = round_in_place(sums)
        result = finished(sums, self.activation, self.out_dtype, self.math.fp32_acc)
        if self.untilized and self.out_dtype is DataType.FLOAT32:
            return truncate_mantissa(result, TF32_MANTISSA)
        return result


def finished(sums: torch.Tensor, activation: Any, dtype: DataType, fp32: bool) -> torch.Tensor:
    """The destination register's content through the activation and the packer."""
    if activation is not None:
        sums = sums.clamp(min=0.0) if activation.name == "relu" else activation(sums, fp32_dest=fp32)
    return pack(sums, dtype, from_fp32=fp32)


def fitted_matrix(matrix: torch.Tensor, rows: int, columns: int) -> torch.Tensor:
    """Prepared weights; those of more output channels are taken as far as they are needed."""
    if matrix.shape[0] != rows and matrix.any():
        raise ChipFault(
            f"the card would take weights prepared with {matrix.shape[0]} rows for its own, which have {rows}",
            hint="Prepare the weights for this convolution.",
        )
    return matrix[:rows, :columns] if matrix.shape[0] >= rows else matrix.new_zeros(rows, columns)


def volume_of(shape: tuple[int, ...]) -> int:
    return int(np.prod(shape, dtype=np.int64))


def remembered(make: Callable[[torch.Tensor], torch.Tensor]) -> Callable[[torch.Tensor], torch.Tensor]:
    """`make` with a memory for every tensor that it was called with, as long as that is alive and unchanged.

    Several convolutions of a model are the same program with other weights.
    """
    found: dict[int, tuple[weakref.ref, int, torch.Tensor]] = {}

    def recall(values: torch.Tensor) -> torch.Tensor:
        key = id(values)
        entry = found.get(key)
        if entry is not None and entry[0]() is values and entry[1] == version_of(values):
            return entry[2]
        made = make(values)
        found[key] = weakref.ref(values, lambda _: found.pop(key, None)), version_of(values), made
        return made

    return recall
