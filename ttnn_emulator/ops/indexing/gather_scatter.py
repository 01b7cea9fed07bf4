"""Reading and writing by index: gather, scatter, the TOSA forms of both, and moreh_getitem."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from ttnn_emulator.enums import DataType, Layout
from ttnn_emulator.errors import ChipFault, require
from ttnn_emulator.execution.call_context import current_board
from ttnn_emulator.execution.operation_table import Plan, composite, internal, operation, ttnn
from ttnn_emulator.numerics.formats.carriers import CARRIER, INTEGER_RANGE, round_bf16_nearest_even, wrap_integer
from ttnn_emulator.ops.support.any_rank import from_4d, to_4d, with_last
from ttnn_emulator.ops.support.common_checks import into, require_on_device
from ttnn_emulator.ops.support.derived_shards import cuts_width, fresh_shards, lacks_shards, scaled_shards, tile_aligned
from ttnn_emulator.tensors import padding_values
from ttnn_emulator.tensors.memory_config import L1_MEMORY_CONFIG, MemoryConfig
from ttnn_emulator.tensors.shapes import TILE_SIZE
from ttnn_emulator.tensors.spec import Spec
from ttnn_emulator.tensors.tensor import Tensor

INDEX_DTYPES = (DataType.UINT32, DataType.UINT16)

# -- gather -----------------------------------------------------------------------------------------------------------


@composite("ttnn.gather", ignores=("sub_core_grids",))
def gather(
    input: Tensor,
    dim: int,
    index: Tensor,
    *,
    sparse_grad: bool = False,
    memory_config: MemoryConfig | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """The elements along `dim` that the index selects."""
    spec, indices = input._spec, index._spec
    require(
        out is None or (out._storage is not input._storage and out._storage is not index._storage),
        "the output tensor must not be one of the inputs",
    )
    require(spec.rank == indices.rank, f"input and index must be of one rank, not {spec.rank} and {indices.rank}")
    if spec.rank == 0:
        return input
    if _rows_need_tiles(spec, indices):
        return _gather_through_tiles(input, dim, index, sparse_grad, memory_config)
    require(-spec.rank <= dim < spec.rank, f"dimension {dim} is out of range for a tensor of rank {spec.rank}")
    dim %= spec.rank
    config = memory_config if memory_config is not None else spec.memory_config
    if indices.shape == (1,) or spec.shape == (1,):
        picked = pick(input, index, config, sparse_grad)
        return picked if out is None else ttnn.copy(picked, out)
    last = spec.rank - 1
    positions = to_4d(with_last(index, dim))
    if positions._spec.is_tile:
        positions = ttnn.fill_implicit_tile_padding(positions, 0.0)
    source = with_last(input, dim)
    if spec.rank > 4:
        source = _leading_like(source, dim, indices.shape)
    source = to_4d(source)
    end = [*positions._spec.padded_shape[:3], source._spec.shape[3]]
    with padding_values.unread():  # padding rows do not appear in the result
        source = ttnn.slice(source, [0] * 4, end, [1] * 4, memory_config=spec.memory_config)
    target = to_4d(with_last(out, dim)) if out is not None else None
    picked = pick(source, positions, config, sparse_grad, target)
    swapped = list(indices.shape)
    swapped[dim], swapped[last] = swapped[last], swapped[dim]
    result = from_4d(picked, swapped)
    if dim != last:
        result = ttnn.transpose(result, dim, -1, memory_config=indices.memory_config)
    return result


def _leading_like(source: Tensor, dim: int, index_shape: tuple[int, ...]) -> Tensor:
    """Slice the merged dimensions to the index's sizes, so that both merge in the same way."""
    shape, wanted = source._spec.shape, list(index_shape)
    rank = len(shape)
    wanted[dim], wanted[-1] = wanted[-1], wanted[dim]
    for axis in range(rank - 3):
        require(
            wanted[axis] <= shape[axis],
            f"the index has {wanted[axis]} elements in a dimension of {shape[axis]}; only {dim} may have more",
        )
    end = [*wanted[: rank - 3], *shape[rank - 3 :]]
    return source if tuple(end) == shape else ttnn.slice(source, [0] * rank, end, [1] * rank)


def _rows_need_tiles(spec: Spec, indices: Spec) -> bool:
    """Rows cut into shards that are not whole tiles wide cannot be read page by page."""
    if spec.is_tile:
        return False
    return any(cuts_width(each.memory_config) and each.shape[-1] % TILE_SIZE for each in (spec, indices))


def _gather_through_tiles(
    tensor: Tensor, dim: int, index: Tensor, sparse_grad: bool, memory_config: MemoryConfig | None
) -> Tensor:
    config = memory_config if memory_config is not None else tensor._spec.memory_config
    tiles = [ttnn.to_layout(ttnn.to_memory_config(each, L1_MEMORY_CONFIG), Layout.TILE) for each in (tensor, index)]
    picked = gather(tiles[0], dim, tiles[1], sparse_grad=sparse_grad, memory_config=L1_MEMORY_CONFIG)
    rows = ttnn.to_layout(picked, Layout.ROW_MAJOR)
    if lacks_shards(config):
        assert tensor._device is not None
        shards = index._spec.shard_spec or tensor._spec.shard_spec
        orientation = shards.orientation if shards is not None else None
        grid = tensor._device.board.grid
        config = config.with_shard_spec(fresh_shards(grid, rows._spec.padded_shape, config.memory_layout, orientation))
    return ttnn.to_memory_config(rows, config)


@internal("ttnn.prim.gather")
def pick(
    input_tensor: Spec, index: Spec, memory_config: MemoryConfig, sparse_grad: bool, out: Spec | None = None
) -> Plan:
    """The gather kernel, along the last dimension."""
    spec = input_tensor
    require_on_device(spec)
    require_on_device(index, "the index")
    require(out is None or out.shape == index.shape, "the output tensor must have the shape of the index")
    require(index.dtype in INDEX_DTYPES, f"the index must be uint32 or uint16, not {index.dtype}")
    for have, wanted in zip(spec.shape[:-1], index.shape[:-1]):
        require(wanted <= have, f"index {list(index.shape)} exceeds input {list(spec.shape)} beside the last dimension")
    require(spec.layout is index.layout, f"input and index must have one layout, not {spec.layout} and {index.layout}")
    require(not sparse_grad, "sparse_grad is not supported")
    shards = memory_config.shard_spec
    require(not spec.is_tile or shards is None or tile_aligned(shards), "shards of tiles must be whole tiles")
    if lacks_shards(memory_config):
        memory_config = _with_shards(memory_config, spec, index)
    result = Spec.of(index.shape, spec.dtype, spec.layout, memory_config)
    width, rows = spec.shape[-1], tuple(slice(size) for size in index.shape[:-1])

    def compute(values: torch.Tensor, indices: torch.Tensor) -> torch.Tensor:
        positions = indices.long()
        if positions.numel() and int(positions.max()) >= width:
            raise ChipFault(
                f"index {int(positions.max())} reaches beyond {width} elements: the kernel reads what is there"
            )
        return torch.gather(values[rows], -1, positions)

    return Plan(out or result, compute, reads=("input_tensor", "index"), into=into(out, "out"))


def _with_shards(config: MemoryConfig, spec: Spec, index: Spec) -> MemoryConfig:
    shards = None
    if index.shard_spec is not None and index.memory_config.memory_layout is config.memory_layout:
        shards = scaled_shards(index.shard_spec, index.shape, index.shape)
        if shards is not None and spec.is_tile and not tile_aligned(shards):
            shards = None
    if shards is None:
        like = index.shard_spec or spec.shard_spec
        orientation = like.orientation if like is not None else None
        shards = fresh_shards(current_board().grid, index.shape, config.memory_layout, orientation)
    return config.with_shard_spec(shards)


@composite("ttnn.tosa_gather")
def tosa_gather(input: Tensor, index: Tensor, *, memory_config: MemoryConfig | None = None) -> Tensor:
    """Rows [N, W, C] of [N, K, C] by an index [N, W]."""
    spec, indices = input._spec, index._spec
    require(len(spec.padded_shape) == 3, f"the input must be of rank 3, not {spec.rank}")
    require(len(indices.padded_shape) == 2, f"the index must be of rank 2, not {indices.rank}")
    require(spec.shape[0] == indices.shape[0], f"index {list(indices.shape)} does not fit input {list(spec.shape)}")
    if indices.rank > 1:
        index = ttnn.expand(ttnn.unsqueeze(index, -1), [*indices.shape, spec.shape[2]])
    config = memory_config if memory_config is not None else spec.memory_config
    return gather(input, 1, index, memory_config=config)


# -- scatter ----------------------------------------------------------------------------------------------------------

REDUCTIONS = ("add", "multiply")
# tt-metal v0.81.1: ttnn/cpp/ttnn/operations/data_movement/scatter/scatter.cpp, to_layout_int32_scatter_axis_max_length
LONGEST_TILED_INTEGERS = 256  # elements along the dimension; untilizing corrupts longer rows of 32-bit integers


@composite("ttnn.scatter", ignores=("sub_core_grids",))
def scatter(
    input: Tensor,
    dim: int,
    index: Tensor,
    src: Tensor,
    *,
    memory_config: MemoryConfig | None = None,
    reduce: str | None = None,
) -> Tensor:
    """The input with the elements of `src` written, added or multiplied at the indexed positions."""
    spec, indices, source = input._spec, index._spec, src._spec
    rank = spec.rank
    require(-rank <= dim < rank, f"dimension {dim} is out of range for a tensor of rank {rank}")
    dim %= rank
    for each in (spec, indices, source):
        require(
            not each.is_tile or each.dtype is not DataType.FLOAT32 or each is indices,
            "float32 in TILE layout cannot be scattered",
        )
        require(
            not each.is_tile
            or each.dtype not in (DataType.INT32, DataType.UINT32)
            or dim >= each.rank
            or each.shape[dim] <= LONGEST_TILED_INTEGERS,
            f"tiles of 32-bit integers are scattered along at most {LONGEST_TILED_INTEGERS} elements",
        )
    _require_scatter_shapes(spec, indices, source, dim)
    require(reduce is None or reduce in REDUCTIONS, f"reduce is one of {', '.join(REDUCTIONS)}, not {reduce!r}")
    _require_scatter_dtypes(spec, indices, source)
    if spec.volume == 0 or indices.shape[dim] == 0:
        return input
    config = memory_config if memory_config is not None else spec.memory_config
    rows = [_as_rows(tensor, dim) for tensor in (input, index)]
    part = ttnn.slice(src, [0] * rank, list(indices.shape), [1] * rank, memory_config=source.memory_config)
    written = write(*rows, _as_rows(part, dim), config, reduce)
    swapped = list(spec.shape)
    swapped[dim], swapped[-1] = swapped[-1], swapped[dim]
    result = written if rank >= 4 else ttnn.reshape(written, swapped)
    if dim != rank - 1:
        result = ttnn.transpose(result, dim, -1, memory_config=result._spec.memory_config)
    return result if not spec.is_tile else ttnn.to_layout(result, Layout.TILE)


def _require_scatter_shapes(spec: Spec, index: Spec, source: Spec, dim: int) -> None:
    require(
        spec.rank == index.rank == source.rank,
        f"input, index and src must be of one rank, not {spec.rank}, {index.rank} and {source.rank}",
    )
    for axis, size in enumerate(index.shape):
        require(
            size <= source.shape[axis] and (axis == dim or size <= spec.shape[axis]),
            f"index {list(index.shape)} exceeds src {list(source.shape)} or input {list(spec.shape)}",
        )


def _require_scatter_dtypes(spec: Spec, index: Spec, source: Spec) -> None:
    untilized = {DataType.BFLOAT8_B: DataType.BFLOAT16}
    have, given = (untilized.get(each.dtype, each.dtype) for each in (spec, source))
    require(have is given, f"input and src must be of one dtype, not {spec.dtype} and {source.dtype}")
    require(index.dtype in INTEGER_RANGE, f"the index must be of integers, not {index.dtype}")
    for each in (spec, index, source):
        require(not each.is_sharded, "sharded tensors cannot be scattered")
        require_on_device(each, "every tensor")


def _as_rows(tensor: Tensor, dim: int) -> Tensor:
    """Row-major, the dimension last, at least four dimensions."""
    if tensor._spec.is_tile:
        tensor = ttnn.to_layout(tensor, Layout.ROW_MAJOR)
    tensor = with_last(tensor, dim)
    return ttnn.unsqueeze_to_4D(tensor) if tensor._spec.rank < 4 else tensor


@internal("ttnn.prim.scatter")
def write(input_tensor: Spec, index: Spec, source: Spec, memory_config: MemoryConfig, reduce: str | None) -> Plan:
    """The scatter kernel, along the last dimension, element by element in order; an index out of range is skipped.

    bfloat16 is reduced in float32 and rounded once.
    """
    _require_scatter_dtypes(input_tensor, index, source)
    out = Spec.of(input_tensor.shape, input_tensor.dtype, Layout.ROW_MAJOR, memory_config)
    width, dtype = input_tensor.shape[-1], input_tensor.dtype
    rows = tuple(slice(size) for size in index.shape[:-1])

    def compute(values: torch.Tensor, indices: torch.Tensor, given: torch.Tensor) -> torch.Tensor:
        positions = indices.long()
        beside = torch.where((positions >= 0) & (positions < width), positions, width)
        wide = values if values.is_floating_point() else values.long()
        room = torch.cat([wide, wide.new_zeros(*wide.shape[:-1], 1)], dim=-1)  # an extra column for skipped values
        part = room[rows]
        added = given.to(room.dtype)
        if reduce == "add":
            part.scatter_add_(-1, beside, added)
        elif reduce == "multiply":
            part.scatter_reduce_(-1, beside, added, "prod")
        else:
            part.scatter_(-1, beside, added)
        result = room[..., :width]
        if not values.is_floating_point():
            return wrap_integer(result, dtype)
        return round_bf16_nearest_even(result) if reduce and dtype is DataType.BFLOAT16 else result.contiguous()

    return Plan(out, compute)


@composite("ttnn.scatter_add", ignores=("sub_core_grids",))
def scatter_add(
    input: Tensor, dim: int, index: Tensor, src: Tensor, *, memory_config: MemoryConfig | None = None
) -> Tensor:
    """The input with the elements of `src` added at the indexed positions."""
    return scatter(input, dim, index, src, memory_config=memory_config, reduce="add")


@composite("ttnn.tosa_scatter")
def tosa_scatter(input: Tensor, index: Tensor, src: Tensor, *, memory_config: MemoryConfig | None = None) -> Tensor:
    """[N, K, C] with the rows [N, W, C] of `src` written at an index [N, W]."""
    spec, indices, source = input._spec, index._spec, src._spec
    ranks = (spec.rank, indices.rank, source.rank)
    require(ranks == (3, 2, 3), f"input, index and src must be of rank 3, 2 and 3, not {ranks}")
    (batch, _, channels), (lots, count) = spec.shape, indices.shape
    require(
        source.shape == (batch, count, channels) and lots == batch,
        f"input {list(spec.shape)}, index {list(indices.shape)} and src {list(source.shape)} do not fit",
    )
    spread = ttnn.expand(ttnn.unsqueeze(index, -1), [batch, count, channels], memory_config=indices.memory_config)
    spread = ttnn.to_device(ttnn.to_dtype(ttnn.from_device(spread), DataType.UINT16), spread._device)
    rows = [_tosa_rows(tensor) for tensor in (input, spread, src)]
    config = memory_config if memory_config is not None else spec.memory_config
    result = ttnn.transpose(write(*rows, config, None), -2, -1)
    result = ttnn.reshape(result, list(spec.shape))
    return ttnn.to_layout(result, Layout.TILE) if spec.is_tile else result


def _tosa_rows(tensor: Tensor) -> Tensor:
    columns = ttnn.transpose(tensor, -2, -1)
    if columns._spec.is_tile:
        columns = ttnn.to_layout(columns, Layout.ROW_MAJOR)
    return ttnn.unsqueeze_to_4D(columns)


# -- moreh ------------------------------------------------------------------------------------------------------------


@operation("ttnn.moreh_getitem")
def moreh_getitem(
    input: Spec | None = None,
    index_tensors: Sequence[Spec] = (),
    index_dims: Sequence[int] = (),
    *,
    output: Spec | None = None,
    memory_config: MemoryConfig | None = None,
) -> Plan:
    """`input[index, …]` along consecutive dimensions. Tiles keep their rank: all but the last of them become 1."""
    require(input is not None, "the input tensor is missing")
    assert input is not None
    spec, rank = input, input.rank
    require_on_device(spec)
    require(spec.dtype in (DataType.INT32, DataType.BFLOAT16), f"the input must be int32 or bfloat16, not {spec.dtype}")
    least = 2 if spec.is_tile else 1
    require(least <= rank <= 5, f"the input must be of {least} to 5 dimensions, not {rank}")
    require(len(index_tensors) > 0 and len(index_dims) > 0, "there must be an index and its dimension")
    count = index_tensors[0].shape[-1]
    for index in index_tensors:
        require_on_device(index, "the index")
        require(index.dtype is DataType.INT32, f"the index must be int32, not {index.dtype}")
        require(index.is_tile or index.rank == 1, f"a row-major index must be of rank 1, not {index.rank}")
        require(spec.is_tile or not index.is_tile, "a row-major input does not take an index in tiles")
        require(index.shape[-1] == count, "all indices must have the same length")
    first, last = index_dims[0], index_dims[-1]
    require(all(dim < rank for dim in index_dims), f"dimensions {list(index_dims)} are out of range")
    require(spec.is_tile or last != rank - 1, "rows cannot be indexed along their last dimension")
    require(
        list(index_dims) == list(range(first, first + len(index_dims))),
        f"dimensions {list(index_dims)} must be consecutive",
    )
    ones = (1,) * (last - first) if spec.is_tile else ()
    shape = (*spec.shape[:first], *ones, count, *spec.shape[last + 1 :])
    require(output is None or output.dtype is spec.dtype, "the output tensor must have the dtype of the input")
    out = output or Spec.of(shape, spec.dtype, spec.layout, memory_config or spec.memory_config)

    def compute(values: torch.Tensor, indices: list[torch.Tensor]) -> torch.Tensor:
        places = tuple(
            torch.where(index < 0, index + spec.shape[dim], index).reshape(-1).long()
            for index, dim in zip(indices, index_dims)
        )
        picked = values[(slice(None),) * first + places]
        return picked.reshape(shape).to(CARRIER[spec.dtype])

    return Plan(out, compute, reads=("input", "index_tensors"), into=into(output, "output"))
