"""Memory configs with addresses per core, and single shards written from the host."""

from __future__ import annotations

import json

import pytest
import torch

import ttnn_emulator as ttnn


def sharded(cores: int, height: int) -> ttnn.MemoryConfig:
    grid = ttnn.CoreRangeSet([ttnn.CoreRange(ttnn.CoreCoord(0, 0), ttnn.CoreCoord(0, cores - 1))])
    shards = ttnn.ShardSpec(grid, [height, 32], ttnn.ShardOrientation.ROW_MAJOR)
    return ttnn.MemoryConfig(ttnn.TensorMemoryLayout.HEIGHT_SHARDED, ttnn.BufferType.L1, shards)


@pytest.mark.parametrize("kind", ["per_core_allocation", "range_lockstep_allocation"])
def test_allocation_modes_are_part_of_a_config(kind) -> None:
    plain, other = sharded(2, 32), sharded(2, 32)
    getattr(other, f"experimental_set_{kind}")(True)
    assert plain != other and hash(plain) != hash(other)
    assert f"{kind}=1" in repr(other) and json.loads(other.to_json())[kind] is True
    assert ttnn.MemoryConfig.from_json(other.to_json()) == other


def test_buffers_with_addresses_per_core_are_not_emulated(device) -> None:
    config = sharded(2, 32)
    config.experimental_set_per_core_allocation(True)
    with pytest.raises(ttnn.NotEmulated, match="separate address per core"):
        ttnn.from_torch(torch.ones(64, 32), layout=ttnn.TILE_LAYOUT, device=device, memory_config=config)


@pytest.mark.parametrize("rows", [64, 50])
def test_only_the_named_shards_are_written(device, rows) -> None:
    new = ttnn.from_torch(torch.ones(rows, 32), layout=ttnn.TILE_LAYOUT)
    on_device = ttnn.from_torch(
        torch.zeros(rows, 32), layout=ttnn.TILE_LAYOUT, device=device, memory_config=sharded(2, 32)
    )
    one = ttnn.CoreRangeSet([ttnn.CoreRange(ttnn.CoreCoord(0, 1), ttnn.CoreCoord(0, 1))])
    ttnn.copy_host_to_device_tensor_partial(new, on_device, one)
    expected = torch.cat([torch.zeros(32, 32), torch.ones(rows - 32, 32)])
    assert torch.equal(ttnn.to_torch(on_device), expected)
    ttnn.copy_host_to_device_tensor_partial(new, on_device, ttnn.CoreRangeSet([]))
    assert torch.equal(ttnn.to_torch(on_device), expected)
    interleaved = ttnn.from_torch(torch.zeros(rows, 32), layout=ttnn.TILE_LAYOUT, device=device)
    with pytest.raises(RuntimeError, match="must be sharded"):
        ttnn.copy_host_to_device_tensor_partial(new, interleaved, one)


def test_shards_survive_a_file(device, tmp_path) -> None:
    tensor = ttnn.from_torch(torch.ones(64, 32), layout=ttnn.TILE_LAYOUT, device=device, memory_config=sharded(2, 32))
    ttnn.dump_tensor(tmp_path / "a.tensorbin", tensor)
    assert ttnn.load_tensor(tmp_path / "a.tensorbin").memory_config() == tensor.memory_config()
    assert ttnn.load_tensor(tmp_path / "a.tensorbin", device=device).memory_config() == tensor.memory_config()


def test_tensor_specs_take_shards_instead_of_a_layout() -> None:
    grid = ttnn.CoreRangeSet([ttnn.CoreRange(ttnn.CoreCoord(0, 0), ttnn.CoreCoord(1, 1))])
    shards = ttnn.NdShardSpec([1, 32, 32], grid)
    spec = ttnn.TensorSpec([2, 64, 64], ttnn.bfloat16, ttnn.TILE_LAYOUT, shards, ttnn.BufferType.L1)
    assert spec.memory_config.buffer_type is ttnn.BufferType.L1
    assert list(spec.memory_config.nd_shard_spec.shard_shape) == [1, 32, 32]
    plain = ttnn.TensorSpec([2, 64, 64], ttnn.bfloat16, ttnn.TILE_LAYOUT, ttnn.BufferType.L1)
    assert plain.memory_config == ttnn.L1_MEMORY_CONFIG


def test_only_cores_with_shards_are_listed(device) -> None:
    tensor = ttnn.from_torch(torch.ones(64, 32), layout=ttnn.TILE_LAYOUT, device=device, memory_config=sharded(4, 32))
    assert [str(core) for core in ttnn.get_optimal_worker_cores_for_sharded_tensor(tensor)] == ["0-0", "0-1"]
