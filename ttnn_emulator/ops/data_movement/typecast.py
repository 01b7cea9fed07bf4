"""Changes of dtype: typecast on the device, to_dtype on the host, bitcast."""

from __future__ import annotations

from typing import Any

from ttnn_emulator.enums import BLOCK_FLOAT_DTYPES, DataType, Layout
from ttnn_emulator.errors import require
from ttnn_emulator.execution.operation_table import Plan, operation
from ttnn_emulator.numerics.formats import casts
from ttnn_emulator.ops.flows.value_flow import Flow
from ttnn_emulator.ops.support.common_checks import require_on_device
from ttnn_emulator.tensors.memory_config import MemoryConfig
from ttnn_emulator.tensors.shapes import DEFAULT_TILE
from ttnn_emulator.tensors.spec import ROW_MAJOR_BYTES, Spec, tile_bytes

TYPECAST = "TypecastDeviceOperation"


def is_page_aligned(spec: Spec, alignment: int = 16) -> bool:
    """Whether pages are contiguous in L1."""
    return spec.page_bytes % alignment == 0


def typecast_flow(
    flow: Flow, dtype: DataType, memory_config: MemoryConfig | None = None, output: Spec | None = None
) -> Flow:
    """Cast on the device."""
    spec = flow.spec
    require_on_device(spec)
    config = output.memory_config if output is not None else memory_config or spec.memory_config
    require(
        spec.memory_config.memory_layout is config.memory_layout,
        f"typecast keeps the memory layout: {spec.memory_config.brief()} cannot become {config.brief()}",
    )
    require(spec.is_tile or spec.volume > 0, "there are no rows to cast")
    if spec.is_sharded:
        require(is_page_aligned(spec), f"pages of {spec.page_bytes} B of a sharded input must be aligned to 16 B")
    _require_same_cores(spec, dtype, config)
    cast = casts.typecast(spec.dtype, dtype)
    if output is not None:
        require(output.shape == spec.shape, f"the output has shape {list(output.shape)}, not {list(spec.shape)}")
        require(output.layout is spec.layout, f"the output is in {output.layout}, the input in {spec.layout}")
        return flow.into(output, cast, by=TYPECAST)
    return flow.into(Spec.of(spec.shape, dtype, spec.layout, config), cast, by=TYPECAST)


def _require_same_cores(spec: Spec, dtype: DataType, config: MemoryConfig) -> None:
    """Shards whose tiles keep their size are cast core by core, so the output must have as many cores."""
    source, target = spec.shard_spec, config.shard_spec
    if source is None or target is None or spec.memory_config.is_dram or config.is_dram:
        return
    size = tile_bytes(DEFAULT_TILE, spec.dtype)
    if size != tile_bytes(DEFAULT_TILE, dtype):
        return
    if spec.dtype not in BLOCK_FLOAT_DTYPES:
        height, width = source.shape
        row = width * ROW_MAJOR_BYTES[spec.dtype]
        if row % 16 or height * row % size:
            return
    require(
        source.num_cores() == target.num_cores(),
        f"shards on {source.num_cores()} cores are not cast to shards on {target.num_cores()}",
    )


@operation("ttnn.typecast")
def typecast(
    input_tensor: Spec,
    dtype: DataType | None = None,
    input_dtype: DataType | None = None,
    output_dtype: DataType | None = None,
    *,
    memory_config: MemoryConfig | None = None,
    output_tensor: Spec | None = None,
    sub_core_grids: Any = None,
) -> Plan:
    """The values in another dtype: on the device as its kernels convert them, on the host as C++ does."""
    target = dtype if dtype is not None else output_dtype
    assert target is not None
    if input_dtype is not None:
        require(input_dtype is input_tensor.dtype, f"the input is {input_tensor.dtype}, not {input_dtype}")
    if output_tensor is not None:
        require(target is output_tensor.dtype, f"the output is {output_tensor.dtype}, not {target}")
    if not input_tensor.on_device:
        require(output_tensor is None, "a host tensor is not cast into an existing output")
        require(sub_core_grids is None, "sub_core_grids is for tensors on a device")
        return host_cast_plan(input_tensor, target, "input_tensor")
    require(
        input_tensor.is_tile or sub_core_grids is None, "sub_core_grids needs an input in TILE layout, it is ROW_MAJOR"
    )
    flow = typecast_flow(Flow(input_tensor), target, memory_config, output_tensor)
    return flow.plan("input_tensor", None if output_tensor is None else "output_tensor")


@operation("ttnn.to_dtype")
def to_dtype(tensor: Spec, dtype: DataType) -> Plan:
    """A host tensor in another dtype; block floats are returned in TILE layout."""
    require(not tensor.on_device, "to_dtype takes a host tensor", hint="Use ttnn.typecast on a device.")
    return host_cast_plan(tensor, dtype, "tensor")


def host_cast_plan(spec: Spec, dtype: DataType, source: str) -> Plan:
    if dtype is spec.dtype:
        return Flow(spec).plan(source)
    layout = Layout.TILE if dtype in BLOCK_FLOAT_DTYPES else spec.layout
    tile = spec.tile if layout is spec.layout and spec.is_tile else None
    out = Spec.of(spec.shape, dtype, layout, spec.memory_config, on_device=False, tile=tile, alignment=spec.alignment)
    require(
        out.physical_shape == spec.physical_shape,
        f"in TILE layout the tensor would grow from {list(spec.physical_shape)} to {list(out.physical_shape)}",
        hint="Pad it first.",
    )
    return Flow(spec).into(out, casts.host_cast(spec.dtype, dtype), by=None).plan(source)


@operation("ttnn.bitcast", ignores=("sub_core_grids",))
def bitcast(
    input_tensor: Spec,
    dtype: DataType,
    *,
    memory_config: MemoryConfig | None = None,
    output_tensor: Spec | None = None,
) -> Plan:
    """Reinterpret the bits as another dtype. With another width, the chip returns garbage."""
    spec = input_tensor
    require_on_device(spec)
    if output_tensor is not None:
        require(dtype is output_tensor.dtype, f"the output is {output_tensor.dtype}, not {dtype}")
        require(output_tensor.shape == spec.shape, f"the output has shape {list(output_tensor.shape)}")
        require(output_tensor.layout is spec.layout, f"the output is in {output_tensor.layout}")
    out = output_tensor or Spec.of(spec.shape, dtype, spec.layout, memory_config or spec.memory_config)
    flow = Flow(spec).into(out, casts.bitcast(spec.dtype, dtype), by="UnaryDeviceOperation")
    return flow.plan("input_tensor", None if output_tensor is None else "output_tensor")
