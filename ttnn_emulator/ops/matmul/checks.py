"""Argument checks of a matmul whose program is known: those that several kinds of programs share."""

from __future__ import annotations

import math

from ttnn_emulator.enums import (
    BLOCK_FLOAT_DTYPES,
    FLOAT_DTYPES,
    BufferType,
    DataType,
)
from ttnn_emulator.errors import ChipFault, require
from ttnn_emulator.ops.matmul.checks_by_program import PARTICULAR
from ttnn_emulator.ops.matmul.operands import Operands, batch_of, height_of
from ttnn_emulator.ops.matmul.program_configs import BLOCKED, MULTICAST, Kind, Program
from ttnn_emulator.ops.matmul.shard_placement import (
    require_grids_on_device,
    require_within,
    shard_of,
)
from ttnn_emulator.tensors.memory_config import MemoryConfig
from ttnn_emulator.tensors.shapes import TILE_SIZE, div_up
from ttnn_emulator.tensors.spec import Spec

# tt-metal v0.77.0: tt_metal/hw/inc/internal/tt-1xx/blackhole/tensix_types.h, DEST_REGISTER_FULL_SIZE
DEST_TILES = 16  # 32 × 32 tiles of 16-bit values in the whole destination register


def require_operands(of: Operands) -> None:
    """Checks that do not depend on the program."""
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
        "The width of the first tensor must be equal to the height of the second tensor: "
        f"they are {of.a_shape[-1]} and {of.b_shape[-2]}",
    )
    require(of.b_shape[-1] > 0 and height_of(of.a_shape) > 0, "the product would be empty")
    inner = of.b_padded[-2] // of.in1_tile.height
    require(0 < of.inner == inner, f"the inner dimension is {of.inner} tiles in in0 and {inner} in in1")
    for spec, size in ((a, of.in0_tile.height), (b, of.in1_tile.width)):
        require(
            spec.dtype is not DataType.BFLOAT4_B or size >= 4,
            f"bfloat4_b excludes tiles of {size} rows or columns",
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
    """Refuse operands that the program does not support; shared checks run first."""
    _require_tiny_tiles(of, program)
    _require_sizes(of, program, dest_tiles, device_grid)
    if program.kind is Kind.REUSE:
        require_grids_on_device(of, device_grid)
        _require_even_blocks(of, program)
    _require_work(of, program, output, device_grid)
    _require_batches(of, program, broadcasts)
    if bias is not None:
        _require_bias(of, program, bias)
    if program.kind in BLOCKED and not program.gather_in0:
        _require_shards_in_l1(of, program, output)
    if program.untilize_out:
        require(dtype in (DataType.BFLOAT16, DataType.FLOAT32), f"untilize_out does not support {dtype}")
    if program.kind in MULTICAST and program.fuse_batch:
        require(of.batch_b == 1, "fuse_batch does not support batches of the second operand")
        rows = of.rows()
        require(
            not of.transpose_a or of.batch_a == 1 or rows == 1,
            f"transpose_a with fuse_batch cannot do {of.batch_a} batches of {rows} rows of tiles",
        )
    PARTICULAR[program.kind](of, program, output, bias, device_grid)


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
            f"compute_with_storage_grid_size {columns} x {rows} does not fit on the device's "
            f"{device_grid[0]} x {device_grid[1]} cores",
        )
    for name in ("in0_block_w", "per_core_M", "per_core_N"):
        require(getattr(program, name) > 0, f"{name} must not be 0")
    if program.kind not in BLOCKED:
        return
    require(
        of.inner % program.in0_block_w == 0,
        f"Kt ({of.inner}) must be divisible by in0_block_w ({program.in0_block_w})",
    )
    height, width = program.per_core_M, program.per_core_N
    if program.kind in MULTICAST:
        require(program.out_block_h > 0 and program.out_block_w > 0, "out_block_h and out_block_w must not be 0")
        require(
            height % program.out_block_h == 0 and width % program.out_block_w == 0,
            f"{height} x {width} tiles per core do not divide into blocks of "
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


def _require_even_blocks(of: Operands, program: Program) -> None:
    """Output blocks must be distributed evenly over the cores of the first sharded operand."""
    sharded = next(
        (s for s in (of.a, of.b) if s.is_sharded and s.memory_config.buffer_type is not BufferType.DRAM), None
    )
    if sharded is None:
        return
    blocks = (of.batch_a * of.rows() // program.per_core_M) * (of.columns // program.per_core_N)
    cores = shard_of(sharded).num_cores()
    require(blocks % cores == 0, f"{blocks} output blocks cannot be distributed evenly over {cores} cores")


def _require_work(of: Operands, program: Program, output: MemoryConfig, device_grid: tuple[int, int]) -> None:
    if program.kind is Kind.REUSE:
        sharded = of.a.is_sharded or of.b.is_sharded or output.is_sharded()
        require_within(output, device_grid if sharded else program.grid, "the output")
        return
    if program.kind not in MULTICAST:
        return
    if program.gather_in0:
        require(not of.transpose_a and not of.transpose_b, "gather_in0 does not transpose")
        require(of.a.is_sharded, "gather_in0 needs a sharded first operand")
        require_within(output, device_grid, "the output")
        return
    require(program.hop_cores is None, "only gather_in0 takes hop_cores")
    rows, columns = of.rows(program.fuse_batch), of.columns
    down, across = div_up(rows, program.per_core_M), div_up(columns, program.per_core_N)
    require(rows > 0 and columns > 0, f"an output of {rows} x {columns} tiles")
    if program.kind is Kind.MCAST_1D and not program.mcast_in0:
        require(
            across <= 1,
            f"mcast_in1 requires N ({columns}) to fit within a single per_core_N block ({program.per_core_N})",
        )
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
    require_within(output, program.grid, "the output")


def _require_single_column(program: Program, rows: int, columns: int, down: int, across: int) -> None:
    """Every core receives all of in1, so only the last block of a core may contain padding."""
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
    require(len(a) == len(b), f"operands with batches must have the same rank, they have {len(a)} and {len(b)}")
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
    """Shards are read and written in place, so they must be in L1."""
    configs = [("first operand", of.a.memory_config), ("output", output)]
    if program.kind is not Kind.MCAST_2D:
        configs.append(("second operand", of.b.memory_config))
    for name, config in configs:
        require(not config.is_sharded() or config.buffer_type is not BufferType.DRAM, f"the {name} is sharded in DRAM")


def _require_bias(of: Operands, program: Program, bias: Spec) -> None:
    """Check a bias that is fused into the program; other biases are added by a separate operation."""
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
    height, width = bias.padded_shape[-2:]
    require(
        height == rows * tile[0],
        f"padded second last dimension of bias, {height}, not equal to expected bias height, {rows * tile[0]}",
    )
    require(width == of.b_padded[-1], f"a bias padded to {width} columns does not cover {of.b_padded[-1]}")
    require(
        bias.shape[-1] >= of.b_shape[-1], f"a bias {bias.shape[-1]} wide is narrower than the output, {of.b_shape[-1]}"
    )
    require(not (tile == (TILE_SIZE, 16) and not of.in1_tile.transpose_tile), "a bias cannot be added to tiles 32 x 16")
