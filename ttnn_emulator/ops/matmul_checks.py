"""What a matmul refuses, once its program is known."""

from __future__ import annotations

import math

from ttnn_emulator.enums import (
    BLOCK_FLOAT_DTYPES,
    FLOAT_DTYPES,
    BufferType,
    DataType,
    ShardOrientation,
    TensorMemoryLayout,
)
from ttnn_emulator.errors import ChipFault, NotEmulated, require
from ttnn_emulator.grid import CoreCoord, CoreRange
from ttnn_emulator.memory_config import MemoryConfig, ShardSpec
from ttnn_emulator.ops.matmul_configs import BLOCKED, MULTICAST, Kind, Program
from ttnn_emulator.ops.matmul_operands import Operands, batch_of, height_of
from ttnn_emulator.ops.matmul_selection import BLOCK, HEIGHT, INTERLEAVED, WIDTH
from ttnn_emulator.shapes import TILE_SIZE, Tile, div_up
from ttnn_emulator.spec import Spec

DEST_TILES = 16  # 32 × 32 tiles of 16-bit values in the whole destination register


def require_operands(of: Operands) -> None:
    """What does not depend on the program."""
    a, b = of.a, of.b
    require(a.on_device and b.on_device, "the operands must be on a device")
    require(a.is_tile and b.is_tile, f"the operands must be in TILE layout, they are in {a.layout} and {b.layout}")
    require(
        of.in0_tile.width == TILE_SIZE and of.in1_tile.height == TILE_SIZE,
        f"tiles must be {TILE_SIZE} along the inner dimension, "
        f"they are {of.in0_tile.width} in in0 and {of.in1_tile.height} in in1",
    )
    require(a.dtype in FLOAT_DTYPES and b.dtype in FLOAT_DTYPES, f"cannot multiply {a.dtype} with {b.dtype}")
    require(len(of.b_shape) >= 2, f"the second operand's rank is {len(of.b_shape)}, it must be at least 2")
    require(
        0 < of.a_shape[-1] == of.b_shape[-2],
        f"the first operand's width {of.a_shape[-1]} must be the second one's height {of.b_shape[-2]}",
    )
    require(of.b_shape[-1] > 0 and height_of(of.a_shape) > 0, "the product would be empty")
    inner = of.b_padded[-2] // of.in1_tile.height
    require(0 < of.inner == inner, f"the inner dimension is {of.inner} tiles in in0 and {inner} in in1")
    for spec, size in ((a, of.in0_tile.height), (b, of.in1_tile.width)):
        require(
            spec.dtype is not DataType.BFLOAT4_B or size >= 4, f"bfloat4_b takes no tiles of {size} rows or columns"
        )


def require_program(
    of: Operands,
    program: Program,
    output: MemoryConfig,
    bias: Spec | None,
    *,
    broadcasts: bool,
    dest_tiles: int,
    device_grid: tuple[int, int],
    dtype: DataType,
) -> None:
    """Refuse what the program cannot do with these operands; checks shared by several kinds first."""
    _require_tiny_tiles(of, program)
    _require_sizes(of, program, dest_tiles, device_grid)
    if program.kind is Kind.REUSE:
        _require_grids_on_device(of, device_grid)
        _require_even_blocks(of, program)
    _require_work(of, program, output, device_grid)
    _require_batches(of, program, broadcasts)
    if bias is not None:
        _require_bias(of, program, bias)
    if program.kind in BLOCKED and not program.gather_in0:
        _require_shards_in_l1(of, program, output)
    if program.untilize_out:
        require(dtype in (DataType.BFLOAT16, DataType.FLOAT32), f"untilize_out gives no {dtype}")
    if program.kind in MULTICAST and program.fuse_batch:
        require(of.batch_b == 1, "fuse_batch takes no batches of the second operand")
        rows = of.rows()
        require(
            not of.transpose_a or of.batch_a == 1 or rows == 1,
            f"transpose_a with fuse_batch cannot do {of.batch_a} batches of {rows} rows of tiles",
        )
    _PARTICULAR[program.kind](of, program, output, bias, device_grid)


# -- shared by several kinds ------------------------------------------------------------------------------------------


def _require_tiny_tiles(of: Operands, program: Program) -> None:
    in0, in1 = of.in0_tile, of.in1_tile
    if in0.height == TILE_SIZE and in1.width == TILE_SIZE:
        return
    require(not (in1.transpose_tile and in1.width == 16), "transposed tiles of in1 cannot be 16 wide")
    require(
        not (of.b.dtype in BLOCK_FLOAT_DTYPES and program.kind in MULTICAST and in0.height < 16),
        f"{of.b.dtype} weights cannot be multicast to tiles only {in0.height} high",
    )


def _require_sizes(of: Operands, program: Program, dest_tiles: int, device_grid: tuple[int, int]) -> None:
    if program.kind is Kind.MULTI_CORE:
        return
    if program.kind in BLOCKED and not program.gather_in0:
        columns, rows = program.grid
        require(
            0 < columns <= device_grid[0] and 0 < rows <= device_grid[1],
            f"compute_with_storage_grid_size {columns} x {rows} does not lie on the device's "
            f"{device_grid[0]} x {device_grid[1]} cores",
        )
    for name in ("in0_block_w", "per_core_M", "per_core_N"):
        require(getattr(program, name) > 0, f"{name} must not be 0")
    if program.kind not in BLOCKED:
        return
    require(
        of.inner % program.in0_block_w == 0,
        f"{of.inner} tiles of the inner dimension do not divide into blocks of in0_block_w = {program.in0_block_w}",
    )
    height, width = program.per_core_M, program.per_core_N
    if program.kind in MULTICAST:
        require(program.out_block_h > 0 and program.out_block_w > 0, "out_block_h and out_block_w must not be 0")
        require(
            height % program.out_block_h == 0 and width % program.out_block_w == 0,
            f"{height} x {width} tiles a core do not divide into blocks of "
            f"{program.out_block_h} x {program.out_block_w}",
        )
        height, width = program.out_block_h, program.out_block_w
    require(program.out_subblock_h > 0 and program.out_subblock_w > 0, "out_subblock_h and _w must not be 0")
    require(
        height % program.out_subblock_h == 0 and width % program.out_subblock_w == 0,
        f"a block of {height} x {width} tiles does not divide into subblocks of "
        f"{program.out_subblock_h} x {program.out_subblock_w}",
    )
    require(
        program.out_subblock_h * program.out_subblock_w <= dest_tiles,
        f"a subblock of {program.out_subblock_h} x {program.out_subblock_w} tiles exceeds the {dest_tiles} tiles of "
        "the destination register",
    )


def _lies_within(config: MemoryConfig, grid: tuple[int, int]) -> bool:
    """Whether the shards of an L1 tensor are on cores of a grid that starts at the origin."""
    if not config.is_sharded() or config.buffer_type is BufferType.DRAM or config.shard_spec is None:
        return True
    return CoreRange(CoreCoord(0, 0), CoreCoord(grid[0] - 1, grid[1] - 1)).contains(
        config.shard_spec.grid.bounding_box()
    )


def _require_within(config: MemoryConfig, grid: tuple[int, int], what: str) -> None:
    require(_lies_within(config, grid), f"{what} in {config.brief()} does not lie on {grid[0]} x {grid[1]} cores")


def _require_grids_on_device(of: Operands, device_grid: tuple[int, int]) -> None:
    _require_within(of.a.memory_config, device_grid, "the first operand")
    _require_within(of.b.memory_config, device_grid, "the second operand")


def _require_even_blocks(of: Operands, program: Program) -> None:
    """Output blocks are dealt out evenly over the cores of the first sharded operand."""
    sharded = next(
        (s for s in (of.a, of.b) if s.is_sharded and s.memory_config.buffer_type is not BufferType.DRAM), None
    )
    if sharded is None:
        return
    blocks = (of.batch_a * of.rows() // program.per_core_M) * (of.columns // program.per_core_N)
    cores = _shard(sharded).num_cores()
    require(blocks % cores == 0, f"{blocks} output blocks cannot be dealt out evenly over {cores} cores")


def _require_work(of: Operands, program: Program, output: MemoryConfig, device_grid: tuple[int, int]) -> None:
    if program.kind is Kind.REUSE:
        sharded = of.a.is_sharded or of.b.is_sharded or output.is_sharded()
        _require_within(output, device_grid if sharded else program.grid, "the output")
        return
    if program.kind not in MULTICAST:
        return
    if program.gather_in0:
        require(not of.transpose_a and not of.transpose_b, "gather_in0 does not transpose")
        require(of.a.is_sharded, "gather_in0 needs a sharded first operand")
        _require_within(output, device_grid, "the output")
        return
    require(program.hop_cores is None, "only gather_in0 takes hop_cores")
    rows, columns = of.rows(program.fuse_batch), of.columns
    down, across = div_up(rows, program.per_core_M), div_up(columns, program.per_core_N)
    require(rows > 0 and columns > 0, f"an output of {rows} x {columns} tiles")
    require(
        program.per_core_M <= rows or program.mcast_in0,
        f"per_core_M {program.per_core_M} exceeds the {rows} rows of tiles that there are",
    )
    if program.kind is Kind.MCAST_2D:
        x, y = (down, across) if program.transpose_mcast else (across, down)
        require(
            x <= program.grid[0] and y <= program.grid[1],
            f"{x} x {y} output blocks exceed the grid of {program.grid[0]} x {program.grid[1]} cores",
        )
    else:
        cores = min(math.prod(program.grid), math.prod(program.worker_grid))
        require(down * across <= cores, f"{down} x {across} output blocks exceed {cores} cores")
        if program.mcast_in0:
            require(
                down == 1, f"mcast_in0 needs all {rows} rows of tiles on a core, per_core_M is {program.per_core_M}"
            )
        else:
            _require_single_column(program, rows, columns, down, across)
    _require_within(output, program.grid, "the output")


def _require_single_column(program: Program, rows: int, columns: int, down: int, across: int) -> None:
    """in1 goes whole to every core: padding may only be in the last block of a core."""
    require(across == 1, f"all {columns} columns of tiles must be on a core, per_core_N is {program.per_core_N}")
    require(
        div_up(columns, program.out_block_w) == program.per_core_N // program.out_block_w,
        f"of per_core_N = {program.per_core_N} in blocks of {program.out_block_w}, {columns} columns of tiles leave "
        "whole blocks empty",
    )
    if down == 1:
        blocks = program.per_core_M // program.out_block_h
        require(
            div_up(rows, program.out_block_h) == blocks,
            f"of per_core_M = {program.per_core_M} in blocks of {program.out_block_h}, {rows} rows of tiles leave "
            "whole blocks empty",
        )
        require(
            rows % program.out_block_h == 0 or blocks == 1,
            f"{rows} rows of tiles on one core must fill its blocks of {program.out_block_h}",
        )


def _require_batches(of: Operands, program: Program, broadcasts: bool) -> None:
    a, b = of.a_shape, of.b_shape
    if broadcasts:
        require(batch_of(b) == 1, f"the second operand's {batch_of(b)} batches cannot be broadcast")
        return
    require(len(a) == len(b), f"operands with batches must have one rank, they have {len(a)} and {len(b)}")
    reuses_a = (
        program.kind is Kind.MCAST_1D
        and not (program.fuse_batch or program.fused_activation is not None or program.mcast_in0)
        and len(a) >= 3
        and all(size == 1 for size in a[:-2])
        and not (of.a.is_sharded or of.b.is_sharded)
    )
    require(
        all(ours == theirs or (ours == 1 and reuses_a) for ours, theirs in zip(a[:-2], b[:-2])),
        f"the batches {list(a[:-2])} and {list(b[:-2])} do not match",
    )


def _require_shards_in_l1(of: Operands, program: Program, output: MemoryConfig) -> None:
    """Shards are used where they lie, so they must lie in L1."""
    configs = [("first operand", of.a.memory_config), ("output", output)]
    if program.kind is not Kind.MCAST_2D:
        configs.append(("second operand", of.b.memory_config))
    for name, config in configs:
        require(not config.is_sharded() or config.buffer_type is not BufferType.DRAM, f"the {name} is sharded in DRAM")


def _require_bias(of: Operands, program: Program, bias: Spec) -> None:
    """A bias that the program adds itself; others are added afterwards."""
    tile = (of.in0_tile.height, of.in1_tile.width)
    require(bias.on_device, "the bias must be on a device")
    require(
        bias.tile.tile_shape == tile, f"the bias has tiles of {list(bias.tile.tile_shape)}, the output of {list(tile)}"
    )
    if bias.dtype not in FLOAT_DTYPES:
        raise ChipFault(f"the card takes the integers of a {bias.dtype} bias for floats")
    require(bias.is_tile, f"the bias must be in TILE layout, it is in {bias.layout}")
    require(batch_of(bias.shape) == 1, f"a bias of shape {list(bias.shape)} has batches")
    rows = of.rows() if program.kind is Kind.REUSE else 1
    require(
        bias.padded_shape[-2] == rows * tile[0] and bias.padded_shape[-1] == of.b_padded[-1],
        f"a bias padded to {list(bias.padded_shape)} does not cover {rows * tile[0]} x {of.b_padded[-1]}",
    )
    require(
        bias.shape[-1] >= of.b_shape[-1], f"a bias {bias.shape[-1]} wide is narrower than the output, {of.b_shape[-1]}"
    )
    require(not (tile == (TILE_SIZE, 16) and not of.in1_tile.transpose_tile), "a bias cannot be added to tiles 32 x 16")


# -- one kind each ----------------------------------------------------------------------------------------------------


def _shard(spec: Spec) -> ShardSpec:
    require(spec.shard_spec is not None, f"{spec.brief()} has no shard spec")
    assert spec.shard_spec is not None
    return spec.shard_spec


def _shard_tiles(spec: Spec, tile: Tile) -> tuple[int, int]:
    height, width = _shard(spec).shape
    return height // tile.height, width // tile.width


def _require_alike(a: Spec, output: MemoryConfig) -> None:
    ours = a.memory_config
    require(
        ours.buffer_type is output.buffer_type and ours.memory_layout is output.memory_layout,
        f"the output in {output.brief()} must be placed as the first operand in {ours.brief()}",
    )


def _require_row_major(spec: Spec) -> None:
    orientation = _shard(spec).orientation
    require(
        orientation is ShardOrientation.ROW_MAJOR, f"the first operand's shards must be ROW_MAJOR, not {orientation}"
    )


def _require_whole_rows(program: Program) -> None:
    """A sharded output is written in whole rows of a core's tiles."""
    width = program.per_core_N
    require(
        program.out_subblock_w == width or program.out_subblock_h == 1,
        f"for a sharded output, out_subblock_w {program.out_subblock_w} must be per_core_N {width}, or out_subblock_h 1",
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
    _require_alike(a, output)
    _require_row_major(a)
    shard_h, shard_w = _shard_tiles(a, of.in0_tile)
    rows = of.rows()
    require(rows == program.per_core_M == shard_h == 1, f"DRAM-sharded weights take one row of tiles, not {rows}")
    block = program.in0_block_w
    require(
        of.inner % block == 0 and (shard_w % block == 0 or block % shard_w == 0),
        f"shards {shard_w} tiles wide, of {of.inner}, do not go with blocks of {block}",
    )
    require(of.b.memory_config.memory_layout is WIDTH, "the second operand must be width sharded")


def _batched_dram_sharded(
    of: Operands, program: Program, output: MemoryConfig, bias: Spec | None, device_grid: object
) -> None:
    require(
        of.a.memory_config.memory_layout is HEIGHT and output.is_sharded(),
        "batched DRAM-sharded weights need a height-sharded input and a sharded output",
    )
    _require_alike(of.a, output)
    _require_row_major(of.a)
    require(
        of.inner % program.in0_block_w == 0,
        f"{of.inner} tiles do not divide into blocks of in0_block_w = {program.in0_block_w}",
    )
    require(of.b.memory_config.memory_layout is HEIGHT, "the second operand must be height sharded")
    raise NotEmulated(
        "batched DRAM-sharded weights, which need shards on the cores nearest to the banks, are not emulated"
    )


def _mcast_2d(
    of: Operands, program: Program, output: MemoryConfig, bias: Spec | None, device_grid: tuple[int, int]
) -> None:
    _require_grids_on_device(of, device_grid)
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
    shard, layout = _shard(of.a), of.a.memory_config.memory_layout
    shard_h, shard_w = _shard_tiles(of.a, of.in0_tile)
    require(layout in (BLOCK, HEIGHT), f"the first operand cannot be {layout}")
    if layout is BLOCK:
        wanted = ShardOrientation.COL_MAJOR if program.transpose_mcast else ShardOrientation.ROW_MAJOR
        require(shard.orientation is wanted, f"the first operand's shards must be {wanted}, not {shard.orientation}")
        if output.is_sharded():
            _require_alike(of.a, output)
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
    require(not program.transpose_mcast, "transpose_mcast takes no sharded second operand")
    require(
        layout in (WIDTH, HEIGHT) or (layout is TensorMemoryLayout.ND_SHARDED and in_dram),
        f"the second operand cannot be {layout}",
    )
    if layout is HEIGHT:
        require(in_dram, "a height-sharded second operand must be in DRAM")
        require(not program.fuse_batch, "a height-sharded second operand takes no fuse_batch")
        shard_h, shard_w = _shard_tiles(of.b, of.in1_tile)
        require(shard_w == of.columns, f"its shards must be {of.columns} tiles wide, not {shard_w}")
        require(
            shard_h >= of.inner and shard_h % of.inner == 0,
            f"its shards, {shard_h} tiles high, must hold whole matrices of {of.inner}",
        )
        held = shard_h // of.inner * _shard(of.b).num_cores()
        require(held >= of.batch_b, f"its shards hold {held} of {of.batch_b} matrices")
    if not in_dram:
        require(
            of.a.memory_config.memory_layout in (HEIGHT, INTERLEAVED),
            "a width-sharded second operand in L1 needs the first one interleaved or height sharded",
        )
        shard_w = _shard_tiles(of.b, of.in1_tile)[1]
        require(program.per_core_N == shard_w, f"per_core_N {program.per_core_N} must be the shard's {shard_w} tiles")
    if layout is WIDTH:
        box = _shard(of.b).grid.bounding_box()
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
        shard = _shard(of.b).shape
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
    a, shard = of.a, _shard(of.a)
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
        theirs = _shard(of.b)
        require(
            a.memory_config.buffer_type is of.b.memory_config.buffer_type
            and a.memory_config.memory_layout is of.b.memory_config.memory_layout
            and shard.grid == theirs.grid
            and shard.orientation is theirs.orientation,
            f"operands in {a.memory_config.brief()} and {of.b.memory_config.brief()} must be sharded alike",
        )
    if output.is_sharded():
        _require_alike(a, output)


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
        _require_grids_on_device(of, device_grid)
    if program.mcast_in0 or program.gather_in0:
        _mcast_in0(of, program, output, bias)
    else:
        _mcast_in1(of, program, output)


def _gather_in0(of: Operands, program: Program, output: MemoryConfig, bias: Spec | None) -> None:
    b = of.b.memory_config
    require(program.num_global_cb_receivers == 1, "without a global circular buffer there is one receiver")
    require(of.a.memory_config.memory_layout is WIDTH, "gather_in0 needs a width-sharded first operand")
    require(
        b.memory_layout is WIDTH or (b.memory_layout is INTERLEAVED and b.buffer_type is BufferType.DRAM),
        "gather_in0 needs the second operand width sharded, or interleaved in DRAM",
    )
    if of.b.is_sharded and b.buffer_type is BufferType.L1:
        require(_shard(of.a).grid == _shard(of.b).grid, "gather_in0 needs both operands on the same cores")
    require(output.shard_spec is not None, "gather_in0 needs the output's shard spec")
    if not of.b.is_sharded:
        assert output.shard_spec is not None
        require(_shard(of.a).grid == output.shard_spec.grid, "gather_in0 needs input and output on the same cores")
    require(bias is None, "gather_in0 adds no bias")


def _mcast_in0(of: Operands, program: Program, output: MemoryConfig, bias: Spec | None) -> None:
    rows = of.rows(program.fuse_batch)
    if of.a.is_sharded:
        require(program.fuse_batch, "a sharded first operand needs fuse_batch")
        require(of.a.memory_config.memory_layout is WIDTH, "the first operand must be width sharded")
        if output.is_sharded():
            _require_alike(of.a, output)
        _require_row_major(of.a)
        shard_h, shard_w = _shard_tiles(of.a, of.in0_tile)
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
        shard_w = _shard_tiles(of.b, of.in1_tile)[1]
        require(program.per_core_N == shard_w, f"per_core_N {program.per_core_N} must be the shard's {shard_w} tiles")
        if bias is not None:
            require(_shard(bias).shape[1] == _shard(of.b).shape[1], "the bias must be sharded as the second operand")


def _mcast_in1(of: Operands, program: Program, output: MemoryConfig) -> None:
    if of.a.is_sharded:
        require(program.fuse_batch, "a sharded first operand needs fuse_batch")
        require(of.a.memory_config.memory_layout is HEIGHT, "the first operand must be height sharded")
        if output.is_sharded():
            _require_alike(of.a, output)
        _require_row_major(of.a)
        shard_h, shard_w = _shard_tiles(of.a, of.in0_tile)
        blocks = div_up(of.rows(program.fuse_batch), program.per_core_M)
        require(blocks <= _shard(of.a).num_cores(), f"{blocks} blocks exceed the first operand's cores")
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
    """Block sharding on a row of cores is width sharding."""
    if config.memory_layout is not BLOCK or config.shard_spec is None:
        return False
    return config.shard_spec.grid.bounding_box().grid_size().y == 1


def _on_one_column(config: MemoryConfig) -> bool:
    if config.memory_layout is not BLOCK or config.shard_spec is None:
        return False
    return config.shard_spec.grid.bounding_box().grid_size().x == 1


_PARTICULAR = {
    Kind.MULTI_CORE: _multi_core,
    Kind.REUSE: _reuse,
    Kind.MCAST_2D: _mcast_2d,
    Kind.MCAST_1D: _mcast_1d,
    Kind.DRAM_SHARDED: _dram_sharded,
    Kind.BATCHED_DRAM_SHARDED: _batched_dram_sharded,
}
