"""Argument checks that belong to a single kind of matmul program."""

from __future__ import annotations

import math

from ttnn_emulator.enums import (
    BufferType,
    ShardOrientation,
    TensorMemoryLayout,
)
from ttnn_emulator.errors import require
from ttnn_emulator.ops.matmul.operands import Operands
from ttnn_emulator.ops.matmul.program_configs import MULTICAST, Kind, Program
from ttnn_emulator.ops.matmul.selection_inputs import BLOCK, HEIGHT, INTERLEAVED, WIDTH
from ttnn_emulator.ops.matmul.shard_placement import (
    require_alike,
    require_grids_on_device,
    require_row_major,
    shard_of,
    shard_tiles,
)
from ttnn_emulator.tensors.memory_config import MemoryConfig
from ttnn_emulator.tensors.shapes import TILE_SIZE, div_up
from ttnn_emulator.tensors.spec import Spec


def _require_whole_rows(program: Program) -> None:
    """A sharded output is written in full rows of the core's tiles."""
    width = program.per_core_N
    require(
        program.out_subblock_w == width or program.out_subblock_h == 1,
        f"for a sharded output, out_subblock_w {program.out_subblock_w} must be per_core_N {width}, "
        "or out_subblock_h 1",
    )
    if program.kind in MULTICAST:
        require(
            program.out_block_w == width or program.out_block_h == 1,
            f"for a sharded output, out_block_w {program.out_block_w} must be per_core_N {width}, or out_block_h 1",
        )


def _multi_core(of: Operands, program: Program, output: MemoryConfig, bias: Spec | None, device_grid: object) -> None:
    require(
        of.in0_tile.height == TILE_SIZE and of.in1_tile.width == TILE_SIZE,
        "the plain program takes only tiles of 32 x 32",
    )
    for name, config in (("first", of.a.memory_config), ("second", of.b.memory_config)):
        require(config.memory_layout is INTERLEAVED, f"the plain program needs the {name} operand interleaved")
    require(output.memory_layout is INTERLEAVED, "the plain program needs an interleaved output")
    require(bias is None, "the plain program adds no bias")


def _dram_sharded(of: Operands, program: Program, output: MemoryConfig, bias: Spec | None, device_grid: object) -> None:
    a = of.a
    require(of.in0_tile.height >= 16, f"tiles {of.in0_tile.height} high are not supported with DRAM-sharded weights")
    require(
        a.memory_config.memory_layout is WIDTH and output.is_sharded(),
        "DRAM-sharded weights need a width-sharded input",
    )
    require_alike(a, output)
    require_row_major(a)
    shard_h, shard_w = shard_tiles(a, of.in0_tile)
    rows = of.rows()
    require(rows == program.per_core_M == shard_h == 1, f"DRAM-sharded weights take one row of tiles, not {rows}")
    block = program.in0_block_w
    require(
        of.inner % block == 0 and (shard_w % block == 0 or block % shard_w == 0),
        f"shards {shard_w} tiles wide, of {of.inner}, do not divide into blocks of {block}",
    )
    require(of.b.memory_config.memory_layout is WIDTH, "the second operand must be width sharded")


def _batched_dram_sharded(
    of: Operands, program: Program, output: MemoryConfig, bias: Spec | None, device_grid: object
) -> None:
    require(
        of.a.memory_config.memory_layout is HEIGHT and output.is_sharded(),
        "batched DRAM-sharded weights need a height-sharded input and a sharded output",
    )
    require_alike(of.a, output)
    require_row_major(of.a)
    require(
        of.inner % program.in0_block_w == 0,
        f"{of.inner} tiles do not divide into blocks of in0_block_w = {program.in0_block_w}",
    )
    require(of.b.memory_config.memory_layout is HEIGHT, "the second operand must be height sharded")
    for name, given, whole in (("M", program.per_core_M, of.rows()), ("N", program.per_core_N, of.columns)):
        require(given == whole, f"every core makes whole products: per_core_{name} is {given}, it must be {whole}")


def _mcast_2d(
    of: Operands, program: Program, output: MemoryConfig, bias: Spec | None, device_grid: tuple[int, int]
) -> None:
    require_grids_on_device(of, device_grid)
    if of.a.is_sharded:
        _mcast_2d_in0(of, program, output)
    if of.b.is_sharded:
        _mcast_2d_in1(of, program)
    if output.is_sharded():
        require(output.memory_layout is BLOCK, f"the output must be block sharded, it is {output.memory_layout}")
        require(program.fuse_batch or of.batch_a == 1, "a block-sharded output needs fuse_batch")
        _require_whole_rows(program)


def _mcast_2d_in0(of: Operands, program: Program, output: MemoryConfig) -> None:
    require(program.fuse_batch, "a sharded first operand needs fuse_batch")
    shard, layout = shard_of(of.a), of.a.memory_config.memory_layout
    shard_h, shard_w = shard_tiles(of.a, of.in0_tile)
    require(layout in (BLOCK, HEIGHT), f"the first operand cannot be {layout}")
    if layout is BLOCK:
        wanted = ShardOrientation.COL_MAJOR if program.transpose_mcast else ShardOrientation.ROW_MAJOR
        require(shard.orientation is wanted, f"the first operand's shards must be {wanted}, not {shard.orientation}")
        if output.is_sharded():
            require_alike(of.a, output)
    else:
        require(not program.transpose_mcast, "transpose_mcast needs a block-sharded first operand")
        require(
            of.inner == program.in0_block_w == shard_w,
            f"in0_block_w {program.in0_block_w} must be the whole inner dimension, {of.inner} tiles",
        )
        box = shard.grid.bounding_box()
        require(box.start.x == box.end.x, f"a height-sharded first operand must be on one column of cores, not {box}")
    require(program.per_core_M == shard_h, f"per_core_M {program.per_core_M} must be the shard's {shard_h} tiles")
    require(
        shard_w % program.in0_block_w == 0,
        f"shards {shard_w} tiles wide do not divide into blocks of {program.in0_block_w}",
    )


def _mcast_2d_in1(of: Operands, program: Program) -> None:
    config = of.b.memory_config
    layout, in_dram = config.memory_layout, config.buffer_type is BufferType.DRAM
    require(not program.transpose_mcast, "transpose_mcast does not support a sharded second operand")
    require(
        layout in (WIDTH, HEIGHT) or (layout is TensorMemoryLayout.ND_SHARDED and in_dram),
        f"the second operand cannot be {layout}",
    )
    if layout is HEIGHT:
        require(in_dram, "a height-sharded second operand must be in DRAM")
        require(not program.fuse_batch, "a height-sharded second operand does not support fuse_batch")
        shard_h, shard_w = shard_tiles(of.b, of.in1_tile)
        require(shard_w == of.columns, f"its shards must be {of.columns} tiles wide, not {shard_w}")
        require(
            shard_h >= of.inner and shard_h % of.inner == 0,
            f"its shards, {shard_h} tiles high, must hold whole matrices of {of.inner}",
        )
        held = shard_h // of.inner * shard_of(of.b).num_cores()
        require(held >= of.batch_b, f"its shards hold {held} of {of.batch_b} matrices")
    if not in_dram:
        require(
            of.a.memory_config.memory_layout in (HEIGHT, INTERLEAVED),
            "a width-sharded second operand in L1 needs the first one interleaved or height sharded",
        )
        shard_w = shard_tiles(of.b, of.in1_tile)[1]
        require(program.per_core_N == shard_w, f"per_core_N {program.per_core_N} must be the shard's {shard_w} tiles")
    if layout is WIDTH:
        box = shard_of(of.b).grid.bounding_box()
        require(box.start.y == box.end.y, f"a width-sharded second operand must be on one row of cores, not {box}")


def _reuse(
    of: Operands, program: Program, output: MemoryConfig, bias: Spec | None, device_grid: tuple[int, int]
) -> None:
    rows, all_rows, columns, inner = of.rows(), of.rows(fused=True), of.columns, of.a_padded[-1]
    height = program.per_core_M
    if height > rows:
        require(
            height % rows == 0 and all_rows % height == 0,
            f"per_core_M {height} must be a multiple of {rows} rows of tiles and divide {all_rows}",
        )
    else:
        require(rows % height == 0, f"per_core_M {height} must divide {rows} rows of tiles")
    require(columns == program.per_core_N, f"per_core_N {program.per_core_N} must be all {columns} columns of tiles")
    if of.a.is_sharded:
        _reuse_in0(of, program, output, inner)
    require(not (of.batch_a > 1 and of.batch_b == 1), "the second operand is not broadcast over batches here")
    if of.batch_a > 1 and of.batch_b > 1:
        require(
            rows % program.out_subblock_h == 0,
            f"out_subblock_h {program.out_subblock_h} must divide {rows} rows of tiles",
        )
    if of.b.is_sharded:
        shard = shard_of(of.b).shape
        require(height % rows == 0, f"per_core_M {height} must hold whole matrices of {rows} rows of tiles")
        require(of.b.memory_config.memory_layout is not WIDTH, "the second operand must not be width sharded")
        require(
            shard[1] == of.b_padded[-1] == program.per_core_N * of.in1_tile.width and shard[0] % inner == 0,
            f"the second operand's shards {list(shard)} must hold whole matrices of {inner} x {of.b_padded[-1]}",
        )
    if output.is_sharded():
        require(output.memory_layout is not WIDTH, "the output must not be width sharded")
        _require_whole_rows(program)
    _require_work_for_all(of, program, output)


def _reuse_in0(of: Operands, program: Program, output: MemoryConfig, inner: int) -> None:
    a, shard = of.a, shard_of(of.a)
    require(a.memory_config.memory_layout is not WIDTH, "the first operand must not be width sharded")
    require(
        inner == shard.shape[1] == program.in0_block_w * of.in0_tile.width,
        f"in0_block_w {program.in0_block_w} and the shard's width {shard.shape[1]} must be the inner dimension {inner}",
    )
    require(
        program.per_core_M * of.in0_tile.height == shard.shape[0],
        f"per_core_M {program.per_core_M} must be the shard's {shard.shape[0] // of.in0_tile.height} tiles",
    )
    if of.b.is_sharded:
        theirs = shard_of(of.b)
        require(
            a.memory_config.buffer_type is of.b.memory_config.buffer_type
            and a.memory_config.memory_layout is of.b.memory_config.memory_layout
            and shard.grid == theirs.grid
            and shard.orientation is theirs.orientation,
            f"operands in {a.memory_config.brief()} and {of.b.memory_config.brief()} must be sharded alike",
        )
    if output.is_sharded():
        require_alike(a, output)


def _require_work_for_all(of: Operands, program: Program, output: MemoryConfig) -> None:
    rows = of.batch_a * of.rows()
    require(rows % program.per_core_M == 0, f"{rows} rows of tiles do not divide by per_core_M {program.per_core_M}")
    blocks = (rows // program.per_core_M) * (of.columns // program.per_core_N)
    require(blocks > 0, "there are no output blocks")
    shard = of.a.shard_spec if of.a.is_sharded else of.b.shard_spec if of.b.is_sharded else None
    if shard is None and output.is_sharded() and output.buffer_type is not BufferType.DRAM:
        shard = output.shard_spec
    cores = shard.num_cores() if shard is not None else min(math.prod(program.grid), blocks)
    require(blocks >= cores, f"{blocks} output blocks leave some of {cores} cores without work")


def _mcast_1d(
    of: Operands, program: Program, output: MemoryConfig, bias: Spec | None, device_grid: tuple[int, int]
) -> None:
    require(not (program.mcast_in0 and program.gather_in0), "mcast_in0 and gather_in0 exclude each other")
    require(program.gather_in0 or not program.stream_in1, "stream_in1 needs gather_in0")
    if program.gather_in0:
        _gather_in0(of, program, output, bias)
    else:
        require_grids_on_device(of, device_grid)
    if program.mcast_in0 or program.gather_in0:
        _mcast_in0(of, program, output, bias)
    else:
        _mcast_in1(of, program, output)


def _gather_in0(of: Operands, program: Program, output: MemoryConfig, bias: Spec | None) -> None:
    b, delivery = of.b.memory_config, program.delivery
    require(program.num_global_cb_receivers > 0, "there must be at least one receiver")
    require(
        delivery is not None or program.num_global_cb_receivers == 1,
        "without a global circular buffer there is one receiver",
    )
    require(of.a.memory_config.memory_layout is WIDTH, "gather_in0 needs a width-sharded first operand")
    in_dram = b.buffer_type is BufferType.DRAM
    require(
        b.memory_layout is WIDTH or (in_dram and (b.memory_layout is INTERLEAVED or delivery is not None)),
        "gather_in0 needs the second operand width sharded, or interleaved in DRAM",
    )
    if of.b.is_sharded and not in_dram and delivery is None:
        require(shard_of(of.a).grid == shard_of(of.b).grid, "gather_in0 needs both operands on the same cores")
    require(output.shard_spec is not None, "gather_in0 needs the output's shard spec")
    assert output.shard_spec is not None
    if not of.b.is_sharded:
        require(delivery is None, "an interleaved weight does not come through a global circular buffer")
        require(shard_of(of.a).grid == output.shard_spec.grid, "gather_in0 needs input and output on the same cores")
    require(bias is None, "gather_in0 adds no bias")
    tiles = output.shard_spec.shape[0] * output.shard_spec.shape[1] // (of.in0_tile.height * of.in1_tile.width)
    made = program.per_core_M * program.per_core_N
    require(made <= tiles, f"{made} tiles per core do not fit the output's shards of {tiles}")


def _mcast_in0(of: Operands, program: Program, output: MemoryConfig, bias: Spec | None) -> None:
    rows = of.rows(program.fuse_batch)
    if of.a.is_sharded:
        require(program.fuse_batch, "a sharded first operand needs fuse_batch")
        require(of.a.memory_config.memory_layout is WIDTH, "the first operand must be width sharded")
        if output.is_sharded():
            require_alike(of.a, output)
        require_row_major(of.a)
        shard_h, shard_w = shard_tiles(of.a, of.in0_tile)
        require(
            rows == program.per_core_M == shard_h,
            f"per_core_M {program.per_core_M} must be {rows}, as the shard's height",
        )
        require(
            program.gather_in0 or shard_w % program.in0_block_w == 0,
            f"shards {shard_w} tiles wide do not divide into blocks of {program.in0_block_w}",
        )
    if output.is_sharded():
        require(
            output.memory_layout is WIDTH or _on_one_row(output),
            f"the output must be width sharded, it is {output.memory_layout}",
        )
        require(rows == program.per_core_M, f"per_core_M {program.per_core_M} must be all {rows} rows of tiles")
        _require_whole_rows(program)
    if of.b.is_sharded and of.b.memory_config.buffer_type is BufferType.L1:
        require(of.b.memory_config.memory_layout is WIDTH, "a second operand in L1 shards must be width sharded")
        shard_w = shard_tiles(of.b, of.in1_tile)[1]
        require(program.per_core_N == shard_w, f"per_core_N {program.per_core_N} must be the shard's {shard_w} tiles")
        if bias is not None:
            require(
                shard_of(bias).shape[1] == shard_of(of.b).shape[1], "the bias must be sharded as the second operand"
            )


def _mcast_in1(of: Operands, program: Program, output: MemoryConfig) -> None:
    if of.a.is_sharded:
        require(program.fuse_batch, "a sharded first operand needs fuse_batch")
        require(of.a.memory_config.memory_layout is HEIGHT, "the first operand must be height sharded")
        if output.is_sharded():
            require_alike(of.a, output)
        require_row_major(of.a)
        shard_h, shard_w = shard_tiles(of.a, of.in0_tile)
        blocks = div_up(of.rows(program.fuse_batch), program.per_core_M)
        require(blocks <= shard_of(of.a).num_cores(), f"{blocks} blocks exceed the first operand's cores")
        require(program.per_core_M == shard_h, f"per_core_M {program.per_core_M} must be the shard's {shard_h} tiles")
        require(of.inner == shard_w, f"the shards must hold the whole inner dimension, {of.inner} tiles")
    if output.is_sharded():
        require(
            output.memory_layout is HEIGHT or _on_one_column(output),
            f"the output must be height sharded, it is {output.memory_layout}",
        )
        require(of.columns == program.per_core_N, f"per_core_N {program.per_core_N} must be all {of.columns} tiles")
        _require_whole_rows(program)
    require(of.b.memory_config.memory_layout is INTERLEAVED, "the second operand must be interleaved")


def _on_one_row(config: MemoryConfig) -> bool:
    """Block sharding on a single row of cores is width sharding."""
    if config.memory_layout is not BLOCK or config.shard_spec is None:
        return False
    return config.shard_spec.grid.bounding_box().grid_size().y == 1


def _on_one_column(config: MemoryConfig) -> bool:
    if config.memory_layout is not BLOCK or config.shard_spec is None:
        return False
    return config.shard_spec.grid.bounding_box().grid_size().x == 1


# Kind of program → its own checks: (operands, program, output, bias, grid of the device).
PARTICULAR = {
    Kind.MULTI_CORE: _multi_core,
    Kind.REUSE: _reuse,
    Kind.MCAST_2D: _mcast_2d,
    Kind.MCAST_1D: _mcast_1d,
    Kind.DRAM_SHARDED: _dram_sharded,
    Kind.BATCHED_DRAM_SHARDED: _batched_dram_sharded,
}
