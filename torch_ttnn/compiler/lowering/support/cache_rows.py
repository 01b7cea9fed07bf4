"""Writes one row of a cache [batch, heads, length, width] in place: a decode step neither copies nor scatters it."""

from __future__ import annotations

from typing import Any

import ttnn_emulator
from torch_ttnn.compiler.errors import StaysOnHost
from torch_ttnn.compiler.ir.builder import ProgramBuilder
from torch_ttnn.compiler.ir.value import TILE, Handle, Value
from torch_ttnn.compiler.lowering.data_movement.repeating import repeated
from ttnn_emulator import TILE_SIZE, DataType
from ttnn_emulator.tensors.shapes import round_up

ROWS_DIM = 2


def write_row(ttnn: Any, builder: ProgramBuilder, x: Value, dim: int, index: Value, source: Value) -> Value | None:
    """`x` with `source` at the position `index`, written over the input that `x` is; None if that is not possible.

    The bounds of the program's inputs guarantee that the position is in the cache.
    """
    memory = builder.overwritten()
    if memory is None or x.ndim != 4 or dim % 4 != ROWS_DIM or index.numel != 1 or index.is_static:
        return None
    is_float = memory.dtype in (DataType.BFLOAT16, DataType.FLOAT32)
    if memory.shape != x.shape or memory.layout is not TILE or not is_float or x.shape[0] > _cores(builder):
        return None
    try:
        written = _updated(ttnn, builder, memory, index, source)
    except StaysOnHost:  # the rows of all heads do not fit into the memory of a core
        return None
    return builder.overwritten_by(written, x)


def _updated(ttnn: Any, builder: ProgramBuilder, memory: Handle, index: Value, source: Value) -> Handle:
    users, heads, _, width = memory.shape
    rows = source.view((1, users, heads, width)).tile(memory.dtype)
    return ttnn.experimental.paged_update_cache(
        memory,
        ttnn.to_memory_config(rows, _one_core_each(builder, users, heads, width)),
        update_idxs_tensor=_positions(ttnn, builder, index, users),
        compute_kernel_config=builder.accurate,
    )


def _positions(ttnn: Any, builder: ProgramBuilder, index: Value, users: int) -> Handle:
    flat = index.view((1,))
    return (flat if users == 1 else repeated(ttnn, builder, flat, [users])).row_major(DataType.INT32)


def _cores(builder: ProgramBuilder) -> int:
    grid = builder.target.typing.compute_with_storage_grid_size()
    return grid.x * grid.y


def _one_core_each(builder: ProgramBuilder, users: int, heads: int, width: int) -> Any:
    """The rows of each user on a core of its own, as the operation requires."""
    grid = builder.target.typing.compute_with_storage_grid_size()
    cores = ttnn_emulator.num_cores_to_corerangeset(users, grid, True)
    shard = [round_up(heads, TILE_SIZE), round_up(width, TILE_SIZE)]
    shards = ttnn_emulator.ShardSpec(cores, shard, ttnn_emulator.ShardOrientation.ROW_MAJOR)
    return ttnn_emulator.MemoryConfig(
        ttnn_emulator.TensorMemoryLayout.HEIGHT_SHARDED, ttnn_emulator.BufferType.L1, shards
    )
