"""Matmuls of performance sheets and benchmarks: the program that the library of their time selected."""

from __future__ import annotations

from ttnn_emulator.enums import MathFidelity
from ttnn_emulator.errors import EmulatorError
from ttnn_emulator.hardware.boards import Board
from ttnn_emulator.ops.matmul.operands import Operands
from ttnn_emulator.ops.matmul.program_configs import Kind, Program
from ttnn_emulator.ops.matmul.program_selection import choose
from ttnn_emulator.ops.matmul.selection_inputs import Choice, tall_subblock, wide_subblock
from ttnn_emulator.tensors.shapes import div_up
from ttnn_emulator.tensors.spec import Spec
from ttnn_emulator.timing.families.matmul.matmul import FAMILY, Product, matmul_launch
from ttnn_emulator.timing.launches import Launch
from ttnn_emulator.timing.programs import ProgramRun, times

# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/matmul/device/config/matmul_program_config.cpp, get_matmul_program_config
LARGEST_BLOCK = 16  # tiles


def earlier_program(a: Spec, b: Spec, out: Spec, board: Board, bias_tile_bytes: int = 0) -> Program:
    """The program that the library selected before commit 37fa37ac791 of its repository.

    It treated one row or column of blocks of 16 tiles as narrow, and divided the output before the inner dimension.
    """
    of = Operands(a, b)
    choice = _DividesOutputFirst(
        of,
        out.memory_config,
        out.dtype,
        False,
        bias_tile_bytes,
        None,
        None,
        of.batch_b > 1,
        board.grid,
        board.l1_bank_bytes,
    )
    down, across = div_up(of.rows(), LARGEST_BLOCK), div_up(of.columns, LARGEST_BLOCK)
    fits = down <= board.grid[1] and across <= board.grid[0]
    if not a.is_sharded and (down, across) != (1, 1) and 1 in (down, across) and fits and of.batch_b == 1:
        return _in_one_dimension(choice, mcast_in0=down == 1)
    return choose(choice)


class _DividesOutputFirst(Choice):
    def out_block(self, rows: int, columns: int, inner: int, *, shrink_inner: bool = False) -> tuple[int, int, int]:
        if not shrink_inner:
            return super().out_block(rows, columns, inner)
        for step in (k for k in range(inner, 0, -1) if inner % k == 0):
            block = super().out_block(rows, columns, step)
            if self.fits(*block):
                return block
        return 1, 1, 1


def _in_one_dimension(choice: Choice, *, mcast_in0: bool) -> Program:
    of = choice.operands
    cores = choice.device_grid[0] * choice.device_grid[1]
    rows, columns = of.rows(), of.columns
    per_core_m, per_core_n = (rows, div_up(columns, cores)) if mcast_in0 else (div_up(rows, cores), columns)
    inner = 2 if of.inner % 2 == 0 else 1
    out_h, out_w, _ = choice.out_block(per_core_m, per_core_n, inner)
    high, wide = tall_subblock(out_h, out_w, choice.fp32_acc)
    return Program(
        Kind.MCAST_1D,
        choice.device_grid,
        inner,
        high,
        wide,
        out_h,
        out_w,
        per_core_m,
        per_core_n,
        mcast_in0=mcast_in0,
    )


@times("MatmulDeviceOperation", "Matmul", family=FAMILY)
def matmul_row(run: ProgramRun) -> Launch:
    """A row of a sheet; if the row has no settings, the operands determine the program."""
    a, b = run.inputs[:2]
    bias = run.inputs[2] if len(run.inputs) > 2 else None
    of = Operands(a, b)
    if "ProgramConfig(" in run.attributes:
        program = _tuned(of, run)
    else:
        try:
            program = earlier_program(a, b, run.outputs[0], run.board, bias.page_bytes if bias is not None else 0)
        except EmulatorError:  # operands that the current release does not combine
            program = Program(Kind.MULTI_CORE)
    product = Product(
        a,
        b,
        run.outputs[0],
        program,
        run.fidelity or MathFidelity.HiFi2,
        fp32_acc=False,
        rows=of.rows(),
        inner=of.inner,
        columns=of.columns,
        batch=max(of.batch_a, of.batch_b),
        has_bias=bias is not None,
    )
    return matmul_launch(product, run.board)


def _tuned(of: Operands, run: ProgramRun) -> Program:
    """A config that its author tuned: sheets show its kind only. Its blocks are the largest that fit into L1."""
    rows = of.rows() * (of.batch_a if of.batch_b == 1 else 1)
    if "1DProgramConfig(" in run.attributes:
        kind, tall = Kind.MCAST_1D, rows >= of.columns
        per_core_m = div_up(rows, run.cores) if tall else rows
        per_core_n = of.columns if tall else div_up(of.columns, run.cores)
    else:
        kind, tall = Kind.MCAST_2D, False
        across, down = run.board.grid
        per_core_m, per_core_n = div_up(rows, down), div_up(of.columns, across)
    space = run.board.l1_bank_bytes
    choice = Choice(of, run.outputs[0].memory_config, of.a.dtype, False, 0, None, None, False, run.board.grid, space)
    steps = [k for k in range(of.inner, 0, -1) if of.inner % k == 0]
    inner = next((k for k in steps if choice.fits(per_core_m, per_core_n, k)), 1)
    high, wide = wide_subblock(per_core_m, per_core_n, False)
    return Program(
        kind,
        run.board.grid,
        inner,
        high,
        wide,
        per_core_m,
        per_core_n,
        per_core_m,
        per_core_n,
        fuse_batch=True,
        mcast_in0=kind is Kind.MCAST_1D and not tall,
    )
