"""How the operands of a matmul share DRAM and the network."""

from __future__ import annotations

from tests.emulator.timing.families.specs import BFP8, tensor
from ttnn_emulator.enums import MathFidelity
from ttnn_emulator.hardware.boards import find_board
from ttnn_emulator.ops.matmul.program_configs import Kind, Program
from ttnn_emulator.timing.chips import WORMHOLE
from ttnn_emulator.timing.families.matmul.matmul import Product, matmul_launch
from ttnn_emulator.timing.launches import Bound, Launch


def one_row(rows: int) -> Launch:
    """A row of blocks: in0 is read by one core and multicast, every core reads its own columns of in1."""
    a, b, out = tensor(32 * rows, 18176), tensor(18176, 4544, dtype=BFP8), tensor(32 * rows, 4544)
    program = Program(Kind.MCAST_1D, (8, 7), 8, 1, 3, rows, 3, rows, 3, mcast_in0=True)
    product = Product(a, b, out, program, MathFidelity.LoFi, False, rows, 568, 142, 1)
    return matmul_launch(product, find_board("n150"))


def test_a_multicast_hides_behind_the_reads_of_the_other_operand() -> None:
    launch = one_row(1)
    assert launch.bound is Bound.DRAM
    rate = launch.dram_bytes / launch.kernel_ns
    assert 0.9 * WORMHOLE.dram_bytes_per_ns < rate <= WORMHOLE.dram_bytes_per_ns


def test_reads_of_a_large_operand_wait_for_those_of_the_other_one() -> None:
    small, large = one_row(1), one_row(4)
    assert large.dram_bytes / large.kernel_ns < 0.95 * small.dram_bytes / small.kernel_ns
