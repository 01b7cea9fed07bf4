"""Weights of experts: the device packs them like torch, and in the layout that the ring reads."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import ttnn_emulator as ttnn
from tests.emulator.ops.against_torch import upload
from ttnn_emulator.errors import InvalidArgument

TILE = 32
HIDDEN, INTERMEDIATE = 64, 96


def drawn(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape))).bfloat16()


def on(device: Any, tensor: torch.Tensor) -> Any:
    return upload(tensor, "bfloat16", "ROW_MAJOR", device)


@pytest.fixture
def maps(device: Any) -> Any:
    return ttnn.experimental.get_weight_core_shard_maps(device, HIDDEN, INTERMEDIATE)


# -- cores ------------------------------------------------------------------------------------------------------------


def test_groups_of_cores_are_disjoint(device: Any) -> None:
    taken = ttnn.CoreRangeSet([ttnn.CoreRange(ttnn.CoreCoord(6, 0), ttnn.CoreCoord(7, 3))])
    for mux in (ttnn.CoreRangeSet([]), taken):
        combining = ttnn.experimental.get_moe_combine_cores(device, 4, 2, 4096, mux)
        drain = ttnn.experimental.get_moe_tilize_drain_core(device, 4, 2, 4096, mux)
        box = ttnn.experimental.get_moe_worker_mcast_bounding_box(device, 4, 2, 4096, mux)
        around = ttnn.CoreRangeSet([ttnn.CoreRange(core, core) for core in combining]).bounding_box()
        assert around.size() == len(combining) == 8
        assert drain not in combining and drain.y >= 6
        assert all(box.contains(core) for core in (*combining, drain))
        assert not any(mux.contains(core) for core in (*combining, drain))


def test_cores_are_those_of_the_library(device: Any) -> None:
    """As returned by ttnn 0.81.1 on a mock n150."""
    combining = ttnn.experimental.get_moe_combine_cores(device, 1, 1, 4096)
    assert [(core.x, core.y) for core in combining] == [(6, 0)]
    drain = ttnn.experimental.get_moe_tilize_drain_core(device, 1, 1, 4096)
    assert (drain.x, drain.y) == (7, 7)


def test_too_many_cores_are_rejected(device: Any) -> None:
    with pytest.raises(InvalidArgument, match="do not fit"):
        ttnn.experimental.get_moe_combine_cores(device, 16, 7, 4096)


# -- weights ----------------------------------------------------------------------------------------------------------


def test_every_core_has_its_share(maps: Any) -> None:
    assert sum(maps.w0_w1_shard_map) == INTERMEDIATE // TILE
    assert sum(last for last, _ in maps.w2_shard_map) == HIDDEN // TILE
    assert maps.dram_core_range_set.num_cores() == len(maps.w0_w1_shard_map)


@pytest.mark.parametrize("has_bias", (False, True))
def test_the_device_packs_as_torch_does(has_bias: bool, device: Any, maps: Any) -> None:
    utils, experimental = ttnn.experimental.moe_compute_utils, ttnn.experimental
    sizes = {"L": 1, "E": 1, "K": HIDDEN, "N": INTERMEDIATE}
    gate, up, down = drawn(1, 1, HIDDEN, INTERMEDIATE), drawn(1, 1, HIDDEN, INTERMEDIATE), drawn(1, 1, 96, 64)
    biases = [drawn(1, 1, INTERMEDIATE), drawn(1, 1, INTERMEDIATE)]
    below = drawn(1, 1, HIDDEN)
    if has_bias:
        uploaded = [on(device, each) for each in (gate, up, *biases)]
        first = experimental.prepare_w0_w1_tensor_with_bias(*uploaded, **sizes)
        second = experimental.prepare_w2_tensor_with_bias(on(device, down), on(device, below), **sizes)
        expected = (
            utils.prepare_w0_w1_tensor_with_bias(gate, up, *biases, **sizes, shard_map=maps.w0_w1_shard_map),
            utils.prepare_w2_tensor_with_bias(
                down, below, **sizes, w2_shard_map=maps.w2_shard_map, w0_w1_shard_map=maps.w0_w1_shard_map
            ),
        )
    else:
        first = experimental.prepare_w0_w1_tensor_for_moe_compute(on(device, gate), on(device, up), **sizes)
        second = experimental.prepare_w2_tensor_for_moe_compute(on(device, down), **sizes)
        expected = (
            utils.prepare_w0_w1_tensor_for_moe_compute(gate, up, **sizes, shard_map=maps.w0_w1_shard_map),
            utils.prepare_w2_tensor_for_moe_compute(
                down, **sizes, w2_shard_map=maps.w2_shard_map, w0_w1_shard_map=maps.w0_w1_shard_map
            ),
        )
    for ours, theirs in zip((first, second), expected, strict=True):
        assert torch.equal(ttnn.to_torch(ours), theirs)


def test_packed_weights_fill_their_banks(device: Any) -> None:
    """The requested shards have exactly the rows of the packed tensor."""
    utils = ttnn.experimental.moe_compute_utils
    for hidden, intermediate in ((64, 96), (512, 384), (2560, 640), (2880, 2880)):
        gates, downs, banks = utils.get_weight_core_shard_maps(device, hidden, intermediate)
        first, second, *_ = utils.get_weight_mem_configs(2, 1, hidden, intermediate, gates, downs, banks)
        empty = torch.zeros(2, 1, hidden, intermediate)
        packed = utils.prepare_w0_w1_tensor_for_moe_compute(empty, empty, 2, 1, hidden, intermediate, gates)
        assert packed.numel() == banks.num_cores() * first.shard_spec.shape[0] * 128
        empty = empty.transpose(2, 3)
        packed = utils.prepare_w2_tensor_for_moe_compute(empty, 2, 1, intermediate, hidden, downs, gates)
        assert packed.numel() == banks.num_cores() * second.shard_spec.shape[0] * 128


def test_the_first_column_is_in_the_first_bank(device: Any, maps: Any) -> None:
    """Tiles of one column alternate: gate and up of the first row, then of the second."""
    gate, up = drawn(1, 1, HIDDEN, INTERMEDIATE), -drawn(1, 1, HIDDEN, INTERMEDIATE)
    packed = ttnn.experimental.moe_compute_utils.prepare_w0_w1_tensor_for_moe_compute(
        gate, up, 1, 1, HIDDEN, INTERMEDIATE, maps.w0_w1_shard_map
    )
    row = packed[0, 0, 0, 0, :TILE]
    upper, lower = gate[0, 0, :TILE, :TILE], gate[0, 0, TILE : 2 * TILE, :TILE]
    assert torch.equal(row, torch.cat([upper, -upper, lower, -lower], dim=1))


def test_weights_are_rounded_by_the_host(device: Any) -> None:
    weight = drawn(64, 96)
    tensor = upload(weight, "bfloat16", "TILE", device)
    result = ttnn.experimental.quantize_weights_via_host(
        tensor, dtype=ttnn.bfloat4_b, memory_config=ttnn.DRAM_MEMORY_CONFIG
    )
    expected = ttnn.to_dtype(ttnn.from_torch(weight, dtype=ttnn.bfloat16, layout=ttnn.TILE_LAYOUT), ttnn.bfloat4_b)
    assert result.dtype == ttnn.bfloat4_b
    assert torch.equal(ttnn.to_torch(result), ttnn.to_torch(expected))


# -- shared experts ---------------------------------------------------------------------------------------------------


def test_shared_experts_go_to_the_nearest_chip(device: Any) -> None:
    utils = ttnn.experimental.moe_compute_utils
    mapping = utils.map_shared_experts(
        torch.zeros(8, 4, dtype=torch.int32), {4: [0, 6], 5: [3, 5], 6: [1, 7], 7: [2, 4]}, (2, 4), 1
    )
    assert mapping[:, 4].tolist() == [0, 0, 0, 0, 6, 6, 6, 6]
    with pytest.raises(RuntimeError, match="numbered from 4"):
        utils.map_shared_experts(torch.zeros(1, 4), {9: [0]}, (1, 1), 0)


def test_shared_weights_follow_routed_ones(device: Any) -> None:
    utils = ttnn.experimental.moe_compute_utils
    routed = [drawn(1, 4, 8, 6), drawn(1, 4, 8, 6), drawn(1, 4, 6, 8)]
    shared = [{4: drawn(1, 1, *each.shape[2:])} for each in routed]
    for ours, own, more in zip(
        utils.add_shared_expert_weights(*routed, *shared, {4: [0, 1]}, 2), routed, shared, strict=True
    ):
        assert torch.equal(ours, torch.cat([own[:, :2], more[4], own[:, 2:], more[4]], dim=1))


def test_chips_share_the_columns_of_a_shared_expert() -> None:
    """A chip has twelve of 24 tile columns: one per core of the ring, followed by a column of zeros."""
    columns = 24
    gate = (torch.arange(columns) + 1.0).repeat_interleave(TILE).expand(1, 1, TILE, -1)
    with ttnn.open_mesh_device(ttnn.MeshShape(1, 2)) as mesh:
        first, second = (on(mesh, each.contiguous()) for each in (gate, gate.transpose(2, 3)))
        result = ttnn.experimental.add_shared_expert_weights(first, first, second, first, first, second, 0)
        for tensor, dim in zip(result, (3, 3, 2), strict=True):
            for chip, part in enumerate(ttnn.get_device_tensors(tensor)):
                read = ttnn.to_torch(part).float()
                line = read.select(5 - dim, 0)[:, :, ::TILE]
                own = torch.arange(12) + 1.0 + 12 * chip
                assert line[0, 0].tolist() == (torch.arange(columns) + 1.0).tolist()
                assert line[0, 1].tolist() == torch.stack([own, torch.zeros(12)], dim=1).flatten().tolist()
