"""Shared parts of the attention head operations: input checks, output shapes and data movement."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from ttnn_emulator.enums import BLOCK_FLOAT_DTYPES, DataType
from ttnn_emulator.errors import ChipFault, require
from ttnn_emulator.execution.call_context import current_board
from ttnn_emulator.execution.operation_table import Plan
from ttnn_emulator.hardware.core_grid import CoreCoord, CoreRange, CoreRangeSet
from ttnn_emulator.numerics.formats.carriers import flush
from ttnn_emulator.numerics.native.threaded_copies import contiguous
from ttnn_emulator.numerics.units.matrix_unit import truncate_mantissa
from ttnn_emulator.numerics.units.packer import device_pack_block_float
from ttnn_emulator.ops.support.common_checks import require_on_device, require_tile
from ttnn_emulator.tensors.memory_config import MemoryConfig, ShardSpec
from ttnn_emulator.tensors.shapes import DEFAULT_TILE
from ttnn_emulator.tensors.spec import Spec, tile_bytes

HEAD_DTYPES = (DataType.FLOAT32, DataType.BFLOAT16, DataType.BFLOAT8_B)
TF32_BITS = 11
# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/experimental/transformer/nlp_create_qkv_heads/device/nlp_create_qkv_heads_program_factory.cpp,  # noqa: E501
# cb_num_tiles
BUFFERED_TILES = 4  # tiles per circular buffer between reader and writer

Move = Callable[[torch.Tensor], torch.Tensor]


# -- checks -----------------------------------------------------------------------------------------------------------


def require_heads(spec: Spec, name: str = "the input", dtypes: Sequence[DataType] = HEAD_DTYPES) -> None:
    require_on_device(spec, name)
    require(spec.dtype in dtypes, f"{name} is {spec.dtype}, only {', '.join(map(str, dtypes))} are supported")
    require_tile(spec, name)


def require_interleaved(config: MemoryConfig, name: str = "the output") -> None:
    require(not config.is_sharded(), f"{name} must be interleaved, not {config.brief()}")


def divided(width: int, parts: int, what: str) -> int:
    """width ÷ parts, which must divide evenly."""
    require(parts > 0, f"{what}: there must be at least one head")
    require(width % parts == 0, f"{what}: a width of {width} does not divide into {parts} heads")
    return width // parts


def outputs_given(outputs: Sequence[Spec | None] | None) -> tuple[Spec, ...] | None:
    """Three tensors for query, key and value, or None if the operation allocates them."""
    if outputs is None or len(outputs) != 3:
        return None
    given = tuple(output for output in outputs if output is not None)
    require(len(given) == 3, "output_tensors must hold a query, a key and a value")
    return given


# -- grids ------------------------------------------------------------------------------------------------------------


def board_grid() -> CoreCoord:
    return CoreCoord(*current_board().grid)


def board_cores() -> int:
    grid = board_grid()
    return grid.x * grid.y


def cores_within(start: CoreCoord, count: int, grid: CoreRangeSet) -> CoreRangeSet:
    """The first `count` cores of `grid` from `start` on, row by row, range by range."""
    require(0 < count <= grid.num_cores(), f"{count} cores do not fit on a grid of {grid.num_cores()}")
    found: list[CoreRange] = []
    left, active, here = count, False, start
    for item in grid.ranges():
        if not active and not item.contains(start):
            continue
        here = here if not active else item.start
        active = True
        for y in range(here.y, item.end.y + 1):
            if left == 0:
                break
            first = here.x if y == here.y else item.start.x
            take = min(item.end.x - first + 1, left)
            found.append(CoreRange(CoreCoord(first, y), CoreCoord(first + take - 1, y)))
            left -= take
    require(left == 0, f"{count} cores from {start} on do not fit on the grid")
    return merged_rows(found)


def merged_rows(ranges: Sequence[CoreRange]) -> CoreRangeSet:
    """Merge adjacent rows of cores of equal width into one rectangle."""
    merged: list[CoreRange] = []
    for item in ranges:
        above = merged[-1] if merged else None
        if above is not None and (above.start.x, above.end.x, above.end.y + 1) == (
            item.start.x,
            item.end.x,
            item.start.y,
        ):
            merged[-1] = CoreRange(above.start, item.end)
        else:
            merged.append(item)
    return CoreRangeSet(merged)


def sharded_like(config: MemoryConfig, shards: ShardSpec) -> MemoryConfig:
    """The layout and buffer type of `config`, with other shards."""
    return MemoryConfig(config.memory_layout, config.buffer_type, shards)


# -- values -----------------------------------------------------------------------------------------------------------


def grown(values: torch.Tensor, shape: Sequence[int]) -> torch.Tensor:
    """Values padded with zeros to `shape`."""
    if tuple(values.shape) == tuple(shape):
        return values
    values = values.reshape((1,) * (len(shape) - values.dim()) + tuple(values.shape))
    growth = [side for size, large in zip(reversed(values.shape), reversed(shape)) for side in (0, large - size)]
    return torch.nn.functional.pad(values, growth)


def grouped_heads(values: torch.Tensor, groups: int, head_dim: int) -> torch.Tensor:
    """[B, 1, S, W] → [B, groups, heads of a group, S, head_dim]: heads are contiguous within a group."""
    batch, _, length, width = values.shape
    return values.reshape(batch, length, groups, width // (groups * head_dim), head_dim).permute(0, 2, 3, 1, 4)


def joined_heads(values: torch.Tensor) -> torch.Tensor:
    """[B, H, S, D] → [B, 1, S, H × D]."""
    batch, heads, length, head_dim = values.shape
    return contiguous(values.transpose(1, 2)).view(batch, 1, length, heads * head_dim)


def transposing(dtype: DataType, *, wide: bool = True) -> Move:
    """Tiles transposed by the compute kernel: 16-bit floats are flushed, block floats repacked, float32 truncated.

    `wide` says that the kernel runs with a 32-bit destination register if the values are float32.
    """
    if dtype in BLOCK_FLOAT_DTYPES:
        return lambda values: device_pack_block_float(values.mT.contiguous(), dtype)
    if dtype is DataType.FLOAT32:
        bits = TF32_BITS if wide else 8
        return lambda values: truncate_mantissa(values.mT.contiguous(), bits)
    return lambda values: flush(values.mT)


def unchanged(values: torch.Tensor) -> torch.Tensor:
    return values


def faulty(what: str) -> Callable[..., Any]:
    """The computation of a call that the library accepts but whose result on the card is garbage."""

    def compute(*values: Any) -> Any:
        raise ChipFault(what)

    return compute


# -- plans ------------------------------------------------------------------------------------------------------------


def heads_plan(
    specs: Sequence[Spec],
    compute: Callable[..., tuple[torch.Tensor, ...]],
    reads: tuple[str, ...],
    given: tuple[Spec, ...] | None = None,
    l1_bytes: int = 0,
) -> Plan:
    """Query, key and value as a tuple, in new tensors or in those of `output_tensors`."""
    if given is None:
        return Plan(tuple(specs), compute, reads=reads, l1_bytes=l1_bytes)
    fits = all(one.shape == other.shape and one.dtype is other.dtype for one, other in zip(given, specs))
    if not fits:
        compute = faulty("the given outputs have other shapes or dtypes than the heads")
    return Plan(given, compute, reads=reads, into=("output_tensors",) * 3, l1_bytes=l1_bytes)


def buffers(dtype: DataType, count: int) -> int:
    """L1 of `count` circular buffers between reader, compute kernel and writer."""
    return count * BUFFERED_TILES * tile_bytes(DEFAULT_TILE, dtype)
