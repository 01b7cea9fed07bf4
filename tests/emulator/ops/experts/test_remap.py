"""Experts on a mesh: each chip gets the weights of its own experts, and the chips together all of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch

import ttnn_emulator as ttnn
from tests.emulator.ops.against_torch import upload
from ttnn_emulator.errors import ChipFault

MESH = (2, 4)


@pytest.fixture(scope="module")
def mesh() -> Iterator[Any]:
    with ttnn.open_mesh_device(ttnn.MeshShape(*MESH)) as opened:
        yield opened


def of_chips(tensor: Any) -> list[torch.Tensor]:
    read = [ttnn.to_torch(each) for each in ttnn.get_device_tensors(tensor)]
    return [each.float() if each.is_floating_point() else each.to(torch.int64) for each in read]


# -- routes -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ("bfloat16", "float32", "uint16"))
@pytest.mark.parametrize("axis", (0, 1))
def test_routes_are_distributed_in_order(axis: int, dtype: str, mesh: Any) -> None:
    places = torch.randperm(32, generator=torch.Generator().manual_seed(0))[:8].sort().values
    weights = torch.zeros(1, 32)
    weights[0, places] = torch.arange(1.0, 9.0)
    parts = MESH[axis]
    result = of_chips(ttnn.moe_routing_remap(upload(weights, dtype, "ROW_MAJOR", mesh), 8, parts, axis))
    assert len(result) == 8
    for chip, ours in enumerate(result):
        place = chip // MESH[1] if axis == 0 else chip % MESH[1]
        own = places.chunk(parts)[place]
        expected = torch.zeros(1, 32)
        expected[0, own] = weights[0, own]
        assert torch.equal(ours.float(), expected)


def test_a_negative_zero_is_a_weight(device: Any) -> None:
    weights = torch.tensor([[0.0, -0.0, 2.0, 3.0]])
    result = of_chips(ttnn.moe_routing_remap(upload(weights, "bfloat16", "ROW_MAJOR", device), 2, 1, 0))
    assert torch.equal(result[0], torch.tensor([[0.0, 0.0, 2.0, 0.0]]))


def test_too_few_routes_are_a_fault(device: Any) -> None:
    weights = upload(torch.eye(1, 32), "bfloat16", "ROW_MAJOR", device)
    with pytest.raises(ChipFault, match="1 of its 8"):
        ttnn.moe_routing_remap(weights, 8, 1, 0)


def test_routes_into_an_output_tensor(device: Any) -> None:
    weights = torch.arange(1.0, 5.0).reshape(1, 4)
    source, target = (upload(each, "bfloat16", "ROW_MAJOR", device) for each in (weights, torch.zeros(1, 4)))
    ttnn.moe_routing_remap(source, 4, 1, 1, optional_output_tensor=target)
    assert torch.equal(of_chips(target)[0], weights)


# -- tokens -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ("bfloat16", "float32"))
@pytest.mark.parametrize("group", (1, 4, 24))
def test_tokens_keep_the_weights_of_own_experts(group: int, dtype: str, mesh: Any) -> None:
    batch, sequence, experts, chosen, chips = 4, 6, 16, 3, 8
    generator = torch.Generator().manual_seed(1)
    owners = torch.randperm(experts, generator=generator) % chips
    mapping = torch.nn.functional.one_hot(owners, chips).reshape(1, 1, experts, chips)
    weights = torch.rand(1, batch, sequence, experts, generator=generator).bfloat16().float()
    metadata = torch.rand(batch * sequence, experts, generator=generator).topk(chosen).indices
    metadata = metadata.reshape(1, batch, sequence, chosen)
    mapped, reduced = ttnn.moe_expert_token_remap(
        upload(weights, dtype, "ROW_MAJOR", mesh),
        upload(mapping, "uint16", "ROW_MAJOR", mesh),
        upload(metadata, "uint16", "ROW_MAJOR", mesh),
        reduction_size=group,
    )
    picked = torch.zeros(batch * sequence, experts).scatter(1, metadata.reshape(-1, chosen), 1.0) > 0
    for chip, (ours, groups) in enumerate(zip(of_chips(mapped), of_chips(reduced))):
        own = (owners == chip).nonzero()[:, 0]
        expected = torch.where(picked, weights.reshape(-1, experts), 0.0)[:, own]
        assert torch.equal(ours, expected.reshape(1, batch, sequence, -1))
        assert torch.equal(groups, picked[:, own].reshape(-1, group, own.numel()).any(1).long().reshape(groups.shape))


def test_a_mapping_must_be_even(mesh: Any) -> None:
    mapping = torch.zeros(1, 1, 16, 8)
    mapping[..., 0] = 1
    with pytest.raises(ChipFault, match="takes it for 2"):
        ttnn.moe_expert_token_remap(
            upload(torch.zeros(1, 4, 4, 16), "bfloat16", "ROW_MAJOR", mesh),
            upload(mapping, "uint16", "ROW_MAJOR", mesh),
            upload(torch.zeros(1, 4, 4, 2), "uint16", "ROW_MAJOR", mesh),
        )
