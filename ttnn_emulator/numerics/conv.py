"""Convolutions as the chip computes them: windows gathered into rows, and the matrix unit.

A row holds the window of one output pixel: kernel rows, in them kernel columns, in them channels. It is cut into
blocks, one for each kernel row and each core that shares the channels, and every block is padded to whole tiles. Sums
of blocks are packed to L1 between them.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch.nn.functional import pad

from ttnn_emulator.enums import BLOCK_FLOAT_DTYPES, DataType
from ttnn_emulator.errors import ChipFault
from ttnn_emulator.numerics import vector_unit
from ttnn_emulator.numerics.broadcasting import shape_of
from ttnn_emulator.numerics.conv_kernels import accumulate_products
from ttnn_emulator.numerics.elementwise_kernels import add_16bit, add_32bit
from ttnn_emulator.numerics.formats import bits_of, device_pack_block_float, flush, from_bits, pack, version_of, wide
from ttnn_emulator.numerics.matmul import Kernel, round_in_place
from ttnn_emulator.numerics.matrix_unit import (
    BFLOAT16_BITS,
    FLOAT32_BITS,
    PHASES,
    TF32_BITS,
    TILE,
    UPPER_HALF,
    MathConfig,
    is_exact,
    matmul,
    operand_bits,
    truncate_mantissa,
)
from ttnn_emulator.numerics.mode import exactly
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
        columns, block = self.order.columns()
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
        pixels = self.windows.images[0] * self.windows.size[0] * self.windows.size[1]
        weights_of, row_of = remembered(self._weight_for_torch), remembered(self._bias_for_torch)
        shape, volume = self.windows.images, _volume(self.windows.images)

        def arranged(values: torch.Tensor, dim: int) -> torch.Tensor:
            if plain:
                return values
            shape = (-1, 1) if dim == 0 else (1, -1)
            return torch.where(empty.reshape(shape), 0.0, values.index_select(dim, index))

        def run(images: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
            images = images.reshape(shape) if images.numel() == volume else images.reshape(-1)[:volume].reshape(shape)
            images = wide(images) if images.is_floating_point() else images.float()
            if is_exact(1, pixels, columns.size, self.out_channels, self.math.fidelity):
                rows = self._tilized(arranged(self.windows.rows(images), 1))
                matrix = _fitted(weight.reshape(-1, weight.shape[-1]).float(), self.taps, self.out_channels)
                last = None if bias is None else bias.reshape(1, -1)[:, : self.out_channels].float()
                return product(rows, arranged(matrix, 0), last)
            return self._fast(images, weights_of(weight), None if bias is None else row_of(bias))

        return run

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
        matrix = _fitted(weight.reshape(-1, weight.shape[-1]).float(), self.taps, out)
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
        bits = FLOAT32_BITS if self.in_dtype is DataType.FLOAT32 else BFLOAT16_BITS
        seen = operand_bits(self.math.fidelity, self.math.fp32_acc)[0]
        if seen < bits:
            images = truncate_mantissa(images, seen)
        rectifies = self.activation is not None and self.activation.name == "relu"
        result = self._in_torch(self.windows.seen(images), filters, bias)
        sums = result.permute(0, 2, 3, 1).reshape(-1, self.out_channels)
        if (self.activation is None or rectifies) and self.out_dtype is DataType.BFLOAT16:
            return round_in_place(sums, relu=rectifies)
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


def _fitted(matrix: torch.Tensor, rows: int, columns: int) -> torch.Tensor:
    """Prepared weights; those of more output channels are taken as far as they are needed."""
    if matrix.shape[0] != rows and matrix.any():
        raise ChipFault(
            f"the card would take weights prepared with {matrix.shape[0]} rows for its own, which have {rows}",
            hint="Prepare the weights for this convolution.",
        )
    return matrix[:rows, :columns] if matrix.shape[0] >= rows else matrix.new_zeros(rows, columns)


def _volume(shape: tuple[int, ...]) -> int:
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


# -- every channel by itself ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Depthwise:
    """A 1D depthwise convolution: taps are multiplied and added one by one, without sums over channels.

    whole_window  all taps are accumulated in the destination register; else each is packed, and added to what was
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
            images = images.reshape(-1)[: _volume(self.windows.images)].reshape(self.windows.images).float()
            matrix = _fitted(weight.reshape(-1, weight.shape[-1]).float(), self.repeats * taps, self.channels)
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
            held = _floats(sums, rows.shape[0])
            if before is not None:
                held = added(before, held, fp32=fp32)
            before = pack(held, self.out_dtype, from_fp32=fp32)
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
    """a + b as the matrix unit adds, left in a destination register of 16 or 32 bits a value."""
    keep = int(TF32_BITS if fp32 else UPPER_HALF)
    shape = shape_of(a, b)
    left, right = ((bits_of(values.expand(shape)) & keep).reshape(-1).numpy() for values in (a, b))
    out = np.empty(left.size, np.int32)
    (add_32bit if fp32 else add_16bit)(left, right, np.int32(0), out)
    return from_bits(torch.from_numpy(out)).reshape(shape)
