"""Decode attention: one token per user against a contiguous or paged key-value cache."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import torch

from ttnn_emulator.enums import Layout
from ttnn_emulator.errors import ChipFault, NotEmulated, require
from ttnn_emulator.execution.operation_table import Plan, composite, internal
from ttnn_emulator.numerics.programs.attention.decode import Decode, decode
from ttnn_emulator.numerics.programs.attention.whole_sequences import scale_or_default
from ttnn_emulator.ops.attention import decode_checks as checks
from ttnn_emulator.ops.attention.caches.rows_and_pages import seen_as
from ttnn_emulator.ops.attention.checks import TILE, given_names, is_active, unsigned
from ttnn_emulator.ops.attention.circular_buffers import Cache, decode_buffers
from ttnn_emulator.ops.attention.decode_checks import Settings
from ttnn_emulator.ops.attention.whole_sequences import approximates, attention_math
from ttnn_emulator.tensors.memory_config import DRAM_MEMORY_CONFIG, MemoryConfig
from ttnn_emulator.tensors.shapes import round_up
from ttnn_emulator.tensors.spec import Spec

# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/transformer/sdpa_decode/sdpa_decode.cpp, kDefaultDecodeChunkSize
DEFAULT_PAGED_CHUNK = 32
NOBODY = -1  # position of a user that is skipped


@internal("ttnn.prim.sdpa_decode")
def decoding(
    q: Spec,
    k: Spec,
    settings: Settings,
    v: Spec | None = None,
    positions: Spec | None = None,
    page_table: Spec | None = None,
    mask: Spec | None = None,
    sink: Spec | None = None,
) -> Plan:
    """Queries [1, users, heads, width] against keys [users, groups, keys, width] or [blocks, groups, rows, width]."""
    values = k if v is None else v
    checks.require_operands(q, k, v, settings)
    checks.require_mask(mask, q, k, settings)
    checks.require_positions(positions, checks.users_of(q, k, page_table))
    if page_table is not None:
        require(page_table.on_device, "the page table must be on a device")
        checks.require_paged(q, k, values, page_table, positions, settings)
    else:
        checks.require_unpaged(q, k, values, settings)
    checks.require_candidates(q, k, settings)
    checks.require_groups(q, k, values, settings)
    checks.require_sink(sink, q)
    users = checks.users_of(q, k, page_table)
    spread = checks.spread_of(q, users, settings)
    require(spread.parts == 1 or k.padded_shape[1] == 1, f"{spread.parts} parts of the heads need one head of keys")
    cores = checks.cores_per_head(q, k, users * spread.parts, settings)
    if settings.is_causal and positions is None:
        require(len(settings.cur_pos) >= users, f"{len(settings.cur_pos)} positions are given for {users} users")
    out_users = users if page_table is not None else k.padded_shape[0]
    width = q.shape[3] if settings.mla_width is None else settings.mla_width
    layout = Layout.TILE if q.is_tile else Layout.ROW_MAJOR
    heads = spread.heads if settings.program_config is not None else q.shape[2]
    out = Spec.of((q.shape[0], out_users, heads, width), q.dtype, layout, settings.memory_config)
    scale = scale_or_default(settings.scale, q.padded_shape[-1])
    kernel = Decode(
        attention_math(settings.compute_kernel_config),
        scale,
        q.dtype,
        settings.chunk,
        cores,
        causal=settings.is_causal,
        window=settings.window,
        exp_approx=approximates(settings.program_config),
        full_tiles=not checks.has_half_tiles(q, settings),
    )
    names = given_names({"v": v, "positions": positions, "page_table": page_table, "mask": mask, "sink": sink}.items())
    fault = _fault(q, k, users, out_users, settings)
    block = settings.geometry.block_size if is_active(settings.geometry) else k.shape[2]
    run = functools.partial(_run, kernel, settings, names, block, users, out.shape, fault)
    if spread.replicated:
        run = functools.partial(_replicated)
    cache = Cache(q, k, values, out, page_table, positions, mask, sink is not None)
    padded_heads = spread.heads if spread.replicated else round_up(q.padded_shape[2], TILE)
    rows = padded_heads // max(spread.parts, 1) // TILE
    value_width = width if settings.mla_width is not None else values.padded_shape[3]
    checks.require_room(out, rows, value_width)
    l1_bytes = decode_buffers(kernel, cache, rows, value_width)
    return Plan(out, run, reads=("q", "k", *names), l1_bytes=l1_bytes)


def _fault(q: Spec, k: Spec, users: int, out_users: int, settings: Settings) -> str:
    """The wrong result of the chip for such a call, if any."""
    if out_users != users or users > q.shape[1]:
        return f"queries of {q.shape[1]} users are answered for {users} of them, with room for {out_users}"
    if not settings.is_causal and not settings.paged and k.shape[2] != k.padded_shape[2]:
        return f"without is_causal the padding of {k.shape[2]} keys takes part"
    return ""


def _replicated(*_: torch.Tensor) -> torch.Tensor:
    raise NotEmulated(
        "a query of which every core has a copy is not emulated",
        hint="Shard the query by users only: one shard per user with all of its heads.",
    )


def _run(
    kernel: Decode,
    settings: Settings,
    names: tuple[str, ...],
    block: int,
    users: int,
    shape: tuple[int, ...],
    fault: str,
    q: torch.Tensor,
    k: torch.Tensor,
    *rest: torch.Tensor,
) -> torch.Tensor:
    if fault:
        raise ChipFault(f"the card's answer would be wrong: {fault}")
    given = dict(zip(names, rest))
    v = given.get("v", k)
    v = v if settings.mla_width is None else v[..., : settings.mla_width]
    result = torch.zeros(shape)
    for user in range(users):
        result[0, user] = _user(kernel, settings, given, block, user, q[0, :users], k, v)
    return result


def _user(
    kernel: Decode,
    settings: Settings,
    given: dict[str, torch.Tensor],
    block: int,
    user: int,
    queries: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
) -> torch.Tensor:
    absent, query = None, queries[user]
    if "page_table" in given:
        pages = given["page_table"][user].long()
        key, value = (_rows_of(each, pages, settings, query.shape[-1]) for each in (k, v))
        if block < TILE:
            absent = torch.arange(key.shape[-2]) % TILE >= block
    else:
        key, value = (each[user % each.shape[0]] for each in (k, v))
    places = _places(kernel, settings, given, user, key.shape[-2])
    if places[-1] == NOBODY:
        return torch.zeros(query.shape[0], value.shape[-1])
    if absent is not None and settings.is_causal:
        places = [place // block * TILE + place % block for place in places]
    if settings.modulo is not None:
        key, value = (_unrolled(each, settings.modulo, places[-1]) for each in (key, value))
    groups = key.shape[0]
    options: dict[str, Any] = {"absent": absent, "users": len(queries)}
    if "mask" in given:
        mask = given["mask"]
        options["mask"] = mask[user % mask.shape[0], 0].reshape(groups, -1, mask.shape[-1])
    if "sink" in given:
        options["sink"] = given["sink"][: query.shape[0], 0].reshape(groups, -1)
    if settings.candidates:
        options["limits"] = torch.tensor(places).repeat_interleave(TILE)[: query.shape[0]].reshape(groups, -1)
    made = decode(kernel, query.reshape(groups, -1, query.shape[-1]), key, value, places[-1], **options)
    return made.reshape(query.shape[0], -1)


def _places(kernel: Decode, settings: Settings, given: dict[str, torch.Tensor], user: int, keys: int) -> list[int]:
    """The positions of a user's tokens: one, or one per query tile."""
    if not kernel.causal:
        return [round_up(keys, TILE) - 1]
    if "positions" not in given:
        return [settings.cur_pos[user]]
    count = max(settings.candidates, 1)
    flat = given["positions"].reshape(-1)[user * count : (user + 1) * count]
    return [int(each) for each in flat]


def _rows_of(cache: torch.Tensor, pages: torch.Tensor, settings: Settings, width: int) -> torch.Tensor:
    """A user's rows [groups, rows, width]; blocks shorter than a tile occupy a whole one."""
    if is_active(settings.geometry):
        cache = seen_as(cache, settings.geometry.num_kv_heads, settings.geometry.block_size, width)
    pages = pages.clamp(0, cache.shape[0] - 1)  # entries beyond the position need not be valid
    rows = cache.shape[2]
    if rows < TILE:
        cache = torch.nn.functional.pad(cache, (0, 0, 0, TILE - rows))
    return cache[pages].transpose(0, 1).flatten(1, 2)


def _unrolled(values: torch.Tensor, modulo: int, position: int) -> torch.Tensor:
    """A circular cache, reordered by position."""
    return values[:, torch.arange(position + 1) % modulo]


# -- public operations ------------------------------------------------------------------------------------------------


def _settings(
    is_causal: bool,
    scale: float | None,
    configs: tuple[MemoryConfig | None, Any, Any],
    chunk: int,
    *,
    window: int | None,
    cur_pos: Sequence[int] = (),
    **more: Any,
) -> Settings:
    """Settings of a decoding call; `configs` are the memory, program and compute kernel configs."""
    memory_config, program_config, compute_kernel_config = configs
    return Settings(
        is_causal,
        scale,
        memory_config or DRAM_MEMORY_CONFIG,
        program_config,
        compute_kernel_config,
        chunk,
        cur_pos=tuple(unsigned(each, "a position") for each in cur_pos),
        window=unsigned(window, "sliding_window_size"),
        **more,
    )


@composite("ttnn.transformer.scaled_dot_product_attention_decode")
def scaled_dot_product_attention_decode(
    input_tensor_q,
    input_tensor_k,
    input_tensor_v,
    *,
    is_causal=True,
    attn_mask=None,
    cur_pos=(),
    cur_pos_tensor=None,
    attention_sink=None,
    scale=None,
    sliding_window_size=None,
    memory_config=None,
    program_config=None,
    compute_kernel_config=None,
    share_cache=None,
):
    """Attention of one token per user, at each user's position."""
    configs = (memory_config, program_config, compute_kernel_config)
    chunk = checks.chunk_for(int(input_tensor_k.shape[-2]), program_config)
    settings = _settings(
        is_causal, scale, configs, chunk, cur_pos=cur_pos, window=sliding_window_size, share_cache=bool(share_cache)
    )
    given = {"positions": cur_pos_tensor, "mask": attn_mask, "sink": attention_sink}
    return decoding(input_tensor_q, input_tensor_k, settings, input_tensor_v, **given)


@composite("ttnn.transformer.paged_scaled_dot_product_attention_decode")
def paged_scaled_dot_product_attention_decode(
    input_tensor_q,
    input_tensor_k,
    input_tensor_v,
    page_table_tensor,
    *,
    is_causal=True,
    attn_mask=None,
    cur_pos_tensor=None,
    attention_sink=None,
    scale=None,
    sliding_window_size=None,
    memory_config=None,
    program_config=None,
    compute_kernel_config=None,
    paged_cache_geometry=None,
    cache_position_modulo=None,
    spec_multi_pos_tiles=0,
):
    """The same with a paged cache; by default one core per head."""
    configs = (memory_config, program_config, compute_kernel_config)
    chunk = DEFAULT_PAGED_CHUNK if program_config is None else checks.given_chunk(program_config)
    settings = _settings(
        is_causal,
        scale,
        configs,
        chunk,
        window=sliding_window_size,
        paged=True,
        geometry=paged_cache_geometry,
        modulo=cache_position_modulo,
        most_cores=1 if program_config is None else None,
        candidates=spec_multi_pos_tiles,
    )
    given = {"positions": cur_pos_tensor, "mask": attn_mask, "sink": attention_sink}
    return decoding(input_tensor_q, input_tensor_k, settings, input_tensor_v, page_table=page_table_tensor, **given)


@composite("ttnn.transformer.flash_multi_latent_attention_decode")
def flash_multi_latent_attention_decode(
    input_tensor_q,
    input_tensor_k,
    input_tensor_v,
    head_dim_v,
    *,
    is_causal=True,
    attn_mask=None,
    cur_pos=(),
    cur_pos_tensor=None,
    attention_sink=None,
    scale=None,
    sliding_window_size=None,
    memory_config=None,
    program_config=None,
    compute_kernel_config=None,
):
    """Decode attention with separate values, or with the first `head_dim_v` columns of the keys as values."""
    configs = (memory_config, program_config, compute_kernel_config)
    chunk = checks.chunk_for(int(input_tensor_k.shape[-2]), program_config)
    settings = _settings(
        is_causal, scale, configs, chunk, cur_pos=cur_pos, window=sliding_window_size, mla_width=head_dim_v
    )
    given = {"positions": cur_pos_tensor, "mask": attn_mask, "sink": attention_sink}
    return decoding(input_tensor_q, input_tensor_k, settings, input_tensor_v, **given)


@composite("ttnn.transformer.paged_flash_multi_latent_attention_decode")
def paged_flash_multi_latent_attention_decode(
    input_tensor_q,
    input_tensor_k,
    input_tensor_v,
    head_dim_v,
    page_table_tensor,
    *,
    is_causal=True,
    attn_mask=None,
    cur_pos_tensor=None,
    attention_sink=None,
    scale=None,
    sliding_window_size=None,
    memory_config=None,
    program_config=None,
    compute_kernel_config=None,
):
    """The same with a paged cache."""
    configs = (memory_config, program_config, compute_kernel_config)
    chunk = checks.given_chunk(program_config)
    settings = _settings(is_causal, scale, configs, chunk, window=sliding_window_size, paged=True, mla_width=head_dim_v)
    given = {"positions": cur_pos_tensor, "mask": attn_mask, "sink": attention_sink}
    return decoding(input_tensor_q, input_tensor_k, settings, input_tensor_v, page_table=page_table_tensor, **given)
