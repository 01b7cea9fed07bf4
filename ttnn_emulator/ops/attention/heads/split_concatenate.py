"""Splitting and concatenating attention heads: the operations that models call."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from ttnn_emulator.enums import Layout, ShardOrientation
from ttnn_emulator.errors import require
from ttnn_emulator.execution.operation_table import Plan, composite, internal, operation, ttnn
from ttnn_emulator.hardware.core_grid import num_cores_to_corerangeset
from ttnn_emulator.ops.attention.heads.common import (
    Move,
    board_cores,
    board_grid,
    buffers,
    divided,
    faulty,
    grouped_heads,
    grown,
    heads_plan,
    joined_heads,
    outputs_given,
    require_heads,
    require_interleaved,
    sharded_like,
    transposing,
    unchanged,
)
from ttnn_emulator.ops.support.common_checks import memory_of, require_on_device, require_tile
from ttnn_emulator.ops.support.derived_shards import HEIGHT, WIDTH
from ttnn_emulator.tensors.memory_config import MemoryConfig, ShardSpec
from ttnn_emulator.tensors.shapes import TILE_SIZE, Shape, round_up
from ttnn_emulator.tensors.spec import Spec
from ttnn_emulator.tensors.tensor import Tensor

Heads = tuple[Tensor, Tensor, Tensor]


# -- the public operations --------------------------------------------------------------------------------------------


@composite("ttnn.transformer.split_query_key_value_and_split_heads")
def split_query_key_value_and_split_heads(
    input_tensor: Tensor,
    kv_input_tensor: Tensor | None = None,
    *,
    num_heads: int,
    num_kv_heads: int | None = None,
    transpose_key: bool = True,
    memory_config: MemoryConfig | None = None,
    use_falcon7b_backend: bool = False,
) -> Heads:
    """[B, S, (query + 2 key-value heads) × D] → query, key (optionally transposed) and value, [B, heads, S, D] each."""
    spec = input_tensor._spec
    require(spec.rank == 3, f"the input must have rank 3, not {spec.rank}")
    require_tile(spec)
    require_on_device(spec)
    kv_heads = num_heads if num_kv_heads is None else num_kv_heads
    config = memory_of(memory_config, spec)
    if use_falcon7b_backend:
        require(num_kv_heads is not None and kv_input_tensor is None, "falcon7b takes num_kv_heads and one tensor")
        require(not transpose_key, "falcon7b does not transpose the key")
        _require_whole_heads(spec, num_heads + 2 * kv_heads)
        outputs = ttnn.experimental.nlp_create_qkv_heads_falcon7b(_as_4d(input_tensor), memory_config=config)
        return _restored(outputs, spec, transpose_key, memory_config)
    if kv_input_tensor is None:
        _require_whole_heads(spec, num_heads + 2 * kv_heads)
    else:
        _require_matching(spec, kv_input_tensor._spec, num_heads, kv_heads)
        _require_whole_heads(spec, num_heads)
    if spec.is_sharded:
        require(kv_input_tensor is None, "a sharded input cannot have separate keys and values")
        outputs = ttnn.experimental.create_qkv_heads(
            _as_4d(input_tensor),
            num_heads=num_heads,
            num_kv_heads=kv_heads,
            transpose_k_heads=transpose_key,
            memory_config=config,
        )
    else:
        outputs = ttnn.experimental.nlp_create_qkv_heads(
            _as_4d(input_tensor),
            None if kv_input_tensor is None else _as_4d(kv_input_tensor),
            num_heads=num_heads,
            num_kv_heads=kv_heads,
            transpose_k_heads=transpose_key,
            memory_config=config,
        )
    return _restored(outputs, spec, transpose_key, memory_config)


def _require_whole_heads(spec: Spec, heads: int) -> None:
    require(heads > 0, "there must be at least one head")
    size, padded = spec.shape[2] // heads, spec.padded_shape[2] // heads
    require(size % TILE_SIZE == 0, f"The head size must be a multiple of the tile width {TILE_SIZE}, it is {size}")
    require(padded == size, f"a head of {size} columns must not be padded to {padded}")


def _require_matching(query: Spec, rest: Spec, heads: int, kv_heads: int) -> None:
    for dim, name in enumerate(("batch", "length")):
        require(
            rest.shape[dim] == query.shape[dim],
            f"the {name} of keys and values is {rest.shape[dim]}, of queries {query.shape[dim]}",
        )
    size = divided(query.shape[2], heads, "queries")
    require(
        divided(rest.shape[2], 2 * kv_heads, "keys and values") == size, f"heads of keys and values are not {size} wide"
    )


@internal("ttnn::view")
def _as_4d(tensor: Spec) -> Plan:
    """[B, S, W] viewed as [B, 1, S, W], including the tile padding."""
    batch, length, width = tensor.padded_shape
    shape = (batch, 1, length, width)
    out = Spec.of(shape, tensor.dtype, tensor.layout, tensor.memory_config, on_device=tensor.on_device)
    return Plan(out, lambda values: grown(values.unsqueeze(1), shape), reads=(), shares="tensor")


def _restored(outputs: Sequence[Tensor], spec: Spec, turned: bool, config: MemoryConfig | None) -> Heads:
    """The heads with the input's unpadded length."""
    length, padded_length = spec.shape[1], spec.padded_shape[1]

    def restore(tensor: Tensor, is_turned: bool) -> Tensor:
        batch, heads, *_ = tensor._spec.shape
        width = outputs[0]._spec.shape[-1]
        shape = (batch, heads, width, length) if is_turned else (batch, heads, length, width)
        if tensor._spec.shape == shape and config in (None, tensor._spec.memory_config):
            return tensor
        padded = (batch, heads, width, padded_length) if is_turned else (batch, heads, padded_length, width)
        return ttnn.reshape(tensor, Shape(shape), Shape(padded), memory_config=config)

    query, key, value = outputs
    return restore(query, False), restore(key, turned), restore(value, False)


@composite("ttnn.transformer.concatenate_heads")
def concatenate_heads(input_tensor: Tensor, *, memory_config: MemoryConfig | None = None) -> Tensor:
    """[B, H, S, D] → [B, S, H × D]."""
    spec = input_tensor._spec
    require(spec.rank == 4, f"the input must have rank 4, not {spec.rank}")
    size, padded = spec.shape[-1], spec.padded_shape[-1]
    require(size % TILE_SIZE == 0 and size == padded, f"Head size must be a multiple of {TILE_SIZE}, it is {size}")
    config = memory_of(memory_config, spec)
    if spec.is_sharded and not config.is_sharded():
        input_tensor = ttnn.to_memory_config(input_tensor, MemoryConfig(config.memory_layout, config.buffer_type))
    return ttnn.squeeze(ttnn.experimental.nlp_concat_heads(input_tensor, memory_config=memory_config), 1)


# -- the kernels beneath them -----------------------------------------------------------------------------------------


def require_concat_input(spec: Spec, config: MemoryConfig, heads: int, rows: int) -> None:
    """Checks of the kernels that concatenate `heads` heads of `rows` rows."""
    require_heads(spec)
    if not spec.is_sharded:
        require_interleaved(config)
        return
    shards = spec.shard_spec
    require(spec.memory_config.memory_layout is not WIDTH, "the input must not be width sharded")
    require(config.is_sharded() and config.memory_layout is not HEIGHT, f"shards cannot go to {config.brief()}")
    require(shards is not None, "the input has no two-dimensional shards")
    assert shards is not None
    width = spec.padded_shape[-1]
    require(shards.shape[1] == width, f"shards are {shards.shape[1]} wide, heads {width}")
    require(shards.shape[0] % rows == 0, f"shards of height {shards.shape[0]} hold no whole heads of {rows} rows")
    each = shards.shape[0] // rows
    require(heads % each == 0, f"{heads} heads do not divide into {each} a shard")


def concat_output(spec: Spec, config: MemoryConfig, shape: Sequence[int], rows: int) -> Spec:
    """The spec of concatenated heads; with shards, the heads of a core are adjacent."""
    if config.is_sharded():
        shards = spec.shard_spec
        assert shards is not None
        each = shards.shape[0] // rows
        side_by_side = (rows, shards.shape[1] * each)
        config = sharded_like(config, ShardSpec(shards.grid, side_by_side, shards.orientation))
    return Spec.of(shape, spec.dtype, Layout.TILE, config)


@operation("ttnn.experimental.nlp_concat_heads")
def nlp_concat_heads(input_tensor: Spec, *, memory_config: MemoryConfig | None = None) -> Plan:
    """[B, H, S, D] → [B, 1, S, H × D]."""
    spec, config = input_tensor, memory_of(memory_config, input_tensor)
    batch, heads, length, width = (spec.shape[dim] for dim in range(4))
    rows = spec.padded_shape[-2]
    require_concat_input(spec, config, spec.padded_shape[1], rows)
    out = concat_output(spec, config, (batch, 1, length, heads * width), rows)
    compute = joined_heads
    if spec.padded_shape[3] != width and heads > 1:
        compute = faulty(f"heads of {width} columns are padded to {spec.padded_shape[3]}: tiles cannot be concatenated")
    tiles = 2 * heads * spec.padded_shape[3] // TILE_SIZE
    l1_bytes = 0 if spec.is_sharded else tiles * spec.page_bytes
    return Plan(out, compute, l1_bytes=l1_bytes)


@operation("ttnn.experimental.nlp_create_qkv_heads")
def nlp_create_qkv_heads(
    input: Spec,
    input_kv: Spec | None = None,
    *,
    num_heads: int,
    num_kv_heads: int | None = None,
    transpose_k_heads: bool = True,
    kv_tied: bool = False,
    memory_config: MemoryConfig | None = None,
    output_tensors: Sequence[Spec | None] | None = None,
) -> Plan:
    """[B, 1, S, (query + 2 key-value heads) × D] → query, key and value heads; if tied, the value is the key."""
    kv_heads = num_heads if num_kv_heads is None else num_kv_heads
    sections = 1 if kv_tied else 2
    config = memory_of(memory_config, input)
    width = input.padded_shape[3]
    head_dim = _head_dim(input, input_kv, num_heads, kv_heads, kv_tied)
    require_heads(input)
    require(input.padded_shape[1] == 1, f"dimension 1 must be 1, it is {input.padded_shape[1]}")
    if kv_tied and input_kv is not None:
        require(width == num_heads * head_dim, f"a width of {width} holds more than the queries")
    require_sharding(input, input_kv, config, num_heads, kv_heads, head_dim, sections)
    require(not (input.is_sharded and transpose_k_heads), "the key of sharded heads cannot be transposed")
    if input_kv is not None:
        require_kv(input, input_kv)
        require(input_kv.padded_shape[1] == 1, f"dimension 1 must be 1, it is {input_kv.padded_shape[1]}")
    batch, _, length, _ = input.shape
    size = round_up(head_dim, TILE_SIZE)
    query, value = (batch, num_heads, length, size), (batch, kv_heads, length, size)
    key = (batch, kv_heads, size, length) if transpose_k_heads else value
    specs = head_specs(input, config, (query, key, value), (num_heads, kv_heads), head_dim)
    if size != head_dim:
        compute = faulty(f"heads of {head_dim} columns are not whole tiles")
    else:
        # With shards, every core holds some queries with their keys and values; otherwise all queries come first.
        groups = input.shard_spec.num_cores() if input.shard_spec is not None else 1
        counts = (num_heads // groups, kv_heads // groups)
        turn = transposing(input.dtype) if transpose_k_heads else unchanged
        compute = taking_apart(counts, groups, head_dim, turn, apart=input_kv is not None, tied=kv_tied)
    l1_bytes = 0 if input.is_sharded else buffers(input.dtype, 3 if transpose_k_heads else 1)
    reads = ("input",) if input_kv is None else ("input", "input_kv")
    return heads_plan(specs, compute, reads, outputs_given(output_tensors), l1_bytes)


def taking_apart(
    counts: tuple[int, int], groups: int, head_dim: int, turn: Move, *, apart: bool = False, tied: bool = False
) -> Callable[..., tuple[torch.Tensor, ...]]:
    """The move from columns to heads. `counts` are the query and the key-value heads of each of the groups.

    A group holds its queries, then its keys, then its values, which are the keys if `tied`; with keys and values
    `apart`, the second tensor holds them. Carriers are views where possible; attention reads them strided.
    """
    heads, kv_heads = counts
    of_key = 0 if apart else heads
    of_value = of_key if tied else of_key + kv_heads

    def compute(values: torch.Tensor, rest: torch.Tensor | None = None) -> tuple[torch.Tensor, ...]:
        queries = grouped_heads(values, groups, head_dim)
        others = queries if rest is None else grouped_heads(rest, groups, head_dim)

        def part(source: torch.Tensor, first: int, count: int) -> torch.Tensor:
            return source[:, :, first : first + count].flatten(1, 2)

        return part(queries, 0, heads), turn(part(others, of_key, kv_heads)), part(others, of_value, kv_heads)

    return compute


def _head_dim(query: Spec, rest: Spec | None, heads: int, kv_heads: int, tied: bool) -> int:
    """Columns of one head, derived from the input widths."""
    width = query.padded_shape[3]
    sections = 1 if tied else 2
    if rest is not None:
        size = divided(width, heads, "queries")
        of_rest = divided(rest.padded_shape[3], sections * kv_heads, "keys and values")
        require(of_rest == size, f"heads of keys and values are {of_rest} wide, those of queries {size}")
        return size
    size = divided(width, heads + sections * kv_heads, "queries, keys and values")
    apart = heads + 2 * kv_heads
    require(not tied or width % apart, f"a width of {width} could be {apart} heads as well: tied or not is unclear")
    return size


def require_sharding(
    query: Spec,
    rest: Spec | None,
    config: MemoryConfig,
    heads: int,
    kv_heads: int,
    head_dim: int,
    sections: int,
    *,
    by_logical_rows: bool = False,
) -> None:
    """Checks of the sharded kernel: one group of heads per core."""
    if not query.is_sharded:
        require_interleaved(config)
        return
    shards = query.shard_spec
    require(shards is not None, "the input has no two-dimensional shards")
    assert shards is not None
    _require_all_rows(query, shards, by_logical_rows)
    layout = config.memory_layout
    require(config.is_sharded() and layout is not WIDTH, f"the output must be height or block sharded, not {layout}")
    require(max(heads, kv_heads) <= board_cores(), f"more heads than the {board_cores()} cores")
    require(heads >= kv_heads, f"{heads} query heads are fewer than {kv_heads} key-value heads")
    cores = shards.num_cores()
    require(heads % cores == 0, f"{heads} query heads do not divide among {cores} cores")
    group = heads // kv_heads
    if rest is None:
        require(kv_heads % cores == 0, f"{kv_heads} key-value heads do not divide among {cores} cores")
        group += sections
    else:
        other = rest.shard_spec
        require(other is not None, "keys and values must be sharded as the queries are")
        assert other is not None
        require(other.grid == shards.grid, "keys and values are on other cores than the queries")
        require(other.orientation is shards.orientation, "keys and values are sharded in another orientation")
        _require_all_rows(rest, other, by_logical_rows)
        require(other.shape[1] == sections * head_dim, f"shards of keys and values are {other.shape[1]} wide")
        require(kv_heads % other.num_cores() == 0, f"{kv_heads} heads do not divide among {other.num_cores()} cores")
    require(shards.shape[1] == group * head_dim, f"shards are {shards.shape[1]} wide, not {group} x {head_dim}")


def _require_all_rows(spec: Spec, shards: ShardSpec, logical: bool) -> None:
    shape = spec.shape if logical else spec.padded_shape
    rows = 1
    for size in shape:
        rows *= size
    rows //= spec.padded_shape[-1]
    require(shards.shape[0] == rows, f"shards must hold all {rows} rows, not {shards.shape[0]}")
    require(shards.orientation is ShardOrientation.ROW_MAJOR, "shards must be in row-major order")


def require_kv(query: Spec, rest: Spec) -> None:
    """Check separate keys and values against the queries."""
    require_on_device(rest, "keys and values")
    require_tile(rest, "keys and values")
    require(rest.dtype is query.dtype, f"keys and values are {rest.dtype}, queries {query.dtype}")
    for dim in (0, 2):
        require(
            rest.padded_shape[dim] == query.padded_shape[dim],
            f"keys and values have {rest.padded_shape[dim]} in dimension {dim}, queries {query.padded_shape[dim]}",
        )
    require(query.is_sharded or not rest.is_sharded, "keys and values are sharded, the queries are not")


def head_specs(
    spec: Spec,
    config: MemoryConfig,
    shapes: Sequence[tuple[int, ...]],
    heads: tuple[int, int],
    head_dim: int,
) -> tuple[Spec, Spec, Spec]:
    """The specs of query, key and value; if sharded, one head per core."""
    configs = [config] * 3
    if config.is_sharded():
        grids = [num_cores_to_corerangeset(count, board_grid(), True) for count in (heads[0], heads[1], heads[1])]
        configs = [sharded_like(config, ShardSpec(grid, (TILE_SIZE, head_dim))) for grid in grids]
    query, key, value = (Spec.of(shape, spec.dtype, Layout.TILE, each) for shape, each in zip(shapes, configs))
    return query, key, value
