"""Convolution weights and biases in the device's format: a tiled matrix of taps and channels.

The matrix has a row for every tap (kernel row, kernel column, input channel) and a column for every output channel.
Its padding depends on the sharding; carriers store the rows without padding.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from ttnn_emulator.enums import DataType, Layout, TensorMemoryLayout
from ttnn_emulator.errors import ChipFault, require
from ttnn_emulator.numerics.formats.carriers import host_convert, wide
from ttnn_emulator.ops.conv.sharding import BLOCK, HEIGHT, Cores
from ttnn_emulator.ops.conv.sliding_window import TILE, Pair
from ttnn_emulator.tensors.memory_config import DRAM_MEMORY_CONFIG
from ttnn_emulator.tensors.shapes import div_up, round_up
from ttnn_emulator.tensors.spec import Spec, padded_spec

ARRANGED = (DataType.BFLOAT16, DataType.FLOAT32, DataType.UINT32)  # dtypes that the host code can reorder


@dataclass(frozen=True)
class Preparation:
    """The parameters of weight preparation.

    block_rows     tiles of the inner dimension in one block of activations
    block_columns  tiles of output channels per subblock
    tall_rows      tiles of pixels in one block of activations, over which a 1D depthwise kernel repeats its weights
    as_plain       weights of a matmul on interleaved tensors
    """

    dtype: DataType | None
    alignment: int
    inputs: Cores
    outputs: Cores
    block_rows: int
    block_columns: int
    tall_rows: int
    groups: int
    out_channels: int
    has_bias: bool
    image_rows: int
    as_plain: bool = False
    folds: bool = False
    whole_kernel: bool = False
    reuses_rows: bool = False
    whole_window: bool = False
    stride: Pair = (1, 1)

    @property
    def scheme(self) -> TensorMemoryLayout:
        return self.inputs.scheme

    def depthwise_1d(self, weight: tuple[int, ...]) -> bool:
        """Whether weights [out, in / groups, rows, columns] are those of a 1D depthwise convolution."""
        alone = self.groups == weight[1] * self.groups == weight[0]
        return alone and weight[2] == 1 and self.image_rows == 1 and not self.has_bias


# -- weights ----------------------------------------------------------------------------------------------------------


def weight_spec(weight: Spec, to: Preparation) -> Spec:
    """The spec of prepared weights; refuses dtypes that the host code cannot reorder."""
    require(not weight.is_tile, "weights on the host must be in ROW_MAJOR layout")
    shape = weight.shape
    if len(shape) == 3 and to.image_rows == 1:
        shape = (shape[0], shape[1], 1, shape[2])
    require(len(shape) == 4, f"weights on the host must have rank 4, not shape {list(weight.shape)}")
    require(weight.dtype in ARRANGED, f"weights of {weight.dtype} cannot be rearranged on the host")
    require(0 not in shape, f"weights of shape {list(shape)} are empty")
    depthwise = to.depthwise_1d(shape)
    out, channels, rows, columns = _rearranged_shape(shape, to)
    return padded_spec(
        (1, 1, channels * rows * columns, out),
        (1, 1, padded_rows(to, channels, (rows, columns), shape[3], depthwise), padded_columns(to, out)),
        to.dtype or weight.dtype,
        Layout.TILE,
        DRAM_MEMORY_CONFIG,
    )


def padded_columns(to: Preparation, out: int) -> int:
    return round_up(out, TILE if to.as_plain else to.outputs.channels * TILE)


def padded_rows(to: Preparation, channels: int, kernel: Pair, taps: int, depthwise: bool) -> int:
    """Rows of the prepared matrix including block padding; `taps` counts the taps of one kernel row."""
    rows, columns = kernel
    if to.as_plain:
        return round_up(channels * rows * columns, TILE)
    block_rows = to.block_rows
    if depthwise and to.groups > 1:
        block_rows = to.tall_rows * (taps if to.whole_window else 1)
    padded = round_up(channels, to.inputs.channels * to.alignment)
    return _padded_rows(padded, rows, columns, block_rows, to, depthwise)


def _padded_rows(channels: int, rows: int, columns: int, block_rows: int, to: Preparation, depthwise: bool) -> int:
    if to.scheme is BLOCK:
        each = channels // to.inputs.channels * columns
        if to.whole_kernel:
            return round_up(each * rows, TILE) * to.inputs.channels
        return round_up(each, TILE) * rows * to.inputs.channels
    if to.scheme is HEIGHT and not depthwise:
        inner = channels * columns * (rows if to.reuses_rows else 1)
        require(
            block_rows * TILE >= inner,
            f"weights with {inner} values a kernel row do not fit blocks of {block_rows * TILE}",
        )
        return block_rows * TILE * (1 if to.reuses_rows else rows)
    return round_up(channels * rows * columns, block_rows * TILE)


def _rearranged_shape(shape: tuple[int, ...], to: Preparation) -> tuple[int, int, int, int]:
    out, channels, rows, columns = shape
    if to.groups > 1:
        if to.depthwise_1d(shape):
            channels, rows, columns = to.tall_rows * TILE * rows * columns, 1, 1
        else:
            channels *= to.groups
    if to.folds:
        rows, columns = div_up(rows, to.stride[0]), div_up(columns, to.stride[1])
        channels *= to.stride[0] * to.stride[1]
    return out, channels, rows, columns


def prepare_weight(values: torch.Tensor, to: Preparation, dtype: DataType) -> torch.Tensor:
    """Weights [out, in / groups, rows, columns] → [1, 1, rows × columns × in, out] of the prepared dtype."""
    if values.dim() == 3:
        values = values.unsqueeze(2)
    if to.groups > 1:
        values = _repeated(values, to.tall_rows) if to.depthwise_1d(values.shape) else _ungrouped(values, to.groups)
    if to.folds:
        values = _folded(values, to.stride)
    out = values.shape[0]
    matrix = values.permute(2, 3, 1, 0).reshape(1, 1, -1, out)
    return host_convert(matrix, dtype).contiguous()


# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/conv/conv2d/prepare_conv2d_weights.cpp,
# convert_conv_weight_tensor_to_grouped_layout
def _ungrouped(values: torch.Tensor, groups: int) -> torch.Tensor:
    """Weights expanded to all input channels, zero outside the group."""
    out, channels = values.shape[:2]
    full = values.new_zeros(out, channels * groups, *values.shape[2:])
    size = max(out // groups, 1)
    for row in range(out):
        start = min(row // size, groups - 1) * channels
        full[row, start : start + channels] = values[row]
    return full


# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/conv/conv2d/prepare_conv2d_weights.cpp,
# convert_conv_weight_tensor_to_depthwise_layout
def _repeated(values: torch.Tensor, tiles: int) -> torch.Tensor:
    """[channels, 1, 1, taps] → [channels, taps × rows, 1, 1]: each tap repeated for every row of a block."""
    channels = values.shape[0]
    taps = values.reshape(channels, -1, 1)
    return taps.expand(-1, -1, tiles * TILE).reshape(channels, -1, 1, 1)


# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/conv/conv2d/prepare_conv2d_weights.cpp, to_folded_weight_layout
def _folded(values: torch.Tensor, stride: Pair) -> torch.Tensor:
    """Weights for an input whose stride × stride patches are folded into channels."""
    out, channels, rows, columns = values.shape
    high, wide_ = div_up(rows, stride[0]), div_up(columns, stride[1])
    padded = torch.nn.functional.pad(values, (0, wide_ * stride[1] - columns, 0, high * stride[0] - rows))
    patches = padded.reshape(out, channels, high, stride[0], wide_, stride[1])
    return patches.permute(0, 3, 5, 1, 2, 4).reshape(out, -1, high, wide_)


def transposed_weight(values: torch.Tensor, like: Spec, groups: int, mirror: bool) -> torch.Tensor:
    """Weights [in, out / groups, rows, columns] of a transposed convolution as those of a convolution, `like`."""
    out, channels, *kernel = like.shape
    shape = (channels, out // max(groups, 1), *kernel)
    if tuple(values.shape) != shape:
        if values.any():
            raise ChipFault(
                f"weights of shape {list(values.shape)} are read as if they were row-major, of shape {list(shape)}",
                hint="Give the weights in ROW_MAJOR layout, with rank 4.",
            )
        values = values.new_zeros(shape)
    if groups > 1:
        channels, out = values.shape[:2]
        full = values.new_zeros(channels, out * groups, *values.shape[2:])
        size = max(channels // groups, 1)
        for row in range(channels):
            start = row // size * out
            full[row, start : start + out] = values[row]
        values = full
    values = values.transpose(0, 1)
    return values.flip(2, 3) if mirror else values


# -- biases -----------------------------------------------------------------------------------------------------------


def bias_spec(bias: Spec, to: Preparation, dtype: DataType) -> Spec:
    """The spec of a prepared bias: one row, padded to a tile."""
    require(bias.rank == 4, f"a bias must have rank 4, not shape {list(bias.shape)}")
    require(
        bias.shape[3] == to.out_channels, f"a bias of {bias.shape[3]} values does not suit {to.out_channels} channels"
    )
    require(not bias.is_tile, "a bias on the host must be in ROW_MAJOR layout")
    require(bias.shape[:3] == (1, 1, 1), f"a bias must have shape [1, 1, 1, channels], not {list(bias.shape)}")
    channels = round_up(round_up(to.out_channels, to.outputs.channels * TILE), to.block_columns * TILE)
    return padded_spec((1, 1, 1, to.out_channels), (1, 1, TILE, channels), dtype, Layout.TILE, DRAM_MEMORY_CONFIG)


def prepare_bias(values: torch.Tensor, dtype: DataType) -> torch.Tensor:
    return wide(host_convert(values, dtype).contiguous())


# -- weights that are on the device already ---------------------------------------------------------------------------


# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/conv/conv2d/prepare_conv2d_weights.cpp, is_valid_device_conv_weights
def is_prepared_weight(weight: Spec, out_channels: int, dtype: DataType | None) -> bool:
    """Whether the library treats these weights as prepared; it checks no more than this."""
    shape = weight.shape
    if not weight.is_tile or len(shape) != 4 or shape[:2] != (1, 1) or shape[3] < out_channels:
        return False
    return dtype is None or weight.dtype is dtype


def is_prepared_bias(bias: Spec, out_channels: int, dtype: DataType | None) -> bool:
    if not bias.is_tile or bias.rank < 4 or bias.shape[3] < out_channels:
        return False
    return dtype is None or bias.dtype is dtype
