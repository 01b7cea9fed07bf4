"""Checks of the operands, masks, page tables and windows of attention operations."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ttnn_emulator.enums import BufferType, DataType, Layout
from ttnn_emulator.errors import require
from ttnn_emulator.execution.call_context import current_board
from ttnn_emulator.tensors.shapes import div_up
from ttnn_emulator.tensors.spec import Spec

TILE = 32
FLOATS = (DataType.BFLOAT16, DataType.BFLOAT8_B, DataType.BFLOAT4_B)
INDICES = (DataType.INT32, DataType.UINT32)
MOST_WINDOWS = TILE * TILE  # boundaries that fit into one tile


def require_rank_4(spec: Spec, name: str) -> None:
    require(spec.rank == 4, f"{name} must have rank 4, its shape is {list(spec.shape)}")


def require_operands(operands: dict[str, Spec]) -> None:
    for name, spec in operands.items():
        require(spec.on_device, f"{name} must be on a device")
        require(spec.is_tile, f"{name} must be in TILE layout, it is in {spec.layout}")
        require(spec.dtype in FLOATS, f"{name} must be BFLOAT16, BFLOAT8_B or BFLOAT4_B, not {spec.dtype}")
        require(not spec.is_sharded, f"{name} must be interleaved")
        require_rank_4(spec, name)


def require_only_lengths_padded(operands: dict[str, Spec]) -> None:
    for name, spec in operands.items():
        for dim in (0, 1, 3):
            require(
                spec.shape[dim] == spec.padded_shape[dim],
                f"{name} of shape {list(spec.shape)} may be padded along dimension 2 only",
            )


def require_heads(queries: int, keys: int) -> None:
    require(keys and queries >= keys and queries % keys == 0, f"{keys} heads of keys cannot serve {queries} of queries")


def require_chunk_sizes(program: Any) -> None:
    if program is None:
        return
    for name in ("q_chunk_size", "k_chunk_size"):
        size = getattr(program, name)
        require(size > 0 and size % TILE == 0, f"{name} must be a positive multiple of {TILE}, it is {size}")


def require_grid(program: Any) -> int:
    """The number of cores available to the program."""
    grid = current_board().grid
    if program is None:
        return grid[0] * grid[1]
    asked = program.compute_with_storage_grid_size
    cores = asked.x * asked.y
    require(0 < cores <= grid[0] * grid[1], f"a grid of {cores} cores is not on this board of {grid[0] * grid[1]}")
    return cores


def require_shapes(q: Spec, k: Spec, v: Spec, causal: bool, mla_width: int | None) -> None:
    """Whole sequences: equal batches, equal key and value lengths, equal widths."""
    batch, heads, length, width = q.shape
    require(not causal or length == k.shape[2], f"causal attention of {length} queries to {k.shape[2]} keys")
    if mla_width is not None:
        require(mla_width <= min(width, k.shape[3]), f"values of width {mla_width} are wider than queries or keys")
    else:
        require(k.shape[0] == v.shape[0] == batch, f"batches {batch}, {k.shape[0]} and {v.shape[0]} differ")
        require(k.shape[1] == v.shape[1], f"keys have {k.shape[1]} heads, values {v.shape[1]}")
        require(k.shape[2] == v.shape[2], f"there are {k.shape[2]} keys and {v.shape[2]} values")
        require(k.shape[3] == v.shape[3] == width, f"widths {width}, {k.shape[3]} and {v.shape[3]} differ")
    require_heads(heads, k.shape[1])


def require_mask(mask: Spec, q: Spec, k: Spec, causal: bool, window: int) -> None:
    require(not causal, "a mask and is_causal exclude each other")
    require(not window, "a mask and sliding_window_size exclude each other")
    require(mask.on_device, "the mask must be on a device")
    require(mask.is_tile, f"the mask must be in TILE layout, it is in {mask.layout}")
    require(mask.dtype in FLOATS, f"the mask must be BFLOAT16, BFLOAT8_B or BFLOAT4_B, not {mask.dtype}")
    require(mask.memory_config.buffer_type is BufferType.DRAM, "the mask must be in DRAM")
    require_rank_4(mask, "the mask")
    wanted = (q.shape[0], q.shape[1], q.shape[2], k.shape[2])
    fits = all(size in (1, want) for size, want in zip(mask.shape[:2], wanted)) and mask.shape[2:] == wanted[2:]
    require(fits, f"the mask of shape {list(mask.shape)} does not fit scores of shape {list(wanted)}")


def require_block_map(blocks: Spec, mask: Spec | None, q: Spec, k: Spec, program: Any) -> None:
    require(mask is not None, "attn_mask_block_map needs an attn_mask")
    assert mask is not None
    require(program is not None, "attn_mask_block_map needs a program_config with the chunk sizes")
    require(blocks.on_device, "attn_mask_block_map must be on a device")
    kind = blocks.layout is Layout.ROW_MAJOR and blocks.dtype in INDICES
    require(kind, f"attn_mask_block_map must be INT32 or UINT32 in ROW_MAJOR layout, not {blocks.dtype}")
    counts = (div_up(q.shape[2], program.q_chunk_size), div_up(k.shape[2], program.k_chunk_size))
    wanted = (*mask.shape[:2], *counts)
    require(blocks.shape == wanted, f"attn_mask_block_map must be {list(wanted)}, not {list(blocks.shape)}")


def require_sink(sink: Spec, heads: int) -> None:
    require(sink.on_device, "the attention sink must be on a device")
    require(sink.is_tile, f"the attention sink must be in TILE layout, it is in {sink.layout}")
    require(sink.dtype in FLOATS, f"the attention sink must be BFLOAT16, BFLOAT8_B or BFLOAT4_B, not {sink.dtype}")
    require(sink.memory_config.buffer_type is BufferType.DRAM, "the attention sink must be in DRAM")
    require(sink.shape == (1, heads, 1, 1), f"the attention sink must be [1, {heads}, 1, 1], not {list(sink.shape)}")


def require_windows(windows: Spec, *, mask: Spec | None, window: int, sink: Spec | None) -> None:
    require(mask is None, "cu_window_seqlens and attn_mask exclude each other")
    require(not window, "cu_window_seqlens and sliding_window_size exclude each other")
    require(sink is None, "cu_window_seqlens and attention_sink exclude each other")
    require(windows.on_device, "cu_window_seqlens must be on a device")
    require(windows.dtype in INDICES, f"cu_window_seqlens must be INT32 or UINT32, not {windows.dtype}")
    require(windows.layout is Layout.ROW_MAJOR, "cu_window_seqlens must be in ROW_MAJOR layout")
    require(windows.rank == 1, f"cu_window_seqlens must have rank 1, not {windows.rank}")
    count = windows.shape[0]
    require(2 <= count <= MOST_WINDOWS, f"cu_window_seqlens must have 2 to {MOST_WINDOWS} elements, not {count}")


def require_window_offset(offset: int, given: Spec | None, q: Spec, k: Spec) -> None:
    """A tensor with the offset takes precedence over a number."""
    if given is not None:
        require(given.on_device, "windowed_q_token_offset_tensor must be on a device")
        require(given.dtype in INDICES, f"windowed_q_token_offset_tensor must be INT32 or UINT32, not {given.dtype}")
        require(given.layout is Layout.ROW_MAJOR, "windowed_q_token_offset_tensor must be in ROW_MAJOR layout")
        require(given.volume == 1, f"windowed_q_token_offset_tensor must hold one number, not {given.volume}")
        return
    require(offset % TILE == 0, f"windowed_q_token_offset must be a multiple of {TILE}, it is {offset}")
    end = offset + q.shape[2]
    require(end <= k.shape[2], f"queries up to position {end} do not fit into {k.shape[2]} keys")


def require_page_table(table: Spec, batch: int) -> None:
    require(table.on_device, "the page table must be on a device")
    require(table.layout is Layout.ROW_MAJOR, "the page table must be in ROW_MAJOR layout")
    require(table.dtype is DataType.INT32, f"the page table must be INT32, not {table.dtype}")
    require(table.rank >= 2, f"the page table must have rank 2, its shape is {list(table.shape)}")
    require(table.shape[0] == batch, f"the page table has {table.shape[0]} rows for a batch of {batch}")


def require_same_geometry(geometry: Any, k: Spec, v: Spec, width: int) -> None:
    """A cache viewed with other heads and blocks: equal elements per block, whole tiles."""
    require(geometry.block_size > 0, "block_size must be > 0 in a cache geometry")
    require(geometry.num_kv_heads > 0, "num_kv_heads of the cache geometry must be positive")
    require(k.shape[3] == v.shape[3], f"keys are {k.shape[3]} wide, values {v.shape[3]}")
    require(k.shape[1] == v.shape[1], f"keys have {k.shape[1]} heads, values {v.shape[1]}")
    stored = k.padded_shape[1] * k.padded_shape[2] * k.padded_shape[3]
    seen = geometry.num_kv_heads * geometry.block_size * width
    require(seen == stored, f"geometry mismatch: a block of the cache has {stored} elements, the geometry sees {seen}")
    require(geometry.block_size % TILE == 0, f"block_size {geometry.block_size} is not a multiple of {TILE}")
    require(width % TILE == 0, f"queries of width {width} are not whole tiles")


def is_active(geometry: Any) -> bool:
    return geometry is not None and bool(geometry.block_size or geometry.num_kv_heads)


def unsigned(value: int | None, name: str) -> int:
    """An optional unsigned count, as the library's signature accepts it."""
    require(value is None or value >= 0, f"{name} must not be negative, it is {value}")
    return value or 0


def given_names(parameters: Iterable[tuple[str, Any]]) -> tuple[str, ...]:
    """Names of the tensors that are present, for a plan's `reads`."""
    return tuple(name for name, value in parameters if value is not None)
