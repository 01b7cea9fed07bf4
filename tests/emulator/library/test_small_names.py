"""Rarely used names of the library: members of small classes, diagrams of meshes, timings, delays."""

from __future__ import annotations

import json
import pathlib

import pytest
import torch

import ttnn_emulator as ttnn

DATA_MOVEMENT = ttnn._ttnn.operations.data_movement
CORES = ttnn.CoreRangeSet([ttnn.CoreRange(ttnn.CoreCoord(1, 2), ttnn.CoreCoord(3, 4))])


@pytest.fixture
def device():
    with ttnn.open_device(device_id=0) as opened:
        yield opened


def tiles(device, *shape, dtype=ttnn.bfloat16):
    return ttnn.from_torch(torch.randn(*shape), dtype=dtype, layout=ttnn.TILE_LAYOUT, device=device)


def test_cores_round_trip_through_json():
    core, cores = ttnn.CoreCoord(1, 2), CORES.ranges()[0]
    assert core.to_json() == '{"x":1,"y":2}'
    assert ttnn.CoreCoord.from_json(core.to_json()) == core
    assert cores.to_json() == '{"end":{"x":3,"y":4},"start":{"x":1,"y":2}}'
    assert ttnn.CoreRange.from_json(cores.to_json()) == cores


def test_numbers_of_cores_are_read_as_32_bits():
    assert ttnn.CoreCoord.from_json('{"x":1.5,"y":-1}') == ttnn.CoreCoord(1, 2**32 - 1)


@pytest.mark.parametrize("text", ['{"x":1}', "5", "{", '{"x":"1","y":2}', '{"x":true,"y":2}'])
def test_invalid_cores_are_refused(text):
    with pytest.raises(RuntimeError):
        ttnn.CoreCoord.from_json(text)


def test_shapes_of_nd_shards_are_read_but_not_written():
    spec = ttnn.NdShardSpec([1, 32, 64], CORES, ttnn.ShardOrientation.COL_MAJOR)
    fields = json.loads(spec.to_json())
    assert fields["orientation"] == 1 and isinstance(fields["shard_shape"], str)
    with pytest.raises(RuntimeError):
        ttnn.NdShardSpec.from_json(spec.to_json())
    assert ttnn.NdShardSpec.from_json(json.dumps(fields | {"shard_shape": [1, 32, 64]})) == spec


def test_tensor_spec_has_its_members_on_the_class():
    spec = ttnn.TensorSpec((64, 96), ttnn.bfloat16, ttnn.TILE_LAYOUT, buffer_type=ttnn.BufferType.L1)
    assert ttnn.TensorSpec.height_sharded(spec, CORES) == spec.height_sharded(CORES)
    assert ttnn.TensorSpec.dtype.__get__(spec) is ttnn.bfloat16


def test_meshes_have_views(device):
    view = device.get_view()
    assert (view.shape(), view.num_devices()) == (ttnn.MeshShape(1, 1), 1)
    assert view.is_local(ttnn.MeshCoordinate(0, 0))
    assert list(view.get_local_mesh_coord_range()) == [ttnn.MeshCoordinate(0, 0)]
    with pytest.raises(RuntimeError):
        view.is_local(ttnn.MeshCoordinate(0, 1))
    assert ttnn.MeshCoordinate(1, 2, 3).dims() == 3


def test_mappers_have_their_config(device):
    config = ttnn.ShardTensorToMesh(device, dim=0).config()
    assert repr(config) == "MeshMapperConfig(placements: [PlacementShard(0)], mesh_shape_override=MeshShape([1]))"


def test_complex_tensors_have_two_parts(device):
    real, imag = tiles(device, 32, 32), tiles(device, 32, 32)
    made = ttnn.complex_tensor(real, imag)
    assert made[0] is real and made[1] is imag
    with pytest.raises(RuntimeError):
        made[2]


@pytest.mark.parametrize("strategy", ["SMALL_W", "LARGE_W"])
def test_softmax_takes_its_strategy(device, strategy):
    x = tiles(device, 2, 64, 96)
    chosen = ttnn.operations.moreh.SoftmaxOpParallelizationStrategy[strategy]
    result = ttnn.to_torch(ttnn.moreh_softmax(x, 2, strategy=chosen)).float()
    torch.testing.assert_close(result, torch.softmax(ttnn.to_torch(x).float(), -1), atol=0.01, rtol=0.05)
    with pytest.raises(RuntimeError):
        ttnn.moreh_softmax(x, 1, strategy=chosen)


@pytest.mark.parametrize("shape", [(64, 96), (2, 3, 17, 40)])
def test_both_untilize_kernels_agree(device, shape):
    x = tiles(device, *shape)
    expected = ttnn.to_torch(x)
    native = DATA_MOVEMENT.untilize_force_native(x)
    assert torch.equal(ttnn.to_torch(native), expected)
    programs = device.num_program_cache_entries()
    assert torch.equal(ttnn.to_torch(DATA_MOVEMENT.untilize_force_codegen(x)), expected)
    assert torch.equal(ttnn.to_torch(ttnn.untilize(x)), expected)
    assert device.num_program_cache_entries() == programs + 1


def test_untilize_falls_back_to_the_native_kernel(device):
    x = tiles(device, 60, 64, dtype=ttnn.bfloat8_b)
    DATA_MOVEMENT.untilize_force_native(x)
    programs = device.num_program_cache_entries()
    ttnn.untilize(x)
    assert device.num_program_cache_entries() == programs
    with pytest.raises(RuntimeError, match="does not support"):
        DATA_MOVEMENT.untilize_force_codegen(x)


def test_deallocated_buffers_free_their_memory(device):
    x = tiles(device, 64, 64)
    ttnn.device.DeallocateBuffers(device)
    assert ttnn.get_memory_view(device, ttnn.BufferType.DRAM).total_bytes_allocated_per_bank == 0
    assert x.is_allocated()
    x.deallocate()
    assert not x.is_allocated()


def test_delays_launch_a_program(device):
    ttnn.apply_device_delay(device, [[7]])
    ttnn.apply_device_delay(device, [[7]], subdevice_id=ttnn.SubDeviceId(0))
    assert device.num_program_cache_entries() == 1
    with pytest.raises(RuntimeError):
        ttnn.apply_device_delay(device, [[7, 8]])


def test_nothing_is_timed():
    assert ttnn.get_all_programs_perf_data() == ttnn.get_latest_programs_perf_data() == {}


def test_the_cluster_is_written_to_a_file():
    path = pathlib.Path(ttnn.cluster.serialize_cluster_descriptor())
    assert "  0: wormhole_b0" in path.read_text(encoding="utf-8").splitlines()


def test_diagrams_show_shards(device, capsys):
    ttnn.visualize_mesh_device(device)
    ttnn.visualize_tensor(tiles(device, 64, 96))
    ttnn.visualize_system_mesh()
    shown = capsys.readouterr().out
    assert "MeshDevice(rows=1, cols=1)" in shown and "Shape: [64, 96]" in shown and "[:, :]" in shown
