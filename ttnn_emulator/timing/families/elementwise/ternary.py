"""Functions of three and more tensors: where, addcmul and their like, the older broadcast, gradients, optimizers."""

from __future__ import annotations

from collections.abc import Sequence

from ttnn_emulator.enums import DataType, MathFidelity
from ttnn_emulator.hardware.boards import Board
from ttnn_emulator.tensors.shapes import div_up
from ttnn_emulator.tensors.spec import Spec
from ttnn_emulator.timing.calls import Call, prices
from ttnn_emulator.timing.chips import CHIPS
from ttnn_emulator.timing.families.elementwise.unary import typecast_launch, unary_launch
from ttnn_emulator.timing.launches import Launch
from ttnn_emulator.timing.programs import ProgramRun, times
from ttnn_emulator.timing.shards import is_local
from ttnn_emulator.timing.tile_by_tile import (
    COSTS,
    Operands,
    Stream,
    bytes_of_tile,
    operands_launch,
    shard_tiles,
    stream_launch,
    tiles_of,
)
from ttnn_emulator.timing.tile_kernels import (
    HANDOVER_CYCLES,
    PHASES,
    combine_cycles,
    copy_cycles,
    pack_cycles,
    tile_cycles,
)
from ttnn_emulator.timing.vector_unit import binary_cycles, ternary_cycles, unary_cycles

TERNARY, TERNARY_FAMILY = "TernaryDeviceOperation", "ternary"
BCAST, BCAST_FAMILY = "BcastDeviceOperation", "bcast"
GRADIENT_FAMILY, OPTIMIZER_FAMILY = "gradient", "optimizer"


def several_launch(
    program: str,
    family: str,
    inputs: Sequence[Spec],
    outputs: Sequence[Spec],
    cycles: float,
    board: Board,
    *,
    cores: int | None = None,
    one_by_one: bool = False,
) -> Launch:
    """A program that copies a tile of each input to the destination register and computes `cycles` on them."""
    tiles = tiles_of(outputs[0])
    math = sum([copy_cycles(bytes_of_tile(spec), spec.dtype) for spec in inputs]) + cycles
    reads = [(spec, min(tiles_of(spec) / tiles, 1.0)) for spec in inputs]
    operands = Operands(reads, [(spec, 1.0) for spec in outputs], math, one_by_one=one_by_one)
    return operands_launch(program, family, operands, board, cores=cores)


# -- three operands ---------------------------------------------------------------------------------------------------


@times(TERNARY, "WhereDeviceOperation", family=TERNARY_FAMILY)
def ternary(run: ProgramRun) -> Launch:
    """Sheets do not name the function: it is assumed to be a `where`."""
    cycles = ternary_cycles("where", run.board.arch)
    return several_launch(TERNARY, TERNARY_FAMILY, run.inputs[:3], run.outputs[:1], cycles, run.board, cores=run.cores)


@prices("ttnn.prim.ternary", "ttnn.snake_beta")
def ternary_operation(call: Call) -> Sequence[Launch]:
    kind = "snake_beta" if call.name.endswith("snake_beta") else str(call.arguments.get("kind", "MAC")).lower()
    out = call.outputs[0]
    cycles = ternary_cycles(kind, call.board.arch, fp32_dest=out.dtype is DataType.FLOAT32)
    return [several_launch(TERNARY, TERNARY_FAMILY, call.tensors[:3], [out], cycles, call.board)]


@prices("ttnn.where")
def where_operation(call: Call) -> Sequence[Launch]:
    """Of three tensors, of a tensor and a number, or of two numbers; integer flags are cast first."""
    predicate = call.tensor("predicate") or call.tensors[0]
    chosen = [spec for name, spec in call.inputs if name in ("true_value", "false_value")]
    board, out = call.board, call.outputs[0]
    launches: list[Launch] = []
    if chosen and predicate.dtype is not chosen[0].dtype and predicate.dtype is not DataType.FLOAT32:
        flags = predicate.with_(dtype=chosen[0].dtype)
        launches.append(typecast_launch(predicate, flags, board))
        predicate = flags
    if not chosen:
        return [*launches, unary_launch(predicate, out, unary_cycles("where_tss", board.arch), board)]
    program, family = (TERNARY, TERNARY_FAMILY) if len(chosen) == 2 else ("BinaryNgDeviceOperation", "binary")
    cycles = ternary_cycles("where", board.arch) + (2 - len(chosen)) * unary_cycles("fill", board.arch)
    return [*launches, several_launch(program, family, [predicate, *chosen], [out], cycles, board)]


@prices("ttnn.mac")
def mac_operation(call: Call) -> Sequence[Launch]:
    cycles = unary_cycles("mac_tss", call.board.arch)
    return [unary_launch(call.tensors[0], call.outputs[0], cycles, call.board)]


@prices("ttnn.experimental.complex_mul")
def complex_product(call: Call) -> Sequence[Launch]:
    """Four products and two sums on the vector unit."""
    arch = call.board.arch
    kinds = ("mul", "mul", "mul", "mul", "add", "sub")
    cycles = sum([binary_cycles(kind, arch, DataType.FLOAT32, fp32_dest=True) for kind in kinds])
    return [several_launch("ComplexMulDeviceOperation", TERNARY_FAMILY, call.tensors, call.outputs, cycles, call.board)]


# -- the older broadcast ----------------------------------------------------------------------------------------------


@times(BCAST, "Bcast", family=BCAST_FAMILY)
def bcast(run: ProgramRun) -> Launch:
    return bcast_launch(run.inputs[0], run.inputs[1], run.outputs[0], "ADD", run.board, cores=run.cores)


# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/data_movement/bcast/device/bcast_sharded_h_optimised_program_factory.cpp,
# w_blk: its reader reads a tile of b per column of tiles; the other readers one per tile of a, with its own barrier
def bcast_launch(a: Spec, b: Spec, out: Spec, math_op: str, board: Board, *, cores: int | None = None) -> Launch:
    """A sum, difference or product with a row, a column or a value, repeated by the matrix unit."""
    chip, costs = CHIPS[board.arch], COSTS[board.arch]
    path = costs.l1 if b.memory_config.is_l1 else costs.dram
    phases = PHASES[MathFidelity.HiFi4] if math_op == "MUL" else 1
    math = combine_cycles(bytes_of_tile(a) + bytes_of_tile(b), phases)
    of_b = path.latency_ns + bytes_of_tile(b) / path.bytes_per_ns
    if is_local(a) and is_local(out) and a.shard_spec is not None:
        steps, used = shard_tiles(a), a.shard_spec.num_cores()
        columns = div_up(a.shard_spec.shape[1], a.tile.width)
        share = columns / steps if _is_row(b) else 1.0 / steps
        compute = chip.ns(tile_cycles(math, pack_cycles(bytes_of_tile(out), chip)))
        stream = Stream(used, steps, (), (), compute, once_ns=of_b, reader_ns=share * of_b)
        return stream_launch(BCAST, BCAST_FAMILY, stream, board)
    operands = Operands([(a, 1.0), (b, 1.0)], [(out, 1.0)], math, one_by_one=True)
    return operands_launch(BCAST, BCAST_FAMILY, operands, board, cores=cores)


def _is_row(b: Spec) -> bool:
    return tiles_of(b) > 1


@prices("ttnn.bcast")
def bcast_operation(call: Call) -> Sequence[Launch]:
    a, b = call.tensors[:2]
    kind = call.arguments.get("math_op")
    name = str(getattr(kind, "name", kind)).rsplit(".", 1)[-1]
    return [bcast_launch(a, b, call.outputs[0], name, call.board)]


# -- gradients --------------------------------------------------------------------------------------------------------

# Programs, and functions of the vector unit that each of them applies to a tile.
GRADIENTS = {
    "ttnn.tanh_bw": ("TanhBwDeviceOperation", ("tanh_derivative", "mul_unary_sfpu")),
    "ttnn.sigmoid_bw": ("SigmoidBwDeviceOperation", ("sigmoid", "rsub", "square", "mul_unary_sfpu")),
    "ttnn.gelu_bw": ("GeluBwDeviceOperation", ("gelu_derivative", "mul_unary_sfpu")),
}


@prices(*GRADIENTS, "ttnn.mul_bw")
def gradient_operation(call: Call) -> Sequence[Launch]:
    arch = call.board.arch
    wide = call.outputs[0].dtype is DataType.FLOAT32
    if call.name == "ttnn.mul_bw":
        program = "MulBwDeviceOperation"
        cycles = 2 * binary_cycles("mul", arch, DataType.BFLOAT16, fp32_dest=wide)
    else:
        program, functions = GRADIENTS[call.name]
        cycles = sum([unary_cycles(each, arch, fp32_dest=wide) for each in functions])
    taken = [spec for name, spec in call.inputs if name not in ("input_grad", "other_grad")]
    return [several_launch(program, GRADIENT_FAMILY, taken, call.outputs, cycles, call.board)]


# -- optimizers -------------------------------------------------------------------------------------------------------

# Operations on tiles that the kernels chain through circular buffers: each is a pass of its own.
OPTIMIZERS = {
    "ttnn.moreh_adam": ("MorehAdamOperation", 16),
    "ttnn.moreh_adamw": ("MorehAdamWDeviceOperation", 18),
    "ttnn.moreh_sgd": ("MorehSgdOperation", 8),
}


@prices(*OPTIMIZERS)
def optimizer_operation(call: Call) -> Sequence[Launch]:
    program, passes = OPTIMIZERS[call.name]
    taken = [spec for name, spec in call.inputs if not name.endswith("_out")]
    chip = CHIPS[call.board.arch]
    out = call.outputs[0]
    size = bytes_of_tile(out)
    math = passes * (combine_cycles(2 * size, 4) + pack_cycles(size, chip) + HANDOVER_CYCLES)
    math += unary_cycles("sqrt", call.board.arch) + unary_cycles("recip", call.board.arch)
    reads = [(spec, 1.0) for spec in taken]
    operands = Operands(reads, [(spec, 1.0) for spec in call.outputs], math, one_by_one=True)
    return [operands_launch(program, OPTIMIZER_FAMILY, operands, call.board)]
