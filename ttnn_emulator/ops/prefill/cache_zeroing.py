"""Zeroes the rows after the last one of a prompt, up to the next boundary, in a key-value cache."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ttnn_emulator.enums import BLOCK_FLOAT_DTYPES, FLOAT_DTYPES, BufferType, DataType, MathFidelity
from ttnn_emulator.errors import ChipFault, require
from ttnn_emulator.execution.operation_table import Plan, operation
from ttnn_emulator.numerics.units.compute_core import Core
from ttnn_emulator.numerics.units.matrix_unit import MathConfig
from ttnn_emulator.ops.attention.heads.common import faulty, grown
from ttnn_emulator.ops.prefill.mesh_positions import (
    METADATA_BYTES,
    PREFILL,
    chips_along,
    coordinates,
    number,
    on_every_chip,
    require_axis,
    require_numbers,
    require_slots,
    require_unsigned,
    row_bytes,
    rows_are_cut,
    slot_of,
)
from ttnn_emulator.ops.support.common_checks import require_on_device
from ttnn_emulator.tensors.shapes import DEFAULT_TILE, TILE_SIZE, round_up
from ttnn_emulator.tensors.spec import Spec

# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/experimental/deepseek_prefill/zero_padded_kv_cache/device/zero_padded_kv_cache_device_operation.cpp,  # noqa: E501
# ComputeConfigDescriptor
MASKING = MathConfig(MathFidelity.HiFi4)
ROW_MAJOR_ZEROED = (DataType.BFLOAT16, DataType.FP8_E4M3)


@operation(f"{PREFILL}.zero_padded_kv_cache")
def zero_padded_kv_cache(
    cache: Spec,
    slot_idx: int | Spec,
    layer_idx: int,
    num_layers: int,
    valid_global: int | Spec,
    chunk_size_global: int,
    cluster_axis: int,
    pad_align: int = 128,
) -> Plan:
    """Rows from `valid_global` up to the next multiple of `pad_align` become zero, in place."""
    require_unsigned(slot_idx=slot_idx, layer_idx=layer_idx, num_layers=num_layers, valid_global=valid_global)
    require_unsigned(chunk_size_global=chunk_size_global, cluster_axis=cluster_axis, pad_align=pad_align)
    require_on_device(cache, "the cache")
    require(cache.memory_config.buffer_type is BufferType.DRAM, "the cache must be in DRAM")
    in_tensors = isinstance(slot_idx, Spec)
    if not cache.is_tile:
        known = cache.dtype in ROW_MAJOR_ZEROED
        require(known, f"in ROW_MAJOR layout {cache.dtype} is not supported")
        require(not in_tensors, "in ROW_MAJOR layout slot_idx and valid_global must be numbers, not tensors")
    require(not cache.is_tile or cache.tile == DEFAULT_TILE, f"tiles must be {TILE_SIZE} x {TILE_SIZE}")
    require(cache.rank == 4, f"the cache has rank {cache.rank}, not 4")
    require(cache.shape[1] == 1, f"the cache must hold one head, not {cache.shape[1]}")
    slots = require_slots(cache, num_layers, layer_idx)
    require_axis(cluster_axis)
    if isinstance(slot_idx, Spec):
        assert isinstance(valid_global, Spec)
        require_numbers({"slot_idx": slot_idx, "valid_global": valid_global})
    else:
        require(slot_idx < slots, f"slot {slot_idx} is not one of {slots}")
    chips = chips_along(cluster_axis)
    chunk = _require_window(cache, chunk_size_global, chips, pad_align)
    room = chips * cache.padded_shape[-2]
    if isinstance(valid_global, int):
        require(valid_global <= room, f"valid_global {valid_global} exceeds a cache of {room} rows")
    zeroed = _zeroed(cache)

    def on(chip: int) -> Callable[..., torch.Tensor]:
        def compute(held: torch.Tensor, *numbers: torch.Tensor) -> torch.Tensor:
            slot, valid = (number(each) for each in numbers) if numbers else (slot_idx, valid_global)
            window = _window(valid, pad_align, chip, chips, chunk)  # type: ignore[arg-type]
            return zeroed(held, slot_of(slot, slots) * num_layers + layer_idx, window)  # type: ignore[arg-type]

        return compute

    work: list[Any] = [on(chip) for chip in coordinates(cluster_axis)]
    if rows_are_cut(cache):
        work = [faulty("rows are cut into several pages, each taken for a row")] * len(work)
    compute, across = on_every_chip(work)
    reads = ("cache", "slot_idx", "valid_global") if in_tensors else ("cache",)
    kind = (cache.dtype, cache.layout, cache.memory_config, cache.padded_shape)
    settings = (in_tensors, layer_idx, num_layers, cluster_axis, chunk_size_global, pad_align)
    return Plan(
        cache,
        compute,
        reads=reads,
        into=("cache",),
        across=across,
        program=(PREFILL, "zero", kind, settings),
        l1_bytes=_zero_buffers(cache) + 2 * METADATA_BYTES * in_tensors,
    )


def _require_window(cache: Spec, chunk_global: int, chips: int, pad_align: int) -> int:
    """Rows of a chunk on one chip. Windows to zero must not reach into the next chunk."""
    require(chunk_global % chips == 0, f"a chunk of {chunk_global} rows does not divide into {chips} chips")
    require(pad_align > 0, "pad_align must be positive")
    require(chunk_global % pad_align == 0, f"a chunk of {chunk_global} rows is not a multiple of pad_align {pad_align}")
    chunk = chunk_global // chips
    require(chunk % TILE_SIZE == 0, f"{chunk} rows of a chunk on one chip are not a multiple of {TILE_SIZE}")
    room = chips * cache.padded_shape[-2]
    require(room % pad_align == 0, f"a cache of {room} rows is not a multiple of pad_align {pad_align}")
    return chunk


def _window(valid: int, pad_align: int, chip: int, chips: int, chunk: int) -> tuple[int, int]:
    """First and last row to zero on the chip number `chip` (zero_pad_compute_token_range)."""
    end = round_up(valid, pad_align)
    if end == valid:
        return 0, 0
    if chunk == 0:
        raise ChipFault("the kernel divides by a chunk of no rows")
    slab = valid // (chips * chunk)
    own = (slab * chips + chip) * chunk
    first, last = max(valid, own), min(end, own + chunk)
    return (slab * chunk + first - own, slab * chunk + last - own) if first < last else (0, 0)


def _zeroed(cache: Spec) -> Callable[[torch.Tensor, int, tuple[int, int]], torch.Tensor]:
    """(cache, batch, rows) → cache. The tile that a window begins in is multiplied with a mask; others are set."""
    own, whole = cache.padded_shape, tuple(slice(size) for size in cache.shape)
    computes = cache.dtype in FLOAT_DTYPES or cache.dtype in BLOCK_FLOAT_DTYPES

    def compute(held: torch.Tensor, batch: int, window: tuple[int, int]) -> torch.Tensor:
        first, last = window
        if cache.is_tile:
            last = last // TILE_SIZE * TILE_SIZE
        if first >= last:
            return held
        if last > own[-2]:
            raise ChipFault(f"rows up to {last} are outside a cache of {own[-2]} rows")
        made = grown(held, own).clone()
        start = first // TILE_SIZE * TILE_SIZE if cache.is_tile else first
        if start < first:
            if not computes:
                raise ChipFault(f"{cache.dtype} is multiplied with a mask of bfloat16")
            tiles = made[batch, 0, start : start + TILE_SIZE]
            mask = (torch.arange(TILE_SIZE) < first - start).float().unsqueeze(-1)
            core = Core.of(MASKING, tiles.numel())
            product = core.mul(core.source(tiles.contiguous(), cache.dtype), mask.expand_as(tiles).contiguous())
            made[batch, 0, start : start + TILE_SIZE] = core.packed(product, cache.dtype)
            start += TILE_SIZE
        made[batch, 0, start:last] = 0
        return made[whole].contiguous()

    return compute


def _zero_buffers(cache: Spec) -> int:
    if not cache.is_tile:
        return row_bytes(cache)
    mask = TILE_SIZE * TILE_SIZE * 2
    return (2 * cache.padded_shape[-1] // TILE_SIZE + 1) * cache.page_bytes + mask
