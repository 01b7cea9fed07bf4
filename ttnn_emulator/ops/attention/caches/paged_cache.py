"""Key-value caches in pages [P, heads, rows, D] that a page table assigns to users, written in place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from ttnn_emulator.enums import BufferType, DataType, Layout, ShardOrientation
from ttnn_emulator.errors import ChipFault, require
from ttnn_emulator.execution.operation_table import Plan, operation
from ttnn_emulator.ops.attention.caches.rows_and_pages import Pages, RowWriter
from ttnn_emulator.ops.attention.heads.common import faulty, grown
from ttnn_emulator.ops.support.common_checks import math_config, require_on_device, require_tile
from ttnn_emulator.ops.support.derived_shards import HEIGHT, WIDTH
from ttnn_emulator.tensors.memory_config import ShardSpec
from ttnn_emulator.tensors.shapes import TILE_SIZE
from ttnn_emulator.tensors.spec import Spec

UPDATED_DTYPES = (DataType.FLOAT32, DataType.BFLOAT16, DataType.BFLOAT8_B, DataType.BFLOAT4_B)
INPUT_DTYPES = (DataType.FLOAT32, DataType.BFLOAT16)
INTEGER_DTYPES = (DataType.UINT32, DataType.INT32)
# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/experimental/paged_cache/device/fused_update_cache/paged_fused_update_cache_device_operation.cpp,  # noqa: E501
# padded_shape of a row-major input
ROW_MAJOR_WIDTH, ROW_MAJOR_HEADS = 128, 8
MOST_INDICES = 256
SKIPPED = -1


def _plain(value: float) -> int:
    """A page table entry; -1 may be stored as an unsigned number."""
    number = int(value)
    return SKIPPED if number in (SKIPPED, 0xFFFF_FFFF) else number


# -- one position of every user ---------------------------------------------------------------------------------------


def _require_update(
    cache: Spec,
    input: Spec,
    indices: Sequence[int],
    index_tensor: Spec | None,
    table: Spec | None,
    share_cache: bool,
    offset: int,
) -> ShardSpec:
    """Checks shared by both updates; returns the shard spec of the input."""
    require_on_device(input, "the input")
    require_on_device(cache, "the cache")
    require_tile(cache, "the cache")
    require(cache.dtype in UPDATED_DTYPES, f"the cache is {cache.dtype}, only floats are supported")
    require(input.dtype in INPUT_DTYPES, f"the input is {input.dtype}, only float32 and bfloat16 are supported")
    require(input.padded_shape[0] == 1, f"dimension 0 of the input must be 1, it is {input.padded_shape[0]}")
    require(not cache.is_sharded, "the cache must be interleaved")
    users = input.padded_shape[1]
    if table is None:
        if share_cache:
            require(cache.padded_shape[0] == 1, f"a shared cache must have a batch of 1, not {cache.padded_shape[0]}")
        else:
            require(cache.padded_shape[0] == users, f"the cache has {cache.padded_shape[0]} users, the input {users}")
    else:
        require(not share_cache, "pages cannot be shared")
        require(index_tensor is not None, "pages need update_idxs_tensor")
        _require_table(table, users)
    require((index_tensor is not None) != bool(indices), "either update_idxs or update_idxs_tensor must be given")
    require(all(number >= 0 for number in indices), f"indices {list(indices)} must not be negative")
    if index_tensor is None:
        require(len(indices) == users, f"there are {len(indices)} indices for {users} users")
    else:
        _require_indices(index_tensor, input)
    require(offset == 0, f"batch_offset must be 0, not {offset}")
    return _input_shards(input)


def _require_table(table: Spec, users: int) -> None:
    wanted = DataType.UINT16 if table.is_sharded else DataType.INT32
    require(table.dtype is wanted, f"the page table is {table.dtype}, not {wanted}")
    require(table.layout is Layout.ROW_MAJOR, "the page table must be in ROW_MAJOR layout")
    rows = table.padded_shape[0]
    if table.is_sharded:
        shards = table.shard_spec
        require(shards is not None, "the page table has no two-dimensional shards")
        assert shards is not None
        rows //= shards.num_cores()
    require(rows == users, f"the page table has {rows} rows for {users} users")


def _require_indices(indices: Spec, input: Spec) -> None:
    require(indices.dtype is DataType.INT32, f"the indices are {indices.dtype}, not int32")
    require(indices.layout is Layout.ROW_MAJOR, "the indices must be in ROW_MAJOR layout")
    if not indices.is_sharded:
        require(indices.memory_config.buffer_type is BufferType.DRAM, "the indices must be in DRAM")
        count = indices.padded_shape[0]
        require(count == input.padded_shape[1], f"there are {count} indices for {input.padded_shape[1]} users")
        return
    require(indices.memory_config.memory_layout is HEIGHT, "sharded indices must be height sharded")
    require(indices.memory_config.buffer_type is BufferType.L1, "sharded indices must be in L1")
    assert indices.shard_spec is not None
    require(indices.shape[1] == input.shape[1], f"there are {indices.shape[1]} indices for {input.shape[1]} users")
    cores = indices.shard_spec.num_cores()
    require(cores == indices.padded_shape[0], f"{indices.padded_shape[0]} copies of the indices are on {cores} cores")


def _input_shards(input: Spec) -> ShardSpec:
    require(input.is_sharded, "the input must be sharded")
    require(input.memory_config.memory_layout is not WIDTH, "the input must not be width sharded")
    shards = input.shard_spec
    require(shards is not None, "the input has no two-dimensional shards")
    assert shards is not None
    width, height = input.padded_shape[-1], input.physical_shape[0]
    require(shards.shape[1] == width, f"shards are {shards.shape[1]} wide, the input {width}")
    require(height % shards.shape[0] == 0, f"a height of {height} does not divide into shards of {shards.shape[0]}")
    require(shards.orientation is ShardOrientation.ROW_MAJOR, "shards must be in row-major order")
    return shards


Writing = Callable[..., torch.Tensor]


def _writing(
    cache: Spec, input: Spec, seen: tuple[int, int, int, int], wide: bool, shared: bool, modulo: int | None
) -> Writing:
    """(cache, input, indices, table or None) → the cache with a row of every user and head written."""
    writer = RowWriter(cache.dtype, input.dtype, wide)
    pages = Pages(cache.padded_shape, seen)  # type: ignore[arg-type]
    padded, whole = cache.padded_shape, tuple(slice(size) for size in cache.shape)
    given, users, heads, rows_each = input.padded_shape, input.shape[1], seen[1], seen[2]

    def compute(
        held: torch.Tensor, values: torch.Tensor, indices: Sequence[int], table: torch.Tensor | None
    ) -> torch.Tensor:
        made = pages.view(grown(held, padded)).clone()
        rows = writer.rows(grown(values, given)[0, :, :heads].contiguous())
        for user in range(users):
            index = indices[user]
            if index == SKIPPED:
                continue
            page, row = (0 if shared else user), index
            if modulo:
                row %= modulo
            if table is not None:
                page, row = _plain(table[user, row // rows_each].item()), row % rows_each
                if not 0 <= page < made.shape[0]:
                    raise ChipFault(f"page {page} is not one of {made.shape[0]}")
            writer.write(made[page], row, rows[user])
        return pages.back(made)[whole].contiguous()

    return compute


def _reader(
    writing: Writing, indices: Sequence[int], index_tensor: Spec | None, table: Spec | None, users: int
) -> Callable[..., torch.Tensor]:
    """The computation with its optional tensors assigned to parameters: (cache, input, indices?, table?)."""

    def compute(held: torch.Tensor, values: torch.Tensor, *rest: torch.Tensor) -> torch.Tensor:
        given = list(rest)
        positions: Sequence[int] = indices
        if index_tensor is not None:
            positions = [_plain(number) for number in given.pop(0).reshape(-1)[:users].tolist()]
        return writing(held, values, positions, given.pop(0) if table is not None else None)

    return compute


def _names(index_tensor: Spec | None, table: Spec | None) -> tuple[str, ...]:
    return (("update_idxs_tensor",) if index_tensor is not None else ()) + (
        ("page_table",) if table is not None else ()
    )


@operation("ttnn.experimental.paged_update_cache", ignores=("mesh_coords",))
def paged_update_cache(
    cache_tensor: Spec,
    input_tensor: Spec,
    *,
    update_idxs: Sequence[int] = (),
    update_idxs_tensor: Spec | None = None,
    share_cache: bool | None = None,
    page_table: Spec | None = None,
    batch_offset: int = 0,
    compute_kernel_config: Any = None,
    block_size: int | None = None,
    num_kv_heads: int | None = None,
    cache_position_modulo: int | None = None,
) -> Plan:
    """A row of each head of each user [1, users, heads, D] into the users' caches or pages, in place."""
    cache, input = cache_tensor, input_tensor
    require_on_device(input, "the input")
    require_tile(input, "the input")
    shared = bool(share_cache)
    shards = _require_update(cache, input, update_idxs, update_idxs_tensor, page_table, shared, batch_offset)
    users, width = input.padded_shape[1], input.padded_shape[-1]
    require(
        shards.num_cores() == users,
        f"num_cores of the input's shards, {shards.num_cores()}, must be that of users, {users}",
    )
    require(width % TILE_SIZE == 0, f"a width of {width} is not a multiple of {TILE_SIZE}")
    own = cache.padded_shape
    seen = (own[0], own[1], own[2], own[-1])
    if page_table is None:
        changed = {
            "block_size_override": block_size,
            "num_kv_heads_override": num_kv_heads,
            "cache_position_modulo": cache_position_modulo,
        }
        for name, value in changed.items():
            require(value is None, f"{name} is only supported in paged mode, with a page table")
        require(width == own[-1], f"the input is {width} wide, the cache {own[-1]}")
    else:
        seen = (own[0], num_kv_heads or own[1], block_size or own[2], width)
        _require_pages(own, seen)
        _require_modulo(cache_position_modulo, seen[2], own[0], page_table.padded_shape[1])
    wide = math_config(compute_kernel_config).fp32_acc
    writing = _writing(cache, input, seen, wide, shared, cache_position_modulo)
    compute = _reader(writing, update_idxs, update_idxs_tensor, page_table, input.shape[1])
    reads = ("cache_tensor", "input_tensor", *_names(update_idxs_tensor, page_table))
    return Plan(cache, compute, reads=reads, into=("cache_tensor",))


def _require_pages(own: Sequence[int], seen: tuple[int, int, int, int]) -> None:
    size, other = own[1] * own[2] * own[-1], seen[1] * seen[2] * seen[3]
    require(size == other, f"geometry mismatch: a page of {list(own[1:])} cannot be seen as {list(seen[1:])}")
    require(seen[2] > 0 and seen[2] % TILE_SIZE == 0, f"pages of {seen[2]} rows are not a multiple of {TILE_SIZE}")


def _require_modulo(modulo: int | None, rows: int, pages: int, columns: int) -> None:
    if modulo is None:
        require(columns <= pages, f"the page table has {columns} columns for {pages} pages")
        return
    require(
        modulo > 0 and modulo % rows == 0,
        f"cache_position_modulo {modulo} must be a positive multiple of effective block_size {rows}",
    )
    require(modulo // rows <= pages, f"a modulo of {modulo} needs more than {pages} pages")


@operation("ttnn.experimental.paged_fused_update_cache", ignores=("mesh_coords",))
def paged_fused_update_cache(
    cache_tensor1: Spec,
    input_tensor1: Spec,
    cache_tensor2: Spec,
    input_tensor2: Spec,
    *,
    update_idxs: Sequence[int] = (),
    update_idxs_tensor: Spec | None = None,
    share_cache: bool | None = None,
    page_table: Spec | None = None,
    batch_offset: int = 0,
    compute_kernel_config: Any = None,
) -> Plan:
    """`paged_update_cache` of a key cache and a value cache at once, with inputs on different cores."""
    pairs = ((cache_tensor1, input_tensor1), (cache_tensor2, input_tensor2))
    shared, wide = bool(share_cache), math_config(compute_kernel_config).fp32_acc
    places, computes = [], []
    for cache, input in pairs:
        places.append(_require_update(cache, input, update_idxs, update_idxs_tensor, page_table, shared, batch_offset))
        own, width = cache.padded_shape, input.padded_shape[-1]
        require(width == own[-1], f"the input is {width} wide, the cache {own[-1]}")
        if page_table is not None:
            _require_modulo(None, own[2], own[0], page_table.padded_shape[1])
            require(page_table.is_sharded or page_table.memory_config.is_dram, "the page table must be in DRAM")
        seen = (own[0], own[1], own[2], own[-1])
        writing = _writing(cache, input, seen, wide, shared, None)
        computes.append(_reader(writing, update_idxs, update_idxs_tensor, page_table, input.shape[1]))
    require(cache_tensor1.dtype is cache_tensor2.dtype, f"caches are {cache_tensor1.dtype} and {cache_tensor2.dtype}")
    require(input_tensor1.dtype is input_tensor2.dtype, f"inputs are {input_tensor1.dtype} and {input_tensor2.dtype}")
    layouts = {input.layout for _, input in pairs}
    require(len(layouts) == 1, "both inputs must be in the same layout")
    if layouts == {Layout.ROW_MAJOR}:
        width, heads = input_tensor1.padded_shape[-1], input_tensor2.padded_shape[-2]
        require(
            width == ROW_MAJOR_WIDTH and heads == ROW_MAJOR_HEADS,
            f"in ROW_MAJOR layout inputs must be {ROW_MAJOR_HEADS} x {ROW_MAJOR_WIDTH}, not {heads} x {width}",
        )
    first, second = places
    overlap = any(one.intersects(other) for one in first.grid.ranges() for other in second.grid.ranges())
    require(not overlap, "the inputs must be on different cores")
    require(first.num_cores() == second.num_cores(), "the inputs must be on equal numbers of cores")

    def compute(
        cache1: torch.Tensor, input1: torch.Tensor, cache2: torch.Tensor, input2: torch.Tensor, *rest: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        return computes[0](cache1, input1, *rest), computes[1](cache2, input2, *rest)

    tensors = ("cache_tensor1", "input_tensor1", "cache_tensor2", "input_tensor2")
    reads = (*tensors, *_names(update_idxs_tensor, page_table))
    return Plan((cache_tensor1, cache_tensor2), compute, reads=reads, into=("cache_tensor1", "cache_tensor2"))


# -- rows by their physical numbers -----------------------------------------------------------------------------------


@operation("ttnn.experimental.indexed_fused_update_cache")
def indexed_fused_update_cache(
    cache_tensor1: Spec,
    input_tensor1: Spec,
    cache_tensor2: Spec,
    input_tensor2: Spec,
    physical_update_idxs_tensor: Spec,
) -> Plan:
    """Rows of the inputs [1, heads, rows, D] into rows of all pages by physical number; negative numbers skip."""
    caches, inputs, indices = (
        (cache_tensor1, cache_tensor2),
        (input_tensor1, input_tensor2),
        physical_update_idxs_tensor,
    )
    for spec, name in (
        *((cache, "the cache") for cache in caches),
        *((input, "the input") for input in inputs),
    ):
        require_on_device(spec, name)
        require_tile(spec, name)
        require(spec.dtype is DataType.BFLOAT16, f"{name} is {spec.dtype}, only bfloat16 is supported")
        require(not spec.is_sharded, f"{name} must be interleaved")
        require(spec.rank == 4, f"{name} must have rank 4, not {spec.rank}")
    for one, other in (caches, inputs):
        require(one.shape == other.shape, f"shapes {list(one.shape)} and {list(other.shape)} differ")
        require(one.memory_config == other.memory_config, "pairs must be in the same kind of memory")
    pages, heads, rows, width = cache_tensor1.shape
    require(rows % TILE_SIZE == 0 and width % TILE_SIZE == 0, f"pages of {rows} x {width} are not whole tiles")
    batch, of_input, count, columns = input_tensor1.shape
    require(batch == 1, f"dimension 0 of the inputs must be 1, it is {batch}")
    require(count > 0, "the inputs are empty")
    require(of_input == heads, f"the inputs have {of_input} heads, the caches {heads}")
    require(columns == width, f"the inputs are {columns} wide, the caches {width}")
    require_on_device(indices, "the numbers")
    require(indices.dtype is DataType.INT32, f"the numbers are {indices.dtype}, not int32")
    require(indices.layout is Layout.ROW_MAJOR, "the numbers must be in ROW_MAJOR layout")
    require(not indices.is_sharded, "the numbers must be interleaved")
    require(indices.rank == 2 and indices.shape[0] == 1, f"the numbers must be [1, rows], not {list(indices.shape)}")
    require(count <= indices.shape[1] <= MOST_INDICES, f"{indices.shape[1]} numbers for {count} rows")

    def written(cache: torch.Tensor, input: torch.Tensor, numbers: Sequence[int]) -> torch.Tensor:
        made = cache.clone()
        for source, number in enumerate(numbers):
            if 0 <= number < pages * rows:
                made[number // rows, :, number % rows] = input[0, :, source]
        return made

    def compute(
        cache1: torch.Tensor, input1: torch.Tensor, cache2: torch.Tensor, input2: torch.Tensor, given: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        numbers = given[0, :count].tolist()
        return written(cache1, input1, numbers), written(cache2, input2, numbers)

    return Plan(caches, compute, into=("cache_tensor1", "cache_tensor2"), reads=_INDEXED)


_INDEXED = ("cache_tensor1", "input_tensor1", "cache_tensor2", "input_tensor2", "physical_update_idxs_tensor")


# -- many positions of one user ---------------------------------------------------------------------------------------


@operation("ttnn.experimental.paged_fill_cache", ignores=("mesh_coords", "compute_kernel_config"))
def paged_fill_cache(
    cache_tensor: Spec,
    input_tensor: Spec,
    page_table: Spec,
    *,
    batch_idx_tensor: Spec | None = None,
    batch_idx: int = 0,
    block_size: int | None = None,
    cache_position_modulo: int | None = None,
    valid_seq_len_tensor: Spec | None = None,
) -> Plan:
    """The rows of users [B, heads, S, D] into the pages that the table assigns to them, in place; -1 skips."""
    cache, input, table = cache_tensor, input_tensor, page_table
    for spec, name in ((cache, "the cache"), (input, "the input"), (table, "the page table")):
        require_on_device(spec, name)
    require(input.dtype is cache.dtype, f"the input is {input.dtype}, the cache {cache.dtype}")
    require(cache.dtype in UPDATED_DTYPES, f"the cache is {cache.dtype}, only floats are supported")
    require(not input.is_sharded, "the input must be interleaved")
    require(not table.is_sharded, "the page table must be interleaved")
    require(table.dtype is DataType.INT32, f"the page table is {table.dtype}, not int32")
    own, given, columns = cache.padded_shape, input.padded_shape, table.padded_shape
    require(0 <= batch_idx < columns[0], f"user {batch_idx} is not one of {columns[0]} in the page table")
    rows = own[2] if block_size is None else block_size
    seen = (own[0], given[1], rows, given[3])
    _require_pages((own[0], own[1], own[2], own[3]), seen)
    require(given[3] % TILE_SIZE == 0, f"a width of {given[3]} is not a multiple of {TILE_SIZE}")
    room = rows * columns[1]
    modulo = cache_position_modulo
    if modulo is None:
        require(given[2] <= room, f"{given[2]} rows do not fit into {room} of the page table")
    else:
        require(0 < modulo <= room and modulo % rows == 0, f"a modulo of {modulo} does not fit pages of {rows} rows")
    if batch_idx_tensor is None:
        require(given[0] == 1, f"an input of {given[0]} users needs batch_idx_tensor")
    else:
        _require_number(batch_idx_tensor, given[0], "batch_idx_tensor")
    if valid_seq_len_tensor is not None:
        _require_number(valid_seq_len_tensor, 1, "valid_seq_len_tensor")
        require(modulo is not None, "valid_seq_len_tensor needs cache_position_modulo")
    same = input.is_tile and cache.is_tile
    pages, whole = Pages(own, seen), tuple(slice(size) for size in cache.shape)  # type: ignore[arg-type]
    capacity = 0 if modulo is None else modulo

    def compute(held: torch.Tensor, values: torch.Tensor, numbers: torch.Tensor, *rest: torch.Tensor) -> torch.Tensor:
        optional = list(rest)
        users = [batch_idx]
        if batch_idx_tensor is not None:
            users = [_plain(number) for number in optional.pop(0).reshape(-1).tolist()]
        end = given[2]
        if valid_seq_len_tensor is not None:
            valid = -(-int(optional.pop(0).reshape(-1)[0]) // rows) * rows
            end = valid if 0 < valid < end else end
        first = end - capacity if capacity and end > capacity else 0
        made, source = pages.view(grown(held, own)).clone(), grown(values, given)
        for source_row, user in enumerate(users):
            for start in range(first, end, TILE_SIZE):
                position = start % capacity if capacity else start
                page = _plain(numbers[user, position // rows].item())
                if page == SKIPPED:
                    continue
                if not 0 <= page < made.shape[0]:
                    raise ChipFault(f"page {page} is not one of {made.shape[0]}")
                row = position % rows
                made[page, :, row : row + TILE_SIZE] = source[source_row, :, start : start + TILE_SIZE]
        return pages.back(made)[whole].contiguous()

    run = compute if same else faulty("cache and input must both be in TILE layout")
    reads = ["cache_tensor", "input_tensor", "page_table"]
    reads += ["batch_idx_tensor"] * (batch_idx_tensor is not None)
    reads += ["valid_seq_len_tensor"] * (valid_seq_len_tensor is not None)
    l1_bytes = 2 * given[3] // TILE_SIZE * input.page_bytes
    return Plan(cache, run, reads=tuple(reads), into=("cache_tensor",), l1_bytes=l1_bytes)


def _require_number(spec: Spec, count: int, name: str) -> None:
    require_on_device(spec, name)
    require(spec.volume == count, f"{name} holds {spec.volume} numbers, not exactly {count} element{'s' * (count > 1)}")
    require(spec.dtype in INTEGER_DTYPES, f"{name} is {spec.dtype}, not int32 or uint32")
    require(spec.layout is Layout.ROW_MAJOR, f"{name} must be in ROW_MAJOR layout")
    require(not spec.is_sharded and spec.memory_config.is_dram, f"{name} must be interleaved in DRAM")
