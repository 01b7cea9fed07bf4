"""Changes of memory config: to_memory_config, sharding and unsharding, copies and moves."""

from __future__ import annotations

import math
from typing import Any

import torch

from ttnn_emulator.enums import BufferType, DataType, TensorMemoryLayout
from ttnn_emulator.errors import require
from ttnn_emulator.execution.call_context import current_board
from ttnn_emulator.execution.operation_table import Plan, composite, operation
from ttnn_emulator.hardware.core_grid import CoreCoord, CoreRangeSet, num_cores_to_corerangeset
from ttnn_emulator.numerics.formats.casts import repacked
from ttnn_emulator.ops.flows.memory import clone_flow, copy_flow, memory_flow, reshard_flow, shard_flow, unshard_flow
from ttnn_emulator.ops.flows.value_flow import Flow
from ttnn_emulator.ops.support.common_checks import require_on_device
from ttnn_emulator.ops.support.derived_shards import BLOCK, HEIGHT, WIDTH
from ttnn_emulator.tensors.buffer_ownership import has_other_owners
from ttnn_emulator.tensors.memory_config import DRAM_MEMORY_CONFIG, MemoryConfig, ShardSpec
from ttnn_emulator.tensors.shapes import div_up
from ttnn_emulator.tensors.spec import Spec
from ttnn_emulator.tensors.storage import Storage
from ttnn_emulator.tensors.tensor import Tensor


def _named(given: Any, name: str) -> str | None:
    return None if given is None else name


@operation("ttnn.to_memory_config")
def to_memory_config(
    tensor: Spec, memory_config: MemoryConfig, dtype: DataType | None = None, output_tensor: Spec | None = None
) -> Plan:
    """Copy to another memory config; a no-op if the tensor already has it."""
    flow = memory_flow(Flow(tensor), memory_config, dtype, output_tensor)
    return flow.plan("tensor", _named(output_tensor, "output_tensor"))


@operation("ttnn.interleaved_to_sharded", ignores=("keep_l1_aligned",))
def interleaved_to_sharded(
    input_tensor: Spec,
    sharded_memory_config: MemoryConfig | None = None,
    grid: CoreCoord | CoreRangeSet | None = None,
    shard_shape: tuple[int, int] | None = None,
    shard_scheme: TensorMemoryLayout | None = None,
    shard_orientation: Any = None,
    output_dtype: DataType | None = None,
    *,
    preallocated_output: Spec | None = None,
) -> Plan:
    """Shard an interleaved tensor."""
    if sharded_memory_config is None:
        assert grid is not None and shard_shape is not None and shard_scheme is not None
        cores = _cores_for(input_tensor, grid, shard_shape, shard_scheme, shard_orientation)
        shards = ShardSpec(cores, shard_shape, shard_orientation)
        sharded_memory_config = MemoryConfig(shard_scheme, BufferType.L1, shards)
    flow = shard_flow(Flow(input_tensor), sharded_memory_config, output_dtype, preallocated_output)
    return flow.plan("input_tensor", _named(preallocated_output, "preallocated_output"))


def _cores_for(
    spec: Spec, grid: CoreCoord | CoreRangeSet, shard: tuple[int, int], scheme: TensorMemoryLayout, orientation: Any
) -> CoreRangeSet:
    """As many cores of the grid as there are shards, or the exact cores of a core range set."""
    if isinstance(grid, CoreRangeSet):
        return grid
    width = spec.padded_shape[-1] if spec.padded_shape else 1
    height = math.prod(spec.padded_shape) // width if width else 0
    return _grid_for(height, width, grid, shard, scheme, orientation)


def _grid_for(
    height: int, width: int, grid: CoreCoord, shard: tuple[int, int], scheme: TensorMemoryLayout, orientation: Any
) -> CoreRangeSet:
    down, across = div_up(height, shard[0]), div_up(width, shard[1])
    count = {HEIGHT: down, WIDTH: across, BLOCK: down * across}.get(scheme)
    require(count is not None, f"{scheme} is no way to shard")
    assert count is not None
    return num_cores_to_corerangeset(count, grid, orientation.name == "ROW_MAJOR")


@operation("ttnn.sharded_to_interleaved")
def sharded_to_interleaved(
    input_tensor: Spec, memory_config: MemoryConfig | None = None, output_dtype: DataType | None = None
) -> Plan:
    """Convert a sharded tensor to an interleaved one. An interleaved input is returned unchanged."""
    flow = Flow(input_tensor)
    if input_tensor.shard_spec is not None:
        flow = unshard_flow(flow, memory_config or DRAM_MEMORY_CONFIG, output_dtype)
    return flow.plan("input_tensor")


@operation("ttnn.interleaved_to_sharded_partial")
def interleaved_to_sharded_partial(
    input_tensor: Spec,
    grid: CoreCoord | CoreRangeSet,
    shard_shape: tuple[int, int],
    num_slices: int,
    slice_index: int,
    shard_scheme: TensorMemoryLayout,
    shard_orientation: Any,
    *,
    output_dtype: DataType | None = None,
) -> Plan:
    """One of `num_slices` equal slices along the height, cut into shards."""
    spec = input_tensor
    require(isinstance(grid, CoreCoord), "the grid must be given by its size")
    assert isinstance(grid, CoreCoord)
    require(num_slices > 0, f"num_slices must be positive, not {num_slices}")
    padded = spec.padded_shape
    width = padded[-1]
    height = math.prod(padded) // width
    dtype = output_dtype or spec.dtype
    cores = _grid_for(height // num_slices, width, grid, shard_shape, shard_scheme, shard_orientation)
    require(0 <= slice_index < num_slices, f"slice {slice_index} is not one of {num_slices}")
    require(spec.is_tile, f"only TILE layout is supported, not {spec.layout}")
    require(height % num_slices == 0, f"a height of {height} does not divide into {num_slices} slices")
    require_on_device(spec)
    require(not spec.is_sharded, "the input must be interleaved")
    columns, rows = current_board().grid
    require(grid.x <= columns and grid.y <= rows, f"a grid of {grid} exceeds the {columns} x {rows} cores of the chip")
    require(len(padded) == 4, f"the input must have rank 4, not {len(padded)}")
    shape = (1, 1, height // num_slices, width)
    config = MemoryConfig(shard_scheme, BufferType.L1, ShardSpec(cores, shard_shape, shard_orientation))
    out = Spec.of(shape, dtype, spec.layout, config)
    rows_each = height // num_slices
    convert = None if dtype is spec.dtype else repacked(spec.dtype, dtype)

    def compute(values: torch.Tensor) -> torch.Tensor:
        part = _as_padded_rows(values, padded)[slice_index * rows_each : (slice_index + 1) * rows_each]
        part = part.reshape(shape).clone()
        return part if convert is None else convert(part)

    return Plan(out, compute, reads=("input_tensor",))


def _as_padded_rows(values: torch.Tensor, padded: tuple[int, ...]) -> torch.Tensor:
    """The whole buffer as rows, zeros in its padding."""
    growth = [(0, large - small) for small, large in zip(values.shape, padded)]
    if any(grow for _, grow in growth):
        values = torch.nn.functional.pad(values, [side for pair in reversed(growth) for side in pair])
    return values.reshape(-1, padded[-1])


@operation("ttnn.sharded_to_interleaved_partial", ignores=("memory_config",))
def sharded_to_interleaved_partial(
    input_tensor: Spec,
    cache_tensor: Spec,
    num_slices: int,
    slice_index: int,
    *,
    output_dtype: DataType | None = None,
) -> Plan:
    """Write one of `num_slices` slices back into the tensor it was taken from."""
    spec, cache = input_tensor, cache_tensor
    require(spec.shard_spec is not None, "the input must be sharded")
    require(0 <= slice_index < num_slices, f"slice {slice_index} is not one of {num_slices}")
    require(spec.is_tile, f"only TILE layout is supported, not {spec.layout}")
    require(cache.layout is spec.layout, f"the cache is in {cache.layout}, the input in {spec.layout}")
    height = math.prod(cache.padded_shape) // cache.padded_shape[-1]
    require(height % num_slices == 0, f"a height of {height} does not divide into {num_slices} slices")
    rows_each = height // num_slices
    convert = None if cache.dtype is spec.dtype else repacked(spec.dtype, cache.dtype)

    def compute(values: torch.Tensor, whole: torch.Tensor) -> torch.Tensor:
        part = values if convert is None else convert(values)
        rows = _as_padded_rows(whole, cache.padded_shape).clone()
        rows[slice_index * rows_each : (slice_index + 1) * rows_each] = part.reshape(-1, part.shape[-1])[:rows_each]
        return rows.reshape(cache.padded_shape)[tuple(slice(size) for size in cache.shape)].contiguous()

    return Plan(cache, compute, reads=("input_tensor", "cache_tensor"), into=("cache_tensor",))


@operation("ttnn.reshard")
def reshard(input_tensor: Spec, output_memory_config: MemoryConfig, output_tensor: Spec | None = None) -> Plan:
    """Reshard a sharded tensor."""
    flow = reshard_flow(Flow(input_tensor), output_memory_config, output_tensor)
    return flow.plan("input_tensor", _named(output_tensor, "output_tensor"))


@operation("ttnn.clone", ignores=("compute_kernel_config",))
def clone(input: Spec, *, dtype: DataType | None = None, memory_config: MemoryConfig | None = None) -> Plan:
    """A copy in a buffer of its own."""
    return clone_flow(Flow(input), memory_config or input.memory_config, dtype).plan("input")


@operation("ttnn.copy")
def copy(input_a: Spec, input_b: Spec) -> Plan:
    """Overwrite `input_b` with `input_a`, in its dtype and memory."""
    return copy_flow(Flow(input_a), input_b.memory_config, input_b.dtype, input_b).plan("input_a", "input_b")


@operation("ttnn.assign")
def assign(
    input_tensor: Spec | None = None,
    input_a: Spec | None = None,
    input_b: Spec | None = None,
    *,
    memory_config: MemoryConfig | None = None,
    dtype: DataType | None = None,
    output_tensor: Spec | None = None,
) -> Plan:
    """A copy into a memory config, or over an existing tensor."""
    if input_a is not None:
        assert input_b is not None
        return copy.function(input_a, input_b)
    assert input_tensor is not None and memory_config is not None
    flow = copy_flow(Flow(input_tensor), memory_config, dtype, output_tensor)
    return flow.plan("input_tensor", _named(output_tensor, "output_tensor"))


@operation("ttnn.experimental.typecast")
def experimental_typecast(
    input_tensor: Spec,
    dtype: DataType,
    memory_config: MemoryConfig | None = None,
    optional_output_tensor: Spec | None = None,
) -> Plan:
    """A copy into another dtype, converted by the packer alone; `ttnn.typecast` converts values properly."""
    config = memory_config or input_tensor.memory_config
    flow = copy_flow(Flow(input_tensor), config, dtype, optional_output_tensor)
    return flow.plan("input_tensor", _named(optional_output_tensor, "optional_output_tensor"))


@composite("ttnn.move")
def move(input_tensor: Tensor, *, memory_config: MemoryConfig | None = None) -> Tensor:
    """Free the tensor's buffer and allocate a new one, which may close a gap in memory."""
    return _moved(input_tensor, memory_config)


@composite("ttnn.reallocate")
def reallocate(tensor: Tensor, memory_config: MemoryConfig | None = None) -> Tensor:
    """`ttnn.move` under another name."""
    return _moved(tensor, memory_config)


def _moved(tensor: Tensor, config: MemoryConfig | None) -> Tensor:
    spec, device = tensor._spec, tensor._device
    require_on_device(spec)
    assert device is not None
    out = spec
    if config is not None:
        if spec.is_sharded:
            require(config.is_sharded(), f"a sharded tensor moves to shards, not to {config.brief()}")
            require(
                config.buffer_type is spec.memory_config.buffer_type,
                f"shards in {spec.memory_config.buffer_type.name} do not move to {config.buffer_type.name}",
            )
            config = MemoryConfig(config.memory_layout, config.buffer_type, spec.shard_spec)
        out = spec.with_(memory_config=config, alignment=spec.alignment)
    tensor._storage.require_allocated()
    if has_other_owners(tensor):
        require(not spec.is_sharded, "shards that another tensor shares cannot be moved")
        return tensor
    values = tensor._storage.values
    tensor._storage.release("ttnn.move")
    return Tensor.of(out, Storage.on_device(out, device, values), device)
