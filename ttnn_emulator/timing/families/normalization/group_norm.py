"""group_norm: shards whose cores exchange sums for every group, and interleaved tensors, read once per step."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ttnn_emulator.enums import Layout, MathFidelity
from ttnn_emulator.hardware.boards import Board
from ttnn_emulator.ops.normalization.group_norm_setup import dram_grid, span_of, virtual_columns
from ttnn_emulator.tensors.shapes import TILE_SIZE, div_up
from ttnn_emulator.tensors.spec import ROW_MAJOR_BYTES, Spec
from ttnn_emulator.timing.calls import Call, prices
from ttnn_emulator.timing.chips import CHIPS
from ttnn_emulator.timing.families.normalization.passes import (
    BF16_TILE,
    FLOAT32_TILE,
    PASS_CYCLES,
    SCALER_NS,
    WELFORD_CYCLES,
    Passes,
    math_settings,
    passes_of,
    weight_ns,
)
from ttnn_emulator.timing.launches import Launch
from ttnn_emulator.timing.movement import KERNELS, Stages, Traffic, is_dram, moved, shard_cores, tile_size
from ttnn_emulator.timing.programs import ProgramRun, times
from ttnn_emulator.timing.recorded_arguments import layout_of
from ttnn_emulator.timing.shards import is_local

PROGRAM, FAMILY = "GroupNormDeviceOperation", "group_norm"


@dataclass(frozen=True, slots=True)
class Groups:
    """How one core sees its groups.

    count        groups of a core, over all batches that it has rows of
    rows         rows of tiles of a group
    columns      tiles that a group spans along the channels
    all_columns  tiles of the core along the channels
    all_rows     rows of tiles of the core
    sharing      cores that have rows of the same group
    """

    count: int
    rows: int
    columns: int
    all_columns: int
    all_rows: int
    sharing: int


@dataclass(frozen=True, slots=True)
class GroupNorm:
    """What the kernel does besides normalising.

    negative   the input's other channels are kept by a second mask, in the input's own buffer
    row_major  input and output are rows, which the kernel tilizes and untilizes
    """

    weight: Spec | None
    bias: Spec | None
    negative: bool = False
    row_major_in: bool = False
    row_major_out: bool = False
    mask_bytes: float = 1088.0


# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/normalization/groupnorm/device/kernels/compute/groupnorm_sharded_v2.cpp,
# kernel_main: mask, add up, subtract the mean, mask, add up squares, scale, put in place
def tile_cycles(norm: GroupNorm, passes: Passes) -> tuple[float, int]:
    """Cycles per tile of a group, and the passes."""
    size = float(passes.middle)
    mask = norm.mask_bytes / 2
    total = 2 * passes.combined(size, mask, size, product=True)
    total += 2 * passes.combined(size, size, 0.0, product=True)
    total += passes.combined(size, size / 4, size) + passes.combined(size, size / 4, size, product=True)
    total += passes.combined(size, size, size, block=1)
    if norm.negative:
        total += passes.combined(size, mask, size, product=True, block=1)
    return total, 8 if norm.negative else 7


# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/normalization/groupnorm/device/kernels/dataflow/reader_mcast_sender_unary_sharded_gn_v2.cpp,  # noqa: E501
# kernel_main: the sums of the cores are read one after the other
def sum_exchange_ns(groups: Groups, passes: Passes, board: Board) -> float:
    """One exchange of a group's sums: a scalar per core is read with a barrier each, added, and sent to all."""
    chip, kernels = CHIPS[board.arch], KERNELS[board.arch]
    local = chip.ns(passes.summed(passes.middle) + PASS_CYCLES)
    if groups.sharing <= 1:
        return local
    read = (groups.sharing - 1) * kernels.l1_read.ns(32) + kernels.l1_read.ns(passes.middle)
    sent = chip.l1_write.latency_ns + chip.semaphore_ns
    return 2 * local + read + sent + chip.semaphore_ns


def sharded_launch(source: Spec, groups: Groups, norm: GroupNorm, passes: Passes, board: Board) -> Launch:
    """Every core normalises its part of its groups, one group after the other."""
    shard = source.shard_spec
    assert shard is not None
    chip, used = CHIPS[board.arch], shard.num_cores()
    per_tile, steps = tile_cycles(norm, replace(passes, block=min(groups.columns, passes.block)))
    tiles = groups.rows * groups.columns
    group = chip.ns(tiles * per_tile + steps * PASS_CYCLES + passes.inverse_root())
    group += 2 * sum_exchange_ns(groups, passes, board)
    held = groups.all_rows * groups.all_columns
    whole = 0.0
    for weight in (norm.weight, norm.bias):
        if weight is not None:
            size = float(passes.middle)
            whole += held * passes.combined(size, size / 2, size, product=weight is norm.weight) + PASS_CYCLES
    ends = chip.ns(whole)
    if norm.row_major_in:
        ends += _converted_ns(source, groups, passes, board)
    if norm.row_major_out:
        ends += _converted_ns(source, groups, passes, board)
    mask = groups.columns * groups.count * used
    traffic = Traffic(mask, mask * norm.mask_bytes)
    extra = ends + SCALER_NS
    run = ProgramRun(PROGRAM, (), (), used, board)
    return moved(run, FAMILY, used, Stages(groups.count, 0.0, group), traffic, extra)


def _converted_ns(source: Spec, groups: Groups, passes: Passes, board: Board) -> float:
    """Rows become tiles, or tiles rows; if rows are not whole tiles, the reader first moves them apart."""
    chip, kernels = CHIPS[board.arch], KERNELS[board.arch]
    held = groups.all_rows * groups.all_columns
    computed = chip.ns(held * passes.combined(passes.middle, 0.0, passes.middle))
    assert source.shard_spec is not None
    width = source.shard_spec.shape[1]
    if width % TILE_SIZE == 0:
        return computed
    row = width * ROW_MAJOR_BYTES[source.dtype]
    moving = groups.all_rows * (kernels.local.stream_ns(row, TILE_SIZE) + kernels.local.wait_ns(row))
    return max(computed, moving)


# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/normalization/groupnorm/device/kernels/dataflow/reader_mcast_receiver_unary_gn.cpp,  # noqa: E501
# num_reads_of_input: three reads of every tile, and one of what was written for it
def interleaved_launch(
    source: Spec, out: Spec, groups: Groups, norm: GroupNorm, passes: Passes, board: Board, *, cores: int
) -> Launch:
    """Tiles are read tile by tile in each of three steps, and the output is read back to add the next group."""
    chip, kernels = CHIPS[board.arch], KERNELS[board.arch]
    passes = replace(passes, block=min(groups.columns, passes.block))
    size = float(passes.middle)
    per_tile, steps = tile_cycles(norm, passes)
    per_tile += passes.combined(size, size / 4, size) + 2 * passes.summed(size)
    for weight in (norm.weight, norm.bias):
        if weight is not None:
            per_tile += passes.combined(size, size / 2, size, product=weight is norm.weight)
    tiles = groups.rows * groups.columns
    read = kernels.dram_read if is_dram(source) else kernels.l1_read
    back = kernels.dram_read if is_dram(out) else kernels.l1_read
    write = kernels.dram_write if is_dram(out) else kernels.l1_write
    reading = 3 * read.ns(tile_size(source)) + back.ns(tile_size(out))
    writing = write.ns(tile_size(out))
    # Blocks of rows keep the kernels apart: the compute kernel has a block when the reader has read all of it.
    per_tile_ns = max(reading, writing) + chip.ns(per_tile) / 2
    group = tiles * per_tile_ns + chip.ns(steps * PASS_CYCLES + passes.inverse_root())
    group += 2 * sum_exchange_ns(groups, passes, board)
    extra = SCALER_NS + sum(
        [weight_ns(each, groups.all_columns, groups.all_columns, board, cores) for each in (norm.weight, norm.bias)]
    )
    pages = cores * groups.count * tiles
    traffic = Traffic(
        pages * (3 * is_dram(source) + is_dram(out)),
        pages * (3 * tile_size(source) * is_dram(source) + tile_size(out) * is_dram(out)),
        pages * tile_size(out) * is_dram(out),
    )
    run = ProgramRun(PROGRAM, (), (), cores, board)
    return moved(run, FAMILY, cores, Stages(groups.count, group, 0.0), traffic, extra)


# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/normalization/groupnorm/device/kernels/compute/welford_groupnorm.cpp, kernel_main  # noqa: E501
def welford_launch(
    source: Spec, out: Spec, groups: Groups, norm: GroupNorm, passes: Passes, board: Board, *, cores: int
) -> Launch:
    """One pass finds the statistics of all groups of a core, a second one scales: tile by tile and group by group."""
    chip, kernels = CHIPS[board.arch], KERNELS[board.arch]
    size = float(passes.middle)
    tiles = groups.all_rows * groups.all_columns
    of_tile = max(groups.count * groups.columns * groups.rows / tiles, 1.0)
    found = WELFORD_CYCLES + passes.combined(size, 0.0, size, block=1)
    group = 2 * passes.combined(size, size / 4, size, product=True, block=1)
    group += passes.combined(size, norm.mask_bytes / 2, size, product=True, block=1)
    group += passes.combined(size, size, size, block=1) + 4 * PASS_CYCLES
    scaled = of_tile * group
    for weight in (norm.weight, norm.bias):
        if weight is not None:
            scaled += passes.combined(size, size / 2, size, block=1) + PASS_CYCLES
    read = write = 0.0
    traffic = Traffic()
    if not is_local(source):
        access = kernels.dram_read if is_dram(source) else kernels.l1_read
        read = access.ns(tile_size(source))
        write = (kernels.dram_write if is_dram(out) else kernels.l1_write).ns(tile_size(out))
        pages = cores * tiles
        traffic = Traffic(
            2 * pages * is_dram(source),
            2.0 * pages * tile_size(source) * is_dram(source),
            pages * tile_size(out) * is_dram(out),
        )
    extra = SCALER_NS + groups.count * (sum_exchange_ns(groups, passes, board) + chip.ns(passes.inverse_root()))
    extra += tiles * max(read, chip.ns(found))
    run = ProgramRun(PROGRAM, (), (), cores, board)
    return moved(run, FAMILY, cores, Stages(tiles, read, chip.ns(scaled), write), traffic, extra)


# -- what a core has --------------------------------------------------------------------------------------------------


def sharded_groups(source: Spec, count: int) -> Groups:
    """The groups of a core's shard."""
    shard = source.shard_spec
    assert shard is not None
    height, width = shard.shape
    batches, channels = source.shape[0], source.padded_shape[-1]
    full = source.physical_shape[0]
    down = max(div_up(full, height), 1)
    size = max(channels // count, 1)
    own = max(width // size, 1)
    mine = max(batches // down, 1)
    rows = div_up(height, TILE_SIZE)
    return Groups(
        own * mine,
        max(rows // mine, 1),
        max(span_of(width, size) // TILE_SIZE, 1),
        div_up(width, TILE_SIZE),
        rows,
        max(down // batches, 1),
    )


def interleaved_groups(source: Spec, count: int, grid: tuple[int, int]) -> tuple[Groups, int]:
    """The groups of a core of a grid, and the cores that work."""
    channels, batches = source.padded_shape[-1], source.shape[0]
    columns = virtual_columns(grid[0], count, channels)
    down = max(grid[0] // columns * grid[1], 1)
    rows = div_up(source.physical_shape[0], TILE_SIZE)
    width, size = channels // columns, max(channels // count, 1)
    mine = max(div_up(batches, down), 1)
    own = max(width // size, 1)
    held = div_up(rows, min(down, rows))
    groups = Groups(
        own * mine,
        max(held // mine, 1),
        max(span_of(width, size) // TILE_SIZE, 1),
        div_up(width, TILE_SIZE),
        held,
        max(down // batches, 1),
    )
    return groups, columns * min(down, rows)


# -- programs of performance sheets -----------------------------------------------------------------------------------

_GRID = re.compile(r"grid_size=\(x=(\d+)")


@times(PROGRAM, "GroupNorm", family=FAMILY)
def group_norm_row(run: ProgramRun) -> Launch:
    """The mask has a matrix per group."""
    source, out, board = run.inputs[0], run.outputs[0], run.board
    masks = [each for each in run.inputs[1:] if each.is_tile and len(each.shape) == 4 and each.shape[1] > 1]
    rows = [each for each in run.inputs[1:] if each not in masks]
    count = masks[0].shape[1] if masks else TILE_SIZE
    weight, bias = [*rows, None, None][:2]
    norm = GroupNorm(
        weight,
        bias,
        len(masks) > 1,
        not source.is_tile,
        not out.is_tile,
        mask_bytes=float(tile_size(masks[0])) if masks else 1088.0,
    )
    passes = passes_of(board, run.fidelity or MathFidelity.HiFi4, fp32=False, approximate=True)
    if is_local(source):
        return sharded_launch(source, sharded_groups(source, count), norm, passes, board)
    found = _GRID.search(run.attributes)
    columns = int(found[1]) if found and run.cores % int(found[1]) == 0 else 1
    groups, _ = interleaved_groups(source, count, (columns, run.cores // columns))
    return interleaved_launch(source, out, groups, norm, passes, board, cores=run.cores)


# -- operations -------------------------------------------------------------------------------------------------------


@prices("ttnn.group_norm")
def group_norm(call: Call) -> Sequence[Launch]:
    source, out, arguments, board = call.tensors[0], call.outputs[0], call.arguments, call.board
    if not source.volume:
        return []
    count = int(arguments["num_groups"])
    welford = bool(arguments.get("use_welford")) and source.shape[2] % TILE_SIZE == 0
    wide = welford or tile_size(source) == FLOAT32_TILE
    settings = math_settings(arguments.get("compute_kernel_config"), MathFidelity.HiFi4, fp32=wide, approximate=True)
    passes = passes_of(
        board, settings.fidelity, fp32=settings.fp32, approximate=settings.approximate, middle=tile_size(source)
    )
    mask = call.tensor("input_mask")
    target = layout_of(arguments.get("output_layout"), out.layout)
    norm = GroupNorm(
        call.tensor("weight"),
        call.tensor("bias"),
        call.tensor("negative_mask") is not None,
        source.layout is Layout.ROW_MAJOR,
        target is Layout.ROW_MAJOR,
        float(tile_size(mask)) if mask is not None else BF16_TILE,
    )
    if is_local(source):
        groups, cores = sharded_groups(source, count), shard_cores(source)
        if welford:
            return [welford_launch(source, out, groups, norm, passes, board, cores=cores)]
        return [sharded_launch(source, groups, norm, passes, board)]
    groups, cores = interleaved_groups(source, count, _grid(call, source, count))
    if welford:
        return [welford_launch(source, out, groups, norm, passes, board, cores=cores)]
    return [interleaved_launch(source, out, groups, norm, passes, board, cores=cores)]


def _grid(call: Call, source: Spec, count: int) -> tuple[int, int]:
    """The requested grid, or the largest that fits."""
    grid = call.arguments.get("core_grid")
    if grid is not None:
        return (int(grid[0]), int(grid[1])) if isinstance(grid, list | tuple) else (grid.x, grid.y)
    rows = div_up(source.physical_shape[0], TILE_SIZE)
    found = dram_grid(*call.board.grid, source.padded_shape[3], count, rows, source.padded_shape[0])
    return (1, 1) if found is None else (found.x, found.y)
