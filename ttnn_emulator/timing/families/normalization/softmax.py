"""Softmax over the last dimension, with scale and mask, interleaved or in shards, and over other dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ttnn_emulator.enums import Arch, DataType, MathFidelity
from ttnn_emulator.hardware.boards import Board
from ttnn_emulator.tensors.shapes import TILE_SIZE, div_up
from ttnn_emulator.tensors.spec import Spec
from ttnn_emulator.timing.calls import Call, prices
from ttnn_emulator.timing.chips import CHIPS
from ttnn_emulator.timing.families.normalization.passes import (
    BF16_TILE,
    MASK_STORE_CYCLES,
    PASS_CYCLES,
    SCALER_NS,
    MathSettings,
    Passes,
    RowProgram,
    RowTensor,
    block_reads_ns,
    is_sharded_program,
    math_settings,
    passes_of,
    row_launch,
    tile_rows,
)
from ttnn_emulator.timing.launches import Launch
from ttnn_emulator.timing.movement import KERNELS, Stages, Traffic, is_dram, moved, tile_size
from ttnn_emulator.timing.programs import ProgramRun, times
from ttnn_emulator.timing.recorded_arguments import field_of
from ttnn_emulator.timing.shards import is_local
from ttnn_emulator.timing.tile_kernels import copy_cycles

PROGRAM, FAMILY = "SoftmaxDeviceOperation", "softmax"
# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/normalization/softmax/device/softmax_program_factory_attention_optimized.cpp,  # noqa: E501
# large_kernel_cb_size: rows that do not fit L1 are read again in every pass
LARGE_ROW_BYTES = 1_200_000


@dataclass(frozen=True, slots=True)
class Softmax:
    """What a softmax kernel does per row.

    stable  subtracts the largest value first
    mask    the mask that it adds after scaling
    causal  every row of tiles has its own mask; otherwise a row of the mask is broadcast
    """

    stable: bool
    mask: Spec | None = None
    causal: bool = False


def row_cycles(size: int, tiles: int, work: Softmax, passes: Passes, bulk: int, *, padded: bool = False) -> float:
    """Cycles of the compute kernel per row of tiles: `bulk` bytes per tile between passes."""
    exponential = passes.function("exp")
    per_tile, steps = 0.0, 0
    source = float(size)
    if work.mask is not None:
        mask = tile_size(work.mask)
        per_tile += passes.combined(size, BF16_TILE / 4, bulk, product=True)
        vector = 0.0 if work.stable else exponential
        per_tile += passes.combined(bulk, mask if work.causal else mask / 2, bulk, vector=vector)
        source, steps = bulk, 2
    elif padded:
        vector = 0.0 if work.stable else exponential
        per_tile += passes.combined(size, 0.0, bulk, vector=vector)
        source, steps = bulk, 1
    elif not work.stable:
        math = copy_cycles(size, DataType.BFLOAT16) + exponential
        per_tile += passes.combined(0.0, 0.0, bulk, vector=math)
        steps = 1
    if work.stable:
        per_tile += passes.largest(source) + passes.combined(source, BF16_TILE / 2, bulk, vector=exponential)
        steps += 2
    per_tile += passes.summed(bulk) + passes.combined(bulk, bulk / 2, size, product=True)
    steps += 2
    return tiles * per_tile + steps * PASS_CYCLES + passes.function("recip")


def softmax_passes(settings: MathSettings, board: Board) -> Passes:
    return passes_of(board, settings.fidelity, fp32=settings.fp32, approximate=settings.approximate)


def default_fidelity(board: Board) -> MathFidelity:
    return MathFidelity.HiFi3 if board.arch is Arch.WORMHOLE_B0 else MathFidelity.HiFi4


def interleaved_launch(
    source: Spec, out: Spec, work: Softmax, passes: Passes, board: Board, *, bulk: int, cores: int = 0
) -> Launch:
    """Every core normalises whole rows of tiles."""
    rows, tiles = tile_rows(source)
    padded = bool(source.shape) and source.shape[-1] % TILE_SIZE != 0
    chip, block = CHIPS[board.arch], passes.block
    cycles = row_cycles(tile_size(source), tiles, work, passes, bulk, padded=padded)
    once = 2 * SCALER_NS
    if padded:
        # The writer fills a tile with the mask of the padding, value by value.
        values = TILE_SIZE * TILE_SIZE + TILE_SIZE * (TILE_SIZE - source.shape[-1] % TILE_SIZE)
        once = max(once, chip.ns(values * MASK_STORE_CYCLES))
    reads = [RowTensor(source, tiles, block)]
    beside = 0.0
    if work.mask is not None:
        if work.causal:
            reads.append(RowTensor(work.mask, tiles, block))
        else:
            kernels = KERNELS[board.arch]
            access = kernels.dram_read if is_dram(work.mask) else kernels.l1_read
            beside = block_reads_ns(access, tile_size(work.mask), tiles, block)
    again = 1
    if tiles * (2 * bulk + tile_size(source)) > LARGE_ROW_BYTES:
        again = 3 if work.stable else 2
    program = RowProgram(
        rows,
        tuple(reads),
        (RowTensor(out, tiles, block),),
        chip.ns(cycles),
        once_ns=once,
        beside_ns=beside,
        passes=again,
    )
    return row_launch(PROGRAM, FAMILY, program, board, cores=cores)


# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/normalization/softmax/device/kernels/attention/dataflow/reader_unary_sharded_sm_rm_mask.cpp,  # noqa: E501
# kernel_main: the mask is read once; reader_unary_sharded_sm.cpp reads it per row if it is causal
def sharded_launch(source: Spec, work: Softmax, passes: Passes, board: Board, *, bulk: int) -> Launch:
    """Every core normalises the rows of its shard in place."""
    shard = source.shard_spec
    assert shard is not None
    rows, tiles = div_up(shard.shape[0], TILE_SIZE), div_up(shard.shape[1], TILE_SIZE)
    chip, kernels = CHIPS[board.arch], KERNELS[board.arch]
    cycles = row_cycles(tile_size(source), tiles, work, passes, bulk)
    used = source.shard_spec.num_cores() if source.shard_spec is not None else 1
    read, once, traffic = 0.0, SCALER_NS, Traffic()
    mask = work.mask
    if mask is not None and not is_local(mask):
        access = kernels.dram_read if is_dram(mask) else kernels.l1_read
        if mask.is_tile:
            line = block_reads_ns(access, tile_size(mask), tiles, tiles)
            pages = float(tiles * (rows if work.causal else 1) * used)
            total = pages * tile_size(mask)
        else:
            row = tile_size(mask) / TILE_SIZE
            line = tiles * (access.ns(row) + kernels.local.ns(row / 2))
            pages, total = float(tiles * used), tiles * used * row
        traffic = Traffic(pages, total) if is_dram(mask) else Traffic(l1_read_bytes=total)
        read, once = (line, once) if work.causal else (0.0, once + line)
    stages = Stages(rows, read, chip.ns(cycles))
    return moved(ProgramRun(PROGRAM, (), (), used, board), FAMILY, used, stages, traffic, once)


def general_launch(
    source: Spec,
    out: Spec,
    place: int,
    settings: MathSettings,
    board: Board,
    *,
    code: str = PROGRAM,
    family: str = FAMILY,
) -> Launch:
    """Over a dimension other than the last: every core takes columns of tiles and reads them tile by tile."""
    passes = softmax_passes(settings, board)
    sides = (1, 1, *source.padded_shape)
    if place == -1:
        tiles = div_up(sides[-1], TILE_SIZE)
    elif place == -2:
        tiles = div_up(sides[-2], TILE_SIZE)
    else:
        tiles = sides[place]
    height, width = source.physical_shape
    lines = max(div_up(height, TILE_SIZE) * div_up(width, TILE_SIZE) // max(tiles, 1), 1)
    # Between tiles of other matrices nothing is pooled: the values of a place are compared and added.
    if place < -2:
        size = tile_size(source)
        per_tile = 2 * passes.combined(size, passes.middle, passes.middle, block=1)
        per_tile += passes.combined(size, passes.middle, passes.middle, vector=passes.function("exp"), block=1)
        per_tile += passes.combined(passes.middle, passes.middle, tile_size(out), product=True, block=1)
        cycles = tiles * per_tile + passes.function("recip")
        again = 3
    else:
        cycles = row_cycles(tile_size(source), tiles, Softmax(True), passes, passes.middle, padded=True)
        again = 1
    program = RowProgram(
        lines,
        (RowTensor(source, tiles),),
        (RowTensor(out, tiles),),
        CHIPS[board.arch].ns(cycles),
        once_ns=2 * SCALER_NS,
        passes=again,
    )
    return row_launch(code, family, program, board)


# -- programs of performance sheets -----------------------------------------------------------------------------------


@times(PROGRAM, "Softmax", family=FAMILY)
def softmax_row(run: ProgramRun) -> Launch:
    """Sheets do not name the variant: a second input is the mask."""
    source = run.inputs[0]
    mask = run.inputs[1] if len(run.inputs) > 1 else None
    settings = MathSettings(run.fidelity or default_fidelity(run.board), True, True)
    passes = softmax_passes(settings, run.board)
    work = Softmax(True, mask)
    if is_local(source):
        return sharded_launch(source, work, passes, run.board, bulk=BF16_TILE)
    return interleaved_launch(source, run.outputs[0], work, passes, run.board, bulk=BF16_TILE, cores=run.cores)


# -- operations -------------------------------------------------------------------------------------------------------

STABLE_BY_DEFAULT = frozenset({"ttnn.softmax", "ttnn.softmax_in_place", "ttnn.scale_mask_softmax"})


@prices(
    "ttnn.softmax",
    "ttnn.softmax_in_place",
    "ttnn.scale_mask_softmax",
    "ttnn.scale_mask_softmax_in_place",
    "ttnn.scale_causal_mask_hw_dims_softmax_in_place",
)
def softmax(call: Call) -> Sequence[Launch]:
    source, out, given = call.tensors[0], call.outputs[0], call.arguments
    if not source.volume:
        return []
    is_float32 = source.dtype is DataType.FLOAT32
    config = given.get("compute_kernel_config")
    settings = math_settings(config, default_fidelity(call.board), fp32=True, approximate=not is_float32)
    dim = -1 if given.get("dim") is None else int(given["dim"])
    place = dim - len(source.shape) if dim >= 0 else dim
    if place != -1 or len(source.shape) > 4:
        return [general_launch(source, out, place, settings, call.board)]
    passes = softmax_passes(settings, call.board)
    wide = settings.fp32 and (is_float32 or config is not None)
    stable = given.get("numeric_stable")
    stable = call.name in STABLE_BY_DEFAULT if stable is None else bool(stable)
    mask = call.tensor("mask") or (call.tensors[1] if len(call.tensors) > 1 else None)
    causal = bool(given.get("is_causal_mask")) or "causal" in call.name
    work = Softmax(stable, mask, causal)
    bulk = 4096 if wide else BF16_TILE
    program = given.get("program_config")
    if is_sharded_program(program) and is_local(source):
        subblock = int(field_of(program, "subblock_w", 1))
        passes = Passes(passes.arch, passes.phases, subblock, passes.middle, passes.approximate, passes.fp32_dest)
        return [sharded_launch(source, work, passes, call.board, bulk=bulk)]
    return [interleaved_launch(source, out, work, passes, call.board, bulk=bulk)]
