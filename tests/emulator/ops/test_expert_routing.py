"""Mixtures of experts against torch: which experts are chosen, and with which weights."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import ttnn_emulator as ttnn
from tests.emulator.ops.against_torch import LEAST_PCC, pcc, stored, upload
from ttnn_emulator.numerics.tile_selection import best_tile, order_of_eight

EXPERTS = 256


def orders(rows: int, length: int, seed: int = 0) -> torch.Tensor:
    """Permutations, one a row."""
    generator = torch.Generator().manual_seed(seed)
    return torch.stack([torch.randperm(length, generator=generator) for _ in range(rows)])


# -- sorting in the destination register ------------------------------------------------------------------------------


def test_the_best_of_several_tiles() -> None:
    ranks = orders(20, 128).float() - 64
    values, places = best_tile(ranks, torch.arange(128).expand(20, -1))
    expected = ranks.topk(32)
    assert torch.equal(values, expected.values)
    assert torch.equal(places, expected.indices)


def test_the_order_of_eight() -> None:
    ranks = orders(20, 8).float() - 4
    assert torch.equal(order_of_eight(ranks), ranks.argsort(-1, descending=True))


def test_equal_values_keep_all_their_indices() -> None:
    _, places = best_tile(torch.zeros(1, 64), torch.arange(64).expand(1, -1))
    assert len(set(places[0].tolist())) == 32
    assert sorted(order_of_eight(torch.ones(1, 8))[0].tolist()) == list(range(8))


# -- deepseek_grouped_gate --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", ((5,), (2, 33), (1, 2, 40)))
def test_grouped_gate(shape: tuple[int, ...], device: Any) -> None:
    tokens = torch.Size(shape).numel()
    logits = torch.randn(tokens, EXPERTS, generator=torch.Generator().manual_seed(1)).bfloat16().float()
    bias = (8 * 2.0 ** (orders(tokens, EXPERTS).float() / 16)).bfloat16().float()  # every key differs
    weights, found = ttnn.experimental.deepseek_grouped_gate(
        upload(logits.reshape(*shape, EXPERTS), "bfloat16", "TILE", device),
        upload(bias.reshape(*shape, EXPERTS), "bfloat16", "TILE", device),
        route_scale=2.5,
    )
    assert list(weights.shape) == list(found.shape) == [*shape, 8]
    scores = torch.sigmoid(logits)
    keys = (scores + bias).bfloat16().float()
    sums = keys.reshape(tokens, 8, 32).topk(2).values.sum(-1).topk(5)
    inside = torch.zeros(tokens, 8).scatter(1, sums.indices[:, :4], 1.0).repeat_interleave(32, 1)
    best = torch.where(inside > 0, keys, -torch.inf)
    ours = stored(found).reshape(tokens, 8)
    clear = sums.values[:, 3] > 1.01 * sums.values[:, 4]  # sums of others may be equal in bfloat16
    assert clear.sum() > tokens // 2
    assert torch.equal(best.gather(1, ours)[clear], best.topk(8).values[clear])
    picked = scores.gather(1, ours)
    expected = 2.5 * picked / picked.sum(-1, keepdim=True)
    assert (stored(weights).reshape(tokens, 8) - expected).abs().max() <= 0.02


# -- topk_router_gpt --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("best", (1, 4, 32))
@pytest.mark.parametrize("size", ((32, 64), (7, 320)))
def test_router(size: tuple[int, int], best: int, device: Any) -> None:
    rows, inner = size
    generator = torch.Generator().manual_seed(2)
    x = torch.randn(rows, inner, generator=generator).bfloat16().float()
    weight = (torch.randn(inner, 128, generator=generator) / 64).bfloat16().float()
    bias = (orders(rows, 128).float() / 16).bfloat16().float()
    found, shares = ttnn.experimental.topk_router_gpt(
        upload(x, "bfloat16", "TILE", device),
        weight_tensor=upload(weight, "bfloat16", "TILE", device),
        bias_tensor=upload(bias, "bfloat16", "TILE", device),
        k=best,
    )
    assert list(found.shape) == list(shares.shape) == [rows, best]
    logits = (x @ weight + bias).bfloat16().float()
    ours = stored(found)
    kept = logits.gather(1, ours)
    assert (kept - logits.topk(best).values).abs().max() <= 0.1
    assert all(len(set(row.tolist())) == best for row in ours)
    expected = torch.softmax(kept, -1)
    assert (stored(shares) - expected).abs().max() <= 0.1
    assert best == 1 or pcc(stored(shares), expected) >= LEAST_PCC["bfloat8_b"]
