"""Operand checks of norms and softmax: weights, residuals, and shards that fill the program's grid."""

from __future__ import annotations

from typing import Any

from ttnn_emulator.api.binding import TYPES
from ttnn_emulator.enums import DataType, ShardOrientation, TensorMemoryLayout
from ttnn_emulator.errors import require
from ttnn_emulator.execution.call_context import current_board
from ttnn_emulator.hardware.core_grid import CoreCoord, CoreRange, CoreRangeSet
from ttnn_emulator.ops.support.common_checks import require_on_device
from ttnn_emulator.tensors.memory_config import MemoryConfig, ShardSpec
from ttnn_emulator.tensors.shapes import div_up
from ttnn_emulator.tensors.spec import Spec

TILE = 32
NORM_DTYPES = (DataType.FLOAT32, DataType.BFLOAT16, DataType.BFLOAT8_B)
ROW_MAJOR_WEIGHTS = (DataType.FLOAT32, DataType.BFLOAT16)


def require_shards_fill_grid(spec: Spec, program_grid: CoreCoord, *, width_in_tiles: bool = True) -> None:
    """The shards must tile the tensor and be inside the program's grid."""
    shards = spec.shard_spec
    assert shards is not None
    columns, rows = current_board().grid
    require(
        program_grid.x <= columns and program_grid.y <= rows,
        f"the program's grid {program_grid.x}x{program_grid.y} exceeds the device's {columns}x{rows}",
    )
    box = shards.grid.bounding_box().grid_size()
    require(
        box.x <= program_grid.x and box.y <= program_grid.y,
        f"the shards are on {box.x}x{box.y} cores, the program's grid has {program_grid.x}x{program_grid.y}",
    )
    height, width = shards.shape
    require(
        height % TILE == 0 and (width % TILE == 0 or not width_in_tiles),
        f"shards of {height}x{width} are not whole tiles",
    )
    cores = shards.grid.num_cores()
    full_height, full_width = spec.physical_shape
    kind = spec.memory_config.memory_layout
    down = cores if kind is TensorMemoryLayout.HEIGHT_SHARDED else 1
    across = cores if kind is TensorMemoryLayout.WIDTH_SHARDED else 1
    if kind is TensorMemoryLayout.BLOCK_SHARDED:
        down, across = div_up(full_height, height), div_up(full_width, width)
    require(down * across == cores, f"{down}x{across} shards do not fill {cores} cores")
    for count, size, full in ((down, height, full_height), (across, width, full_width)):
        require(0 <= count * size - full < size, f"{count} shards of {size} do not cover {full}")


def require_weight(spec: Spec, weight: Spec, name: str, *, same_width: bool = False) -> None:
    """A weight or bias: one row of tiles, or ROW_MAJOR rows of 32 that add up to the input's width."""
    if weight.is_tile:
        width, own = spec.shape[-1], weight.shape[-1] if weight.shape else 1
        fits = own == width if same_width else own >= width
        require(
            spec.padded_shape[-1] == weight.padded_shape[-1] and fits,
            f"the {name} is {own} wide, the input {width}",
        )
        require_on_device(weight, f"the {name}")
        require(weight.padded_shape[-2] == TILE, f"the {name} must be one tile high, it is {weight.padded_shape[-2]}")
        return
    rows = weight.physical_shape[0] * weight.physical_shape[1] // TILE
    require(
        weight.padded_shape[-1] == TILE and rows == spec.padded_shape[-1] // TILE,
        f"a ROW_MAJOR {name} has rows of {TILE} that make up {spec.padded_shape[-1]}, not {list(weight.shape)}",
    )
    require_on_device(weight, f"the {name}")
    require(weight.dtype in ROW_MAJOR_WEIGHTS, f"a ROW_MAJOR {name} is FLOAT32 or BFLOAT16, not {weight.dtype}")


def require_norm_operands(spec: Spec, residual: Spec | None, weight: Spec | None, bias: Spec | None) -> None:
    require(spec.is_tile or not spec.is_sharded, f"a sharded input must be in TILE layout, it is in {spec.layout}")
    if not spec.is_tile:
        require(spec.shape[-1] % TILE == 0, f"a ROW_MAJOR input has a width that {TILE} divides, not {spec.shape[-1]}")
    require(spec.dtype in NORM_DTYPES, f"the input must be FLOAT32, BFLOAT16 or BFLOAT8_B, not {spec.dtype}")
    require_on_device(spec)
    if residual is not None:
        require(residual.is_tile, f"the residual must be in TILE layout, it is in {residual.layout}")
        require(
            spec.shape == residual.shape and spec.padded_shape == residual.padded_shape,
            f"the residual has shape {list(residual.shape)}, the input {list(spec.shape)}",
        )
        require_on_device(residual, "the residual")
    if weight is not None:
        require_weight(spec, weight, "weight")
        require(
            bias is None or weight.layout is bias.layout,
            "weight and bias must have one layout",
        )
    if bias is not None:
        require_weight(spec, bias, "bias")


def is_sharded_program(program: Any) -> bool:
    """Whether a program config is one for sharded inputs."""
    return program is not None and hasattr(program, "block_h")


def require_sharded_norm(spec: Spec, residual: Spec | None, program: Any, memory: MemoryConfig, staged: bool) -> None:
    """Checks of the sharded kernel: placement of the shards, and the program's blocks relative to them."""
    require(
        spec.memory_config.memory_layout is not TensorMemoryLayout.HEIGHT_SHARDED, "a HEIGHT_SHARDED input is not taken"
    )
    require(
        memory.is_sharded() and memory.memory_layout is not TensorMemoryLayout.HEIGHT_SHARDED,
        f"a sharded input needs a sharded output, not {memory.brief()}",
    )
    if residual is not None:
        require(residual.is_sharded, "the residual must be sharded as the input is")
        require(residual.memory_config == spec.memory_config, "the residual must have the input's memory config")
    shards = spec.shard_spec
    require(shards is not None, "the input needs a two-dimensional shard spec")
    assert shards is not None
    require(is_sharded_program(program), "a sharded input needs a LayerNormShardedMultiCoreProgramConfig")
    _require_filled_box(spec, program, staged)
    require(program.block_w >= 1, "block_w must be at least 1")
    require_shards_fill_grid(spec, program.compute_with_storage_grid_size)


def _require_filled_box(spec: Spec, program: Any, staged: bool) -> None:
    shards = spec.shard_spec
    assert shards is not None
    box = shards.grid.bounding_box()
    if shards.grid.num_cores() == box.size():
        return
    require(
        spec.physical_shape[0] == program.block_h * TILE,
        "a grid that is not a rectangle is only supported if all rows are on every core",
    )
    require(not staged, "the distributed norms take rectangular grids only")
    by_rows = shards.orientation is ShardOrientation.ROW_MAJOR
    first = CoreRangeSet([CoreRange(box.start, box.end)]).cores(row_wise=by_rows)[: shards.grid.num_cores()]
    require(
        all(shards.grid.contains(core) for core in first),
        f"the grid {shards.grid} must fill its bounding box from the start",
    )


def require_blocks(spec: Spec, program: Any, memory: MemoryConfig) -> None:
    """How a sharded program config must fit the input and the output."""
    config = spec.memory_config
    require(
        config.buffer_type is memory.buffer_type and config.memory_layout is memory.memory_layout,
        f"the output {memory.brief()} must be placed as the input {config.brief()}",
    )
    shards = spec.shard_spec
    require(shards is not None, "a sharded program config needs a sharded input")
    assert shards is not None
    require(
        program.subblock_w > 0 and program.block_w % program.subblock_w == 0, "block_w must be a multiple of subblock_w"
    )
    rows, columns = spec.physical_shape[0] // TILE, spec.physical_shape[1] // TILE
    box = shards.grid.bounding_box().grid_size()
    grid = program.compute_with_storage_grid_size
    require(box.x <= grid.x and box.y <= grid.y, f"shards on {box.x}x{box.y} cores exceed the grid {grid.x}x{grid.y}")
    if rows == program.block_h:
        expected = (rows, div_up(columns, shards.num_cores()))
    elif shards.orientation is ShardOrientation.ROW_MAJOR:
        expected = (div_up(rows, box.y), div_up(columns, box.x))
    else:
        expected = (div_up(rows, box.x), div_up(columns, box.y))
    require(
        (program.block_h, program.block_w) == expected,
        f"blocks of {program.block_h}x{program.block_w} tiles do not divide {rows}x{columns} over the cores",
    )
    require(
        (program.block_h * TILE, program.block_w * TILE) == tuple(shards.shape),
        f"blocks of {program.block_h}x{program.block_w} tiles are not the shards {list(shards.shape)}",
    )


# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/normalization/layernorm/device/layernorm_common.cpp,
# create_layernorm_program_config
def default_program(shards: ShardSpec | None) -> Any:
    """The library's default program config."""
    if shards is None:
        return TYPES.classes["LayerNormDefaultProgramConfig"]()
    return TYPES.classes["LayerNormShardedMultiCoreProgramConfig"](
        compute_with_storage_grid_size=shards.grid.bounding_box().grid_size(),
        subblock_w=1,
        block_h=shards.shape[0] // TILE,
        block_w=shards.shape[1] // TILE,
        inplace=False,
    )


# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/normalization/layernorm/device/sharded_layernorm_factory_helpers.cpp,
# should_use_two_stage_reduce and GridParams::compute
def first_stage(spec: Spec, program: Any) -> int | None:
    """Cores per first-stage reduction when the sharded kernel reduces in two stages, None when in one."""
    shards = spec.shard_spec
    assert shards is not None
    box, grid = shards.grid.bounding_box(), program.compute_with_storage_grid_size
    size = box.grid_size()
    if shards.num_cores() != box.size() or spec.physical_shape[0] != program.block_h * TILE:
        return None
    if shards.orientation is ShardOrientation.ROW_MAJOR:
        return size.x if 1 < size.x <= grid.x and size.y > 1 else None
    return size.y if size.x > 1 and size.y == grid.y else None
