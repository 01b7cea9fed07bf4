"""Changes of layout: to_layout, tilize and untilize with and without padding."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ttnn_emulator.enums import BLOCK_FLOAT_DTYPES, FLOAT_DTYPES, DataType, Layout
from ttnn_emulator.errors import require
from ttnn_emulator.execution.operation_table import Plan, operation
from ttnn_emulator.hardware.core_grid import CoreRangeSet
from ttnn_emulator.ops.data_movement.typecast import typecast_flow
from ttnn_emulator.ops.data_movement.untilize_kernels import routed
from ttnn_emulator.ops.flows.layout import (
    WHOLE,
    Run,
    tilize_flow,
    tilize_padded_flow,
    uncovering,
    untilize_flow,
    untilize_unpadded_flow,
)
from ttnn_emulator.ops.flows.reshape import Dims, last, reshape_flow, view_flow
from ttnn_emulator.ops.flows.value_flow import Flow
from ttnn_emulator.ops.support.common_checks import require_on_device
from ttnn_emulator.ops.support.derived_shards import tile_aligned
from ttnn_emulator.tensors.memory_config import DRAM_MEMORY_CONFIG, MemoryConfig
from ttnn_emulator.tensors.shapes import DEFAULT_TILE, Shape, Tile, round_up
from ttnn_emulator.tensors.spec import Spec

INT32_LIMIT, UINT32_LIMIT = 2.0**31, 2.0**32


def layout_flow(
    flow: Flow,
    layout: Layout,
    dtype: DataType | None = None,
    memory_config: MemoryConfig | None = None,
    *,
    pad_value: float = 0.0,
    run: Run = WHOLE,
) -> Flow:
    """`ttnn.to_layout` on a flow."""
    spec = flow.spec
    if spec.layout is layout:
        return flow
    require(layout in (Layout.ROW_MAJOR, Layout.TILE), f"{layout} is no layout of a tensor")
    if not spec.on_device:
        if spec.dtype in BLOCK_FLOAT_DTYPES and layout is Layout.ROW_MAJOR:
            # The library keeps whole tiles of block floats and cannot unpad others.
            require(spec.shape == spec.padded_shape, "Tensor layout must be ROW_MAJOR for unpadding")
            return flow
        out = spec.with_(layout=layout, memory_config=DRAM_MEMORY_CONFIG)  # the device memory config is dropped
        return flow.into(out, by=None)
    config = memory_config or spec.memory_config
    for side in (spec.memory_config, config):
        if side.shard_spec is not None:
            require(tile_aligned(side.shard_spec), f"shards of {list(side.shard_spec.shape)} are not whole tiles")
    if layout is Layout.ROW_MAJOR:
        native = spec.dtype is DataType.BFLOAT8_B and dtype is DataType.BFLOAT16
        require(
            dtype in (None, spec.dtype) or native,
            f"on the way to ROW_MAJOR, {spec.dtype} cannot become {dtype}",
            hint="Cast with ttnn.typecast.",
        )
        if spec.shape == spec.padded_shape:
            return untilize_flow(flow, config, run=run)
        return untilize_unpadded_flow(flow, spec.shape, config, run=run)
    return _to_tiles(flow, dtype, config, pad_value, run)


def _to_tiles(flow: Flow, dtype: DataType | None, config: MemoryConfig, pad_value: float, run: Run) -> Flow:
    spec = flow.spec
    if len(spec.padded_shape) < 2:
        require(not spec.is_sharded, "shards of a tensor of rank 1 cannot become tiles")
        flow = view_flow(flow, spec.shape, (1, last(spec.padded_shape)))
    now = flow.spec
    whole = last(now.padded_shape) % 32 == 0 and last(now.padded_shape, 2) % 32 == 0
    if whole:
        return tilize_flow(flow, config, dtype, run=run)
    padded = Spec.of(spec.shape, DataType.BFLOAT16, Layout.TILE).padded_shape
    _require_pad_value(spec.dtype, pad_value)
    flow = tilize_padded_flow(flow, padded, config, dtype, run=run)
    return reshape_flow(flow, spec.shape) if spec.rank < 2 else flow


def _require_pad_value(dtype: DataType, value: float) -> None:
    if dtype in FLOAT_DTYPES:
        return
    if dtype is DataType.INT32:
        require(-INT32_LIMIT <= value < INT32_LIMIT, f"a padding of {value} is no {dtype}")
    else:
        require(0.0 <= value < UINT32_LIMIT, f"a padding of {value} is no uint32")


@operation("ttnn.to_layout")
def to_layout(
    tensor: Spec,
    layout: Layout,
    dtype: DataType | None = None,
    memory_config: MemoryConfig | None = None,
    sub_core_grids: CoreRangeSet | None = None,
    pad_value: float = 0.0,
) -> Plan:
    """Convert to another layout; a no-op if the tensor already has it."""
    run = Run(subgrid=sub_core_grids)
    flow = layout_flow(Flow(tensor), layout, dtype, memory_config, pad_value=pad_value, run=run)
    fills = layout is Layout.TILE and tensor.layout is not layout
    return _filled(flow.plan("tensor"), pad_value if fills else None)


def _filled(plan: Plan, value: Any) -> Plan:
    """The plan with the contents of its output's padding, if there is any."""
    out = plan.outputs
    assert isinstance(out, Spec)
    return plan if value is None or out.padded_shape == out.shape else replace(plan, padding=float(value))


@operation("ttnn.tilize", ignores=("use_low_perf",))
def tilize(
    input_tensor: Spec,
    *,
    memory_config: MemoryConfig | None = None,
    dtype: DataType | None = None,
    use_multicore: bool = True,
    tile: Tile | None = None,
    sub_core_grids: CoreRangeSet | None = None,
) -> Plan:
    """Tilize; height and width must be whole tiles."""
    run = Run(use_multicore, sub_core_grids)
    flow = tilize_flow(Flow(input_tensor), memory_config, dtype, tile=tile or DEFAULT_TILE, run=run)
    return flow.plan("input_tensor")


@operation("ttnn.tilize_with_val_padding")
def tilize_with_val_padding(
    input_tensor: Spec,
    output_tensor_shape: Shape,
    pad_value: Any = 0.0,
    *,
    memory_config: MemoryConfig | None = None,
    dtype: DataType | None = None,
    use_multicore: bool = True,
    sub_core_grids: CoreRangeSet | None = None,
) -> Plan:
    """Tilize and pad to a padded shape."""
    run = Run(use_multicore, sub_core_grids)
    flow = tilize_padded_flow(Flow(input_tensor), tuple(output_tensor_shape), memory_config, dtype, run=run)
    return _filled(flow.plan("input_tensor"), pad_value)


@operation("ttnn.tilize_with_zero_padding")
def tilize_with_zero_padding(
    input_tensor: Spec,
    *,
    memory_config: MemoryConfig | None = None,
    output_dtype: DataType | None = None,
    use_multicore: bool = True,
    sub_core_grids: CoreRangeSet | None = None,
) -> Plan:
    """Tilize and pad with zeros to whole tiles."""
    padded = _rounded(input_tensor.padded_shape)
    if input_tensor.volume == 0:  # an empty result has the padded shape itself, at the rank of the input
        padded = padded[len(padded) - input_tensor.rank :]
    run = Run(use_multicore, sub_core_grids)
    flow = tilize_padded_flow(Flow(input_tensor), padded, memory_config, output_dtype, run=run)
    return _filled(flow.plan("input_tensor"), 0.0)


def _rounded(shape: Dims) -> Dims:
    height, width = last(shape, 2), last(shape)
    return (*shape[:-2], round_up(height, 32), round_up(width, 32))


@operation("ttnn.untilize")
def untilize(
    input_tensor: Spec,
    *,
    memory_config: MemoryConfig | None = None,
    use_multicore: bool = True,
    sub_core_grids: CoreRangeSet | None = None,
) -> Plan:
    """Untilize."""
    run = Run(use_multicore, sub_core_grids)
    plan = untilize_flow(Flow(input_tensor), memory_config, run=run).plan("input_tensor")
    return routed(plan, input_tensor, memory_config, run)


@operation("ttnn.untilize_with_unpadding")
def untilize_with_unpadding(
    input_tensor: Spec,
    output_tensor_end: Shape,
    *,
    memory_config: MemoryConfig | None = None,
    use_multicore: bool = True,
    sub_core_grids: CoreRangeSet | None = None,
) -> Plan:
    """Untilize and unpad, up to the given last element of each dimension, inclusive."""
    shape = tuple((end + 1) & 0xFFFFFFFF for end in output_tensor_end)
    run = Run(use_multicore, sub_core_grids)
    plan = untilize_unpadded_flow(Flow(input_tensor), shape, memory_config, run=run).plan("input_tensor")
    shape = shape[: input_tensor.rank]
    if input_tensor.volume and any(new > old for new, old in zip(shape, input_tensor.shape)):
        return replace(plan, compute=uncovering(input_tensor, shape), padded=input_tensor, narrow=False)
    return plan


@operation("ttnn.fill_implicit_tile_padding", ignores=("memory_config",))
def fill_implicit_tile_padding(input_tensor: Spec, fill_value: Any) -> Plan:
    """Fill the padding of tiles, in place."""
    spec = input_tensor
    flow = Flow(spec)
    if last(spec.shape) % 32 == 0 and last(spec.shape, 2) % 32 == 0:
        return flow.plan("input_tensor")
    require_on_device(spec)
    if spec.dtype in BLOCK_FLOAT_DTYPES:
        flow = typecast_flow(flow, DataType.BFLOAT16)
    require(spec.is_tile, f"only TILE layout has such padding, not {spec.layout}")
    require(spec.dtype is not DataType.UINT8, "tiles of uint8 cannot be filled")
    if spec.dtype in BLOCK_FLOAT_DTYPES:
        flow = typecast_flow(flow, spec.dtype)
    return _filled(flow.plan("input_tensor"), fill_value)
