"""Rotary embeddings of a chunk of a prompt, with cos and sin read from the rows of a position."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ttnn_emulator.enums import FLOAT_DTYPES, DataType
from ttnn_emulator.errors import ChipFault, require
from ttnn_emulator.execution.operation_table import Plan, operation
from ttnn_emulator.numerics.programs.attention.rotary import Rotation
from ttnn_emulator.ops.attention.heads.common import board_cores, faulty, grown
from ttnn_emulator.ops.attention.rotary import rotary_config
from ttnn_emulator.ops.prefill.mesh_positions import (
    METADATA_BYTES,
    PREFILL,
    chips_along,
    coordinates,
    local_rows,
    number,
    on_every_chip,
    require_axis,
    require_unsigned,
)
from ttnn_emulator.ops.support.common_checks import memory_of, require_on_device, require_tile
from ttnn_emulator.tensors.memory_config import MemoryConfig
from ttnn_emulator.tensors.shapes import DEFAULT_TILE, TILE_SIZE, div_up
from ttnn_emulator.tensors.spec import Spec, tile_bytes

# tt-metal v0.81.1: ttnn/cpp/ttnn/operations/experimental/transformer/rotary_embedding_llama/device/kernels/compute/rotary_embedding_llama.cpp,  # noqa: E501
# destination register use
# The kernel keeps one row of tiles of a head in the destination register.
TILES_IN_REGISTER, TILES_IN_REGISTER_FP32 = 8, 4
# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/experimental/deepseek_prefill/rotary_embedding_indexed/device/rotary_embedding_indexed_device_operation.cpp,  # noqa: E501
# use_reload_impl
ROWS_KEPT = 8  # rows of tiles per core up to which cos and sin stay in L1


@operation(f"{PREFILL}.rotary_embedding_indexed")
def rotary_embedding_indexed(
    input: Spec,
    cos: Spec,
    sin: Spec,
    trans_mat: Spec,
    kv_actual_global: int | Spec,
    cluster_axis: int,
    memory_config: MemoryConfig | None = None,
    compute_kernel_config: Any = None,
    seq_subshard_axis: int | None = None,
    rotary_dim: int | None = None,
    rotary_offset: int = 0,
    concat_prefix: Spec | None = None,
) -> Plan:
    """Columns of a chunk [B, heads, S, D] rotated by cos and sin from the row of `kv_actual_global` on.

    Columns outside of [rotary_offset, rotary_offset + rotary_dim) stay as they are; those of `concat_prefix` come
    before them.
    """
    require_unsigned(kv_actual_global=kv_actual_global, cluster_axis=cluster_axis, rotary_offset=rotary_offset)
    require_unsigned(seq_subshard_axis=seq_subshard_axis, rotary_dim=rotary_dim)
    named = [(input, "the input"), (cos, "cos"), (sin, "sin"), (trans_mat, "the matrix")]
    for spec, name in named:
        require_on_device(spec, name)
        require_tile(spec, name)
        require(spec.tile == DEFAULT_TILE, f"{name} must have tiles of {TILE_SIZE} x {TILE_SIZE}")
        require(spec.rank == 4, f"{name} has rank {spec.rank}, not 4")
    one_tile = trans_mat.padded_shape == (1, 1, TILE_SIZE, TILE_SIZE)
    require(one_tile, f"the matrix must be one tile, not {list(trans_mat.shape)}")
    require(cos.dtype is sin.dtype, f"cos is {cos.dtype}, sin {sin.dtype}")
    require(cos.padded_shape == sin.padded_shape, f"cos is {list(cos.shape)}, sin {list(sin.shape)}")
    width = _require_columns(input, cos, sin, rotary_dim, rotary_offset)
    rows = input.padded_shape[-2]
    require(rows > 0 and input.volume > 0, "the input is empty")
    require_axis(cluster_axis)
    parts = 1
    if seq_subshard_axis is not None:
        other = seq_subshard_axis in (0, 1) and seq_subshard_axis != cluster_axis
        require(other, f"seq_subshard_axis {seq_subshard_axis} must be the axis that cluster_axis is not")
        parts = chips_along(seq_subshard_axis)
    chips, chunk = chips_along(cluster_axis), rows * parts
    if isinstance(kv_actual_global, Spec):
        _require_position(kv_actual_global)
    else:
        require(
            kv_actual_global % TILE_SIZE == 0, f"kv_actual_global {kv_actual_global} is not a multiple of {TILE_SIZE}"
        )
        last = max(local_rows(kv_actual_global, chip, chips, chunk) for chip in range(chips)) + chunk
        require(last <= cos.padded_shape[-2], f"cos and sin have {cos.padded_shape[-2]} rows, {last} are needed")
    before = 0 if concat_prefix is None else _require_prefix(concat_prefix, input)
    config = memory_of(memory_config, input)
    shape = (*input.shape[:-1], before + input.shape[-1])
    out = Spec.of(shape, input.dtype, input.layout, config)
    setting = rotary_config(compute_kernel_config)
    rotation = Rotation(setting, input.dtype, cos.dtype, cos.dtype)
    inner = seq_subshard_axis if seq_subshard_axis is not None else 1 - cluster_axis
    places = zip(coordinates(cluster_axis), coordinates(inner))
    fixed = kv_actual_global if isinstance(kv_actual_global, int) else None
    turned = _turned(input, cos, rotation, (rotary_offset, width), fixed, concat_prefix is not None)

    def row_on(chip: int, part: int) -> Callable[[int], int]:
        return lambda position: local_rows(position, chip, chips, chunk) + part % parts * rows

    work: list[Any] = [turned(row_on(chip, part)) for chip, part in places]
    kept = TILES_IN_REGISTER_FP32 if setting.fp32_acc else TILES_IN_REGISTER
    if width > kept * TILE_SIZE:
        work = [faulty(f"{width} columns are more than the destination register holds")] * len(work)
    elif any(spec.dtype not in FLOAT_DTYPES for spec, _ in named):
        work = [faulty("integers do not pass through the matrix unit")] * len(work)
    compute, across = on_every_chip(work)
    optional = ("concat_prefix",) * (concat_prefix is not None) + ("kv_actual_global",) * (fixed is None)
    reads = ("input", "cos", "sin", "trans_mat", *optional)
    specs = (input, cos, sin, trans_mat, concat_prefix, kv_actual_global if fixed is None else None)
    settings = (cluster_axis, seq_subshard_axis, rotary_dim, rotary_offset, config, setting)
    l1_bytes = _buffer_bytes(input, cos, trans_mat, width) + METADATA_BYTES * (fixed is None)
    return Plan(
        out, compute, reads=reads, across=across, program=(PREFILL, "rotary", specs, settings), l1_bytes=l1_bytes
    )


def _require_columns(input: Spec, cos: Spec, sin: Spec, rotary_dim: int | None, offset: int) -> int:
    """The number of rotated columns: the width of cos."""
    room = input.padded_shape[-1] if rotary_dim is None else input.shape[-1]
    width = room if rotary_dim is None else rotary_dim
    require(width > 0 and width % TILE_SIZE == 0, f"{width} columns are not a multiple of {TILE_SIZE}")
    require(offset % TILE_SIZE == 0, f"rotary_offset {offset} is not a multiple of {TILE_SIZE}")
    require(offset + width <= room, f"columns {offset} to {offset + width} are not within {room}")
    require(width == cos.padded_shape[-1], f"cos is {cos.padded_shape[-1]} wide, not {width}")
    if rotary_dim is not None:
        require(cos.shape[-1] == sin.shape[-1] == width, f"cos and sin must be {width} wide without padding")
    return width


def _require_position(spec: Spec) -> None:
    require_on_device(spec, "kv_actual_global")
    require(spec.dtype is DataType.UINT32, f"kv_actual_global is {spec.dtype}, not uint32")
    require(spec.volume == 1, f"kv_actual_global must hold one number, not {spec.volume}")


def _require_prefix(prefix: Spec, input: Spec) -> int:
    require_on_device(prefix, "concat_prefix")
    require_tile(prefix, "concat_prefix")
    require(prefix.tile == DEFAULT_TILE, f"concat_prefix must have tiles of {TILE_SIZE} x {TILE_SIZE}")
    require(prefix.rank == 4, f"concat_prefix has rank {prefix.rank}, not 4")
    require(prefix.dtype is input.dtype, f"concat_prefix is {prefix.dtype}, the input {input.dtype}")
    width = prefix.shape[-1]
    require(width % TILE_SIZE == 0, f"concat_prefix is {width} wide, not a multiple of {TILE_SIZE}")
    same = prefix.shape[:-1] == input.shape[:-1]
    require(same, f"concat_prefix is {list(prefix.shape)}, the input {list(input.shape)}")
    return width


def _turned(
    input: Spec, cos: Spec, rotation: Rotation, columns: tuple[int, int], fixed: int | None, prefixed: bool
) -> Callable[[Callable[[int], int]], Callable[..., torch.Tensor]]:
    """The work of a chip, given the row of its cos and sin for a position."""
    shape, padded, of_cos = input.shape, input.padded_shape, cos.padded_shape
    rows, (first, width) = padded[-2], columns
    by_head = of_cos[1] == padded[1]

    def on(row_of: Callable[[int], int]) -> Callable[..., torch.Tensor]:
        def compute(
            x: torch.Tensor, cosines: torch.Tensor, sines: torch.Tensor, matrix: torch.Tensor, *rest: torch.Tensor
        ) -> torch.Tensor:
            position = number(rest[-1]) if fixed is None else fixed
            start = row_of(position // TILE_SIZE * TILE_SIZE)
            if start + rows > of_cos[-2]:
                raise ChipFault(f"rows {start} to {start + rows} are outside cos and sin of {of_cos[-2]} rows")
            heads = slice(None) if by_head else slice(1)
            parts = [grown(each, of_cos)[:1, heads, start : start + rows] for each in (cosines, sines)]
            made = grown(x, padded).clone()
            turned = made[..., first : first + width].contiguous()
            turn = grown(matrix, (1, 1, TILE_SIZE, TILE_SIZE))[0, 0]
            made[..., first : first + width] = rotation.by_matrix(turned, parts[0], parts[1], turn)
            made = made[tuple(slice(size) for size in shape)]
            return torch.cat([rest[0], made], -1) if prefixed else made.contiguous()

        return compute

    return on


def _buffer_bytes(input: Spec, cos: Spec, trans_mat: Spec, width: int) -> int:
    """Circular buffers per core, as in the program factory."""
    tiles, batch, heads = width // TILE_SIZE, input.padded_shape[0], input.padded_shape[1]
    rows = input.padded_shape[-2] // TILE_SIZE
    of_batch = max(min(batch, board_cores()), 1)
    each = div_up(rows, max(min(board_cores() // of_batch, rows), 1))
    if each * heads > ROWS_KEPT or cos.padded_shape[1] == heads:
        each = 1
    own, of_cos = input.page_bytes, cos.page_bytes
    moved = 2 * tiles * each * own + 2 * tiles * own + 2 * 2 * tiles * each * of_cos
    return moved + tile_bytes(DEFAULT_TILE, trans_mat.dtype) + tiles * own + 2 * tiles * of_cos + own
