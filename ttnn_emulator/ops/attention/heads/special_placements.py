"""Attention heads for particular models and placements: BERT's fixed shapes, shards, pairs of rows, split queries."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from ttnn_emulator.enums import DataType, Layout, ShardOrientation
from ttnn_emulator.errors import require
from ttnn_emulator.execution.call_context import current_board
from ttnn_emulator.execution.operation_table import Plan, operation
from ttnn_emulator.hardware.core_grid import CoreCoord
from ttnn_emulator.numerics.native.threaded_copies import contiguous
from ttnn_emulator.ops.attention.heads.common import (
    HEAD_DTYPES,
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
from ttnn_emulator.ops.attention.heads.split_concatenate import (
    concat_output,
    head_specs,
    require_concat_input,
    require_kv,
    require_sharding,
    taking_apart,
)
from ttnn_emulator.ops.support.common_checks import into, memory_of, require_on_device
from ttnn_emulator.ops.support.derived_shards import BLOCK, HEIGHT
from ttnn_emulator.tensors.memory_config import MemoryConfig, ShardSpec
from ttnn_emulator.tensors.shapes import TILE_SIZE, round_up
from ttnn_emulator.tensors.spec import Spec

BERT_DTYPES = (DataType.BFLOAT16, DataType.BFLOAT8_B)
# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/experimental/transformer/concatenate_heads/device/concatenate_heads_device_operation.cpp,  # noqa: E501
# batch_size and padded_shape
BERT_BATCHES = range(7, 10)
BERT_LENGTH, BERT_HEADS, BERT_HEAD_DIM = 384, 16, 64
BERT_WIDTH = BERT_HEADS * BERT_HEAD_DIM


# -- BERT large -------------------------------------------------------------------------------------------------------


def _require_bert(spec: Spec) -> None:
    require_on_device(spec)
    require(spec.dtype in BERT_DTYPES, f"the input is {spec.dtype}, only bfloat16 and bfloat8_b are supported")


def _require_cores(spec: Spec) -> None:
    """The interleaved kernels assign a column of cores to each row of tiles, and a row of cores to each batch."""
    columns, rows, whole = spec.padded_shape[2] // TILE_SIZE, spec.padded_shape[0], board_grid()
    require(columns <= whole.x and rows <= whole.y, f"{columns} x {rows} cores are needed, the chip has {whole}")


@operation("ttnn.experimental.concatenate_heads")
def concatenate_heads(
    input_tensor: Spec,
    compute_with_storage_grid_size: CoreCoord,
    *,
    memory_config: MemoryConfig | None = None,
    output_tensor: Spec | None = None,
) -> Plan:
    """[B, 16, 384, 64] → [B, 1, 384, 1024], for batches of 7 to 9."""
    spec, config = input_tensor, memory_of(memory_config, input_tensor)
    _require_bert(spec)
    batch = spec.padded_shape[0]
    shape = (batch, BERT_HEADS, BERT_LENGTH, BERT_HEAD_DIM)
    require(batch in BERT_BATCHES, f"a batch of {batch} is not one of 7 to 9")
    require(spec.padded_shape == shape, f"the input must be {list(shape)}, not {list(spec.padded_shape)}")
    grid, whole = compute_with_storage_grid_size, board_grid()
    require(grid.x <= whole.x and grid.y <= whole.y, f"a grid of {grid} cores does not fit on {whole}")
    _require_cores(spec)
    joined = (batch, 1, BERT_LENGTH, BERT_WIDTH)
    if output_tensor is not None:
        out = output_tensor
        require(out.dtype is spec.dtype, f"the output is {out.dtype}, the input {spec.dtype}")
        require(out.padded_shape == joined, f"the output must be {list(joined)}, not {list(out.padded_shape)}")
    else:
        out = Spec.of(joined, spec.dtype, Layout.TILE, config)
    return Plan(
        out, lambda values: joined_heads(grown(values, shape)), reads=("input_tensor",), into=into(output_tensor)
    )


@operation("ttnn.experimental.split_query_key_value_and_split_heads")
def split_query_key_value_and_split_heads(
    input_tensor: Spec,
    compute_with_storage_grid_size: CoreCoord,
    *,
    memory_config: MemoryConfig | None = None,
    num_heads: int = BERT_HEADS,
    output_tensors: Sequence[Spec | None] | None = None,
) -> Plan:
    """[B, 1, S, 3 × H × D] → query, transposed key, value; the results are new tensors even if outputs are passed."""
    spec, config = input_tensor, memory_of(memory_config, input_tensor)
    _require_bert(spec)
    batch, length, width = spec.padded_shape[0], spec.padded_shape[2], spec.padded_shape[-1]
    grid = compute_with_storage_grid_size
    across = 1
    if spec.is_sharded:
        shards = spec.shard_spec
        require(shards is not None, "the input has no two-dimensional shards")
        assert shards is not None
        end = shards.grid.bounding_box().end
        require(end.x < grid.x and end.y < grid.y, f"core {end} is outside a grid of {grid}")
        require(shards.grid.size() == 1, "shards must be on one rectangle of cores")
        require(spec.memory_config.memory_layout is BLOCK, f"the input must be block sharded, not {spec.memory_config}")
        across = (end.x if shards.orientation is ShardOrientation.ROW_MAJOR else end.y) + 1
    else:
        require(batch in BERT_BATCHES, f"a batch of {batch} is not one of 7 to 9")
        _require_cores(spec)
    require(not output_tensors or len(output_tensors) == 3, "output_tensors must hold a query, a key and a value")
    require(num_heads > 0, "there must be at least one head")
    given = outputs_given(output_tensors) if output_tensors and None not in output_tensors else None
    head_dim = width // 3 // num_heads
    if given is not None:
        specs = given
    else:
        rows, columns = (batch, num_heads, length, head_dim), (batch, num_heads, head_dim, length)
        configs = [config] * 3
        if spec.shard_spec is not None:
            _require_shards_in_l1(config)
            each = num_heads // across
            new_shards = spec.shard_spec
            upright = ShardSpec(new_shards.grid, (each * length, head_dim), new_shards.orientation)
            turned = ShardSpec(new_shards.grid, (each * head_dim, length), new_shards.orientation)
            configs = [sharded_like(config, shards) for shards in (upright, turned, upright)]
        specs = tuple(
            Spec.of(shape, spec.dtype, Layout.TILE, each) for shape, each in zip((rows, columns, rows), configs)
        )
    fits = 3 * num_heads * head_dim == width and num_heads % across == 0 and head_dim % TILE_SIZE == 0
    if fits:
        counts = (num_heads // across, num_heads // across)
        apart = taking_apart(counts, across, head_dim, transposing(spec.dtype))
        padded = spec.padded_shape

        def compute(values: torch.Tensor) -> tuple[torch.Tensor, ...]:
            return apart(grown(values, padded))

    else:
        compute = faulty(f"the kernel supports other widths and heads than {list(spec.padded_shape)}, {num_heads}")
    return Plan(specs, compute, reads=("input_tensor",))


# -- shards -----------------------------------------------------------------------------------------------------------


def _rows_and_columns(shards: ShardSpec) -> tuple[int, int]:
    """Cores along the height and along the width of a block sharded tensor."""
    end = shards.grid.bounding_box().end
    upright = shards.orientation is ShardOrientation.ROW_MAJOR
    return (end.y + 1, end.x + 1) if upright else (end.x + 1, end.y + 1)


def _require_blocks(spec: Spec, name: str) -> ShardSpec:
    require(spec.is_sharded, f"{name} must be sharded")
    require(
        spec.memory_config.memory_layout is BLOCK, f"{name} must be block sharded, not {spec.memory_config.brief()}"
    )
    shards = spec.shard_spec
    assert shards is not None
    return shards


def _on_the_same_cores(
    spec: Spec, config: MemoryConfig, shapes: Sequence[tuple[int, ...]], dtype: DataType
) -> list[Spec]:
    """Query, key and value, each in shards of equal height on the cores of the input."""
    shards = spec.shard_spec
    assert shards is not None
    _require_shards_in_l1(config)
    cores = shards.grid.bounding_box().size()
    specs = []
    for batch, heads, height, width in shapes:
        new_shards = ShardSpec(shards.grid, (batch * heads * height // cores, width), shards.orientation)
        specs.append(Spec.of((batch, heads, height, width), dtype, Layout.TILE, sharded_like(config, new_shards)))
    return specs


def _require_shards_in_l1(config: MemoryConfig) -> None:
    require(config.is_sharded() and config.is_l1, f"the heads of shards must be shards in L1, not {config.brief()}")


def _require_l1(tiles: int, spec: Spec) -> None:
    l1_bytes = current_board().l1_bytes
    require(2 * tiles * spec.page_bytes <= l1_bytes, f"{2 * tiles} tiles per core do not fit into L1 of {l1_bytes} B")


@operation("ttnn.experimental.create_qkv_heads")
def create_qkv_heads(
    input: Spec,
    *,
    num_heads: int,
    num_kv_heads: int | None = None,
    transpose_k_heads: bool = True,
    memory_config: MemoryConfig | None = None,
    output_tensors: Sequence[Spec] | None = None,
) -> Plan:
    """Block sharded [B, 1, S, W] → heads. W holds a group for each key-value head: its queries, the key, the value."""
    kv_heads = num_heads if num_kv_heads is None else num_kv_heads
    config = memory_of(memory_config, input)
    batch, one, length, width = (input.padded_shape[dim] for dim in range(4))
    head_dim = divided(width, num_heads + 2 * kv_heads, "the input")
    require_heads(input)
    shards = _require_blocks(input, "the input")
    require(one == 1, f"dimension 1 must be 1, it is {one}")
    rows, columns = _rows_and_columns(shards)
    require(kv_heads > 0 and num_heads % kv_heads == 0, f"{num_heads} queries do not share {kv_heads} keys evenly")
    require(width % (columns * TILE_SIZE) == 0, f"a width of {width} does not divide among {columns} cores")
    require(config.memory_layout is HEIGHT, f"the output must be height sharded, not {config.brief()}")
    require(batch == rows, f"a batch of {batch} must be on as many rows of cores, not {rows}")
    require(kv_heads % columns == 0, f"{kv_heads} groups do not divide among {columns} cores")
    _require_l1(length // TILE_SIZE * (width // TILE_SIZE // columns), input)
    value = (batch, kv_heads, length, head_dim)
    key = (batch, kv_heads, head_dim, length) if transpose_k_heads else value
    require(output_tensors is None or len(output_tensors) == 3, "output_tensors must be a query, a key and a value")
    given = outputs_given(output_tensors)
    shapes = ((batch, num_heads, length, head_dim), key, value)
    specs = given or _on_the_same_cores(input, config, shapes, input.dtype)
    turn = transposing(input.dtype) if transpose_k_heads else unchanged
    apart = taking_apart((num_heads // kv_heads, 1), kv_heads, head_dim, turn)
    padded = input.padded_shape
    return heads_plan(specs, lambda values: apart(grown(values, padded)), ("input",), given)


@operation("ttnn.experimental.create_qkv_heads_from_separate_tensors")
def create_qkv_heads_from_separate_tensors(
    input: Spec,
    input_kv: Spec,
    *,
    num_heads: int,
    num_kv_heads: int | None = None,
    transpose_k_heads: bool = True,
    memory_config: MemoryConfig | None = None,
    output_tensors: Sequence[Spec] | None = None,
) -> Plan:
    """Block sharded queries [B, 1, S, H × D] and pairs of key and value [B, 1, T, KV × 2 × D] → heads."""
    kv_heads = num_heads if num_kv_heads is None else num_kv_heads
    config = memory_of(memory_config, input)
    query, rest = input.padded_shape, input_kv.padded_shape
    head_dim = divided(query[3], num_heads, "queries")
    require_on_device(input_kv, "keys and values")
    require_heads(input)
    require_heads(input_kv, "keys and values", HEAD_DTYPES)
    require(input_kv.dtype is input.dtype, f"keys and values are {input_kv.dtype}, queries {input.dtype}")
    shards = _require_blocks(input, "the input")
    _require_blocks(input_kv, "keys and values")
    rows, columns = _rows_and_columns(shards)
    for heads in (num_heads, kv_heads):
        require(heads > 0 and heads % columns == 0, f"{heads} heads do not divide among {columns} cores")
    require(query[1] == 1 and rest[1] == 1, "dimension 1 of both inputs must be 1")
    require(query[0] == rest[0], f"the batch of queries is {query[0]}, of keys and values {rest[0]}")
    for shape in (query, rest):
        require(shape[3] % (columns * TILE_SIZE) == 0, f"a width of {shape[3]} does not divide among {columns} cores")
        height = shape[0] * shape[2]
        require(height % (rows * TILE_SIZE) == 0, f"a height of {height} does not divide among {rows} cores")
    size = rest[3] // (2 * kv_heads)
    require(size == head_dim, f"heads of keys and values are {size} wide, those of queries {head_dim}")
    # Like the library, this computes the query's shard height from the cores along the width.
    q_tiles = query[0] * query[2] // (columns * TILE_SIZE) * (query[3] // (columns * TILE_SIZE))
    k_tiles = rest[0] * rest[2] // (rows * TILE_SIZE) * (rest[3] // (2 * columns * TILE_SIZE))
    require(q_tiles > 0 and k_tiles > 0, "a shard would hold no tile")
    _require_l1(q_tiles + 2 * k_tiles, input)
    require(query[0] == rows, f"a batch of {query[0]} must be on as many rows of cores, not {rows}")
    value = (rest[0], kv_heads, rest[2], head_dim)
    key = (rest[0], kv_heads, head_dim, rest[2]) if transpose_k_heads else value
    shapes = ((query[0], num_heads, query[2], head_dim), key, value)
    specs = _on_the_same_cores(input, config, shapes, input.dtype)
    turn = transposing(input.dtype) if transpose_k_heads else unchanged

    def compute(values: torch.Tensor, others: torch.Tensor) -> tuple[torch.Tensor, ...]:
        pairs = grouped_heads(grown(others, rest), kv_heads, head_dim)
        queries = grouped_heads(grown(values, query), 1, head_dim).flatten(1, 2)
        return contiguous(queries), contiguous(turn(pairs[:, :, 0])), contiguous(pairs[:, :, 1])

    return heads_plan(specs, compute, ("input", "input_kv"), outputs_given(output_tensors))


# -- pairs of rows (Boltz) --------------------------------------------------------------------------------------------


@operation("ttnn.experimental.nlp_create_qkv_heads_boltz")
def nlp_create_qkv_heads_boltz(
    input: Spec,
    input_kv: Spec | None = None,
    *,
    num_heads: int,
    num_kv_heads: int | None = None,
    transpose_k_heads: bool = True,
    memory_config: MemoryConfig | None = None,
    output_tensors: Sequence[Spec | None] | None = None,
) -> Plan:
    """[1, S, S, (query + 2 key-value heads) × D] → [heads, S, S, D] each."""
    kv_heads = num_heads if num_kv_heads is None else num_kv_heads
    config = memory_of(memory_config, input)
    if input_kv is None:
        head_dim = divided(input.padded_shape[3], num_heads + 2 * kv_heads, "the input")
    else:
        head_dim = divided(input.padded_shape[3], num_heads, "queries")
        size = divided(input_kv.padded_shape[3], 2 * kv_heads, "keys and values")
        require(size == head_dim, f"heads of keys and values are {size} wide, those of queries {head_dim}")
    require_heads(input)
    require_sharding(input, input_kv, config, num_heads, kv_heads, head_dim, 2, by_logical_rows=True)
    require(not (input.is_sharded and transpose_k_heads), "the key of sharded heads cannot be transposed")
    if input_kv is not None:
        require_kv(input, input_kv)
    length, size = input.shape[2], round_up(head_dim, TILE_SIZE)
    query, value = (num_heads, length, length, size), (kv_heads, length, length, size)
    key = (kv_heads, size, length, length) if transpose_k_heads else value
    specs = head_specs(input, config, (query, key, value), (num_heads, kv_heads), head_dim)
    square = input.shape[0] == 1 and input.shape[1] == length
    if size != head_dim or not square or input.is_sharded or (transpose_k_heads and length % TILE_SIZE):
        compute = faulty(f"the kernel cannot split heads of {head_dim} columns for an input of {list(input.shape)}")
    else:
        compute = _pairs_apart(num_heads, kv_heads, head_dim, input.dtype, transpose_k_heads)
    reads = ("input",) if input_kv is None else ("input", "input_kv")
    l1_bytes = 0 if input.is_sharded else buffers(input.dtype, 3 if transpose_k_heads else 1)
    return heads_plan(specs, compute, reads, outputs_given(output_tensors), l1_bytes)


def _pairs_apart(
    heads: int, kv_heads: int, head_dim: int, dtype: DataType, turned: bool
) -> Callable[..., tuple[torch.Tensor, ...]]:
    turn = transposing(dtype, wide=False)

    def part(values: torch.Tensor, first: int, count: int) -> torch.Tensor:
        """[1, S, S, W] → [count, S, S, head_dim]."""
        columns = values[0, :, :, first * head_dim : (first + count) * head_dim]
        return columns.unflatten(-1, (count, head_dim)).permute(2, 0, 1, 3)

    def compute(values: torch.Tensor, rest: torch.Tensor | None = None) -> tuple[torch.Tensor, ...]:
        source, first = (values, heads) if rest is None else (rest, 0)
        key = part(source, first, kv_heads)
        if turned:
            key = _turned_tiles(turn(key.flatten(1, 2)), key.shape[1])
        value = part(source, first + kv_heads, kv_heads)
        return contiguous(part(values, 0, heads)), contiguous(key), contiguous(value)

    return compute


def _turned_tiles(key: torch.Tensor, length: int) -> torch.Tensor:
    """The tiles of [heads, D, S × S] in order, relabelled [heads, D, S, S] as in the library."""
    heads, head_dim, _ = key.shape
    tiles = key.reshape(heads, head_dim // TILE_SIZE, TILE_SIZE, -1, TILE_SIZE).transpose(2, 3)
    per_side = length // TILE_SIZE
    tiles = tiles.reshape(heads, head_dim, per_side, per_side, TILE_SIZE, TILE_SIZE)
    return tiles.transpose(3, 4).reshape(heads, head_dim, length, length)


@operation("ttnn.experimental.nlp_concat_heads_boltz")
def nlp_concat_heads_boltz(
    input_tensor: Spec, *, memory_config: MemoryConfig | None = None, output_tensor: Spec | None = None
) -> Plan:
    """[H, S, S, D] → [1, S, S, H × D]."""
    spec, config = input_tensor, memory_of(memory_config, input_tensor)
    heads, first, length, width = (spec.shape[dim] for dim in range(4))
    rows = spec.padded_shape[1] * spec.padded_shape[2]
    require_concat_input(spec, config, spec.padded_shape[0], rows)
    shape = (1, first, length, heads * width)
    out = output_tensor or concat_output(spec, config, shape, rows)
    fits = out.shape == shape and out.dtype is spec.dtype
    if fits and spec.rank == 4 and (spec.padded_shape[3] == width or heads == 1):
        compute = _pairs_joined
    else:
        compute = faulty(f"the kernel cannot concatenate heads of shape {list(spec.shape)}")
    l1_bytes = 0 if spec.is_sharded else 2 * heads * spec.padded_shape[3] // TILE_SIZE * spec.page_bytes
    return Plan(out, compute, reads=("input_tensor",), into=into(output_tensor), l1_bytes=l1_bytes)


def _pairs_joined(values: torch.Tensor) -> torch.Tensor:
    return values.permute(1, 2, 0, 3).flatten(2).unsqueeze(0).contiguous()


# -- parts ------------------------------------------------------------------------------------------------------------


@operation("ttnn.experimental.nlp_create_q_heads_split")
def nlp_create_q_heads_split(
    input: Spec, *, num_heads: int, split_head_dim: int, memory_config: MemoryConfig | None = None
) -> Plan:
    """[B, 1, S, H × D] → the first `split_head_dim` columns of every head, and the rest of them."""
    config = memory_of(memory_config, input)
    require(
        input.rank == 4 and num_heads > 0, f"rank 4 and at least one head are needed, not {input.rank}, {num_heads}"
    )
    width = input.shape[3]
    require(width == input.padded_shape[3], f"a width of {width} is padded")
    head_dim = divided(width, num_heads, "queries")
    require(
        0 < split_head_dim < head_dim and split_head_dim % TILE_SIZE == 0 and head_dim % TILE_SIZE == 0,
        f"a head of {head_dim} columns cannot be split at {split_head_dim}",
    )
    require_heads(input)
    require(input.shape[1] == 1, f"dimension 1 must be 1, it is {input.shape[1]}")
    require(not input.is_sharded, "the input must be interleaved")
    require_interleaved(config)
    batch, _, length, _ = input.shape
    sizes = (split_head_dim, head_dim - split_head_dim)
    specs = [Spec.of((batch, num_heads, length, size), input.dtype, Layout.TILE, config) for size in sizes]

    def compute(values: torch.Tensor) -> tuple[torch.Tensor, ...]:
        heads = grouped_heads(values, 1, head_dim).flatten(1, 2)
        return tuple(contiguous(part) for part in heads.split(sizes, -1))

    return Plan(tuple(specs), compute, reads=("input",), l1_bytes=2 * head_dim // TILE_SIZE * input.page_bytes)
