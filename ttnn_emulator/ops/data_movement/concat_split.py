"""Joining and splitting tensors along a dimension: concat, stack, split, chunk."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from ttnn_emulator.enums import BufferType, DataType, Layout
from ttnn_emulator.errors import require
from ttnn_emulator.execution.call_context import current_board
from ttnn_emulator.execution.operation_table import Plan, composite, internal, ttnn
from ttnn_emulator.hardware.boards import Board
from ttnn_emulator.hardware.core_grid import CoreRangeSet
from ttnn_emulator.hardware.device import MeshDevice
from ttnn_emulator.numerics.formats.carriers import flush
from ttnn_emulator.numerics.native.threaded_copies import contiguous, joined
from ttnn_emulator.ops.support.common_checks import dim_of
from ttnn_emulator.ops.support.derived_shards import (
    BLOCK,
    HEIGHT,
    WIDTH,
    fresh_shards,
    lacks_shards,
    scaled_shards,
    tile_aligned,
)
from ttnn_emulator.tensors.memory_config import DRAM_MEMORY_CONFIG, MemoryConfig, ShardSpec
from ttnn_emulator.tensors.shapes import TILE_SIZE, div_up, round_up
from ttnn_emulator.tensors.spec import ROW_MAJOR_BYTES, Spec, tile_bytes
from ttnn_emulator.tensors.tensor import Tensor

# Inputs per program, limited by its arguments, and by its circular buffers for block shards.
# tt-metal v0.81.1: ttnn/cpp/ttnn/operations/data_movement/concat/device/concat_device_operation.cpp, max_tensors
MOST_INPUTS, MOST_BLOCK_SHARDED = 47, 16
MOST_UNALIGNED = 32  # inputs per program of the unaligned-tile kernel


@composite("ttnn.concat")
def concat(
    tensors: Sequence[Tensor],
    dim: int = 0,
    *,
    memory_config: MemoryConfig | None = None,
    output_tensor: Tensor | None = None,
    groups: int = 1,
    sub_core_grids: CoreRangeSet | None = None,
) -> Tensor:
    """Concatenate tensors along `dim`."""
    require(len(tensors) > 0, "there must be at least one tensor to concatenate")
    require(output_tensor is None, "an output tensor is not supported")
    config = memory_config or DRAM_MEMORY_CONFIG
    if len(tensors) == 1:
        return ttnn.to_memory_config(tensors[0], config)
    specs = [tensor._spec for tensor in tensors]
    first = specs[0]
    require(-first.rank <= dim < first.rank, f"dimension {dim} is out of range for tensors of rank {first.rank}")
    dim %= first.rank
    others = [_without(spec.shape, dim) for spec in specs]
    require(
        all(spec.rank == first.rank for spec in specs) and all(other == others[0] for other in others),
        f"shapes {[list(spec.shape) for spec in specs]} differ in more than dimension {dim}",
    )
    require(all(spec.on_device for spec in specs), "all tensors must be on the device")
    if sub_core_grids is not None and not first.is_sharded and config.interleaved:
        return _concat(tensors, dim, groups, config)
    if _takes_unaligned_tiles(tensors, dim, groups, config):
        return _concat(tensors, dim, groups, config)
    return _concat_by_tiles_or_rows(tensors, dim, groups, config)


def _without(shape: tuple[int, ...], dim: int) -> tuple[int, ...]:
    return shape[:dim] + shape[dim + 1 :]


def _board(tensor: Tensor) -> Board:
    return tensor._device.board if tensor._device is not None else current_board()


def _alignment(tensor: Tensor) -> int:
    board = _board(tensor)
    return board.dram_alignment if tensor._spec.memory_config.is_dram else board.l1_alignment


def _row_bytes(spec: Spec, size: int) -> int:
    return size * ROW_MAJOR_BYTES[spec.dtype]


def _takes_unaligned_tiles(tensors: Sequence[Tensor], dim: int, groups: int, config: MemoryConfig) -> bool:
    """Whether one kernel joins partially filled tiles: it untilizes, shifts and tilizes per row of tiles."""
    specs = [tensor._spec for tensor in tensors]
    first = specs[0]
    if groups != 1 or len(tensors) > MOST_UNALIGNED or config.is_sharded() or first.rank < 2 or dim != first.rank - 1:
        return False
    if first.dtype not in (DataType.BFLOAT16, DataType.FLOAT32):
        return False
    if not all(spec.is_tile and not spec.is_sharded for spec in specs):
        return False
    if all(spec.shape[-1] == spec.padded_shape[-1] for spec in specs):
        return False
    tiles_in = sum(spec.padded_shape[-1] // TILE_SIZE for spec in specs)
    tiles_out = div_up(sum(spec.shape[-1] for spec in specs), TILE_SIZE)
    tile = tile_bytes(first.tile, first.dtype)
    device = tensors[0]._device
    assert device is not None
    needed = 3 * (tiles_in + tiles_out) * tile
    if config.is_l1:
        bands = math.prod(first.padded_shape[:-1]) // TILE_SIZE
        needed += div_up(bands * tiles_out, device.board.cores) * tile
    return first.volume > 0 and needed <= _free_l1(device)


def _free_l1(device: MeshDevice) -> int:
    """Bytes of L1 below the lowest tensor on any core."""
    memory = device.memory(BufferType.L1)
    lowest = memory.lowest_used_address
    return (lowest if lowest is not None else memory.base + memory.bank_bytes) - memory.base


def _concat_by_tiles_or_rows(tensors: Sequence[Tensor], dim: int, groups: int, config: MemoryConfig) -> Tensor:
    """Untilize inputs with partial tiles along `dim`, concatenate rows, and tilize the result."""
    specs = [tensor._spec for tensor in tensors]
    if not any(spec.is_tile and (spec.shape[dim] != spec.padded_shape[dim] or spec.rank == 1) for spec in specs):
        return _concat_rows(tensors, dim, groups, config)
    require(all(spec.is_tile for spec in specs), "all tensors must be in TILE layout, or all in ROW_MAJOR")
    rows = [ttnn.untilize_with_unpadding(tensor, [size - 1 for size in tensor._spec.shape]) for tensor in tensors]
    result = _concat_rows(rows, dim, groups, config)
    if result._spec.is_tile:
        return result
    shape = result._spec.padded_shape if result._spec.rank > 1 else (1, *result._spec.padded_shape)
    whole = [*shape[:-2], *(round_up(size, TILE_SIZE) for size in shape[-2:])]
    return ttnn.tilize_with_val_padding(result, whole, 0.0, memory_config=result._spec.memory_config)


def _concat_rows(tensors: Sequence[Tensor], dim: int, groups: int, config: MemoryConfig) -> Tensor:
    """Unaligned rows cannot be joined end to end: transpose, join along the height, transpose back."""
    rank = tensors[0]._spec.rank
    unaligned_vectors = dim == 0 and any(
        not tensor._spec.is_tile
        and tensor._spec.rank == 1
        and _row_bytes(tensor._spec, tensor._spec.shape[0]) % _alignment(tensor)
        for tensor in tensors
    )
    if unaligned_vectors:
        require(all(tensor._spec.rank == 1 for tensor in tensors), "all tensors must be of rank 1")
        wide = [ttnn.unsqueeze(tensor, 0) for tensor in tensors]
        return ttnn.squeeze(_concat_rows(wide, 1, groups, config), 0)
    if dim == rank - 1 and any(
        _row_bytes(tensor._spec, tensor._spec.padded_shape[-1]) % _alignment(tensor) for tensor in tensors
    ):
        columns = [ttnn.transpose(tensor, -2, -1) for tensor in tensors]
        return ttnn.transpose(_concat(columns, rank - 2, groups, config), -2, -1, memory_config=config)
    return _concat(tensors, dim, groups, config)


def _concat(tensors: Sequence[Tensor], dim: int, groups: int, config: MemoryConfig) -> Tensor:
    """Concatenate tensors that need no preparation, in batches if there are too many."""
    if len(tensors) == 1:
        only = tensors[0]
        return only if only._spec.memory_config == config else ttnn.clone(only, memory_config=config)
    first = tensors[0]._spec
    in_place = _uses_shards_in_place([tensor._spec for tensor in tensors], config)
    most = MOST_INPUTS
    if in_place:
        most = MOST_BLOCK_SHARDED if first.memory_config.memory_layout is BLOCK else 44
    if len(tensors) > most:
        require(
            first.memory_config.memory_layout is not BLOCK,
            f"at most {MOST_BLOCK_SHARDED} block-sharded tensors can be concatenated, not {len(tensors)}",
        )
        batches = [tensors[start : start + most] for start in range(0, len(tensors), most)]
        return _concat([_concat(batch, dim, groups, config) for batch in batches], dim, groups, config)
    if first.is_sharded:
        return _concat_sharded(tensors, dim, groups, config, in_place)
    if not first.is_tile and dim == first.rank - 1:
        for tensor in tensors:
            require(
                _row_bytes(tensor._spec, tensor._spec.padded_shape[dim]) % _alignment(tensor) == 0,
                f"rows of {tensor._spec.padded_shape[dim]} do not fill units of {_alignment(tensor)} B",
            )
    layout = first.layout
    for tensor in tensors:
        shape = tensor._spec.padded_shape
        if not tensor._spec.is_tile and (len(shape) < 2 or shape[-2] % TILE_SIZE or shape[-1] % TILE_SIZE):
            layout = Layout.ROW_MAJOR
    alike = [tensor if tensor._spec.layout is layout else ttnn.to_layout(tensor, layout) for tensor in tensors]
    if config.is_sharded() and layout is Layout.ROW_MAJOR and config.memory_layout is not HEIGHT:
        return ttnn.to_memory_config(join(tuple(alike), dim, groups, DRAM_MEMORY_CONFIG), config)
    return join(tuple(alike), dim, groups, config)


def _uses_shards_in_place(specs: Sequence[Spec], config: MemoryConfig) -> bool:
    """Whether the program's circular buffers alias the shards, which must be in L1."""
    if not specs[0].is_sharded or any(spec.memory_config.is_dram for spec in specs):
        return False
    return not (config.is_sharded() and config.is_dram)


def _concat_sharded(tensors: Sequence[Tensor], dim: int, groups: int, config: MemoryConfig, in_place: bool) -> Tensor:
    first = tensors[0]._spec
    layout = first.memory_config.memory_layout
    require(in_place or groups == 1, f"groups must be 1 for shards in DRAM, not {groups}")
    rows_are_pages = first.is_tile or (layout is HEIGHT and (not config.is_sharded() or config.memory_layout is HEIGHT))
    if not in_place and not rows_are_pages:
        spread = [ttnn.to_memory_config(tensor, DRAM_MEMORY_CONFIG) for tensor in tensors]
        return _concat(spread, dim, groups, config)
    if config.is_sharded() or not in_place:
        return join(tuple(tensors), dim, groups, config)
    axis = 1 if dim == first.rank - 1 else 0
    fits = (HEIGHT, BLOCK) if axis else (WIDTH, BLOCK)
    if dim >= first.rank - 2 and layout in fits:
        shards = first.shard_spec
        assert shards is not None
        sizes = list(shards.shape)
        sizes[axis] = sum(tensor._spec.shard_spec.shape[axis] for tensor in tensors if tensor._spec.shard_spec)
        require(
            all(tensor._spec.shard_spec is not None for tensor in tensors),
            "all tensors must be sharded, or all must be interleaved",
        )
        staged = MemoryConfig(layout, BufferType.L1, ShardSpec(shards.grid, sizes, shards.orientation))
        return ttnn.to_memory_config(join(tuple(tensors), dim, groups, staged), config)
    spread = [ttnn.to_memory_config(tensor, config) for tensor in tensors]
    return _concat(spread, dim, groups, config)


@internal("ttnn.prim.concat")
def join(tensors: Sequence[Spec], dim: int, groups: int, memory_config: MemoryConfig) -> Plan:
    """The concat kernels: whole rows or whole tiles. `groups` interleaves groups of columns of height shards."""
    first, rank = tensors[0], tensors[0].rank
    for spec in tensors:
        require(spec.layout is first.layout, "all tensors must have the same layout")
        require(spec.dtype is first.dtype, f"all tensors must be of one dtype, not {first.dtype} and {spec.dtype}")
        require(spec.is_sharded == first.is_sharded, "all tensors must be sharded, or all must be interleaved")
        if first.is_sharded:
            require(spec.shard_spec is not None, "a sharded tensor must have a shard spec")
            assert spec.shard_spec is not None and first.shard_spec is not None
            require(
                spec.shard_spec.grid == first.shard_spec.grid
                and spec.shard_spec.orientation is first.shard_spec.orientation
                and spec.memory_config.memory_layout is first.memory_config.memory_layout,
                "sharded tensors must agree in grid, orientation and memory layout",
            )
    shape = [*first.shape]
    shape[dim] = sum(spec.shape[dim] for spec in tensors)
    out = first.with_(shape=tuple(shape), memory_config=memory_config)
    grouped = False
    if _uses_shards_in_place(tensors, memory_config):
        _require_matching_shards(tensors, dim, groups, out)
        grouped = groups > 1
    elif first.is_sharded:
        require(groups == 1, f"groups must be 1 for shards in DRAM, not {groups}")

    # Partial tiles along the dimension go through the packer, which flushes 16-bit floats.
    repacked = first.dtype is DataType.BFLOAT16 and any(
        spec.is_tile and spec.shape[dim] != spec.padded_shape[dim] for spec in tensors
    )

    def compute(values: list[torch.Tensor]) -> torch.Tensor:
        whole = joined(values, dim)
        return flush(whole) if repacked else whole

    def compute_grouped(values: list[torch.Tensor]) -> torch.Tensor:
        parts = [torch.tensor_split(value, groups, dim=rank - 1) for value in values]
        return joined([part for group in zip(*parts) for part in group], rank - 1)

    return Plan(out, compute_grouped if grouped else compute, narrow=True)


def _require_matching_shards(tensors: Sequence[Spec], dim: int, groups: int, out: Spec) -> None:
    first, rank = tensors[0], tensors[0].rank
    shards, layout, wanted = first.shard_spec, first.memory_config.memory_layout, out.memory_config.shard_spec
    assert shards is not None
    require(out.memory_config.memory_layout is layout, "inputs and output must have the same memory layout")
    require(
        wanted is not None and wanted.grid == shards.grid and wanted.orientation is shards.orientation,
        "inputs and output must be sharded over the same grid in the same orientation",
    )
    allowed = (HEIGHT, BLOCK) if dim == rank - 1 else (WIDTH, BLOCK) if dim == rank - 2 else ()
    require(layout in allowed, f"{layout.name} tensors cannot be concatenated along dimension {dim} of {rank}")
    require(groups == 1 or layout is HEIGHT, f"groups must be 1 for {layout.name} tensors, not {groups}")
    if groups > 1:
        for spec in tensors:
            require(spec.padded_shape[-1] % groups == 0, f"{spec.padded_shape[-1]} columns do not fall into {groups}")
    if layout is BLOCK:
        require(len(tensors) <= MOST_BLOCK_SHARDED, f"at most {MOST_BLOCK_SHARDED} block-sharded tensors can be joined")
        require(shards.grid.size() == 1, "block-sharded tensors must be on one rectangle of cores")


@composite("ttnn.stack")
def stack(input_tensors: Sequence[Tensor], dim: int) -> Tensor:
    """Stack tensors along a new dimension."""
    require(len(input_tensors) > 0, "there must be at least one tensor to stack")
    return concat([ttnn.unsqueeze(tensor, dim) for tensor in input_tensors], dim)


# -- split ------------------------------------------------------------------------------------------------------------


@composite("ttnn.split")
def split(
    input_tensor: Tensor,
    split_size: int | Sequence[int],
    dim: int = 0,
    *,
    memory_config: MemoryConfig | None = None,
) -> list[Tensor]:
    """Split into parts of one size, or of a list of sizes, along `dim`."""
    spec = input_tensor._spec
    if isinstance(split_size, int):
        require(split_size > 0, f"the size of a part must be positive, not {split_size}")
    require(-spec.rank <= dim < spec.rank, f"dimension {dim} is out of range for a tensor of rank {spec.rank}")
    dim %= spec.rank
    whole = spec.shape[dim]
    if isinstance(split_size, int):
        sizes = [min(split_size, whole - start) for start in range(0, whole, split_size)]
    else:
        sizes = list(split_size)
    require(sizes and all(size > 0 for size in sizes), f"sizes {sizes} must be positive, and there must be some")
    require(sum(sizes) == whole, f"sizes {sizes} must add up to {whole}, the size of dimension {dim}")
    require(spec.on_device, "the input tensor must be on a device")
    config = _split_memory(input_tensor, sizes, dim, memory_config)
    if _splits_in_one_program(input_tensor, sizes, dim):
        return split_columns(input_tensor, len(sizes), config)
    if len(sizes) > 2 and spec.memory_config.buffer_type is BufferType.L1 and config.is_dram:
        input_tensor = ttnn.to_memory_config(input_tensor, DRAM_MEMORY_CONFIG)
    return _slices(input_tensor, sizes, dim, memory_config=config)


def _slices(tensor: Tensor, sizes: Sequence[int], dim: int, **options: MemoryConfig) -> list[Tensor]:
    rank, shape = tensor._spec.rank, tensor._spec.shape
    parts, start = [], 0
    for size in sizes:
        begins, ends = [0] * rank, list(shape)
        begins[dim], ends[dim] = start, start + size
        parts.append(ttnn.slice(tensor, begins, ends, [1] * rank, **options))
        start += size
    return parts


def _split_memory(tensor: Tensor, sizes: Sequence[int], dim: int, given: MemoryConfig | None) -> MemoryConfig:
    """The memory config of the parts: the requested one, or the input's with scaled shards."""
    spec = tensor._spec
    config = given if given is not None else spec.memory_config
    count, padded = len(sizes), list(spec.padded_shape)
    part: list[int] | None = None
    if all(size == sizes[0] for size in sizes) and padded[dim] % count == 0:
        part = [size // count if axis == dim else size for axis, size in enumerate(padded)]
    alike = spec.memory_config.memory_layout is config.memory_layout
    scaled = scaled_shards(spec.shard_spec, padded, part) if part and spec.shard_spec is not None and alike else None
    if given is not None:
        if not lacks_shards(given):
            return given
        if part is None:
            return DRAM_MEMORY_CONFIG
        if scaled is None:
            orientation = spec.shard_spec.orientation if spec.shard_spec is not None else None
            scaled = fresh_shards(_board(tensor).grid, part, given.memory_layout, orientation)
        return given.with_shard_spec(scaled)
    if spec.is_sharded:
        if scaled is None or (spec.is_tile and not tile_aligned(scaled)):
            return DRAM_MEMORY_CONFIG
        config = config.with_shard_spec(scaled)
    return config if _parts_fit(tensor, count) else DRAM_MEMORY_CONFIG


def _parts_fit(tensor: Tensor, count: int) -> bool:
    """Whether all parts and the slices' circular buffers fit L1 by the library's estimate."""
    spec = tensor._spec
    if spec.memory_config.buffer_type is not BufferType.L1 or count <= 2 or tensor._device is None:
        return True
    volume = math.prod(spec.physical_shape)
    if spec.is_tile:
        page = tile_bytes(spec.tile, spec.dtype)
        part = volume // TILE_SIZE**2 // count * page
    else:
        page = _row_bytes(spec, TILE_SIZE**2)
        part = _row_bytes(spec, volume // count)
    return count * (part + 4 * page) <= _free_l1(tensor._device)


def _splits_in_one_program(tensor: Tensor, sizes: Sequence[int], dim: int) -> bool:
    """Whether equal parts of whole tiles along the last dimension come from one kernel, a core column per part."""
    spec, count = tensor._spec, len(sizes)
    if spec.rank < 2 or dim != spec.rank - 1 or not spec.is_tile or any(size != sizes[0] for size in sizes):
        return False
    grid = _board(tensor).grid
    shape = (1,) * (4 - spec.rank) + spec.shape
    batch, channels = math.prod(shape[:-3]), shape[-3]
    height, width = spec.shape[-2:]
    return (
        (batch * channels if count == 2 else channels) <= grid[0]
        and height // TILE_SIZE >= 2
        and width // TILE_SIZE >= 2
        and width % TILE_SIZE == 0
        and width // TILE_SIZE % count == 0
        and (count == 2 or batch == 1)
        and count <= grid[1]
    )


@internal("ttnn.prim.split")
def split_columns(input_tensor: Spec, count: int, memory_config: MemoryConfig) -> Plan:
    """`count` equal parts of the last dimension."""
    size = input_tensor.shape[-1] // count
    part = input_tensor.with_(shape=(*input_tensor.shape[:-1], size), memory_config=memory_config)
    pieces = lambda values: [contiguous(piece) for piece in values.split(size, dim=-1)]  # noqa: E731
    return Plan([part] * count, pieces, narrow=True)


@composite("ttnn.chunk")
def chunk(input_tensor: Tensor, chunks: int, dim: int) -> list[Tensor]:
    """At most `chunks` parts of one size along `dim`, the last of them possibly smaller."""
    spec = input_tensor._spec
    require(chunks > 0, f"the number of chunks must be positive, not {chunks}")
    dim = dim_of(dim, spec)
    whole = spec.shape[dim]
    size = div_up(whole, chunks)
    return _slices(input_tensor, [min(size, whole - start) for start in range(0, whole, size)] if size else [], dim)
