"""Sparse attention: every token attends to selected keys or key blocks; only on Blackhole."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

from ttnn_emulator.enums import ALL_ENUMS, Arch, BufferType, DataType, Layout, MathFidelity
from ttnn_emulator.errors import ChipFault, NotEmulated, require
from ttnn_emulator.execution.call_context import current_board, current_device
from ttnn_emulator.execution.operation_table import Plan, operation
from ttnn_emulator.numerics.programs.attention.sparse import attend_chosen
from ttnn_emulator.numerics.programs.attention.whole_sequences import Prefill, scale_or_default
from ttnn_emulator.ops.support.common_checks import free_l1, math_config
from ttnn_emulator.tensors.memory_config import DRAM_MEMORY_CONFIG
from ttnn_emulator.tensors.shapes import DEFAULT_TILE, TILE_SIZE, round_up
from ttnn_emulator.tensors.spec import Spec, tile_bytes

# tt-metal v0.81.1: ttnn/cpp/ttnn/operations/transformer/sdpa/device/kernels/dataflow/sparse_sdpa_reader.cpp, sentinel
NOTHING = 0xFFFFFFFF  # index that selects no key
NARROW_TILE = tile_bytes(DEFAULT_TILE, DataType.BFLOAT16)
# tt-metal v0.81.1: ttnn/cpp/ttnn/operations/transformer/sdpa/device/kernels/sparse_sdpa_common.hpp, align_cb_page
MESSAGE = 16  # bytes of a page that carries messages between two kernels of a core
# tt-metal v0.81.1: ttnn/cpp/ttnn/operations/transformer/sdpa/device/kernels/sparse_sdpa_msa_common.hpp,
# KV_CACHE_SLOTS_MAX and KV_CACHE_SLOTS_MIN
MOST_SLOTS, LEAST_SLOTS = 64, 2  # key and value blocks that a core caches


# -- what both require ------------------------------------------------------------------------------------------------


def require_blackhole() -> None:
    arch = current_board().arch
    require(arch is Arch.BLACKHOLE, f"only Blackhole has this operation, not {arch.name}")


def _require_rows(spec: Spec, name: str) -> None:
    require(spec.on_device, f"{name} must be on a device")
    require(spec.layout is Layout.ROW_MAJOR, f"{name} must be in ROW_MAJOR layout, it is in {spec.layout}")
    require(spec.memory_config.buffer_type is BufferType.DRAM, f"{name} must be in DRAM")
    require(not spec.is_sharded, f"{name} must be interleaved")
    require(spec.padded_shape == spec.shape, f"{name} of shape {list(spec.shape)} must not be padded")


def _require_cache(spec: Spec, name: str, layout: Layout) -> None:
    require(spec.on_device, f"{name} must be on a device")
    require(spec.layout is layout, f"{name} must be in {layout.name} layout, it is in {spec.layout}")
    require(spec.memory_config.buffer_type is BufferType.DRAM, f"{name} must be in DRAM")
    require(spec.padded_shape == spec.shape, f"{name} of shape {list(spec.shape)} must not be padded")


def _require_slot(index: int | None, slots: int) -> None:
    if index is None:
        require(slots == 1, f"cache_batch_idx must choose one of the cache's {slots} slots")
    else:
        require(0 <= index < slots, f"cache_batch_idx {index} is not one of the cache's {slots} slots")


def _require_whole_pages(widths: dict[str, int]) -> None:
    alignment = current_board().dram_alignment
    for name, size in widths.items():
        require(size % alignment == 0, f"rows of {name} take {size} bytes, not a multiple of {alignment}")


def _mesh() -> tuple[int, ...]:
    device = current_device()
    return (1, 1) if device is None else tuple(device.shape)


def require_one_chip() -> None:
    """Refuse meshes, where positions continue from chip to chip: no Blackhole board of several chips is emulated."""
    if math.prod(_mesh()) > 1:
        raise NotEmulated("sparse attention to sequences that are spread over several chips is not emulated")


def stripes_of(axis: int | None, chunk: int | None, queries: int) -> int | None:
    """The number of chips of a block-cyclic cache. On one chip, the rows are in natural order."""
    paired = (axis is None) == (chunk is None)
    require(paired, "block_cyclic_sp_axis and block_cyclic_chunk_local must both be set or both unset")
    if axis is None or chunk is None:
        return None
    mesh = _mesh()
    require(0 <= axis < len(mesh), f"block_cyclic_sp_axis {axis} is no axis of a mesh of shape {list(mesh)}")
    require_one_chip()
    rest = math.prod(mesh) // mesh[axis]
    fits = chunk in (queries, queries * rest)
    require(fits, f"block_cyclic_chunk_local {chunk} must be {queries} or {queries * rest}, by the queries")
    return mesh[axis]


def require_striped(stripes: int | None, sharded: bool) -> None:
    given = stripes is not None or not sharded
    require(given, "block_cyclic_cache_tp_sharded needs block_cyclic_sp_axis and block_cyclic_chunk_local")


def _require_striping(stripes: int, chunk: int, length: int, block: int = 1) -> None:
    require(chunk > 0, "block_cyclic_chunk_local must be positive")
    require(length % stripes == 0, f"{length} keys cannot be striped over {stripes} chips")
    require(
        length // stripes % chunk == 0, f"a chip's {length // stripes} keys are not a multiple of chunks of {chunk}"
    )
    require(chunk % block == 0, f"block_cyclic_chunk_local {chunk} is not a multiple of block_size {block}")


def _kernel(given: Any, scale: float | None, depth: int, rows: int, chunk: int, width: int) -> Prefill:
    config = math_config(given, fidelity=MathFidelity.HiFi2)
    return Prefill(
        config,
        scale_or_default(scale, depth),
        DataType.BFLOAT16,
        rows // TILE_SIZE,
        chunk // TILE_SIZE,
        width // TILE_SIZE,
        exp_approx=config.approx,
    )


def _hashed(cache: Spec, stripes: int | None) -> tuple:
    """The part of a cache's spec in the program hash: its shape only if page addresses depend on it."""
    shape = cache.shape if cache.is_sharded or stripes is not None else None
    return cache.dtype, cache.memory_config, shape


def _state_bytes(kernel: Prefill) -> int:
    """Bytes of scores, maxima, sums, the correction, and four value matrices for accumulation and output."""
    rows = kernel.q_chunk
    return NARROW_TILE * (rows * kernel.k_chunk + 5 * rows + 4 * rows * kernel.width)


def prefixes(indices: torch.Tensor) -> torch.Tensor:
    """The number of valid indices per row: up to the first sentinel, found by binary search.

    As in the kernel, the search differs from a scan if sentinels are not all at the end.
    """
    rows, size = indices.shape
    low, high = torch.zeros(rows, dtype=torch.int64), torch.full((rows,), size)
    while bool((low < high).any()):
        middle = (low + high) >> 1
        empty = indices.gather(1, middle.clamp(max=size - 1).unsqueeze(1)).squeeze(1) == NOTHING
        searching = low < high
        high = torch.where(searching & empty, middle, high)
        low = torch.where(searching & ~empty, middle + 1, low)
    return low.clamp(min=1)


def _require_found(indices: torch.Tensor, taken: torch.Tensor, limit: int, what: str) -> None:
    beyond = (indices >= limit) & (torch.arange(indices.shape[1]) < taken.unsqueeze(1))
    if bool(beyond.any()):
        row = int(beyond.any(1).nonzero()[0])
        number = int(indices[row][beyond[row]][0])
        raise ChipFault(f"the card reads beyond the cache: {what} {number} of {limit}, in row {row} of the indices")


# -- keys -------------------------------------------------------------------------------------------------------------


@operation("ttnn.transformer.sparse_sdpa")
def sparse_sdpa(
    q: Spec,
    kv: Spec,
    indices: Spec,
    v_dim: int,
    *,
    kv_format: Any,
    scale: float | None = None,
    k_chunk_size: int = 128,
    compute_kernel_config: Any = None,
    cache_batch_idx: int | None = None,
    block_cyclic_sp_axis: int | None = None,
    block_cyclic_chunk_local: int | None = None,
    block_cyclic_cache_tp_sharded: bool = False,
    attention_sink: Spec | None = None,
) -> Plan:
    """Latent attention: every token attends to the rows of `kv` that its row of `indices` names.

    Rows of `kv` are keys; their first `v_dim` columns are the values.
    """
    require(q.rank == 4 and q.shape[0] == 1, f"q must be [1, heads, tokens, width], not {list(q.shape)}")
    _, heads, tokens, depth = q.shape
    stripes = stripes_of(block_cyclic_sp_axis, block_cyclic_chunk_local, tokens)
    require_striped(stripes, block_cyclic_cache_tp_sharded)
    require_blackhole()
    require(q.dtype is DataType.BFLOAT16, f"q must be BFLOAT16, not {q.dtype}")
    require(kv.dtype is DataType.BFLOAT16, f"kv must be BFLOAT16, not {kv.dtype}")
    stored_so = kv_format is ALL_ENUMS["SparseKVFormat"].BF16
    require(stored_so, f"kv_format {kv_format.name} requires fp8_e4m3 storage, kv is of {kv.dtype}")
    require(indices.dtype is DataType.UINT32, f"indices must be UINT32, not {indices.dtype}")
    require(heads and heads % TILE_SIZE == 0, f"{heads} heads are not a multiple of {TILE_SIZE}")
    require(0 < v_dim <= depth, f"v_dim must be in 1 … {depth}, the width of q, it is {v_dim}")
    require(v_dim % TILE_SIZE == 0, f"v_dim {v_dim} is not a multiple of {TILE_SIZE}")
    require(depth % TILE_SIZE == 0, f"the width {depth} of q is not a multiple of {TILE_SIZE}")
    _require_rows(q, "q")
    _require_rows(indices, "indices")
    _require_cache(kv, "kv", Layout.ROW_MAJOR)
    wanted = kv.rank == 4 and kv.shape[1] == 1 and kv.shape[3] == depth
    require(wanted, f"kv must be [slots, 1, keys, {depth}], not {list(kv.shape)}")
    keys = kv.shape[2]
    require(keys > 0, "kv must hold keys")
    _require_slot(cache_batch_idx, kv.shape[0])
    if attention_sink is not None:
        _require_rows(attention_sink, "attention_sink")
        sink = attention_sink
        require(sink.dtype is DataType.BFLOAT16, f"attention_sink must be BFLOAT16, not {sink.dtype}")
        require(sink.shape == (1, 1, 1, heads), f"attention_sink must be [1, 1, 1, {heads}], not {list(sink.shape)}")
    if stripes is not None and block_cyclic_chunk_local is not None:
        _require_striping(stripes, block_cyclic_chunk_local, keys)
    fits = indices.rank == 4 and indices.shape[:3] == (1, 1, tokens)
    require(fits, f"indices must be [1, 1, {tokens}, choices], not {list(indices.shape)}")
    choices = indices.shape[3]
    require(tokens > 0 and choices > 0, f"there must be tokens and choices, not {tokens} and {choices}")
    chunk = k_chunk_size
    require(chunk > 0 and chunk % TILE_SIZE == 0, f"k_chunk_size {chunk} is not a multiple of {TILE_SIZE}")
    require(choices % chunk == 0, f"{choices} choices are not a multiple of k_chunk_size {chunk}")
    kernel = _kernel(compute_kernel_config, scale, depth, heads, chunk, v_dim)
    require(kernel.scale > 0, f"the scale must be positive, not {scale}")
    _require_whole_pages({"q": 2 * depth, "indices": 4 * choices, "the output": 2 * v_dim})
    l1_bytes = 4 * heads * depth + 4 * chunk * depth  # rows and tiles of queries, rows and tiles of keys
    l1_bytes += _state_bytes(kernel) + 5 * NARROW_TILE  # two masks, scaler, column of ones, reciprocals
    l1_bytes += 4 * choices + 2 * (MESSAGE + 2 * MESSAGE + MESSAGE)  # control, request of five words, acknowledgement
    if attention_sink is not None:
        l1_bytes += heads // TILE_SIZE * NARROW_TILE + round_up(2 * heads, current_board().dram_alignment)
    slot = cache_batch_idx or 0
    # The slot is a runtime argument, and so is the cache length if pages do not depend on it.
    options = (cache_batch_idx is None, stripes, block_cyclic_chunk_local, attention_sink is None)
    program = ("sparse_sdpa", kernel, q.shape, _hashed(kv, stripes), indices.shape, options)

    def compute(query: torch.Tensor, cache: torch.Tensor, chosen: torch.Tensor, *sinks: torch.Tensor) -> torch.Tensor:
        rows = chosen[0, 0]
        taken = prefixes(rows)
        _require_found(rows, taken, keys, "key")
        absent = torch.arange(choices) >= taken.unsqueeze(1)
        stored = cache[slot, 0]

        def gather(start: int, end: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
            hidden = absent[start:end]
            key = stored[rows[start:end].masked_fill(hidden, 0)].masked_fill(hidden.unsqueeze(-1), 0.0)
            return key, key[..., :v_dim], hidden

        active = (taken + chunk - 1) // chunk
        made = attend_chosen(kernel, query[0].transpose(0, 1), gather, active, *(each.flatten() for each in sinks))
        return made.transpose(0, 1).unsqueeze(0)

    out = Spec.of((1, heads, tokens, v_dim), q.dtype, Layout.ROW_MAJOR, DRAM_MEMORY_CONFIG)
    reads = ("q", "kv", "indices") + (() if attention_sink is None else ("attention_sink",))
    return Plan(out, compute, reads=reads, l1_bytes=l1_bytes, program=program)


# -- blocks of keys ---------------------------------------------------------------------------------------------------


@operation("ttnn.transformer.sparse_sdpa_msa")
def sparse_sdpa_msa(
    q: Spec,
    k: Spec,
    v: Spec,
    indices: Spec,
    *,
    scale: float | None = None,
    block_size: int = 128,
    compute_kernel_config: Any = None,
    cache_batch_idx: int | None = None,
    chunk_start_idx: int | None = None,
    cluster_axis: int | None = None,
    block_cyclic_sp_axis: int | None = None,
    block_cyclic_chunk_local: int | None = None,
    enable_kv_block_cache: bool = False,
) -> Plan:
    """Every token attends to the blocks of keys that its row of `indices` names, one row for each group of heads.

    With `chunk_start_idx`, the position of the first token, attention is causal within a token's own block.
    """
    require(q.rank == 4 and q.shape[0] == 1, f"q must be [1, heads, tokens, width], not {list(q.shape)}")
    _, heads, tokens, depth = q.shape
    stripes = stripes_of(block_cyclic_sp_axis, block_cyclic_chunk_local, tokens)
    require_blackhole()
    require(q.dtype is DataType.BFLOAT16, f"q must be BFLOAT16, not {q.dtype}")
    for name, spec in (("k", k), ("v", v)):
        kind = spec.dtype in (DataType.BFLOAT16, DataType.BFLOAT8_B)
        require(kind, f"{name} must be BFLOAT16 or BFLOAT8_B, not {spec.dtype}")
        _require_cache(spec, name, Layout.TILE)
    require(indices.dtype is DataType.UINT32, f"indices must be UINT32, not {indices.dtype}")
    _require_rows(q, "q")
    _require_rows(indices, "indices")
    require(k.rank == 4 and k.shape[3] == depth, f"k must be [slots, groups, keys, {depth}], not {list(k.shape)}")
    same = v.rank == 4 and v.shape[:3] == k.shape[:3]
    require(same, f"v of shape {list(v.shape)} must have the slots, groups and keys of k, {list(k.shape[:3])}")
    slots, groups, keys, _ = k.shape
    width = v.shape[3]
    require(width > 0 and groups > 0 and keys > 0, f"k and v must hold keys, not {list(k.shape)}")
    require(heads % groups == 0, f"{heads} heads cannot be shared by {groups} groups")
    each = heads // groups
    full = each == TILE_SIZE // 2 or (each > 0 and each % TILE_SIZE == 0)
    require(full, f"a group must have 16 heads or a multiple of {TILE_SIZE}, not {each}")
    fits = indices.rank == 4 and indices.shape[:3] == (1, groups, tokens)
    require(fits, f"indices must be [1, {groups}, {tokens}, choices], not {list(indices.shape)}")
    choices = indices.shape[3]
    require(tokens > 0 and choices > 0, f"there must be tokens and choices, not {tokens} and {choices}")
    whole = block_size > 0 and keys % block_size == 0
    require(whole, f"block_size must divide T, the {keys} keys; it is {block_size}")
    require(block_size % TILE_SIZE == 0, f"block_size {block_size} is not a multiple of {TILE_SIZE}")
    _require_slot(cache_batch_idx, slots)
    rows = round_up(each, TILE_SIZE)
    kernel = _kernel(compute_kernel_config, scale, depth, rows, block_size, width)
    require(kernel.scale > 0, f"the scale must be positive, not {scale}")
    _require_whole_pages({"q": 2 * depth, "indices": 4 * choices, "the output": 2 * width})
    if stripes is not None and block_cyclic_chunk_local is not None:
        _require_striping(stripes, block_cyclic_chunk_local, keys, block_size)
    if chunk_start_idx is not None:
        _require_start(chunk_start_idx, cluster_axis, block_cyclic_sp_axis)
    block_bytes = _block_bytes((k, v), block_size)
    l1_bytes = 4 * rows * depth + _state_bytes(kernel) + 3 * NARROW_TILE + 4 * choices + 6 * MESSAGE
    l1_bytes += 0 if chunk_start_idx is None else 3 * NARROW_TILE  # a masked tile and two with a boundary
    kept = _slots(enable_kv_block_cache, l1_bytes, block_bytes, choices)
    l1_bytes += block_bytes if kept == 0 else kept * block_bytes + 2 * MESSAGE
    slot, blocks = cache_batch_idx or 0, keys // block_size
    within_block = torch.arange(block_size)
    options = (cache_batch_idx is None, chunk_start_idx is None, stripes, block_cyclic_chunk_local, kept)
    program = ("sparse_sdpa_msa", kernel, q.shape, _hashed(k, stripes), _hashed(v, stripes), indices.shape, options)

    def compute(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, chosen: torch.Tensor) -> torch.Tensor:
        made = torch.empty(heads, tokens, width)
        for group in range(groups):
            numbers = chosen[0, group]
            taken = prefixes(numbers)
            _require_found(numbers, taken, blocks, "block")
            numbers = numbers.clamp(max=blocks - 1)
            hidden = _later(numbers, taken, chunk_start_idx, block_size, within_block)
            caches = [each[slot, group].unflatten(0, (blocks, block_size)) for each in (key, value)]

            def gather(
                start: int,
                end: int,
                numbers: torch.Tensor = numbers,
                caches: Sequence[torch.Tensor] = caches,
                hidden: torch.Tensor = hidden,
            ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
                found = [cache[numbers[start:end]].flatten(1, 2) for cache in caches]
                return found[0], found[1], hidden[start:end]

            these = slice(group * each, (group + 1) * each)
            made[these] = attend_chosen(kernel, query[0, these].transpose(0, 1), gather, taken).transpose(0, 1)
        return made.unsqueeze(0)

    out = Spec.of((1, heads, tokens, width), q.dtype, Layout.ROW_MAJOR, DRAM_MEMORY_CONFIG)
    return Plan(out, compute, reads=("q", "k", "v", "indices"), l1_bytes=l1_bytes, program=program)


def _require_start(start: int, cluster_axis: int | None, striped_axis: int | None) -> None:
    require(start >= 0, f"chunk_start_idx must not be negative, it is {start}")
    require_one_chip()
    mesh = _mesh()
    inside = cluster_axis is None or 0 <= cluster_axis < len(mesh)
    require(inside, f"cluster_axis {cluster_axis} is no axis of a mesh of shape {list(mesh)}")
    if striped_axis is not None:
        require(start % TILE_SIZE == 0, f"chunk_start_idx {start} must be a multiple of {TILE_SIZE} in a striped cache")
        same = cluster_axis in (None, striped_axis)
        require(same, f"cluster_axis {cluster_axis} must be block_cyclic_sp_axis {striped_axis}")


def _block_bytes(caches: Sequence[Spec], block: int) -> int:
    """Bytes of one key block and one value block."""
    rows = block // TILE_SIZE
    return sum(rows * (spec.shape[3] // TILE_SIZE) * tile_bytes(DEFAULT_TILE, spec.dtype) for spec in caches)


def _slots(wanted: bool, others: int, block_bytes: int, choices: int) -> int:
    """The number of blocks that a core caches; 0 if a token's selection does not fit."""
    if not wanted:
        return 0
    fit = min((free_l1() - others - 2 * MESSAGE) // block_bytes, MOST_SLOTS)
    return fit if fit >= max(LEAST_SLOTS, choices) else 0


def _later(
    numbers: torch.Tensor, taken: torch.Tensor, start: int | None, block: int, within_block: torch.Tensor
) -> torch.Tensor:
    """Masked keys: those of no block, and those after a token in the first copy of its own block."""
    tokens, choices = numbers.shape
    absent = torch.arange(choices) >= taken.unsqueeze(1)
    hidden = absent.unsqueeze(-1).expand(tokens, choices, block)
    if start is not None:
        position = torch.arange(tokens) + start
        own = (numbers == (position // block).unsqueeze(1)) & ~absent
        own = own & (own.cumsum(1) == 1)
        hidden = hidden | (own.unsqueeze(-1) & (within_block > (position % block).reshape(-1, 1, 1)))
    return hidden.flatten(1)
