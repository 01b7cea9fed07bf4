"""Reductions and scans: sums, means, extremes and variances along an axis, running totals, products, norms of moreh."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ttnn_emulator.enums import FLOAT_DTYPES, DataType, MathFidelity
from ttnn_emulator.hardware.boards import Board
from ttnn_emulator.tensors.shapes import div_up
from ttnn_emulator.tensors.spec import ROW_MAJOR_BYTES, Spec
from ttnn_emulator.timing.calls import Call, prices
from ttnn_emulator.timing.chips import CHIPS, FIDELITY_CYCLES
from ttnn_emulator.timing.launches import Launch
from ttnn_emulator.timing.programs import ProgramRun, times
from ttnn_emulator.timing.shards import is_local
from ttnn_emulator.timing.tile_by_tile import (
    Operands,
    Stream,
    Traffic,
    bytes_of_tile,
    operands_launch,
    shard_tiles,
    stream_launch,
    tiles_of,
)
from ttnn_emulator.timing.tile_kernels import (
    HANDOVER_CYCLES,
    WIDE,
    combine_cycles,
    copy_cycles,
    pack_cycles,
)
from ttnn_emulator.timing.vector_unit import binary_cycles, unary_cycles

REDUCE, FAST_REDUCE, WELFORD = "ReduceDeviceOperation", "FastReduceNCDeviceOperation", "WelfordReduceDeviceOperation"
ACCUMULATION = "AccumulationDeviceOperation"
FAMILY, SCAN_FAMILY, MOREH_FAMILY = "reduction", "accumulation", "moreh reduction"
TILE = 32
# tt-metal v0.77.0: tt_metal/tt-llk/tt_llk_wormhole_b0/llk_lib/llk_math_reduce.h, reduce_row_perform_transpose
# Four faces are pooled in four phases; a row also transposes each of them twice.
POOL_CYCLES = 64.0
TRANSPOSE_CYCLES = 48.0
VECTOR_REDUCE_CYCLES = 320.0  # sums and extremes by the vector unit: a load, a combination and shuffles per vector
WELFORD_CYCLES = 1400.0  # about forty instructions per row of a tile


def reduce_launch(
    source: Spec, out: Spec, axis: str, cycles: float, board: Board, *, cores: int | None = None
) -> Launch:
    """Reduce the width (W), the height (H) or both (HW) of every matrix."""
    sides = (1, 1, *source.padded_shape)
    down, across = div_up(sides[-2], TILE), div_up(sides[-1], TILE)
    if is_local(source) and source.shard_spec is not None:
        chip = CHIPS[board.arch]
        stream = Stream(source.shard_spec.num_cores(), shard_tiles(source), (), (), chip.ns(cycles + HANDOVER_CYCLES))
        return stream_launch(REDUCE, FAMILY, stream, board)
    share = {"W": across, "H": down}.get(axis, down * across)
    tiles = tiles_of(source)
    if axis == "HW":
        cores = 1
    if not source.is_tile:
        return _reduce_rows(source, out, share, cycles, board, cores)
    operands = Operands([(source, 1.0)], [(out, 1.0 / share)], cycles, steps=tiles, largest_share=share)
    return operands_launch(REDUCE, FAMILY, operands, board, cores=cores)


def _reduce_rows(source: Spec, out: Spec, share: int, cycles: float, board: Board, cores: int | None) -> Launch:
    """ROW_MAJOR rows are read in parts of a tile's width and put into tiles by the compute kernel."""
    chip = CHIPS[board.arch]
    width = source.shape[-1] if source.shape else 1
    rows = max(source.volume // max(width, 1), 1)
    tasks = div_up(rows, TILE)
    used = min(tasks, cores or board.cores)
    size = ROW_MAJOR_BYTES[source.dtype]
    pages = Traffic(size * min(width, TILE * 8), not source.memory_config.is_l1, TILE)
    steps = div_up(tasks, used) * div_up(width, TILE * 8)
    writes = Traffic(bytes_of_tile(out) / max(share, 1), not out.memory_config.is_l1)
    compute = chip.ns(8 * (cycles + copy_cycles(bytes_of_tile(source), source.dtype) + HANDOVER_CYCLES))
    return stream_launch(REDUCE, FAMILY, Stream(used, steps, (pages,), (writes,), compute), board)


def reduce_cycles(dtype: DataType, axis: str, *, vector: bool, negate: bool, board: Board, size: int) -> float:
    """The compute kernel's cycles per tile of the input."""
    arch = board.arch
    if vector or dtype not in FLOAT_DTYPES:
        return copy_cycles(size, dtype) + VECTOR_REDUCE_CYCLES
    pooled = combine_cycles(size) + POOL_CYCLES + (TRANSPOSE_CYCLES if axis != "H" else 0.0)
    if negate:
        chip = CHIPS[arch]
        pooled += copy_cycles(size, dtype) + unary_cycles("neg", arch) + pack_cycles(size, chip) + HANDOVER_CYCLES
    return pooled


@times(REDUCE, "Reduce", family=FAMILY)
def reduce(run: ProgramRun) -> Launch:
    """The axis follows from the sizes that became one."""
    source, out = run.inputs[0], run.outputs[0]
    axis = _reduced_axis(source, out)
    cycles = reduce_cycles(source.dtype, axis, vector=False, negate=False, board=run.board, size=bytes_of_tile(source))
    return reduce_launch(source, out, axis, cycles, run.board, cores=run.cores)


def _reduced_axis(source: Spec, out: Spec) -> str:
    before, after = (1, 1, *source.shape), (1, 1, *out.shape)
    axes = ("H" if before[-2] != after[-2] else "") + ("W" if before[-1] != after[-1] else "")
    return axes or "W"


@prices("ttnn::prim::reduce")
def reduce_operation(call: Call) -> Sequence[Launch]:
    source, out = call.tensors[0], call.outputs[0]
    step: Any = call.arguments.get("step")
    axis = getattr(step, "axis", None) or _reduced_axis(source, out)
    cycles = reduce_cycles(
        source.dtype,
        axis,
        vector=bool(getattr(step, "vector", False)),
        negate=bool(getattr(step, "negate", False)),
        board=call.board,
        size=bytes_of_tile(source),
    )
    return [reduce_launch(source, out, axis, cycles, call.board)]


# -- axes before the last two -----------------------------------------------------------------------------------------


def outer_launch(
    program: str, family: str, source: Spec, out: Spec, cycles: float, board: Board, *, cores: int | None = None
) -> Launch:
    """Every tile of the output is computed from the tiles along an outer axis, by one core."""
    outputs = tiles_of(out)
    share = max(div_up(tiles_of(source), outputs), 1)
    operands = Operands([(source, 1.0)], [(out, 1.0 / share)], cycles, steps=outputs * share, largest_share=share)
    return operands_launch(program, family, operands, board, cores=cores)


@times(FAST_REDUCE, "FastReduceNC", family=FAMILY)
def fast_reduce(run: ProgramRun) -> Launch:
    source = run.inputs[0]
    cycles = combine_cycles(2 * bytes_of_tile(source))
    return outer_launch(FAST_REDUCE, FAMILY, source, run.outputs[0], cycles, run.board, cores=run.cores)


@prices("ttnn::prim::fast_reduce_nc")
def fast_reduce_operation(call: Call) -> Sequence[Launch]:
    source = call.tensors[0]
    cycles = combine_cycles(2 * bytes_of_tile(source))
    return [outer_launch(FAST_REDUCE, FAMILY, source, call.outputs[0], cycles, call.board)]


@prices("ttnn::prim::prod_nc")
def product_operation(call: Call) -> Sequence[Launch]:
    source = call.tensors[0]
    cycles = combine_cycles(2 * bytes_of_tile(source), 4)
    return [outer_launch("ProdNcDeviceOperation", FAMILY, source, call.outputs[0], cycles, call.board)]


@prices("ttnn::prim::prod_all")
def whole_product_operation(call: Call) -> Sequence[Launch]:
    """One core multiplies all tiles."""
    source, out = call.tensors[0], call.outputs[0]
    cycles = combine_cycles(2 * bytes_of_tile(source), 4)
    tiles = tiles_of(source)
    operands = Operands([(source, 1.0)], [(out, 1.0 / tiles)], cycles, steps=tiles, largest_share=tiles)
    return [operands_launch("ProdAllDeviceOperation", FAMILY, operands, call.board, cores=1)]


@prices("ttnn::prim::welford_reduce")
def variance_operation(call: Call) -> Sequence[Launch]:
    source, out = call.tensors[0], call.outputs[0]
    axis = str(call.arguments.get("axis") or _reduced_axis(source, out))
    cycles = copy_cycles(bytes_of_tile(source), source.dtype) + WELFORD_CYCLES
    launch = reduce_launch(source, out, axis, cycles, call.board, cores=None if axis != "HW" else 1)
    return [_named(launch, WELFORD)]


def _named(launch: Launch, program: str) -> Launch:
    return Launch(
        program,
        launch.family,
        launch.cores,
        launch.kernel_ns,
        launch.bound,
        launch.compute_ns,
        launch.data_ns,
        launch.flops,
        launch.dram_bytes,
    )


# -- running totals ---------------------------------------------------------------------------------------------------


# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/reduction/accumulation/device/kernels/compute/accumulation_compute.cpp,
# dfb_acc_obj: the running total goes through a circular buffer, so that no two tiles overlap
def scan_launch(
    source: Spec, out: Spec, length: int, board: Board, *, product: bool = False, cores: int | None = None
) -> Launch:
    """Running totals along an axis of `length` tiles: every line of tiles is one core's."""
    arch, chip = board.arch, CHIPS[board.arch]
    size = bytes_of_tile(source)
    kind = "mul" if product else "add"
    cycles = 2 * copy_cycles(size, source.dtype) + pack_cycles(size, chip)
    cycles += binary_cycles(kind, arch, source.dtype, fp32_dest=source.dtype in WIDE)
    operands = Operands([(source, 1.0)], [(out, 1.0)], cycles, steps=tiles_of(source), largest_share=length)
    return operands_launch(ACCUMULATION, SCAN_FAMILY, operands, board, cores=cores)


@times(ACCUMULATION, "CumSumDeviceOperation", family=SCAN_FAMILY)
def scan(run: ProgramRun) -> Launch:
    """The library moves the axis to the front before it adds along it."""
    source = run.inputs[0]
    length = source.shape[0] if len(source.shape) > 2 else 1
    return scan_launch(source, run.outputs[0], length, run.board, cores=run.cores)


@prices("ttnn.prim.accumulation")
def scan_operation(call: Call) -> Sequence[Launch]:
    source = call.tensors[0]
    dim = int(call.arguments.get("dim", 0))
    sizes = source.padded_shape
    length = sizes[dim] if dim - len(sizes) < -2 or dim < -2 else div_up(sizes[dim], TILE)
    product = bool(call.arguments.get("product"))
    return [scan_launch(source, call.outputs[0], max(length, 1), call.board, product=product)]


# -- moreh ------------------------------------------------------------------------------------------------------------

REDUCING = {
    "ttnn.prim.moreh_sum": "MorehSumOperation",
    "ttnn.prim.moreh_mean": "MorehMeanOperation",
    "ttnn.prim.moreh_norm": "MorehNormOperation",
    "ttnn.prim.moreh_clip_grad_norm_step1": "MorehClipGradNormStep1Operation",
    "ttnn.prim.moreh_clip_grad_norm_step2": "MorehClipGradNormStep2Operation",
    "ttnn.moreh_dot": "MorehDotOperation",
    "ttnn.moreh_linear_backward": "MorehBiasAddBackwardOperation",
}
SPREADING = {
    "ttnn.moreh_sum_backward": "MorehSumBackwardOperation",
    "ttnn.moreh_mean_backward": "MorehMeanBackwardOperation",
    "ttnn.moreh_norm_backward": "MorehNormBackwardOperation",
    "ttnn.moreh_abs_pow": "MorehAbsPowOperation",
    "ttnn.prim.moreh_clip_grad_norm_step3": "MorehClipGradNormStep3Operation",
    "ttnn.moreh_dot_backward": "MorehDotBackwardOperation",
}
POWER_FUNCTIONS = ("abs", "log", "exp", "recip")  # a power by logarithms: x^p = exp(p log |x|)


def _power_cycles(call: Call) -> float:
    if not any(word in call.name for word in ("norm", "pow")):
        return 0.0
    return sum([unary_cycles(each, call.board.arch) + HANDOVER_CYCLES for each in POWER_FUNCTIONS])


@prices(*REDUCING)
def reducing_operation(call: Call) -> Sequence[Launch]:
    source, out = call.tensors[0], call.outputs[0]
    cycles = combine_cycles(2 * bytes_of_tile(source), 4) + _power_cycles(call)
    return [outer_launch(REDUCING[call.name], MOREH_FAMILY, source, out, cycles, call.board)]


@prices(*SPREADING)
def spreading_operation(call: Call) -> Sequence[Launch]:
    out = call.outputs[0]
    tiles = tiles_of(out)
    taken = [spec for name, spec in call.inputs if name not in ("input_grad", "other_grad", "output")]
    cycles = combine_cycles(2 * bytes_of_tile(out), 4) + _power_cycles(call)
    reads = [(spec, min(tiles_of(spec) / tiles, 1.0)) for spec in taken]
    operands = Operands(reads, [(spec, 1.0) for spec in call.outputs], cycles, one_by_one=True)
    return [operands_launch(SPREADING[call.name], MOREH_FAMILY, operands, call.board)]


@prices("ttnn.moreh_matmul")
def moreh_product(call: Call) -> Sequence[Launch]:
    """Every tile of the output reads its row and its column of tiles again."""
    a, b = call.tensors[:2]
    out = call.outputs[0]
    inner = max(div_up(a.padded_shape[-2 if call.arguments.get("transpose_input") else -1], TILE), 1)
    size = bytes_of_tile(a)
    cycles = FIDELITY_CYCLES[MathFidelity.HiFi4] + size / CHIPS[call.board.arch].unpack_bytes_per_cycle
    reads, writes = [(a, 1.0), (b, 1.0)], [(out, 1.0 / inner)]
    operands = Operands(reads, writes, cycles, steps=tiles_of(out) * inner, largest_share=inner, one_by_one=True)
    return [operands_launch("MorehMatmulOperation", MOREH_FAMILY, operands, call.board)]


# Readers look up the class of every sample themselves.
LOSSES = {
    "ttnn.prim.moreh_nll_loss_step1": "MorehNllLossStep1DeviceOperation",
    "ttnn.prim.moreh_nll_loss_step2": "MorehNllLossStep2DeviceOperation",
    "ttnn.moreh_nll_loss_backward": "MorehNllLossBackwardDeviceOperation",
    "ttnn.moreh_nll_loss_unreduced_backward": "MorehNllLossUnreducedBackwardDeviceOperation",
}
LOOKUP_CYCLES = 30.0  # per value: a load, address arithmetic, a load and a store by the reader


@prices(*LOSSES)
def loss_operation(call: Call) -> Sequence[Launch]:
    out = call.outputs[0]
    tiles = tiles_of(out)
    cycles = LOOKUP_CYCLES * TILE * TILE
    reads = [(spec, min(tiles_of(spec) / tiles, 1.0)) for spec in call.tensors]
    operands = Operands(reads, [(out, 1.0)], cycles, one_by_one=True)
    return [operands_launch(LOSSES[call.name], MOREH_FAMILY, operands, call.board)]
