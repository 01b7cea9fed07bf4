"""The device operations behind the reductions: one axis at a time, outer axes by adding tiles, variances."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from ttnn_emulator.enums import BLOCK_FLOAT_DTYPES, DataType, Layout, ShardOrientation, TensorMemoryLayout
from ttnn_emulator.errors import ChipFault, require
from ttnn_emulator.execution.call_context import current_board
from ttnn_emulator.execution.operation_table import Plan, bindable, internal
from ttnn_emulator.hardware.core_grid import CoreCoord, CoreRange, CoreRangeSet
from ttnn_emulator.numerics.bound_stages import Stages
from ttnn_emulator.numerics.formats.carriers import BLOCK, in_parts, truncate_bf16, wrap_integer
from ttnn_emulator.numerics.functions import apply
from ttnn_emulator.numerics.kernels import formats
from ttnn_emulator.numerics.mode import exactly
from ttnn_emulator.numerics.native.addresses import address_of
from ttnn_emulator.numerics.units import reductions as numeric
from ttnn_emulator.numerics.units import vector_unit as v
from ttnn_emulator.numerics.units.matrix_unit import MathConfig, mantissa_mask, truncate_mantissa
from ttnn_emulator.numerics.units.packer import pack
from ttnn_emulator.ops.support.common_checks import into, require_on_device, require_tile
from ttnn_emulator.tensors.memory_config import MemoryConfig, NdShardSpec, ShardDistributionStrategy
from ttnn_emulator.tensors.shapes import Shape, div_up, round_up
from ttnn_emulator.tensors.spec import Spec, tile_bytes

SUM, MAX, MIN = "sum", "max", "min"
W, H, HW = "W", "H", "HW"
TILE = 32
# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/reduction/generic/device/common.cpp, k_rm_max_tiles_per_chunk
DENSE_CHUNK = 8 * TILE  # lines that the row-major kernels reduce before they pack a partial sum to L1

REDUCIBLE = (DataType.BFLOAT16, DataType.FLOAT32, DataType.BFLOAT8_B, DataType.UINT32, DataType.INT32)
STATISTICS = (DataType.BFLOAT16, DataType.FLOAT32, DataType.BFLOAT8_B)


@dataclass(frozen=True)
class Step:
    """How one axis is reduced.

    scaler     operand of the matrix unit; post_scale multiplies the result
    vector     reduced by the vector unit, in float32 or integers
    negate     min as -max(-x): the matrix unit has no minimum
    dense      directly on ROW_MAJOR rows
    slices     parts of the height, each reduced to its own row
    infinite   the tile padding was filled with an infinity
    """

    math: str
    axis: str
    config: MathConfig
    scaler: float = 1.0
    post_scale: float = 1.0
    vector: bool = False
    negate: bool = False
    dense: bool = False
    slices: int = 1
    infinite: bool = False


# -- output specs -----------------------------------------------------------------------------------------------------


def reduced_spec(
    spec: Spec, shape: tuple[int, ...], axis: str, dtype: DataType, memory: MemoryConfig, layout: Layout = Layout.TILE
) -> Spec:
    """The spec of a reduced tensor, resharded over the requested grid or the input's."""
    require(not memory.is_sharded() or memory.is_l1, f"sharded results live in L1, {memory.brief()} was requested")
    require(
        not spec.is_sharded or spec.memory_config.is_l1,
        f"a sharded input must live in L1, it has {spec.memory_config.brief()}",
    )
    kind = memory.memory_layout
    if kind is TensorMemoryLayout.INTERLEAVED:
        return Spec.of(shape, dtype, layout, MemoryConfig(kind, memory.buffer_type))
    plain = Spec.of(shape, dtype, layout, MemoryConfig(TensorMemoryLayout.INTERLEAVED, memory.buffer_type))
    found = memory.nd_shard_spec or memory.shard_spec or spec.memory_config.nd_shard_spec or spec.shard_spec
    require(found is not None, f"a {kind.name} result needs a grid: neither its memory config nor the input has one")
    assert found is not None
    height, width = plain.physical_shape
    strategy = ShardDistributionStrategy.ROUND_ROBIN_1D
    if kind is TensorMemoryLayout.ND_SHARDED:
        nd = memory.nd_shard_spec or spec.memory_config.nd_shard_spec
        require(nd is not None, "an ND_SHARDED result needs an nd_shard_spec")
        assert nd is not None
        dims = list(nd.shard_shape)
        if axis in (W, HW):
            dims[-1] = 1
        if axis in (H, HW) and len(dims) > 1:
            dims[-2] = 1
        strategy = nd.shard_distribution_strategy
    elif kind is TensorMemoryLayout.HEIGHT_SHARDED:
        dims = [div_up(height, found.grid.num_cores()), width]
    elif kind is TensorMemoryLayout.WIDTH_SHARDED:
        dims = [height, div_up(width, found.grid.num_cores())]
    else:
        require(found.grid.size() == 1, f"block sharding needs one rectangle of cores, not {found.grid.size()}")
        cores = found.grid.bounding_box().grid_size()
        across, down = (cores.x, cores.y) if found.orientation is ShardOrientation.ROW_MAJOR else (cores.y, cores.x)
        dims = [div_up(height, down), div_up(width, across)]
        strategy = ShardDistributionStrategy.GRID_2D
    if layout is Layout.TILE:
        dims[-2:] = [round_up(size, TILE) for size in dims[-2:]]
    shards = NdShardSpec(Shape(dims), found.grid, found.orientation, strategy)
    return Spec.of(shape, dtype, layout, MemoryConfig(memory.buffer_type, shards))


def device_grid() -> CoreRangeSet:
    columns, rows = current_board().grid
    return CoreRangeSet([CoreRange(CoreCoord(0, 0), CoreCoord(columns - 1, rows - 1))])


def require_on_grid(memory: MemoryConfig, grid: CoreRangeSet, name: str) -> None:
    for shards in (memory.shard_spec, memory.nd_shard_spec):
        if shards is not None:
            require(grid.contains(shards.grid), f"the {name}'s shards are on {shards.grid}, not within {grid}")


def fitted(values: torch.Tensor, shape: Sequence[int], fill: float = 0.0) -> torch.Tensor:
    """Values fitted to the tiles of an output of another shape: truncated, or padded with `fill`."""
    if tuple(values.shape) == tuple(shape):
        return values
    room = torch.full(tuple(shape), fill, dtype=values.dtype)
    common = tuple(slice(0, min(own, other)) for own, other in zip(values.shape, shape))
    room[common] = values[common]
    return room


# -- one axis ---------------------------------------------------------------------------------------------------------


@internal("ttnn::prim::reduce")
def reduce_axis(
    tensor: Spec,
    step: Step,
    dtype: DataType,
    memory_config: MemoryConfig,
    layout: Layout = Layout.TILE,
    sub_core_grids: CoreRangeSet | None = None,
) -> Plan:
    """Reduce the width, the height or both of a tensor [N, C, H, W]."""
    require_on_device(tensor)
    if not step.dense:
        require_tile(tensor)
    require(
        tensor.dtype in REDUCIBLE,
        f"reductions take BFLOAT16, FLOAT32, BFLOAT8_B, UINT32 and INT32, not {tensor.dtype}",
    )
    grid = device_grid()
    program_grid = sub_core_grids or grid
    require(not program_grid.empty(), "sub_core_grids is empty")
    require(grid.contains(program_grid), f"sub_core_grids {program_grid} exceed the device's {grid}")
    shape = list(tensor.shape)
    if step.axis in (W, HW):
        shape[-1] = 1
    if step.axis in (H, HW):
        shape[-2] = step.slices
    out = reduced_spec(tensor, tuple(shape), step.axis, dtype, memory_config, layout)
    if tensor.shard_spec is not None:
        require(
            program_grid.contains(tensor.shard_spec.grid),
            f"the input's shards are on {tensor.shard_spec.grid}, not within {program_grid}",
        )
    if memory_config.nd_shard_spec is not None:
        require_on_grid(out.memory_config, program_grid, "output")
    return Plan(out, _calculation(tensor, step, dtype), l1_bytes=_buffers(tensor, step, dtype))


def _buffers(tensor: Spec, step: Step, dtype: DataType) -> int:
    """Bytes of circular buffers per core: two input tiles, one scaler tile, two output tiles."""
    source, target = tile_bytes(tensor.tile, tensor.dtype), tile_bytes(tensor.tile, dtype)
    scaler = 4096 if tensor.dtype is DataType.FLOAT32 else 2048
    return 2 * source + scaler + 2 * target


def _calculation(tensor: Spec, step: Step, dtype: DataType) -> Callable[[torch.Tensor], torch.Tensor]:
    if tensor.dtype is DataType.INT32:
        return _integer_calculation(step)
    if tensor.dtype is DataType.UINT32:
        return _unsigned_calculation(step)
    fold = _sums(tensor, step, dtype) if step.math == SUM else _extremes(tensor, step)
    wide_dest = step.config.fp32_acc

    def compute(values: torch.Tensor) -> torch.Tensor:
        found = fold(values)
        if step.post_scale != 1.0:
            found = scaled(found, step.post_scale, wide_dest)
        return pack(found, dtype, from_fp32=wide_dest)

    bind = functools.partial(_bind, tensor, step, dtype)
    return bindable(compute, bind if _is_bindable(tensor, step, dtype) else None)


def _is_bindable(tensor: Spec, step: Step, dtype: DataType) -> bool:
    """Whether whole rows are reduced and packed value by value."""
    plain = {tensor.dtype, dtype} <= {DataType.BFLOAT16, DataType.FLOAT32}
    return plain and step.axis == W and step.slices == 1 and not step.dense and step.post_scale == 1.0


def _bind(tensor: Spec, step: Step, dtype: DataType, carriers: Sequence[torch.Tensor], constant: Sequence[bool]) -> Any:
    """See `Bindable`."""
    (values,) = carriers
    fp32 = step.config.fp32_acc
    stages = Stages()
    stages.keep(values)
    if tensor.dtype is DataType.FLOAT32 and not step.vector:
        values = stages.masked(values, mantissa_mask(11 if fp32 else 8))
    if step.math != SUM:
        found = numeric.finding_extremes(stages, values, largest=step.math == MAX and not step.negate)
        if found is not None and tensor.dtype is DataType.FLOAT32:
            found = stages.loop(_leaving_register(step), found, in_place=True)
    elif step.vector:
        found = numeric.adding_by_vector_unit(stages, values)
    else:
        scaler = numeric.scaler_of(step.scaler, wide=tensor.dtype is DataType.FLOAT32 and fp32)
        found = numeric.adding_rows(stages, values, scaler, step.config)
    return None if found is None else (stages, stages.packed(found, dtype, from_fp32=fp32).unsqueeze(-1))


def scaled(values: torch.Tensor, factor: float, wide_dest: bool) -> torch.Tensor:
    """A vector-unit multiplication, stored to the destination register."""
    number = np.float32(factor)
    if exactly(values.numel()):
        product = torch.from_numpy(np.asarray(v.mul(values.contiguous().numpy(), number)))
    else:
        product = values * number.item()
    return product if wide_dest else truncate_bf16(product)


def _kept(step: Step, values: torch.Tensor) -> torch.Tensor:
    """Restore the reduced axes with size 1."""
    if step.axis == W:
        return values.unsqueeze(-1)
    return values.unsqueeze(-2) if step.axis == H else values.unsqueeze(-1).unsqueeze(-1)


def _sums(tensor: Spec, step: Step, dtype: DataType) -> Callable[[torch.Tensor], torch.Tensor]:
    config = step.config
    wide = tensor.dtype is DataType.FLOAT32
    if step.vector:
        line_sums = {W: numeric.vector_row_sums, H: numeric.vector_column_sums}
        return lambda values: _sliced(step, values, lambda part: _vector_chunks(step, part, line_sums[step.axis]))
    scaler = numeric.scaler_of(step.scaler, wide=wide and config.fp32_acc)
    bits = 11 if config.fp32_acc else 8

    def line(part: torch.Tensor, start: torch.Tensor | None) -> torch.Tensor:
        sums = numeric.row_sums if step.axis == W else numeric.column_sums
        return sums(part, scaler, config, start)

    def compute(values: torch.Tensor) -> torch.Tensor:
        if wide:
            values = truncate_mantissa(values, bits)
        if step.axis == HW:
            return _kept(step, _tile_sum(values, scaler, config, wide))
        if not step.dense:
            return _sliced(step, values, lambda part: line(part, None))
        return _sliced(step, values, lambda part: _dense_chunks(step, part, line, dtype))

    return compute


def _sliced(step: Step, values: torch.Tensor, line: Callable[[torch.Tensor], torch.Tensor]) -> torch.Tensor:
    if step.slices == 1:
        return _kept(step, line(values))
    rows = div_up(div_up(values.shape[-2], TILE), step.slices) * TILE
    padded = torch.nn.functional.pad(values, (0, 0, 0, rows * step.slices - values.shape[-2]))
    return line(padded.unflatten(-2, (step.slices, rows)))


def _dense_chunks(step: Step, values: torch.Tensor, line: Callable[..., torch.Tensor], dtype: DataType) -> torch.Tensor:
    """Reduce eight tiles at a time; partial sums are packed to L1 in the format of the result."""
    chunks = values.split(DENSE_CHUNK, -1 if step.axis == W else -2)
    total = line(chunks[0], None)
    for chunk in chunks[1:]:
        waiting = pack(total, dtype, from_fp32=step.config.fp32_acc)
        total = line(chunk, truncate_mantissa(waiting, 11 if step.config.fp32_acc else 8))
    return total


def _vector_chunks(step: Step, values: torch.Tensor, line: Callable[[torch.Tensor], torch.Tensor]) -> torch.Tensor:
    if not step.dense:
        return line(values)
    axis = -1 if step.axis == W else -2
    first, *rest = values.split(DENSE_CHUNK, axis)
    total = line(first)
    for chunk in rest:
        waiting = total.unsqueeze(axis)
        padding = [0, 0] * (-axis - 1) + [0, TILE - 1]
        total = line(torch.cat([torch.nn.functional.pad(waiting, padding), chunk], axis))
    return total


def _tile_sum(values: torch.Tensor, scaler: float, config: MathConfig, wide: bool) -> torch.Tensor:
    """The sum of one tile: faces are pooled into a row, which is truncated to a source register and pooled again."""
    height, width = values.shape[-2:]
    tile = torch.nn.functional.pad(values, (0, TILE - width, 0, TILE - height))
    faces = tile.unflatten(-1, (2, 16)).unflatten(-3, (2, 16)).transpose(-3, -2)
    row = numeric.column_sums(faces.flatten(-4, -2), scaler, config)
    row = truncate_mantissa(row, 11 if wide and config.fp32_acc else 8)
    return numeric.column_sums(row.unsqueeze(-1), scaler, config).squeeze(-1)


def _extremes(tensor: Spec, step: Step) -> Callable[[torch.Tensor], torch.Tensor]:
    largest = step.math == MAX and not step.negate
    axes = {W: (-1,), H: (-2,), HW: (-1, -1)}[step.axis]
    cut = 11 if step.config.fp32_acc else 8
    by_matrix_unit = not step.vector and tensor.dtype is DataType.FLOAT32

    def found(values: torch.Tensor) -> torch.Tensor:
        if by_matrix_unit:
            values = truncate_mantissa(values, cut)
        for axis in axes:
            values = numeric.extreme(values, axis, largest=largest)
        if tensor.dtype is DataType.FLOAT32:
            values = values.contiguous()
            in_parts(_leaving_register(step), address_of(values), address_of(values), values.numel())
        return values

    def compute(values: torch.Tensor) -> torch.Tensor:
        if step.slices > 1:
            tiles = div_up(div_up(values.shape[-2], TILE), step.slices) * TILE
            parts = values.split(tiles, -2)
            parts = [*parts, *[parts[-1]] * (step.slices - len(parts))]
            return torch.stack([found(part) for part in parts], -2)
        result = found(values)
        if step.infinite and tensor.dtype in BLOCK_FLOAT_DTYPES and tensor.shape[-1] % BLOCK:
            _require_unharmed(values, result, found)
        return _kept(step, result)

    return compute


# tt-metal v0.81.1: tt_metal/tt-llk/tt_llk_wormhole_b0/llk_lib/llk_math_reduce.h, reduce_row_perform_transpose
def _leaving_register(step: Step) -> Callable[..., None]:
    """How a float32 extreme is stored: denormals are flushed, and the matrix unit adds 0 to the extremes of rows.

    The matrix unit transposes the extremes of a row into a column with that addition, which turns NaNs into
    infinities; the vector unit and column reductions keep NaNs.
    """
    return formats.flush_at if step.axis == W and not step.vector else formats.drop_denormals_at


def _require_unharmed(values: torch.Tensor, result: torch.Tensor, found: Callable) -> None:
    """Infinities in the padding of a 16-value block leave zero mantissa bits for its other values."""
    harmed = values.clone()
    harmed[..., values.shape[-1] // BLOCK * BLOCK :] = 0.0
    if not torch.equal(found(harmed), result):
        raise ChipFault(
            f"the largest and smallest of block floats come out wrong when the width, {values.shape[-1]}, "
            f"is not a multiple of {BLOCK}",
            hint="Typecast to bfloat16 before.",
        )


def _integer_calculation(step: Step) -> Callable[[torch.Tensor], torch.Tensor]:
    axis = {W: (-1,), H: (-2,), HW: (-2, -1)}[step.axis]

    def compute(values: torch.Tensor) -> torch.Tensor:
        if step.math == SUM:
            found = wrap_integer(values.to(torch.int64).sum(axis, keepdim=True), DataType.INT32)
        else:
            found = values.amax(axis, keepdim=True) if step.math == MAX else values.amin(axis, keepdim=True)
        if step.post_scale != 1.0:
            product = v.mul(v.int_to_float(found.numpy()), np.float32(step.post_scale))
            limited = np.clip(np.trunc(product.astype(np.float64)), -(2**31), 2**31 - 1)
            found = torch.from_numpy(limited.astype(np.int32))
        return found

    return compute


def _unsigned_calculation(step: Step) -> Callable[[torch.Tensor], torch.Tensor]:
    axis = {W: (-1,), H: (-2,), HW: (-2, -1)}[step.axis]

    def compute(values: torch.Tensor) -> torch.Tensor:
        if values.any():
            raise ChipFault(
                "UINT32 is reduced by the matrix unit, which takes the integers for floats",
                hint="Typecast to int32 before.",
            )
        return values.sum(axis, keepdim=True)

    return compute


# -- axes before the last two -----------------------------------------------------------------------------------------


@internal("ttnn::prim::fast_reduce_nc")
def add_along(
    tensor: Spec,
    dim: int,
    config: MathConfig,
    memory_config: MemoryConfig,
    dtype: DataType | None = None,
    output: Spec | None = None,
    sub_core_grids: CoreRangeSet | None = None,
) -> Plan:
    """Add the tiles along a dimension before the last two, which becomes 1. The result has the padded shape."""
    for name, each in (("input", tensor), ("output", output)):
        if each is not None:
            require_on_device(each, f"the {name}")
            require_tile(each, f"the {name}")
            require(each.dtype in STATISTICS, f"the {name} must be a float of 8, 16 or 32 bits, not {each.dtype}")
    if output is not None:
        require(output.rank == tensor.rank, f"the output has rank {output.rank}, the input {tensor.rank}")
    require(0 <= dim <= tensor.rank - 3, f"dimension {dim} is not one before the last two of {tensor.rank}")
    grid = device_grid()
    if sub_core_grids is not None:
        require(grid.contains(sub_core_grids), f"sub_core_grids {sub_core_grids} exceed the device's {grid}")
    shape = list(tensor.padded_shape)
    shape[dim] = 1
    out = output or Spec.of(shape, dtype or tensor.dtype, Layout.TILE, memory_config)
    require_on_grid(tensor.memory_config, grid, "input")
    require_on_grid(out.memory_config, grid, "output")
    wide = tensor.dtype is DataType.FLOAT32
    padding = [
        amount for own, full in zip(reversed(tensor.shape), reversed(tensor.padded_shape)) for amount in (0, full - own)
    ]

    def compute(values: torch.Tensor) -> torch.Tensor:
        values = torch.nn.functional.pad(values, padding) if any(padding) else values
        if wide:
            values = truncate_mantissa(values, 11 if config.fp32_acc else 8)
        total = numeric.accumulate(values, dim, config)
        return pack(fitted(total.reshape(shape), out.shape), out.dtype, from_fp32=config.fp32_acc)

    return Plan(out, compute, reads=("tensor",), into=into(output, "output"))


# -- variances --------------------------------------------------------------------------------------------------------


@internal("ttnn::prim::welford_reduce")
def spread(
    tensor: Spec,
    axis: str,
    is_deviation: bool,
    scalar: float,
    correction: bool,
    batch: int,
    config: MathConfig,
    memory_config: MemoryConfig,
) -> Plan:
    """The variance, or its square root, over the width, the height, or both and `batch` tiles before them."""
    require_on_device(tensor)
    require_tile(tensor)
    require(tensor.dtype in STATISTICS, f"std and var take FLOAT32, BFLOAT16 and BFLOAT8_B, not {tensor.dtype}")
    require(
        tensor.dtype is not DataType.FLOAT32 or config.fp32_acc, "std and var of FLOAT32 need fp32_dest_acc_en=True"
    )
    shape = list(tensor.shape)
    if axis in (W, HW):
        shape[-1] = 1
    if axis in (H, HW):
        shape[-2] = 1
    remaining = batch
    for dim in range(len(shape) - 3, -1, -1):
        if remaining <= 1:
            break
        remaining //= shape[dim]
        shape[dim] = 1
    out = reduced_spec(tensor, tuple(shape), axis, tensor.dtype, memory_config)
    factor = abs(scalar) if is_deviation else scalar * scalar
    wide_dest = config.fp32_acc
    kept = math.prod(shape)
    measure = numeric.variance_of_all if axis == HW else numeric.variance

    def compute(values: torch.Tensor) -> torch.Tensor:
        lines = values.transpose(-1, -2) if axis == H else values
        found = measure(lines.reshape(kept, -1), correction).reshape(out.shape)
        if not wide_dest:
            found = truncate_bf16(found)
        if is_deviation:
            found = apply.apply_function("sqrt", found, fp32_dest=wide_dest)
        if factor != 1.0:
            found = scaled(found, factor, wide_dest)
        return pack(found, tensor.dtype, from_fp32=wide_dest)

    return Plan(out, compute)
