"""Deformable attention of one level: a weighted sum of sampled image points per query."""

from __future__ import annotations

import functools

import numpy as np
import torch

from ttnn_emulator.enums import DataType, Layout, MathFidelity, TensorMemoryLayout
from ttnn_emulator.errors import require
from ttnn_emulator.execution.call_context import current_board
from ttnn_emulator.execution.operation_table import Plan, operation
from ttnn_emulator.numerics.formats.carriers import truncate_bf16
from ttnn_emulator.numerics.programs.attention.softmax_steps import added_in_l1
from ttnn_emulator.numerics.units.compute_core import Core
from ttnn_emulator.numerics.units.matrix_unit import MathConfig
from ttnn_emulator.ops.support.common_checks import memory_of, require_on_device
from ttnn_emulator.tensors.memory_config import MemoryConfig
from ttnn_emulator.tensors.shapes import TILE_SIZE, div_up, round_up
from ttnn_emulator.tensors.spec import Spec

BFLOAT16 = DataType.BFLOAT16
CORNERS = ((0, 0), (0, 1), (1, 0), (1, 1))  # (row, column) offsets, in the order in which the kernel adds them
HALF_ROW = 16  # values per row of a face
TILE_BYTES = TILE_SIZE * TILE_SIZE * 2


@operation("ttnn.experimental.multi_scale_deformable_attn")
def multi_scale_deformable_attn(
    value: Spec, grid: Spec, attn: Spec, *, memory_config: MemoryConfig | None = None, align_corners: bool = False
) -> Plan:
    """Values [N, h, w, D] at the points [N, Q × P, 1, 2], weighted by [N, Q, P] and added up: [N, Q, D]."""
    out_memory = memory_of(memory_config, value)
    for spec, name in ((value, "value"), (grid, "grid"), (attn, "attn")):
        require_on_device(spec, name)
        require(spec.dtype is BFLOAT16, f"{name} must be BFLOAT16, not {spec.dtype}")
        require(spec.layout is Layout.ROW_MAJOR, f"{name} must be ROW_MAJOR, not {spec.layout}")
        _require_interleaved(spec.memory_config, name)
    _require_interleaved(out_memory, "the output")
    require(value.rank == 4, f"value rank must be 4, its shape is {list(value.shape)}")
    require(grid.rank == 4, f"grid rank must be 4, its shape is {list(grid.shape)}")
    require(attn.rank == 3, f"attn rank must be 3, its shape is {list(attn.shape)}")
    require(grid.shape[2:] == (1, 2), f"grid must end in [1, 2], its shape is {list(grid.shape)}")
    (batch, height, width, depth), (_, queries, points) = value.shape, attn.shape
    same = batch == grid.shape[0] == attn.shape[0]
    require(same, f"N differs: {batch} of value, {grid.shape[0]} of grid, {attn.shape[0]} of attn")
    require(min(batch, height, width, queries, points) > 0, "value and attn must not be empty")
    require(depth > 0 and depth % HALF_ROW == 0, f"D must be a positive multiple of {HALF_ROW}, it is {depth}")
    require(grid.shape[1] == queries * points, f"grid has {grid.shape[1]} points, attn {queries} x {points}")
    out = Spec.of((batch, queries, depth), BFLOAT16, Layout.ROW_MAJOR, out_memory)
    core = Core.of(MathConfig(MathFidelity.HiFi4), batch * queries * points * len(CORNERS) * depth)
    run = functools.partial(_attend, core, align_corners)
    return Plan(out, run, l1_bytes=_buffers(value, grid, attn, out))


def _require_interleaved(config: MemoryConfig, name: str) -> None:
    interleaved = config.memory_layout is TensorMemoryLayout.INTERLEAVED
    require(interleaved, f"{name} memory_layout must be INTERLEAVED, not {config.memory_layout.name}")


def _buffers(value: Spec, grid: Spec, attn: Spec, out: Spec) -> int:
    """Circular buffers per core: staged sticks, and tiles between kernels, all double-buffered."""
    board = current_board()

    def stick(spec: Spec) -> int:
        is_dram = spec.memory_config.is_dram
        return round_up(spec.page_bytes, board.dram_alignment if is_dram else board.l1_alignment)

    staged = TILE_SIZE * (stick(value) + attn.shape[2] * stick(grid) + stick(attn)) + stick(out)
    return staged + (4 * div_up(value.shape[3], TILE_SIZE) + 2) * TILE_BYTES


def _attend(
    core: Core, align_corners: bool, value: torch.Tensor, grid: torch.Tensor, attn: torch.Tensor
) -> torch.Tensor:
    batch, height, width, depth = value.shape
    points = grid.reshape(batch, *attn.shape[1:], 2).numpy()
    x, right = _places(points[..., 0], width, align_corners)
    y, below = _places(points[..., 1], height, align_corners)
    shares = ((np.float32(1) - below, below), (np.float32(1) - right, right))
    flat = value.reshape(-1, depth)
    first = np.arange(batch).reshape(-1, 1, 1) * (height * width)
    total: torch.Tensor | None = None
    for point in range(attn.shape[2]):
        for down, across in CORNERS:
            row, column = y[..., point] + down, x[..., point] + across
            inside = (row >= 0) & (row < height) & (column >= 0) & (column < width)
            weight = attn[..., point].numpy() * (shares[1][across][..., point] * shares[0][down][..., point])
            weight = truncate_bf16(torch.from_numpy(np.where(inside, weight, np.float32(0))))
            pixel = first[..., 0] + row.clip(0, height - 1) * width + column.clip(0, width - 1)
            pixels = flat[torch.from_numpy(pixel)]
            made = core.packed(core.mul(pixels, weight.unsqueeze(-1)), BFLOAT16)
            total = made if total is None else added_in_l1(total, made, BFLOAT16)
    assert total is not None
    return total


def _places(points: np.ndarray, size: int, align_corners: bool) -> tuple[np.ndarray, np.ndarray]:
    """The pixel at or before a normalized coordinate, and the fractional distance from it, in float32."""
    half = (points + np.float32(1)) * np.float32(0.5)
    position = half * np.float32(size - 1) if align_corners else half * np.float32(size) - np.float32(0.5)
    before = np.floor(position)
    return before.astype(np.int64), position - before
