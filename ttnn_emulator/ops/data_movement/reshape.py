"""Other shapes for the same values: reshape, view, squeeze, unsqueeze.

If no values move, the result shares the buffer of its input.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ttnn_emulator.enums import DataType, Layout
from ttnn_emulator.errors import require
from ttnn_emulator.execution.operation_table import Plan, operation
from ttnn_emulator.ops.flows.memory import clone_flow
from ttnn_emulator.ops.flows.reshape import (
    Dims,
    checked_view_flow,
    infer_dims,
    last,
    reshape_flow,
    view_flow,
)
from ttnn_emulator.ops.flows.value_flow import Flow, reshaped
from ttnn_emulator.ops.support.common_checks import require_on_device
from ttnn_emulator.tensors.memory_config import MemoryConfig
from ttnn_emulator.tensors.shapes import TILE_SIZE, Shape, normalize_dim
from ttnn_emulator.tensors.spec import Spec, padded_spec

UNKNOWN = 0xFFFFFFFF  # -1 as stored in a ttnn.Shape


@operation("ttnn.reshape", ignores=("pad_value", "reshape_tile_mode", "skip_padding_fill"))
def reshape(
    input_tensor: Spec,
    shape: Shape | Sequence[int] | None = None,
    logical_shape: Shape | None = None,
    padded_shape: Shape | None = None,
    *,
    memory_config: MemoryConfig | None = None,
    sub_core_grids: Any = None,
) -> Plan:
    """The same values in another shape; one dimension may be -1."""
    if shape is not None and not isinstance(shape, Shape):
        dims = infer_dims(shape, input_tensor.volume)
        padded = dims
    else:
        given = tuple(shape if logical_shape is None else logical_shape)  # type: ignore[arg-type]
        dims = _inferred(given, input_tensor)
        padded = tuple(padded_shape) if padded_shape is not None and dims == given else dims
    flow = reshape_flow(Flow(input_tensor), dims, padded, memory_config, subgrid=sub_core_grids is not None)
    return flow.plan("input_tensor")


def _inferred(shape: Dims, spec: Spec) -> Dims:
    unknown = [index for index, size in enumerate(shape) if size in (-1, UNKNOWN)]
    require(len(unknown) <= 1, f"shape {list(shape)} has more than one -1")
    if not unknown:
        return shape
    known = math.prod(size for size in shape if size not in (-1, UNKNOWN))
    found = spec.volume // known if known else 0
    return tuple(found if index == unknown[0] else size for index, size in enumerate(shape))


@operation("ttnn.view")
def view(input_tensor: Spec, shape: Shape | Sequence[int]) -> Plan:
    """Another shape over the same buffer; refused where the values would have to move."""
    dims = tuple(shape) if isinstance(shape, Shape) else infer_dims(shape, input_tensor.volume)
    return checked_view_flow(Flow(input_tensor), dims).plan("input_tensor")


@operation("ttnn.experimental.view")
def experimental_view(
    input_tensor: Spec,
    shape: Sequence[int] | None = None,
    N: int | None = None,
    C: int | None = None,
    H: int | None = None,
    W: int | None = None,
) -> Plan:
    """Another shape over the same buffer, whatever that does to the order of the values."""
    dims = infer_dims(shape if shape is not None else (N, C, H, W), input_tensor.volume)  # type: ignore[arg-type]
    return view_flow(Flow(input_tensor), dims).plan("input_tensor")


@operation("ttnn.squeeze")
def squeeze(input_tensor: Spec, dim: int | Sequence[int] | None = None) -> Plan:
    """Without dimensions of size 1: all of them, or those named."""
    return squeeze_flow(Flow(input_tensor), dim).plan("input_tensor")


def squeeze_flow(flow: Flow, dim: int | Sequence[int] | None = None) -> Flow:
    spec = flow.spec
    rank = spec.rank
    dims = tuple(range(rank)) if dim is None else (dim,) if isinstance(dim, int) else tuple(dim)
    if rank == 0:
        require(not dims or dims in ((0,), (-1,)), f"a tensor of rank 0 has no dimension {dims}")
        return flow
    require(all(-rank <= each < rank for each in dims), f"dimensions {list(dims)} are out of range for rank {rank}")
    positions = [normalize_dim(each, rank) for each in dims]
    require(len(set(positions)) == len(positions), f"a dimension appears twice in {list(dims)}")
    gone = {position for position in positions if spec.shape[position] == 1}
    if not gone:
        return flow
    shape = tuple(size for index, size in enumerate(spec.shape) if index not in gone)
    # The padded shape may have more dimensions than the logical one; the library counts from the front.
    padded = tuple(size for index, size in enumerate(spec.padded_shape) if index not in gone)
    return reshape_flow(flow, shape, padded)


@operation("ttnn.unsqueeze")
def unsqueeze(input_tensor: Spec, dim: int) -> Plan:
    """With a dimension of size 1 at `dim`."""
    rank = input_tensor.rank
    require(-rank - 1 <= dim <= rank, f"dimension {dim} is out of range for a tensor of rank {rank}")
    at = dim + rank + 1 if dim < 0 else dim
    shape = (*input_tensor.shape[:at], 1, *input_tensor.shape[at:])
    return reshape_flow(Flow(input_tensor), shape).plan("input_tensor")


@operation("ttnn.unsqueeze_to_4D")
def unsqueeze_to_4D(tensor: Spec) -> Plan:
    """With leading dimensions of size 1, up to rank 4."""
    return to_4d_flow(Flow(tensor)).plan("tensor")


def to_4d_flow(flow: Flow) -> Flow:
    spec = flow.spec
    require(spec.rank <= 4, f"a tensor of rank {spec.rank} has more than 4 dimensions")
    if spec.rank == 4:
        return flow
    return reshape_flow(flow, _to_rank(spec.shape, 4), _to_rank(spec.padded_shape, 4))


def from_4d_flow(flow: Flow, rank: int) -> Flow:
    """Back to a lower rank; the dimensions that go must be ones."""
    spec = flow.spec
    require(spec.rank == 4, f"the tensor must have rank 4, not {spec.rank}")
    require(1 <= rank <= 4, f"a tensor cannot be squeezed to rank {rank}")
    if rank == 4:
        return flow
    return reshape_flow(flow, _to_rank(spec.shape, rank), _to_rank(spec.padded_shape, rank))


def _to_rank(shape: Dims, rank: int) -> Dims:
    return tuple(Shape(shape).to_rank(rank))


@operation("ttnn.reshape_on_device")
def reshape_on_device(
    input_tensor: Spec, W: int, Z: int, Y: int, X: int, *, memory_config: MemoryConfig | None = None
) -> Plan:
    """The legacy reshape to rank 4; tiled tensors must keep their padding."""
    spec = input_tensor
    shape = infer_dims((W, Z, Y, X), spec.volume)
    config = memory_config or spec.memory_config
    flow = Flow(spec)
    require(len(spec.padded_shape) >= 4, f"the input must have rank 4, not {spec.rank}")
    if shape[3] == spec.padded_shape[3]:
        return view_flow(flow, shape).plan("input_tensor")
    require_on_device(spec)
    if spec.padded_shape == shape:
        if spec.memory_config != config:
            flow = clone_flow(flow, config)
        return flow.plan("input_tensor")
    if spec.layout is Layout.ROW_MAJOR and _is_odd(spec.padded_shape, shape):
        require(spec.dtype is DataType.BFLOAT16, f"rows of this width are reshaped in bfloat16 only, not {spec.dtype}")
        out = Spec.of(shape, spec.dtype, spec.layout, config)
        return flow.into(out, reshaped(shape), by=None).plan("input_tensor")
    require(spec.dtype in (DataType.BFLOAT16, DataType.FLOAT32), f"only bfloat16 and float32, not {spec.dtype}")
    require(not spec.is_sharded and not config.is_sharded(), "shards are reshaped by ttnn.reshape")
    out = padded_spec(shape, shape, spec.dtype, spec.layout, config, tile=spec.tile if spec.is_tile else None)
    if spec.is_tile:
        require(
            math.prod(spec.padded_shape) == math.prod(out.padded_shape),
            f"{list(spec.padded_shape)} and {list(out.padded_shape)} differ in padding: use ttnn.reshape",
        )
    else:
        old, new = spec.padded_shape[3], shape[3]
        require(old % 8 == 0 and new % 8 == 0, f"widths must be multiples of 8, not {old} and {new}")
        require(old % new == 0 or new % old == 0, f"of the widths {old} and {new} one must divide the other")
    return flow.into(out, reshaped(shape), by="ReshapeDeviceOperation").plan("input_tensor")


def _is_odd(old: Dims, new: Dims) -> bool:
    """Whether the kernel cannot handle these rows, so that the library reshapes on the host."""
    if old[3] % 8 == 0 and new[3] % 8 == 0:
        return False
    sizes = (math.prod(new[:-1]), last(new), last(old), math.prod(old[:-1]))
    return any(size % TILE_SIZE for size in sizes)
