"""Compute kernels that pass over a row of tiles several times, and the programs that give every core rows of tiles.

Norms and softmax need a statistic of a whole row before they can scale its values. Their kernels keep the row in L1 and
go over it once per step: a pass unpacks tiles, combines or pools them, and packs the result for the next pass.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ttnn_emulator.enums import Arch, MathFidelity
from ttnn_emulator.hardware.boards import Board
from ttnn_emulator.tensors.shapes import TILE_SIZE, div_up
from ttnn_emulator.tensors.spec import Spec
from ttnn_emulator.timing.chips import CHIPS, Chip
from ttnn_emulator.timing.launches import Launch
from ttnn_emulator.timing.movement import KERNELS, Access, Stages, Traffic, is_dram, moved, tile_size
from ttnn_emulator.timing.programs import ProgramRun
from ttnn_emulator.timing.recorded_arguments import fidelity_of, field_of
from ttnn_emulator.timing.tile_kernels import HANDOVER_CYCLES, PHASES, combine_cycles, pack_cycles
from ttnn_emulator.timing.vector_unit import unary_cycles

BF16_TILE, FLOAT32_TILE = 2048, 4096
# A pass sets up the unpackers, the math thread and the packer, and its first tile goes through all three.
PASS_CYCLES = 100.0  # fit
# tt-metal v0.77.0: tt_metal/tt-llk/tt_llk_wormhole_b0/llk_lib/llk_math_reduce.h, _llk_math_reduce_: rows are summed by
# eight products of 8 x 16 values per phase; the largest values are pooled by face and transposed twice
SUM_CYCLES = 16.0
LARGEST_CYCLES = 112.0
WELFORD_CYCLES = 1400.0  # mean and variance of a tile at once: about forty instructions per row of a tile
# A scaler for sums is filled with zeros from L1, then with its rows.
SCALER_NS = 1200.0  # fit
# Sixteen-bit stores with the address of every value
MASK_STORE_CYCLES = 12.0  # fit


@dataclass(frozen=True, slots=True)
class Passes:
    """Costs of the passes of one compute kernel.

    phases   of products
    block    tiles per half of the destination register
    middle   bytes of a tile between passes
    """

    arch: Arch
    phases: int
    block: int
    middle: int
    approximate: bool = False
    fp32_dest: bool = False

    @property
    def chip(self) -> Chip:
        return CHIPS[self.arch]

    def combined(
        self, a: float, b: float, packed: float, *, product: bool = False, vector: float = 0.0, block: int = 0
    ) -> float:
        """Cycles per tile: `a` and `b` bytes are unpacked, and `packed` bytes are packed, none if it accumulates."""
        math = combine_cycles(a + b, self.phases if product else 1) + vector
        if not packed:
            return math
        return max(math, pack_cycles(packed, self.chip)) + HANDOVER_CYCLES / (block or self.block)

    def summed(self, size: float) -> float:
        """Cycles per tile whose rows are added; a face of the scaler is unpacked with it."""
        return combine_cycles(size + BF16_TILE / 4) + SUM_CYCLES * self.phases

    def largest(self, size: float) -> float:
        """Cycles per tile whose rows are reduced to their largest values."""
        return combine_cycles(size + BF16_TILE / 4) + LARGEST_CYCLES

    def inverse_root(self) -> float:
        """Cycles of 1 / sqrt(variance + epsilon), once per row."""
        vector = unary_cycles("rsqrt", self.arch, approximate=self.approximate, fp32_dest=self.fp32_dest)
        return PASS_CYCLES + combine_cycles(2 * self.middle) + vector + HANDOVER_CYCLES

    def function(self, name: str) -> float:
        return unary_cycles(name, self.arch, approximate=self.approximate, fp32_dest=self.fp32_dest)


def passes_of(board: Board, fidelity: MathFidelity, *, fp32: bool, approximate: bool, middle: int = 0) -> Passes:
    size = middle or (FLOAT32_TILE if fp32 else BF16_TILE)
    return Passes(board.arch, PHASES[fidelity], 4 if fp32 else 8, size, approximate, fp32)


@dataclass(frozen=True, slots=True)
class MathSettings:
    """The compute config of a call, from any form that arguments and records use."""

    fidelity: MathFidelity
    fp32: bool
    approximate: bool


def math_settings(given: Any, fidelity: MathFidelity, *, fp32: bool, approximate: bool) -> MathSettings:
    """The settings of a call, else the operation's defaults."""
    if given is None:
        return MathSettings(fidelity, fp32, approximate)
    named = field_of(given, "math_fidelity") or field_of(given, "fidelity")
    return MathSettings(
        fidelity_of(named, fidelity),
        bool(_either(given, "fp32_dest_acc_en", "fp32_acc", fp32)),
        bool(_either(given, "math_approx_mode", "approx", approximate)),
    )


def _either(given: Any, name: str, short: str, default: bool) -> Any:
    found = field_of(given, name)
    return field_of(given, short, default) if found is None else found


def config_name(program: Any) -> str:
    """The class of a program config, or the type that a record names."""
    if isinstance(program, Mapping):
        return str(program.get("type", ""))
    return type(program).__name__


def is_sharded_program(program: Any) -> bool:
    return "Sharded" in config_name(program)


# -- programs that give every core rows of tiles ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RowTensor:
    """A tensor that every core reads or writes once per row of tiles, `block` tiles between barriers."""

    spec: Spec
    tiles: float
    block: int = 1


@dataclass(frozen=True, slots=True)
class RowProgram:
    """Rows of tiles, divided among cores.

    rows      rows of tiles of all cores
    compute   nanoseconds of the compute kernel per row
    once_ns   what every core does before its first row
    beside_ns what the reader does once while the first row is computed, e.g. reading weights
    passes    how often the reader reads the row
    """

    rows: int
    reads: tuple[RowTensor, ...]
    writes: tuple[RowTensor, ...]
    compute_ns: float
    once_ns: float = 0.0
    beside_ns: float = 0.0
    passes: int = 1


def block_reads_ns(access: Access, size: float, tiles: float, block: int) -> float:
    """Tiles in blocks: the tiles of a block are in flight together, then the kernel waits for them."""
    whole = div_up(int(tiles), block) if tiles >= 1 else 1
    return access.stream_ns(size, tiles) + whole * access.wait_ns(size)


def _moved_ns(tensors: tuple[RowTensor, ...], board: Board, *, writing: bool) -> float:
    kernels, total = KERNELS[board.arch], 0.0
    for each in tensors:
        if writing:
            access = kernels.dram_write if is_dram(each.spec) else kernels.l1_write
        else:
            access = kernels.dram_read if is_dram(each.spec) else kernels.l1_read
        total += block_reads_ns(access, tile_size(each.spec), each.tiles, each.block)
    return total


def row_launch(code: str, family: str, program: RowProgram, board: Board, *, cores: int = 0) -> Launch:
    """The launch of a program of rows."""
    used = max(min(program.rows, cores or board.cores), 1)
    share = div_up(program.rows, used)
    read = program.passes * _moved_ns(program.reads, board, writing=False)
    write = _moved_ns(program.writes, board, writing=True)
    traffic = Traffic()
    for each in program.reads:
        pages = program.rows * each.tiles * program.passes
        traffic += _traffic(each.spec, pages, writing=False)
    for each in program.writes:
        traffic += _traffic(each.spec, program.rows * each.tiles, writing=True)
    stages = Stages(share, read, program.compute_ns, write)
    # Weights are read while the first row is computed, and the last pass of that row waits for them.
    late = max(program.beside_ns - program.compute_ns, 0.0)
    run = ProgramRun(code, (), (), used, board)
    return moved(run, family, used, stages, traffic, program.once_ns + late)


def _traffic(spec: Spec, pages: float, *, writing: bool) -> Traffic:
    total = pages * tile_size(spec)
    if is_dram(spec):
        return Traffic(write_bytes=total) if writing else Traffic(pages, total)
    return Traffic(l1_write_bytes=total) if writing else Traffic(l1_read_bytes=total)


# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/normalization/layernorm/device/kernels/dataflow/reader_unary_interleaved_ln_rm_gb.cpp,  # noqa: E501
# kernel_main: a barrier after every piece, then a copy of its second half within L1
SAME_PAGE_NS = 4.0  # an estimate: no measured program is bound by it


def weight_ns(weight: Spec | None, tiles: float, block: int, board: Board, cores: int) -> float:
    """Reading a weight: a row of tiles in blocks, or ROW_MAJOR pieces one by one, each split between two faces.

    All cores ask for the same small page at the same time, so its bank answers them one after the other.
    """
    if weight is None:
        return 0.0
    kernels = KERNELS[board.arch]
    access = kernels.dram_read if is_dram(weight) else kernels.l1_read
    if weight.is_tile:
        return block_reads_ns(access, tile_size(weight), tiles, block)
    row = tile_size(weight) / TILE_SIZE
    return tiles * (access.ns(row) + kernels.local.ns(row / 2) + cores * SAME_PAGE_NS)


def tile_rows(spec: Spec) -> tuple[int, int]:
    """Rows of tiles of a tensor, and the tiles of one."""
    height, width = spec.physical_shape
    return div_up(height, TILE_SIZE), div_up(width, TILE_SIZE)
