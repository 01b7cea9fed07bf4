"""`ttnn.TensorSpec`, core sets, tiles and their JSON, with the real library's answers as the expected values."""

from __future__ import annotations

import json

import pytest
import torch

import ttnn_emulator as ttnn

CORES = ttnn.num_cores_to_corerangeset(4, ttnn.CoreCoord(8, 8), True)


def core_set(*boxes: tuple[int, int, int, int]) -> ttnn.CoreRangeSet:
    return ttnn.CoreRangeSet(
        [ttnn.CoreRange(ttnn.CoreCoord(x0, y0), ttnn.CoreCoord(x1, y1)) for x0, y0, x1, y1 in boxes]
    )


@pytest.mark.parametrize(
    ("variant", "arguments", "layout", "shard"),
    [
        ("height_sharded", (), "ROW_MAJOR", [33, 97]),
        ("height_sharded", (), "TILE", [64, 128]),
        ("width_sharded", (), "ROW_MAJOR", [130, 25]),
        ("width_sharded", (), "TILE", [192, 32]),
        ("block_sharded", (), "ROW_MAJOR", [130, 32]),
        ("block_sharded", (), "TILE", [192, 32]),
        ("sharded", ((1, 5, 7),), "ROW_MAJOR", [1, 5, 32]),
        ("sharded", ((1, 5, 7),), "TILE", [1, 32, 32]),
        ("sharded_across_dims", ([0],), "ROW_MAJOR", [1, 65, 128]),
        ("sharded_across_dims", ([1],), "TILE", [2, 32, 128]),
        ("sharded_across_dims", ([0, 2],), "TILE", [1, 96, 32]),
        ("sharded_across_dims_except", ([0],), "ROW_MAJOR", [2, 1, 32]),
        ("sharded_across_dims_except", ([-1],), "TILE", [1, 32, 128]),
    ],
)
def test_sharded_variants(variant: str, arguments: tuple, layout: str, shard: list[int]) -> None:
    spec = ttnn.TensorSpec((2, 65, 97), ttnn.bfloat16, getattr(ttnn, f"{layout}_LAYOUT"))
    config = getattr(spec, variant)(*arguments, CORES).memory_config
    assert list(config.nd_shard_spec.shard_shape) == shard


def test_a_spec_is_a_tensor_spec_and_places_a_tensor(device) -> None:
    spec = ttnn.TensorSpec((64, 64), ttnn.bfloat16, ttnn.TILE_LAYOUT, buffer_type=ttnn.BufferType.L1)
    assert isinstance(spec, ttnn.TensorSpec)
    tensor = ttnn.allocate_tensor_on_device(spec.height_sharded(core_set((0, 0, 1, 0))), device)
    assert tensor.memory_config().memory_layout is ttnn.TensorMemoryLayout.HEIGHT_SHARDED


def test_core_sets_are_merged_and_subtracted() -> None:
    square = core_set((0, 0, 3, 3))
    assert str(square.subtract(core_set((1, 1, 1, 2)))) == "{[0-0 - 0-3], [2-0 - 3-3], [1-0 - 1-0], [1-3 - 1-3]}"
    assert str(square.subtract(core_set((2, 2, 6, 6)))) == "{[0-0 - 1-3], [2-0 - 3-1]}"
    assert str(square.subtract(square)) == "{}"
    assert str(square.merge(core_set((4, 0, 4, 3)))) == "{[0-0 - 4-3]}"
    assert str(square.merge(core_set((5, 0, 6, 3)))) == "{[0-0 - 3-3], [5-0 - 6-3]}"
    assert str(core_set((0, 0, 0, 0), (1, 0, 1, 0)).merge(core_set((0, 1, 1, 1)))) == "{[0-0 - 1-1]}"


def test_memory_configs_are_written_as_the_library_writes_them() -> None:
    config = ttnn.create_sharded_memory_config(
        (64, 64), core_grid=ttnn.CoreGrid(y=2, x=1), strategy=ttnn.ShardStrategy.HEIGHT
    )
    assert json.loads(config.to_json()) == {
        "buffer_type": 1,
        "created_with_nd_shard_spec": False,
        "memory_layout": 2,
        "per_core_allocation": False,
        "shard_spec": {
            "grid": [{"end": {"x": 0, "y": 1}, "start": {"x": 0, "y": 0}}],
            "orientation": 0,
            "shape": [32, 64],
        },
    }
    nd = ttnn.MemoryConfig(ttnn.BufferType.L1, ttnn.NdShardSpec((1, 32, 32), CORES))
    for each in (config, nd, ttnn.L1_MEMORY_CONFIG, ttnn.DRAM_MEMORY_CONFIG):
        assert ttnn.MemoryConfig.from_json(each.to_json()) == each


@pytest.mark.parametrize(
    ("shape", "face", "faces", "partial", "narrow", "size"),
    [((32, 32), [16, 16], 4, 0, 0, 2048), ((16, 32), [16, 16], 2, 1, 0, 1024), ((8, 32), [8, 16], 2, 1, 0, 512)],
)
def test_tiles(shape: tuple, face: list, faces: int, partial: int, narrow: int, size: int) -> None:
    tile = ttnn.Tile(shape)
    assert (tile.face_shape, tile.num_faces, tile.partial_face, tile.narrow_tile) == (face, faces, partial, narrow)
    assert tile.get_tile_size(ttnn.bfloat16) == size


def test_padding_a_host_tensor_to_full_tiles_and_back() -> None:
    values = torch.randn(2, 40, 50).bfloat16()
    padded = ttnn.from_torch(values).pad_to_tile(0.0)
    assert (list(padded.shape), list(padded.padded_shape)) == ([2, 40, 50], [2, 64, 64])
    assert torch.equal(ttnn.to_torch(padded.unpad_from_tile([2, 40, 50])), values)
