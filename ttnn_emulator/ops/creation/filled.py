"""Tensor creation: from one value, a range, another tensor's shape, or a list."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import torch

from ttnn_emulator.enums import BLOCK_FLOAT_DTYPES, DataType, Layout
from ttnn_emulator.errors import require
from ttnn_emulator.execution.call_context import current_board
from ttnn_emulator.execution.operation_table import NO_PROGRAM, Plan, operation
from ttnn_emulator.hardware.device import MeshDevice
from ttnn_emulator.numerics.formats import carriers
from ttnn_emulator.numerics.formats.carriers import CARRIER, INTEGER_RANGE
from ttnn_emulator.numerics.units import packer
from ttnn_emulator.ops.support.derived_shards import fresh_shards, lacks_shards
from ttnn_emulator.tensors.memory_config import DRAM_MEMORY_CONFIG, MemoryConfig
from ttnn_emulator.tensors.spec import Spec

Number = int | float

RANGE_DTYPES = frozenset({DataType.BFLOAT16, DataType.FLOAT32, DataType.UINT16, DataType.UINT32, DataType.INT32})
DEVICE_FILLED = frozenset({DataType.BFLOAT16, DataType.FLOAT32, DataType.BFLOAT8_B})


def filled(spec: Spec, value: Number, into: tuple[str, ...] = ()) -> Plan:
    """A plan that creates a constant tensor, with the host's conversion."""
    scalar = host_number(value, spec.dtype)
    values = functools.partial(torch.full, spec.shape, scalar, dtype=CARRIER[spec.dtype])
    return Plan(spec, values, reads=(), into=into, program=NO_PROGRAM)


def host_number(value: Number, dtype: DataType) -> Number:
    """A Python number as the host code stores it in `dtype`."""
    require(dtype is not DataType.FP8_E4M3, "a tensor cannot be filled with fp8_e4m3")
    if isinstance(value, int) and dtype in INTEGER_RANGE:
        wrapped = torch.tensor([((value + 2**31) % 2**32) - 2**31])
        return carriers.host_convert(wrapped, dtype).item()
    if dtype is DataType.BFLOAT16 and value != value:
        return math.nan  # torch's cast to bfloat16 gives a NaN other bits on other processors
    return carriers.wide(carriers.host_convert(torch.tensor([float(value)], dtype=torch.float32), dtype)).item()


def _default_layout(dtype: DataType) -> Layout:
    return Layout.TILE if dtype in BLOCK_FLOAT_DTYPES else Layout.ROW_MAJOR


def _full(
    shape: Sequence[int],
    value: Number,
    dtype: DataType | None,
    layout: Layout | None,
    on_device: bool,
    memory_config: MemoryConfig | None,
    output: Spec | None = None,
) -> Plan:
    """A constant tensor that the library fills on the host and uploads."""
    if output is not None:
        spec = output
        # A block-float result is uploaded to a buffer of its own.
        into = () if output.dtype in BLOCK_FLOAT_DTYPES else ("optional_tensor",)
        return filled(spec, value, into)
    dtype = dtype if dtype is not None else DataType.BFLOAT16
    layout = layout if layout is not None else _default_layout(dtype)
    config = memory_config or DRAM_MEMORY_CONFIG
    if not on_device and dtype not in BLOCK_FLOAT_DTYPES:
        config = DRAM_MEMORY_CONFIG
    return filled(Spec.of(shape, dtype, layout, config, on_device=on_device), value)


@operation("ttnn.empty")
def empty(
    shape: Sequence[int],
    dtype: DataType = DataType.BFLOAT16,
    layout: Layout = Layout.ROW_MAJOR,
    device: MeshDevice | None = None,
    memory_config: MemoryConfig | None = None,
) -> Plan:
    """An uninitialised tensor; the emulator fills it with zeros."""
    spec = Spec.of(shape, dtype, layout, memory_config or DRAM_MEMORY_CONFIG)
    values = functools.partial(torch.zeros, spec.shape, dtype=CARRIER[spec.dtype])
    return Plan(spec, values, reads=(), program=NO_PROGRAM)


@operation("ttnn.zeros")
def zeros(
    shape: Sequence[int],
    dtype: DataType | None = None,
    layout: Layout | None = None,
    device: MeshDevice | None = None,
    memory_config: MemoryConfig | None = None,
) -> Plan:
    """A tensor of zeros, on the host when no device is given."""
    return _full(shape, 0.0, dtype, layout, device is not None, memory_config)


@operation("ttnn.ones")
def ones(
    shape: Sequence[int],
    dtype: DataType | None = None,
    layout: Layout | None = None,
    device: MeshDevice | None = None,
    memory_config: MemoryConfig | None = None,
) -> Plan:
    """A tensor of ones, on the host when no device is given."""
    return _full(shape, 1.0, dtype, layout, device is not None, memory_config)


@operation("ttnn.full")
def full(
    shape: Sequence[int],
    fill_value: Number,
    dtype: DataType | None = None,
    layout: Layout | None = None,
    device: MeshDevice | None = None,
    memory_config: MemoryConfig | None = None,
    optional_tensor: Spec | None = None,
) -> Plan:
    """A tensor of one value, or that value written over an existing tensor."""
    return _full(shape, fill_value, dtype, layout, device is not None, memory_config, optional_tensor)


def _full_like(
    like: Spec,
    value: Number,
    dtype: DataType | None,
    layout: Layout | None,
    device: MeshDevice | None,
    memory_config: MemoryConfig | None,
    output: Spec | None,
) -> Plan:
    layout = output.layout if output is not None else layout or like.layout
    dtype = output.dtype if output is not None else dtype if dtype is not None else like.dtype
    on_tiles = like.on_device and like.is_tile and layout is Layout.TILE
    if on_tiles and dtype in DEVICE_FILLED and dtype is like.dtype:
        return _filled_by_kernel(like, float(value), memory_config, output)
    config = memory_config if memory_config is not None or not like.on_device else like.memory_config
    return _full(like.shape, value, dtype, layout, device is not None or like.on_device, config, output)


def _filled_by_kernel(like: Spec, value: float, memory_config: MemoryConfig | None, output: Spec | None) -> Plan:
    """ttnn.fill: a 16-bit destination register truncates the value instead of rounding it."""
    if output is not None:
        require(output.shape == like.shape, f"the output has shape {list(output.shape)}, not {list(like.shape)}")
    config = memory_config or like.memory_config
    if lacks_shards(config):
        source = like.memory_config
        same = source.memory_layout is config.memory_layout
        kept = like.shard_spec if same else None
        shards = kept or fresh_shards(current_board().grid, like.padded_shape, config.memory_layout)
        config = MemoryConfig(config.memory_layout, config.buffer_type, shards)
    out = output or Spec.of(like.shape, like.dtype, Layout.TILE, config)
    stored = packer.pack(torch.full((16,), value, dtype=torch.float32), like.dtype, from_fp32=False)[0].item()
    into = () if output is None else ("optional_tensor",)
    return Plan(out, lambda: torch.full(out.shape, stored, dtype=CARRIER[out.dtype]), reads=(), into=into)


@operation("ttnn.zeros_like")
def zeros_like(
    tensor: Spec,
    dtype: DataType | None = None,
    layout: Layout | None = None,
    device: MeshDevice | None = None,
    memory_config: MemoryConfig | None = None,
    optional_tensor: Spec | None = None,
) -> Plan:
    """Zeros in the shape of a tensor and, if not said otherwise, with its dtype, layout and memory."""
    return _full_like(tensor, 0.0, dtype, layout, device, memory_config, optional_tensor)


@operation("ttnn.ones_like")
def ones_like(
    tensor: Spec,
    dtype: DataType | None = None,
    layout: Layout | None = None,
    device: MeshDevice | None = None,
    memory_config: MemoryConfig | None = None,
    optional_tensor: Spec | None = None,
) -> Plan:
    """Ones in the shape of a tensor and, if not said otherwise, with its dtype, layout and memory."""
    return _full_like(tensor, 1.0, dtype, layout, device, memory_config, optional_tensor)


@operation("ttnn.full_like")
def full_like(
    tensor: Spec,
    fill_value: Number,
    dtype: DataType | None = None,
    layout: Layout | None = None,
    device: MeshDevice | None = None,
    memory_config: MemoryConfig | None = None,
    optional_tensor: Spec | None = None,
) -> Plan:
    """One value in the shape of a tensor and, if not said otherwise, with its dtype, layout and memory."""
    return _full_like(tensor, fill_value, dtype, layout, device, memory_config, optional_tensor)


@operation("ttnn.empty_like")
def empty_like(
    tensor: Spec,
    *,
    dtype: DataType | None = None,
    layout: Layout | None = None,
    device: MeshDevice | None = None,
    memory_config: MemoryConfig | None = None,
) -> Plan:
    """An uninitialised tensor like another; the emulator fills it with zeros."""
    require(device is not None or tensor.on_device, "the tensor is on the host, and no device is given")
    spec = Spec.of(
        tensor.shape,
        dtype if dtype is not None else tensor.dtype,
        layout or tensor.layout,
        memory_config or tensor.memory_config,
    )
    return filled(spec, 0)


@operation("ttnn.arange")
def arange(
    start: int = 0,
    end: int = 0,
    step: int = 1,
    *,
    dtype: DataType = DataType.BFLOAT16,
    device: MeshDevice | None = None,
    memory_config: MemoryConfig | None = None,
    layout: Layout = Layout.ROW_MAJOR,
) -> Plan:
    """start, start + step, … up to end, exclusive."""
    require(dtype in RANGE_DTYPES, f"ranges of {dtype} are not supported")
    require(step != 0, "step must not be 0")
    require((end - start) * step >= 0, f"a step of {step} does not lead from {start} to {end}")
    values = torch.arange(start, end, step, dtype=torch.int64)
    spec = Spec.of((len(values),), dtype, layout, memory_config or DRAM_MEMORY_CONFIG, on_device=device is not None)
    return _given(spec, values.to(torch.float32) if dtype in (DataType.BFLOAT16, DataType.FLOAT32) else values)


def _given(spec: Spec, values: torch.Tensor) -> Plan:
    carrier = carriers.wide(carriers.host_convert(values, spec.dtype)).reshape(spec.shape)
    return Plan(spec, lambda: carrier.clone(), reads=(), program=NO_PROGRAM)


@operation("ttnn.from_buffer")
def from_buffer(
    buffer: Any,
    shape: Sequence[int],
    dtype: DataType,
    device: MeshDevice,
    layout: Layout | None = None,
    memory_config: MemoryConfig | None = None,
) -> Plan:
    """A tensor with the values of a list."""
    require(dtype not in BLOCK_FLOAT_DTYPES, f"lists of {dtype} are not taken (Unreachable in the library)")
    require(dtype is not DataType.INVALID, "there are no values of DataType.INVALID (Unreachable in the library)")
    number = int if dtype in INTEGER_RANGE else (int, float)
    require(isinstance(buffer, Sequence) and all(isinstance(item, number) for item in buffer), f"no list of {dtype}")
    spec = Spec.of(tuple(shape), dtype, layout or Layout.ROW_MAJOR, memory_config or DRAM_MEMORY_CONFIG)
    require(len(buffer) == spec.volume, f"{len(buffer)} values do not fit the shape {list(shape)}")
    if dtype in INTEGER_RANGE:
        low, high = INTEGER_RANGE[dtype]
        require(all(low <= item <= high for item in buffer), f"a value is no {dtype}")
    return _given(spec, torch.tensor(buffer, dtype=torch.int64 if dtype in INTEGER_RANGE else torch.float32))
