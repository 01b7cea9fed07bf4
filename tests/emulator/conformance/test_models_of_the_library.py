"""Behaviour beside operations that models written for the library rely on, as recorded from the library."""

from __future__ import annotations

import pytest
import torch

import ttnn_emulator as ttnn

GRID = ttnn.CoreRangeSet({ttnn.CoreRange(ttnn.CoreCoord(0, 0), ttnn.CoreCoord(3, 0))})
OTHER_GRID = ttnn.CoreRangeSet({ttnn.CoreRange(ttnn.CoreCoord(0, 0), ttnn.CoreCoord(1, 0))})


@pytest.fixture
def device():
    device = ttnn.open_device(device_id=0)
    yield device
    ttnn.close_device(device)


def height_sharded(shape=(32, 64), grid=GRID) -> ttnn.MemoryConfig:
    shards = ttnn.ShardSpec(grid, shape, ttnn.ShardOrientation.ROW_MAJOR)
    return ttnn.MemoryConfig(ttnn.TensorMemoryLayout.HEIGHT_SHARDED, ttnn.BufferType.L1, shards)


def placed(device, config: ttnn.MemoryConfig, layout=ttnn.TILE_LAYOUT) -> ttnn.Tensor:
    values = torch.arange(128 * 64).reshape(128, 64) % 97
    return ttnn.from_torch(values.float(), dtype=ttnn.bfloat16, layout=layout, device=device, memory_config=config)


class TestShardSpec:
    def test_every_access_returns_a_new_list(self):
        shards = ttnn.ShardSpec(GRID, [32, 64], ttnn.ShardOrientation.ROW_MAJOR)
        shape = shards.shape
        shape[-1] += 64
        assert isinstance(shape, list) and shape == [32, 128]
        assert shards.shape == [32, 64]

    def test_all_fields_can_be_set(self):
        shards = ttnn.ShardSpec(GRID, [32, 64], ttnn.ShardOrientation.ROW_MAJOR)
        shards.shape, shards.grid, shards.orientation = [64, 32], OTHER_GRID, ttnn.ShardOrientation.COL_MAJOR
        assert shards == ttnn.ShardSpec(OTHER_GRID, [64, 32], ttnn.ShardOrientation.COL_MAJOR)

    @pytest.mark.parametrize(("name", "value"), [("shape", [1, 2, 3]), ("grid", 5), ("orientation", "rows")])
    def test_invalid_values_are_refused(self, name, value):
        with pytest.raises(TypeError):
            setattr(ttnn.ShardSpec(GRID, [32, 64], ttnn.ShardOrientation.ROW_MAJOR), name, value)

    def test_a_config_has_its_own_copy_of_the_shard_spec(self):
        shards = ttnn.ShardSpec(GRID, [32, 64], ttnn.ShardOrientation.ROW_MAJOR)
        config = ttnn.MemoryConfig(ttnn.TensorMemoryLayout.HEIGHT_SHARDED, ttnn.BufferType.L1, shards)
        shards.shape = [96, 96]
        assert config == height_sharded()
        config.shard_spec.shape = [64, 64]
        assert config == height_sharded((64, 64)) and hash(config) == hash(height_sharded((64, 64)))
        assert config != height_sharded()

    def test_a_tensor_is_not_affected_by_changes_of_the_config(self, device):
        config = height_sharded()
        made = ttnn.to_memory_config(placed(device, ttnn.DRAM_MEMORY_CONFIG), config)
        config.shard_spec.shape = [64, 64]
        made.memory_config().shard_spec.shape = [96, 64]
        assert made.memory_config() == height_sharded()

    def test_a_changed_config_applies_to_the_next_tensor(self, device):
        source = placed(device, height_sharded())
        config = source.memory_config()
        config.shard_spec.shape, config.shard_spec.grid = [64, 64], OTHER_GRID
        for _ in range(2):  # the second call is cached
            moved = ttnn.reshard(source, config)
            assert moved.memory_config() == height_sharded((64, 64), OTHER_GRID)
            assert torch.equal(ttnn.to_torch(moved), ttnn.to_torch(source))


class TestReturnToADevice:
    @pytest.mark.parametrize("config", [height_sharded(), ttnn.L1_MEMORY_CONFIG, ttnn.DRAM_MEMORY_CONFIG])
    def test_to_device_uses_dram_and_to_restores_the_memory_config(self, device, config):
        source = placed(device, config)
        host = ttnn.from_device(source)
        assert host.memory_config() == config
        assert ttnn.to_device(host, device).memory_config() == ttnn.DRAM_MEMORY_CONFIG
        assert host.to(device).memory_config() == source.cpu().to(device).memory_config() == config
        assert torch.equal(ttnn.to_torch(ttnn.to_device(host, device)), ttnn.to_torch(source))

    def test_a_layout_change_on_the_host_resets_the_memory_config(self, device):
        host = ttnn.from_device(placed(device, ttnn.L1_MEMORY_CONFIG))
        assert ttnn.to_layout(host, ttnn.TILE_LAYOUT).memory_config() == ttnn.L1_MEMORY_CONFIG
        assert ttnn.to_layout(host, ttnn.ROW_MAJOR_LAYOUT).memory_config() == ttnn.DRAM_MEMORY_CONFIG


@pytest.mark.parametrize("bias", [(32,), (1, 32)])
@pytest.mark.parametrize("activation", [None, "relu"])
def test_linear_takes_a_row_major_bias(device, bias, activation):
    torch.manual_seed(0)
    a, b, c = torch.randn(2, 64, 32), torch.randn(32, 32), torch.randn(bias)
    on_device = {"dtype": ttnn.bfloat16, "device": device}
    tiled = [ttnn.from_torch(each, layout=ttnn.TILE_LAYOUT, **on_device) for each in (a, b)]
    rows = ttnn.from_torch(c, layout=ttnn.ROW_MAJOR_LAYOUT, **on_device)
    product = ttnn.to_torch(ttnn.linear(*tiled, bias=rows, activation=activation)).float()
    expected = a @ b + c
    torch.testing.assert_close(product, expected.relu() if activation else expected, rtol=0.05, atol=0.2)


def test_gather_takes_a_source_with_unknown_padding(device):
    torch.manual_seed(0)
    values = torch.randint(0, 9, (2, 3, 40, 7)).float()
    places = torch.randint(0, 40, (2, 3, 16, 7))
    source = ttnn.from_torch(values, dtype=ttnn.bfloat16, layout=ttnn.TILE_LAYOUT, device=device)
    index = ttnn.from_torch(places, dtype=ttnn.uint32, layout=ttnn.TILE_LAYOUT, device=device)
    computed = ttnn.add(source, 1.0)  # its padding is unknown
    picked = ttnn.gather(computed, dim=2, index=index)
    assert torch.equal(ttnn.to_torch(picked).float(), torch.gather(values + 1, 2, places))
    with pytest.raises(ttnn.NotEmulated):  # and stays unknown
        ttnn.slice(computed, [0, 0, 0, 0], [2, 3, 64, 32], [1, 1, 1, 1])
