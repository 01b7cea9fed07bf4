"""Padding: values around a tensor, on every side of rows, behind the last of tiles."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

import torch

from ttnn_emulator.enums import BLOCK_FLOAT_DTYPES, BufferType, DataType, ShardOrientation, TensorMemoryLayout
from ttnn_emulator.errors import require
from ttnn_emulator.execution.call_context import current_board
from ttnn_emulator.execution.operation_table import Plan, composite, internal, ttnn
from ttnn_emulator.hardware.core_grid import CoreRangeSet
from ttnn_emulator.numerics.formats.carriers import INTEGER_RANGE, round_bf16_nearest_even, upper_halves
from ttnn_emulator.ops.support.derived_shards import HEIGHT, cuts_width
from ttnn_emulator.tensors.host_padding import enlarge_host
from ttnn_emulator.tensors.memory_config import MemoryConfig, ShardSpec
from ttnn_emulator.tensors.shapes import TILE_SIZE, div_up, round_up
from ttnn_emulator.tensors.spec import ROW_MAJOR_BYTES, Spec
from ttnn_emulator.tensors.tensor import Tensor

Sides = tuple[tuple[int, int], ...]  # elements before and after, dimension by dimension

ROW_DTYPES = frozenset({DataType.FLOAT32, DataType.BFLOAT16, DataType.INT32, DataType.UINT32, DataType.UINT16})
TILE_DTYPES = ROW_DTYPES | {DataType.BFLOAT8_B}


@composite("ttnn.pad")
def pad(
    input_tensor: Tensor,
    padding: Sequence[Sequence[int]] | None = None,
    value: float = 0.0,
    output_padded_shape: Sequence[int] | None = None,
    input_tensor_start: Sequence[int] | None = None,
    *,
    use_multicore: bool = True,
    memory_config: MemoryConfig | None = None,
    sub_core_grids: CoreRangeSet | None = None,
) -> Tensor:
    """Pad with `value`: by numbers of elements before and after, or to a whole shape."""
    spec = input_tensor._spec
    if padding is None:
        assert output_padded_shape is not None and input_tensor_start is not None
        padding = _sides_of_shape(spec, output_padded_shape, input_tensor_start)
    else:
        require(
            all(len(side) == 2 and side[0] >= 0 and side[1] >= 0 for side in padding),
            f"padding {list(padding)} must be pairs of numbers that are not negative",
        )
    require(
        len(padding) <= spec.rank,
        f"padding len can't be larger than input tensor rank: {len(padding)} pairs, rank {spec.rank}",
    )
    sides: Sides = ((0, 0),) * (spec.rank - len(padding)) + tuple((side[0], side[1]) for side in padding)
    if not any(before or after for before, after in sides):
        return input_tensor
    step = _Padding(value, use_multicore, sub_core_grids is not None)
    if spec.rank > 4:
        if not spec.on_device:
            require(not any(after for _, after in sides[:-3]), "only the last 3 dimensions of a host tensor are padded")
        else:
            input_tensor, sides = step.leading(input_tensor, sides)
            if not any(before or after for before, after in sides):
                return input_tensor if memory_config is None else ttnn.to_memory_config(input_tensor, memory_config)
    if input_tensor._spec.is_tile:
        return step.tiles(input_tensor, sides, memory_config)
    return step.rows(input_tensor, sides, memory_config)


def _sides_of_shape(spec: Spec, target: Sequence[int], start: Sequence[int]) -> Sides:
    require(len(target) == len(start) == 4, "an output shape and a start have 4 dimensions")
    require(spec.rank == 4, f"only tensors of rank 4 are padded to a shape, not of rank {spec.rank}")
    return tuple((first, whole - size - first) for whole, size, first in zip(target, spec.shape, start))


class _Padding:
    """One call of pad: what the steps have in common."""

    def __init__(self, value: float, use_multicore: bool, on_part_of_grid: bool) -> None:
        self.value, self.use_multicore, self.on_part_of_grid = value, use_multicore, on_part_of_grid

    def leading(self, tensor: Tensor, sides: Sides) -> tuple[Tensor, Sides]:
        """Pad the dimensions beyond four, each through a reshape; returns the remaining padding."""
        rank, rest = tensor._spec.rank, list(sides)
        for dim in range(rank - 3):
            before, after = rest[dim]
            if not before and not after:
                continue
            shape = list(tensor._spec.shape)
            if dim == rank - 4 and math.prod(shape[: rank - 3]) == shape[dim]:
                continue
            inner = math.prod(shape[dim + 1 : -2])
            folded = [math.prod(shape[:dim]), math.prod(shape[dim:-2]), *shape[-2:]]
            wider = [(0, 0), (before * inner, after * inner), (0, 0), (0, 0)]
            tensor = pad(ttnn.reshape(tensor, folded), wider, self.value, use_multicore=self.use_multicore)
            shape[dim] += before + after
            tensor = ttnn.reshape(tensor, shape)
            rest[dim] = (0, 0)
        return tensor, tuple(rest)

    def rows(self, tensor: Tensor, sides: Sides, memory_config: MemoryConfig | None) -> Tensor:
        spec = tensor._spec
        shape = tuple(before + size + after for size, (before, after) in zip(spec.shape, sides))
        if shape == spec.shape:
            return tensor
        if not spec.on_device:
            return enlarge_host(tensor, shape, [before for before, _ in sides], self.value)
        return self._into(tensor, shape, tuple(before for before, _ in sides), memory_config)

    def tiles(self, tensor: Tensor, sides: Sides, memory_config: MemoryConfig | None) -> Tensor:
        spec = tensor._spec
        require(not any(before for before, _ in sides), "on device tile padding does not support front padding")
        shape = tuple(size + after for size, (_, after) in zip(spec.shape, sides))
        if not spec.on_device:
            if _whole(shape) == spec.padded_shape:
                return tensor
            return enlarge_host(tensor, _whole(shape), (0,) * spec.rank, self.value)
        require(
            spec.rank > 1 or _whole(shape) == _whole(spec.shape), f"a row of tiles cannot grow to {shape[-1]} elements"
        )
        config = memory_config if memory_config is not None else spec.memory_config
        filled = ttnn.fill_implicit_tile_padding(tensor, self.value, memory_config=memory_config)
        same_tiles = spec.rank == 1 or (shape[:-2] == spec.shape[:-2] and _whole(shape)[-2:] == _whole(spec.shape)[-2:])
        if same_tiles:
            result = enlarge(filled, shape, (0,) * spec.rank, self.value, filled._spec.memory_config)
        elif spec.dtype is DataType.BFLOAT8_B:
            plain = ttnn.typecast(filled, DataType.BFLOAT16)
            result = ttnn.typecast(self._into(plain, shape, (0,) * spec.rank, memory_config), DataType.BFLOAT8_B)
        else:
            result = self._into(filled, shape, (0,) * spec.rank, memory_config)
        if (result._spec.shard_spec is None) == (config.shard_spec is None):
            return result
        if memory_config is None:
            assert spec.shard_spec is not None
            memory_config = _by_height(shape, spec.shard_spec.grid)
        return ttnn.to_memory_config(result, memory_config)

    def _into(
        self, tensor: Tensor, shape: tuple[int, ...], start: tuple[int, ...], memory_config: MemoryConfig | None
    ) -> Tensor:
        """Run the kernel; some shards need interleaved staging or two steps."""
        spec = tensor._spec
        config = memory_config if memory_config is not None else spec.memory_config
        run = functools.partial(enlarge, value=self.value, kernel=(self.use_multicore, self.on_part_of_grid))
        if cuts_width(spec.memory_config) and not spec.memory_config.is_l1:
            spread = MemoryConfig(TensorMemoryLayout.INTERLEAVED, spec.memory_config.buffer_type)
            between = MemoryConfig(TensorMemoryLayout.INTERLEAVED, config.buffer_type)
            result = run(ttnn.to_memory_config(tensor, spread), shape, start, memory_config=between)
            return ttnn.to_memory_config(result, config) if config.is_sharded() else result
        kept_by_height = (
            spec.memory_config.memory_layout is HEIGHT
            and config.is_sharded()
            and config.memory_layout is not TensorMemoryLayout.ND_SHARDED
        )
        target = _whole(shape) if spec.is_tile else shape
        source = _whole(spec.shape) if spec.is_tile else spec.shape
        if kept_by_height and source[-1] != target[-1]:
            assert spec.shard_spec is not None
            grid = spec.shard_spec.grid
            wider = (*source[:-1], target[-1])
            config = _by_height(wider, grid)
            if math.prod(source[:-1]) != math.prod(target[:-1]):
                step = (*spec.shape[:-1], shape[-1])
                front = (*(0,) * (spec.rank - 1), start[-1])
                between_tensor = run(tensor, step, front, memory_config=config)
                last = memory_config if memory_config is not None else _by_height(target, grid)
                return run(between_tensor, shape, (*start[:-1], 0), memory_config=last)
        return run(tensor, shape, start, memory_config=config)


def _whole(shape: Sequence[int]) -> tuple[int, ...]:
    return (*shape[:-2], *(round_up(size, TILE_SIZE) for size in shape[-2:]))


def _by_height(shape: Sequence[int], grid: CoreRangeSet) -> MemoryConfig:
    shard = (div_up(math.prod(shape[:-1]), grid.num_cores()), shape[-1])
    return MemoryConfig(HEIGHT, BufferType.L1, ShardSpec(grid, shard, ShardOrientation.ROW_MAJOR))


@internal("ttnn.prim.pad")
def enlarge(
    input_tensor: Spec,
    shape: tuple[int, ...],
    start: tuple[int, ...],
    value: float,
    memory_config: MemoryConfig,
    kernel: tuple[bool, bool] | None = None,
) -> Plan:
    """The pad kernels: the tensor at `start` of a larger one. `kernel`: on many cores, on a part of the grid."""
    spec = input_tensor
    if kernel is not None:
        _require_padding(spec, memory_config, *kernel)
        for first, size, whole in zip(start, spec.shape, _whole(shape) if spec.is_tile else shape):
            require(first + size <= whole, f"{list(shape)} has no room for {list(spec.shape)} at {list(start)}")
    out = spec.with_(shape=shape, memory_config=memory_config)
    fill = _stored(value, spec)
    inner = tuple(slice(first, first + size) for first, size in zip(start, spec.shape))
    kept = tuple(slice(whole - first) for first, whole in zip(start, shape))

    def compute(values: torch.Tensor) -> torch.Tensor:
        result = torch.full(shape, fill, dtype=values.dtype)
        result[inner] = values[kept]
        return result

    return Plan(out, compute, narrow=True)


def _require_padding(spec: Spec, memory_config: MemoryConfig, use_multicore: bool, on_part_of_grid: bool) -> None:
    allowed = TILE_DTYPES if spec.is_tile else ROW_DTYPES
    require(spec.dtype in allowed, f"{spec.dtype} cannot be padded in {spec.layout}")
    if on_part_of_grid:
        require(
            not spec.is_sharded and not memory_config.is_sharded() and use_multicore,
            "sub_core_grids needs interleaved tensors and use_multicore",
        )
    alignment = current_board().l1_alignment
    if spec.is_sharded:
        unit = current_board().dram_alignment if spec.memory_config.is_dram else alignment
        require(spec.page_bytes % unit == 0, f"rows of shards of {spec.page_bytes} B do not fill units of {unit} B")
    shards = memory_config.shard_spec
    if shards is not None:
        width = shards.shape[1] * ROW_MAJOR_BYTES[spec.dtype]
        require(width % alignment == 0, f"rows of shards of {width} B do not fill units of {alignment} B")


def _stored(value: float, spec: Spec) -> float:
    """The value as the kernel writes it.

    Row-major float32 is filled with words of two bfloat16 halves, so the value is repeated in the low half.
    """
    if spec.dtype in INTEGER_RANGE:
        low, high = INTEGER_RANGE[spec.dtype]
        if spec.dtype is DataType.UINT16:
            return int(min(max(math.floor(value + 0.5), low), high)) if math.isfinite(value) else high * (value > 0)
        return (int(value) - low) % (high - low + 1) + low
    if spec.dtype is DataType.FLOAT32 and spec.is_tile:
        return torch.tensor(value, dtype=torch.float32).item()
    half = upper_halves(round_bf16_nearest_even(torch.tensor(value, dtype=torch.float32)))
    if spec.dtype in BLOCK_FLOAT_DTYPES or spec.dtype is DataType.BFLOAT16:
        return half.float().item()
    word = half.view(torch.int16).to(torch.int32) & 0xFFFF
    return ((word << 16) | word).view(torch.float32).item()
