"""Meshes: distributing and concatenating tensors, and collectives."""

from __future__ import annotations

import pytest
import torch

import ttnn_emulator as ttnn


@pytest.fixture
def mesh():
    with ttnn.open_mesh_device(ttnn.MeshShape(1, 2), board="n300") as opened:
        yield opened


@pytest.fixture
def grid():
    with ttnn.open_mesh_device(ttnn.MeshShape(2, 4), board="t3000") as opened:
        yield opened


def to_mesh(values: torch.Tensor, mesh, mapper):
    return ttnn.from_torch(values, dtype=ttnn.float32, layout=ttnn.TILE_LAYOUT, device=mesh, mesh_mapper=mapper)


def test_shard_and_concatenate(mesh) -> None:
    values = torch.randn(4, 6)
    tensor = to_mesh(values, mesh, ttnn.ShardTensorToMesh(mesh, dim=1))
    assert list(tensor.shape) == [4, 3]
    assert torch.equal(ttnn.to_torch(tensor, mesh_composer=ttnn.ConcatMeshToTensor(mesh, dim=1)), values)
    with pytest.raises(ttnn.InvalidArgument, match="mesh_composer"):
        ttnn.to_torch(tensor)
    pieces = ttnn.get_device_tensors(tensor)
    assert torch.equal(torch.cat([ttnn.to_torch(piece) for piece in pieces], 1), values)


def test_replicate(mesh) -> None:
    values = torch.randn(4, 6)
    tensor = to_mesh(values, mesh, ttnn.ReplicateTensorToMesh(mesh))
    joined = ttnn.to_torch(tensor, mesh_composer=ttnn.ConcatMeshToTensor(mesh, dim=0))
    assert torch.equal(joined, torch.cat([values, values]))
    assert torch.equal(ttnn.to_torch(tensor), values)


def test_shard_over_two_axes(grid) -> None:
    values = torch.randn(8, 8)
    tensor = to_mesh(values, grid, ttnn.ShardTensor2dMesh(grid, (2, 4), dims=(0, 1)))
    assert list(tensor.shape) == [4, 2]
    joined = ttnn.to_torch(tensor, mesh_composer=ttnn.ConcatMesh2dToTensor(grid, (2, 4), dims=(0, 1)))
    assert torch.equal(joined, values)
    rows = to_mesh(values, grid, ttnn.ShardTensor2dMesh(grid, (2, 4), dims=(0, None)))
    assert list(rows.shape) == [4, 8]


def test_indivisible_sizes_are_refused(mesh) -> None:
    with pytest.raises(ttnn.InvalidArgument, match="not divisible by 2 devices"):
        to_mesh(torch.randn(3, 3), mesh, ttnn.ShardTensorToMesh(mesh, dim=0))


def test_operations_run_on_every_chip(mesh) -> None:
    values = torch.randn(4, 64)
    tensor = ttnn.relu(to_mesh(values, mesh, ttnn.ShardTensorToMesh(mesh, dim=0)))
    joined = ttnn.to_torch(tensor, mesh_composer=ttnn.ConcatMeshToTensor(mesh, dim=0))
    assert torch.equal(joined, values.relu())


def test_all_gather_and_reduce_scatter_and_all_reduce(mesh) -> None:
    values = torch.randn(1, 1, 32, 128)
    tensor = to_mesh(values, mesh, ttnn.ShardTensorToMesh(mesh, dim=3))
    gathered = ttnn.all_gather(tensor, dim=3)
    assert all(torch.equal(ttnn.to_torch(piece), values) for piece in ttnn.get_device_tensors(gathered))
    first, second = values.chunk(2, 3)
    # float32 passes through the matrix unit with 10 bits of its fraction.
    close = {"atol": 2**-8, "rtol": 2**-9}
    total = ttnn.all_reduce(tensor)
    for piece in ttnn.get_device_tensors(total):
        torch.testing.assert_close(ttnn.to_torch(piece), first + second, **close)
    scattered = ttnn.reduce_scatter(tensor, dim=3)
    joined = ttnn.to_torch(scattered, mesh_composer=ttnn.ConcatMeshToTensor(mesh, dim=3))
    torch.testing.assert_close(joined, first + second, **close)


def test_collectives_along_one_axis(grid) -> None:
    values = torch.arange(8.0).reshape(8, 1).expand(8, 32).contiguous()
    tensor = to_mesh(values, grid, ttnn.ShardTensorToMesh(grid, dim=0))
    rows = ttnn.all_gather(tensor, dim=0, cluster_axis=1)
    assert list(rows.shape) == [4, 32]
    assert ttnn.to_torch(ttnn.get_device_tensors(rows)[5])[:, 0].tolist() == [4, 5, 6, 7]
    columns = ttnn.all_reduce(tensor, cluster_axis=0)
    assert ttnn.to_torch(ttnn.get_device_tensors(columns)[1])[0, 0].item() == 1 + 5


def test_broadcast_partition_and_point_to_point(mesh) -> None:
    values = torch.randn(2, 64)
    tensor = to_mesh(values, mesh, ttnn.ShardTensorToMesh(mesh, dim=0))
    everywhere = ttnn.broadcast(tensor, ttnn.MeshCoordinate(0, 1))
    assert all(torch.equal(ttnn.to_torch(piece), values[1:]) for piece in ttnn.get_device_tensors(everywhere))
    both = ttnn.all_broadcast(tensor)
    assert torch.equal(ttnn.to_torch(ttnn.get_device_tensors(both[1])[0]), values[1:])
    parts = ttnn.mesh_partition(everywhere, -1)
    assert torch.equal(ttnn.to_torch(ttnn.get_device_tensors(parts)[1]), values[1:, 32:])
    sent = ttnn.point_to_point(tensor, ttnn.MeshCoordinate(0, 0), ttnn.MeshCoordinate(0, 1))
    assert torch.equal(ttnn.to_torch(ttnn.get_device_tensors(sent)[1]), values[:1])


def test_a_collective_on_one_chip_is_refused(device) -> None:
    tensor = ttnn.from_torch(torch.ones(32, 32), layout=ttnn.TILE_LAYOUT, device=device)
    with pytest.raises(ttnn.InvalidArgument, match="more than one device"):
        ttnn.all_gather(tensor, dim=0)


def test_a_mesh_that_no_board_has_is_refused() -> None:
    with pytest.raises(ttnn.InvalidArgument, match="no board of"):
        ttnn.open_mesh_device(ttnn.MeshShape(4, 4))


def test_mappers_and_composers_by_config(grid) -> None:
    values = torch.randn(8, 8)
    host = ttnn.from_torch(values)
    config = ttnn.MeshMapperConfig([ttnn.PlacementShard(0), ttnn.PlacementShard(1)])
    dealt = ttnn.distribute_tensor(host, ttnn.create_mesh_mapper(grid, config), grid)
    assert list(dealt.shape) == [4, 2]
    composer = ttnn.create_mesh_composer(grid, ttnn.MeshComposerConfig([0, 1]))
    assert torch.equal(ttnn.to_torch(dealt, mesh_composer=composer), values)
    assert torch.equal(ttnn.to_torch(ttnn.aggregate_tensor(ttnn.from_device(dealt), composer)), values)
    by_row = ttnn.create_mesh_mapper(grid, ttnn.MeshMapperConfig(row_dim=1, col_dim=None))
    assert list(ttnn.distribute_tensor(host, by_row).shape) == [8, 4]
    with pytest.raises(ttnn.InvalidArgument, match="one entry per axis"):
        ttnn.create_mesh_composer(grid, ttnn.MeshComposerConfig([0, 1, 2]))
    with pytest.raises(ttnn.InvalidArgument, match="one entry per axis"):
        ttnn.create_mesh_mapper(grid, ttnn.MeshMapperConfig([ttnn.PlacementShard(0)] * 3))
    assert repr(config) == "MeshMapperConfig(placements: [PlacementShard(0), PlacementShard(1)])"


def test_host_shards_are_combined(mesh) -> None:
    shards = [ttnn.from_torch(torch.full((2, 4), float(number))) for number in range(2)]
    whole = ttnn.from_host_shards(shards, ttnn.MeshShape(1, 2))
    there = ttnn.to_device(whole, mesh)
    joined = ttnn.to_torch(there, mesh_composer=ttnn.concat_mesh_to_tensor_composer(mesh, 0))
    assert joined[:, 0].tolist() == [0, 0, 1, 1]
    with pytest.raises(ttnn.InvalidArgument, match="do not fill a mesh of 2"):
        ttnn.from_host_shards(shards[:1], ttnn.MeshShape(1, 2))
    with pytest.raises(ttnn.InvalidArgument, match="shards differ"):
        ttnn.from_host_shards([shards[0], ttnn.from_torch(torch.ones(3))], ttnn.MeshShape(1, 2))


def test_device_shards_are_combined(mesh) -> None:
    values = torch.randn(4, 6)
    tensor = to_mesh(values, mesh, ttnn.shard_tensor_to_mesh_mapper(mesh, 0))
    again = ttnn.combine_device_tensors(tensors=ttnn.get_device_tensors(tensor))
    assert torch.equal(ttnn.to_torch(again, mesh_composer=ttnn.ConcatMeshToTensor(mesh, dim=0)), values)
    with pytest.raises(ttnn.InvalidArgument, match="on a device"):
        ttnn.combine_device_tensors(tensors=[ttnn.from_torch(values)])


def test_distribute_sets_the_default_mapper_and_composer(mesh) -> None:
    values = torch.randn(4, 6)
    with ttnn.distribute(ttnn.ShardTensorToMesh(mesh, dim=0)):
        tensor = ttnn.from_torch(values, device=mesh)
    assert list(tensor.shape) == [2, 6]
    with ttnn.distribute(ttnn.ConcatMeshToTensor(mesh, dim=0)):
        assert torch.equal(ttnn.to_torch(tensor), values)
    with pytest.raises(ttnn.InvalidArgument, match="mesh_composer"):
        ttnn.to_torch(tensor)


def test_coordinates_of_a_mesh() -> None:
    def coordinates(distribution, mesh) -> list[list[int]]:
        return [list(place) for place in ttnn.compute_distribution_to_mesh_mapping(distribution, mesh)]

    whole = ttnn.MeshShape(2, 4)
    assert coordinates(ttnn.MeshShape(2, 2), whole) == [[0, 0], [0, 1], [1, 0], [1, 1]]
    assert coordinates(ttnn.MeshShape(1, 8), whole) == [[row, column] for row in range(2) for column in range(4)]
    box = ttnn.MeshCoordinateRange(ttnn.MeshCoordinate(0, 1), ttnn.MeshCoordinate(1, 2))
    assert [list(place) for place in box] == [[0, 1], [0, 2], [1, 1], [1, 2]]
    assert ttnn.MeshCoordinateRange(whole) == ttnn.MeshCoordinateRange(
        ttnn.MeshCoordinate(0, 0), ttnn.MeshCoordinate(1, 3)
    )


def test_the_fabric_config_is_per_process(mesh) -> None:
    before = ttnn.get_fabric_config()
    try:
        ttnn.set_fabric_config(ttnn.FabricConfig.FABRIC_1D)
        assert ttnn.get_fabric_config() is ttnn.FabricConfig.FABRIC_1D
        assert ttnn.get_tt_fabric_max_payload_size_bytes() == 4352
        assert ttnn.get_num_links(mesh) == 1
        tensor = to_mesh(torch.randn(2, 32), mesh, ttnn.ShardTensorToMesh(mesh, dim=0))
        assert ttnn.get_usable_topology(tensor) is ttnn.Topology.Linear
        assert ttnn.get_usable_topology(tensor, ttnn.Topology.Ring) is ttnn.Topology.Linear
        ttnn.set_fabric_config(ttnn.FabricConfig.DISABLED)
        with pytest.raises(ttnn.InvalidArgument, match="not configured"):
            ttnn.get_tt_fabric_max_payload_size_bytes()
        with pytest.raises(TypeError, match="FabricConfig"):
            ttnn.set_fabric_config("FABRIC_1D")
    finally:
        ttnn.set_fabric_config(before)


def test_a_gather_over_two_axes_needs_a_fabric_of_two_dimensions(grid) -> None:
    before = ttnn.get_fabric_config()
    values = torch.randn(8, 32)
    tensor = to_mesh(values, grid, ttnn.ShardTensorToMesh(grid, dim=0))
    with pytest.raises(ttnn.InvalidArgument, match="cluster_axis"):
        ttnn.all_gather(ttnn.reshape(tensor, [1, 1, 32]), dim=0)
    try:
        ttnn.set_fabric_config(ttnn.FabricConfig.FABRIC_2D)
        gathered = ttnn.all_gather(ttnn.reshape(tensor, [1, 1, 32]), dim=0)
        assert torch.equal(ttnn.to_torch(gathered).reshape(8, 32), values)
    finally:
        ttnn.set_fabric_config(before)


def test_global_semaphores_occupy_l1_for_their_lifetime(mesh) -> None:
    cores = ttnn.CoreRangeSet([ttnn.CoreRange(ttnn.CoreCoord(0, 0), ttnn.CoreCoord(3, 3))])
    memory = mesh.memory(ttnn.BufferType.L1)
    before = memory.allocated
    semaphore = ttnn.create_global_semaphore(mesh, cores, 5)
    assert memory.allocated > before
    assert ttnn.get_global_semaphore_address(semaphore) == memory.lowest_used_address
    ttnn.reset_global_semaphore_value(semaphore, 3)
    assert semaphore.value == 3
    del semaphore
    assert memory.allocated == before
    with pytest.raises(ttnn.InvalidArgument, match="L1 or L1_SMALL"):
        ttnn.create_global_semaphore(mesh, cores, 0, ttnn.BufferType.DRAM)
