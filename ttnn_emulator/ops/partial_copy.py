"""`ttnn.copy_host_to_device_tensor_partial`: of a sharded tensor only the shards of some cores are written."""

from __future__ import annotations

import torch

from ttnn_emulator.enums import ShardOrientation, TensorMemoryLayout
from ttnn_emulator.errors import NotEmulated, require
from ttnn_emulator.grid import CoreCoord, CoreRangeSet, corerange_to_cores
from ttnn_emulator.host import copy_host_to_device_tensor, values_of
from ttnn_emulator.shapes import div_up
from ttnn_emulator.spec import Spec
from ttnn_emulator.table import composite
from ttnn_emulator.tensor import Tensor


@composite("ttnn.copy_host_to_device_tensor_partial")
def copy_host_to_device_tensor_partial(
    host_tensor: Tensor, device_tensor: Tensor, logical_core_filter: CoreRangeSet
) -> None:
    """Overwrite those shards of a device tensor that lie on the given cores; no cores, nothing is written."""
    spec = device_tensor._spec
    empty = not logical_core_filter.num_cores()
    require(empty or spec.is_sharded, "logical_core_filter is only supported for sharded buffer layouts")
    if empty:
        return
    before = [values.clone() for values in values_of(device_tensor)]
    copy_host_to_device_tensor(host_tensor, device_tensor)
    written = _written(spec, logical_core_filter)
    pairs = zip(device_tensor._storage.values, before)
    device_tensor._storage.values = [torch.where(written, new, old) for new, old in pairs]


def _written(spec: Spec, chosen: CoreRangeSet) -> torch.Tensor:
    """Which elements lie on one of the chosen cores."""
    shards = spec.shard_spec
    if shards is None:
        raise NotEmulated("only shards of two dimensions can be written by core")
    (rows, columns), (height, width) = spec.physical_shape, shards.shape
    down, across = div_up(rows, height), div_up(columns, width)
    row_wise = shards.orientation is ShardOrientation.ROW_MAJOR
    if spec.memory_config.memory_layout is TensorMemoryLayout.BLOCK_SHARDED:
        first = shards.grid.bounding_box().start
        places = [(j, i) if row_wise else (i, j) for i in range(down) for j in range(across)]
        cores = [CoreCoord(first.x + x, first.y + y) for x, y in places]
    else:
        cores = corerange_to_cores(shards.grid, down * across, row_wise)
    inside = torch.tensor([chosen.contains(core) for core in cores]).reshape(down, across)
    whole = inside.repeat_interleave(height, 0).repeat_interleave(width, 1)[:rows, :columns]
    return whole.reshape(spec.padded_shape)[tuple(slice(size) for size in spec.shape)]
