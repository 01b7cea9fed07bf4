"""Routing of prompt tokens to experts: counts and offsets, and extracting and inserting the rows of an expert."""

from __future__ import annotations

from collections.abc import Callable

import torch

from ttnn_emulator.enums import DataType, Layout
from ttnn_emulator.errors import ChipFault, require
from ttnn_emulator.execution.operation_table import Plan, composite, internal, operation, ttnn
from ttnn_emulator.ops.prefill.mesh_positions import (
    METADATA_BYTES,
    PREFILL,
    chips_along,
    coordinates,
    number,
    on_every_chip,
    require_axis,
    require_number,
    require_unsigned,
    row_bytes,
)
from ttnn_emulator.ops.support.common_checks import require_on_device, require_tile
from ttnn_emulator.tensors.memory_config import DRAM_MEMORY_CONFIG, MemoryConfig
from ttnn_emulator.tensors.shapes import DEFAULT_TILE, TILE_SIZE, div_up, round_up
from ttnn_emulator.tensors.spec import Spec
from ttnn_emulator.tensors.tensor import Tensor

MOVED_DTYPES = (DataType.BFLOAT8_B, DataType.BFLOAT16)
# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/experimental/deepseek_prefill/extract/device/extract_program_factory.cpp,
# tile_buffering; insert has the same
TILES_BUFFERED = 32
# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/experimental/deepseek_prefill/masked_bincount/device/masked_bincount_device_operation.cpp,  # noqa: E501
# kNumCores
COUNTING_CORES = 64
FACE = 16
WRAP = 1 << 32


# -- rows of one expert -----------------------------------------------------------------------------------------------


def _require_rows(spec: Spec, name: str) -> None:
    require_on_device(spec, name)
    require(spec.dtype in MOVED_DTYPES, f"{name} is {spec.dtype}, only bfloat8_b and bfloat16 are supported")
    require_tile(spec, name)
    require(not spec.is_sharded and spec.memory_config.is_dram, f"{name} must be interleaved in DRAM")
    require(spec.rank == 2, f"{name} has rank {spec.rank}, not 2")
    require(spec.shape[0] % TILE_SIZE == 0, f"{name} has {spec.shape[0]} rows, not a multiple of {TILE_SIZE}")
    require(spec.shape[1] % TILE_SIZE == 0, f"{name} is {spec.shape[1]} wide, not a multiple of {TILE_SIZE}")


def _require_places(start: Spec, counts: Spec, table: Spec, local_expert_id: int) -> None:
    for spec, name in ((start, "start"), (counts, "counts"), (table, "global_expert_idx_table")):
        require_on_device(spec, name)
        require(spec.dtype is DataType.UINT32, f"{name} is {spec.dtype}, not uint32")
        require(spec.layout is Layout.ROW_MAJOR, f"{name} must be in ROW_MAJOR layout")
        require(not spec.is_sharded and spec.memory_config.is_dram, f"{name} must be interleaved in DRAM")
        flat = spec.rank == 1 or (spec.rank == 2 and spec.shape[0] == 1)
        require(flat, f"{name} must be one row, it is {list(spec.shape)}")
    require(start.shape[-1] == counts.shape[-1], f"start has {start.shape[-1]} entries, counts {counts.shape[-1]}")
    known = 0 <= local_expert_id < table.shape[-1]
    require(known, f"local_expert_id {local_expert_id} is not one of {table.shape[-1]}")


def _slice(start: torch.Tensor, counts: torch.Tensor, table: torch.Tensor, local: int) -> tuple[int, int]:
    """First row and number of rows of an expert, in whole tiles."""
    expert = int(table.reshape(-1)[local])
    if expert >= start.numel():
        raise ChipFault(f"expert {expert} is not one of {start.numel()}")
    first, count = int(start.reshape(-1)[expert]), int(counts.reshape(-1)[expert])
    return first // TILE_SIZE * TILE_SIZE, round_up(count, TILE_SIZE)


def _fit(first: int, count: int, room: int, name: str) -> None:
    if first + count > room:
        raise ChipFault(f"rows {first} to {first + count} are outside the {room} rows of {name}")


@operation(f"{PREFILL}.extract")
def extract(
    global_tensor: Spec,
    start: Spec,
    counts: Spec,
    global_expert_idx_table: Spec,
    *,
    local_expert_id: int,
    max_dispatched_tokens_per_expert: int,
) -> Plan:
    """The rows of one expert [most, D], extracted from those of all experts; the rows after them are not written."""
    _require_rows(global_tensor, "global_tensor")
    _require_places(start, counts, global_expert_idx_table, local_expert_id)
    most = max_dispatched_tokens_per_expert
    require(most > 0 and most % TILE_SIZE == 0, f"{most} tokens an expert are no positive multiple of {TILE_SIZE}")
    rows, width = global_tensor.shape
    out = Spec.of((most, width), global_tensor.dtype, Layout.TILE, DRAM_MEMORY_CONFIG)

    def compute(values: torch.Tensor, starts: torch.Tensor, sizes: torch.Tensor, table: torch.Tensor) -> torch.Tensor:
        first, count = _slice(starts, sizes, table, local_expert_id)
        _fit(first, count, rows, "global_tensor")
        _fit(0, count, most, "the output")
        made = values.new_zeros((most, width))
        made[:count] = values[first : first + count]
        return made

    return Plan(out, compute, l1_bytes=_moving_bytes(global_tensor, start, counts, global_expert_idx_table))


@operation(f"{PREFILL}.insert")
def insert(
    global_tensor: Spec,
    local_tensor: Spec,
    start: Spec,
    counts: Spec,
    global_expert_idx_table: Spec,
    *,
    local_expert_id: int,
) -> Plan:
    """Insert the rows of one expert into those of all experts, in place."""
    _require_rows(global_tensor, "global_tensor")
    _require_rows(local_tensor, "local_tensor")
    same = global_tensor.dtype is local_tensor.dtype
    require(same, f"global_tensor is {global_tensor.dtype}, local_tensor {local_tensor.dtype}")
    widths = global_tensor.shape[1], local_tensor.shape[1]
    require(widths[0] == widths[1], f"global_tensor is {widths[0]} wide, local_tensor {widths[1]}")
    _require_places(start, counts, global_expert_idx_table, local_expert_id)
    rows, held = global_tensor.shape[0], local_tensor.shape[0]
    require(held > 0, "local_tensor is empty")

    def compute(
        values: torch.Tensor, own: torch.Tensor, starts: torch.Tensor, sizes: torch.Tensor, table: torch.Tensor
    ) -> torch.Tensor:
        first, count = _slice(starts, sizes, table, local_expert_id)
        _fit(first, count, rows, "global_tensor")
        _fit(0, count, held, "local_tensor")
        made = values.clone()
        made[first : first + count] = own[:count]
        return made

    reads = ("global_tensor", "local_tensor", "start", "counts", "global_expert_idx_table")
    l1_bytes = _moving_bytes(global_tensor, start, counts, global_expert_idx_table)
    return Plan(global_tensor, compute, reads=reads, into=("global_tensor",), l1_bytes=l1_bytes)


def _moving_bytes(moved: Spec, start: Spec, counts: Spec, table: Spec) -> int:
    return TILES_BUFFERED * moved.page_bytes + row_bytes(start) + 2 * row_bytes(counts) + 2 * row_bytes(table)


# -- how many tokens go where -----------------------------------------------------------------------------------------


@operation(f"{PREFILL}.masked_bincount")
def masked_bincount(input_tensor: Spec, expert_mask: Spec, n_routed_experts: int, num_experts_per_token: int) -> Plan:
    """How often each expert occurs in the first columns of [tokens, k], among those that the table does not exclude."""
    require_unsigned(n_routed_experts=n_routed_experts, num_experts_per_token=num_experts_per_token)
    spec, mask, experts, columns = input_tensor, expert_mask, n_routed_experts, num_experts_per_token
    require_on_device(spec)
    require_on_device(mask, "the table")
    require(spec.dtype is DataType.UINT16, f"the input is {spec.dtype}, not uint16")
    require_tile(spec)
    require(spec.rank == 2, f"the input has rank {spec.rank}, not 2")
    require(not spec.is_sharded, "the input must be interleaved")
    tokens = spec.shape[0]
    require(tokens % COUNTING_CORES == 0, f"{tokens} tokens do not divide among {COUNTING_CORES} cores")
    require(experts > 0, "n_routed_experts must be positive")
    require(spec.tile == DEFAULT_TILE, f"the input must have tiles of {TILE_SIZE} x {TILE_SIZE}")
    require(spec.padded_shape[1] == TILE_SIZE, f"a row of {spec.shape[1]} entries does not fit into one tile")
    require(0 < columns <= spec.shape[1], f"{columns} experts a token are not among {spec.shape[1]} columns")
    require(columns <= FACE, f"{columns} experts a token are more than the {FACE} columns of a face")
    require(mask.dtype is DataType.INT32, f"the table is {mask.dtype}, not int32")
    require(mask.layout is Layout.ROW_MAJOR, "the table must be in ROW_MAJOR layout")
    flat = mask.rank == 1 or (mask.rank == 2 and mask.shape[0] == 1)
    require(flat and mask.padded_shape[-1] >= experts, f"the table {list(mask.shape)} is no row of {experts} entries")
    out = Spec.of((experts,), DataType.UINT32, Layout.ROW_MAJOR, DRAM_MEMORY_CONFIG)

    def compute(values: torch.Tensor, table: torch.Tensor) -> torch.Tensor:
        chosen = values[:, :columns].reshape(-1)
        counts = torch.bincount(chosen[chosen < experts].long(), minlength=experts)
        return torch.where(table.reshape(-1)[:experts] >= 0, counts, 0)

    share = tokens // COUNTING_CORES
    tiles = sum(div_up(rows, TILE_SIZE) + 1 for rows in (div_up(share, 2), share // 2))
    l1_bytes = tiles * spec.page_bytes + 2 * row_bytes(out) + row_bytes(mask)
    return Plan(out, compute, l1_bytes=l1_bytes)


@composite(f"{PREFILL}.offset_cumsum")
def offset_cumsum(
    input_tensor: Tensor,
    cluster_axis: int,
    num_links: int,
    experts_per_chip: int,
    memory_config: MemoryConfig,
    use_l1_small_for_semaphores: bool = False,
) -> list[Tensor]:
    """Where the tokens of every chip begin among those of their experts; needs several chips along the axis."""
    require_unsigned(cluster_axis=cluster_axis, num_links=num_links, experts_per_chip=experts_per_chip)
    row = first_row(input_tensor)
    gathered = ttnn.all_gather(row, 0, cluster_axis=cluster_axis, memory_config=memory_config)
    return counted(ttnn.to_layout(gathered, Layout.ROW_MAJOR), cluster_axis, experts_per_chip)


@internal("ttnn::reshape_view")
def first_row(input_tensor: Spec) -> Plan:
    """One row [1, W] of any tensor, as the library's view of the same pages sees it."""
    require_on_device(input_tensor)
    width = input_tensor.shape[-1]
    out = input_tensor.with_(shape=(1, width))
    return Plan(out, lambda values: values.reshape(-1, width)[:1].clone())


@internal("ttnn::prim::offset_cumsum")
def counted(input_tensor: Spec, cluster_axis: int, experts_per_chip: int) -> Plan:
    """Of counts [chips, experts]: offsets of this chip, totals, where experts begin, and offsets of all chips."""
    spec = input_tensor
    require(spec.dtype is DataType.UINT32, f"the input is {spec.dtype}, not uint32")
    require(spec.layout is Layout.ROW_MAJOR, "the input must be in ROW_MAJOR layout")
    chips, experts = spec.shape
    require(chips > 0 and experts > 0, "the input is empty")
    divides = experts_per_chip > 0 and experts % experts_per_chip == 0
    require(divides, f"{experts} experts do not divide into groups of {experts_per_chip}")
    row = Spec.of((1, experts), DataType.UINT32, Layout.ROW_MAJOR, DRAM_MEMORY_CONFIG)
    rows = Spec.of((chips, experts), DataType.UINT32, Layout.ROW_MAJOR, DRAM_MEMORY_CONFIG)
    places = coordinates(cluster_axis)

    def compute(carriers: list[torch.Tensor]) -> list[list[torch.Tensor]]:
        results = [_offsets(counts, chip, experts_per_chip) for counts, chip in zip(carriers, places)]
        return [list(column) for column in zip(*results)]

    return Plan([row, row, row, rows], compute, across=True)


def _offsets(counts: torch.Tensor, chip: int, experts_per_chip: int) -> tuple[torch.Tensor, ...]:
    totals = counts.sum(0, keepdim=True) % WRAP
    aligned = ((totals + TILE_SIZE - 1) % WRAP // TILE_SIZE * TILE_SIZE).reshape(-1, experts_per_chip)
    regions = ((aligned.cumsum(1) - aligned) % WRAP).reshape(1, -1)
    before = counts.cumsum(0) - counts
    rows = (regions + before) % WRAP
    return rows[chip : chip + 1].clone(), totals, regions, rows


# -- tokens that are no padding ---------------------------------------------------------------------------------------


@operation(f"{PREFILL}.moe_padding_config")
def moe_padding_config(
    config: Spec, actual_start: Spec, actual_end: Spec, tokens_per_chip: int, pad_side: int, cluster_axis: int
) -> Plan:
    """How many of a chip's tokens are real, and on which side the others stand: the first row of `config`, in place."""
    require_unsigned(tokens_per_chip=tokens_per_chip, pad_side=pad_side, cluster_axis=cluster_axis)
    require_axis(cluster_axis)
    require(tokens_per_chip > 0, "tokens_per_chip must be positive")
    require(pad_side in (0, 1), f"pad_side must be 0 or 1, not {pad_side}")
    require_on_device(config, "config")
    require(config.dtype is DataType.UINT32, f"config is {config.dtype}, not uint32")
    require(config.layout is Layout.ROW_MAJOR, "config must be in ROW_MAJOR layout")
    require(config.shape[-1] >= 2, f"config is {config.shape[-1]} wide, it must hold two numbers")
    require(not config.is_sharded, "config must not be sharded")
    for spec, name in ((actual_start, "actual_start"), (actual_end, "actual_end")):
        require_number(spec, name)
    same = actual_start.memory_config == actual_end.memory_config
    require(same, "actual_start and actual_end must be in the same kind of memory")
    chips = chips_along(cluster_axis)

    def on(chip: int) -> Callable[..., torch.Tensor]:
        def compute(held: torch.Tensor, start: torch.Tensor, end: torch.Tensor) -> torch.Tensor:
            made = held.clone()
            row = made.reshape(-1, made.shape[-1])[0]
            row.zero_()
            row[0] = _real_tokens(number(start), number(end), chip, chips, tokens_per_chip)
            row[1] = pad_side
            return made

        return compute

    compute, across = on_every_chip([on(chip) for chip in coordinates(cluster_axis)])
    program = (PREFILL, "padding", config, tokens_per_chip, pad_side, cluster_axis)
    return Plan(
        config,
        compute,
        reads=("config", "actual_start", "actual_end"),
        into=("config",),
        across=across,
        program=program,
        l1_bytes=row_bytes(config) + METADATA_BYTES,
    )


# tt-metal v0.81.1: ttnn/cpp/ttnn/operations/experimental/deepseek_prefill/moe_padding_config/device/kernels/dataflow/writer_moe_padding_config.cpp,  # noqa: E501
# the count of real tokens
def _real_tokens(start: int, end: int, chip: int, chips: int, tokens: int) -> int:
    """How many of a chip's rows from `start` on are before `end`."""
    chunk = chips * tokens
    slab, boundary, rest = start // chunk, start // tokens % chips, start % tokens

    def before_end(first: int, count: int) -> int:
        return min(max(end - first % WRAP, 0), count)

    if chip != boundary:
        return before_end((slab + (chip < boundary)) * chunk + chip * tokens, tokens)
    first = slab * chunk + chip * tokens
    return before_end(first + rest, tokens - rest) + before_end(first + chunk, rest)
