"""The unary program, which applies a chain of elementwise functions to one tensor."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch

from ttnn_emulator.enums import (
    FLOAT_DTYPES,
    INTEGER_DTYPES,
    BufferType,
    DataType,
    Layout,
    ShardOrientation,
    TensorMemoryLayout,
)
from ttnn_emulator.errors import require
from ttnn_emulator.execution.call_context import current_board
from ttnn_emulator.execution.operation_table import Bind, Plan, bindable
from ttnn_emulator.hardware.core_grid import CoreCoord, CoreRangeSet, num_cores_to_corerangeset
from ttnn_emulator.numerics.functions.apply import Activation, apply_chain, table_of_chain
from ttnn_emulator.numerics.functions.integer import integer_function
from ttnn_emulator.numerics.functions.lookup_tables import apply_table, applying_table
from ttnn_emulator.numerics.units.packer import pack
from ttnn_emulator.ops.elementwise.unary.kinds import DEDICATED, INTEGER_ONLY, INTEGERS
from ttnn_emulator.ops.support.common_checks import hashed, into, require_on_device
from ttnn_emulator.ops.support.derived_shards import fresh_shards, lacks_shards
from ttnn_emulator.tensors.memory_config import MemoryConfig, ShardSpec
from ttnn_emulator.tensors.shapes import DEFAULT_TILE, TILE_SIZE, div_up, round_up
from ttnn_emulator.tensors.spec import L1_ALIGNMENT, ROW_MAJOR_BYTES, Spec, padded_spec, tile_bytes

Compute = Callable[[torch.Tensor], torch.Tensor]

# Dtypes between which the packer converts into a preallocated output; all others must match.
MIXED_OUTPUTS = frozenset({DataType.BFLOAT16, DataType.FLOAT32, DataType.BFLOAT8_B})
BUFFERED_TILES = 2  # tiles per circular buffer


def unary_plan(
    source: Spec,
    chain: Sequence[Activation],
    memory_config: MemoryConfig | None = None,
    output_tensor: Spec | None = None,
    sub_core_grids: CoreRangeSet | None = None,
) -> Plan:
    """Check and plan a chain of functions."""
    require_on_device(source)
    _check_chain(source, chain, output_tensor)
    out = _output(source, memory_config, output_tensor)
    native = _computes_in_shards(source, out)
    if sub_core_grids is not None:
        _check_cores(source, native, sub_core_grids)
    return Plan(
        out,
        bindable(_compute(source.dtype, tuple(chain), out.dtype), _binding(source.dtype, tuple(chain), out.dtype)),
        reads=("input_tensor",),
        into=into(output_tensor),
        l1_bytes=0 if native else _buffer_bytes(source, out, chain),
        program=("unary", tuple(chain), hashed(source, rows=True), hashed(out), sub_core_grids),
        work=tuple(chain),
    )


def _check_chain(source: Spec, chain: Sequence[Activation], output: Spec | None) -> None:
    require(chain, "a chain of functions must not be empty")
    for function in chain:
        name = function.name
        if source.dtype in INTEGER_DTYPES:
            taken = INTEGERS.get(name, frozenset())
            require(source.dtype in taken, f"{name} takes {_names(taken)} integers, not {source.dtype}")
        else:
            require(name not in INTEGER_ONLY, f"{name} takes integers, not {source.dtype}")
        require(len(chain) == 1 or name not in DEDICATED, f"{name} has a kernel of its own and cannot be in a chain")
        require(name != "softcap", "softcap has a kernel for Blackhole only")
        if name == "lgamma":
            for spec in (source, output or source):
                require(spec.dtype in (DataType.BFLOAT16, DataType.FLOAT32), f"lgamma does not work on {spec.dtype}")


def _names(dtypes: frozenset[DataType]) -> str:
    return ", ".join(sorted(dtype.name.lower() for dtype in dtypes)) or "no"


# -- output -----------------------------------------------------------------------------------------------------------


def _output(source: Spec, memory_config: MemoryConfig | None, given: Spec | None) -> Spec:
    if given is not None:
        require_on_device(given, "the output tensor")
        mixed = {source.dtype, given.dtype} <= MIXED_OUTPUTS
        require(
            mixed or given.dtype is source.dtype,
            f"a result of {source.dtype} does not fit into a tensor of {given.dtype}",
        )
        require(given.shape == source.shape, f"the output has shape {list(given.shape)}, not {list(source.shape)}")
        require(given.layout is source.layout, f"the output is in {given.layout}, the input in {source.layout}")
        return given
    config = memory_config if memory_config is not None else source.memory_config
    if not config.is_sharded():
        return padded_spec(source.shape, source.padded_shape, source.dtype, source.layout, config)
    if lacks_shards(config):
        config = MemoryConfig(config.memory_layout, config.buffer_type, _shards_for(source, config.memory_layout))
    return Spec.of(source.shape, source.dtype, source.layout, config)


def _shards_for(source: Spec, how: TensorMemoryLayout) -> ShardSpec:
    """Shards for a config that names none: those of the input, or new ones over the whole grid."""
    given, grid = source.shard_spec, current_board().grid
    if given is not None:
        height, width = given.shape
        return ShardSpec(given.grid, (max(height, TILE_SIZE), max(width, TILE_SIZE)), given.orientation)
    if source.is_tile or source.volume == 0 or how is not TensorMemoryLayout.WIDTH_SHARDED:
        return fresh_shards(grid, source.padded_shape, how, tiles=source.is_tile)
    total = source.padded_shape[-1]
    width = _even_width(total, div_up(total, grid[0] * grid[1]), ROW_MAJOR_BYTES[source.dtype])
    cores = num_cores_to_corerangeset(div_up(total, width), CoreCoord(*grid), True)
    return ShardSpec(cores, (math.prod(source.padded_shape[:-1]), width), ShardOrientation.ROW_MAJOR)


def _even_width(total: int, least: int, element: int) -> int:
    """The smallest shard width that divides rows into L1-aligned parts; else whole tiles."""
    for width in range(least, total + 1):
        if total % width == 0 and width * element % L1_ALIGNMENT == 0:
            return width
    return round_up(least, TILE_SIZE)


# -- where it runs ----------------------------------------------------------------------------------------------------


def _computes_in_shards(source: Spec, out: Spec) -> bool:
    """Whether every core computes on its own shards; otherwise pages are copied through circular buffers."""
    if not (source.is_sharded and out.is_sharded):
        return False
    if _is_uneven(source):
        return False
    if BufferType.DRAM in (source.memory_config.buffer_type, out.memory_config.buffer_type):
        return False
    shards, out_shards = source.shard_spec, out.shard_spec
    if shards is None or out_shards is None or shards.grid != out_shards.grid or _is_uneven(out):
        return False
    if source.layout is Layout.ROW_MAJOR:
        area = DEFAULT_TILE.height * DEFAULT_TILE.width
        return math.prod(shards.shape) % area == 0 and math.prod(out_shards.shape) % area == 0
    return True


def _is_uneven(spec: Spec) -> bool:
    padded, shards = spec.padded_shape, spec.shard_spec
    require(len(padded) >= 2, f"a sharded tensor must have rank 2 at least, not shape {list(spec.shape)}")
    require(shards is not None, "a tensor with shards of more than two dimensions cannot be computed on")
    assert shards is not None
    return bool(math.prod(padded[:-1]) % shards.shape[0] or padded[-1] % shards.shape[1])


def _check_cores(source: Spec, native: bool, cores: CoreRangeSet) -> None:
    columns, rows = current_board().grid
    for area in cores.ranges():
        require(
            area.end.x < columns and area.end.y < rows,
            f"core ({area.end.x}, {area.end.y}) is outside of the {columns} x {rows} compute grid",
        )
    if not native:
        return
    assert source.shard_spec is not None
    holders, start = source.shard_spec.grid, CoreCoord(0, 0)
    if cores.size() == 1 and cores.ranges()[0].start == start and holders.ranges()[0].start == start:
        return
    require(cores.contains(holders), f"the shards are on {holders}, the program may only run on {cores}")


def _buffer_bytes(source: Spec, out: Spec, chain: Sequence[Activation]) -> int:
    passes = 2 if chain[0].name == "logit" else 1  # logit keeps the clamped input in a buffer of its own
    return BUFFERED_TILES * (passes * tile_bytes(source.tile, source.dtype) + tile_bytes(out.tile, out.dtype))


# -- computation ------------------------------------------------------------------------------------------------------


def _compute(dtype: DataType, chain: tuple[Activation, ...], out_dtype: DataType) -> Compute:
    if dtype in INTEGER_DTYPES:
        steps = [integer_function(function, dtype) for function in chain]
        return lambda x: _in_turn(steps, x)
    if dtype is DataType.FLOAT32:
        return lambda x: pack(apply_chain(chain, x, fp32_dest=True), out_dtype, from_fp32=True)
    if out_dtype is DataType.BFLOAT16:
        return lambda x: apply_table(table_of_chain(chain, True), x)
    return lambda x: pack(apply_chain(chain, x), out_dtype, from_fp32=False)


def _binding(dtype: DataType, chain: tuple[Activation, ...], out_dtype: DataType) -> Bind | None:
    """See `Bindable`: functions evaluated by table lookup."""
    if dtype not in FLOAT_DTYPES or dtype is DataType.FLOAT32 or out_dtype is not DataType.BFLOAT16:
        return None

    def bind(carriers: Sequence[torch.Tensor], constant: Sequence[bool]) -> Any:
        (x,) = carriers
        return applying_table(table_of_chain(chain, True), x) if x.dtype is torch.float32 else None

    return bind


def _in_turn(steps: list[Compute], x: torch.Tensor) -> torch.Tensor:
    for step in steps:
        x = step(x)
    return x
