"""Gates of experts in prefill, compared with torch, and the feed-forward network of one expert."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import ttnn_emulator as ttnn
from tests.emulator.ops.against_torch import same_buffer, stored, upload, values
from ttnn_emulator.errors import ChipFault

PREFILL = ttnn.experimental.deepseek_prefill
ACTIVATIONS = {
    "sigmoid": torch.sigmoid,
    "sqrtsoftplus": lambda x: torch.nn.functional.softplus(x).sqrt(),
}


def scores_of(shape: tuple[int, ...], seed: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def cut(x: torch.Tensor) -> torch.Tensor:
    """float32 truncated by a source register."""
    return (x.contiguous().view(torch.int32) & -0x2000).view(torch.float32)


def expected_weights(scores: torch.Tensor, chosen: torch.Tensor, scale: float) -> torch.Tensor:
    own = torch.gather(scores, -1, chosen)
    return scale * own / own.sum(-1, keepdim=True)


@pytest.mark.parametrize("function", ACTIVATIONS)
@pytest.mark.parametrize("groups, experts", [(1, 384), (8, 256)])
@pytest.mark.parametrize("stable", [False, True])
def test_the_best_experts_are_selected(stable: bool, groups: int, experts: int, function: str, device: Any) -> None:
    logits, bias = scores_of((2, 40, experts), 1), 0.1 * scores_of((2, 40, experts), 2)
    # Groups distant enough to be distinguished with 11 bits.
    bias += torch.tensor([3, 7, 1, 5, 0, 6, 2, 4]).mul(0.25).repeat_interleave(experts // 8) if groups > 1 else 0
    weights, chosen = PREFILL.moe_grouped_topk(
        upload(logits, "float32", "TILE", device),
        upload(bias, "float32", "TILE", device),
        n_groups=groups,
        score_func=function,
        stable_sort=stable,
        route_scale=2.5,
    )
    own = ACTIVATIONS[function](cut(logits))
    judged = own + cut(bias)
    if groups > 1:
        sums = judged.unflatten(-1, (8, 32)).topk(2, -1).values.sum(-1)
        best = sums.topk(4, -1).indices
        kept = torch.zeros(2, 40, 8).scatter(-1, best, 1.0).repeat_interleave(32, -1)
        judged = judged.masked_fill(kept == 0, -torch.inf)
    indices = stored(chosen).long()
    reference = judged.topk(8, -1)
    chosen_scores = torch.gather(judged, -1, indices)
    assert (chosen_scores - reference.values).abs().max() < 5e-3  # keys up to 4 keep 11 bits
    assert (stored(weights) - expected_weights(own, indices, 2.5)).abs().max() < 2e-2


@given(st.integers(0, 999))
def test_equal_scores_keep_their_order_if_stable(seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randint(0, 4, (32, 128), generator=generator).float()
    with ttnn.open_device(device_id=0) as device:
        x, none = (upload(each, "float32", "TILE", device) for each in (logits, torch.zeros_like(logits)))
        _, chosen = PREFILL.moe_grouped_topk(x, none, n_groups=1, n_activated_experts=16, stable_sort=True)
        order = torch.argsort(logits, dim=-1, descending=True, stable=True)[:, :16]
        assert torch.equal(stored(chosen).long(), order)


@pytest.mark.parametrize("side", [0, 1])
def test_padded_tokens_have_no_expert(side: int, device: Any) -> None:
    x = upload(scores_of((64, 64), 1), "float32", "TILE", device)
    config = ttnn.from_torch(torch.tensor([[40, side]]), dtype=ttnn.uint32, layout=ttnn.ROW_MAJOR_LAYOUT, device=device)
    _, chosen = PREFILL.moe_grouped_topk(x, x, n_groups=1, padding_config=config)
    none = (stored(chosen) == 64).all(-1)
    assert none.tolist() == [(row >= 40 if side == 0 else row < 24) for row in range(64)]


def test_biased_scores_can_be_returned(device: Any) -> None:
    logits = scores_of((32, 64), 1)
    x, dump = upload(logits, "float32", "TILE", device), upload(torch.zeros(32, 64), "float32", "TILE", device)
    results = PREFILL.moe_grouped_topk(x, x, n_groups=1, biased_scores=dump)
    assert len(results) == 2
    assert (stored(dump) - (cut(logits).sigmoid() + cut(logits))).abs().max() < 4e-3


@pytest.mark.parametrize("function", ACTIVATIONS)
def test_experts_from_a_table(function: str, device: Any) -> None:
    logits = scores_of((50, 64), 1)
    table = torch.randint(0, 64, (100, 6), generator=torch.Generator().manual_seed(2))
    ids = torch.randint(0, 100, (2, 32), generator=torch.Generator().manual_seed(3))

    def rows(content: torch.Tensor, dtype: Any) -> Any:
        return ttnn.from_torch(content, dtype=dtype, layout=ttnn.ROW_MAJOR_LAYOUT, device=device)

    x = upload(logits, "float32", "TILE", device)
    weights, chosen = PREFILL.moe_hash_gate(
        x, rows(ids, ttnn.uint32), rows(table, ttnn.uint16), n_activated_experts=6, score_func=function
    )
    named = table[ids.reshape(-1)[:50]]
    assert torch.equal(stored(chosen).long(), named)
    expected = expected_weights(ACTIVATIONS[function](cut(logits)), named, 1.0)
    assert (stored(weights) - expected).abs().max() < 4e-3
    with pytest.raises(ChipFault, match="token"):
        PREFILL.moe_hash_gate(x, rows(ids + 90, ttnn.uint32), rows(table, ttnn.uint16), n_activated_experts=6)


@pytest.mark.parametrize("rows", [96, 2080])
def test_feed_forward(rows: int, device: Any) -> None:
    shapes = ((rows, 64), (64, 128), (64, 128), (128, 64))
    x, gate, up, down = (
        upload(values(shape, -0.5, 0.5, "bfloat16", seed), "bfloat16", "TILE", device)
        for seed, shape in enumerate(shapes)
    )
    output = upload(torch.zeros(rows, 64), "bfloat16", "TILE", device)
    result = PREFILL.routed_expert_ffn(x, gate, up, down, output=output)
    assert same_buffer(result, output)
    a, b, c, d = map(stored, (x, gate, up, down))
    expected = (torch.nn.functional.silu(a @ b) * (a @ c)) @ d
    assert torch.corrcoef(torch.stack([stored(result).flatten(), expected.flatten()]))[0, 1] > 0.999
