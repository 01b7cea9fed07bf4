"""The matmul program that the library selects when the caller passes none.

The selection depends on shapes, sharding, the core grid and free L1. It determines which calls are refused, the blocks
of the inner dimension and the L1 use. The heuristics are the library's own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from ttnn_emulator.api.config_types import UnaryWithParam
from ttnn_emulator.enums import BufferType, ShardOrientation, TensorMemoryLayout
from ttnn_emulator.errors import require
from ttnn_emulator.hardware.core_grid import CoreRangeSet
from ttnn_emulator.ops.matmul.operands import Operands, height_of
from ttnn_emulator.ops.matmul.program_configs import BLOCKED, MULTI_CORE, Kind, Program
from ttnn_emulator.ops.matmul.selection_inputs import (
    BLOCK,
    HEIGHT,
    INTERLEAVED,
    WIDTH,
    Choice,
    is_narrow,
    shard_of,
    tall_subblock,
    wide_subblock,
)
from ttnn_emulator.tensors.memory_config import ShardSpec
from ttnn_emulator.tensors.shapes import TILE_SIZE, div_up


# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/matmul/device/config/matmul_program_config.cpp,
# generate_matmul_program_config
def choose(choice: Choice) -> Program:
    """The selected program, validated as the library validates its own selection."""
    of = choice.operands
    if of.a.is_sharded:
        program = _from_shards(choice)
    elif choice.core_grid is not None:
        program = _on_grid(choice, choice.activation)
    else:
        program = _plain(choice)
    if program.kind in BLOCKED:
        _require_sound(program, choice.device_grid)
    return program


def _require_sound(program: Program, device_grid: tuple[int, int]) -> None:
    columns, rows = program.grid
    require(
        0 < columns <= device_grid[0] and 0 < rows <= device_grid[1],
        f"a grid of {columns} x {rows} cores does not fit on the device's {device_grid[0]} x {device_grid[1]}",
    )
    for name in ("in0_block_w", "out_subblock_h", "out_subblock_w", "per_core_M", "per_core_N"):
        require(getattr(program, name) > 0, f"the program for these operands would have {name} = 0")
    require(
        program.per_core_M % program.out_subblock_h == 0 and program.per_core_N % program.out_subblock_w == 0,
        f"{program.per_core_M} x {program.per_core_N} tiles per core do not divide into subblocks of "
        f"{program.out_subblock_h} x {program.out_subblock_w}",
    )


# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/matmul/device/config/matmul_program_config.cpp,
# create_simple_matmul_program_config
def _plain(choice: Choice, grid: tuple[int, int] | None = None) -> Program:
    """Select without a core grid and with an interleaved first operand."""
    of, output = choice.operands, choice.memory_config
    columns, rows = grid or choice.device_grid
    memories = _Memories.of(choice)
    per_core = next((factor for factor in (16, 8, 4, 2) if choice.fits(factor, factor, 2)), 1)
    down, across = div_up(of.rows(), per_core), div_up(of.columns, per_core)
    in0_block_w = 2
    if (output.is_sharded() or down > 1 or across > 1) and of.inner % 2 != 0:
        in0_block_w = 1
    if not memories.dram_interleaved and (across * down > columns * rows or of.inner % in0_block_w != 0):
        return MULTI_CORE

    spread = (0, 0)  # columns and rows of cores with one block each; zeros if a single core computes everything
    if (down, across) != (1, 1) and down <= rows and across <= columns:
        spread = (across, down)
    on_row, on_column = _on_one_line(choice)
    in_one_dimension = _plain_in_one_dimension(choice, memories, spread, on_row, on_column)
    if in_one_dimension is not None:
        return in_one_dimension
    blocks_asked = output.memory_layout is BLOCK and not on_row and not on_column
    if spread[1] == 0 and not (memories.dram_interleaved or blocks_asked):
        return MULTI_CORE
    return _plain_in_two_dimensions(choice, memories, (columns, rows), per_core, in0_block_w)


@dataclass(frozen=True)
class _Memories:
    """Memory layouts of both operands and the output."""

    interleaved: bool
    all_dram: bool

    @classmethod
    def of(cls, choice: Choice) -> _Memories:
        of = choice.operands
        configs = (of.a.memory_config, of.b.memory_config, choice.memory_config)
        return cls(
            interleaved=all(config.memory_layout is INTERLEAVED for config in configs),
            all_dram=all(config.buffer_type is BufferType.DRAM for config in configs),
        )

    @property
    def dram_interleaved(self) -> bool:
        return self.all_dram and self.interleaved


def _on_one_line(choice: Choice) -> tuple[bool, bool]:
    """Whether a block-sharded output is on a single row of cores, and on a single column."""
    output = choice.memory_config
    if output.memory_layout is not BLOCK or output.shard_spec is None:
        return False, False
    box = output.shard_spec.grid.bounding_box().grid_size()
    on_row, on_column = box.y == 1 and box.x > 1, box.x == 1 and box.y > 1
    require(
        not (on_row or on_column) or choice.operands.batch_b == 1,
        "an output block-sharded on one row or column of cores does not support batches of the second operand",
    )
    return on_row, on_column


def _plain_in_one_dimension(
    choice: Choice, memories: _Memories, spread: tuple[int, int], on_row: bool, on_column: bool
) -> Program | None:
    """The 1D multicast program, if a narrow product or the output's shards require it."""
    of, output = choice.operands, choice.memory_config
    height, width = of.a_padded[-2], of.b_padded[-1]
    narrow = memories.interleaved and is_narrow(height, width, memories.all_dram)
    reuse_a = memories.interleaved and of.batch_a == 1 and of.batch_b > 1
    unspread = spread[1] == 0 and output.is_sharded()
    mcast_in0 = (narrow and width > height and not reuse_a) or (unspread and (output.memory_layout is WIDTH or on_row))
    mcast_in1 = (narrow and width <= height) or reuse_a or (unspread and (output.memory_layout is HEIGHT or on_column))
    one_row, one_column = (not memories.dram_interleaved and size == 1 for size in (spread[1], spread[0]))
    if (one_row and not reuse_a) or mcast_in0:
        return _one_dimensional(choice, mcast_in0=True, shard=output.shard_spec if on_row else None)
    if one_column or mcast_in1:
        return _one_dimensional(choice, mcast_in0=False, shard=output.shard_spec if on_column else None)
    return None


def _plain_in_two_dimensions(
    choice: Choice, memories: _Memories, grid: tuple[int, int], per_core: int, in0_block_w: int
) -> Program:
    """The 2D multicast program: in0 is multicast along rows of cores, in1 along columns."""
    of, output = choice.operands, choice.memory_config
    columns, rows = grid
    transpose_mcast = of.a.memory_config.memory_layout is BLOCK and _is_column_major(of)
    if memories.dram_interleaved:
        along, beside = (rows, columns) if not transpose_mcast else (columns, rows)
        per_core_M, per_core_N = div_up(of.rows(), along), div_up(of.columns, beside)
        inner = of.inner // beside if of.inner % columns == 0 else 1
        out_h, out_w, in0_block_w = choice.out_block(per_core_M, per_core_N, inner, shrink_inner=True)
    else:
        out_h, out_w = per_core_M, per_core_N = min(per_core, of.rows()), min(per_core, of.columns)
    subblock = tall_subblock(out_h, out_w, choice.fp32_acc, one_row=output.is_sharded())
    return Program(
        Kind.MCAST_2D,
        grid,
        in0_block_w,
        *subblock,
        *(out_h, out_w),
        *(per_core_M, per_core_N),
        transpose_mcast=transpose_mcast,
        fuse_batch=output.is_sharded() and of.batch_b == 1,
    )


def _is_column_major(of: Operands) -> bool:
    return shard_of(of.a.memory_config).orientation is ShardOrientation.COL_MAJOR


# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/matmul/device/config/matmul_program_config.cpp, get_mcast_1d_config
def _one_dimensional(choice: Choice, *, mcast_in0: bool, shard: ShardSpec | None) -> Program:
    """The 1D multicast program: one operand is multicast to all cores, the other is distributed over them."""
    of = choice.operands
    columns, rows = choice.device_grid
    fuse_batch = shard is not None and of.batch_b == 1
    height, width = (math.prod(of.a_padded[:-1]) if fuse_batch else of.a_padded[-2]), of.b_padded[-1]
    tile_h, tile_w = of.in0_tile.height, of.in1_tile.width
    if shard is not None:
        require(
            shard.shape[0] % tile_h == 0 and shard.shape[1] % tile_w == 0,
            f"output shards of {list(shard.shape)} are not whole tiles of {tile_h} x {tile_w}",
        )
        per_core_M, per_core_N = shard.shape[0] // tile_h, shard.shape[1] // tile_w
        box = shard.grid.bounding_box().grid_size()
        require(box.x * box.y == shard.num_cores(), f"the output's shard grid {shard.grid} has gaps")
        columns, rows = box.x, box.y
    elif mcast_in0:
        per_core_M, per_core_N = height // tile_h, div_up(div_up(width, columns * rows), tile_w)
    else:
        per_core_M, per_core_N = div_up(div_up(height, columns * rows), tile_h), width // tile_w
    inner = 2 if of.inner % 2 == 0 else 1
    out_h, out_w, _ = choice.out_block(per_core_M, per_core_N, inner)
    subblock = tall_subblock(out_h, out_w, choice.fp32_acc)
    return Program(
        Kind.MCAST_1D,
        (columns, rows),
        inner,
        *subblock,
        *(out_h, out_w),
        *(per_core_M, per_core_N),
        fuse_batch=fuse_batch,
        mcast_in0=mcast_in0,
    )


# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/matmul/device/config/matmul_program_config.cpp,
# create_matmul_program_config
def _on_grid(choice: Choice, fused: UnaryWithParam | None) -> Program:
    """Select for a core grid from the user, or for a sharded first operand in the general case."""
    of = choice.operands
    require(
        of.a_shape[-1] == height_of(of.b_shape),
        f"the inner dimensions {of.a_shape[-1]} and {height_of(of.b_shape)} do not match",
    )
    inner, height, width = of.a_padded[-1], of.a_padded[-2], of.b_padded[-1]
    all_rows = of.batch_a * height
    require(
        all_rows % TILE_SIZE == 0 and inner % TILE_SIZE == 0 and width % TILE_SIZE == 0,
        f"sizes {all_rows} x {inner} x {width} must be multiples of {TILE_SIZE}",
    )
    grid = choice.device_grid
    if choice.core_grid is not None and all(ours <= theirs for ours, theirs in zip(choice.core_grid, grid)):
        grid = choice.core_grid
    if of.batch_b > 1:
        return _batched_on_grid(choice, grid, fused)
    by_block = of.a.memory_config.memory_layout is BLOCK
    within_tile = min(inner, height, width) <= TILE_SIZE
    if not by_block and (of.a.is_sharded or is_narrow(all_rows, width, False) or within_tile):
        return _systolic(choice, grid, fused)
    if not of.a.is_sharded:
        rows = math.ceil(all_rows / TILE_SIZE / grid[1])
        columns = math.ceil(width / TILE_SIZE / grid[0])
        step = next(k for k in (4, 3, 2, 1) if (inner // TILE_SIZE) % k == 0)
    else:
        shard = shard_of(of.a.memory_config).shape
        tiles = inner // TILE_SIZE
        rows = shard[0] // TILE_SIZE
        columns = (width // TILE_SIZE * shard[1]) // (tiles * TILE_SIZE)
        step = math.gcd(shard[1] // TILE_SIZE, tiles)
    columns = max(columns, 1)
    out_h, out_w, _ = choice.out_block(rows, columns, step)
    sub_h, sub_w = wide_subblock(out_h, out_w, choice.fp32_acc)
    return Program(
        Kind.MCAST_2D,
        grid,
        step,
        *(sub_h if sub_w == columns else 1, sub_w),
        *(out_h, out_w),
        *(rows, columns),
        transpose_mcast=by_block and _is_column_major(of),
        fuse_batch=True,
        fused_activation=fused,
    )


def _batched_on_grid(choice: Choice, grid: tuple[int, int], fused: UnaryWithParam | None) -> Program:
    of = choice.operands
    require(fused is None, "an activation cannot be fused when the second operand has batches")
    rows, columns, step = div_up(of.a_padded[-2], TILE_SIZE), div_up(of.b_padded[-1], TILE_SIZE), 1
    if of.a.is_sharded:
        require(of.a.memory_config.memory_layout is not WIDTH, "the first operand must not be width sharded here")
        shard = shard_of(of.a.memory_config).shape
        rows, columns, step = shard[0] // TILE_SIZE, of.b_shape[-1] // TILE_SIZE, shard[1] // TILE_SIZE
    elif of.b.is_sharded:
        require(of.b.memory_config.memory_layout is not WIDTH, "the second operand must not be width sharded here")
        columns = shard_of(of.b.memory_config).shape[1] // TILE_SIZE
    elif not choice.fits(rows, columns, step):
        return _plain(choice, grid)
    sub_h, sub_w = wide_subblock(rows, columns, choice.fp32_acc)
    return Program(Kind.REUSE, grid, step, sub_h, sub_w, per_core_M=rows, per_core_N=columns)


# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/matmul/device/config/matmul_program_config.cpp,
# create_matmul_1d_systolic_array_program_config
def _systolic(choice: Choice, grid: tuple[int, int], fused: UnaryWithParam | None) -> Program:
    """1D multicast over all cores as a line."""
    of = choice.operands
    require(of.batch_b == 1, "the second operand cannot have batches when all cores form a line")
    rows, inner, columns = (
        of.batch_a * of.a_padded[-2] // TILE_SIZE,
        of.a_padded[-1] // TILE_SIZE,
        of.b_padded[-1] // TILE_SIZE,
    )
    cores = grid[0] * grid[1]
    layout = of.a.memory_config.memory_layout
    tall = layout is HEIGHT or (layout is not WIDTH and rows > columns)
    step = div_up(inner, cores)
    while inner % step:
        step -= 1
    rows, columns = (div_up(rows, cores), columns) if tall else (rows, div_up(columns, cores))
    out_h, out_w, _ = choice.out_block(rows, columns, step)
    subblock = wide_subblock(out_h, out_w, choice.fp32_acc)
    return Program(
        Kind.MCAST_1D,
        grid,
        step,
        *subblock,
        *(out_h, out_w),
        *(rows, columns),
        fuse_batch=True,
        fused_activation=fused,
        mcast_in0=not tall,
    )


# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/matmul/device/config/matmul_program_config.cpp, get_matmul_program_config
def _from_shards(choice: Choice) -> Program:
    """Select from the shards of the first operand."""
    of, output = choice.operands, choice.memory_config
    shard = shard_of(of.a.memory_config)
    layout = of.a.memory_config.memory_layout
    if output.is_sharded() and (choice.batched or layout in (HEIGHT, WIDTH) or _is_real_block(layout, shard)):
        require(
            of.a.memory_config.buffer_type is output.buffer_type and layout is output.memory_layout,
            f"the output in {output.brief()} must be sharded as the first operand in {of.a.memory_config.brief()}",
        )
    if choice.batched:
        return _batched_shards(choice, shard)
    require(
        of.b.memory_config.memory_layout is INTERLEAVED,
        f"the second operand must be interleaved, it is {of.b.memory_config.memory_layout}",
    )
    box = shard.grid.bounding_box()
    grid = (box.grid_size().x, box.grid_size().y)
    shard_h, shard_w = shard.shape[0] // of.in0_tile.height, shard.shape[1] // of.in0_tile.width
    if layout in (HEIGHT, WIDTH):
        require(shard.orientation is ShardOrientation.ROW_MAJOR, "the first operand's shards must be ROW_MAJOR")
        if layout is WIDTH:
            rows, columns = of.rows(fused=True), div_up(of.columns, shard.num_cores())
            step = math.gcd(shard_w, of.inner)
        else:
            rows, columns, step = shard_h, of.columns, of.inner
        out_h, out_w, _ = choice.out_block(rows, columns, step)
        if output.is_sharded() and out_w != columns:
            out_h = 1
        subblock = tall_subblock(out_h, out_w, choice.fp32_acc, one_row=output.is_sharded())
        return Program(
            Kind.MCAST_1D,
            grid,
            step,
            *subblock,
            *(out_h, out_w),
            *(rows, columns),
            fuse_batch=True,
            mcast_in0=layout is WIDTH,
            allowed_worker_cores=CoreRangeSet([box]),
        )
    if not _is_real_block(layout, shard):
        return _on_grid(choice, None)
    transpose_mcast = shard.orientation is ShardOrientation.COL_MAJOR
    across, down = grid if not transpose_mcast else (grid[1], grid[0])
    rows, inner = of.rows(fused=True), of.inner
    require(
        down in (rows // shard_h, div_up(rows, shard_h)) and across in (inner // shard_w, div_up(inner, shard_w)),
        f"{rows} x {inner} tiles in shards of {shard_h} x {shard_w} do not fill {down} x {across} cores",
    )
    step = math.gcd(shard_w, inner) if across == inner // shard_w else 1
    rows, columns = div_up(rows, down), div_up(of.columns, across)
    out_h, out_w, _ = choice.out_block(rows, columns, step)
    subblock = tall_subblock(out_h, out_w, choice.fp32_acc, one_row=output.is_sharded())
    return Program(
        Kind.MCAST_2D,
        grid,
        step,
        *subblock,
        *(out_h, out_w),
        *(rows, columns),
        transpose_mcast=transpose_mcast,
        fuse_batch=True,
    )


def _is_real_block(layout: TensorMemoryLayout, shard: ShardSpec) -> bool:
    box = shard.grid.bounding_box().grid_size()
    return layout is BLOCK and box.x > 1 and box.y > 1


def _batched_shards(choice: Choice, shard: ShardSpec) -> Program:
    of = choice.operands
    require(of.a.memory_config.memory_layout is not WIDTH, "the first operand must not be width sharded here")
    box = shard.grid.bounding_box().grid_size()
    rows, step = shard.shape[0] // of.in0_tile.height, shard.shape[1] // of.in0_tile.width
    sub_h, sub_w = tall_subblock(rows, of.columns, choice.fp32_acc, one_row=choice.memory_config.is_sharded())
    require(not (of.batch_a > 1 and of.batch_b == 1), "the second operand is not broadcast over sharded batches")
    if of.b.is_sharded:
        theirs = shard_of(of.b.memory_config)
        require(
            of.a.memory_config.buffer_type is of.b.memory_config.buffer_type
            and of.a.memory_config.memory_layout is of.b.memory_config.memory_layout
            and shard.grid == theirs.grid
            and shard.orientation is theirs.orientation,
            f"operands in {of.a.memory_config.brief()} and {of.b.memory_config.brief()} must be sharded alike",
        )
    return Program(Kind.REUSE, (box.x, box.y), step, sub_h, sub_w, per_core_M=rows, per_core_N=of.columns)
