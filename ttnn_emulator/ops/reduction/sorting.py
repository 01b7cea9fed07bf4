"""sort and topk."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from ttnn_emulator.enums import Arch, DataType, Layout
from ttnn_emulator.errors import NotEmulated, require
from ttnn_emulator.execution.call_context import current_board
from ttnn_emulator.execution.operation_table import Plan, composite, internal, operation, ttnn
from ttnn_emulator.hardware.core_grid import CoreCoord, CoreRangeSet
from ttnn_emulator.numerics.formats.carriers import CARRIER
from ttnn_emulator.numerics.programs.reduction.ordering import best_of_rows, sort_rows
from ttnn_emulator.numerics.units.packer import device_pack_block_float
from ttnn_emulator.ops.support.any_rank import from_4d, to_4d, with_last
from ttnn_emulator.ops.support.common_checks import require_on_device
from ttnn_emulator.tensors.memory_config import DRAM_MEMORY_CONFIG, MemoryConfig
from ttnn_emulator.tensors.shapes import TILE_SIZE, round_up
from ttnn_emulator.tensors.spec import Spec, tile_bytes
from ttnn_emulator.tensors.tensor import Tensor

SORT_DTYPES = (DataType.BFLOAT16, DataType.UINT16, DataType.FLOAT32)
WIDE_INDEX_DTYPES = (DataType.FLOAT32, DataType.UINT16)  # sorted in 32-bit registers, with 32-bit indices
# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/reduction/topk/device/topk_constants.hpp, min_dim_per_core
LEAST_WIDTH = 64  # width that the sorting network handles at once
LONGEST_16_BIT = 65535
# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/reduction/topk/device/topk_constants.hpp, multi_core_min_width
LEAST_SPREAD = 8192  # width from which topk uses several cores per row

# -- sort -------------------------------------------------------------------------------------------------------------


@composite("ttnn.sort")
def sort(
    input_tensor: Tensor,
    dim: int = -1,
    descending: bool = False,
    stable: bool = False,
    *,
    memory_config: MemoryConfig | None = None,
    out: Sequence[Tensor] | None = None,
) -> list[Tensor]:
    """The sorted values along `dim`, and their original indices."""
    spec = input_tensor._spec
    index_dtype = DataType.UINT32 if spec.dtype in WIDE_INDEX_DTYPES else DataType.UINT16
    if out is not None:
        _require_sort_outputs(spec, out[0]._spec, out[1]._spec)
    require(
        -spec.rank <= dim < spec.rank or (spec.rank == 0 and dim in (0, -1)),
        f"dimension {dim} is out of range for a tensor of rank {spec.rank}",
    )
    if spec.rank == 0 or spec.volume == 0 or spec.shape[dim] == 1:
        return _already_sorted(input_tensor, index_dtype, memory_config, out)
    dim %= spec.rank
    config = memory_config if memory_config is not None else spec.memory_config
    index_config = None
    if out is not None:
        config = out[0]._spec.memory_config
        index_config = out[1]._spec.memory_config if out[1]._spec.memory_config != config else None
    source = ttnn.to_memory_config(input_tensor, DRAM_MEMORY_CONFIG) if spec.is_sharded else input_tensor
    padded = _prepared(source, dim, descending)
    between = DRAM_MEMORY_CONFIG if config.is_sharded() else config
    is_padded = spec.shape[dim] != padded._spec.padded_shape[-1]
    given_dtype = out[1]._spec.dtype if out is not None else None
    results = order_rows(padded, descending, stable, is_padded, between, given_dtype)
    del source, padded
    results = [_restored(result, spec, dim, between) for result in results]
    if out is not None:
        results = [
            result if result._spec.layout is given._spec.layout else ttnn.to_layout(result, given._spec.layout)
            for result, given in zip(results, out)
        ]
    if config.is_sharded():
        results = [ttnn.to_memory_config(result, config) for result in results]
    if index_config is not None:
        results[1] = ttnn.to_memory_config(results[1], index_config)
    if out is not None:
        for given, result in zip(out, results):  # the library attaches the new buffers to the output tensors
            given._set(result._spec, result._storage, result._device)
    return results


def _require_sort_outputs(spec: Spec, values: Spec, indices: Spec) -> None:
    require_on_device(values, "the tensor for the values")
    require_on_device(indices, "the tensor for the indices")
    for given in (values, indices):
        require(given.shape == spec.shape, f"outputs must have shape {list(spec.shape)}, not {list(given.shape)}")
    require(values.dtype is spec.dtype, f"the values must be {spec.dtype}, not {values.dtype}")
    allowed = (DataType.UINT32,) if spec.dtype in WIDE_INDEX_DTYPES else (DataType.UINT16, DataType.UINT32)
    names = " or ".join(dtype.name for dtype in allowed)
    require(indices.dtype in allowed, f"indices must be {names} when input dtype is {spec.dtype.name}")


def _already_sorted(
    tensor: Tensor, index_dtype: DataType, memory_config: MemoryConfig | None, out: Sequence[Tensor] | None
) -> list[Tensor]:
    require_on_device(tensor._spec)
    if out is not None and tensor._spec.volume == 0:
        return [out[0], out[1]]
    if out is None:
        indices = ttnn.zeros_like(tensor, index_dtype, memory_config=memory_config)
        return [ttnn.clone(tensor, memory_config=memory_config), indices]
    values, indices = out
    layout = values._spec.layout
    ttnn.copy(tensor if tensor._spec.layout is layout else ttnn.to_layout(tensor, layout), values)
    ttnn.zeros_like(tensor, indices._spec.dtype, indices._spec.layout, optional_tensor=indices)
    return [values, indices]


def _prepared(tensor: Tensor, dim: int, descending: bool) -> Tensor:
    """Move `dim` to the end, extend to rank 4, and pad with values that sort last."""
    if tensor._spec.shape == (1,):
        return tensor
    spec = tensor._spec
    if spec.dtype is DataType.UINT16:
        fill = 0.0 if descending else 65535.0
    else:
        fill = -math.inf if descending else math.inf
    flat = to_4d(with_last(tensor, dim))
    if flat._spec.is_tile:
        flat = ttnn.fill_implicit_tile_padding(flat, fill)
        width = flat._spec.padded_shape[-1]
    else:
        *batch, height, width = flat._spec.shape
        count = math.prod(batch)
        if count * height % TILE_SIZE:
            rows = round_up(height, TILE_SIZE // math.gcd(TILE_SIZE, count))
            flat = ttnn.pad(flat, [*batch, rows, width], [0, 0, 0, 0], fill)
    whole = 1 << (width - 1).bit_length()
    if whole == width and width > TILE_SIZE:
        return flat
    if whole == TILE_SIZE:
        whole = 2 * TILE_SIZE
    return ttnn.pad(flat, [*flat._spec.shape[:3], whole], [0, 0, 0, 0], fill)


def _restored(result: Tensor, spec: Spec, dim: int, config: MemoryConfig) -> Tensor:
    """Remove the padding, and restore the input's rank and dimension order."""
    shape, size = result._spec.shape, spec.shape[dim]
    if shape[-1] != size:
        result = ttnn.slice(result, [0] * 4, [*shape[:3], size], [1] * 4, memory_config=config)
    rows, batch = spec.volume // size, shape[0] * shape[1]
    if shape[2] * batch != rows:
        end = [shape[0], shape[1], rows // batch, size]
        result = ttnn.slice(result, [0] * 4, end, [1] * 4, memory_config=config)
    swapped = list(spec.shape)
    swapped[dim], swapped[-1] = swapped[-1], swapped[dim]
    result = ttnn.reshape(result, swapped) if spec.rank == 1 else from_4d(result, swapped)
    if dim != spec.rank - 1:
        result = ttnn.transpose(result, dim, -1, memory_config=spec.memory_config)
    return result


@internal("ttnn.prim.sort")
def order_rows(
    input_tensor: Spec,
    descending: bool,
    stable: bool,
    is_padded: bool,
    memory_config: MemoryConfig,
    index_dtype: DataType | None = None,
) -> Plan:
    """The sort kernels, along a last dimension whose size is a power of two."""
    spec = input_tensor
    require_on_device(spec)
    require(spec.rank == 4, f"the input must be of rank 4, not {spec.rank}")
    require(spec.dtype in SORT_DTYPES, f"{spec.dtype} cannot be sorted")
    width = spec.padded_shape[-1] if spec.is_tile else spec.shape[-1]
    require(
        width >= LEAST_WIDTH and width & (width - 1) == 0,
        f"rows of {width} are no power of two of at least {LEAST_WIDTH}",
    )
    wide = spec.shape[-1] >= LONGEST_16_BIT or spec.dtype in WIDE_INDEX_DTYPES
    places_dtype = index_dtype or (DataType.UINT32 if wide else DataType.UINT16)
    values = Spec.of(spec.shape, spec.dtype, spec.layout, memory_config)
    indices = Spec.of(spec.shape, places_dtype, spec.layout, memory_config)
    several_cores = width // TILE_SIZE > LEAST_WIDTH

    def compute(rows: torch.Tensor) -> list[torch.Tensor]:
        missing = width - rows.shape[-1]
        if missing:
            behind = rows.new_full((*rows.shape[:-1], missing), _last_value(spec.dtype, descending))
            rows = torch.cat([rows, behind], dim=-1)
        keep = stable or (several_cores and is_padded)
        ordered, places = sort_rows(rows, spec.dtype, descending=descending, stable=keep)
        size = spec.shape[-1]
        return [ordered[..., :size].contiguous(), places[..., :size].to(CARRIER[places_dtype]).contiguous()]

    return Plan([values, indices], compute)


def _last_value(dtype: DataType, descending: bool) -> float:
    if dtype is DataType.UINT16:
        return 0 if descending else 65535
    return -math.inf if descending else math.inf


# -- topk -------------------------------------------------------------------------------------------------------------

TOPK_DTYPES = (DataType.BFLOAT16, DataType.BFLOAT8_B, DataType.FLOAT32)
TOPK_INDEX_DTYPES = (DataType.UINT16, DataType.UINT32, DataType.INT32)


@composite("ttnn.topk", ignores=("sorted",))
def topk(
    input_tensor: Tensor,
    k: int = 32,
    dim: int = -1,
    largest: bool = True,
    *,
    memory_config: MemoryConfig | None = None,
    sub_core_grids: CoreRangeSet | None = None,
    indices_tensor: Tensor | None = None,
    output_tensor: Sequence[Tensor] | None = None,
    stable: bool = False,
) -> list[Tensor]:
    """The `k` largest or smallest values along `dim` in order, and their indices."""
    spec = input_tensor._spec
    require_on_device(spec)
    require(k >= 0, f"k must not be negative, it is {k}")
    require(
        -spec.rank <= dim < spec.rank or (spec.rank == 0 and dim in (0, -1)),
        f"dimension {dim} is out of range for a tensor of rank {spec.rank}",
    )
    size = spec.shape[dim] if spec.rank else 1
    require(k <= size, f"k = {k} exceeds the {size} elements of dimension {dim}")
    dim = dim % spec.rank if spec.rank else 0
    last = dim == spec.rank - 1 or spec.rank == 0
    shape = tuple(k if axis == dim else each for axis, each in enumerate(spec.shape))
    for given in output_tensor or ():
        require_on_device(given._spec, "an output tensor")
        require(given._spec.shape == shape, f"outputs must have shape {list(shape)}, not {list(given._spec.shape)}")
    if indices_tensor is not None:
        require(
            indices_tensor._spec.shape == spec.shape,
            f"Indices tensor has incorrect shape: {list(indices_tensor._spec.shape)} for {list(spec.shape)}",
        )
        require(last, "indices are only supported for a reduction on the last dimension")
    config = memory_config if memory_config is not None else spec.memory_config
    if spec.rank == 0 or spec.volume == 0 or k == 0:
        return _trivial_topk(input_tensor, shape, config, output_tensor)
    fill = -math.inf if largest else math.inf
    flat = to_4d(with_last(input_tensor, dim))
    given_indices = to_4d(indices_tensor) if indices_tensor is not None else None
    missing = LEAST_WIDTH - flat._spec.shape[-1]
    if missing > 0:
        sides = [[0, 0], [0, 0], [0, 0], [0, missing]]
        flat = ttnn.pad(flat, sides, fill)
        if given_indices is not None:
            given_indices = ttnn.pad(given_indices, sides, 0.0)
    flat = ttnn.fill_implicit_tile_padding(flat, fill)
    whole = round_up(k, TILE_SIZE)
    _require_topk_outputs(spec, output_tensor)
    index_dtype = output_tensor[1]._spec.dtype if output_tensor is not None else None
    values, indices = choose(flat, whole, largest, stable, config, sub_core_grids, index_dtype, given_indices)
    results = [_topk_restored(result, spec, dim, k, whole, config) for result in (values, indices)]
    if output_tensor is None:
        return results
    return [ttnn.copy(result, given) for result, given in zip(results, output_tensor)]


def _trivial_topk(
    tensor: Tensor, shape: tuple[int, ...], config: MemoryConfig, out: Sequence[Tensor] | None
) -> list[Tensor]:
    spec = tensor._spec
    if out is not None:
        if spec.rank == 0:
            ttnn.copy(tensor, out[0])
        return [out[0], out[1]]
    if spec.rank == 0:
        zero = ttnn.full(list(shape), 0, DataType.UINT16, spec.layout, tensor._device, config)
        return [ttnn.clone(tensor, memory_config=config), zero]
    return [ttnn.full(list(shape), 0.0, spec.dtype, spec.layout, tensor._device, config) for _ in range(2)]


def _require_topk_outputs(spec: Spec, out: Sequence[Tensor] | None) -> None:
    if out is None:
        return
    values, indices = out[0]._spec, out[1]._spec
    require(values.dtype is spec.dtype, f"Preallocated values must be {spec.dtype}, not {values.dtype}")
    require(indices.dtype in TOPK_INDEX_DTYPES, f"Preallocated indices cannot be {indices.dtype}")


def _topk_restored(result: Tensor, spec: Spec, dim: int, k: int, whole: int, config: MemoryConfig) -> Tensor:
    shape = result._spec.shape
    if whole != k:
        result = ttnn.slice(result, [0] * 4, [*shape[:3], k], [1] * 4, memory_config=config)
    swapped = list(spec.shape)
    swapped[dim], swapped[-1] = swapped[-1], k
    result = ttnn.reshape(result, swapped) if spec.rank == 1 else from_4d(result, swapped)
    if dim != spec.rank - 1:
        result = ttnn.transpose(result, dim, -1, memory_config=spec.memory_config)
    return result


@internal("ttnn.prim.topk")
def choose(
    input_tensor: Spec,
    k: int,
    largest: bool,
    stable: bool,
    memory_config: MemoryConfig,
    sub_core_grids: CoreRangeSet | None,
    index_dtype: DataType | None,
    indices: Spec | None = None,
) -> Plan:
    """The topk kernels: `k`, a multiple of 32, of the last dimension."""
    spec, width = input_tensor, input_tensor.padded_shape[-1]
    require(not memory_config.is_sharded(), "the output must not be sharded")
    require(spec.is_tile, "the input must be in TILE layout")
    require(spec.dtype in TOPK_DTYPES, f"Input tensor must be BFLOAT16, BFLOAT8_B, or FLOAT32, not {spec.dtype}")
    if indices is not None:
        require(indices.dtype in TOPK_INDEX_DTYPES, f"indices cannot be {indices.dtype}")
        require(
            spec.dtype is not DataType.FLOAT32 or indices.dtype is not DataType.UINT16,
            "Optional indices tensor must be UINT32 when input tensor is FLOAT32",
        )
    if sub_core_grids is not None:
        box, grid = sub_core_grids.bounding_box(), current_board().grid
        require(box.end.x < grid[0] and box.end.y < grid[1], f"sub_core_grids {sub_core_grids} exceed the grid {grid}")
    short = width <= LONGEST_16_BIT and spec.dtype is not DataType.FLOAT32
    given_dtype = indices.dtype if indices is not None else DataType.UINT16 if short else DataType.UINT32
    index_dtype = index_dtype or given_dtype
    shape = (*spec.shape[:-1], k)
    values = Spec.of(shape, spec.dtype, Layout.TILE, memory_config)
    places = Spec.of(shape, index_dtype, Layout.TILE, memory_config)
    fill = -math.inf if largest else math.inf
    split = _columns_per_core(spec, k, index_dtype, sub_core_grids)

    def compute(rows: torch.Tensor, given: torch.Tensor | None) -> list[torch.Tensor]:
        missing = width - rows.shape[-1]
        if missing:
            rows = torch.cat([rows, rows.new_full((*rows.shape[:-1], missing), fill)], dim=-1)
        if given is None:
            given = torch.arange(width).expand(rows.shape)
        elif missing:
            given = torch.nn.functional.pad(given, (0, missing))
        best, found = best_of_rows(rows, given, k, spec.dtype, largest=largest, stable=stable, split=split)
        if spec.dtype is DataType.BFLOAT8_B:
            best = device_pack_block_float(best, spec.dtype)
        return [best, found.to(CARRIER[index_dtype])]

    return Plan([values, places], compute, reads=("input_tensor", "indices"))


def _columns_per_core(spec: Spec, k: int, index_dtype: DataType, sub_core_grids: CoreRangeSet | None) -> int | None:
    """Columns per core when rows are split over a rectangle of cores; None if they are not."""
    width, board = spec.padded_shape[-1], current_board()
    if not LEAST_SPREAD <= width < LONGEST_16_BIT or width & (width - 1) or k > LEAST_WIDTH:
        return None
    extent = sub_core_grids.ranges()[0].grid_size() if sub_core_grids is not None else CoreCoord(*board.grid)
    columns, rows = extent.x - 1, extent.y - 2  # one column and two rows are reserved for the gathering core
    if columns < 1 or rows < 1:
        return None
    value, index = tile_bytes(spec.tile, spec.dtype), tile_bytes(spec.tile, index_dtype)
    pair = max(value, tile_bytes(spec.tile, DataType.BFLOAT16)) + index
    split = width // TILE_SIZE // (1 << ((columns * rows).bit_length() - 1)) * TILE_SIZE
    while 0 < split <= width // 2:
        cores = width // split
        gathered, shared = cores * max(k, TILE_SIZE) // TILE_SIZE, 4 * (value + index) + 2 * index
        most = max(2 * value + gathered * pair, split // TILE_SIZE * pair + 2 * (pair - index))
        fits = shared + gathered * pair + most < board.l1_bytes
        if fits and split >= LEAST_WIDTH and any(cores % y == 0 and cores // y <= columns for y in range(1, rows + 1)):
            return split
        split *= 2
    return None


@operation("ttnn.experimental.topk_large_indices", ignores=("subdevice_id",))
def topk_large_indices(
    input_tensor: Spec,
    *,
    k: int,
    valid_length: int | None = None,
    valid_length_tensor: Spec | None = None,
    valid_length_offset: int = 0,
    sub_core_grids: CoreRangeSet | None = None,
    valid_end_tensor: Spec | None = None,
) -> Plan:
    """Indices of the largest values of long rows, on Blackhole only."""
    require_on_device(input_tensor)
    require(16 <= k <= 2048 and k % 16 == 0, f"k must be a multiple of 16 from 16 to 2048, not {k}")
    arch = current_board().arch
    require(arch is Arch.BLACKHOLE, f"only Blackhole has this operation, not {arch.name}")
    raise NotEmulated("ttnn.experimental.topk_large_indices is not emulated on Blackhole")
