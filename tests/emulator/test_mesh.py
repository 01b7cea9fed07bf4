"""Meshes: dealing tensors out, joining them, and collectives."""

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


def deal(values: torch.Tensor, mesh, mapper):
    return ttnn.from_torch(values, dtype=ttnn.float32, layout=ttnn.TILE_LAYOUT, device=mesh, mesh_mapper=mapper)


def test_shard_and_join(mesh) -> None:
    values = torch.randn(4, 6)
    tensor = deal(values, mesh, ttnn.ShardTensorToMesh(mesh, dim=1))
    assert list(tensor.shape) == [4, 3]
    assert torch.equal(ttnn.to_torch(tensor, mesh_composer=ttnn.ConcatMeshToTensor(mesh, dim=1)), values)
    with pytest.raises(ttnn.InvalidArgument, match="mesh_composer"):
        ttnn.to_torch(tensor)
    pieces = ttnn.get_device_tensors(tensor)
    assert torch.equal(torch.cat([ttnn.to_torch(piece) for piece in pieces], 1), values)


def test_replicate(mesh) -> None:
    values = torch.randn(4, 6)
    tensor = deal(values, mesh, ttnn.ReplicateTensorToMesh(mesh))
    joined = ttnn.to_torch(tensor, mesh_composer=ttnn.ConcatMeshToTensor(mesh, dim=0))
    assert torch.equal(joined, torch.cat([values, values]))
    assert torch.equal(ttnn.to_torch(tensor), values)


def test_shard_over_two_axes(grid) -> None:
    values = torch.randn(8, 8)
    tensor = deal(values, grid, ttnn.ShardTensor2dMesh(grid, (2, 4), dims=(0, 1)))
    assert list(tensor.shape) == [4, 2]
    joined = ttnn.to_torch(tensor, mesh_composer=ttnn.ConcatMesh2dToTensor(grid, (2, 4), dims=(0, 1)))
    assert torch.equal(joined, values)
    rows = deal(values, grid, ttnn.ShardTensor2dMesh(grid, (2, 4), dims=(0, None)))
    assert list(rows.shape) == [4, 8]


def test_what_does_not_divide_is_refused(mesh) -> None:
    with pytest.raises(ttnn.InvalidArgument, match="does not divide over 2 devices"):
        deal(torch.randn(3, 3), mesh, ttnn.ShardTensorToMesh(mesh, dim=0))


def test_operations_run_on_every_chip(mesh) -> None:
    values = torch.randn(4, 64)
    tensor = ttnn.relu(deal(values, mesh, ttnn.ShardTensorToMesh(mesh, dim=0)))
    joined = ttnn.to_torch(tensor, mesh_composer=ttnn.ConcatMeshToTensor(mesh, dim=0))
    assert torch.equal(joined, values.relu())


def test_all_gather_and_reduce_scatter_and_all_reduce(mesh) -> None:
    values = torch.randn(1, 1, 32, 128)
    tensor = deal(values, mesh, ttnn.ShardTensorToMesh(mesh, dim=3))
    gathered = ttnn.all_gather(tensor, dim=3)
    assert all(torch.equal(ttnn.to_torch(piece), values) for piece in ttnn.get_device_tensors(gathered))
    first, second = values.chunk(2, 3)
    total = ttnn.all_reduce(tensor)
    assert all(torch.equal(ttnn.to_torch(piece), first + second) for piece in ttnn.get_device_tensors(total))
    scattered = ttnn.reduce_scatter(tensor, dim=3)
    joined = ttnn.to_torch(scattered, mesh_composer=ttnn.ConcatMeshToTensor(mesh, dim=3))
    assert torch.equal(joined, first + second)


def test_collectives_along_one_axis(grid) -> None:
    values = torch.arange(8.0).reshape(8, 1).expand(8, 32).contiguous()
    tensor = deal(values, grid, ttnn.ShardTensorToMesh(grid, dim=0))
    rows = ttnn.all_gather(tensor, dim=0, cluster_axis=1)
    assert list(rows.shape) == [4, 32]
    assert ttnn.to_torch(ttnn.get_device_tensors(rows)[5])[:, 0].tolist() == [4, 5, 6, 7]
    columns = ttnn.all_reduce(tensor, cluster_axis=0)
    assert ttnn.to_torch(ttnn.get_device_tensors(columns)[1])[0, 0].item() == 1 + 5


def test_broadcast_partition_and_point_to_point(mesh) -> None:
    values = torch.randn(2, 64)
    tensor = deal(values, mesh, ttnn.ShardTensorToMesh(mesh, dim=0))
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
