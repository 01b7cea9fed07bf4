"""Prefill attention: plain, chunked against a paged cache, and with latent values."""

from __future__ import annotations

import functools
import itertools
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from ttnn_emulator.enums import DataType, Layout, MathFidelity
from ttnn_emulator.errors import ChipFault, require
from ttnn_emulator.execution.operation_table import Plan, composite, internal, ttnn
from ttnn_emulator.numerics.programs.attention.softmax_steps import NEGATIVE_INFINITY
from ttnn_emulator.numerics.programs.attention.whole_sequences import Prefill, attend, scale_or_default
from ttnn_emulator.numerics.units.matrix_unit import MathConfig
from ttnn_emulator.ops.attention import checks
from ttnn_emulator.ops.attention.caches.rows_and_pages import seen_as
from ttnn_emulator.ops.attention.checks import TILE, given_names, unsigned
from ttnn_emulator.ops.attention.circular_buffers import Work, chunks_of, extra_buffers, prefill_buffers
from ttnn_emulator.ops.support.common_checks import math_config
from ttnn_emulator.tensors.memory_config import DRAM_MEMORY_CONFIG, MemoryConfig
from ttnn_emulator.tensors.shapes import div_up, round_up
from ttnn_emulator.tensors.spec import Spec

# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/transformer/sdpa/device/sdpa_program_factory.cpp, q_chunk_size
DEFAULT_CHUNK = 32


def attention_math(given: Any) -> MathConfig:
    return math_config(given, fidelity=MathFidelity.HiFi2)


def approximates(program: Any) -> bool:
    """Whether the exponential is approximate: yes, unless the program config disables it."""
    return program is None or program.exp_approx_mode is None or bool(program.exp_approx_mode)


def chunk_sizes(program: Any) -> tuple[int, int]:
    """Query tiles and key tiles per chunk."""
    if program is None:
        return DEFAULT_CHUNK // TILE, DEFAULT_CHUNK // TILE
    return program.q_chunk_size // TILE, program.k_chunk_size // TILE


@dataclass(frozen=True)
class Settings:
    """Non-tensor arguments of the device operation."""

    is_causal: bool
    scale: float | None
    memory_config: MemoryConfig | None
    program_config: Any
    compute_kernel_config: Any
    window: int = 0
    chunk_start: int | None = None
    mla_width: int | None = None
    concat_heads: bool = False
    window_offset: int = 0
    geometry: Any = None

    def kernel(self, q: Spec, **options: Any) -> Prefill:
        math = attention_math(self.compute_kernel_config)
        rows, columns = chunk_sizes(self.program_config)
        scale = scale_or_default(self.scale, q.padded_shape[-1])
        width = (q.shape[-1] if self.mla_width is None else self.mla_width) // TILE
        return Prefill(
            math,
            scale,
            q.dtype,
            rows,
            columns,
            width,
            causal=self.is_causal,
            window=self.window,
            exp_approx=approximates(self.program_config),
            streams=not math.fp32_acc,
            bulk=DataType.FLOAT32 if math.fp32_acc else DataType.BFLOAT16,
            **options,
        )


# -- the device operation ---------------------------------------------------------------------------------------------


@internal("ttnn.prim.sdpa")
def prefill(
    q: Spec,
    k: Spec,
    settings: Settings,
    v: Spec | None = None,
    mask: Spec | None = None,
    page_table: Spec | None = None,
    start: Spec | None = None,
    sink: Spec | None = None,
    windows: Spec | None = None,
    window_offset: Spec | None = None,
    block_map: Spec | None = None,
) -> Plan:
    """Whole sequences against whole sequences, or against a paged cache."""
    # Latent values are ignored if they are passed.
    values = k if v is None or settings.mla_width is not None else v
    operands = {"the query": q, "the key": k, "the value": values}
    checks.require_operands(operands)
    chunked = settings.chunk_start is not None or start is not None
    causal, window, program = settings.is_causal, settings.window, settings.program_config
    if windows is not None:
        checks.require_windows(windows, mask=mask, window=window, sink=sink)
        checks.require_window_offset(settings.window_offset, window_offset, q, k)
    if chunked:
        assert page_table is not None
        _require_chunked(q, k, values, page_table, start, settings)
    else:
        checks.require_shapes(q, k, values, causal and windows is None, settings.mla_width)
        if mask is not None:
            checks.require_mask(mask, q, k, causal, window)
    checks.require_chunk_sizes(program)
    if block_map is not None:
        checks.require_block_map(block_map, mask, q, k, program)
    if sink is not None:
        checks.require_sink(sink, q.shape[1])
    checks.require_only_lengths_padded(operands)
    cores = checks.require_grid(program)
    kernel = settings.kernel(q)
    reads = given_names(zip(("q", "k", "v"), (q, k, v)))
    shape = (*q.shape[:3], settings.mla_width if settings.mla_width is not None else q.shape[3])
    out_shape = (shape[0], 1, shape[2], shape[1] * shape[3]) if settings.concat_heads else shape
    out = Spec.of(out_shape, q.dtype, Layout.TILE, settings.memory_config or DRAM_MEMORY_CONFIG)
    keys = _length_of_keys(q, k, page_table, settings) if chunked else k.shape[2]
    work = Work(chunks_of(q.shape[2], kernel.q_chunk), q.shape[0] * q.shape[1], cores)
    padded = not causal and (keys % (kernel.k_chunk * TILE) != 0 or q.shape[2] % (kernel.q_chunk * TILE) != 0)
    given = DataType.BFLOAT16 if windows is not None else None if mask is None else mask.dtype
    partial = kernel.streams and padded and keys % TILE != 0
    l1_bytes = prefill_buffers(kernel, q, k, v or k, work, mask=given, partial=partial, padded=padded)
    l1_bytes += extra_buffers(kernel, sink, windows, page_table, start)
    extra = {"page_table": page_table, "start": start, "mask": mask, "sink": sink}
    extra |= {"windows": windows, "window_offset": window_offset if windows is not None else None}
    names = given_names(extra.items())
    fault = "" if v is None or settings.mla_width is None else _fault_of_values(q, k, v)
    run = functools.partial(_run, kernel, settings, names, v is not None, out_shape, fault)
    return Plan(out, run, reads=reads + names, l1_bytes=l1_bytes)


def _require_chunked(q: Spec, k: Spec, v: Spec, table: Spec, start: Spec | None, settings: Settings) -> None:
    if start is None:
        assert settings.chunk_start is not None
        require(settings.chunk_start >= 0, f"chunk_start_idx must not be negative, it is {settings.chunk_start}")
    else:
        require(start.on_device, "chunk_start_idx_tensor must be on a device")
        require(start.dtype is DataType.INT32, f"chunk_start_idx_tensor must be INT32, not {start.dtype}")
        require(start.shape == (1,), f"chunk_start_idx_tensor must have shape [1], not {list(start.shape)}")
    checks.require_page_table(table, q.shape[0])
    geometry, heads, block = settings.geometry, k.shape[1], k.shape[2]
    if checks.is_active(geometry):
        require(settings.mla_width is None, "latent values and a cache geometry exclude each other")
        require(block == v.shape[2], f"blocks of keys have {block} rows, of values {v.shape[2]}")
        checks.require_same_geometry(geometry, k, v, q.shape[3])
        heads, block = geometry.num_kv_heads, geometry.block_size
    elif settings.mla_width is None:
        require(block == v.shape[2], f"blocks of keys have {block} rows, of values {v.shape[2]}")
        require(v.shape[1] == heads, f"keys have {heads} heads, values {v.shape[1]}")
        require(k.shape[3] == v.shape[3] == q.shape[3], f"widths {q.shape[3]}, {k.shape[3]}, {v.shape[3]} differ")
    checks.require_heads(q.shape[1], heads)
    length = table.shape[1] * block
    first = settings.chunk_start if start is None else 0
    assert first is not None
    require(length >= q.shape[2] + first, f"{length} keys do not reach to position {q.shape[2] + first}")
    program = settings.program_config
    if program is not None and start is None and program.q_chunk_size and program.k_chunk_size:
        for size in (program.q_chunk_size, program.k_chunk_size):
            require(first % size == 0, f"chunk_start_idx {first} must be a multiple of the chunk size {size}")
    if start is not None:
        require(table.padded_shape[1] * 4 % TILE == 0, "rows of the page table must have a multiple of 32 bytes")


def _fault_of_values(q: Spec, k: Spec, v: Spec) -> str:
    """Why the chip misreads these latent values, which the library does not check."""
    if not v.is_tile or v.dtype not in checks.FLOATS:
        return f"values of {v.brief()} are read as tiles of floats"
    if v.rank != 4 or v.shape[0] != q.shape[0] or v.shape[2] != k.shape[2] or q.shape[1] % v.shape[1]:
        return f"values of shape {list(v.shape)} do not match keys of shape {list(k.shape)}"
    return "" if v.shape[3] % TILE == 0 else f"values of width {v.shape[3]} are not whole tiles"


def _length_of_keys(q: Spec, k: Spec, table: Spec | None, settings: Settings) -> int:
    if settings.chunk_start is not None:
        return settings.chunk_start + q.shape[2]
    assert table is not None
    block = settings.geometry.block_size if checks.is_active(settings.geometry) else k.shape[2]
    return q.shape[2] + table.shape[1] * block


# -- running it -------------------------------------------------------------------------------------------------------


def _run(
    kernel: Prefill,
    settings: Settings,
    names: tuple[str, ...],
    has_values: bool,
    shape: tuple[int, ...],
    fault: str,
    q: torch.Tensor,
    k: torch.Tensor,
    *rest: torch.Tensor,
) -> torch.Tensor:
    if fault:
        raise ChipFault(f"the card's answer would be wrong: {fault}")
    if q.numel() == 0:
        return q.new_zeros(shape)
    v = rest[0] if has_values else k
    given = dict(zip(names, rest[1:] if has_values else rest))
    width = settings.mla_width
    v = v if width is None else v[..., :width]
    options: dict[str, Any] = {}
    if "page_table" in given:
        first = settings.chunk_start if "start" not in given else int(given["start"][0])
        assert first is not None
        step = kernel.q_chunk * TILE
        kernel = replace(kernel, offset=first // step * step)
        length = kernel.offset + q.shape[2]
        geometry = settings.geometry if checks.is_active(settings.geometry) else None
        k, v = (gathered(each, given["page_table"], length, geometry, q.shape[3]) for each in (k, v))
    if "windows" in given:
        offset = int(given["window_offset"][0]) if "window_offset" in given else settings.window_offset
        options["mask"], options["spans"] = _window_mask(kernel, given["windows"], offset, q.shape[2], k.shape[2])
        kernel = replace(kernel, causal=False)
    elif "mask" in given:
        options["mask"] = given["mask"]
    if "sink" in given:
        options["sink"] = given["sink"].reshape(-1)
    made = attend(kernel, q, k, v, **options)
    return made.transpose(1, 2).reshape(shape) if settings.concat_heads else made


def gathered(cache: torch.Tensor, table: torch.Tensor, length: int, geometry: Any, width: int) -> torch.Tensor:
    """The first `length` rows of every user, from blocks [blocks, heads, rows, width] by the page table."""
    if geometry is not None:
        cache = seen_as(cache, geometry.num_kv_heads, geometry.block_size, width)
    count = div_up(length, cache.shape[2])
    blocks = cache[table[:, :count].long()]
    return blocks.transpose(1, 2).flatten(2, 3)[:, :, :length]


def _window_mask(
    kernel: Prefill, boundaries: torch.Tensor, offset: int, queries: int, keys: int
) -> tuple[torch.Tensor, list[tuple[int, int]]]:
    """The window mask (zero inside, minus infinity outside), and the key chunks that each query chunk visits."""
    edges = [int(each) for each in boundaries]
    rows, columns = torch.arange(queries) + offset, torch.arange(keys)
    limits = torch.tensor(edges)
    inside = torch.searchsorted(limits, rows, right=True), torch.searchsorted(limits, columns, right=True)
    valid = (inside[0] > 0) & (inside[0] < len(edges))
    seen = (inside[0].unsqueeze(-1) == inside[1]) & valid.unsqueeze(-1)
    if kernel.causal:
        seen = seen & (columns <= rows.unsqueeze(-1))
    mask = torch.where(seen, 0.0, NEGATIVE_INFINITY).reshape(1, 1, queries, keys)
    return mask, [_span(kernel, edges, offset, at, queries, keys) for at in range(0, queries, kernel.q_chunk * TILE)]


def _span(kernel: Prefill, edges: list[int], offset: int, at: int, queries: int, keys: int) -> tuple[int, int]:
    low = offset + at
    high = offset + min(at + kernel.q_chunk * TILE, round_up(queries, TILE))
    step = kernel.k_chunk * TILE
    pairs = list(itertools.pairwise(edges))
    first = next((n for n, (a, b) in enumerate(pairs) if a <= low < b or a < high <= b), None)
    if first is None:
        return 0, 1
    last = first
    while last + 1 < len(pairs) and edges[last + 1] < high:
        last += 1
    start, end = edges[first] // step, div_up(edges[last + 1], step)
    end = min(end, div_up(high, step)) if kernel.causal else end
    end = min(end, div_up(keys, step))
    return (start, end) if start < end else (max(end - 1, 0), max(end - 1, 0) + 1)


# -- public operations ------------------------------------------------------------------------------------------------


@composite("ttnn.transformer.scaled_dot_product_attention")
def scaled_dot_product_attention(
    input_tensor_q,
    input_tensor_k,
    input_tensor_v,
    *,
    attn_mask=None,
    is_causal=True,
    scale=None,
    sliding_window_size=None,
    memory_config=None,
    program_config=None,
    compute_kernel_config=None,
    attention_sink=None,
    cu_window_seqlens=None,
    windowed_q_token_offset=0,
    windowed_q_token_offset_tensor=None,
    output_concat_heads=False,
    attn_mask_block_map=None,
):
    """softmax(scale × query keyᵀ + mask) value; the mask is divided by the scale first, as the kernel scales it."""
    mask = attn_mask
    if mask is not None:
        factor = scale_or_default(scale, int(input_tensor_q.padded_shape[-1]))
        if factor != 1.0:
            with np.errstate(divide="ignore"):
                mask = ttnn.multiply(mask, float(np.float32(1.0) / np.float32(factor)))
    settings = Settings(
        is_causal,
        scale,
        memory_config,
        program_config,
        compute_kernel_config,
        window=unsigned(sliding_window_size, "sliding_window_size"),
        concat_heads=output_concat_heads,
        window_offset=windowed_q_token_offset,
    )
    return prefill(
        input_tensor_q,
        input_tensor_k,
        settings,
        input_tensor_v,
        mask,
        sink=attention_sink,
        windows=cu_window_seqlens,
        window_offset=windowed_q_token_offset_tensor,
        block_map=attn_mask_block_map,
    )


@composite("ttnn.transformer.chunked_scaled_dot_product_attention")
def chunked_scaled_dot_product_attention(
    input_tensor_q,
    input_tensor_k,
    input_tensor_v,
    page_table_tensor,
    chunk_start_idx=None,
    *,
    chunk_start_idx_tensor=None,
    scale=None,
    memory_config=None,
    program_config=None,
    compute_kernel_config=None,
    paged_cache_geometry=None,
    sliding_window_size=None,
    attention_sink=None,
):
    """A chunk of a long sequence against a paged cache, causal from position `chunk_start_idx` on."""
    require(
        chunk_start_idx is not None or chunk_start_idx_tensor is not None,
        "chunk_start_idx or chunk_start_idx_tensor is needed",
    )
    settings = Settings(
        True,
        scale,
        memory_config,
        program_config,
        compute_kernel_config,
        window=unsigned(sliding_window_size, "sliding_window_size"),
        chunk_start=chunk_start_idx if chunk_start_idx_tensor is None else None,
        geometry=paged_cache_geometry,
    )
    return prefill(
        input_tensor_q,
        input_tensor_k,
        settings,
        input_tensor_v,
        page_table=page_table_tensor,
        start=chunk_start_idx_tensor,
        sink=attention_sink,
    )


@composite("ttnn.transformer.flash_mla_prefill")
def flash_mla_prefill(
    input_tensor_q,
    input_tensor_k,
    head_dim_v=None,
    input_tensor_v=None,
    *,
    attn_mask=None,
    is_causal=True,
    scale=None,
    memory_config=None,
    program_config=None,
    compute_kernel_config=None,
):
    """Attention with separate values, or with the first `head_dim_v` columns of the keys as values."""
    width = head_dim_v if head_dim_v is not None else int(input_tensor_v.shape[-1])
    settings = Settings(is_causal, scale, memory_config, program_config, compute_kernel_config, mla_width=width)
    return prefill(input_tensor_q, input_tensor_k, settings, input_tensor_v, attn_mask)


@composite("ttnn.transformer.chunked_flash_mla_prefill")
def chunked_flash_mla_prefill(
    input_tensor_q,
    input_tensor_k,
    head_dim_v,
    page_table_tensor,
    chunk_start_idx,
    *,
    scale=None,
    memory_config=None,
    program_config=None,
    compute_kernel_config=None,
):
    """The same for a chunk of a long sequence against a paged cache."""
    settings = Settings(
        True,
        scale,
        memory_config,
        program_config,
        compute_kernel_config,
        chunk_start=chunk_start_idx,
        mla_width=head_dim_v,
    )
    return prefill(input_tensor_q, input_tensor_k, settings, page_table=page_table_tensor)
