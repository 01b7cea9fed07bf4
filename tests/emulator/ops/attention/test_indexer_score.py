"""Indexer scores of sparse attention, compared with torch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch

import ttnn_emulator as ttnn
from tests.emulator.ops.against_torch import pcc, stored, upload
from ttnn_emulator.numerics.mode import numerics


@pytest.fixture
def card() -> Iterator[Any]:
    with ttnn.open_device(device_id=0, board="p150") as opened:
        yield opened


def normal(*shape: int, seed: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).bfloat16().float()


def units(rows: int, columns: int, heads: int) -> Any:
    return ttnn.IndexerScoreProgramConfig(q_chunk_size=rows, k_chunk_size=columns, head_group_size=heads)


def same(ours: torch.Tensor, expected: torch.Tensor, least: float) -> None:
    """Infinite where expected, and close elsewhere."""
    assert torch.equal(ours.isinf(), expected.isinf())
    assert torch.equal(ours[ours.isinf()], expected[expected.isinf()])
    assert pcc(ours[~ours.isinf()], expected[~expected.isinf()]) >= least


@pytest.mark.parametrize("unit", ((32, 32, 1), (32, 64, 0), (64, 96, 4)))
@pytest.mark.parametrize(("ratio", "start"), ((1, 0), (1, 64), (1, 96), (4, None), (4, 32)))
@pytest.mark.parametrize("mode", ("exact", "fast"))
def test_by_key(card: Any, unit: tuple[int, int, int], ratio: int, start: int | None, mode: str) -> None:
    q, k, gates = normal(8, 64, 64, seed=1), normal(2, 128, 64, seed=2), normal(64, 8, seed=3)
    with numerics(mode):
        ours = ttnn.experimental.indexer_score_dsa(
            upload(q.unsqueeze(0), "bfloat16", "TILE", card),
            upload(k.unsqueeze(1), "bfloat16", "TILE", card),
            upload(gates.reshape(1, 1, 64, 8), "bfloat16", "TILE", card),
            chunk_start_idx=start,
            key_compression_ratio=ratio,
            program_config=units(*unit),
            cache_batch_idx=1,
        )
    expected = torch.einsum("hqk,qh->qk", torch.relu(q @ k[1].T), gates)
    first = 128 * ratio - 64 if start is None else start
    later = torch.arange(128) >= ((torch.arange(64) + first + 1) // ratio).unsqueeze(1)
    # Gates are multiplied in one fidelity phase if whole rows of keys are processed: five bits of a score count.
    same(stored(ours)[0, 0], expected.masked_fill(later, float("-inf")), 0.998)


@pytest.mark.parametrize(("heads", "groups"), ((8, 4), (4, 4), (6, 1)))
@pytest.mark.parametrize("block", (0, 32))
@pytest.mark.parametrize("length", (None, 256))
@pytest.mark.parametrize("dtype", ("bfloat16", "bfloat8_b"))
def test_by_group(card: Any, heads: int, groups: int, block: int, length: int | None, dtype: str) -> None:
    q, k = normal(heads, 32, 64, seed=1), normal(512, 64, seed=2)
    on_card = [upload(each, dtype, "TILE", card) for each in (q.unsqueeze(0), k.reshape(1, 1, 512, 64))]
    ours = ttnn.experimental.indexer_score_msa(
        *on_card,
        num_groups=groups,
        scale=0.125,
        block_size=block,
        chunk_start_idx=96,
        kv_len=length,
        program_config=units(32, 256, 0),
    )
    q, k = stored(on_card[0])[0], stored(on_card[1])[0, 0]
    expected = 0.125 * (q @ k.T).unflatten(0, (groups, -1)).sum(1)
    expected = expected.masked_fill(torch.arange(512) > (torch.arange(32) + 96).unsqueeze(1), float("-inf"))
    if block:
        expected = expected.unflatten(-1, (-1, block)).amax(-1)
        expected[:, torch.arange(32), (torch.arange(32) + 96) // block] = float("inf")
    valid = (length or 512) // (block or 1)
    same(stored(ours)[0, ..., :valid], expected[..., :valid], 0.995)
