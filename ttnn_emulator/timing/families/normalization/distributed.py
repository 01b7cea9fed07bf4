"""Norms of rows that several chips share: statistics before the all-gather, scaling after it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ttnn_emulator.enums import MathFidelity
from ttnn_emulator.hardware.boards import Board
from ttnn_emulator.tensors.shapes import TILE_SIZE, div_up
from ttnn_emulator.tensors.spec import Spec
from ttnn_emulator.timing.calls import Call, prices
from ttnn_emulator.timing.chips import CHIPS
from ttnn_emulator.timing.families.normalization.exchange import exchange_ns
from ttnn_emulator.timing.families.normalization.layer_norm import Norm, line_of, scaling_cycles, sharded_launch
from ttnn_emulator.timing.families.normalization.passes import (
    PASS_CYCLES,
    SCALER_NS,
    Passes,
    RowProgram,
    RowTensor,
    math_settings,
    passes_of,
    row_launch,
    tile_rows,
    weight_ns,
)
from ttnn_emulator.timing.launches import Launch
from ttnn_emulator.timing.movement import Stages, Traffic, moved, tile_size
from ttnn_emulator.timing.programs import ProgramRun, times
from ttnn_emulator.timing.recorded_arguments import field_of
from ttnn_emulator.timing.shards import is_local
from ttnn_emulator.timing.tile_kernels import combine_cycles

BEFORE, AFTER = "LayerNormPreAllGatherDeviceOperation", "LayerNormPostAllGatherDeviceOperation"
FAMILY = "distributed norm"
ROTATION_CYCLES = 300.0  # a product with the rotation's matrix, two with cosines and sines, and a sum


def statistics_launch(
    source: Spec, out: Spec, passes: Passes, board: Board, *, centred: bool, residual: Spec | None = None
) -> Launch:
    """The sum of squares of every row, and the sum of values of a layer norm."""
    rows, tiles = tile_rows(source)
    chip, size = CHIPS[board.arch], float(tile_size(source))
    per_tile = passes.combined(size, size, passes.middle, product=True) + passes.summed(passes.middle)
    steps = 2
    reads = [RowTensor(source, tiles, passes.block)]
    if residual is not None:
        per_tile += passes.combined(size, tile_size(residual), passes.middle)
        reads.append(RowTensor(residual, tiles, passes.block))
        steps += 1
    if centred:
        per_tile += passes.summed(size)
        steps += 1
    compute = chip.ns(tiles * per_tile + steps * PASS_CYCLES)
    program = RowProgram(
        rows, tuple(reads), (RowTensor(out, max(out.padded_shape[-1] // TILE_SIZE, 1)),), compute, SCALER_NS
    )
    return row_launch(BEFORE, FAMILY, program, board)


def scaled_launch(
    source: Spec, stats: Spec, out: Spec, norm: Norm, passes: Passes, board: Board, *, extra: float = 0.0
) -> Launch:
    """Statistics of all chips are added, and rows are scaled. The reader takes tiles one by one."""
    rows, tiles = tile_rows(source)
    chip, size, target = CHIPS[board.arch], tile_size(source), tile_size(out)
    parts = div_up(stats.padded_shape[-1], TILE_SIZE)
    per_tile = scaling_cycles(size, target, replace(norm, centred=False), passes) + extra
    if norm.centred:
        per_tile += passes.combined(size, passes.middle / 2, passes.middle)
    small = (2 if norm.centred else 1) * (parts * passes.summed(tile_size(stats)) + PASS_CYCLES)
    if norm.centred:
        small += 3 * (PASS_CYCLES + combine_cycles(2 * passes.middle))
    cycles = tiles * per_tile + norm.scalings * PASS_CYCLES + small + passes.inverse_root()
    used = max(min(rows, board.cores), 1)
    beside = sum([weight_ns(each, tiles, 1, board, used) for each in (norm.weight, norm.bias)])
    program = RowProgram(
        rows,
        (RowTensor(source, tiles), RowTensor(stats, parts, parts)),
        (RowTensor(out, tiles, passes.block),),
        chip.ns(cycles),
        2 * SCALER_NS,
        beside,
    )
    return row_launch(AFTER, FAMILY, program, board)


def staged_statistics_launch(source: Spec, passes: Passes, board: Board, *, centred: bool, residual: bool) -> Launch:
    """Shards: one exchange collects the statistics on the first core."""
    shard = source.shard_spec
    assert shard is not None
    chip, used = CHIPS[board.arch], shard.num_cores()
    rows, tiles = div_up(shard.shape[0], TILE_SIZE), div_up(shard.shape[1], TILE_SIZE)
    size, middle = float(tile_size(source)), float(passes.middle)
    per_tile = passes.combined(size, size, middle, product=True) + passes.summed(middle)
    per_tile += passes.combined(size, size, middle) if residual else 0.0
    per_tile += passes.summed(size) if centred else 0.0
    compute = chip.ns(rows * tiles * per_tile + 3 * PASS_CYCLES)
    extra = SCALER_NS + exchange_ns(line_of(source), passes, board, 2 if centred else 1)
    return moved(ProgramRun(BEFORE, (), (), used, board), FAMILY, used, Stages(1, 0.0, compute), Traffic(), extra)


# -- programs of performance sheets -----------------------------------------------------------------------------------


@times(BEFORE, "LayerNormPreAllGather", family=FAMILY)
def before_row(run: ProgramRun) -> Launch:
    """Statistics of a layer norm are two tiles wide."""
    centred = run.outputs[0].padded_shape[-1] > TILE_SIZE
    passes = passes_of(run.board, run.fidelity or MathFidelity.HiFi4, fp32=True, approximate=False)
    return statistics_launch(run.inputs[0], run.outputs[0], passes, run.board, centred=centred)


@times(AFTER, "LayerNormPostAllGather", family=FAMILY)
def after_row(run: ProgramRun) -> Launch:
    source, stats = run.inputs[:2]
    weight, bias = [*run.inputs[2:], None, None][:2]
    passes = passes_of(run.board, run.fidelity or MathFidelity.HiFi4, fp32=True, approximate=False)
    return scaled_launch(source, stats, run.outputs[0], Norm(bias is not None, weight, bias), passes, run.board)


# -- operations -------------------------------------------------------------------------------------------------------


def _passes(call: Call, *, fp32: bool = False, approximate: bool = True) -> Passes:
    given = call.arguments.get("compute_kernel_config")
    settings = math_settings(given, MathFidelity.HiFi4, fp32=fp32, approximate=approximate)
    return passes_of(call.board, settings.fidelity, fp32=settings.fp32, approximate=settings.approximate)


@prices(
    "ttnn.layer_norm_pre_all_gather",
    "ttnn.rms_norm_pre_all_gather",
    "ttnn.experimental.dit_layernorm_pre_allgather",
    "ttnn.experimental.wan_fused_rmsnorm_pre_allgather",
)
def before(call: Call) -> Sequence[Launch]:
    source, out = call.tensors[0], call.outputs[0]
    centred = "layer" in call.name
    residual = call.tensor("residual_input_tensor")
    passes = _passes(call)
    if is_local(source):
        return [staged_statistics_launch(source, passes, call.board, centred=centred, residual=residual is not None)]
    return [statistics_launch(source, out, passes, call.board, centred=centred, residual=residual)]


@prices(
    "ttnn.layer_norm_post_all_gather",
    "ttnn.rms_norm_post_all_gather",
    "ttnn.experimental.dit_layernorm_post_allgather",
    "ttnn.experimental.wan_fused_rmsnorm_post_allgather",
)
def after(call: Call) -> Sequence[Launch]:
    source, out = call.tensors[0], call.outputs[0]
    stats = call.tensor("stats") or call.tensors[1]
    norm = Norm("layer" in call.name, call.tensor("weight"), call.tensor("bias"))
    passes = _passes(call)
    if is_local(source):
        block = max(int(field_of(call.arguments.get("program_config"), "subblock_w", 1)), 1)
        # The statistics are known: no core waits for another one.
        return [
            sharded_launch(
                source, out, norm, replace(passes, block=block), call.board, code=AFTER, family=FAMILY, gathered=True
            )
        ]
    rotated = call.tensor("transformation_mat") is not None
    return [scaled_launch(source, stats, out, norm, passes, call.board, extra=ROTATION_CYCLES if rotated else 0.0)]
