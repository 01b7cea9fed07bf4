"""Key-value caches [B, heads, S, D] written in place: many positions of one user, or one position of every user."""

from __future__ import annotations

from typing import Any

import torch

from ttnn_emulator.enums import DataType, TensorMemoryLayout
from ttnn_emulator.errors import require
from ttnn_emulator.execution.operation_table import Plan, operation
from ttnn_emulator.ops.attention.caches.rows_and_pages import RowWriter
from ttnn_emulator.ops.attention.heads.common import faulty, grown
from ttnn_emulator.ops.support.common_checks import math_config, require_on_device, require_tile
from ttnn_emulator.ops.support.derived_shards import HEIGHT, WIDTH
from ttnn_emulator.tensors.shapes import TILE_SIZE
from ttnn_emulator.tensors.spec import Spec

CACHE_DTYPES = (DataType.FLOAT32, DataType.BFLOAT16, DataType.BFLOAT8_B)
# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/kv_cache/device/update_cache_device_operation.cpp, batch_offset
MOST_USERS = 32


def _require_cache(cache: Spec, input: Spec) -> None:
    for spec, name in ((cache, "the cache"), (input, "the input")):
        require_on_device(spec, name)
        require_tile(spec, name)
        require(spec.dtype in CACHE_DTYPES, f"{name} is {spec.dtype}, only {', '.join(map(str, CACHE_DTYPES))} are")
    of_cache, given = cache.padded_shape, input.padded_shape
    require(given[-1] == of_cache[-1], f"the input is {given[-1]} wide, the cache {of_cache[-1]}")
    require(given[0] == 1, f"dimension 0 of the input must be 1, it is {given[0]}")
    require(given[1] == of_cache[1], f"the input has {given[1]} heads, the cache {of_cache[1]}")
    config = cache.memory_config
    collapsed = config.memory_layout is HEIGHT and config.created_with_nd_shard_spec and config.is_dram
    require(
        config.memory_layout in (TensorMemoryLayout.INTERLEAVED, TensorMemoryLayout.ND_SHARDED) or collapsed,
        f"the cache must be interleaved, not {config.brief()}",
    )


def _require_whole_shards(input: Spec, height: int) -> None:
    if not input.is_sharded:
        return
    require(input.memory_config.memory_layout is not WIDTH, "the input must not be width sharded")
    shards = input.shard_spec
    require(shards is not None, "the input has no two-dimensional shards")
    assert shards is not None
    width = input.padded_shape[-1]
    require(shards.shape[1] == width, f"shards are {shards.shape[1]} wide, the input {width}")
    require(height % shards.shape[0] == 0, f"a height of {height} does not divide into shards of {shards.shape[0]}")


# -- many positions of one user ---------------------------------------------------------------------------------------


def _fill(cache: Spec, input: Spec, user: int, position: int, names: tuple[str, str]) -> Plan:
    _require_cache(cache, input)
    require(input.dtype is cache.dtype, f"the input is {input.dtype}, the cache {cache.dtype}")
    length, rows = cache.padded_shape[-2], input.padded_shape[-2]
    _require_whole_shards(input, rows)
    require(0 <= user < cache.padded_shape[0], f"user {user} is not one of {cache.padded_shape[0]}")
    require(position % TILE_SIZE == 0, f"position {position} is not a multiple of {TILE_SIZE}")
    require(0 <= position <= length - rows, f"{rows} rows at {position} do not fit into {length}")
    shape, padded, given = cache.shape, cache.padded_shape, input.padded_shape
    whole = tuple(slice(size) for size in shape)

    def compute(held: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
        made = grown(held, padded).clone()
        made[user, :, position : position + rows] = grown(values, given)[0]
        return made[whole].contiguous()

    run = compute if len(padded) == 4 and len(given) == 4 else faulty("cache and input must have rank 4")
    return Plan(cache, run, reads=names, into=names[:1], l1_bytes=2 * cache.page_bytes)


@operation("ttnn.fill_cache")
def fill_cache(cache_tensor: Spec, input_tensor: Spec, batch_idx: int, *, update_idx: int = 0) -> Plan:
    """The rows of the input [1, H, S, D] into the cache of one user, from `update_idx` on, in place."""
    return _fill(cache_tensor, input_tensor, batch_idx, update_idx, ("cache_tensor", "input_tensor"))


@operation("ttnn.kv_cache.fill_cache_for_user_")
def fill_cache_for_user(cache: Spec, input: Spec, batch_index: int, *, update_idx: int = 0) -> Plan:
    """The rows of the input [1, H, S, D] into the cache of one user, from `update_idx` on, in place."""
    return _fill(cache, input, batch_index, update_idx, ("cache", "input"))


# -- one position of every user ---------------------------------------------------------------------------------------


def _update(cache: Spec, input: Spec, position: int, offset: int, compute_kernel_config: Any) -> Plan:
    _require_cache(cache, input)
    require(position >= 0 and offset >= 0, f"position {position} and offset {offset} must not be negative")
    _require_whole_shards(input, input.physical_shape[0])
    users = cache.padded_shape[0]
    require(users <= input.padded_shape[-2], f"{users} users are more than the rows {input.padded_shape[-2]}")
    if users < MOST_USERS:
        require(offset + users <= MOST_USERS, f"{users} users from {offset} on are more than {MOST_USERS}")
    else:
        require(offset == 0, f"batch_offset must be 0 for {users} users, not {offset}")
    wide = math_config(compute_kernel_config).fp32_acc
    writer = RowWriter(cache.dtype, input.dtype, wide)
    shape, padded, given = cache.shape, cache.padded_shape, input.padded_shape
    whole = tuple(slice(size) for size in shape)

    def compute(held: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
        made = grown(held, padded).clone()
        rows = grown(values, given)[0, :, offset : offset + users]  # [H, B, D]
        writer.write(made, position, writer.rows(rows.transpose(0, 1)))
        return made[whole].contiguous()

    run = compute if len(padded) == 4 and len(given) == 4 else faulty("cache and input must have rank 4")
    return Plan(cache, run, reads=("cache", "input"), into=("cache",), l1_bytes=_update_buffers(cache, input))


def _update_buffers(cache: Spec, input: Spec) -> int:
    """Circular buffers: one tile of users, and pairs of users being updated."""
    if input.is_sharded:
        return 0
    tiles, group = cache.padded_shape[-1] // TILE_SIZE, 1 if cache.padded_shape[0] % 2 else 2
    between = TILE_SIZE * TILE_SIZE * 2
    return tiles * ((MOST_USERS + 2 * group) * cache.page_bytes + 2 * input.page_bytes + 4 * group * between)


@operation("ttnn.update_cache")
def update_cache(
    cache: Spec, input: Spec, update_idx: int, *, batch_offset: int = 0, compute_kernel_config: Any = None
) -> Plan:
    """The rows of the input [1, H, users, D], one per user, into position `update_idx` of their caches, in place."""
    return _update(cache, input, update_idx, batch_offset, compute_kernel_config)


@operation("ttnn.kv_cache.update_cache_for_token_")
def update_cache_for_token(
    cache: Spec, input: Spec, update_index: int, batch_offset: int = 0, compute_kernel_config: Any = None
) -> Plan:
    """The rows of the input [1, H, users, D], one per user, into position `update_index` of their caches, in place."""
    return _update(cache, input, update_index, batch_offset, compute_kernel_config)
