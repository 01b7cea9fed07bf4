"""Attention heads while decoding: one token per user, one core per user; and slices of the caches."""

from __future__ import annotations

import torch

from ttnn_emulator.enums import BufferType, DataType, Layout, ShardOrientation
from ttnn_emulator.errors import require
from ttnn_emulator.execution.operation_table import Plan, operation
from ttnn_emulator.hardware.core_grid import CoreCoord, CoreRange, CoreRangeSet, num_cores_to_corerangeset
from ttnn_emulator.ops.attention.heads.common import (
    board_cores,
    board_grid,
    cores_within,
    divided,
    faulty,
    grown,
    require_heads,
)
from ttnn_emulator.ops.support.common_checks import into, require_on_device, require_tile
from ttnn_emulator.ops.support.derived_shards import HEIGHT, WIDTH
from ttnn_emulator.tensors.memory_config import MemoryConfig, ShardSpec
from ttnn_emulator.tensors.shapes import TILE_SIZE, round_up
from ttnn_emulator.tensors.spec import Spec

DECODE_DTYPES = (DataType.FLOAT32, DataType.BFLOAT16)
# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/experimental/transformer/nlp_create_qkv_heads_decode/device/nlp_create_qkv_heads_decode_device_operation.cpp,  # noqa: E501
# num_users_supported
MOST_USERS = 32
ORIGIN = CoreCoord(0, 0)


@operation("ttnn.experimental.nlp_create_qkv_heads_decode", ignores=("output_tensors",))
def nlp_create_qkv_heads_decode(
    input_tensor: Spec,
    *,
    num_heads: int,
    num_kv_heads: int | None = None,
    overlap_qk_coregrid: bool | None = True,
    batch_offset: Spec | None = None,
    slice_size: int | None = None,
    memory_config: MemoryConfig | None = None,
) -> Plan:
    """[1, 1, users, W] → query, key and value [1, users, heads, D], one core per user."""
    spec = input_tensor
    kv_heads = num_heads if num_kv_heads is None else num_kv_heads
    width = spec.padded_shape[3]
    head_dim = divided(width, num_heads + 2 * kv_heads, "the input")
    require_heads(spec, dtypes=DECODE_DTYPES)
    one, other, users, columns = spec.shape
    require(columns % TILE_SIZE == 0, f"a width of {columns} is not a multiple of {TILE_SIZE}")
    require(users <= MOST_USERS, f"{users} users are more than {MOST_USERS}")
    require(one == other == 1, f"the first two dimensions must be 1, not {one} and {other}")
    overlap = True
    if spec.is_sharded:
        overlap = overlap_qk_coregrid is not False
        users = _require_decode_shards(spec, head_dim, overlap, batch_offset, slice_size, users)
    require(num_heads >= kv_heads, f"{num_heads} query heads are fewer than {kv_heads} key-value heads")
    grid = _decode_grid(memory_config)
    need = users if overlap else 2 * users
    require(grid.num_cores() >= need, f"{need} cores are needed, the grid has {grid.num_cores()}")
    batch = spec.shape[2] if slice_size is None else slice_size
    specs = _decode_specs(spec, grid, batch, (num_heads, kv_heads), head_dim, overlap)
    if not spec.is_sharded:
        _require_first_cores(specs[0])
    counts = (num_heads, kv_heads, kv_heads)

    def compute(values: torch.Tensor, offset: torch.Tensor | None = None) -> tuple[torch.Tensor, ...]:
        first = 0 if offset is None else int(offset.reshape(-1)[0])
        rows = values[0, 0, first : first + batch].reshape(1, -1, sum(counts), head_dim)
        return tuple(part.contiguous() for part in rows.split(counts, 2))

    run = compute if head_dim % TILE_SIZE == 0 else faulty(f"heads of {head_dim} columns are not whole tiles")
    use_offset = batch_offset is not None and spec.is_sharded
    return Plan(specs, run, reads=("input_tensor", "batch_offset") if use_offset else ("input_tensor",))


def _require_decode_shards(
    spec: Spec, head_dim: int, overlap: bool, offset: Spec | None, slice_size: int | None, users: int
) -> int:
    """Check a sharded input; returns the number of users."""
    shards = spec.shard_spec
    require(spec.memory_config.memory_layout is WIDTH, f"the input must be width sharded, not {spec.memory_config}")
    assert shards is not None
    require(shards.orientation is ShardOrientation.ROW_MAJOR, "shards must be in row-major order")
    require(overlap or head_dim % shards.shape[1] == 0, f"shards of {shards.shape[1]} columns cut heads of {head_dim}")
    require((offset is None) == (slice_size is None), "batch_offset and slice_size go together")
    if offset is None or slice_size is None:
        return users
    require(offset.shape[0] == 1, f"batch_offset must hold one number, not {list(offset.shape)}")
    return slice_size


def _require_first_cores(query: Spec) -> None:
    """The kernel for interleaved inputs uses cores from the origin on."""
    assert query.shard_spec is not None
    grid = query.shard_spec.grid
    wide = grid.bounding_box().end.x + 1
    for number in range(grid.num_cores()):
        core = CoreCoord(number % wide, number // wide)
        require(grid.contains(core), f"core {core} must be one of the output's")


def _decode_grid(config: MemoryConfig | None) -> CoreRangeSet:
    if config is not None and config.shard_spec is not None:
        return config.shard_spec.grid
    size = board_grid()
    return CoreRangeSet([CoreRange(ORIGIN, CoreCoord(size.x - 1, size.y - 1))])


def _decode_specs(
    spec: Spec, grid: CoreRangeSet, batch: int, heads: tuple[int, int], head_dim: int, overlap: bool
) -> tuple[Spec, ...]:
    start = grid.ranges()[0].start
    of_query = of_key = cores_within(start, batch, grid)
    if not overlap:
        behind = cores_within(start, batch + 1, grid).ranges()[-1].end
        of_key = cores_within(behind, batch, grid)
    places = ((heads[0], of_query), (heads[1], of_key), (heads[1], of_query))
    specs = []
    for count, cores in places:
        shards = ShardSpec(cores, (round_up(count, TILE_SIZE), head_dim))
        config = MemoryConfig(HEIGHT, BufferType.L1, shards)
        specs.append(Spec.of((1, batch, count, head_dim), spec.dtype, Layout.TILE, config))
    return tuple(specs)


@operation("ttnn.experimental.nlp_concat_heads_decode", ignores=("memory_config",))
def nlp_concat_heads_decode(
    input_tensor: Spec,
    *,
    num_heads: int,
    output_tensor: Spec | None = None,
    sub_core_grids: CoreRangeSet | None = None,
) -> Plan:
    """[1, users, heads padded to tiles, D], one core per user → [1, 1, 32, heads × D], one core per head."""
    spec = input_tensor
    require_heads(spec, dtypes=DECODE_DTYPES)
    one, users, heads, head_dim = (spec.padded_shape[dim] for dim in range(4))
    require(one == 1, f"dimension 0 must be 1, it is {one}")
    require(users <= MOST_USERS, f"{users} users are more than {MOST_USERS}")
    require(heads >= num_heads, f"{num_heads} heads are more than the {heads} of the input")
    require(spec.memory_config.memory_layout is HEIGHT, f"the input must be height sharded, not {spec.memory_config}")
    shards = spec.shard_spec
    assert shards is not None
    last_two = tuple(spec.padded_shape[-2:])
    require(shards.shape == last_two, f"a shard must hold one user's heads {list(last_two)}, not {list(shards.shape)}")
    require(shards.num_cores() == users, f"{users} users must be on as many cores, not {shards.num_cores()}")
    ranges = shards.grid.ranges()
    apart = len(ranges) > 1 or ranges[0].start != ORIGIN or sub_core_grids is not None
    if apart:
        require(sub_core_grids is not None, "an input on other cores than the first ones needs sub_core_grids")
        assert sub_core_grids is not None
        require(sub_core_grids.num_cores() >= num_heads, f"{num_heads} heads need as many cores in sub_core_grids")
    out = output_tensor
    require(out is None or out.shard_spec is not None, "the output must be sharded")
    batch = max(users, MOST_USERS)
    shape = (1, 1, batch, num_heads * head_dim)
    if out is None:
        if apart:
            assert sub_core_grids is not None
            cores = cores_within(ranges[0].start, num_heads, sub_core_grids)
        else:
            cores = num_cores_to_corerangeset(num_heads, board_grid(), True)
        config = MemoryConfig(WIDTH, BufferType.L1, ShardSpec(cores, (batch, head_dim)))
        out = Spec.of(shape, spec.dtype, Layout.TILE, config)
    padded = spec.padded_shape

    def compute(values: torch.Tensor) -> torch.Tensor:
        rows = grown(values, padded)[0, :, :num_heads].reshape(users, -1)
        return grown(rows.reshape(1, 1, users, -1), shape).contiguous()

    fits = out.shape == shape and out.dtype is spec.dtype
    run = compute if fits else faulty(f"the output must be {list(shape)} in {spec.dtype}")
    return Plan(out, run, reads=("input_tensor",), into=into(output_tensor))


@operation("ttnn.experimental.nlp_kv_cache_load_slice", ignores=("memory_config",))
def nlp_kv_cache_load_slice(
    input_tensor: Spec, *, seq_len_start: int, seq_len_end: int, output_tensor: Spec | None = None
) -> Plan:
    """Rows from `seq_len_start` to `seq_len_end` of every head of a cache [B, H, S, D], one core per head."""
    spec = input_tensor
    require_on_device(spec)
    require_tile(spec)
    require(len(spec.padded_shape) == 4, f"the input must have rank 4, not {spec.rank}")
    batch, heads, length, width = spec.padded_shape
    require(
        0 <= seq_len_start < seq_len_end <= length,
        f"rows {seq_len_start} to {seq_len_end} are not a slice of {length} rows",
    )
    cores = batch * heads
    require(0 < cores <= board_cores(), f"{cores} heads need as many cores, there are {board_cores()}")
    rows = seq_len_end - seq_len_start
    require(seq_len_start % TILE_SIZE == 0, f"the slice must begin at a tile, not at {seq_len_start}")
    head_shards = ShardSpec(num_cores_to_corerangeset(cores, board_grid(), True), (rows, width))
    made = Spec.of(
        (batch, heads, rows, width), spec.dtype, spec.layout, MemoryConfig(HEIGHT, BufferType.L1, head_shards)
    )
    out = output_tensor or made
    padded = spec.padded_shape

    def compute(values: torch.Tensor) -> torch.Tensor:
        return grown(values, padded)[:, :, seq_len_start:seq_len_end].contiguous()

    fits = out.shape == made.shape and out.dtype is spec.dtype
    run = compute if fits else faulty(f"the output must be {list(made.shape)} in {made.dtype}")
    return Plan(out, run, reads=("input_tensor",), into=into(output_tensor))
