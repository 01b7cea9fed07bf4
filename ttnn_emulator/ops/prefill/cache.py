"""Chunks of a prompt written into key-value caches whose rows are distributed over chips.

A cache [slots × layers, heads, S, D] of a chip holds rows of a sequence whose chunks are distributed over the chips in
turn, so a global position determines how many rows every chip already has.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable

import torch

from ttnn_emulator.enums import DataType, Layout
from ttnn_emulator.errors import ChipFault, NotEmulated, require
from ttnn_emulator.execution.operation_table import Plan, operation
from ttnn_emulator.numerics.formats.carriers import flush
from ttnn_emulator.ops.attention.heads.common import faulty, grown
from ttnn_emulator.ops.prefill.fp8_tokens import LATENT_WIDTH, PACKED_WIDTH, ROPE_WIDTH, SCALE_WIDTH, packed_rows
from ttnn_emulator.ops.prefill.mesh_positions import (
    METADATA_BYTES,
    PREFILL,
    chips_along,
    coordinates,
    local_rows,
    mesh_shape,
    number,
    on_every_chip,
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


@operation(f"{PREFILL}.update_padded_kv_cache")
def update_padded_kv_cache(
    cache: Spec,
    input: Spec,
    slot_idx: int | Spec,
    layer_idx: int,
    num_layers: int,
    kv_actual_global: int | Spec,
    cluster_axis: int | None,
    valid_global: int | Spec | None = None,
    tp_axis: int | None = None,
    rope: Spec | None = None,
    scales: Spec | None = None,
) -> Plan:
    """A chunk [1, heads, S, D] behind the first `kv_actual_global` rows of a slot and layer, in place.

    With `rope` the chunk is two tensors in tiles that become rows side by side. `valid_global`
    is the end of the valid rows, rounded up to 32; the rest is not written.
    """
    require_unsigned(slot_idx=slot_idx, layer_idx=layer_idx, num_layers=num_layers, kv_actual_global=kv_actual_global)
    require_unsigned(cluster_axis=cluster_axis, valid_global=valid_global, tp_axis=tp_axis)
    for spec, name in ((cache, "the cache"), (input, "the input"), (rope, "rope"), (scales, "scales")):
        if spec is not None:
            require_on_device(spec, name)
    if rope is None:
        require(scales is None, "scales need a rope")
        _require_same_kind(cache, input)
    else:
        if scales is None:
            _require_split(cache, input, rope)
        else:
            _require_scaled(cache, input, rope, scales)
    chips = _Chips(cluster_axis, tp_axis)
    _require_chunk(cache, input, chips)
    slots = require_slots(cache, num_layers, layer_idx)
    window, rows = input.padded_shape[-2], cache.padded_shape[-2]
    named = {"slot_idx": slot_idx, "kv_actual_global": kv_actual_global, "valid_global": valid_global}
    held = tuple(name for name, value in named.items() if isinstance(value, Spec))
    if isinstance(slot_idx, Spec):
        require_numbers({name: value for name, value in named.items() if isinstance(value, Spec)})
    else:
        assert isinstance(kv_actual_global, int) and not isinstance(valid_global, Spec)
        require(slot_idx < slots, f"slot {slot_idx} is not one of {slots}")
        _require_room(kv_actual_global, valid_global, chips.sequence * window, chips.count * rows)
    fixed = {name: value for name, value in named.items() if isinstance(value, int)}
    by_tile = input.is_tile or (rope is not None and rope.is_tile)
    work = [_update(cache, input, chips, chip, slots, num_layers, layer_idx, fixed, by_tile) for chip in chips.places]
    if rows_are_cut(cache) or rows_are_cut(input):
        work = [faulty("rows are cut into several pages, each taken for a row")] * len(work)
    optional = ("rope",) * (rope is not None) + ("scales",) * (scales is not None)
    reads = ("cache", "input", *optional, *held)
    compute, across = on_every_chip([_sorted(each, rope, scales, held) for each in work])
    kinds: tuple[Hashable, ...] = tuple(
        (each.dtype, each.layout, each.memory_config, each.padded_shape)
        for each in (cache, input, rope, scales)
        if each is not None
    )
    program = (
        PREFILL,
        "update",
        kinds,
        bool(held),
        valid_global is not None,
        layer_idx,
        num_layers,
        cluster_axis,
        tp_axis,
    )
    l1_bytes = _buffer_bytes(cache, input, rope, scales) + 2 * METADATA_BYTES * bool(held)
    return Plan(cache, compute, reads=reads, into=("cache",), across=across, program=program, l1_bytes=l1_bytes)


class _Chips:
    """How a sequence is distributed over a mesh: chunks along one axis, parts of a chunk along another."""

    def __init__(self, cluster_axis: int | None, tp_axis: int | None) -> None:
        every = mesh_shape()[0] * mesh_shape()[1]
        if cluster_axis is None:
            require(tp_axis is None, f"tp_axis {tp_axis} needs a cluster_axis")
            if every > 1:
                raise NotEmulated("caches distributed over all chips of a mesh of two axes are not emulated")
            self.sequence, self.parts, self.places = 1, 1, [0]
        else:
            require(cluster_axis in (0, 1), f"cluster_axis must be 0, 1 or None, not {cluster_axis}")
            self.sequence, self.parts, self.places = chips_along(cluster_axis), 1, coordinates(cluster_axis)
            if tp_axis is not None:
                require(tp_axis in (0, 1), f"tp_axis must be 0 or 1, not {tp_axis}")
                require(tp_axis != cluster_axis, f"tp_axis and cluster_axis are both {tp_axis}")
                self.parts = chips_along(tp_axis)
                pairs = zip(self.places, coordinates(tp_axis))
                self.places = [chip * self.parts + part for chip, part in pairs]

    @property
    def count(self) -> int:
        return self.sequence * self.parts


def _require_same_kind(cache: Spec, input: Spec) -> None:
    require(cache.dtype is input.dtype, f"the cache is {cache.dtype}, the input {input.dtype}")
    require(cache.layout is input.layout, f"the cache is in {cache.layout}, the input in {input.layout}")
    own, given = cache.padded_shape, input.padded_shape
    require(cache.rank == 4 and input.rank == 4, f"ranks must be 4, they are {cache.rank} and {input.rank}")
    require(own[-1] == given[-1], f"the input is {given[-1]} wide, the cache {own[-1]}")
    require(own[1] == given[1], f"the input has {given[1]} heads, the cache {own[1]}")


def _require_split(cache: Spec, latent: Spec, rope: Spec) -> None:
    in_rows = cache.layout is Layout.ROW_MAJOR and cache.dtype is DataType.BFLOAT16
    require(in_rows, f"with a rope the cache must be ROW_MAJOR bfloat16, it is {cache.brief()}")
    for spec, name in ((latent, "the input"), (rope, "the rope")):
        require(spec.is_tile and spec.dtype is DataType.BFLOAT16, f"{name} must be TILE bfloat16, it is {spec.brief()}")
        require(not spec.is_sharded, f"{name} must be interleaved")
        require(spec.rank == 4, f"{name} has rank {spec.rank}, not 4")
        require(spec.shape[-1] % TILE_SIZE == 0, f"{name} is {spec.shape[-1]} wide, not a multiple of {TILE_SIZE}")
    require(cache.rank == 4, f"the cache has rank {cache.rank}, not 4")
    require(latent.shape[:-1] == rope.shape[:-1], f"shapes {list(latent.shape)} and {list(rope.shape)} do not match")
    require(latent.shape[:2] == (1, 1), f"the input must hold one user and one head, not {list(latent.shape[:2])}")
    require(cache.shape[1] == 1, f"the cache must hold one head, not {cache.shape[1]}")
    width = latent.shape[-1] + rope.shape[-1]
    require(cache.shape[-1] == width, f"the cache is {cache.shape[-1]} wide, input and rope together {width}")


def _require_scaled(cache: Spec, latent: Spec, rope: Spec, scales: Spec) -> None:
    in_rows = cache.layout is Layout.ROW_MAJOR and cache.dtype is DataType.FP8_E4M3
    require(in_rows, f"with scales the cache must be ROW_MAJOR fp8_e4m3, it is {cache.brief()}")
    for spec, name, dtype, width, layouts in (
        (latent, "the input", DataType.FP8_E4M3, LATENT_WIDTH, (Layout.ROW_MAJOR,)),
        (scales, "scales", DataType.FLOAT32, SCALE_WIDTH, (Layout.ROW_MAJOR,)),
        (rope, "the rope", DataType.BFLOAT16, ROPE_WIDTH, (Layout.ROW_MAJOR, Layout.TILE)),
    ):
        known = spec.dtype is dtype and spec.layout in layouts and not spec.is_sharded
        require(known, f"{name} must be interleaved {dtype}, it is {spec.brief()}")
        require(spec.rank == 4 and spec.shape[:2] == (1, 1), f"{name} must hold one user and head: {list(spec.shape)}")
        require(spec.shape[-1] == width, f"{name} is {spec.shape[-1]} wide, not {width}")
        require(spec.shape[:-1] == latent.shape[:-1], f"{name} and the input have different rows")
    require(cache.rank == 4 and cache.shape[1] == 1, f"the cache must hold one head: {list(cache.shape)}")
    require(cache.shape[-1] == PACKED_WIDTH, f"the cache is {cache.shape[-1]} wide, not {PACKED_WIDTH}")


def _require_chunk(cache: Spec, input: Spec, chips: _Chips) -> None:
    for spec, name in ((cache, "the cache"), (input, "the input")):
        rows = spec.padded_shape[-2]
        require(rows % TILE_SIZE == 0, f"{name} has {rows} rows, not a multiple of {TILE_SIZE}")
        require(not spec.is_tile or spec.tile == DEFAULT_TILE, f"{name} must have tiles of {TILE_SIZE} x {TILE_SIZE}")
    window, heads = input.padded_shape[-2], input.padded_shape[1]
    require(window > 0, "the input is empty")
    if chips.parts > 1:
        require(heads == 1, f"cut along tp_axis the input must hold one head, not {heads}")
        tiles = window // TILE_SIZE
        require(tiles % chips.parts == 0, f"{tiles} rows of tiles do not divide into {chips.parts} parts")
    chunk, rows = window // chips.parts, cache.padded_shape[-2]
    require(rows % chunk == 0, f"a cache of {rows} rows is not a multiple of a chunk of {chunk}")


def _require_room(start: int, valid: int | None, chunk: int, room: int) -> None:
    require(start % TILE_SIZE == 0, f"kv_actual_global {start} is not a multiple of {TILE_SIZE}")
    if valid is None:
        require(start + chunk <= room, f"{chunk} rows behind {start} do not fit into a cache of {room}")
        return
    require(valid >= start, f"valid_global {valid} is less than kv_actual_global {start}")
    require(valid <= start + chunk, f"valid_global {valid} is beyond a chunk of {chunk} rows after {start}")
    written = round_up(valid, TILE_SIZE)
    require(written <= room, f"{written} rows of tiles do not fit into a cache of {room}")


def _update(
    cache: Spec,
    input: Spec,
    chips: _Chips,
    chip: int,
    slots: int,
    num_layers: int,
    layer_idx: int,
    fixed: dict[str, int],
    by_tile: bool,
) -> Callable[..., torch.Tensor]:
    """The work of one chip: (cache, rows of the input, numbers kept in tensors) → cache."""
    own, given = cache.padded_shape, input.padded_shape
    window, rows, heads = given[-2], own[-2], own[1]
    chunk = window // chips.parts
    step = TILE_SIZE if by_tile else 1  # rows are moved by pages: tiles, or single rows
    whole = tuple(slice(size) for size in cache.shape)

    def compute(held: torch.Tensor, rows_given: torch.Tensor, numbers: dict[str, int]) -> torch.Tensor:
        values = {**fixed, **numbers}
        start = values["kv_actual_global"] // step * step
        batch = slot_of(values["slot_idx"], slots) * num_layers + layer_idx
        first, count = local_rows(start, chip, chips.count, chunk), chunk
        if "valid_global" in values:
            end = local_rows(round_up(values["valid_global"], TILE_SIZE), chip, chips.count, chunk)
            count = min(max(end - first, 0), chunk)
        made = grown(held, own).clone()
        flat = made.view(-1, own[-1])
        begin, last = batch * heads * rows + first, (batch * heads + heads - 1) * rows + first + count
        if count and last > flat.shape[0]:
            raise ChipFault(f"{count} rows from {first} on reach beyond a cache of {rows} rows")
        source = grown(rows_given[0], (heads, window, own[-1]))
        chosen = _source_rows(start, window, chunk, chip, chips)
        for head in range(heads):
            flat[begin + head * rows : begin + head * rows + count] = source[head, chosen[:count]]
        return made[whole].contiguous()

    return compute


def _source_rows(start: int, window: int, chunk: int, chip: int, chips: _Chips) -> torch.Tensor:
    """Which rows of the window a chip writes, in the order of its cache (the mapping of the reader)."""
    in_chunk = start % chunk if chip == start // chunk % chips.count else 0
    in_window = start % window if chip // chips.parts == start // window % chips.sequence else 0
    base = (chip % chips.parts * chunk + in_chunk + window - in_window) % window
    rows = torch.arange(chunk)
    return base + rows + (rows + in_chunk >= chunk) * chunk * (chips.parts - 1)


def _sorted(
    work: Callable[..., torch.Tensor], rope: Spec | None, scales: Spec | None, held: tuple[str, ...]
) -> Callable[..., torch.Tensor]:
    """The tensors of a call by role: the cache, the input parts joined as rows, numbers by name."""
    count = 1 + (rope is not None) + (scales is not None)
    enters = flush if rope is not None and rope.is_tile else _unchanged  # a compute kernel untilizes them

    def joined(parts: tuple[torch.Tensor, ...]) -> torch.Tensor:
        if scales is not None:
            return packed_rows(parts[0], parts[2], enters(parts[1]))
        return parts[0] if rope is None else torch.cat([flush(part) for part in parts], -1)

    def compute(cache: torch.Tensor, *rest: torch.Tensor) -> torch.Tensor:
        numbers = {name: number(value) for name, value in zip(held, rest[count:])}
        return work(cache, joined(rest[:count]), numbers)

    return compute


def _unchanged(values: torch.Tensor) -> torch.Tensor:
    return values


def _buffer_bytes(cache: Spec, input: Spec, rope: Spec | None, scales: Spec | None) -> int:
    if rope is not None and scales is not None:
        pages = 2 * 2 * TILE_SIZE if rope.is_tile else 2 * 3  # fields of rows, in pages of the cache, both twice
        return pages * row_bytes(cache) + 4 * ROPE_WIDTH // TILE_SIZE * rope.page_bytes * rope.is_tile
    if rope is not None:
        return 4 * cache.shape[-1] // TILE_SIZE * input.page_bytes  # a row of tiles in and one out, both twice
    return 2 * (input.page_bytes if input.is_tile else row_bytes(cache))
