"""Two files of matmul benchmarks: `gemm_flops` and `matmul_height_sharded`."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ttnn_emulator.enums import BufferType, DataType, Layout, MathFidelity, TensorMemoryLayout
from ttnn_emulator.hardware.boards import Board, find_board
from ttnn_emulator.hardware.core_grid import CoreCoord, CoreRange, CoreRangeSet, num_cores_to_corerangeset
from ttnn_emulator.ops.matmul.operands import Operands
from ttnn_emulator.ops.matmul.program_configs import Kind, Program
from ttnn_emulator.ops.matmul.program_selection import choose
from ttnn_emulator.ops.matmul.selection_inputs import SUBBLOCKS, Choice
from ttnn_emulator.tensors.memory_config import DRAM_MEMORY_CONFIG, MemoryConfig, ShardSpec
from ttnn_emulator.tensors.shapes import TILE_SIZE, div_up, round_up
from ttnn_emulator.tensors.spec import Spec
from ttnn_emulator.timing.evaluation.measurements import Measure, Measurement, Row, integers_in, measured_in
from ttnn_emulator.timing.families.matmul.matmul import Product, math_ns, matmul_launch
from ttnn_emulator.timing.families.matmul.rows import earlier_program

GEMM_COLUMNS = frozenset({"board", "mode", "m", "k", "n", "grid_x", "grid_y", "device_kernel_ns_derived"})
HEIGHT_SHARDED_COLUMNS = frozenset({"m_size", "k_size", "n_size", "num_cores", "duration"})

# tt-metal v0.77.0: tests/ttnn/unit_tests/benchmarks/test_benchmark.py, tuning_overrides_l1 and tuning_overrides_dram:
# how often blocks are divided along the inner dimension, rows and columns, by size per core
DIVISIONS_L1: dict[str, dict[tuple[int, int, int], tuple[int, int, int]]] = {
    "BFLOAT16": {(256, 384, 384): (2, 1, 1), (384, 384, 384): (4, 1, 1)},
    "BFLOAT8_B": {(384, 384, 384): (2, 1, 1), (384, 384, 512): (2, 1, 1)},
    "BFLOAT4_B": {(384, 512, 512): (2, 1, 1), (512, 512, 512): (2, 1, 1)},
}
DIVISIONS_DRAM: dict[str, dict[tuple[int, int, int], tuple[int, int, int]]] = {
    "BFLOAT16": {
        (384, 384, 512): (2, 1, 1),
        (384, 512, 512): (2, 1, 1),
        (512, 512, 512): (1, 2, 2),
        (1024, 1024, 1024): (2, 4, 4),
        (2048, 2048, 2048): (4, 8, 8),
    },
    "BFLOAT8_B": {
        (512, 512, 512): (1, 2, 2),
        (1024, 1024, 1024): (2, 4, 4),
        (2048, 2048, 2048): (4, 8, 8),
    },
    "BFLOAT4_B": {(1024, 1024, 1024): (2, 2, 2), (2048, 2048, 2048): (4, 4, 4)},
}


def gemm_measurements(file: str, rows: Sequence[Row]) -> Measure:
    """Rows of `gemm_flops`: the time of the math thread, which ends before the output is written."""

    def measure(number: int, row: Row) -> Measurement:
        return Measurement(
            file,
            number,
            f"matmul ({row['mode']})",
            row["board"],
            measured_in(row, "device_kernel_ns_derived"),
            functools.partial(_gemm_ns, dict(row)),
        )

    return measure


def _gemm_ns(row: Mapping[str, str]) -> float:
    across, down = integers_in(row, "grid_x", "grid_y")
    grid = across, down
    board = _board(row["board"], grid)
    product = _tuned(row, grid) if row["mode"] == "tuned" else _out_of_the_box(row, board)
    return math_ns(product, board)


def _board(name: str, grid: tuple[int, int]) -> Board:
    board = find_board(name)
    if board.grid == grid:
        return board
    try:
        return find_board(f"{name}-{grid[0]}x{grid[1]}")
    except Exception:
        return replace(board, grid=grid)


def _operands(row: Mapping[str, str], in0: MemoryConfig) -> tuple[Spec, Spec]:
    m, k, n = integers_in(row, *"mkn")
    dtype = DataType[row["dtype"]]
    return (
        Spec.of((1, 1, m, k), dtype, Layout.TILE, in0),
        Spec.of((1, 1, k, n), dtype, Layout.TILE),
    )


def _product(row: Mapping[str, str], a: Spec, b: Spec, out: MemoryConfig, program: Program) -> Product:
    of = Operands(a, b)
    return Product(
        a,
        b,
        Spec.of((1, 1, a.shape[-2], b.shape[-1]), a.dtype, Layout.TILE, out),
        program,
        MathFidelity[row["fidelity"]],
        fp32_acc=False,
        rows=of.rows(),
        inner=of.inner,
        columns=of.columns,
        batch=1,
    )


# tt-metal v0.77.0: tests/ttnn/unit_tests/benchmarks/test_benchmark.py, test_matmul_2d_host_perf
def _tuned(row: Mapping[str, str], grid: tuple[int, int]) -> Product:
    columns, rows = grid
    m, k, n = integers_in(row, *"mkn")
    sharded = row["in0_sharded"] == "True"
    size = m // rows, k // columns, n // columns
    divisions = (DIVISIONS_L1 if sharded else DIVISIONS_DRAM)[row["dtype"]].get(size, (1, 1, 1))
    per_core_m, per_core_n = size[0] // TILE_SIZE, size[2] // TILE_SIZE
    out_h, out_w = per_core_m // divisions[1], per_core_n // divisions[2]
    high, wide = _benchmark_subblock(out_h, out_w, sharded)
    program = Program(
        Kind.MCAST_2D,
        grid,
        size[1] // TILE_SIZE // divisions[0],
        high,
        wide,
        out_h,
        out_w,
        per_core_m,
        per_core_n,
        fuse_batch=True,
    )
    memory = DRAM_MEMORY_CONFIG
    out = DRAM_MEMORY_CONFIG
    if sharded:
        memory = _block_sharded(grid, size[0], size[1])
        out = _block_sharded(grid, size[0], size[2])
    return _product(row, *_operands(row, memory), out, program)


def _block_sharded(grid: tuple[int, int], rows: int, columns: int) -> MemoryConfig:
    cores = CoreRangeSet([CoreRange(CoreCoord(0, 0), CoreCoord(grid[0] - 1, grid[1] - 1))])
    return MemoryConfig(TensorMemoryLayout.BLOCK_SHARDED, BufferType.L1, ShardSpec(cores, (rows, columns)))


def _benchmark_subblock(rows: int, columns: int, sharded: bool) -> tuple[int, int]:
    return next(
        (
            (high, wide)
            for high, wide in SUBBLOCKS
            if rows % high == 0 and columns % wide == 0 and (high == 1 or not sharded)
        ),
        (1, 1),
    )


def _out_of_the_box(row: Mapping[str, str], board: Board) -> Product:
    """The program that the library selected when the file was measured."""
    a, b = _operands(row, DRAM_MEMORY_CONFIG)
    program = earlier_program(a, b, Spec.of((1, 1, a.shape[-2], b.shape[-1]), a.dtype, Layout.TILE), board)
    return _product(row, a, b, DRAM_MEMORY_CONFIG, program)


def height_sharded_measurements(file: str, rows: Sequence[Row]) -> Measure:
    """Rows of `matmul_height_sharded_n150`: bfloat16, in0 and the output height-sharded, weights in DRAM."""

    def measure(number: int, row: Row) -> Measurement:
        return Measurement(
            file,
            number,
            "matmul (height-sharded)",
            "n150",
            measured_in(row, "duration"),
            functools.partial(_height_sharded_ns, dict(row)),
        )

    return measure


def _height_sharded_ns(row: Mapping[str, Any]) -> float:
    board = find_board("n150")
    m, k, n, cores = integers_in(row, "m_size", "k_size", "n_size", "num_cores")
    grid = num_cores_to_corerangeset(cores, CoreCoord(*board.grid), True)
    height = round_up(div_up(m, cores), TILE_SIZE)

    def spec(rows: int, columns: int, sharded: bool) -> Spec:
        memory = DRAM_MEMORY_CONFIG
        if sharded:
            shard = ShardSpec(grid, (height, columns))
            memory = MemoryConfig(TensorMemoryLayout.HEIGHT_SHARDED, BufferType.L1, shard)
        return Spec.of((1, 1, rows, columns), DataType.BFLOAT16, Layout.TILE, memory)

    a, b, out = spec(m, k, True), spec(k, n, False), spec(m, n, True)
    of = Operands(a, b)
    space = board.l1_bank_bytes - a.bytes_per_bank(1, 16)
    choice = Choice(
        of,
        MemoryConfig(TensorMemoryLayout.HEIGHT_SHARDED, BufferType.L1),
        a.dtype,
        False,
        0,
        None,
        None,
        False,
        board.grid,
        space,
    )
    product = Product(
        a,
        b,
        out,
        choose(choice),
        MathFidelity.HiFi2,
        fp32_acc=False,
        rows=of.rows(),
        inner=of.inner,
        columns=of.columns,
        batch=1,
    )
    return matmul_launch(product, board).kernel_ns
