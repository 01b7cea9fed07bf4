"""Integral images: sums over all rows above and all columns to the left, channels last."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch

from ttnn_emulator.enums import DataType, Layout
from ttnn_emulator.errors import require
from ttnn_emulator.execution.operation_table import Plan, operation
from ttnn_emulator.numerics.programs.elementwise.binary import Setting, copied_in, prepare
from ttnn_emulator.numerics.units.packer import pack
from ttnn_emulator.numerics.units.vector_unit import add, store_bf16, store_fp32
from ttnn_emulator.ops.support.common_checks import require_on_device
from ttnn_emulator.tensors.shapes import TILE_SIZE
from ttnn_emulator.tensors.spec import Spec

# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/experimental/reduction/integral_image/device/intimg_program_factory.cpp,
# BLOCK_DEPTH and make_dfb
BLOCK_DEPTH = 48  # rows summed per block before the running sum is added
# Tiles of circular buffers per core: six buffers of a block's depth, three of two tiles.
BUFFERED_TILES = 6 * BLOCK_DEPTH + 3 * 2


@operation("ttnn.experimental.intimg")
def intimg(input_tensor: Spec) -> Plan:
    """Cumulative sums along dimensions 1 and 2 of a channels-last image."""
    spec = input_tensor
    require_on_device(spec)
    require(spec.rank == 4, f"intimg supports only 4D tensors, not {list(spec.shape)}")
    require(spec.shape[0] == 1, f"intimg supports only one batch, found {spec.shape[0]}")
    require(spec.layout is Layout.TILE, f"only tile layout is supported, not {spec.layout}")
    require(spec.dtype in (DataType.BFLOAT16, DataType.FLOAT32), f"only bf16 and fp32 are supported, not {spec.dtype}")
    out = Spec.of(spec.shape, spec.dtype, Layout.TILE, spec.memory_config)
    join = prepare("ADD", Setting(spec.dtype, spec.dtype, spec.dtype, vector=False))

    def compute(values: torch.Tensor) -> torch.Tensor:
        summed = _down(values, join)
        result = torch.empty_like(summed)
        for start in range(0, summed.shape[2], TILE_SIZE):
            rows = _within_tiles(summed[:, :, start : start + TILE_SIZE], spec.dtype)
            if start:
                rows = join(rows, result[:, :, start - 1 : start].expand_as(rows).contiguous())
            result[:, :, start : start + TILE_SIZE] = rows
        return result

    return Plan(out, compute, l1_bytes=BUFFERED_TILES * spec.page_bytes)


def _down(values: torch.Tensor, join: Callable[..., torch.Tensor]) -> torch.Tensor:
    """Cumulative sum of tiles along dimension 1, packed after every addition, block by block."""
    result = torch.empty_like(values)
    for start in range(0, values.shape[1], BLOCK_DEPTH):
        end = min(start + BLOCK_DEPTH, values.shape[1])
        total = torch.zeros_like(values[:, start])
        for row in range(start, end):
            total = join(values[:, row].contiguous(), total)
            result[:, row] = total
        if start:
            before = result[:, start - 1 : start].expand_as(result[:, start:end]).contiguous()
            result[:, start:end] = join(before, result[:, start:end].contiguous())
    return result


def _within_tiles(values: torch.Tensor, dtype: DataType) -> torch.Tensor:
    """The vector unit's cumulative sum down the rows of a tile, accumulated in 32 bits and stored per row."""
    wide = dtype is DataType.FLOAT32
    rows = copied_in(values.contiguous(), dtype, fp32=wide, vector=False).movedim(2, 0).contiguous().numpy()
    total = np.zeros_like(rows[0])
    sums = np.empty_like(rows)
    for number, row in enumerate(rows):
        total = add(total, row)
        sums[number] = total
    stored = store_fp32(sums) if wide else store_bf16(sums)
    return pack(torch.from_numpy(stored).movedim(0, 2).contiguous(), dtype, from_fp32=wide)
