"""PM IDEAL, PM COMPUTE and PM BANDWIDTH: what the library itself calls ideal for a program, by its own formulas.

They are no predictions: the library compares measured times with them. Programs for which the library has no formula
get its default of 1 ns. Its formulas of collectives are not repeated here; they get the formula of plain programs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ttnn_emulator.enums import Arch, BufferType, DataType, MathFidelity, TensorMemoryLayout
from ttnn_emulator.hardware.boards import Board
from ttnn_emulator.tensors.spec import ROW_MAJOR_BYTES, Spec
from ttnn_emulator.timing.families.convolution.plans import Planned as PlannedConvolution
from ttnn_emulator.timing.launches import Launch

# tt-metal v0.77.0: ttnn/core/operation.cpp, OpPerformanceModelGeneral, peak_dram_bw. It has no value for Grayskull;
# earlier releases took 96 for it.
PEAK_DRAM_GB = {Arch.WORMHOLE_B0: 258.0, Arch.BLACKHOLE: 512.0, Arch.GRAYSKULL: 96.0}
GIB = 1 << 30  # the formula divides by this for GB
# tt-metal v0.77.0: ttnn/api/ttnn/operation.hpp, fidelity_multiplier
FIDELITY_MULTIPLIER = {MathFidelity.LoFi: 1, MathFidelity.HiFi2: 2, MathFidelity.HiFi3: 3, MathFidelity.HiFi4: 4}
# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/matmul/device/matmul_device_operation.cpp, tensix_mul_adds_per_cycle_lofi
MUL_ADDS_PER_CYCLE = 4096
# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/pool/generic/device/pool_op.cpp, tensix_mul_adds_per_cycle_lofi
POOL_OPERATIONS_PER_CYCLE = 2048
# The library's size of an element; of block floats it does not count the exponents, and takes a byte for both.
# tt-metal v0.77.0: ttnn/core/tensor/tensor.cpp, element_size
ELEMENT_BYTES = {**ROW_MAJOR_BYTES, DataType.BFLOAT8_B: 1, DataType.BFLOAT4_B: 1}


@dataclass(frozen=True, slots=True)
class Ideal:
    """The library's ideal times of a program in nanoseconds, and the bandwidths that they would need in GB/s."""

    ideal_ns: int = 1
    compute_ns: int = 1
    bandwidth_ns: int = 1
    input_bandwidths: tuple[float, ...] = ()
    output_bandwidths: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Modelled:
    """A program as the formulas see it."""

    inputs: Sequence[Spec]
    outputs: Sequence[Spec]
    launch: Launch
    board: Board
    fidelity: MathFidelity | None
    arguments: Mapping[str, Any]


NO_FORMULA = Ideal()


def ideal_of(program: Modelled) -> Ideal:
    """The library's ideal times of a program."""
    formula = _FORMULAS.get(program.launch.program)
    if formula is None or not program.inputs or not program.outputs:
        return NO_FORMULA
    cycles = formula(program)
    return NO_FORMULA if cycles is None else _from_cycles(cycles, program)


def _from_cycles(cycles: int, program: Modelled) -> Ideal:
    """tt-metal v0.77.0: ttnn/core/operation.cpp, OpPerformanceModelGeneral."""
    compute = math.ceil(cycles / program.board.clock_ghz)
    peak = PEAK_DRAM_GB[program.board.arch]
    bandwidth = 1
    for spec in (*program.inputs, *program.outputs):
        if _in_dram(spec):
            bandwidth = max(bandwidth, int(_bytes(spec) / peak / GIB * 1e9))
    ideal = max(compute, bandwidth)
    return Ideal(
        ideal,
        compute,
        bandwidth,
        tuple(_bytes(spec) / ideal for spec in program.inputs),
        tuple(_bytes(spec) / ideal for spec in program.outputs),
    )


def _bytes(spec: Spec) -> int:
    return math.prod(spec.physical_shape) * ELEMENT_BYTES[spec.dtype]


def _in_dram(spec: Spec) -> bool:
    return spec.memory_config.buffer_type is BufferType.DRAM


# -- products ---------------------------------------------------------------------------------------------------------


def _products(mul_adds: float, program: Modelled) -> int | None:
    if program.fidelity is None:
        return None
    share = mul_adds / (program.board.cores * MUL_ADDS_PER_CYCLE)
    return math.ceil(share * FIDELITY_MULTIPLIER[program.fidelity])


def _matmul(program: Modelled) -> int | None:
    a, out = program.inputs[0].shape, program.outputs[0].shape
    return _products(2 * a[-1] * math.prod(out), program)


def _attention(program: Modelled) -> int | None:
    """tt-metal v0.77.0: ttnn/cpp/ttnn/operations/transformer/sdpa/device/sdpa_perf_model.cpp."""
    if len(program.inputs) < 3:
        return None
    q, k, v = (spec.shape for spec in program.inputs[:3])
    if not len(q) == len(k) == len(v) == 4:
        return None
    pairs = q[2] * k[2] / (2 if program.arguments.get("is_causal") else 1)
    return _products(2 * pairs * (q[3] + v[3]) * q[1] * q[0], program)


def _convolution(program: Modelled) -> int | None:
    planned = program.launch.settings
    if not isinstance(planned, PlannedConvolution):
        return None
    problem = planned.problem
    window = problem.window
    mul_adds = 2 * problem.in_channels * math.prod(window.kernel) * window.rows * problem.out_channels
    return _products(mul_adds, program)


def _pool(program: Modelled) -> int | None:
    pooled = program.launch.settings
    if pooled is None:
        return None
    operations = math.prod(pooled.window.kernel) * pooled.window.rows * program.inputs[0].shape[-1]
    return math.ceil(operations / (program.launch.cores * POOL_OPERATIONS_PER_CYCLE))


# -- moving tensors ---------------------------------------------------------------------------------------------------

# Measured bandwidths by transaction size, GB/s on Wormhole and Blackhole, for 16, 32, 64 … 65536 bytes.
# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/data_movement/common/common.cpp, noc_dram_bw, noc_l1_read_bw,
# noc_l1_write_bw, noc_l1_local_bw
SIZES = tuple(16 << step for step in range(13))
DRAM = (
    (0.436, 0.868, 1.736, 3.489, 6.975, 13.889, 27.891, 28.411, 28.227, 28.537, 27.831, 27.758, 28.694),
    (0.387, 0.772, 1.545, 3.088, 6.176, 12.361, 24.71, 49.164, 50.238, 50.393, 50.636, 50.695, 50.626),
)
L1_READ = (
    (0.868, 1.724, 3.477, 6.885, 13.794, 27.143, 28.976, 29.742, 29.544, 28.728, 28.7, 28.618, 28.7),
    (0.671, 1.336, 2.673, 5.354, 10.691, 21.382, 42.771, 47.977, 49.34, 49.961, 50.287, 50.335, 50.403),
)
L1_WRITE = (
    (0.681, 1.254, 2.709, 5.417, 10.823, 21.668, 27.837, 27.811, 27.811, 27.808, 27.808, 27.811, 28.808),
    (0.511, 1.018, 2.036, 4.072, 8.143, 16.284, 32.593, 48.644, 49.828, 50.219, 50.578, 50.412, 50.383),
)
LOCAL = (
    (0.868, 1.724, 3.477, 6.899, 13.791, 27.594, 27.696, 27.911, 27.811, 27.808, 27.814, 27.805, 27.84),
    (0.671, 1.337, 2.675, 5.354, 10.708, 21.413, 42.792, 46.455, 48.5, 49.639, 50.171, 50.123, 50.21),
)
# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/data_movement/common/common.cpp, get_cycles_for_transaction_size
LATENCY_CYCLES = {"dram": (358, 529), "local": (56, 88), "write": (256, 404), "read": (259, 403)}
FREQUENCY_GHZ = (1.0, 1.2)
# the same file, get_effective_l1_cores and get_effective_dram_cores
LINK_GB = (32.0, 50.0)
DRAM_AGGREGATE_GB = 265
LARGEST_TRANSACTION = 2048  # of sticks that are gathered; common_tm_bw_model, max_transaction_size


def _is_blackhole(board: Board) -> int:
    """The column of the tables; Grayskull has none of its own."""
    return int(board.arch is Arch.BLACKHOLE)


@dataclass(frozen=True, slots=True)
class _Side:
    """The reads of the input, or the writes of the output."""

    spec: Spec
    size: int  # bytes of a transaction
    count: int
    in_dram: bool
    is_write: bool
    column: int

    def bandwidth(self, *, local: bool = False) -> float:
        table = DRAM if self.in_dram else LOCAL if local else L1_WRITE if self.is_write else L1_READ
        size = max(self.size, 16)
        lower, upper = 1 << (size.bit_length() - 1), 1 << (size - 1).bit_length()
        nearest = lower if size - lower < upper - size else upper
        number = min(max(nearest.bit_length() - 5, 0), len(SIZES) - 1)
        return table[self.column][number]

    def effective_cores(self, board: Board) -> int:
        """Cores that saturate the memory."""
        if self.in_dram:
            wanted = math.ceil(DRAM_AGGREGATE_GB / self.bandwidth())
        else:
            wanted = math.ceil(LINK_GB[self.column] * sum(board.grid) / self.bandwidth())
        return min(wanted, board.cores)

    def cycles(self, cores: int, *, local: bool) -> int:
        """Cycles of a core that has its share of the transactions."""
        count, size = math.ceil(self.count / cores), max(self.size, 16)
        moved = math.ceil(count * size * FREQUENCY_GHZ[self.column] / self.bandwidth(local=local))
        return moved + (LATENCY_CYCLES["local"][self.column] if local and not self.in_dram else self.latency)

    @property
    def latency(self) -> int:
        kind = "dram" if self.in_dram else "write" if self.is_write else "read"
        return LATENCY_CYCLES[kind][self.column]


def _side(spec: Spec, shape: Sequence[int], element: int, board: Board, *, is_write: bool, size: int = 0) -> _Side:
    size = size or _transaction(spec, shape, element)
    total = math.prod(shape) * element
    return _Side(spec, size, math.ceil(total / size), _in_dram(spec), is_write, _is_blackhole(board))


def _transaction(spec: Spec, shape: Sequence[int], element: int) -> int:
    if spec.is_tile:
        return spec.tile.height * spec.tile.width * element
    shards = spec.shard_spec
    if shards is None:
        return shape[-1] * element
    row = shards.shape[1] * element
    if not _in_dram(spec) and spec.memory_config.memory_layout is TensorMemoryLayout.HEIGHT_SHARDED:
        return min(shards.shape[0] * row, LARGEST_TRANSACTION)
    return row


def moving_cycles(
    source: Spec,
    out: Spec,
    board: Board,
    *,
    output_only: bool = False,
    compute_cycles: int = 0,
    per_faceline: bool = False,
    splits: bool = False,
) -> int:
    """tt-metal v0.77.0: ttnn/cpp/ttnn/operations/data_movement/common/common.cpp, common_tm_bw_model."""
    element = ELEMENT_BYTES[source.dtype]
    in_shape = source.padded_shape
    out_shape = in_shape if splits else out.padded_shape
    read = _side(source, in_shape, element, board, is_write=False)
    write = _side(out, out_shape, element, board, is_write=True)
    rows_change = in_shape[-1] == out_shape[-1] and in_shape[-2:-1] != out_shape[-2:-1]
    if per_faceline and out.is_tile and rows_change:
        write = _side(out, out.shape, element, board, is_write=True, size=source.tile.width // 2 * element)
    cores = _cores(read, write, board)
    totals = [(read.cycles(cores, local=False), write.cycles(cores, local=False))]
    if _same_cores(source, out) and out.shard_spec is not None:
        own = out.shard_spec.num_cores()
        totals = [(read.cycles(own, local=True), write.cycles(own, local=True)), *(totals if cores > own else [])]
    if output_only:
        moved = min(writing for _, writing in totals)
    elif read.in_dram and write.in_dram:
        moved = totals[0][0] + totals[0][1] - write.latency
    else:
        moved = min(max(each) for each in totals)
    return max(moved, math.ceil(compute_cycles / min(board.cores, max(read.count, write.count, 1))))


def _same_cores(source: Spec, out: Spec) -> bool:
    one, other = source.shard_spec, out.shard_spec
    in_l1 = not _in_dram(source) and not _in_dram(out)
    return in_l1 and one is not None and other is not None and one.grid == other.grid


def _cores(read: _Side, write: _Side, board: Board) -> int:
    """Cores beyond which the memory is saturated."""
    reading, writing = read.effective_cores(board), write.effective_cores(board)
    if read.in_dram == write.in_dram:
        reading, writing = min(reading, read.count), min(writing, write.count)
        is_written_longer = math.ceil(read.count / reading) < math.ceil(write.count / writing)
        return writing if is_written_longer else reading
    if read.in_dram:
        updated = math.ceil(read.count / reading)
        return writing if updated < write.count // writing else reading
    updated = math.ceil(write.count / writing)
    return reading if updated < read.count // reading else writing


def _moves(
    *, output_only: bool = False, per_faceline: bool = False, splits: bool = False
) -> Callable[[Modelled], int | None]:
    def formula(program: Modelled) -> int | None:
        if program.board.arch is Arch.GRAYSKULL:
            return None
        return moving_cycles(
            program.inputs[0],
            program.outputs[0],
            program.board,
            output_only=output_only,
            per_faceline=per_faceline,
            splits=splits,
        )

    return formula


# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/data_movement/untilize/device/untilize_device_operation.cpp,
# latency_untilize, latency_pack_untilize, max_tiles_per_row
UNTILIZE_CYCLES, PACK_UNTILIZE_CYCLES, PACKED_TILES = 390, 80, 8


def _untilize(program: Modelled) -> int | None:
    source, out = program.inputs[0], program.outputs[0]
    if program.board.arch is Arch.GRAYSKULL or not source.is_tile:
        return None
    area = source.tile.height * source.tile.width
    # The formula divides the number of values by the bytes of a tile.
    tiles = math.ceil(math.prod(source.physical_shape) / (area * ELEMENT_BYTES[source.dtype]))
    wide = math.ceil(source.padded_shape[-1] / source.tile.width)
    each = PACK_UNTILIZE_CYCLES if wide <= PACKED_TILES else UNTILIZE_CYCLES
    return moving_cycles(source, out, program.board, compute_cycles=tiles * each)


def _bandwidth_only(program: Modelled) -> int:
    return 1


_MOVING = _moves()
_FORMULAS: dict[str, Callable[[Modelled], int | None]] = {
    "MatmulDeviceOperation": _matmul,
    "Conv2dDeviceOperation": _convolution,
    "Pool2D": _pool,
    "SDPAOperation": _attention,
    "SplitDeviceOperation": _moves(splits=True),
    "SliceDeviceOperation": _moves(output_only=True),
    "PermuteDeviceOperation": _moves(per_faceline=True),
    "UntilizeDeviceOperation": _untilize,
    "UntilizeWithUnpaddingDeviceOperation": _untilize,
    **dict.fromkeys(
        (
            "CloneOperation",
            "FillRMDeviceOperation",
            "GatherDeviceOperation",
            "MoveDeviceOperation",
            "RepeatDeviceOperation",
            "RollDeviceOperation",
            "ScatterDeviceOperation",
            "TransposeDeviceOperation",
            "SoftmaxDeviceOperation",
        ),
        _MOVING,
    ),
    # Programs that take a list of tensors and have no formula of their own, or one that the library cannot call.
    **dict.fromkeys(("ConcatDeviceOperation", "SparseMatmulDeviceOperation", "MinimalMatmulOp"), _bandwidth_only),
}
