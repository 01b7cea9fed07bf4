"""std and var, and the sum over outer dimensions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ttnn_emulator.enums import Layout, MathFidelity
from ttnn_emulator.errors import require
from ttnn_emulator.execution.operation_table import composite, ttnn
from ttnn_emulator.hardware.core_grid import CoreRangeSet
from ttnn_emulator.ops.reduction.device_operations import HW, H, W, add_along, spread
from ttnn_emulator.ops.reduction.reductions import dims_of, kept_shape, reduce_nothing, reshaped, tilized
from ttnn_emulator.ops.support.common_checks import math_config
from ttnn_emulator.tensors.memory_config import MemoryConfig
from ttnn_emulator.tensors.tensor import Tensor


def _spread(
    tensor: Tensor,
    dim: int | Sequence[int] | None,
    keepdim: bool,
    memory_config: MemoryConfig | None,
    config: Any,
    scalar: float,
    correction: bool,
    cores: CoreRangeSet | None,
    *,
    deviation: bool,
) -> Tensor:
    spec = tensor._spec
    rank = spec.rank
    dims = dims_of(dim, rank)
    memory = memory_config if memory_config is not None else spec.memory_config
    count = math.prod(spec.shape[axis] for axis in dims) if rank else 1
    if rank == 0 or count == 1:
        fill = math.nan if correction else 0.0
        made = ttnn.full(spec.shape, fill, spec.dtype, Layout.TILE, tensor._device, memory_config=memory)
        return reshaped(made, kept_shape(spec.shape, dims, keepdim))
    if spec.volume == 0:
        return reduce_nothing("var", tensor, dims, keepdim, memory)
    source, batch, swapped = tensor, 1, None
    if dims == [rank - 1] or dims == [rank - 2]:
        axis = W if dims[0] == rank - 1 else H
        if rank == 1:
            source = reshaped(source, (1, *spec.shape))
    elif len(dims) == 1:
        axis = H
        swapped = list(range(rank))
        swapped[dims[0]], swapped[rank - 2] = rank - 2, dims[0]
        source = ttnn.permute(source, swapped, memory_config=memory)
    else:
        axis = HW
        order = [dimension for dimension in range(rank) if dimension not in dims] + dims
        source = ttnn.permute(source, order, memory_config=memory)
        batch = math.prod(spec.shape[dimension] for dimension in dims[:-2])
    if not source._spec.is_tile:
        source = tilized(source, 0.0, memory, cores)
    math_settings = math_config(config, fidelity=MathFidelity.HiFi4, approx=False, fp32_acc=True)
    result = spread(source, axis, deviation, scalar, correction, batch, math_settings, memory)
    if swapped is not None:
        result = ttnn.permute(result, swapped, memory_config=memory)
    return reshaped(result, kept_shape(spec.shape, dims, keepdim))


@composite("ttnn.std")
def std(
    input_tensor,
    dim=None,
    keepdim=False,
    *,
    memory_config=None,
    compute_kernel_config=None,
    scalar=1.0,
    correction=True,
    sub_core_grids=None,
):
    """The standard deviation of scalar × x over the given dimensions, or over all."""
    arguments = (memory_config, compute_kernel_config, scalar, correction, sub_core_grids)
    return _spread(input_tensor, dim, keepdim, *arguments, deviation=True)


@composite("ttnn.var")
def var(
    input_tensor,
    dim=None,
    keepdim=False,
    *,
    memory_config=None,
    compute_kernel_config=None,
    scalar=1.0,
    correction=True,
    sub_core_grids=None,
):
    """The variance of scalar × x over the given dimensions, or over all."""
    arguments = (memory_config, compute_kernel_config, scalar, correction, sub_core_grids)
    return _spread(input_tensor, dim, keepdim, *arguments, deviation=False)


# -- experimental -----------------------------------------------------------------------------------------------------


@composite("ttnn.experimental.fast_reduce_nc")
def fast_reduce_nc(input, *, dims=(), output=None, memory_config=None, compute_kernel_config=None, sub_core_grids=None):
    """The sum over dimensions before the last two, of whole tiles: the result has the padded shape."""
    require(input._spec.on_device, "the input must be on a device")
    require(len(dims) > 0, "dims must name at least one dimension")
    config = math_config(compute_kernel_config, fidelity=MathFidelity.HiFi4, approx=True, fp32_acc=False)
    memory = memory_config if memory_config is not None else MemoryConfig()
    order = sorted(dims)
    made = input
    for dim in reversed(order[1:]):
        made = add_along(made, dim, config, memory, None, None, sub_core_grids)
    return add_along(made, order[0], config, memory, None, output, sub_core_grids)
