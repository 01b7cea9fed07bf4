"""Repeated values: repeat, repeat_interleave, expand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ttnn_emulator.enums import BLOCK_FLOAT_DTYPES, DataType, Layout
from ttnn_emulator.errors import require
from ttnn_emulator.execution.operation_table import Plan, composite, internal, operation, ttnn
from ttnn_emulator.ops.data_movement.layout import layout_flow
from ttnn_emulator.ops.data_movement.typecast import typecast_flow
from ttnn_emulator.ops.flows.memory import memory_flow
from ttnn_emulator.ops.flows.permute import transpose_flow
from ttnn_emulator.ops.flows.repeat import interleaved_step, repeat_flow
from ttnn_emulator.ops.flows.reshape import Dims, checked_view_flow, reshape_flow
from ttnn_emulator.ops.flows.value_flow import Flow
from ttnn_emulator.ops.support.common_checks import require_on_device
from ttnn_emulator.tensors.memory_config import DRAM_MEMORY_CONFIG, MemoryConfig
from ttnn_emulator.tensors.shapes import DEFAULT_TILE
from ttnn_emulator.tensors.spec import Spec
from ttnn_emulator.tensors.tensor import Tensor

INTERLEAVABLE = frozenset({DataType.BFLOAT16, DataType.FLOAT32, DataType.INT32})
CAST_FIRST = BLOCK_FLOAT_DTYPES | {DataType.UINT8}


@operation("ttnn.repeat")
def repeat(
    input_tensor: Spec,
    repeat_dims: Sequence[int],
    *,
    memory_config: MemoryConfig | None = None,
    optional_output_tensor: Spec | None = None,
) -> Plan:
    """Repeat the tensor along each dimension."""
    require(all(times >= 0 for times in repeat_dims), f"{list(repeat_dims)} has a negative number")
    flow = repeat_flow(Flow(input_tensor), tuple(repeat_dims), memory_config, optional_output_tensor)
    if optional_output_tensor is None:
        return flow.plan("input_tensor")
    written = replace(flow, spec=optional_output_tensor, moved=True, recast=False, l1_bytes=0)
    return written.plan("input_tensor", "optional_output_tensor")


@operation("ttnn.expand")
def expand(input_tensor: Spec, output_shape: Sequence[int], *, memory_config: MemoryConfig | None = None) -> Plan:
    """Dimensions of size 1 repeated up to a shape; -1 leaves one as it is."""
    source = input_tensor.shape
    extra = len(output_shape) - len(source)
    require(extra >= 0, f"{list(output_shape)} has fewer dimensions than {list(source)}")
    aligned = (None,) * extra + source
    shape, repeats = [], []
    for size, asked in zip(aligned, output_shape):
        if size is not None and asked in (-1, size):
            shape.append(size)
            repeats.append(1)
            continue
        require(asked >= 0, f"{list(output_shape)} has a negative size")
        require(size in (None, 1), f"a dimension of size {size} cannot become {asked}")
        shape.append(asked)
        repeats.append(asked)
    flow = repeat_flow(Flow(input_tensor), tuple(repeats), memory_config)
    if flow.spec.rank != len(shape):
        flow = checked_view_flow(flow, tuple(shape))
    return flow.plan("input_tensor")


@composite("ttnn.repeat_interleave")
def repeat_interleave(
    input_tensor: Tensor, repeats: int, dim: int, *, memory_config: MemoryConfig | None = None
) -> Tensor:
    """Repeat each slice along `dim`, adjacent to itself."""
    spec = input_tensor._spec
    require(repeats >= 0, f"repeats must not be negative, it is {repeats}")
    rows_in_l1 = not spec.is_tile and spec.is_sharded and spec.rank == 4 and spec.memory_config.is_l1
    if rows_in_l1 and repeats > 1:
        result = _upsampled(input_tensor, repeats, _position(dim, 4))
        return result if memory_config is None else ttnn.to_memory_config(result, memory_config)
    return _interleaved(input_tensor, repeats, dim, memory_config)


def _position(dim: int, rank: int) -> int:
    require(-rank <= dim < rank, f"dimension {dim} is out of range for a tensor of rank {rank}")
    return dim % rank


def _upsampled(tensor: Tensor, repeats: int, dim: int) -> Tensor:
    """The library upsamples sharded row-major tensors of rank 4 as images, in nearest mode."""
    images, height, width, channels = tensor._spec.shape
    if dim == 0:
        flat = ttnn.reshape(tensor, [1, images, height * width, channels])
        flat = ttnn.upsample(flat, [repeats, 1], mode="nearest")
        return ttnn.reshape(flat, [images * repeats, height, width, channels])
    if dim == 3:
        turned = ttnn.upsample(ttnn.transpose(tensor, 2, 3), [1, repeats], mode="nearest")
        return ttnn.transpose(turned, 2, 3)
    return ttnn.upsample(tensor, [repeats, 1] if dim == 1 else [1, repeats], mode="nearest")


@internal("ttnn.repeat_interleave")
def _interleaved(input_tensor: Spec, repeats: int, dim: int, memory_config: MemoryConfig | None) -> Plan:
    flow = Flow(input_tensor)
    if _is_generated(input_tensor, repeats, dim, memory_config):
        flow = _by_new_kernel(flow, repeats, dim, memory_config)
    else:
        flow = _by_concat(flow, repeats, dim, memory_config)
    return flow.plan("input_tensor")


def _is_generated(spec: Spec, repeats: int, dim: int, config: MemoryConfig | None) -> bool:
    """The newer kernel copies whole tiles or rows, so it repeats outer dimensions only."""
    if not spec.on_device or spec.is_sharded or (config is not None and config.is_sharded()):
        return False
    if not 2 <= spec.rank <= 4 or repeats < 2 or spec.volume == 0 or spec.dtype not in INTERLEAVABLE:
        return False
    at = dim if dim >= 0 else dim + spec.rank
    if not 0 <= at < spec.rank:
        return False
    if spec.is_tile:
        return spec.tile == DEFAULT_TILE and at < spec.rank - 2
    return spec.shape[-1] >= 2 and at != spec.rank - 1


def _by_new_kernel(flow: Flow, repeats: int, dim: int, config: MemoryConfig | None) -> Flow:
    spec = flow.spec
    at = dim % spec.rank
    out = Spec.of(_grown(spec.shape, at, repeats), spec.dtype, spec.layout, config or spec.memory_config)
    return flow.into(out, interleaved_step(repeats, at), by="RepeatCodegenDeviceOperation")


def _grown(shape: Dims, dim: int, times: int) -> Dims:
    return tuple(size * times if index == dim else size for index, size in enumerate(shape))


def _by_concat(flow: Flow, repeats: int, dim: int, config: MemoryConfig | None) -> Flow:
    """Row-major: add a dimension, concatenate copies along it, and merge both dimensions."""
    spec = flow.spec
    if spec.rank == 1:
        flow = _by_concat(reshape_flow(flow, (*spec.shape, 1)), repeats, 0, config)
        return reshape_flow(flow, (spec.shape[0] * repeats,))
    if spec.is_sharded and repeats > 1:
        _position(dim, spec.rank)
        inner = _by_concat(memory_flow(flow, DRAM_MEMORY_CONFIG), repeats, dim, DRAM_MEMORY_CONFIG)
        return memory_flow(inner, config or DRAM_MEMORY_CONFIG)
    target = config or spec.memory_config
    if repeats == 1:
        return memory_flow(flow, target)
    at = _position(dim, spec.rank)
    if at == spec.rank - 1:
        if spec.dtype is DataType.UINT8:
            flow = typecast_flow(flow, DataType.BFLOAT16, target)
        flow = transpose_flow(flow, -1, -2, target, 0.0)
        flow = transpose_flow(_by_concat(flow, repeats, -2, target), -1, -2, target, 0.0)
        return typecast_flow(flow, spec.dtype, target) if spec.dtype is DataType.UINT8 else flow
    cast = spec.dtype in CAST_FIRST
    if cast:
        flow = typecast_flow(flow, DataType.BFLOAT16, target)
    flow = layout_flow(flow, Layout.ROW_MAJOR)
    require_on_device(flow.spec)
    require(repeats > 0, "nothing is left to join when nothing is repeated")
    require(spec.shape[-1] > 0, "rows of length 0 cannot be joined")
    flow = reshape_flow(flow, (*spec.shape[: at + 1], 1, *spec.shape[at + 1 :]))
    now = flow.spec
    flow = flow.into(
        Spec.of(_grown(now.shape, at + 1, repeats), now.dtype, now.layout, now.memory_config),
        interleaved_step(repeats, at + 1),
        by="ConcatDeviceOperation",
    )
    flow = reshape_flow(flow, _grown(spec.shape, at, repeats))
    flow = layout_flow(flow, spec.layout)
    return typecast_flow(flow, spec.dtype, target) if cast else memory_flow(flow, target)
