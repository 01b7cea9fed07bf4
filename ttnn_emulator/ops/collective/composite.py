"""Collectives composed of others where no single program applies: all_gather, reduce_scatter, all_reduce."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ttnn_emulator.enums import BufferType, DataType, Layout, TensorMemoryLayout
from ttnn_emulator.errors import require
from ttnn_emulator.execution.operation_table import composite, ttnn
from ttnn_emulator.ops.collective.exchange import LINKS, WORKERS, count_along, is_line, require_links
from ttnn_emulator.ops.collective.single_program import gather, in_four_dimensions, resized, scatter_sum
from ttnn_emulator.tensors.memory_config import DRAM_MEMORY_CONFIG, MemoryConfig
from ttnn_emulator.tensors.shapes import round_up
from ttnn_emulator.tensors.spec import Spec
from ttnn_emulator.tensors.tensor import Tensor

# tt-metal v0.77.0: tt_metal/hw/inc/internal/tt-1xx/wormhole/noc/noc_parameters.h, NOC_L1_WRITE_ALIGNMENT_BYTES
NOC_WRITE_ALIGNMENT = 16

Step = Callable[[Tensor, int, MemoryConfig | None], Tensor]


def front(dim: int, spec: Spec) -> int:
    require(-spec.rank <= dim < spec.rank, f"dimension {dim} is out of range for a tensor of rank {spec.rank}")
    return dim % spec.rank


def _require_output_config(spec: Spec, memory_config: MemoryConfig | None) -> None:
    require(
        not spec.is_sharded or memory_config is not None,
        "a sharded input needs a memory_config for the output, whose shape differs",
    )


def _between(source: MemoryConfig, target: MemoryConfig) -> MemoryConfig:
    """The memory config of a sharded input in the intermediate steps."""
    return DRAM_MEMORY_CONFIG if target.is_sharded() else target


# -- all_gather -------------------------------------------------------------------------------------------------------


@composite("ttnn.all_gather", ignores=(*LINKS, *WORKERS, "num_links", "sub_core_grids"))
def all_gather(
    input_tensor: Tensor,
    dim: int,
    *,
    cluster_axis: int | None = None,
    memory_config: MemoryConfig | None = None,
    output_tensor: Tensor | None = None,
) -> Tensor:
    """Every chip gets the tensors of all chips, joined along `dim`."""
    spec = input_tensor._spec
    dim = front(dim, spec)
    count = count_along(input_tensor._device, cluster_axis)
    if _gathers_in_one(input_tensor, dim, count, memory_config):
        return gather(input_tensor, dim, cluster_axis, memory_config, output_tensor)
    return gathered_by_broadcast(input_tensor, dim, cluster_axis, memory_config)


def _gathers_in_one(tensor: Tensor, dim: int, count: int, memory_config: MemoryConfig | None) -> bool:
    """Whether every received page maps to one output page unchanged."""
    spec, from_end = tensor._spec, dim - tensor._spec.rank
    padded = list(spec.padded_shape)
    if padded[from_end] != spec.shape[dim]:
        return False
    out = resized(spec, dim, spec.shape[dim] * count, memory_config)
    padded[from_end] *= count
    if list(out.padded_shape) != padded:
        return False
    page, out_page = spec.page_bytes, out.page_bytes
    aligned = round_up(page, _alignment(tensor, spec))
    if max(page, out_page) % min(page, out_page):
        return False
    if page != out_page and page != aligned:
        return False
    if page > out_page and out_page % NOC_WRITE_ALIGNMENT:
        return False
    return page > out_page or round_up(out_page, _alignment(tensor, out)) >= aligned


def _alignment(tensor: Tensor, spec: Spec) -> int:
    assert tensor._device is not None
    board = tensor._device.board
    return board.dram_alignment if spec.memory_config.buffer_type is BufferType.DRAM else board.l1_alignment


def gathered_by_broadcast(
    tensor: Tensor, dim: int, cluster_axis: int | None, memory_config: MemoryConfig | None
) -> Tensor:
    spec = tensor._spec
    _require_output_config(spec, memory_config)
    target = memory_config if memory_config is not None else spec.memory_config
    odd = spec.shape[-1] % spec.tile.width != 0 or (spec.rank >= 2 and spec.shape[-2] % spec.tile.height != 0)
    widened = spec.is_tile and odd and spec.dtype is DataType.BFLOAT8_B
    if spec.is_sharded:
        tensor = ttnn.to_memory_config(tensor, _between(spec.memory_config, target))
    if widened:
        tensor = ttnn.typecast(tensor, DataType.BFLOAT16)
    parts = ttnn.all_broadcast(tensor, cluster_axis=cluster_axis, memory_config=tensor._spec.memory_config)
    result = ttnn.concat(parts, dim)
    del parts
    if widened:
        result = ttnn.typecast(result, spec.dtype)
    return ttnn.to_memory_config(result, target) if target.is_sharded() else result


# -- reduce_scatter ---------------------------------------------------------------------------------------------------


@composite("ttnn.reduce_scatter", ignores=(*LINKS, *WORKERS))
def reduce_scatter(
    input_tensor: Tensor,
    dim: int,
    *,
    cluster_axis: int | None = None,
    memory_config: MemoryConfig | None = None,
    intermediate_memory_config: MemoryConfig | None = None,
    output_tensor: Tensor | None = None,
    num_links: int | None = None,
    compute_kernel_config: Any = None,
) -> Tensor:
    """Add the tensors of all chips; each chip gets its part along `dim`."""
    device = input_tensor._device
    count = count_along(device, cluster_axis)
    assert device is not None
    if cluster_axis is None and not is_line(device):
        for axis in range(len(device.shape)):
            input_tensor = reduce_scatter(
                input_tensor,
                dim,
                cluster_axis=axis,
                memory_config=memory_config,
                intermediate_memory_config=intermediate_memory_config,
                output_tensor=output_tensor,
                num_links=num_links,
                compute_kernel_config=compute_kernel_config,
            )
        return input_tensor
    spec = input_tensor._spec
    dim = front(dim, spec)
    target = memory_config if memory_config is not None else spec.memory_config
    fp32_acc = bool(compute_kernel_config is not None and compute_kernel_config.fp32_dest_acc_en)
    if scatters_in_parts(spec, dim, count):
        return scattered_in_parts(input_tensor, dim, count, cluster_axis, target, fp32_acc, num_links)
    intermediate = intermediate_memory_config
    return scatter_sum(input_tensor, dim, cluster_axis, target, intermediate, output_tensor, fp32_acc, num_links)


def scatters_in_parts(spec: Spec, dim: int, count: int) -> bool:
    """Whether the parts are not whole tiles, so that each must be padded before the sum."""
    if spec.shape[dim] % count:
        return False
    if spec.layout is Layout.ROW_MAJOR:
        return True
    part, axis_of_four = spec.shape[dim] // count, in_four_dimensions(dim, spec.rank)
    return (axis_of_four == 3 and part % spec.tile.width != 0) or (axis_of_four == 2 and part % spec.tile.height != 0)


def scattered_in_parts(
    tensor: Tensor,
    dim: int,
    count: int,
    cluster_axis: int | None,
    memory_config: MemoryConfig | None,
    fp32_acc: bool = False,
    num_links: int | None = None,
) -> Tensor:
    spec = tensor._spec
    _require_output_config(spec, memory_config)
    target = memory_config if memory_config is not None else spec.memory_config
    shape = list(spec.shape)
    shape[dim] //= count
    if spec.is_sharded:
        middle = _between(spec.memory_config, target)
        tensor = ttnn.to_memory_config(tensor, middle)
    else:
        middle = spec.memory_config if target.is_sharded() else target
    widened = spec.is_tile and spec.dtype is DataType.BFLOAT8_B
    if widened:
        tensor = ttnn.typecast(tensor, DataType.BFLOAT16)
    parts = ttnn.split(tensor, shape[dim], dim, memory_config=tensor._spec.memory_config)
    if not spec.is_tile:
        parts = [ttnn.tilize_with_zero_padding(part, memory_config=part._spec.memory_config) for part in parts]
    logical, padded = parts[0]._spec.shape, parts[0]._spec.padded_shape
    height = logical[-2] if len(logical) > 1 else 1
    padding = [[0, padded[-2] - height], [0, padded[-1] - logical[-1]]]
    parts = [ttnn.pad(part, padding, 0.0, memory_config=part._spec.memory_config) for part in parts]
    whole = ttnn.concat(parts, dim)
    del parts
    result = scatter_sum(whole, dim, cluster_axis, middle, None, None, fp32_acc, num_links)
    del whole
    if spec.is_tile:
        result = ttnn.slice(result, [0] * len(shape), shape, [1] * len(shape), memory_config=middle)
    else:
        result = ttnn.untilize_with_unpadding(result, [size - 1 for size in shape], memory_config=middle)
    if widened:
        result = ttnn.typecast(result, spec.dtype)
    return ttnn.to_memory_config(result, target) if target.is_sharded() else result


# -- all_reduce -------------------------------------------------------------------------------------------------------


@composite("ttnn.all_reduce", ignores=LINKS)
def all_reduce(
    input_tensor: Tensor,
    *,
    cluster_axis: int | None = None,
    memory_config: MemoryConfig | None = None,
    num_links: int | None = None,
) -> Tensor:
    """Every chip gets the sum of the tensors of all chips; over two axes of a mesh, first along one, then the other."""
    device = input_tensor._device
    count_along(device, cluster_axis)
    assert device is not None
    if cluster_axis is None and not is_line(device):
        for axis in range(len(device.shape)):
            input_tensor = all_reduce(input_tensor, cluster_axis=axis, memory_config=memory_config, num_links=num_links)
        return input_tensor
    require_links(num_links, device)
    return summed(input_tensor, cluster_axis, memory_config)


def summed(
    tensor: Tensor,
    cluster_axis: int | None,
    memory_config: MemoryConfig | None,
    steps: tuple[Step, Step] | None = None,
) -> Tensor:
    """An all-reduce as reduce-scatter and all-gather or, if parts are not whole tiles, as gather and local sums."""
    spec = tensor._spec
    if spec.rank < 2:
        return ttnn.reshape(summed(ttnn.unsqueeze(tensor, 0), cluster_axis, memory_config, steps), spec.shape)
    target = memory_config if memory_config is not None else spec.memory_config
    count = count_along(tensor._device, cluster_axis)
    dim = _scatter_dim(spec, count)
    if spec.is_sharded:
        interleaved = MemoryConfig(TensorMemoryLayout.INTERLEAVED, spec.memory_config.buffer_type)
        tensor = ttnn.sharded_to_interleaved(tensor, interleaved)
    if dim is None or gathers_by_broadcast(spec, dim) or scatters_in_parts(spec, dim, count):
        whole = ttnn.reshape(tensor, (1, *spec.shape))
        parts = gathered_by_broadcast(whole, 0, cluster_axis, None if spec.is_sharded else target)
        del whole
        add = _added_wide if spec.dtype is DataType.FLOAT32 else _added
        return ttnn.reshape(add(parts, count, target), spec.shape)
    if steps is not None:
        scatter, gather_again = steps
        between = None if spec.is_sharded else target
        gathered = gather_again(scatter(tensor, dim, between), dim, between)
    else:
        scattered = reduce_scatter(tensor, dim, cluster_axis=cluster_axis, memory_config=target)
        gathered = all_gather(scattered, dim, cluster_axis=cluster_axis, memory_config=target)
    return ttnn.to_memory_config(gathered, target) if spec.is_sharded else gathered


def _scatter_dim(spec: Spec, count: int) -> int | None:
    """The last dimension whose pieces (tiles, where it is cut into tiles) divide over the chips."""
    sizes = list(spec.padded_shape[-spec.rank :])
    if spec.is_tile:
        for back in range(1, min(2, len(sizes)) + 1):
            sizes[-back] //= spec.tile.tile_shape[-back]
    return next((dim for dim in reversed(range(spec.rank)) if sizes[dim] % count == 0), None)


def gathers_by_broadcast(spec: Spec, dim: int) -> bool:
    """The older rule, which the sums and the asynchronous gathers follow: rows, and padding along `dim`."""
    if not spec.is_tile:
        return True
    tiled = dim - spec.rank
    return tiled >= -2 and spec.shape[dim] % spec.tile.tile_shape[tiled] != 0


def _added(parts: Tensor, count: int, memory_config: MemoryConfig) -> Tensor:
    layout, dtype = parts._spec.layout, parts._spec.dtype
    parts = ttnn.to_layout(parts, Layout.TILE)
    if dtype is DataType.BFLOAT8_B:
        parts = ttnn.typecast(parts, DataType.BFLOAT16)
    total = ttnn.moreh_sum(parts, 0, keepdim=True, memory_config=memory_config)
    if dtype is DataType.BFLOAT8_B:
        total = ttnn.typecast(total, dtype)
    return ttnn.to_layout(total, layout)


def _added_wide(parts: Tensor, count: int, memory_config: MemoryConfig) -> Tensor:
    layout, shape = parts._spec.layout, parts._spec.shape
    parts = ttnn.to_layout(parts, Layout.TILE)
    parts = ttnn.reshape(parts, (count, shape[0] // count, *shape[1:]))
    total = ttnn.sum(ttnn.transpose(parts, 0, 1), 1, False, memory_config=memory_config)
    return ttnn.to_layout(total, layout)
