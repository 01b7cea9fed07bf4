"""Writing values at indices: index_fill, indexed_fill, plus_one."""

from __future__ import annotations

import math

import torch

from ttnn_emulator.enums import DataType, Layout, ShardOrientation, TensorMemoryLayout
from ttnn_emulator.errors import require
from ttnn_emulator.execution.call_context import current_board
from ttnn_emulator.execution.operation_table import Plan, composite, internal, operation, ttnn
from ttnn_emulator.numerics.formats.carriers import wrap_integer
from ttnn_emulator.numerics.units.packer import store
from ttnn_emulator.ops.support.common_checks import memory_of, require_on_device
from ttnn_emulator.ops.support.derived_shards import BLOCK, WIDTH, cuts_width, fresh_shards, lacks_shards, tile_aligned
from ttnn_emulator.tensors.memory_config import MemoryConfig, ShardSpec
from ttnn_emulator.tensors.spec import Spec
from ttnn_emulator.tensors.tensor import Tensor

VALUE_TYPE = {DataType.BFLOAT16: float, DataType.FLOAT32: float, DataType.INT32: int}


@operation("ttnn.index_fill", "ttnn.index_fill_new")
def index_fill(input: Spec, dim: int, index: Spec, value: float, *, memory_config: MemoryConfig | None = None) -> Plan:
    """The input with `value` in all slices along `dim` that the index selects."""
    config = memory_of(memory_config, input)
    require_on_device(input)
    require(not input.is_tile, f"the input must be in ROW_MAJOR layout, not in {input.layout}")
    nd = TensorMemoryLayout.ND_SHARDED
    require(
        input.memory_config.memory_layout is not nd and config.memory_layout is not nd, "no ND shards are supported"
    )
    if cuts_width(input.memory_config) and cuts_width(config):
        have, wanted = input.shard_spec, config.shard_spec
        require(have is not None and wanted is not None, "sharded tensors need shard specs")
        assert have is not None and wanted is not None
        require(
            have.shape[1] == wanted.shape[1],
            f"shards of input and output must be equally wide, not {have.shape[1]} and {wanted.shape[1]}",
        )
    require_on_device(index, "the index")
    require(index.rank == 1, f"the index must be of rank 1, not {index.rank}")
    require(index.dtype is DataType.UINT32, f"the index must be uint32, not {index.dtype}")
    require(0 <= dim < input.rank, f"dimension {dim} is out of range for a tensor of rank {input.rank}")
    require(
        VALUE_TYPE.get(input.dtype) is type(value),
        f"{input.dtype} cannot be filled with {value!r} of type {type(value).__name__}",
    )
    recut = config.memory_layout is not input.memory_config.memory_layout and cuts_width(config)
    out = input.with_(memory_config=config, alignment=() if recut else input.alignment)
    fill = store(torch.tensor(value), input.dtype) if isinstance(value, float) else torch.tensor(value)
    size = input.shape[dim]

    def compute(values: torch.Tensor, indices: torch.Tensor) -> torch.Tensor:
        places = indices.long()
        result = values.clone()
        result.index_fill_(dim, places[places < size], fill.item())
        return result

    return Plan(out, compute)


@composite("ttnn.indexed_fill")
def indexed_fill(
    batch_id: Tensor,
    input_tensor_a: Tensor,
    input_tensor_b: Tensor,
    *,
    memory_config: MemoryConfig | None = None,
    dim: int = 0,
) -> Tensor:
    """The first input with the slices of the second at the ids along `dim`."""
    a, b, ids = input_tensor_a._spec, input_tensor_b._spec, batch_id._spec
    require(-a.rank <= dim < a.rank, f"dimension {dim} is out of bounds for rank {a.rank}")
    dim %= a.rank
    require(a.rank == b.rank, f"both inputs must be of one rank, not {a.rank} and {b.rank}")
    require(
        all(have == given for axis, (have, given) in enumerate(zip(a.shape, b.shape)) if axis != dim),
        f"inputs {list(a.shape)} and {list(b.shape)} may differ in dimension {dim} only",
    )
    require(
        b.shape[dim] == ids.padded_shape[-1],
        f"{ids.padded_shape[-1]} ids do not fit {b.shape[dim]} slices of the second input",
    )
    config = memory_config if memory_config is not None else a.memory_config
    if dim < a.rank - (2 if a.is_tile else 1):
        return replace_slices(batch_id, input_tensor_a, input_tensor_b, config, dim)
    order = [dim, *(axis for axis in range(a.rank) if axis != dim)]
    back = [order.index(axis) for axis in range(a.rank)]
    between = MemoryConfig(TensorMemoryLayout.INTERLEAVED, a.memory_config.buffer_type)
    moved = [ttnn.permute(tensor, order, memory_config=between) for tensor in (input_tensor_a, input_tensor_b)]
    result = replace_slices(batch_id, *moved, between, 0)
    if lacks_shards(config):
        assert input_tensor_a._device is not None
        config = config.with_shard_spec(_shards_for(a, config, input_tensor_a._device.board.grid))
    return ttnn.permute(result, back, memory_config=config)


def _shards_for(spec: Spec, config: MemoryConfig, grid: tuple[int, int]) -> ShardSpec:
    if spec.shard_spec is not None:
        return spec.shard_spec
    return fresh_shards(grid, spec.padded_shape, config.memory_layout)


@internal("ttnn.prim.indexed_fill")
def replace_slices(batch_id: Spec, a: Spec, b: Spec, memory_config: MemoryConfig, dim: int) -> Plan:
    for spec in (a, b, batch_id):
        require_on_device(spec)
    require(a.layout is b.layout, f"both inputs must have one layout, not {a.layout} and {b.layout}")
    require(a.rank == 4, f"only tensors of rank 4 are filled, not of rank {a.rank}")
    require(batch_id.layout is Layout.ROW_MAJOR, "the ids must be in ROW_MAJOR layout")
    require(
        batch_id.dtype in (DataType.UINT32, DataType.INT32), f"the ids must be uint32 or int32, not {batch_id.dtype}"
    )
    require(
        b.padded_shape[dim] == batch_id.padded_shape[-1], f"{batch_id.padded_shape[-1]} ids do not fit {list(b.shape)}"
    )
    config = memory_config
    if lacks_shards(config):
        config = config.with_shard_spec(_shards_for(a, config, current_board().grid))
    if a.is_tile:
        given = (a.shard_spec, b.shard_spec, config.shard_spec)
        require(all(shards is None or tile_aligned(shards) for shards in given), "shards of tiles must be whole tiles")
    if cuts_width(a.memory_config):
        _require_like_shards(a, config)
    if not a.is_tile and any(cuts_width(each) for each in (a.memory_config, b.memory_config, config)):
        _require_local_rows(a, b, config, dim)
    out = Spec.of(a.shape, a.dtype, a.layout, config)
    size = a.shape[dim]

    def compute(ids: torch.Tensor, values: torch.Tensor, given: torch.Tensor) -> torch.Tensor:
        result = values.clone()
        for number, target in enumerate(ids.reshape(-1).tolist()):
            if 0 <= target < size:
                result.select(dim, target).copy_(given.select(dim, number))
        return result

    return Plan(out, compute)


def _require_like_shards(a: Spec, config: MemoryConfig) -> None:
    have, wanted = a.shard_spec, config.shard_spec
    require(config.memory_layout is a.memory_config.memory_layout, "the output must be sharded as the first input is")
    if have is None or wanted is None:
        return
    require(
        have.grid == wanted.grid and have.shape == wanted.shape, "the output's shards must be those of the first input"
    )
    if a.memory_config.memory_layout is BLOCK:
        rows = have.grid.bounding_box().grid_size().y
        require(a.padded_shape[0] % rows == 0, f"{a.padded_shape[0]} slices do not divide over {rows} rows of cores")
    _require_even(a)


def _require_even(spec: Spec) -> None:
    shards = spec.shard_spec
    assert shards is not None
    height, width = math.prod(spec.padded_shape[:-1]), spec.padded_shape[-1]
    require(
        height % shards.shape[0] == 0 and width % shards.shape[1] == 0,
        f"shards {list(shards.shape)} must divide {height} x {width} evenly",
    )


def _require_local_rows(a: Spec, b: Spec, config: MemoryConfig, dim: int) -> None:
    """Rows split by shards must be on the same cores in both tensors."""
    shards = a.shard_spec
    require(dim == 0, f"rows cut into shards are filled along dimension 0 only, not {dim}")
    require(
        shards is not None
        and cuts_width(a.memory_config)
        and a.memory_config.is_l1
        and config.is_l1
        and shards.orientation is ShardOrientation.ROW_MAJOR,
        "rows cut into shards must be in L1 in ROW_MAJOR orientation, as must the output",
    )
    assert shards is not None
    other = b.shard_spec
    alike = other is not None and other.grid == shards.grid and other.shape[1] == shards.shape[1]
    require(
        not b.is_sharded or (b.memory_config.memory_layout is WIDTH and alike),
        "the second input must be interleaved or cut as the first",
    )
    _require_even(a)


@operation("ttnn.plus_one", ignores=("sub_core_grids",))
def plus_one(input_tensor: Spec, skip_negative_entries: bool = False) -> Plan:
    """Adds 1 to every element, in place; with `skip_negative_entries` to none below 0."""
    spec = input_tensor
    require_on_device(spec)
    require(spec.dtype in (DataType.INT32, DataType.UINT32), f"the input must be int32 or uint32, not {spec.dtype}")
    require(not spec.is_tile, "the input must be in ROW_MAJOR layout")
    require(len(spec.padded_shape) <= 4, f"the input must be of at most 4 dimensions, not {spec.rank}")

    def compute(values: torch.Tensor) -> torch.Tensor:
        signed = values.to(torch.int32).long()
        more = signed + 1
        if skip_negative_entries:
            more = torch.where((signed >= 0) & (signed < 2**31 - 1), more, signed)
        return wrap_integer(more, spec.dtype)

    return Plan(spec, compute, reads=("input_tensor",), into=("input_tensor",))
