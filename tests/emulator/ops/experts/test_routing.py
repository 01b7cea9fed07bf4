"""Mixtures of experts compared with torch: the selected experts and their weights."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import ttnn_emulator as ttnn
from tests.emulator.ops.against_torch import LEAST_PCC, pcc, stored, upload
from ttnn_emulator.numerics.programs.reduction.tile_selection import best_tile, order_of_eight

EXPERTS = 256


def orders(rows: int, length: int, seed: int = 0) -> torch.Tensor:
    """One permutation per row."""
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
    weights, indices = ttnn.experimental.deepseek_grouped_gate(
        upload(logits.reshape(*shape, EXPERTS), "bfloat16", "TILE", device),
        upload(bias.reshape(*shape, EXPERTS), "bfloat16", "TILE", device),
        route_scale=2.5,
    )
    assert list(weights.shape) == list(indices.shape) == [*shape, 8]
    scores = torch.sigmoid(logits)
    keys = (scores + bias).bfloat16().float()
    sums = keys.reshape(tokens, 8, 32).topk(2).values.sum(-1).topk(5)
    inside = torch.zeros(tokens, 8).scatter(1, sums.indices[:, :4], 1.0).repeat_interleave(32, 1)
    best = torch.where(inside > 0, keys, -torch.inf)
    ours = stored(indices).reshape(tokens, 8)
    clear = sums.values[:, 3] > 1.01 * sums.values[:, 4]  # other sums may be equal in bfloat16
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
    indices, shares = ttnn.experimental.topk_router_gpt(
        upload(x, "bfloat16", "TILE", device),
        weight_tensor=upload(weight, "bfloat16", "TILE", device),
        bias_tensor=upload(bias, "bfloat16", "TILE", device),
        k=best,
    )
    assert list(indices.shape) == list(shares.shape) == [rows, best]
    logits = (x @ weight + bias).bfloat16().float()
    ours = stored(indices)
    kept = logits.gather(1, ours)
    assert (kept - logits.topk(best).values).abs().max() <= 0.1
    assert all(len(set(row.tolist())) == best for row in ours)
    expected = torch.softmax(kept, -1)
    assert (stored(shares) - expected).abs().max() <= 0.1
    assert best == 1 or pcc(stored(shares), expected) >= LEAST_PCC["bfloat8_b"]


# -- deepseek_moe_gate ------------------------------------------------------------------------------------------------


def test_gate_on_a_core_is_the_generalized_gate_with_groups(device: Any) -> None:
    cores = ttnn.CoreRangeSet([ttnn.CoreRange(ttnn.CoreCoord(0, 0), ttnn.CoreCoord(1, 0))])
    shards = ttnn.ShardSpec(cores, (32, 32), ttnn.ShardOrientation.ROW_MAJOR)
    config = ttnn.MemoryConfig(ttnn.TensorMemoryLayout.HEIGHT_SHARDED, ttnn.BufferType.L1, shards)
    logits = torch.randn(2, 16, 16, generator=torch.Generator().manual_seed(3))
    ids = torch.arange(EXPERTS).reshape(16, 16).expand(2, -1, -1)

    def placed(values: torch.Tensor, dtype: str) -> Any:
        return ttnn.to_memory_config(upload(values, dtype, "TILE", device), config)

    def run(gate: Any, **options: Any) -> tuple[torch.Tensor, torch.Tensor]:
        weights, indices = gate(
            placed(logits, "bfloat16"),
            bias_tensor=placed(torch.zeros(2, 16, 16), "bfloat16"),
            input_indices_tensor=placed(ids, "uint16"),
            output_tensor=placed(torch.zeros(2, 1, 16), "bfloat16"),
            output_indices_tensor=placed(torch.zeros(2, 1, 16), "uint16"),
            enable_sigmoid=True,
            **options,
        )
        return stored(weights), stored(indices)

    ours = run(ttnn.experimental.deepseek.moe.deepseek_moe_gate)
    theirs = run(ttnn.experimental.deepseek.moe.generalized_moe_gate, grouped=True)
    assert all(torch.equal(one, other) for one, other in zip(ours, theirs))
    assert abs(ours[0][:, 0, :8].sum(-1) - 2.5).max() <= 0.02


# -- sums over experts ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("wide", (True, False))
@pytest.mark.parametrize("dtype", ("bfloat16", "bfloat8_b"))
@pytest.mark.parametrize(("shape", "dim"), (((8, 1, 32, 128), 0), ((2, 7, 30, 128), 1)))
def test_sums_over_experts(shape: tuple[int, ...], dim: int, dtype: str, wide: bool, device: Any) -> None:
    x = torch.randn(shape, generator=torch.Generator().manual_seed(4))
    config = ttnn.WormholeComputeKernelConfig(math_fidelity=ttnn.MathFidelity.HiFi4, fp32_dest_acc_en=wide)
    parts = ttnn.experimental.deepseek_moe_fast_reduce_nc(
        upload(x, dtype, "TILE", device), dim, split_size=64, compute_kernel_config=config
    )
    assert len(parts) == 2
    ours = torch.cat([stored(part) for part in parts], -1)
    assert pcc(ours, x.sum(dim, keepdim=True)) >= LEAST_PCC[dtype if wide else "bfloat8_b"]


def test_partial_tiles_are_a_fault(device: Any) -> None:
    x = upload(torch.zeros(8, 1, 32, 250), "bfloat16", "TILE", device)
    with pytest.raises(ttnn.errors.ChipFault, match="where their tiles end"):
        ttnn.experimental.deepseek_moe_fast_reduce_nc(x, 0, split_size=125)


@pytest.mark.parametrize("axis", (0, 1))
@pytest.mark.parametrize("shared", (0, 2))
@pytest.mark.parametrize("tokens", (5, 40))
def test_weighted_sums_over_experts(tokens: int, shared: int, axis: int) -> None:
    experts, chosen = 16, 4
    generator = torch.Generator().manual_seed(5)
    x = torch.randn(chosen + shared, 1, tokens, 64, generator=generator).bfloat16().float()
    scores = torch.rand(tokens, 1, 1, chosen, generator=generator).bfloat16().float()
    indices = orders(tokens, experts)[:, :chosen].reshape(tokens, 1, 1, chosen)
    owners = (torch.arange(experts) % 4).reshape(1, experts)  # chips of a mesh of 2 × 2, row by row
    with ttnn.open_mesh_device(ttnn.MeshShape(2, 2)) as mesh:
        parts = ttnn.experimental.deepseek_moe_fast_reduce_nc_fused(
            upload(x, "bfloat16", "TILE", mesh),
            upload(indices, "uint16", "ROW_MAJOR", mesh),
            upload(owners, "uint16", "ROW_MAJOR", mesh),
            0,
            split_size=32,
            cluster_axis=axis,
            scores_tensor=upload(scores, "bfloat16", "ROW_MAJOR", mesh),
            num_shared_experts=shared,
            shared_expert_scale=0.25,
        )
        ours = [[ttnn.to_torch(one).float() for one in ttnn.get_device_tensors(part)] for part in parts]
    home = owners[0][indices]
    for chip in range(4):
        here = home % 2 == chip % 2 if axis == 0 else home // 2 == chip // 2
        weights = torch.where(here, scores, 0.0).permute(3, 1, 0, 2)
        weights = torch.cat([weights, torch.full((shared, 1, tokens, 1), 0.25)])
        reference = (x * weights).sum(0, keepdim=True)
        assert (torch.cat([part[chip] for part in ours], -1) - reference).abs().max() <= 0.05


def test_without_scores_sums_are_unweighted(device: Any) -> None:
    x = upload(torch.randn(8, 1, 32, 64), "bfloat16", "TILE", device)
    none = upload(torch.zeros(1, 32), "uint16", "ROW_MAJOR", device)
    fused = ttnn.experimental.deepseek_moe_fast_reduce_nc_fused(x, none, none, 0, split_size=64, cluster_axis=0)
    plain = ttnn.experimental.deepseek_moe_fast_reduce_nc(x, 0, split_size=64)
    assert torch.equal(stored(fused[0]), stored(plain[0]))


# -- deepseek_moe_post_combine_tilize ---------------------------------------------------------------------------------


@pytest.mark.parametrize("width", (64, 128, 256))
def test_tokens_in_tiles(width: int, device: Any) -> None:
    x = torch.randn(2, 1, 32, 256, generator=torch.Generator().manual_seed(6)).bfloat16().float()
    cores = ttnn.CoreRangeSet([ttnn.CoreRange(ttnn.CoreCoord(0, 0), ttnn.CoreCoord(256 // width - 1, 1))])
    config = ttnn.MemoryConfig(ttnn.BufferType.L1, ttnn.NdShardSpec([32, width], cores))
    result = ttnn.experimental.deepseek_moe_post_combine_tilize(
        upload(x, "bfloat16", "ROW_MAJOR", device), output_memory_config=config
    )
    assert result.layout is ttnn.TILE_LAYOUT
    assert torch.equal(stored(result), x)
