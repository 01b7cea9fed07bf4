"""Rolling: elements shifted along dimensions with wraparound."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from ttnn_emulator.enums import BufferType
from ttnn_emulator.errors import require
from ttnn_emulator.execution.operation_table import Plan, composite, internal, ttnn
from ttnn_emulator.tensors.memory_config import DRAM_MEMORY_CONFIG, MemoryConfig
from ttnn_emulator.tensors.shapes import TILE_SIZE
from ttnn_emulator.tensors.spec import Spec
from ttnn_emulator.tensors.tensor import Tensor


@composite("ttnn.roll")
def roll(
    input_tensor: Tensor,
    shifts: int | Sequence[int],
    dim: int | Sequence[int] | None = None,
    *,
    memory_config: MemoryConfig | None = None,
) -> Tensor:
    """Shift along one or more dimensions, or, without `dim`, along all elements in a row."""
    spec = input_tensor._spec
    if dim is None:
        assert isinstance(shifts, int)
        require(not spec.is_sharded, "a sharded tensor cannot be rolled without a dimension")
        flat = ttnn.reshape(input_tensor, [1, spec.volume])
        return ttnn.reshape(_roll(flat, (shifts,), (1,), memory_config), list(spec.shape))
    amounts = (shifts,) if isinstance(shifts, int) else tuple(shifts)
    return _roll(input_tensor, amounts, (dim,) if isinstance(dim, int) else tuple(dim), memory_config)


def _roll(
    tensor: Tensor, shifts: Sequence[int], dims: Sequence[int], memory_config: MemoryConfig | None = None
) -> Tensor:
    spec = tensor._spec
    require(
        len(shifts) == len(dims) > 0, f"there must be as many shifts as dimensions, not {len(shifts)} and {len(dims)}"
    )
    for dim in dims:
        require(-spec.rank <= dim < spec.rank, f"dimension {dim} is out of range for a tensor of rank {spec.rank}")
    dims = [dim % spec.rank for dim in dims]
    require(all(spec.shape[dim] for dim in dims), "an empty dimension cannot be rolled")
    moves = [(dim, shift % spec.shape[dim]) for dim, shift in zip(dims, shifts)]
    moves = [(dim, shift) for dim, shift in moves if shift]
    config = memory_config if memory_config is not None else spec.memory_config
    rolled = _roll_sharded(tensor, moves) if spec.is_sharded else _roll_interleaved(tensor, moves)
    return rolled if rolled._spec.memory_config == config else ttnn.to_memory_config(rolled, config)


def _roll_interleaved(tensor: Tensor, moves: Sequence[tuple[int, int]]) -> Tensor:
    for dim, shift in moves:
        shape = tensor._spec.shape
        start, end, none = [0] * len(shape), list(shape), [0] * len(shape)
        start[dim] = end[dim] = shape[dim] - shift
        ones = [1] * len(shape)
        parts = [ttnn.slice(tensor, start, list(shape), ones), ttnn.slice(tensor, none, end, ones)]
        tensor = ttnn.concat(parts, dim)
    return tensor


def _roll_sharded(tensor: Tensor, moves: Sequence[tuple[int, int]]) -> Tensor:
    """Roll a sharded tensor shard by shard; padding and shifts within tiles need another layout first."""
    spec, rank = tensor._spec, tensor._spec.rank
    if not moves:
        return tensor
    if _has_padding(spec):
        return _roll_interleaved(ttnn.to_memory_config(tensor, DRAM_MEMORY_CONFIG), moves)
    if spec.is_tile and any(dim >= rank - 2 and shift % TILE_SIZE for dim, shift in moves):
        rows = ttnn.untilize(tensor, memory_config=spec.memory_config)
        return ttnn.tilize(_roll_sharded(rows, moves), memory_config=spec.memory_config, dtype=spec.dtype)
    if not spec.is_tile and spec.memory_config.buffer_type is BufferType.DRAM:
        return _roll_interleaved(ttnn.to_memory_config(tensor, DRAM_MEMORY_CONFIG), moves)
    for dim, shift in moves:
        tensor = roll_shards(tensor, shift, dim)
    return tensor


def _has_padding(spec: Spec) -> bool:
    shards = spec.shard_spec
    if shards is None:
        return False
    if spec.shape != spec.padded_shape:
        return True
    return math.prod(spec.padded_shape[:-1]) % shards.shape[0] != 0 or spec.padded_shape[-1] % shards.shape[1] != 0


@internal("ttnn.prim.roll")
def roll_shards(input_tensor: Spec, shift: int, dim: int) -> Plan:
    shards = input_tensor.shard_spec
    require(shards is not None and shards.grid.size() == 1, "a sharded tensor is rolled on one rectangle of cores only")

    def compute(values: torch.Tensor) -> torch.Tensor:
        return torch.roll(values, shift, dim)

    return Plan(input_tensor.with_(), compute)
