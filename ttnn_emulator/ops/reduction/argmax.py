"""ttnn.argmax."""

from __future__ import annotations

import math

import torch

from ttnn_emulator.enums import DataType, Layout
from ttnn_emulator.errors import require
from ttnn_emulator.execution.call_context import current_board
from ttnn_emulator.execution.operation_table import Plan, composite, internal, ttnn
from ttnn_emulator.hardware.core_grid import CoreRangeSet
from ttnn_emulator.numerics.programs.reduction.ordering import first_largest
from ttnn_emulator.ops.support.common_checks import into, require_on_device
from ttnn_emulator.tensors.memory_config import MemoryConfig
from ttnn_emulator.tensors.spec import Spec
from ttnn_emulator.tensors.tensor import Tensor

ROW_ARGMAX_DTYPES = (DataType.BFLOAT16, DataType.FLOAT32, DataType.INT32, DataType.UINT32, DataType.UINT16)
TILE_ARGMAX_DTYPES = (DataType.BFLOAT16, DataType.FLOAT32)


@composite("ttnn.argmax", ignores=("enable_secondary_dm",))
def argmax(
    input_tensor: Tensor,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    sub_core_grids: CoreRangeSet | None = None,
    memory_config: MemoryConfig | None = None,
    output_tensor: Tensor | None = None,
) -> Tensor:
    """The index of the first largest value along `dim`, or in the whole tensor."""
    spec = input_tensor._spec
    config = memory_config if memory_config is not None else spec.memory_config
    require_on_device(spec)
    require(
        dim is None or -spec.rank <= dim < spec.rank or (spec.rank == 0 and dim in (0, -1)),
        f"dimension {dim} is out of range for a tensor of rank {spec.rank}",
    )
    if spec.volume == 0 or spec.rank == 0:
        shape = _reduced_shape(spec, dim, keepdim)
        if output_tensor is not None:
            return output_tensor
        return ttnn.full(list(shape), 0, DataType.UINT32, spec.layout, input_tensor._device, config)
    axis = None if dim is None else dim % spec.rank
    plain = spec.dtype in TILE_ARGMAX_DTYPES and not spec.is_sharded and not config.is_sharded()
    if axis is not None and plain and axis < spec.rank - 1:
        if not spec.is_tile:
            input_tensor = ttnn.to_layout(input_tensor, Layout.TILE)
        if axis < spec.rank - 2:
            found = find_largest(input_tensor, axis, keepdim, config, None, None)
            return found if output_tensor is None else ttnn.copy(found, output_tensor)
    return find_largest(input_tensor, axis, keepdim, config, sub_core_grids, output_tensor)


def _reduced_shape(spec: Spec, dim: int | None, keepdim: bool) -> tuple[int, ...]:
    shape = []
    for axis, size in enumerate(spec.shape):
        if dim is not None and axis != dim % spec.rank:
            shape.append(size)
            continue
        require(size > 0, f"dimension {axis} has no elements to choose from")
        if keepdim:
            shape.append(1)
    return tuple(shape)


@internal("ttnn.prim.argmax")
def find_largest(
    input_tensor: Spec,
    dim: int | None,
    keepdim: bool,
    memory_config: MemoryConfig,
    sub_core_grids: CoreRangeSet | None,
    output_tensor: Spec | None = None,
) -> Plan:
    spec = input_tensor
    shape = _reduced_shape(spec, dim, keepdim)
    out = output_tensor or Spec.of(shape, DataType.UINT32, Layout.ROW_MAJOR, memory_config)
    require(not spec.is_sharded and not memory_config.is_sharded(), "only interleaved tensors are supported")
    allowed = TILE_ARGMAX_DTYPES if spec.is_tile else ROW_ARGMAX_DTYPES
    require(spec.dtype in allowed, f"{spec.dtype} is not supported in {spec.layout}")
    if output_tensor is not None:
        require(output_tensor.dtype is DataType.UINT32, f"the output must be uint32, not {output_tensor.dtype}")
        require(not output_tensor.is_tile, "the output must be in ROW_MAJOR layout")
        pages = [(math.prod(each[:-1]), each[-1] if each else 1) for each in (shape, output_tensor.shape)]
        require(pages[0] == pages[1], f"an output of shape {list(output_tensor.shape)} does not hold {list(shape)}")
    if spec.is_tile:
        require(dim is not None, "a tensor in TILE layout needs a dimension")
    else:
        require(dim is None or dim == spec.rank - 1, f"rows are searched along the last dimension only, not {dim}")
    if sub_core_grids is not None and not spec.is_tile:
        box, grid = sub_core_grids.bounding_box(), current_board().grid
        require(box.end.x < grid[0] and box.end.y < grid[1], f"sub_core_grids {sub_core_grids} exceed the grid {grid}")

    def compute(values: torch.Tensor) -> torch.Tensor:
        found = first_largest(values.reshape(-1), 0) if dim is None else first_largest(values, dim)
        return found.reshape(out.shape).to(torch.int64)

    return Plan(out, compute, reads=("input_tensor",), into=into(output_tensor))
