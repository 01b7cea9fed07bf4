"""Writing single shards of a tensor from the host."""

from __future__ import annotations

import torch

from ttnn_emulator.enums import ShardOrientation
from ttnn_emulator.errors import NotEmulated, require
from ttnn_emulator.execution.operation_table import composite, ttnn
from ttnn_emulator.hardware.core_grid import CoreRangeSet
from ttnn_emulator.tensors.spec import Spec
from ttnn_emulator.tensors.tensor import Tensor, values_of


@composite("ttnn.copy_host_to_device_tensor_partial")
def copy_host_to_device_tensor_partial(
    host_tensor: Tensor, device_tensor: Tensor, logical_core_filter: CoreRangeSet
) -> None:
    """Overwrite the shards of a device tensor on the given cores."""
    wanted = {(core.x, core.y) for core in logical_core_filter.cores()}
    if not wanted:
        return
    require(device_tensor._spec.is_sharded, "the device tensor must be sharded for shards of it to be written")
    before = [value.clone() for value in values_of(device_tensor)]
    mask = _on_cores(device_tensor._spec, wanted)
    ttnn.copy_host_to_device_tensor(host_tensor, device_tensor)
    after = values_of(device_tensor)
    device_tensor._storage.values = [torch.where(mask, new, old) for new, old in zip(after, before)]


def _on_cores(spec: Spec, wanted: set[tuple[int, int]]) -> torch.Tensor:
    """Which elements of a sharded tensor are on one of these cores."""
    shards = spec.memory_config.shard_spec
    if shards is None:
        raise NotEmulated("single shards are written to tensors in two-dimensional shards only")
    cores = shards.grid.cores(shards.orientation is ShardOrientation.ROW_MAJOR)
    height, width = shards.shape
    rows, columns = spec.physical_shape
    across = -(-columns // width)
    mask = torch.zeros(rows, columns, dtype=torch.bool)
    for number, core in enumerate(cores):
        if (core.x, core.y) in wanted:
            top, left = number // across * height, number % across * width
            mask[top : top + height, left : left + width] = True
    inside = tuple(slice(0, size) for size in spec.shape)
    return mask.reshape(spec.padded_shape)[inside]
