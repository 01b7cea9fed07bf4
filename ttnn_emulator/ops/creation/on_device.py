"""Tensors created by kernels on the device: constants, ranges, and filled corners."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence

import torch

from ttnn_emulator.enums import DataType, Layout
from ttnn_emulator.errors import require
from ttnn_emulator.execution.operation_table import Plan, operation
from ttnn_emulator.hardware.device import MeshDevice
from ttnn_emulator.numerics.formats import carriers
from ttnn_emulator.numerics.formats.carriers import CARRIER, INTEGER_RANGE
from ttnn_emulator.ops.creation.filled import Number, host_number
from ttnn_emulator.ops.support.common_checks import require_on_device
from ttnn_emulator.tensors.memory_config import DRAM_MEMORY_CONFIG, MemoryConfig
from ttnn_emulator.tensors.spec import Spec

KERNEL_FILLED = frozenset({DataType.BFLOAT16, DataType.FLOAT32, DataType.INT32})


def _kernel_full(
    shape: Sequence[int], value: Number, dtype: DataType, layout: Layout, memory_config: MemoryConfig
) -> Plan:
    require(dtype in KERNEL_FILLED, f"no tensors of {dtype} are filled")
    require(len(shape) > 1, f"a shape of two dimensions or more is needed, not {list(shape)}")
    require(all(size > 0 for size in shape), f"{list(shape)} has an empty dimension")
    stored = _bits_in(value, dtype)
    spec = Spec.of(shape, dtype, layout, memory_config)
    return Plan(spec, lambda: torch.full(spec.shape, stored, dtype=CARRIER[dtype]), reads=())


def _bits_in(value: Number, dtype: DataType) -> Number:
    """The number as passed to the writer: float32 bits; a bfloat16 tensor uses the rounded upper half."""
    if dtype is DataType.INT32:
        return value if isinstance(value, int) else struct.unpack("<i", struct.pack("<f", value))[0]
    if isinstance(value, int):
        value = float(value)
    return host_number(value, dtype)


@operation("ttnn.moreh_full")
def moreh_full(
    shape: Sequence[int],
    fill_value: Number,
    device: MeshDevice,
    *,
    dtype: DataType = DataType.BFLOAT16,
    layout: Layout = Layout.TILE,
    memory_config: MemoryConfig | None = None,
) -> Plan:
    """A tensor of one value, filled on the device."""
    return _kernel_full(shape, fill_value, dtype, layout, memory_config or DRAM_MEMORY_CONFIG)


@operation("ttnn.moreh_full_like")
def moreh_full_like(
    input: Spec,
    fill_value: Number,
    dtype: DataType | None = None,
    layout: Layout | None = None,
    memory_config: MemoryConfig | None = None,
) -> Plan:
    """One value in the shape of a tensor, filled on the device."""
    require_on_device(input)
    config = memory_config or input.memory_config
    return _kernel_full(input.shape, fill_value, dtype or input.dtype, layout or input.layout, config)


@operation("ttnn.moreh_arange")
def moreh_arange(
    start: float = 0,
    end: float = 0,
    step: float = 1,
    device: MeshDevice | None = None,
    *,
    output: Spec | None = None,
    untilize_out: bool = False,
    dtype: DataType = DataType.BFLOAT16,
    memory_config: MemoryConfig | None = None,
) -> Plan:
    """start, start + step, … up to end, exclusive, on the device; in TILE layout one row of tiles."""
    require(step != 0, "step must not be 0")
    require((end - start) * step >= 0, f"a step of {step} does not lead from {start} to {end}")
    require(dtype in KERNEL_FILLED, f"ranges of {dtype} are not supported")
    count = math.ceil((end - start) / step)
    if output is not None:
        require(dtype is output.dtype, f"the output is {output.dtype}, not {dtype}")
        require(not output.is_sharded, "the output must be interleaved")
        wanted = Layout.ROW_MAJOR if untilize_out else Layout.TILE
        require(output.layout is wanted, f"the output must be in {wanted}, it is in {output.layout}")
        spec = output
    else:
        shape, layout = ((count,), Layout.ROW_MAJOR) if untilize_out else ((1, count), Layout.TILE)
        spec = Spec.of(shape, dtype, layout, memory_config or DRAM_MEMORY_CONFIG)
    values = _steps(start, step, count, dtype)

    def compute() -> torch.Tensor:
        made = torch.zeros(spec.volume, dtype=CARRIER[dtype])
        made[: min(count, spec.volume)] = values[: spec.volume]
        return made.reshape(spec.shape)

    return Plan(spec, compute, reads=(), into=() if output is None else ("output",))


def _steps(start: float, step: float, count: int, dtype: DataType) -> torch.Tensor:
    """start + index × step in float32; bfloat16 truncates it to the upper half."""
    index = torch.arange(count, dtype=torch.float32)
    values = torch.tensor(start, dtype=torch.float32) + index * torch.tensor(step, dtype=torch.float32)
    if dtype in INTEGER_RANGE:
        return carriers.wrap_integer(values.to(torch.int64), dtype)
    return values if dtype is DataType.FLOAT32 else carriers.truncate_bf16(values)


def _corner(
    sizes: tuple[int, int, int, int],
    corner: tuple[int, int],
    like: Spec,
    values: tuple[float, float],
    config: MemoryConfig | None,
) -> Plan:
    height, width = sizes[2:]
    memory_config = config or like.memory_config
    require(min(corner) >= 0, f"{list(corner)} has a negative number")
    require(min(sizes) > 0, f"{list(sizes)} has an empty dimension")
    require(corner[0] <= height and corner[1] <= width, f"{list(corner)} exceeds {height} x {width}")
    require(like.dtype is DataType.BFLOAT16, f"only bfloat16 is supported, not {like.dtype}")
    require(not like.is_sharded and not memory_config.is_sharded(), "shards are not supported")
    require_on_device(like)
    spec = Spec.of(sizes, like.dtype, Layout.ROW_MAJOR, memory_config)
    high, low = (host_number(value, like.dtype) for value in values)

    def compute() -> torch.Tensor:
        made = torch.full(sizes, low, dtype=torch.float32)
        made[:, :, : corner[0], : corner[1]] = high
        return made

    return Plan(spec, compute, reads=())


@operation("ttnn.fill_rm")
def fill_rm(
    N: int,
    C: int,
    H: int,
    W: int,
    hOnes: int,
    wOnes: int,
    any: Spec,
    val_hi: float,
    val_lo: float,
    *,
    memory_config: MemoryConfig | None = None,
) -> Plan:
    """`val_hi` in the upper left corner of every matrix, `val_lo` elsewhere."""
    return _corner((N, C, H, W), (hOnes, wOnes), any, (val_hi, val_lo), memory_config)


@operation("ttnn.fill_ones_rm")
def fill_ones_rm(
    N: int, C: int, H: int, W: int, hOnes: int, wOnes: int, any: Spec, *, memory_config: MemoryConfig | None = None
) -> Plan:
    """Ones in the upper left corner of every matrix, zeros elsewhere."""
    return _corner((N, C, H, W), (hOnes, wOnes), any, (1.0, 0.0), memory_config)
