"""Views of parts of a buffer, slices read into shards, and slices written back."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from ttnn_emulator.enums import BufferType, DataType, Layout, ShardOrientation
from ttnn_emulator.errors import require
from ttnn_emulator.execution.call_context import current_board
from ttnn_emulator.execution.operation_table import Plan, composite, internal, operation, ttnn
from ttnn_emulator.hardware.core_grid import CoreCoord, CoreRange, CoreRangeSet
from ttnn_emulator.ops.support.derived_shards import BLOCK, HEIGHT, WIDTH
from ttnn_emulator.tensors.memory_config import MemoryConfig, ShardSpec
from ttnn_emulator.tensors.shapes import TILE_SIZE, div_up, round_up
from ttnn_emulator.tensors.spec import ROW_MAJOR_BYTES, Spec
from ttnn_emulator.tensors.tensor import Tensor

# -- narrow -----------------------------------------------------------------------------------------------------------


@operation("ttnn.narrow")
def narrow(input_tensor: Spec, dim: int, start: int, length: int) -> Plan:
    """A view of `length` elements along `dim`: the same buffer, from a page on."""
    spec, shape = input_tensor, input_tensor.padded_shape
    require(-len(shape) <= dim < len(shape), f"dimension {dim} is out of range for {list(shape)}")
    dim %= len(shape)
    start = start + shape[dim] if start < 0 else start
    if start == 0 and length == shape[dim]:
        return Plan(spec, None, shares="input_tensor")
    require(
        0 <= start < shape[dim] and 0 < length <= shape[dim] - start,
        f"{length} elements from {start} on are not in dimension {dim} of {list(shape)}",
    )
    require(spec.on_device, "only tensors on a device are narrowed")
    require(len(shape) == spec.rank, f"a tensor of shape {list(spec.shape)} cannot be narrowed in {list(shape)}")
    last = len(shape) - 1
    board = current_board()
    alignment = board.dram_alignment if spec.memory_config.is_dram else board.l1_alignment
    if spec.is_tile:
        step = spec.tile.tile_shape[dim - last + 1] if dim >= last - 1 else 1
        require(start % step == 0 and length % step == 0, f"{length} from {start} on are not whole tiles of {step}")
    elif dim == last:
        require(start % alignment == 0, f"start {start} along the rows must be a multiple of {alignment}")
    config = spec.memory_config
    if config.is_dram and config.interleaved:
        _require_whole_rounds(spec, dim, start, board.dram_banks)
    elif config.buffer_type is BufferType.L1 and spec.is_sharded:
        config = _narrowed_shards(spec, dim, start, length)
    else:
        require(False, f"tensors in {config.brief()} cannot be narrowed")
    out = spec.with_(
        shape=tuple(length if axis == dim else size for axis, size in enumerate(spec.shape)), memory_config=config
    )
    return Plan(out, lambda values: values.narrow(dim, start, length), shares="input_tensor")


def _require_whole_rounds(spec: Spec, dim: int, start: int, banks: int) -> None:
    """Interleaved pages are distributed round-robin over the banks, so a view must start at the first bank."""
    shape = spec.padded_shape
    require(all(size == 1 for size in shape[:dim]), f"all dimensions before {dim} must be 1, not {list(shape[:dim])}")
    size = ROW_MAJOR_BYTES[spec.dtype]
    page = TILE_SIZE**2 * size if spec.is_tile else spec.page_bytes
    first = start * size * math.prod(shape[dim + 1 :]) // page
    require(first % banks == 0, f"page {first}, where the view starts, is not in the first of {banks} banks")


def _narrowed_shards(spec: Spec, dim: int, start: int, length: int) -> MemoryConfig:
    """Whole shards of fewer cores, or a part within the shards of each."""
    shards, shape = spec.shard_spec, spec.padded_shape
    require(shards is not None, "the tensor has no shard spec")
    assert shards is not None
    by_width = dim == len(shape) - 1
    axis, scale = (1, 1) if by_width else (0, math.prod(shape[dim + 1 : -1]))
    first, count, extent, page = start * scale, length * scale, shards.shape[axis], spec.page_shape
    inside = first % extent + count <= extent and (not by_width or shards.shape[0] == page[0])
    require(
        inside or (first % extent == 0 and count % extent == 0),
        f"{count} from {first} on are neither whole shards of {extent} nor within one",
    )
    new = list(shards.shape)
    offset = 0  # pages into each shard
    if inside:
        new[axis] = count
        offset = first % extent // page[axis] * (1 if by_width else shards.shape[1] // page[1])
    across = spec.physical_shape[1] // shards.shape[1]
    cores = []
    for number, core in enumerate(_cores_with_data(spec, shards)):
        if by_width:
            at = number % across * shards.shape[1] // page[1] + offset
            wanted = start // page[1] <= at < (start + length) // page[1]
        else:
            at = number // across * shards.shape[0] // page[0] + offset // (shards.shape[1] // page[1])
            at %= shape[dim] * scale // page[0]
            wanted = first // page[0] <= at < (first + count) // page[0]
        if wanted:
            cores.append(core)
    merged = shards.orientation is ShardOrientation.ROW_MAJOR or spec.memory_config.memory_layout is BLOCK
    grid = _ranges_of(cores) if merged else CoreRangeSet([CoreRange(core, core) for core in cores])
    shard = ShardSpec(grid, new, shards.orientation)
    return MemoryConfig(spec.memory_config.memory_layout, BufferType.L1, shard)


def _cores_with_data(spec: Spec, shards: ShardSpec) -> list[CoreCoord]:
    row_wise = shards.orientation is ShardOrientation.ROW_MAJOR
    count = div_up(spec.physical_shape[0], shards.shape[0]) * div_up(spec.physical_shape[1], shards.shape[1])
    return shards.grid.cores(row_wise)[:count]


def _ranges_of(cores: Sequence[CoreCoord]) -> CoreRangeSet:
    """The cores as rectangles: runs along rows, equal runs of neighbouring rows merged."""
    runs: list[tuple[int, int, int, int]] = []  # x0, x1, y0, y1
    for core in sorted(cores, key=lambda core: (core.y, core.x)):
        if runs and runs[-1][3] == core.y == runs[-1][2] and runs[-1][1] + 1 == core.x:
            runs[-1] = (runs[-1][0], core.x, core.y, core.y)
        else:
            runs.append((core.x, core.x, core.y, core.y))
    merged: list[tuple[int, int, int, int]] = []
    for run in runs:
        same = [number for number, other in enumerate(merged) if other[:2] == run[:2] and other[3] + 1 == run[2]]
        if same:
            merged[same[0]] = (*run[:2], merged[same[0]][2], run[3])
        else:
            merged.append(run)
    return CoreRangeSet([CoreRange(CoreCoord(x0, y0), CoreCoord(x1, y1)) for x0, x1, y0, y1 in merged])


# -- slices that convolutions in DRAM read and write ------------------------------------------------------------------


@composite("ttnn.experimental.padded_slice", ignores=("pad_value",))
def padded_slice(
    input_tensor: Tensor,
    padded_slice_start: Sequence[int],
    padded_slice_end: Sequence[int],
    padded_slice_step: Sequence[int] | None = None,
    *,
    memory_config: MemoryConfig,
    output_tensor: Tensor | None = None,
) -> Tensor:
    """A slice of [N, H, W, C] as rows of pixels in shards, its channels padded to the width of the shards."""
    spec = input_tensor._spec
    steps = padded_slice_step if padded_slice_step is not None else (1,) * len(padded_slice_start)
    require(spec.rank == 4, f"only tensors of rank 4 are sliced, not of rank {spec.rank}")
    require(
        len(padded_slice_start) == len(padded_slice_end) == len(steps) == 4, "starts, ends and steps must be 4 each"
    )
    require(all(step == 1 for step in steps), f"steps must be 1, not {list(steps)}")
    require(memory_config.is_sharded(), "the output must be sharded; ttnn.slice returns interleaved ones")
    require(not spec.is_sharded, "the input must not be sharded")
    shards = memory_config.shard_spec
    require(shards is not None, "the memory config needs a shard spec")
    assert shards is not None
    begins = [begin + size if begin < 0 else begin for begin, size in zip(padded_slice_start, spec.shape)]
    ends = [end + size if end < 0 else end for end, size in zip(padded_slice_end, spec.shape)]
    whole = not any(padded_slice_start) and tuple(padded_slice_end) == spec.shape
    if whole and shards.shape[1] == spec.padded_shape[3] and not spec.is_tile:
        return ttnn.to_memory_config(input_tensor, memory_config)
    require(all(end >= begin for begin, end in zip(begins, ends)), f"ends {ends} must not be before starts {begins}")
    sizes = [end - begin for begin, end in zip(begins, ends)]
    if 0 in sizes:
        return ttnn.empty(sizes, spec.dtype, spec.layout, input_tensor._device, memory_config)
    return cut_pixels(input_tensor, tuple(begins), tuple(ends), memory_config, output_tensor)


@internal("ttnn.prim.padded_slice")
def cut_pixels(
    input_tensor: Spec,
    begins: Sequence[int],
    ends: Sequence[int],
    memory_config: MemoryConfig,
    output_tensor: Spec | None = None,
) -> Plan:
    spec, shards = input_tensor, memory_config.shard_spec
    assert shards is not None
    require(spec.on_device, "the input tensor must be on a device")
    for begin, end, size in zip(begins, ends, spec.padded_shape):
        require(begin < size and end <= size, f"a slice from {begin} to {end} is not in {size} elements")
    sizes = [end - begin for begin, end in zip(begins, ends)]
    shape = [1, 1, math.prod(sizes[:3]), sizes[3]]
    if memory_config.memory_layout is HEIGHT:
        shape[3] = shards.shape[1]
    elif memory_config.memory_layout is WIDTH:
        shape[2] = shards.shape[0]
    if spec.is_tile:
        columns = shards.grid.bounding_box().grid_size().x if memory_config.memory_layout is not HEIGHT else 1
        tiles = div_up(spec.padded_shape[3] // TILE_SIZE, columns)
        require(
            tiles == div_up(shards.shape[1], TILE_SIZE),
            f"{tiles} tiles of channels per core do not fit shards of width {shards.shape[1]}",
        )
    require(memory_config.is_l1, "the shards must be in L1")
    row = shards.shape[1] * ROW_MAJOR_BYTES[spec.dtype]
    require(row % current_board().l1_alignment == 0, f"rows of shards of {row} B do not fill the units of L1")
    dtype = DataType.BFLOAT16 if spec.dtype is DataType.BFLOAT8_B else spec.dtype
    out = Spec.of(shape, dtype, Layout.ROW_MAJOR, memory_config)
    require(
        output_tensor is None or output_tensor.padded_shape == out.padded_shape,
        f"the output tensor must have shape {list(out.padded_shape)}",
    )
    index = tuple(slice(begin, end) for begin, end in zip(begins, ends))

    def compute(values: torch.Tensor) -> torch.Tensor:
        part = values[index].reshape(-1, values[index].shape[-1])
        result = torch.zeros(shape[2:], dtype=part.dtype)
        result[: part.shape[0], : part.shape[1]] = part[:, : shape[3]]
        return result.reshape(shape)

    return Plan(out, compute, reads=("input_tensor",), into=("output_tensor",) if output_tensor is not None else ())


@composite("ttnn.experimental.slice_write")
def slice_write(
    input_tensor: Tensor, output_tensor: Tensor, start: Sequence[int], end: Sequence[int], step: Sequence[int]
) -> Tensor:
    """Write the input over a slice of the output; returns the output."""
    spec, target = input_tensor._spec, output_tensor._spec
    plain = all(size == 1 for size in step)
    by_rows = (spec.is_tile or target.is_tile) and not spec.is_sharded and not (target.is_sharded and not plain)
    source = ttnn.to_layout(input_tensor, Layout.ROW_MAJOR) if by_rows and spec.is_tile else input_tensor
    require(not target.is_sharded, "the output must not be sharded")
    require(all(size > 0 for size in step), f"steps {list(step)} must be positive")
    require(all(b <= e for b, e in zip(start, end)), f"ends {list(end)} must not be before starts {list(start)}")
    require(len(start) == len(end) == len(step), "starts, ends and steps must be of one length")
    sizes = [div_up(e - b, s) for b, e, s in zip(start, end, step)]
    if 0 in sizes:
        return output_tensor
    given = source._spec.shape
    if not (spec.is_sharded and spec.shape[:2] == (1, 1)):
        require(
            len(sizes) >= len(given) and tuple(sizes[: len(given)]) == given,
            f"a slice of {sizes} does not hold {list(given)}",
        )
    require(spec.on_device, "the input tensor must be on a device")
    whole = list(end)
    if source._spec.is_tile and len(end) >= 2:
        whole[-2:] = [max(round_up(size, TILE_SIZE), TILE_SIZE) for size in end[-2:]]
    if by_rows and target.is_tile:
        rows = ttnn.to_layout(output_tensor, Layout.ROW_MAJOR)
        write_part(source, rows, tuple(start), tuple(whole), tuple(end), tuple(step))
        tiles = ttnn.to_layout(rows, target.layout)
        output_tensor._set(tiles._spec, tiles._storage, tiles._device)  # the library puts the new buffer into it
        return output_tensor
    write_part(source, output_tensor, tuple(start), tuple(whole), tuple(end), tuple(step))
    return output_tensor


@internal("ttnn.prim.slice_write")
def write_part(
    input_tensor: Spec,
    output_tensor: Spec,
    start: Sequence[int],
    whole: Sequence[int],
    end: Sequence[int],
    step: Sequence[int],
) -> Plan:
    shape, rank = output_tensor.padded_shape, len(input_tensor.padded_shape)
    require(
        rank == len(shape) == len(start),
        f"input, output and slice must be of one rank, not {rank}, {len(shape)} and {len(start)}",
    )
    for first, last, size in zip(start, whole, shape):
        require(first < size and last <= size, f"a slice from {first} to {last} is not in {size} elements")
    require(
        input_tensor.dtype is output_tensor.dtype,
        f"input and output must be of one dtype, not {input_tensor.dtype} and {output_tensor.dtype}",
    )
    if input_tensor.is_sharded:
        require(rank == 4 and start[-1] == 0, "a sharded input must be of rank 4 and go to the front of the rows")
        require(all(size == 1 for size in step), f"steps must be 1 for a sharded input, not {list(step)}")
        require(input_tensor.layout is output_tensor.layout, "a sharded input and the output must be of one layout")
        require(
            input_tensor.is_tile or input_tensor.memory_config.memory_layout in (HEIGHT, BLOCK),
            "rows must be sharded by height or in blocks",
        )
    index = tuple(slice(*bounds) for bounds in zip(start, end, step))

    def compute(values: torch.Tensor, previous: torch.Tensor) -> torch.Tensor:
        result = previous.clone()
        part = result[index]
        flat = values.reshape(-1, values.shape[-1])[: math.prod(part.shape[:-1]), : part.shape[-1]]
        result[index] = flat.reshape(part.shape)
        return result

    return Plan(output_tensor, compute, reads=("input_tensor", "output_tensor"), into=("output_tensor",))
