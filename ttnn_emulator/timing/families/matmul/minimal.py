"""minimal_matmul: blocks of both operands are handed from core to core along rows and columns of the grid."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ttnn_emulator.enums import MathFidelity
from ttnn_emulator.tensors.shapes import TILE_SIZE, div_up
from ttnn_emulator.tensors.spec import Spec
from ttnn_emulator.timing.calls import Call, prices
from ttnn_emulator.timing.chips import FIDELITY_CYCLES, Chip
from ttnn_emulator.timing.families.matmul.matmul import BIAS_CYCLES, KERNEL
from ttnn_emulator.timing.launches import Bound, Launch
from ttnn_emulator.timing.movement import KERNELS, Access, is_dram, kernels_of, tile_size, writes
from ttnn_emulator.timing.programs import ProgramRun, times
from ttnn_emulator.timing.recorded_arguments import Precision, grid_of, precision_of
from ttnn_emulator.timing.vector_unit import activation_cycles

PROGRAM, FAMILY = "MinimalMatmulDeviceOperation", "minimal matmul"
# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/experimental/minimal_matmul/device/minimal_matmul_program_factory.cpp,
# determine_default_block_sizes
BLOCK = 8  # tiles, in each dimension
SUBBLOCK = (2, 2)
SUBBLOCK_NARROW = (2, 4)


@dataclass(frozen=True, slots=True)
class Blocks:
    """Sizes in tiles: of the operands, of the blocks, and of the grid in cores."""

    rows: int
    inner: int
    columns: int
    block_rows: int
    block_inner: int
    block_columns: int
    high: int
    wide: int
    grid: tuple[int, int]

    @property
    def share(self) -> tuple[int, int]:
        """Rows and columns of one core. Tall outputs are spread over the grid's columns."""
        across, down = self.grid
        if self.rows > self.columns:
            return div_up(self.rows, across), div_up(self.columns, down)
        return div_up(self.rows, down), div_up(self.columns, across)

    @property
    def hops(self) -> tuple[int, int]:
        """Cores that a block of each operand is handed on to, one after the other."""
        across, down = self.grid
        return (down - 1, across - 1) if self.rows > self.columns else (across - 1, down - 1)


def minimal_launch(
    blocks: Blocks, run: ProgramRun, a: Spec, b: Spec, out: Spec, precision: Precision, extra_cycles: float = 0.0
) -> Launch:
    """The predicted time of a program.

    extra_cycles  bias and activation, per tile of the output
    """
    chip, kernels = run.chip, kernels_of(run)
    mine, steps = blocks.share, div_up(blocks.inner, blocks.block_inner)
    hand_on = 0.0
    total = chip.launch_ns
    compute_ns = data_ns = 0.0
    for rows in _parts(mine[0], blocks.block_rows):
        for columns in _parts(mine[1], blocks.block_columns):
            compute = chip.ns(_block_cycles(blocks, rows, columns, a, b, precision, run))
            data = max(
                _injected_ns(a, rows * blocks.block_inner, chip, run),
                _injected_ns(b, columns * blocks.block_inner, chip, run),
            )
            if not hand_on:
                hand_on = _filling_ns(blocks, rows, columns, a, b, chip, run)
            total += steps * max(compute, data) + min(compute, data)
            total += chip.ns(rows * columns * extra_cycles)
            compute_ns += steps * compute
            data_ns += steps * data
    last = mine[0] % blocks.block_rows or min(mine[0], blocks.block_rows)
    last *= mine[1] % blocks.block_columns or min(mine[1], blocks.block_columns)
    total += hand_on + writes(kernels, out).ns(tile_size(out), last)
    dram = sum([spec.num_pages * tile_size(spec) for spec in (a, b, out) if is_dram(spec)])
    cores = blocks.grid[0] * blocks.grid[1]
    bound = Bound.COMPUTE if compute_ns > data_ns else Bound.NOC
    flops = 2.0 * blocks.rows * blocks.inner * blocks.columns * TILE_SIZE**3
    return Launch(PROGRAM, FAMILY, cores, total, bound, compute_ns, data_ns + hand_on, flops, float(dram))


def _parts(tiles: int, block: int) -> list[int]:
    """A core's tiles in blocks; the last may be smaller."""
    return [min(block, tiles - start) for start in range(0, tiles, block)]


def _block_cycles(
    blocks: Blocks, rows: int, columns: int, a: Spec, b: Spec, precision: Precision, run: ProgramRun
) -> float:
    chip, kernel = run.chip, KERNEL[run.board.arch]
    unpacked = max(tile_size(a), tile_size(b)) / chip.unpack_bytes_per_cycle
    tile = max(FIDELITY_CYCLES[precision.fidelity], unpacked)
    high, wide = min(blocks.high, rows), min(blocks.wide, columns)
    packed = (4096 if precision.fp32_acc else 2048) / chip.pack_bytes_per_cycle + kernel.pack
    subblock = max(blocks.block_inner * (high * wide * tile + kernel.call) + kernel.subblock, high * wide * packed)
    return div_up(rows, high) * div_up(columns, wide) * subblock + kernel.block


def _injected_ns(spec: Spec, tiles: int, chip: Chip, run: ProgramRun) -> float:
    """The first core of a row or column reads a block, then sends it to the next core."""
    kernels = KERNELS[run.board.arch]
    access: Access = kernels.dram_read if is_dram(spec) else kernels.l1_read
    return access.ns(tile_size(spec), tiles) + _sent_ns(spec, tiles, chip, run)


def _sent_ns(spec: Spec, tiles: int, chip: Chip, run: ProgramRun) -> float:
    """To a neighbour, as fast as the network is; the receiver waits for a semaphore that follows the block."""
    return tiles * tile_size(spec) / chip.local.bytes_per_ns + KERNELS[run.board.arch].l1_write.latency_ns


def _filling_ns(blocks: Blocks, rows: int, columns: int, a: Spec, b: Spec, chip: Chip, run: ProgramRun) -> float:
    """The last core gets its first blocks after they went through all others."""
    sizes = ((a, rows * blocks.block_inner), (b, columns * blocks.block_inner))
    return max(
        [hops * _sent_ns(spec, tiles, chip, run) for hops, (spec, tiles) in zip(blocks.hops, sizes, strict=True)]
    )


def _blocks_of(a: Spec, inner: int, columns: int, grid: tuple[int, int], config: Any, precision: Precision) -> Blocks:
    rows = div_up(a.physical_shape[0], TILE_SIZE)
    if config is not None:
        block_rows, block_inner, block_columns, high, wide, *_ = config
        return Blocks(rows, inner, columns, block_rows, block_inner, block_columns, high, wide, grid)
    high, wide = SUBBLOCK if precision.fp32_acc else SUBBLOCK_NARROW
    if rows > columns:
        high, wide = wide, high
    return Blocks(rows, inner, columns, BLOCK, BLOCK, BLOCK, high, wide, grid)


@times(PROGRAM, "MinimalMatmulOp", family=FAMILY)
def minimal_row(run: ProgramRun) -> Launch:
    a, b = run.inputs[:2]
    precision = Precision(run.fidelity or MathFidelity.HiFi2, fp32_acc=True)
    inner, columns = (div_up(size, TILE_SIZE) for size in b.padded_shape[-2:])
    blocks = _blocks_of(a, inner, columns, run.board.grid, None, precision)
    extra = BIAS_CYCLES if len(run.inputs) > 2 else 0.0
    return minimal_launch(blocks, run, a, b, run.outputs[0], precision, extra)


@prices("ttnn.experimental.minimal_matmul", "ttnn.experimental.dit_minimal_matmul_addcmul_fused")
def minimal(call: Call) -> Sequence[Launch]:
    a, b = call.tensors[:2]
    arguments = call.arguments
    given = arguments.get("config", arguments.get("compute_kernel_config"))
    precision = precision_of(given, MathFidelity.HiFi2)
    config = arguments.get("blocks")
    grid = call.board.grid
    if config is not None and grid_of(config[-2:]) not in (None, 1):
        grid = (int(config[-2]), int(config[-1]))
    inner, columns = (div_up(size, TILE_SIZE) for size in b.padded_shape[-2:])
    blocks = _blocks_of(a, inner, columns, grid, config, precision)
    extra = BIAS_CYCLES if len(call.tensors) > 2 else 0.0
    if arguments.get("function") is not None:
        extra += activation_cycles(arguments["function"], call.board.arch, fp32_dest=precision.fp32_acc)
    run = ProgramRun(PROGRAM, call.tensors, call.outputs, 0, call.board)
    return [minimal_launch(blocks, run, a, b, call.outputs[0], precision, extra)]
