"""Attention to selected keys and key blocks, compared with torch on the selected keys."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch

import ttnn_emulator as ttnn
from tests.emulator.ops.against_torch import pcc, stored, upload
from ttnn_emulator.errors import ChipFault, InvalidArgument
from ttnn_emulator.numerics.mode import numerics

NOTHING = 0xFFFFFFFF
PRECISE = ttnn.WormholeComputeKernelConfig(
    math_fidelity=ttnn.MathFidelity.HiFi4, math_approx_mode=False, fp32_dest_acc_en=True
)
BF16 = ttnn.SparseKVFormat.BF16


@pytest.fixture
def card() -> Iterator[Any]:
    with ttnn.open_device(device_id=0, board="p150") as opened:
        yield opened


def normal(*shape: int, seed: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).bfloat16().float()


def choices(rows: int, size: int, limit: int, counts: list[int], seed: int) -> torch.Tensor:
    """Rows of `counts` distinct indices below `limit`, padded with NOTHING."""
    generator = torch.Generator().manual_seed(seed)
    result = torch.full((rows, size), NOTHING)
    for row in range(rows):
        count = counts[row % len(counts)]
        result[row, :count] = torch.randperm(limit, generator=generator)[:count]
    return result


def near(ours: Any, expected: torch.Tensor, least: float = 0.999) -> None:
    result = stored(ours)
    assert list(result.shape) == list(expected.shape)
    assert pcc(result, expected) >= least


# -- keys -------------------------------------------------------------------------------------------------------------


def by_key(
    q: torch.Tensor, kv: torch.Tensor, rows: torch.Tensor, width: int, scale: float, sink: torch.Tensor | None = None
) -> torch.Tensor:
    result = torch.empty(q.shape[0], q.shape[1], width)
    for token in range(q.shape[1]):
        selected = kv[rows[token][rows[token] != NOTHING]]
        scores = q[:, token] @ selected.T
        if sink is not None:
            scores = torch.cat([scores, sink.unsqueeze(1)], 1)
        weights = torch.softmax(scale * scores, -1)
        result[:, token] = weights[:, : len(selected)] @ selected[:, :width]
    return result.unsqueeze(0)


@pytest.mark.parametrize(("heads", "depth", "width"), ((32, 96, 64), (64, 576, 512)))
@pytest.mark.parametrize("config", (None, PRECISE))
@pytest.mark.parametrize("with_sink", (False, True))
def test_selected_keys(card: Any, heads: int, depth: int, width: int, config: Any, with_sink: bool) -> None:
    q, kv, sink = normal(heads, 5, depth, seed=1), normal(2, 300, depth, seed=2), normal(heads, seed=3)
    rows = choices(5, 128, 300, [128, 33, 1, 64, 100], seed=4)
    ours = ttnn.transformer.sparse_sdpa(
        upload(q.unsqueeze(0), "bfloat16", "ROW_MAJOR", card),
        upload(kv.unsqueeze(1), "bfloat16", "ROW_MAJOR", card),
        upload(rows.reshape(1, 1, 5, 128), "uint32", "ROW_MAJOR", card),
        width,
        kv_format=BF16,
        k_chunk_size=64,
        cache_batch_idx=1,
        compute_kernel_config=config,
        attention_sink=upload(sink.reshape(1, 1, 1, heads), "bfloat16", "ROW_MAJOR", card) if with_sink else None,
    )
    near(ours, by_key(q, kv[1], rows, width, depth**-0.5, sink if with_sink else None))


@pytest.mark.parametrize("mode", ("exact", "fast"))
def test_exact_and_fast_modes_agree(card: Any, mode: str) -> None:
    q, kv, rows = normal(32, 3, 64, seed=5), normal(100, 64, seed=6), choices(3, 64, 100, [64, 40, 3], seed=7)
    with numerics(mode):
        ours = ttnn.transformer.sparse_sdpa(
            upload(q.unsqueeze(0), "bfloat16", "ROW_MAJOR", card),
            upload(kv.reshape(1, 1, 100, 64), "bfloat16", "ROW_MAJOR", card),
            upload(rows.reshape(1, 1, 3, 64), "uint32", "ROW_MAJOR", card),
            32,
            kv_format=BF16,
            k_chunk_size=32,
            scale=0.5,
        )
    near(ours, by_key(q, kv, rows, 32, 0.5), 0.998)


def test_indices_beyond_the_cache_are_faults(card: Any) -> None:
    shapes = ((1, 32, 2, 64), (1, 1, 40, 64))
    q, kv = (upload(normal(*shape, seed=8), "bfloat16", "ROW_MAJOR", card) for shape in shapes)
    for wrong in (40, NOTHING):
        rows = upload(torch.full((1, 1, 2, 32), wrong), "uint32", "ROW_MAJOR", card)
        with pytest.raises(ChipFault, match="beyond the cache"):
            ttnn.transformer.sparse_sdpa(q, kv, rows, 32, kv_format=BF16, k_chunk_size=32)


def test_only_blackhole_supports_it(device: Any) -> None:
    q, kv = (upload(torch.zeros(shape), "bfloat16", "ROW_MAJOR", device) for shape in ((1, 32, 2, 64), (1, 1, 40, 64)))
    rows = upload(torch.zeros(1, 1, 2, 32), "uint32", "ROW_MAJOR", device)
    with pytest.raises(InvalidArgument, match="Blackhole"):
        ttnn.transformer.sparse_sdpa(q, kv, rows, 32, kv_format=BF16, k_chunk_size=32)


# -- blocks -----------------------------------------------------------------------------------------------------------


def by_block(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, rows: torch.Tensor, block: int, start: int | None
) -> torch.Tensor:
    heads, tokens, depth = q.shape
    result = torch.empty(heads, tokens, v.shape[-1])
    for head in range(heads):
        group = head * k.shape[0] // heads
        for token in range(tokens):
            numbers = [int(each) for each in rows[group, token] if each != NOTHING]
            places = torch.cat([torch.arange(each * block, (each + 1) * block) for each in numbers])
            if start is not None:  # blocks entirely after the query are not masked
                own = (places // block == (start + token) // block) & (places > start + token)
                places = places[~own]
            weights = torch.softmax(q[head, token] @ k[group, places].T * depth**-0.5, -1)
            result[head, token] = weights @ v[group, places]
    return result.unsqueeze(0)


@pytest.mark.parametrize(("heads", "groups"), ((16, 1), (64, 2)))
@pytest.mark.parametrize("start", (None, 0, 37))
@pytest.mark.parametrize(("dtype", "config"), (("bfloat16", None), ("bfloat8_b", PRECISE)))
def test_selected_blocks(card: Any, heads: int, groups: int, start: int | None, dtype: str, config: Any) -> None:
    q, k, v = normal(heads, 6, 64, seed=1), normal(groups, 256, 64, seed=2), normal(groups, 256, 96, seed=3)
    rows = choices(groups * 6, 16, 4, [4, 1, 3], seed=4).reshape(groups, 6, 16)
    on_card = [upload(each.unsqueeze(0), dtype, "TILE", card) for each in (k, v)]
    ours = ttnn.transformer.sparse_sdpa_msa(
        upload(q.unsqueeze(0), "bfloat16", "ROW_MAJOR", card),
        *on_card,
        upload(rows.unsqueeze(0), "uint32", "ROW_MAJOR", card),
        block_size=64,
        chunk_start_idx=start,
        compute_kernel_config=config,
    )
    k, v = (stored(each)[0] for each in on_card)
    near(ours, by_block(q, k, v, rows, 64, start))
