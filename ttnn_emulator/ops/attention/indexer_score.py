"""Scores for selecting the keys, or key blocks, of sparse attention; only on Blackhole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch

from ttnn_emulator.enums import DataType, Layout, MathFidelity
from ttnn_emulator.errors import require
from ttnn_emulator.execution.call_context import current_board
from ttnn_emulator.execution.operation_table import Plan, operation
from ttnn_emulator.numerics.formats.carriers import truncate_bf16
from ttnn_emulator.numerics.programs.attention.indexer_scores import Scorer
from ttnn_emulator.numerics.programs.attention.softmax_steps import NEGATIVE_INFINITY
from ttnn_emulator.numerics.units import reductions as numeric
from ttnn_emulator.ops.attention.sparse import require_blackhole, require_one_chip, require_striped, stripes_of
from ttnn_emulator.ops.support.common_checks import math_config
from ttnn_emulator.tensors.shapes import DEFAULT_TILE, TILE_SIZE
from ttnn_emulator.tensors.spec import Spec, tile_bytes

NARROW_TILE = tile_bytes(DEFAULT_TILE, DataType.BFLOAT16)
STORED = (DataType.BFLOAT16, DataType.BFLOAT8_B)
# asked ttnn 0.81.1: values of key_compression_ratio that indexer_score accepts
RATIOS = (1, 4)  # tokens per key
OUTPUT_STEP = 8  # block scores per 16 bytes, the alignment of row writes


class Units(NamedTuple):
    """Work partitioning, as in `ttnn.IndexerScoreProgramConfig`, with its defaults."""

    q_chunk_size: int = 32
    k_chunk_size: int = 32
    head_group_size: int = 1


def _units(given: Any) -> Units:
    return Units() if given is None else Units(given.q_chunk_size, given.k_chunk_size, given.head_group_size)


@dataclass(frozen=True)
class Choice:
    """Differences between the two operations."""

    relu: bool
    groups: int = 1
    block: int = 0
    ratio: int = 1
    most_axes: int = 2


@operation("ttnn.experimental.indexer_score_dsa")
def indexer_score_dsa(
    q: Spec,
    k: Spec,
    weights: Spec,
    *,
    chunk_start_idx: int | None = None,
    key_compression_ratio: int = 1,
    program_config: Any = None,
    compute_kernel_config: Any = None,
    cache_batch_idx: int | None = None,
    kv_len: int | None = None,
    seq_shard_axes: Sequence[int] | None = None,
    block_cyclic_sp_axis: int | None = None,
    block_cyclic_chunk_local: int | None = None,
    block_cyclic_cache_tp_sharded: bool = False,
) -> Plan:
    """Σ over heads of weight × relu(query · key), minus infinity for keys that follow the query.

    A key may represent `key_compression_ratio` tokens. Columns from `kv_len` on are not written.
    """
    require_blackhole()
    ratio = key_compression_ratio
    require(ratio in RATIOS, f"key_compression_ratio must be 1 or 4, not {ratio}")
    choice = Choice(relu=True, ratio=ratio)
    stripes = (block_cyclic_sp_axis, block_cyclic_chunk_local, block_cyclic_cache_tp_sharded)
    _require_operands(q, k, choice, seq_shard_axes, stripes)
    heads, queries = q.shape[1:3]
    require(weights.on_device and not weights.is_sharded, "weights must be on a device, in interleaved memory")
    fits = weights.shape == (1, 1, queries, heads)
    require(fits, f"weights must be [1, 1, {queries}, {heads}] with q of {heads} heads, not {list(weights.shape)}")
    require(weights.dtype is DataType.BFLOAT16, f"weights must be BFLOAT16, not {weights.dtype}")
    require(weights.is_tile, f"weights must be in TILE layout, they are in {weights.layout}")
    units = _units(program_config)
    start, scorer, l1_bytes = _prepared(q, k, choice, chunk_start_idx, units, compute_kernel_config, kv_len)
    slot = _slot(cache_batch_idx, k)

    def compute(query: torch.Tensor, key: torch.Tensor, gates: torch.Tensor) -> torch.Tensor:
        return _scores(scorer, choice, query[0], key[slot, 0], gates[0, 0].T.contiguous(), start, kv_len)

    return Plan(
        _output(q, k, choice),
        compute,
        reads=("q", "k", "weights"),
        l1_bytes=l1_bytes,
        program=_program(q, k, scorer, choice, units, cache_batch_idx, kv_len),
    )


@operation("ttnn.experimental.indexer_score_msa")
def indexer_score_msa(
    q: Spec,
    k: Spec,
    *,
    num_groups: int,
    chunk_start_idx: int | None = None,
    scale: float = 1.0,
    block_size: int = 0,
    program_config: Any = None,
    compute_kernel_config: Any = None,
    cache_batch_idx: int | None = None,
    kv_len: int | None = None,
    seq_shard_axes: Sequence[int] | None = None,
    block_cyclic_sp_axis: int | None = None,
    block_cyclic_chunk_local: int | None = None,
    block_cyclic_cache_tp_sharded: bool = False,
) -> Plan:
    """Σ over the heads of a group of scale × query · key, minus infinity for keys that follow the query.

    With `block_size` the largest of every block of keys; a query's own block gets plus infinity.
    """
    require_blackhole()
    choice = Choice(relu=False, groups=num_groups, block=block_size, most_axes=1)
    stripes = (block_cyclic_sp_axis, block_cyclic_chunk_local, block_cyclic_cache_tp_sharded)
    _require_operands(q, k, choice, seq_shard_axes, stripes)
    units = _units(program_config)
    start, scorer, l1_bytes = _prepared(q, k, choice, chunk_start_idx, units, compute_kernel_config, kv_len)
    slot = _slot(cache_batch_idx, k)
    # The program uses the upper 16 bits of the float32.
    gate = truncate_bf16(torch.tensor(scale, dtype=torch.float32))

    def compute(query: torch.Tensor, key: torch.Tensor) -> torch.Tensor:
        return _scores(scorer, choice, query[0], key[slot, 0], gate.expand(query.shape[1:3]), start, kv_len)

    return Plan(
        _output(q, k, choice),
        compute,
        reads=("q", "k"),
        l1_bytes=l1_bytes,
        program=(scale, _program(q, k, scorer, choice, units, cache_batch_idx, kv_len)),
    )


# -- what is required -----------------------------------------------------------------------------------------------


def _require_operands(
    q: Spec, k: Spec, choice: Choice, axes: Sequence[int] | None, stripes: tuple[int | None, int | None, bool]
) -> None:
    """Checks of queries, keys and the striping of a cache over chips: axis, chunk, sharding."""
    axis, chunk, tp_sharded = stripes
    _require_axes(axes, choice, axis)
    _require_shapes(q, k)
    require_striped(stripes_of(axis, chunk, q.shape[2]), tp_sharded)


def _require_axes(axes: Sequence[int] | None, choice: Choice, striped: int | None) -> None:
    count = len(axes or ())
    require(count <= choice.most_axes, f"seq_shard_axes may name {choice.most_axes} axes, not {count}")
    # A second axis splits the rows of a chip's chunk, so it must have more than one chip.
    inner = striped is not None and current_board().chips > 1
    require(count < 2 or inner, "a second one of seq_shard_axes needs a cache striped over several chips")


def _require_shapes(q: Spec, k: Spec) -> None:
    for name, spec in (("q", q), ("k", k)):
        require(spec.on_device, f"{name} must be on a device")
        require(spec.rank == 4, f"{name} must have rank 4, its shape is {list(spec.shape)}")
        require(spec.dtype in STORED, f"{name} must be BFLOAT16 or BFLOAT8_B, not {spec.dtype}")
        require(spec.is_tile, f"{name} must be in TILE layout, it is in {spec.layout}")
    require(not q.is_sharded, "q must be in interleaved memory")
    require(q.shape[0] == 1, f"q must have a batch of 1, not {q.shape[0]}")
    require(k.shape[1] == 1, f"k must have one head, not {k.shape[1]}")
    require(q.shape[3] == k.shape[3], f"q is {q.shape[3]} wide, k {k.shape[3]}")
    sizes = (q.shape[2], k.shape[2], q.shape[3])
    whole = all(size % TILE_SIZE == 0 for size in sizes)
    require(whole, f"{sizes[0]} queries, {sizes[1]} keys of width {sizes[2]} must all be multiples of {TILE_SIZE}")


def _slot(index: int | None, k: Spec) -> int:
    slots = k.shape[0]
    if index is None:
        require(slots == 1, f"the batch must be 1 without cache_batch_idx, k has {slots}")
        return 0
    require(0 <= index < slots, f"cache_batch_idx {index} is not one of the {slots} slots of k")
    return index


def _start(given: int | None, queries: int, keys: int, kv_len: int | None, choice: Choice) -> int:
    """The position of the first query: as passed, or such that the last query is at the end of the keys."""
    require_one_chip()
    tokens = keys * choice.ratio
    if kv_len is not None:
        require(kv_len % TILE_SIZE == 0, f"kv_len {kv_len} is not a multiple of {TILE_SIZE}")
        require(0 < kv_len <= keys, f"kv_len {kv_len} must be from 1 to {keys}, the number of keys")
        whole = choice.block <= 0 or kv_len % choice.block == 0
        require(whole, f"kv_len {kv_len} must be a multiple of block_size {choice.block}")
    if given is None:
        require(tokens >= queries, f"{queries} queries cannot end where {tokens} tokens do: give chunk_start_idx")
        given = tokens - queries
    require(given >= 0 and given % TILE_SIZE == 0, f"chunk_start_idx {given} is not a multiple of {TILE_SIZE}")
    require(given < tokens, f"chunk_start_idx {given} exceeds T, the keys of {tokens} tokens")
    known = tokens if kv_len is None else kv_len * choice.ratio
    require(given < known, f"chunk_start_idx {given} is beyond kv_len, the keys of {known} tokens")
    return given


def _require_units(config: Units, heads: int, queries: int, keys: int, choice: Choice) -> tuple[int, int, int]:
    """Query tiles and key tiles per unit of work, and the heads resident in L1."""
    rows, columns = config.q_chunk_size, config.k_chunk_size
    whole = rows % TILE_SIZE == 0 and columns % TILE_SIZE == 0
    require(whole, f"q_chunk_size {rows} and k_chunk_size {columns} must be multiples of {TILE_SIZE}")
    require(rows > 0 and queries % rows == 0, f"q_chunk_size {rows} must divide Sq, the {queries} queries")
    require(0 < columns <= keys, f"k_chunk_size {columns} is out of range for {keys} keys")
    resident = config.head_group_size or heads
    require(resident > 0 and heads % resident == 0, f"head_group_size {resident} must divide {heads} heads")
    groups, block = choice.groups, choice.block
    require(groups >= 1 and heads % groups == 0, f"num_groups {groups} must be at least 1 and divide Hi {heads}")
    if groups > 1:
        require(resident == heads, f"num_groups {groups} requires all heads resident, head_group_size is {resident}")
        require(columns > TILE_SIZE, f"num_groups {groups} requires k_chunk_size>=64, it is {columns}")
    if block:
        require(block > 0 and block % TILE_SIZE == 0, f"block_size {block} must be a multiple of {TILE_SIZE}")
        require(keys % block == 0, f"block_size {block} must divide T, the {keys} keys")
        require(columns % block == 0, f"block_size {block} must divide k_chunk_size {columns}")
        require(keys % columns == 0, f"with blocks, k_chunk_size {columns} has to divide T {keys}, the number of keys")
        count = columns // block
        aligned = count % OUTPUT_STEP == 0
        require(aligned, f"{count} blocks of a chunk have to be a multiple of {OUTPUT_STEP} so each unit writes words")
        require(count <= TILE_SIZE, f"blocks per work unit must be <= {TILE_SIZE}, k_chunk_size has {count}")
    return rows // TILE_SIZE, columns // TILE_SIZE, resident


def _prepared(
    q: Spec, k: Spec, choice: Choice, given: int | None, units: Units, config: Any, kv_len: int | None
) -> tuple[int, Scorer, int]:
    """The position of the first query, the kernel, and the bytes of its buffers."""
    heads, queries, depth = q.shape[1:]
    keys = k.shape[2]
    narrow = q.dtype is DataType.BFLOAT8_B and k.dtype is DataType.BFLOAT8_B
    math = math_config(config, fidelity=MathFidelity.LoFi if narrow else MathFidelity.HiFi2, approx=False)
    require(not math.fp32_acc, "the kernel requires fp32_dest_acc_en=false")
    require(config is None or not config.dst_full_sync_en, "the kernel requires dst_full_sync_en=false")
    start = _start(given, queries, keys, kv_len, choice)
    rows, columns, resident = _require_units(units, heads, queries, keys, choice)
    each = heads // choice.groups
    # tt-metal v0.77.0: ttnn/cpp/ttnn/operations/experimental/indexer_score/device/indexer_score_host_common.hpp,
    # dsa_qk_batching
    together = each if choice.groups > 1 else resident
    batch = together if rows == 1 else min(together, TILE_SIZE)
    require(together % batch == 0, f"{together} heads are not a multiple of the {batch} that are added up at a time")
    strip = columns >= 2 and batch == together and resident == heads
    require(choice.groups == 1 or strip, f"num_groups {choice.groups} with {each} heads each do not fit one batch")
    folded = each == 1 and not choice.relu and q.dtype is DataType.BFLOAT16
    tiles = choice.ratio + 1  # masks
    tiles += heads * rows  # gates
    tiles += 1 if folded else batch * (columns if strip else 1)  # scores
    blocks = columns * TILE_SIZE // choice.block if choice.block else 0
    tiles += rows * blocks if folded and blocks else 2 * (blocks or columns)  # output
    tiles += 2 if blocks else 0  # scaler, a row of block scores
    tiles += max(2 * columns, rows * columns)  # sums
    wide = depth // TILE_SIZE
    l1_bytes = NARROW_TILE * tiles
    l1_bytes += (1 if resident == heads else 2) * resident * rows * wide * tile_bytes(DEFAULT_TILE, q.dtype)
    l1_bytes += 2 * columns * wide * tile_bytes(DEFAULT_TILE, k.dtype)
    return start, Scorer(math, choice.relu, choice.groups, batch, strip, folded), l1_bytes


def _output(q: Spec, k: Spec, choice: Choice) -> Spec:
    columns = k.shape[2] // choice.block if choice.block else k.shape[2]
    shape = (1, choice.groups, q.shape[2], columns)
    return Spec.of(shape, DataType.BFLOAT16, Layout.ROW_MAJOR, q.memory_config)


def _program(
    q: Spec, k: Spec, scorer: Scorer, choice: Choice, units: Units, slot: int | None, kv_len: int | None
) -> tuple:
    """Positions, slot and number of valid keys are runtime arguments."""
    return "indexer_score", scorer, choice, units, q, k, slot is None, kv_len is None


# -- running it -----------------------------------------------------------------------------------------------------


def _scores(
    scorer: Scorer,
    choice: Choice,
    query: torch.Tensor,
    key: torch.Tensor,
    gates: torch.Tensor,
    start: int,
    kv_len: int | None,
) -> torch.Tensor:
    queries, keys = query.shape[1], key.shape[0]
    written = keys if kv_len is None else kv_len
    positions = torch.arange(queries) + start
    seen = (positions + 1) // choice.ratio
    reach = min(int(seen.max()), written)
    made = torch.full((scorer.planes, queries, written), NEGATIVE_INFINITY)
    scores = scorer.scores(query, key[:reach], gates)
    made[..., :reach] = scores.masked_fill(torch.arange(reach) >= seen.unsqueeze(-1), NEGATIVE_INFINITY)
    columns = keys
    if choice.block:
        made = numeric.extreme(made.unflatten(-1, (-1, choice.block)), -1, largest=True)
        own = positions // choice.block
        inside = (own < made.shape[-1]).nonzero().flatten()
        made[:, inside, own[inside]] = float("inf")
        columns = keys // choice.block
    # Columns beyond are not written; fresh memory is zero here, as in `ttnn.empty`.
    return torch.nn.functional.pad(made, (0, columns - made.shape[-1])).unsqueeze(0)
