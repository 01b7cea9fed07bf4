"""`ttnn.dram_group_norm_params_from_torch` and the sizes that it works with."""

from __future__ import annotations

from typing import Any

import torch

from ttnn_emulator.enums import DataType
from ttnn_emulator.mesh import ShardTensor2dMesh
from ttnn_emulator.ops.normalization_group_setup import virtual_columns
from ttnn_emulator.table import ttnn


def dram_group_norm_virtual_columns(core_grid: Any, num_channels: int, num_groups: int) -> int:
    """Into how many columns of whole tiles and whole groups the channels divide on this grid."""
    found = virtual_columns(core_grid.x, num_groups, num_channels)
    assert found > 0, f"no number of columns suits grid_x={core_grid.x}, {num_channels=}, {num_groups=}"
    return found


def find_max_tile_span(W: int, group_size: int, tile_width: int) -> int:
    """The most tiles that one group of channels touches."""
    starts = range(0, W, group_size)
    return max(((start + group_size - 1) // tile_width - start // tile_width + 1 for start in starts), default=0)


def dram_group_norm_params_from_torch(
    torch_params: Any,
    channels_per_device: int,
    groups_per_device: int,
    device: Any,
    mesh_axis: int | None = None,
    core_grid: Any = None,
    return_mask: bool = True,
    dtype: DataType = DataType.BFLOAT16,
) -> Any:
    """Weight and bias of a group norm as `ttnn.group_norm` reads them from DRAM, with the mask of its groups."""
    assert core_grid or device, "Either core_grid or device must be provided to determine virtual columns"
    whole = channels_per_device % 32 == 0 == channels_per_device % groups_per_device
    assert whole, f"{channels_per_device=} must be divisible by 32 and {groups_per_device=}"
    parts, dims = 1, [None, None]
    if mesh_axis is not None:
        parts = tuple(device.shape)[mesh_axis]
        dims[mesh_axis] = 0  # type: ignore[call-overload]
    columns = dram_group_norm_virtual_columns(core_grid or device.core_grid, channels_per_device, groups_per_device)
    made = []
    for values in [torch_params] if isinstance(torch_params, torch.Tensor) else torch_params:
        assert values.numel() // parts == channels_per_device, (
            f"{values.numel() // parts=} is not {channels_per_device=}"
        )
        rows = [
            ttnn.create_group_norm_weight_bias_rm(part, channels_per_device, columns) for part in values.chunk(parts)
        ]
        mapper = ShardTensor2dMesh(device, mesh_shape=tuple(device.shape), dims=dims)
        made.append(ttnn.from_torch(torch.cat(rows, dim=0), dtype=dtype, device=device, mesh_mapper=mapper))
    given = made[0] if isinstance(torch_params, torch.Tensor) else made
    if not return_mask:
        return given
    mask = ttnn.create_group_norm_input_mask(channels_per_device, groups_per_device, columns, dtype)
    return given, ttnn.to_device(mask, device)
