"""sum, mean, max and min: how the library decomposes them into reductions of one axis."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

from ttnn_emulator.enums import BLOCK_FLOAT_DTYPES, Arch, DataType, Layout, MathFidelity
from ttnn_emulator.errors import require
from ttnn_emulator.execution.operation_table import composite, ttnn
from ttnn_emulator.hardware.core_grid import CoreRangeSet
from ttnn_emulator.numerics.units.matrix_unit import MathConfig
from ttnn_emulator.ops.reduction.device_operations import HW, MAX, MIN, SUM, TILE, H, Step, W, add_along, reduce_axis
from ttnn_emulator.ops.support.common_checks import math_config
from ttnn_emulator.tensors.memory_config import MemoryConfig
from ttnn_emulator.tensors.shapes import div_up, round_up
from ttnn_emulator.tensors.spec import Spec
from ttnn_emulator.tensors.tensor import Tensor

MEAN = "mean"
FILL = {MAX: -math.inf, MIN: math.inf}  # fill of the tile padding; sums use 0
# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/reduction/generic/generic_reductions.cpp, INT32_MIN + 1
INTEGER_FILL = {MAX: -(2**31) + 1, MIN: 2**31 - 1}
EMPTY_FILL = {SUM: 0.0, "prod": 1.0}  # the result for empty inputs; NaN for all others
# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/reduction/generic/device/reduce_op.cpp, k_min_ht_for_split
LEAST_DENSE_SPLIT = 16  # height in tiles from which a ROW_MAJOR column sum is split over more cores …
LEAST_TILED_SPLIT = 20  # … and a tiled one
SPLIT_DTYPES = (DataType.BFLOAT16, DataType.FLOAT32)


@dataclasses.dataclass(frozen=True)
class Request:
    """The arguments that every part of a reduction needs."""

    kind: str
    memory: MemoryConfig | None
    config: MathConfig
    cores: CoreRangeSet | None = None
    fast: bool = False
    layout: Layout | None = None
    chained: bool = False  # intermediate values of a bfloat16 sum stay float32

    def memory_for(self, tensor: Tensor) -> MemoryConfig:
        return self.memory if self.memory is not None else tensor._spec.memory_config


def dims_of(dim: int | Sequence[int] | None, rank: int) -> list[int]:
    """The axes to reduce, non-negative and ascending; None means all."""
    if dim is None or (not isinstance(dim, int) and not dim):
        return list(range(rank))
    given = [dim] if isinstance(dim, int) else list(dim)
    found = []
    for item in given:
        dimension = item + rank if item < 0 else item
        if rank == 0 and item == -1:
            dimension = 0
        require(
            0 <= dimension < rank or (rank == 0 and dimension == 0), f"dimension {item} is out of range for rank {rank}"
        )
        found.append(dimension)
    require(len(set(found)) == len(found), f"dimensions {given} name one axis twice")
    return sorted(found)


# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/reduction/generic/device/reduce_op.cpp, is_wormhole
def default_config(given: Any, tensor: Tensor) -> MathConfig:
    """HiFi4 with a 32-bit destination register is faulty on Wormhole, so the library uses HiFi3 there."""
    wormhole = tensor._device is None or tensor._device.board.arch is Arch.WORMHOLE_B0
    fidelity = MathFidelity.HiFi3 if wormhole else MathFidelity.HiFi4
    return math_config(given, fidelity=fidelity, approx=False, fp32_acc=True)


def kept_shape(shape: Sequence[int], dims: Sequence[int], keepdim: bool) -> list[int]:
    return [1 if axis in dims else size for axis, size in enumerate(shape) if keepdim or axis not in dims]


def reshaped(tensor: Tensor, shape: Sequence[int]) -> Tensor:
    return ttnn.reshape(tensor, list(shape))


def in_four_dimensions(tensor: Tensor) -> Tensor:
    shape = tensor._spec.shape
    if len(shape) == 4:
        return tensor
    if len(shape) < 4:
        return reshaped(tensor, (1,) * (4 - len(shape)) + shape)
    return reshaped(tensor, (math.prod(shape[:-3]), *shape[-3:]))


def fill_of(kind: str, dtype: DataType) -> float | int:
    return (INTEGER_FILL if dtype is DataType.INT32 else FILL).get(kind, 0)


def reduce_nothing(kind: str, tensor: Tensor, dims: Sequence[int], keepdim: bool, memory: MemoryConfig) -> Tensor:
    """The reduction of a tensor without elements."""
    spec = tensor._spec
    if kind in (MAX, MIN):
        for axis in dims:
            require(spec.shape[axis] != 0, f"{kind} over dimension {axis}, which has size 0, is not defined")
    fill = EMPTY_FILL.get(kind, math.nan)
    shape = kept_shape(spec.shape, dims, keepdim)
    return ttnn.full(shape, fill, spec.dtype, spec.layout, tensor._device, memory_config=memory)


# -- sum, mean, max, min ----------------------------------------------------------------------------------------------


def _reduce(
    kind: str,
    tensor: Tensor,
    dim: int | Sequence[int] | None,
    keepdim: bool,
    memory: MemoryConfig | None,
    config: Any,
    scalar: float,
    cores: CoreRangeSet | None,
    fast: bool,
    layout: Layout | None = None,
) -> Tensor:
    spec = tensor._spec
    if kind == MEAN:
        require(spec.dtype not in (DataType.INT32, DataType.UINT32), f"mean does not take {spec.dtype}")
    dims = dims_of(dim, spec.rank)
    request = Request(kind, memory, default_config(config, tensor), cores, fast, layout)
    source = tensor
    if spec.is_tile:
        source = ttnn.fill_implicit_tile_padding(tensor, fill_of(kind, spec.dtype))
    summing = kind in (SUM, MEAN)
    if summing and 1 < len(dims) < spec.rank and spec.dtype is DataType.BFLOAT16:
        request = dataclasses.replace(request, chained=True)
    if kind == SUM and spec.dtype in (DataType.BFLOAT16, DataType.BFLOAT8_B) and scalar == 1.0:
        outer = [axis for axis in dims if axis < spec.rank - 2]
        if outer:
            return _sum_outer_first(tensor, source, dims, outer, keepdim, request)
    result = _reduce_axes(source, dims, scalar, request, last=request.chained, layout=layout)
    return _shaped(result, spec, dims, keepdim)


def _shaped(result: Tensor, spec: Spec, dims: Sequence[int], keepdim: bool) -> Tensor:
    if spec.rank == 0 or spec.volume == 0:
        return result if spec.rank == 0 else reshaped(result, kept_shape(spec.shape, dims, keepdim))
    return reshaped(result, kept_shape(spec.shape, dims, keepdim))


def _sum_outer_first(
    tensor: Tensor, source: Tensor, dims: list[int], outer: list[int], keepdim: bool, request: Request
) -> Tensor:
    """Sum the axes before the last two by adding tiles, then the last two."""
    spec = tensor._spec
    memory = request.memory_for(tensor)
    if spec.volume == 0:
        return reduce_nothing(SUM, tensor, dims, keepdim, memory)
    inner = [axis for axis in dims if axis not in outer]
    last_dtype, between = None, None
    if request.chained:
        last_dtype = DataType.FLOAT32 if inner else DataType.BFLOAT16
        between = DataType.FLOAT32 if len(outer) > 1 else None
    if not source._spec.is_tile:
        source = tilized(source, 0.0, memory, request.cores)
    for number, axis in enumerate(reversed(outer)):
        dtype = last_dtype if number == len(outer) - 1 else between
        source = add_along(source, axis, request.config, memory, dtype, None, request.cores)
    shape = source._spec.shape
    ends = [min(own, full) for own, full in zip(spec.shape, shape)]
    source = ttnn.slice(source, [0] * len(ends), ends, [1] * len(ends))
    if inner:
        source = _reduce_axes(source, inner, 1.0, request, last=request.chained, layout=request.layout)
    return _shaped(source, spec, dims, keepdim)


def tilized(tensor: Tensor, fill: float, memory: MemoryConfig, cores: CoreRangeSet | None) -> Tensor:
    padded = tensor._spec.padded_shape
    if len(padded) < 2:
        padded = (1,) * (2 - len(padded)) + padded
    shape = [*padded[:-2], *[round_up(size, TILE) for size in padded[-2:]]]
    return ttnn.tilize_with_val_padding(tensor, shape, fill, memory_config=memory, sub_core_grids=cores)


def _reduce_axes(
    tensor: Tensor, dims: list[int], scalar: float, request: Request, *, last: bool, layout: Layout | None = None
) -> Tensor:
    """Reduce axes to size 1, one launch each; the last two together."""
    spec = tensor._spec
    rank = spec.rank
    memory = request.memory_for(tensor)
    if rank == 0:
        return ttnn.clone(tensor, memory_config=memory)
    if spec.volume == 0:
        return reduce_nothing(request.kind, tensor, dims, True, memory)
    if dims in ([rank - 1], [rank - 2], [rank - 2, rank - 1]):
        axis = HW if len(dims) == 2 else W if dims[0] == rank - 1 else H
        if request.kind == MEAN:
            scalar /= math.prod(spec.shape[dimension] for dimension in dims)
        dtype = None
        if request.chained and request.kind == SUM:
            dtype = DataType.BFLOAT16 if last else DataType.FLOAT32
        made = _launch(in_four_dimensions(tensor), request, axis, scalar, memory, dtype, layout)
        return reshaped(made, kept_shape(spec.shape, dims, True))
    if request.kind == MEAN and len(dims) > 1:
        scalar /= math.prod(spec.shape[dimension] for dimension in dims)
        request = dataclasses.replace(request, kind=SUM)
    request = dataclasses.replace(request, memory=memory)
    fill = FILL.get(request.kind, 0.0)
    scaled_at = dims[0] if request.kind in (MAX, MIN) else dims[-1]
    for dimension in reversed(dims):
        target = dimension
        if dimension < rank - 2:
            tensor = ttnn.transpose(tensor, dimension, -2, memory_config=memory, pad_value=fill)
            target = rank - 2
        is_last = request.chained and last and dimension == dims[0]
        tensor = _reduce_axes(tensor, [target], scalar if dimension == scaled_at else 1.0, request, last=is_last)
        if dimension < rank - 2:
            tensor = ttnn.transpose(tensor, dimension, -2, memory_config=memory, pad_value=fill)
    return tensor


def _launch(
    tensor: Tensor,
    request: Request,
    axis: str,
    scaler: float,
    memory: MemoryConfig,
    dtype: DataType | None,
    layout: Layout | None,
) -> Tensor:
    """Choose the kernel for one axis, or for both of the last two, and run it."""
    spec = tensor._spec
    tiles = div_up(spec.physical_shape[0], TILE) * div_up(spec.physical_shape[1], TILE)
    dense = _reduces_rows(spec, request.kind, axis, memory, layout)
    step = _step_of(spec, request, axis, scaler, dense=dense, one_tile=axis == HW and tiles <= 1)
    if not dense and not spec.is_tile:
        fill = fill_of(MIN if step.negate else request.kind, spec.dtype)
        tensor = tilized(tensor, fill, memory if step.negate else spec.memory_config, request.cores)
    out_dtype = dtype or spec.dtype
    if axis == HW and (tiles > 1 or step.vector):
        return _reduce_both_axes(tensor, spec, request, step, memory, dtype)
    if axis == H and not step.negate and spec.dtype is not DataType.INT32:
        slices = _slices(tensor, spec, memory, request.cores, dense, request.kind in (SUM, MEAN))
        if slices > 1:
            return _reduce_in_slices(tensor, step, slices, scaler, out_dtype, memory, layout, request.cores)
    made_layout = (layout or Layout.ROW_MAJOR) if dense else Layout.TILE
    return reduce_axis(tensor, step, out_dtype, memory, made_layout, request.cores)


def _reduces_rows(spec: Spec, kind: str, axis: str, memory: MemoryConfig, layout: Layout | None) -> bool:
    """Whether a row-major kernel runs, without tilizing the input."""
    return (
        not spec.is_tile
        and not spec.is_sharded
        and not memory.is_sharded()
        and spec.dtype in SPLIT_DTYPES
        and kind in (SUM, MEAN)
        and (axis == H or (axis == W and layout is not Layout.TILE))
    )


def _step_of(spec: Spec, request: Request, axis: str, scaler: float, *, dense: bool, one_tile: bool) -> Step:
    """The reducing unit, and whether the scaler applies before or after the reduction."""
    kind, config = request.kind, request.config
    accurate = spec.dtype is DataType.FLOAT32 and config.fp32_acc and not request.fast
    integer = spec.dtype is DataType.INT32
    negate = kind == MIN and not (integer or accurate or spec.dtype is DataType.BFLOAT16)
    vector = integer or accurate or (kind == MIN and spec.dtype is DataType.BFLOAT16)
    summing = kind in (SUM, MEAN)
    afterwards = not summing or vector or one_tile
    return Step(
        SUM if summing else MAX if negate else kind,
        axis,
        config,
        vector=vector,
        negate=negate,
        dense=dense,
        infinite=not summing,
        scaler=1.0 if afterwards else scaler,
        post_scale=scaler if afterwards else 1.0,
    )


def _reduce_both_axes(
    tensor: Tensor, spec: Spec, request: Request, step: Step, memory: MemoryConfig, dtype: DataType | None
) -> Tensor:
    """The last two axes of more than one tile: the width in one launch, the height in the next."""
    out_dtype = dtype or spec.dtype
    wide_between = request.kind == SUM and (
        (dtype is DataType.BFLOAT16 and spec.dtype is DataType.FLOAT32)
        or (spec.dtype is DataType.BFLOAT16 and request.config.fp32_acc)
    )
    plain = dataclasses.replace(step, axis=W, scaler=1.0, post_scale=1.0)
    between_dtype = DataType.FLOAT32 if wide_between else out_dtype
    between = reduce_axis(tensor, plain, between_dtype, memory, Layout.TILE, request.cores)
    return reduce_axis(
        between, dataclasses.replace(step, axis=H, infinite=False), out_dtype, memory, Layout.TILE, request.cores
    )


def _slices(
    tensor: Tensor, spec: Spec, memory: MemoryConfig, cores: CoreRangeSet | None, dense: bool, summing: bool
) -> int:
    """The number of slices of a tall column, to use more cores."""
    if spec.is_sharded or memory.is_sharded():
        return 1
    if spec.dtype not in SPLIT_DTYPES and not (summing and spec.dtype is DataType.BFLOAT8_B):
        return 1
    height = div_up(spec.shape[-2], TILE)
    columns = math.prod(spec.shape[:-2]) * div_up(spec.padded_shape[-1], TILE)
    available = cores.num_cores() if cores is not None else _core_count(tensor)
    least = LEAST_DENSE_SPLIT if dense else LEAST_TILED_SPLIT
    if columns >= available or height < least:
        return 1
    return min(available // columns, height)


def _core_count(tensor: Tensor) -> int:
    assert tensor._device is not None
    return tensor._device.board.cores


def _reduce_in_slices(
    tensor: Tensor,
    step: Step,
    slices: int,
    scaler: float,
    dtype: DataType,
    memory: MemoryConfig,
    layout: Layout | None,
    cores: CoreRangeSet | None,
) -> Tensor:
    """Reduce each slice to a row, in float32 for sums; then reduce the rows."""
    summing = step.math == SUM
    first = dataclasses.replace(step, scaler=1.0, post_scale=1.0, slices=slices)
    partial_dtype = DataType.FLOAT32 if summing else tensor._spec.dtype
    partial = reduce_axis(tensor, first, partial_dtype, memory, Layout.ROW_MAJOR, cores)
    vector = step.vector if step.dense else step.config.fp32_acc and dtype not in BLOCK_FLOAT_DTYPES
    afterwards = vector or not summing
    second = dataclasses.replace(
        step,
        dense=True,
        vector=vector,
        scaler=1.0 if afterwards else scaler,
        post_scale=scaler if afterwards else 1.0,
        infinite=False,
    )
    made_layout = layout or (Layout.ROW_MAJOR if step.dense else Layout.TILE)
    return reduce_axis(partial, second, dtype, memory, made_layout, cores)


def _in_layout(tensor: Tensor, layout: Layout | None) -> Tensor:
    if layout is None or tensor._spec.layout is layout:
        return tensor
    require(
        layout is not Layout.ROW_MAJOR or tensor._spec.dtype not in BLOCK_FLOAT_DTYPES,
        f"a {tensor._spec.dtype} result has no ROW_MAJOR layout: block-float formats only exist in TILE layout",
    )
    return ttnn.to_layout(tensor, layout)


@composite("ttnn.sum", ignores=("correction",))
def sum_(
    input_tensor,
    dim=None,
    keepdim=False,
    *,
    memory_config=None,
    compute_kernel_config=None,
    scalar=1.0,
    sub_core_grids=None,
    fast_and_approximate_mode=False,
    output_layout=None,
):
    """scalar × the sum over the given dimensions, or over all."""
    arguments = (memory_config, compute_kernel_config, scalar, sub_core_grids, fast_and_approximate_mode)
    result = _reduce(SUM, input_tensor, dim, keepdim, *arguments, output_layout)
    return _in_layout(result, output_layout)


@composite("ttnn.mean", ignores=("correction",))
def mean(
    input_tensor,
    dim=None,
    keepdim=False,
    *,
    memory_config=None,
    compute_kernel_config=None,
    scalar=1.0,
    sub_core_grids=None,
    fast_and_approximate_mode=False,
    output_layout=None,
):
    """scalar × the mean over the given dimensions, or over all."""
    arguments = (memory_config, compute_kernel_config, scalar, sub_core_grids, fast_and_approximate_mode)
    result = _reduce(MEAN, input_tensor, dim, keepdim, *arguments, output_layout)
    return _in_layout(result, output_layout)


@composite("ttnn.max", ignores=("correction",))
def max_(
    input_tensor,
    dim=None,
    keepdim=False,
    *,
    memory_config=None,
    compute_kernel_config=None,
    scalar=1.0,
    sub_core_grids=None,
    fast_and_approximate_mode=False,
):
    """The largest of scalar × x over the given dimensions, or over all."""
    kind = MAX if scalar >= 0 else MIN
    fast = fast_and_approximate_mode and kind == MAX
    arguments = (memory_config, compute_kernel_config, scalar, sub_core_grids, fast)
    return _reduce(kind, input_tensor, dim, keepdim, *arguments)


@composite("ttnn.min", ignores=("correction",))
def min_(
    input_tensor,
    dim=None,
    keepdim=False,
    *,
    memory_config=None,
    compute_kernel_config=None,
    scalar=1.0,
    sub_core_grids=None,
    fast_and_approximate_mode=False,
):
    """The smallest of scalar × x over the given dimensions, or over all."""
    require(
        not (fast_and_approximate_mode and input_tensor.dtype is DataType.FLOAT32),
        "min of FLOAT32 has no fast_and_approximate_mode: the vector unit is both faster and exact",
    )
    kind = MIN if scalar >= 0 else MAX
    arguments = (memory_config, compute_kernel_config, scalar, sub_core_grids, False)
    return _reduce(kind, input_tensor, dim, keepdim, *arguments)
