"""Cumulative sums and products, and their moreh variants."""

from __future__ import annotations

import torch

from ttnn_emulator.enums import DataType, Layout
from ttnn_emulator.errors import ChipFault, require
from ttnn_emulator.execution.call_context import current_board
from ttnn_emulator.execution.operation_table import Plan, composite, internal, ttnn
from ttnn_emulator.hardware.core_grid import CoreCoord, num_cores_to_corerangeset
from ttnn_emulator.numerics.programs.reduction.scans import scan
from ttnn_emulator.ops.support.common_checks import require_on_device
from ttnn_emulator.tensors.memory_config import MemoryConfig
from ttnn_emulator.tensors.shapes import TILE_SIZE
from ttnn_emulator.tensors.spec import Spec
from ttnn_emulator.tensors.tensor import Tensor


@composite("ttnn.cumsum")
def cumsum(
    input: Tensor,
    dim: int,
    *,
    dtype: DataType | None = None,
    reverse_order: bool = False,
    out: Tensor | None = None,
    memory_config: MemoryConfig | None = None,
    disable_compensated_sum: bool = False,
) -> Tensor:
    """The cumulative sum along `dim`, from the start or in reverse."""
    return _accumulate(input, dim, dtype, reverse_order, out, memory_config, compensated=not disable_compensated_sum)


@composite("ttnn.cumprod")
def cumprod(
    input_tensor: Tensor,
    dim: int,
    *,
    dtype: DataType | None = None,
    reverse_order: bool = False,
    out: Tensor | None = None,
    memory_config: MemoryConfig | None = None,
) -> Tensor:
    """The cumulative product along `dim`, from the start or in reverse."""
    return _accumulate(input_tensor, dim, dtype, reverse_order, out, memory_config, product=True)


@composite("ttnn.moreh_cumsum")
def moreh_cumsum(
    input: Tensor, dim: int, *, output: Tensor | None = None, memory_config: MemoryConfig | None = None
) -> Tensor:
    """As cumsum."""
    return _accumulate(input, dim, None, False, output, memory_config, compensated=True)


@composite("ttnn.moreh_cumsum_backward")
def moreh_cumsum_backward(
    output_grad: Tensor, dim: int, *, input_grad: Tensor | None = None, memory_config: MemoryConfig | None = None
) -> Tensor:
    """The gradient of cumsum: a reversed cumsum."""
    return _accumulate(output_grad, dim, None, True, input_grad, memory_config, compensated=True)


def _accumulate(
    tensor: Tensor,
    dim: int,
    dtype: DataType | None,
    reverse: bool,
    out: Tensor | None,
    memory_config: MemoryConfig | None,
    *,
    product: bool = False,
    compensated: bool = False,
) -> Tensor:
    spec = tensor._spec
    if out is not None:
        require_on_device(out._spec, "the output tensor")
        require(out._spec.shape == spec.shape, f"the output must have shape {list(spec.shape)}")
    if spec.rank == 0 or spec.volume == 0:
        if out is None:
            return ttnn.clone(tensor, memory_config=memory_config)
        return ttnn.copy(tensor, out) if spec.volume else out
    require(-spec.rank <= dim < spec.rank, f"dimension {dim} is out of range for a tensor of rank {spec.rank}")
    dim %= spec.rank
    work = tensor if dtype is None or dtype is spec.dtype else ttnn.typecast(tensor, dtype)
    within_tiles = not product and not reverse and work._spec.dtype is DataType.BFLOAT16 and dim >= spec.rank - 2
    axis, order = dim, None
    if spec.rank - dim < 4:
        if spec.rank < 4:
            axis += 4 - spec.rank
            work = ttnn.reshape(work, [1] * (4 - spec.rank) + list(spec.shape))
        if not within_tiles:
            order = list(range(work._spec.rank))
            order[0], order[axis] = order[axis], order[0]
            work = ttnn.permute(work, order, memory_config=work._spec.memory_config)
            axis = 0
    config = memory_config if memory_config is not None else work._spec.memory_config
    result = add_up(work, axis, reverse, product, compensated, config)
    if order is not None:
        result = ttnn.permute(result, order, memory_config=result._spec.memory_config)
    if spec.rank < 4 and spec.rank - dim < 4:
        result = ttnn.reshape(result, list(spec.shape))
    if out is not None:  # the library attaches the new buffer to the output tensor, which keeps its spec
        out._set(out._spec, result._storage, result._device)
    return result


@internal("ttnn.prim.accumulation")
def add_up(
    input_tensor: Spec, dim: int, reverse: bool, product: bool, compensated: bool, memory_config: MemoryConfig
) -> Plan:
    spec = input_tensor
    require_on_device(spec)
    require(not spec.is_sharded, "sharded tensors are not supported")
    require(spec.is_tile, "the input must be in TILE layout")
    out = Spec.of(spec.shape, spec.dtype, Layout.TILE, memory_config)
    _require_on_used_cores(spec, dim, memory_config)

    compensated = compensated and spec.dtype is DataType.FLOAT32

    def compute(values: torch.Tensor) -> torch.Tensor:
        if spec.dtype is DataType.UINT16 and values.any():
            raise ChipFault(
                "the card packs running totals of uint16 from the wrong half of its registers: all come out 0"
            )
        return scan(values, dim, spec.dtype, product=product, reverse=reverse, compensated=compensated)

    return Plan(out, compute)


def _require_on_used_cores(spec: Spec, dim: int, config: MemoryConfig) -> None:
    """Output shards must be on the program's cores: one per column of tiles, column by column of the grid."""
    if config.shard_spec is None:
        return
    tiles = [*spec.padded_shape[:-2], *(size // TILE_SIZE for size in spec.padded_shape[-2:])]
    columns = 1
    for axis, count in enumerate(tiles):
        columns *= 1 if axis == dim else count
    grid = current_board().grid
    used = num_cores_to_corerangeset(min(columns, grid[0] * grid[1]), CoreCoord(*grid), False)
    cores = set(used.cores())
    require(
        all(core in cores for core in config.shard_spec.grid.cores()),
        f"the shards' grid {config.shard_spec.grid} reaches beyond the cores {used} that the program uses",
    )
