"""Sums of everything above and to the left: `intimg`."""

from __future__ import annotations

import functools

import numpy as np
import torch

from ttnn_emulator.enums import DataType, Layout, MathFidelity
from ttnn_emulator.errors import require
from ttnn_emulator.numerics import vector_unit
from ttnn_emulator.numerics.attention_steps import stored
from ttnn_emulator.numerics.matrix_unit import MathConfig
from ttnn_emulator.numerics.normalize import Core
from ttnn_emulator.ops._common import require_on_device
from ttnn_emulator.shapes import TILE_SIZE
from ttnn_emulator.spec import Spec, tile_bytes
from ttnn_emulator.table import Plan, operation

BLOCK_DEPTH = 48  # rows of the image that are added up at a time (intimg_program_factory.cpp, BLOCK_DEPTH)
DEEP_BUFFERS, SMALL_BUFFERS = 6, 3  # of BLOCK_DEPTH tiles each, and of two (the same file, `dfbs`)


@operation("ttnn.experimental.intimg")
def intimg(input_tensor: Spec) -> Plan:
    """[1, H, W, C]: every element with all above it and to the left of it, in tiles of columns and channels."""
    spec = input_tensor
    require_on_device(spec)
    require(spec.rank == 4, f"intimg supports only 4D tensors, this one has rank {spec.rank}")
    require(spec.shape[0] == 1, f"intimg supports only one batch, not {spec.shape[0]}")
    require(spec.is_tile, f"only tile layout is supported, not {spec.layout}")
    require(spec.dtype in (DataType.BFLOAT16, DataType.FLOAT32), f"only bf16 and fp32 are supported, not {spec.dtype}")
    wide = spec.dtype is DataType.FLOAT32
    core = Core.of(MathConfig(MathFidelity.HiFi4, wide), spec.volume)
    out = Spec.of(spec.shape, spec.dtype, Layout.TILE, spec.memory_config)
    l1_bytes = (DEEP_BUFFERS * BLOCK_DEPTH + SMALL_BUFFERS * 2) * tile_bytes(spec.tile, spec.dtype)
    return Plan(out, functools.partial(_integrate, core, spec.dtype), l1_bytes=l1_bytes)


def _integrate(core: Core, dtype: DataType, image: torch.Tensor) -> torch.Tensor:
    columns = image.shape[2]
    padded = torch.nn.functional.pad(image[0], (0, 0, 0, -columns % TILE_SIZE))
    summed = torch.stack(_down(core, dtype, padded))
    strips = [_across(core, dtype, strip) for strip in summed.split(TILE_SIZE, 1)]
    for number in range(1, len(strips)):
        before = core.source(strips[number - 1][:, -1:], dtype)
        strips[number] = core.packed(core.add(core.source(strips[number], dtype), before), dtype)
    return torch.cat(strips, 1)[:, :columns].unsqueeze(0).contiguous()


def _down(core: Core, dtype: DataType, image: torch.Tensor) -> list[torch.Tensor]:
    """Sums of rows, a block of rows by itself; then the last row of the block before is added."""
    rows: list[torch.Tensor] = []
    for block in image.split(BLOCK_DEPTH):
        carried = core.source(rows[-1], dtype) if rows else None
        total = torch.zeros(image.shape[1:])
        for row in block:
            total = core.packed(core.add(core.source(row, dtype), core.source(total, dtype)), dtype)
            kept = core.through(total, dtype)  # copied through the destination register into the next buffer
            rows.append(kept if carried is None else core.packed(core.add(carried, kept), dtype))
    return rows


def _across(core: Core, dtype: DataType, strip: torch.Tensor) -> torch.Tensor:
    """Sums along the columns of one tile: the vector unit keeps the running sum in 32 bits."""
    values = core.source(strip, dtype).numpy()
    made = np.empty_like(values)
    total = np.zeros_like(values[:, 0])
    for column in range(values.shape[1]):
        total = vector_unit.add(values[:, column], total)
        made[:, column] = stored(total, core.wide)
    return core.packed(torch.from_numpy(made), dtype)
