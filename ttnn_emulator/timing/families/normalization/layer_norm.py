"""layer_norm and rms_norm over the last dimension: interleaved rows, and shards whose cores exchange statistics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ttnn_emulator.enums import DataType, MathFidelity, ShardOrientation, TensorMemoryLayout
from ttnn_emulator.hardware.boards import Board
from ttnn_emulator.tensors.shapes import TILE_SIZE, div_up
from ttnn_emulator.tensors.spec import Spec
from ttnn_emulator.timing.calls import Call, prices
from ttnn_emulator.timing.chips import CHIPS
from ttnn_emulator.timing.families.normalization.exchange import Line, exchange_ns
from ttnn_emulator.timing.families.normalization.passes import (
    BF16_TILE,
    PASS_CYCLES,
    SCALER_NS,
    WELFORD_CYCLES,
    Passes,
    RowProgram,
    RowTensor,
    is_sharded_program,
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
from ttnn_emulator.timing.tile_kernels import pack_cycles
from ttnn_emulator.timing.vector_unit import activation_cycles

PROGRAM, FAMILY = "LayerNormDeviceOperation", "layer_norm"
# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/normalization/layernorm/device/layernorm_op_multi_core.cpp,
# with_weights_max_size: rows of more tiles are read again in every pass
LARGE_ROW_TILES = {True: 56, False: 112}
# Formats are set again for every block of tiles that goes through the scaling steps.
RECONFIGURE_CYCLES = 70.0  # fit


@dataclass(frozen=True, slots=True)
class Norm:
    """What a norm computes.

    centred  subtracts the mean (layer norm)
    welford  one pass finds mean and variance
    """

    centred: bool
    weight: Spec | None = None
    bias: Spec | None = None
    residual: Spec | None = None
    welford: bool = False
    activation: object = None

    @property
    def scalings(self) -> int:
        """Passes that follow the statistics."""
        return 1 + (self.weight is not None) + (self.bias is not None)


def statistics_cycles(size: float, norm: Norm, passes: Passes) -> tuple[float, int]:
    """Cycles per tile until the variance is known, and the number of passes."""
    middle, per_tile, steps = float(passes.middle), 0.0, 0
    source = size
    if norm.residual is not None:
        per_tile += passes.combined(size, tile_size(norm.residual), middle)
        source, steps = middle, 1
    if norm.welford:
        return per_tile + passes.combined(source, 0.0, middle) + WELFORD_CYCLES, steps + 2
    if norm.centred:
        per_tile += passes.summed(source) + passes.combined(source, middle / 2, middle)
        source, steps = middle, steps + 2
    per_tile += passes.combined(source, source, middle, product=True) + passes.summed(middle)
    return per_tile, steps + 2


def scaling_cycles(size: float, out: float, norm: Norm, passes: Passes) -> float:
    """Cycles per tile after the variance is known: scale, then weight and bias."""
    middle = float(passes.middle)
    source = middle if norm.centred or norm.residual is not None else size
    weights = [each for each in (norm.weight, norm.bias) if each is not None]
    targets = [middle] * len(weights) + [out]
    total = passes.combined(source, middle / 2, targets[0], product=True)
    for number, weight in enumerate(weights, 1):
        packed = targets[number]
        total += passes.combined(middle, tile_size(weight) / 2, packed, product=weight is norm.weight)
    if norm.activation is not None:
        total += activation_cycles(norm.activation, passes.arch, fp32_dest=passes.fp32_dest)
    return total


def interleaved_launch(
    source: Spec, out: Spec, norm: Norm, passes: Passes, board: Board, *, code: str = PROGRAM, cores: int = 0
) -> Launch:
    """Every core normalises whole rows of tiles."""
    rows, tiles = tile_rows(source)
    chip, block = CHIPS[board.arch], passes.block
    size, target = tile_size(source), tile_size(out)
    before, steps = statistics_cycles(size, norm, passes)
    after = scaling_cycles(size, target, norm, passes)
    if not source.is_tile:
        # Rows become tiles before, and tiles become rows after: a pass each.
        before += passes.combined(size, 0.0, size)
        after += passes.combined(target, 0.0, target)
        steps += 2
    blocks = div_up(tiles, block)
    cycles = tiles * (before + after) + blocks * norm.scalings * RECONFIGURE_CYCLES
    cycles += (steps + 1) * PASS_CYCLES + passes.inverse_root()
    used = max(min(rows, cores or board.cores), 1)
    reads = [RowTensor(source, tiles, block)]
    if norm.residual is not None:
        reads.append(RowTensor(norm.residual, tiles, block))
    beside = sum([weight_ns(each, tiles, block, board, used) for each in (norm.weight, norm.bias)])
    again = 1
    if tiles > LARGE_ROW_TILES[norm.weight is not None] * BF16_TILE // passes.middle * 2:
        again = 3 if norm.centred else 2
    program = RowProgram(
        rows, tuple(reads), (RowTensor(out, tiles, block),), chip.ns(cycles), 2 * SCALER_NS, beside, again
    )
    return row_launch(code, FAMILY, program, board, cores=cores)


# -- shards -----------------------------------------------------------------------------------------------------------


def line_of(source: Spec) -> Line:
    """The cores that share rows, and how they are placed."""
    shard = source.shard_spec
    assert shard is not None
    box = shard.grid.bounding_box().grid_size()
    kind = source.memory_config.memory_layout
    rows = div_up(shard.shape[0], TILE_SIZE)
    if kind is TensorMemoryLayout.HEIGHT_SHARDED:
        return Line(1, rows)
    if kind is TensorMemoryLayout.WIDTH_SHARDED:
        across, down = (box.x, box.y) if shard.orientation is ShardOrientation.ROW_MAJOR else (box.y, box.x)
        return Line(shard.grid.num_cores(), rows, second=down if down > 1 and across > 1 else 1)
    return Line(box.x if shard.orientation is ShardOrientation.ROW_MAJOR else box.y, rows)


def sharded_launch(
    source: Spec,
    out: Spec,
    norm: Norm,
    passes: Passes,
    board: Board,
    *,
    code: str = PROGRAM,
    family: str = FAMILY,
    gathered: bool = False,
) -> Launch:
    """Every core has a part of some rows; the cores of a line exchange sums of values, then of squares.

    gathered  the statistics are known, and only sent to all cores
    """
    shard = source.shard_spec
    assert shard is not None
    rows, tiles = div_up(shard.shape[0], TILE_SIZE), div_up(shard.shape[1], TILE_SIZE)
    chip, used = CHIPS[board.arch], shard.grid.num_cores()
    size, target = tile_size(source), tile_size(out)
    before, steps = (0.0, 0) if gathered else statistics_cycles(size, norm, passes)
    after = scaling_cycles(size, target, norm, passes)
    if gathered and norm.centred:
        after += passes.combined(size, passes.middle / 2, passes.middle)
    cycles = rows * tiles * (before + after) + (steps + norm.scalings) * PASS_CYCLES
    cycles += rows * steps * pack_cycles(passes.middle, chip) + passes.inverse_root()
    line = line_of(source)
    exchanges = 2 if norm.centred and not norm.welford and not gathered else 1
    exchanged = exchanges * exchange_ns(line, passes, board)
    # The writer fills scalers and reads the weights meanwhile.
    weights = 3 * SCALER_NS + sum([weight_ns(each, tiles, tiles, board, used) for each in (norm.weight, norm.bias)])
    late = max(weights - exchanged - chip.ns(rows * tiles * before), 0.0)
    pages = used * tiles * sum([each is not None for each in (norm.weight, norm.bias)])
    run = ProgramRun(code, (), (), used, board)
    extra = SCALER_NS + exchanged + late
    return moved(run, family, used, Stages(1, 0.0, chip.ns(cycles)), Traffic(pages, 64.0 * pages), extra)


# -- programs of performance sheets -----------------------------------------------------------------------------------


@times(PROGRAM, "LayerNorm", family=FAMILY)
def layer_norm_row(run: ProgramRun) -> Launch:
    """Sheets do not name the norm: it is a layer norm if it has a bias."""
    source = run.inputs[0]
    others = run.inputs[1:]
    residual = next((each for each in others if each.shape == source.shape and source.shape[-2] > 1), None)
    rows = [each for each in others if each is not residual]
    weight, bias = [*rows, None, None][:2]
    norm = Norm(bias is not None, weight, bias, residual)
    fidelity = run.fidelity or MathFidelity.HiFi4
    passes = passes_of(run.board, fidelity, fp32=norm.centred, approximate=not norm.centred)
    if is_local(source):
        return sharded_launch(source, run.outputs[0], norm, passes, run.board)
    return interleaved_launch(source, run.outputs[0], norm, passes, run.board, cores=run.cores)


# -- operations -------------------------------------------------------------------------------------------------------


@prices("ttnn::prim::layer_norm")
def layer_norm(call: Call) -> Sequence[Launch]:
    given = call.arguments
    source, out = call.tensors[0], call.outputs[0]
    program = given.get("program")
    settings = math_settings(given.get("config"), MathFidelity.HiFi4, fp32=False, approximate=True)
    norm = Norm(
        given.get("kind", "layer_norm") == "layer_norm",
        call.tensor("weight"),
        call.tensor("bias"),
        call.tensor("residual"),
        bool(field_of(program, "use_welford", False)),
        given.get("activation"),
    )
    passes = passes_of(call.board, settings.fidelity, fp32=settings.fp32, approximate=settings.approximate)
    if source.dtype is DataType.FLOAT32:
        passes = replace(passes, middle=4096)
    if is_local(source) and is_sharded_program(program):
        passes = replace(passes, block=max(int(field_of(program, "subblock_w", 1)), 1))
        return [sharded_launch(source, out, norm, passes, call.board)]
    return [interleaved_launch(source, out, norm, passes, call.board)]
