"""Files of tensors that share a buffer."""

from __future__ import annotations

import pytest
import torch

import ttnn_emulator as ttnn

CORES = ttnn.CoreRangeSet([ttnn.CoreRange(ttnn.CoreCoord(0, 0), ttnn.CoreCoord(3, 0))])


def _view(fused, **changes):
    facts = {
        "tensor_shape": (32, 64), "shard_shape": (32, 16), "core_range_set": CORES, "dtype": ttnn.bfloat8_b,
        "tile_shape": (16, 32), "byte_offset": 64, "total_size": 128,
    }  # fmt: skip
    return ttnn.OverlappedTensor(fused_tensor=fused, **(facts | changes))


def _fused(device=None):
    values = torch.arange(64, dtype=torch.int32).reshape(1, 64)
    shards = ttnn.ShardSpec(CORES, (1, 16), ttnn.ShardOrientation.ROW_MAJOR)
    config = ttnn.MemoryConfig(ttnn.TensorMemoryLayout.WIDTH_SHARDED, ttnn.BufferType.L1, shards)
    return ttnn.from_torch(values, dtype=ttnn.uint32, device=device, memory_config=config if device else None)


@pytest.mark.parametrize("on_device", [False, True])
def test_views_round_trip_through_a_file(tmp_path, device, on_device):
    views = {"a": _view(_fused(device)), "b": None}
    views["b"] = _view(views["a"].fused_tensor, byte_offset=0, dtype=ttnn.bfloat16)
    path = str(tmp_path / "views.overlappedtensorbin")
    ttnn._ttnn.tensor.dump_overlapped_tensors(path, views)
    loaded = ttnn._ttnn.tensor.load_overlapped_tensors(path, device if on_device else None)
    assert list(loaded) == ["a", "b"]
    assert loaded["a"].fused_tensor is loaded["b"].fused_tensor
    assert ttnn.is_tensor_storage_on_device(loaded["a"].fused_tensor) == on_device
    assert torch.equal(ttnn.to_torch(loaded["a"].fused_tensor), ttnn.to_torch(views["a"].fused_tensor))
    for name, view in views.items():
        for fact in ("tensor_shape", "shard_shape", "core_range_set", "dtype", "tile_shape", "byte_offset"):
            assert getattr(loaded[name], fact) == getattr(view, fact)


def test_refuses_other_files_and_views(tmp_path):
    dump = ttnn._ttnn.tensor.dump_overlapped_tensors
    with pytest.raises(RuntimeError, match="extension"):
        dump(str(tmp_path / "views.tensorbin"), {"a": _view(_fused())})
    with pytest.raises(RuntimeError, match="at least one"):
        dump(str(tmp_path / "views.overlappedtensorbin"), {})
    with pytest.raises(RuntimeError, match="different fused tensor"):
        dump(str(tmp_path / "views.overlappedtensorbin"), {"a": _view(_fused()), "b": _view(_fused())})


def test_flatbuffer_files_may_have_any_name(tmp_path):
    tensor = ttnn.from_torch(torch.ones(2, 3))
    ttnn._ttnn.tensor.dump_tensor_flatbuffer(str(tmp_path / "any.bin"), tensor)
    loaded = ttnn._ttnn.tensor.load_tensor_flatbuffer(str(tmp_path / "any.bin"))
    assert torch.equal(ttnn.to_torch(loaded), torch.ones(2, 3))
