"""Checks of the decode attention operations, and the distribution of their work over cores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ttnn_emulator.enums import BufferType, DataType, Layout, TensorMemoryLayout
from ttnn_emulator.errors import require
from ttnn_emulator.ops.attention.checks import FLOATS, TILE, is_active, require_grid, require_same_geometry
from ttnn_emulator.tensors.memory_config import MemoryConfig
from ttnn_emulator.tensors.shapes import DEFAULT_TILE, div_up
from ttnn_emulator.tensors.spec import Spec, tile_bytes

# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/transformer/sdpa_decode/sdpa_decode.cpp, get_chunk_size
LARGEST_CHUNK = 512
# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/transformer/sdpa_decode/device/sdpa_decode_device_operation.hpp,
# MAX_TREE_REDUCTION_ROUNDS
MOST_ROUNDS = 6  # rounds of the tree reduction across cores
# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/transformer/sdpa_decode/device/sdpa_decode_program_factory.cpp,
# max_cores_per_head_batch and use_half_tile
DEFAULT_MOST_CORES = 16
SMALL_HEADS = 16  # queries with at most this many heads use 16 x 32 tiles


@dataclass(frozen=True)
class Settings:
    """Non-tensor arguments of the device operation."""

    is_causal: bool
    scale: float | None
    memory_config: MemoryConfig
    program_config: Any
    compute_kernel_config: Any
    chunk: int
    cur_pos: tuple[int, ...] = ()
    window: int = 0
    paged: bool = False
    share_cache: bool = False
    mla_width: int | None = None
    geometry: Any = None
    modulo: int | None = None
    candidates: int = 0
    most_cores: int | None = None


def given_chunk(program: Any) -> int:
    """The chunk size of the program config; 0 if it has none."""
    if program is None or not program.k_chunk_size:
        return 0
    size = program.k_chunk_size
    require(size & (size - 1) == 0, f"k_chunk_size must be a power of two, it is {size}")
    require(size % TILE == 0, f"k_chunk_size must be a multiple of {TILE}, it is {size}")
    return size


# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/transformer/sdpa_decode/sdpa_decode.cpp, get_chunk_size
def chunk_for(length: int, program: Any) -> int:
    """The chunk size of a contiguous cache: the largest power of two that divides its length, up to a limit."""
    asked = given_chunk(program)
    if asked:
        return asked
    power = 1
    while power < length and length % (1 << (power + 1)) == 0:
        power += 1
    size = min(LARGEST_CHUNK, 1 << power)
    require(size % TILE == 0, f"{length} keys make chunks of {size}, which is not a multiple of {TILE}")
    return size


def require_operands(q: Spec, k: Spec, v: Spec | None, settings: Settings) -> None:
    width = settings.mla_width
    require(width is None or settings.is_causal, "latent attention decodes causally only")
    given = [q, k] if v is None else [q, k, v]
    for spec in given:
        require(spec.on_device, "queries, keys and values must be on a device")
        require(spec.dtype in FLOATS, f"queries, keys and values must be BFLOAT16 or block floats, not {spec.dtype}")
    for spec in given[1:]:
        require(spec.is_tile, f"keys and values must be in TILE layout, not {spec.layout}")
        require(spec.memory_config.buffer_type is BufferType.DRAM, "keys and values must be in DRAM")
    for spec in given:
        require(len(spec.padded_shape) >= 4, f"queries, keys and values must have rank 4, not {spec.rank}")
    if q.is_sharded:
        layout = q.memory_config.memory_layout
        require(layout is TensorMemoryLayout.HEIGHT_SHARDED, f"a sharded query must be HEIGHT_SHARDED, not {layout}")
    else:
        require(q.memory_config.buffer_type is BufferType.DRAM, "a query that is not sharded must be in DRAM")
        require(q.is_tile, "a query in ROW_MAJOR layout must be HEIGHT_SHARDED in L1")
    memory = settings.memory_config
    require(q.is_tile or memory.is_sharded(), "a query in ROW_MAJOR layout needs a HEIGHT_SHARDED output")
    if memory.is_sharded():
        layout = memory.memory_layout
        require(layout is TensorMemoryLayout.HEIGHT_SHARDED, f"a sharded output must be HEIGHT_SHARDED, not {layout}")
    if width is not None:
        require(width > 0, "head_dim_v must be positive")
        require(q.padded_shape[3] == k.padded_shape[3], f"widths {q.padded_shape[3]}, {k.padded_shape[3]} differ")
        require(width <= q.padded_shape[3], f"values of width {width} are wider than queries")
        require(v is None or v.padded_shape[3] == width, f"values are not {width} wide")


def require_mask(mask: Spec | None, q: Spec, k: Spec, settings: Settings) -> None:
    if mask is None:
        return
    require(not settings.is_causal, "a mask and is_causal exclude each other")
    require(mask.on_device, "the mask must be on a device")
    padded, chunk = mask.padded_shape, settings.chunk
    require(len(padded) == 4, f"the mask must have rank 4, its shape is {list(mask.shape)}")
    require(
        padded[2] == q.padded_shape[2] and mask.shape[2] == q.shape[2],
        f"the mask has {mask.shape[2]} heads, the query {q.shape[2]}",
    )
    if not settings.paged:
        require(padded[3] == k.padded_shape[2], f"the mask is for {padded[3]} keys, there are {k.padded_shape[2]}")
    require(chunk and padded[3] % chunk == 0, f"the mask of width {padded[3]} does not divide into chunks of {chunk}")
    require(mask.dtype in FLOATS, f"the mask must be BFLOAT16, BFLOAT8_B or BFLOAT4_B, not {mask.dtype}")


def require_positions(positions: Spec | None, users: int) -> None:
    if positions is None:
        return
    require(positions.on_device, "cur_pos_tensor must be on a device")
    count = positions.padded_shape[-1] if positions.padded_shape else 1
    require(
        positions.is_sharded or positions.volume == 0 or positions.physical_shape[0] == 1,
        f"cur_pos_tensor of shape {list(positions.shape)} must hold all positions in its last dimension",
    )
    require(positions.is_sharded or count >= users, f"cur_pos_tensor holds {count} positions for {users} users")


def require_paged(q: Spec, k: Spec, v: Spec, table: Spec, positions: Spec | None, settings: Settings) -> None:
    users = users_of(q, k, table)
    if settings.is_causal:
        require(positions is not None, "a causal call with a page table needs cur_pos_tensor")
        assert positions is not None
        require(positions.dtype is DataType.INT32, f"cur_pos_tensor must be INT32, not {positions.dtype}")
        require(positions.layout is Layout.ROW_MAJOR, "cur_pos_tensor must be in ROW_MAJOR layout")
        if not positions.is_sharded:
            count = positions.padded_shape[-1]
            wanted = users * max(settings.candidates, 1)
            require(count == wanted, f"cur_pos_tensor has {count} positions, {wanted} are needed")
    dtype = DataType.UINT16 if table.is_sharded else DataType.INT32
    require(table.dtype is dtype, f"the page table must be {dtype}, not {table.dtype}")
    require(table.layout is Layout.ROW_MAJOR, "the page table must be in ROW_MAJOR layout")
    require(k.padded_shape[2] == v.padded_shape[2], "blocks of keys and of values differ")
    geometry = settings.geometry
    if settings.mla_width is not None:
        require(not is_active(geometry), "latent values and a cache geometry exclude each other")
    elif is_active(geometry):
        require_same_geometry(geometry, k, v, q.padded_shape[3])
    else:
        widths = k.padded_shape[3], v.padded_shape[3], q.padded_shape[3]
        require(len(set(widths)) == 1, f"widths {list(widths)} differ")
    if settings.modulo is not None:
        _require_modulo(settings.modulo, geometry.block_size if is_active(geometry) else k.padded_shape[2], settings)
    if not settings.is_causal:
        length = table.padded_shape[1] * k.padded_shape[2]
        chunk = settings.chunk
        require(chunk and length % chunk == 0, f"{length} keys do not divide into chunks of {chunk}")


def _require_modulo(modulo: int, block: int, settings: Settings) -> None:
    require(modulo > 0, "cache_position_modulo must be positive")
    require(modulo % block == 0, f"cache_position_modulo {modulo} must be a multiple of the block size {block}")
    require(modulo >= settings.window, f"cache_position_modulo {modulo} is less than the window {settings.window}")


def require_candidates(q: Spec, k: Spec, settings: Settings) -> None:
    """Several positions per user, one per tile of 32 rows."""
    count = settings.candidates
    if not count:
        return
    require(settings.is_causal, "spec_multi_pos_tiles needs is_causal")
    require(not q.is_sharded, "spec_multi_pos_tiles needs a query that is not sharded")
    require(q.dtype is DataType.BFLOAT16, f"spec_multi_pos_tiles needs a BFLOAT16 query, not {q.dtype}")
    require(not settings.window, "spec_multi_pos_tiles and sliding_window_size exclude each other")
    groups = k.padded_shape[1]
    require(groups == 1, f"spec_multi_pos_tiles needs one head of keys, there are {groups}")
    rows = q.padded_shape[2]
    require(rows == count * TILE, f"spec_multi_pos_tiles={count} needs {count * TILE} rows per user, not {rows}")
    require(not has_half_tiles(q, settings), f"spec_multi_pos_tiles needs full tiles, the query has {q.shape[2]} heads")


def require_unpaged(q: Spec, k: Spec, v: Spec, settings: Settings) -> None:
    users = q.padded_shape[1]
    for name, spec in (("keys", k), ("values", v)):
        wanted = 1 if settings.share_cache else users
        require(spec.padded_shape[0] == wanted, f"{name} of {spec.padded_shape[0]} users, {wanted} are needed")
    require(q.padded_shape[0] == 1, f"dimension 0 of the query must be 1, not {q.padded_shape[0]}")
    require(k.padded_shape[-2] == v.padded_shape[-2], "there must be as many keys as values")
    length = k.padded_shape[2]
    require(length % settings.chunk == 0, f"{length} keys do not divide into chunks of {settings.chunk}")
    width = q.padded_shape[-1]
    require(k.padded_shape[-1] == width, f"keys are {k.padded_shape[-1]} wide, queries {width}")
    if settings.mla_width is None:
        require(v.padded_shape[-1] == width, f"values are {v.padded_shape[-1]} wide, queries {width}")
    for position in settings.cur_pos:
        require(position < length, f"position {position} is beyond {length} keys")


def require_groups(q: Spec, k: Spec, v: Spec, settings: Settings) -> None:
    require(k.padded_shape[1] == v.padded_shape[1], "keys and values have different numbers of heads")
    if k.padded_shape[1] > 1:
        require(not settings.memory_config.is_sharded(), "with several heads of keys the output cannot be sharded")
        require(q.dtype is DataType.BFLOAT16, f"with several heads of keys the query must be BFLOAT16, not {q.dtype}")
        fits = q.shape[2] % k.padded_shape[1] == 0
        require(fits, f"{k.padded_shape[1]} heads of keys cannot serve {q.shape[2]} of queries")


def require_sink(sink: Spec | None, q: Spec) -> None:
    if sink is None:
        return
    require(sink.on_device, "the attention sink must be on a device")
    wanted = (q.padded_shape[2], TILE)
    require(sink.padded_shape == wanted, f"the attention sink must be padded to {list(wanted)}")
    require(sink.dtype is DataType.BFLOAT16, f"the attention sink must be BFLOAT16, not {sink.dtype}")
    require(sink.is_tile, "the attention sink must be in TILE layout")
    require(sink.memory_config.buffer_type is BufferType.DRAM, "the attention sink must be in DRAM")


# -- cores ------------------------------------------------------------------------------------------------------------


def users_of(q: Spec, k: Spec, table: Spec | None) -> int:
    """The number of users, as the program counts them."""
    if table is None:
        return q.padded_shape[1]
    if table.is_sharded:
        cores = table.memory_config.shard_spec.grid.num_cores()  # type: ignore[union-attr]
        require(table.padded_shape[0] % cores == 0, f"{table.padded_shape[0]} rows of pages on {cores} cores")
        return table.padded_shape[0] // cores
    return table.padded_shape[0]


@dataclass(frozen=True)
class Spread:
    """How a sharded query distributes a user's heads over groups of cores."""

    parts: int = 1
    replicated: bool = False  # every core of a group holds a copy of its part
    heads: int = 0


def spread_of(q: Spec, users: int, settings: Settings) -> Spread:
    if not q.is_sharded or settings.mla_width is None or q.shard_spec is None:
        return Spread(heads=q.shape[2])
    height, shards = q.shard_spec.shape[0], q.shard_spec.grid.num_cores()
    program = settings.program_config
    most = DEFAULT_MOST_CORES if program is None else program.max_cores_per_head_batch
    require(most > 0, "max_cores_per_head_batch must be positive")
    parts = shards // most // users
    if q.padded_shape[2] == users * height * parts * most:
        return Spread(parts, True, parts * height)
    return Spread(max(1, div_up(q.shape[2], height)), False, q.shape[2])


def has_half_tiles(q: Spec, settings: Settings) -> bool:
    return settings.is_causal and q.shape[2] <= SMALL_HEADS and q.dtype is DataType.BFLOAT16


def cores_per_head(q: Spec, k: Spec, users: int, settings: Settings) -> int:
    """The number of cores per key head of a user."""
    program = settings.program_config
    available = require_grid(program)
    groups = settings.geometry.num_kv_heads if is_active(settings.geometry) else k.padded_shape[1]
    if program is not None and program.sub_core_grids is not None:
        count = program.sub_core_grids.num_cores()
        require(count == available, f"sub_core_grids have {count} cores, the grid {available}")
        sharded = q.is_sharded or settings.memory_config.is_sharded()
        require(sharded, "sub_core_grids need a sharded query or output")
    require(groups > 0, "there are no heads of keys")
    require(users <= available, f"{users} users need as many cores, there are {available}")
    require(users > 0, "there are no users")
    most = settings.most_cores
    if most is None:
        most = available if program is None else program.max_cores_per_head_batch
    require(most > 0, "max_cores_per_head_batch must be positive")
    per_user = min(available, most * users * groups) // users
    cores = max(1, per_user // groups)
    rounds = (cores - 1).bit_length()
    require(rounds <= MOST_ROUNDS, f"{cores} cores per head need {rounds} reduction rounds, {MOST_ROUNDS} at most")
    heads = max(1, div_up(groups, per_user))
    while groups % heads:
        heads += 1
    require(heads == 1 or cores == 1, f"{cores} cores per head and {heads} heads per core exclude each other")
    return cores


def require_room(out: Spec, rows: int, width: int) -> None:
    """The output of a user must fit into a shard."""
    if out.is_sharded:
        needed = rows * div_up(width, TILE) * tile_bytes(DEFAULT_TILE, out.dtype)
        room = out.bytes_per_bank(1, 1)
        require(needed <= room, f"the output of a user takes {needed} B, a shard has {room} B")
