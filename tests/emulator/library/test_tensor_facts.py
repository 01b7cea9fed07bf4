"""Queries on buffers and the distribution of a tensor, and parameters of group norms."""

from __future__ import annotations

import torch

import ttnn_emulator as ttnn


def test_padding_is_read() -> None:
    host = ttnn.from_torch(torch.ones(5, 33), layout=ttnn.TILE_LAYOUT)
    padded = host.to_torch_with_padded_shape()
    assert list(padded.shape) == [32, 64] and padded.sum() == 5 * 33


def test_buffer_queries(device) -> None:
    tensor = ttnn.from_torch(torch.ones(32, 32), layout=ttnn.TILE_LAYOUT, device=device)
    view = ttnn.reshape(tensor, [1, 32, 32])
    assert tensor.buffer_unique_id() == view.buffer_unique_id() != ttnn.relu(tensor).buffer_unique_id()
    assert ttnn.from_device(tensor).buffer_unique_id() is None
    assert not tensor.is_per_core_allocated() and not tensor.is_range_lockstep_allocated()
    assert "PlacementReplicate" in str(tensor.tensor_topology())
    assert device.get_system_mesh_id() == 0 and device.get_fabric_node_id(ttnn.MeshCoordinate(0, 0)).chip_id == 0


def test_parameters_of_a_group_norm(device) -> None:
    (weight, bias), mask = ttnn.dram_group_norm_params_from_torch([torch.ones(640), torch.zeros(640)], 640, 32, device)
    assert weight.device() is device and list(weight.shape) == list(bias.shape) and mask.dtype == ttnn.bfloat16
    columns = ttnn.operations.normalization.dram_group_norm_virtual_columns
    assert [columns(ttnn.CoreGrid(x=8, y=8), size, 32) for size in (320, 640, 1280, 1920)] == [2, 4, 8, 4]
    assert ttnn.operations.normalization.find_max_tile_span(64, 10, 32) == 2
