"""Sorting, top-k, arguments of extremes, and sampling."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ttnn_emulator.enums import Arch
from ttnn_emulator.hardware.boards import Board
from ttnn_emulator.tensors.shapes import div_up
from ttnn_emulator.tensors.spec import ROW_MAJOR_BYTES, Spec
from ttnn_emulator.timing.calls import Call, prices
from ttnn_emulator.timing.chips import CHIPS
from ttnn_emulator.timing.launches import Bound, Launch
from ttnn_emulator.timing.programs import ProgramRun, times
from ttnn_emulator.timing.tile_by_tile import COSTS, bytes_of_tile

FAMILY = "ordering"
TILE = 32
# tt-metal v0.77.0: tt_metal/tt-llk/tt_llk_wormhole_b0/common/inc/sfpu/ckernel_sfpu_topk.h, counted: the local sort of
# 64 values per row takes 3,560 cycles, a merge of two sorted tiles and its rebuild 1,140; transposing, copying and
# packing values and indices come on top
SORT_CYCLES = 4600.0
MERGE_CYCLES = 2000.0  # fit: 180 microseconds for 16,032 values on Wormhole
# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/reduction/topk/device/topk_constants.hpp, multi_core_min_width
MULTI_CORE_WIDTH = 8192
MOST_LOCAL_CORES = 64
SAMPLING_NS = 36000.0  # fit: softmax, running sums and the choice among k values per user
# A loop of the data-movement core per value: load, convert, compare, branch.
COMPARE_CYCLES = {Arch.WORMHOLE_B0: 12.0, Arch.BLACKHOLE: 8.0, Arch.GRAYSKULL: 12.0}


def _matrix(spec: Spec) -> tuple[int, int]:
    """Rows and columns of tiles, with all leading dimensions in the rows."""
    width = spec.padded_shape[-1] if spec.padded_shape else 1
    rows = max(math.prod(spec.padded_shape) // max(width, 1), 1)
    return div_up(rows, TILE), div_up(width, TILE)


def _launch(
    program: str, cores: int, compute_ns: float, data_ns: float, board: Board, dram_bytes: float = 0.0
) -> Launch:
    costs = COSTS[board.arch]
    start = costs.start_ns + costs.start_per_core_ns * cores + costs.dataflow_ns
    total = start + max(compute_ns, data_ns) + costs.dram.latency_ns
    bound = Bound.COMPUTE if compute_ns >= data_ns else Bound.LATENCY
    return Launch(program, FAMILY, cores, total, bound, compute_ns, data_ns, dram_bytes=dram_bytes)


def _read_ns(spec: Spec, tiles: float, board: Board) -> float:
    costs = COSTS[board.arch]
    path = costs.l1 if spec.memory_config.is_l1 else costs.dram
    return tiles * (path.latency_ns + bytes_of_tile(spec) / path.bytes_per_ns)


# -- top-k and sort ---------------------------------------------------------------------------------------------------


def topk_launch(source: Spec, k: int, board: Board, program: str = "TopKDeviceOperation") -> Launch:
    """The k largest of every row, with their indices."""
    chip = CHIPS[board.arch]
    rows, columns = _matrix(source)
    kept = max(div_up(k, TILE), 1)
    width = source.padded_shape[-1] if source.padded_shape else 1
    most = min(MOST_LOCAL_CORES, 1 << (board.cores.bit_length() - 1))
    if width >= MULTI_CORE_WIDTH and kept <= 2 and columns >= most:
        share = div_up(columns, most)
        local = share / 2 * SORT_CYCLES + max(share / 2 - 1, 0) * MERGE_CYCLES * kept
        cycles = rows * (local + (most - 1) * MERGE_CYCLES * kept)
        return _launch(program, most + 1, chip.ns(cycles), _read_ns(source, rows * share, board), board)
    cores = min(rows, board.cores)
    share = div_up(rows, cores)
    cycles = share * max(columns - 1, 1) * kept * SORT_CYCLES
    return _launch(program, cores, chip.ns(cycles), _read_ns(source, share * columns, board), board)


@times("TopKDeviceOperation", "TopK", family=FAMILY)
def topk(run: ProgramRun) -> Launch:
    out = run.outputs[0]
    return topk_launch(run.inputs[0], out.shape[-1] if out.shape else 1, run.board)


@prices("ttnn.prim.topk", "ttnn.experimental.topk_large_indices")
def topk_operation(call: Call) -> Sequence[Launch]:
    large = call.name.endswith("large_indices")
    program = "TopkLargeIndicesDeviceOperation" if large else "TopKDeviceOperation"
    return [topk_launch(call.tensors[0], int(call.arguments.get("k", 32)), call.board, program)]


def sort_launch(source: Spec, board: Board) -> Launch:
    """A bitonic sort of every row of tiles: pairs of tiles are sorted, then merged in nested rounds."""
    chip = CHIPS[board.arch]
    rows, columns = _matrix(source)
    rounds = max(math.ceil(math.log2(max(columns, 2))), 1)
    pairs = max(columns // 2, 1)
    cycles = rows * pairs * (SORT_CYCLES + rounds * (rounds - 1) / 2 * (MERGE_CYCLES + SORT_CYCLES) / 2)
    cores = min(rows if columns <= 64 else rows * div_up(columns, 64), board.cores)
    data = _read_ns(source, div_up(rows * columns, cores) * max(rounds if columns > 64 else 1, 1), board)
    return _launch("SortDeviceOperation", cores, chip.ns(cycles / cores), data, board)


@times("SortDeviceOperation", family=FAMILY)
def sort(run: ProgramRun) -> Launch:
    return sort_launch(run.inputs[0], run.board)


@prices("ttnn.prim.sort")
def sort_operation(call: Call) -> Sequence[Launch]:
    return [sort_launch(call.tensors[0], call.board)]


@prices("ttnn.sampling")
def sampling_operation(call: Call) -> Sequence[Launch]:
    """One core per user: top-k of its row, softmax, and a loop over the candidates."""
    source = call.tensors[0]
    board = call.board
    rows, columns = _matrix(source)
    cores = min(rows * TILE, board.cores)
    compute = SAMPLING_NS + CHIPS[board.arch].ns(max(columns - 1, 0) * SORT_CYCLES)
    return [_launch("SamplingDeviceOperation", cores, compute, _read_ns(source, columns, board), board)]


# -- by data-movement cores -------------------------------------------------------------------------------------------


def loop_launch(
    program: str,
    source: Spec,
    values: float,
    cycles_per_value: float,
    board: Board,
    *,
    cores: int = 1,
    rows: float = 1.0,
) -> Launch:
    """A loop over values by data-movement cores, which read a row at a time and wait for it."""
    costs, chip = COSTS[board.arch], CHIPS[board.arch]
    path = costs.l1 if source.memory_config.is_l1 else costs.dram
    size = ROW_MAJOR_BYTES.get(source.dtype, 2)
    reads = 0.0 if source.is_sharded else rows * path.latency_ns + values * size / path.bytes_per_ns
    loop = chip.ns(values * cycles_per_value)
    start = costs.start_ns + costs.start_per_core_ns * cores
    dram = 0.0 if source.memory_config.is_l1 else values * size * cores
    bound = Bound.COMPUTE if loop >= reads else Bound.LATENCY
    return Launch(program, FAMILY, cores, start + loop + reads, bound, loop, reads, dram_bytes=dram)


@times("ArgMaxDeviceOperation", "ArgMax", family=FAMILY)
def argmax(run: ProgramRun) -> Launch:
    return argmax_launch(run.inputs[0], run.board, cores=run.cores)


def argmax_launch(source: Spec, board: Board, *, cores: int | None = None) -> Launch:
    """Rows of tiles are divided among cores; the parts of a long row-major row are, too."""
    values = max(source.volume, 1)
    rows, columns = _matrix(source)
    used = cores or (min(rows, board.cores) if source.is_tile else min(div_up(values, 1024), board.cores))
    share = div_up(values, used)
    cycles = COMPARE_CYCLES[board.arch]
    return loop_launch(
        "ArgMaxDeviceOperation", source, share, cycles, board, cores=used, rows=div_up(rows * columns, used)
    )


@prices("ttnn.prim.argmax")
def argmax_operation(call: Call) -> Sequence[Launch]:
    return [argmax_launch(call.tensors[0], call.board)]
