"""Recurrences: every core processes a sequence step by step."""

from __future__ import annotations

from collections.abc import Sequence

from ttnn_emulator.enums import MathFidelity
from ttnn_emulator.tensors.shapes import TILE_SIZE, div_up
from ttnn_emulator.timing.calls import Call, prices
from ttnn_emulator.timing.chips import FIDELITY_CYCLES
from ttnn_emulator.timing.families.matmul.matmul import KERNEL
from ttnn_emulator.timing.launches import Launch
from ttnn_emulator.timing.movement import (
    NO_TRAFFIC,
    Stages,
    kernels_of,
    moved,
    planned_run,
    read_traffic,
    reads,
    shard_cores,
    tile_size,
    tiles_of,
    write_traffic,
    writes,
)
from ttnn_emulator.timing.tile_kernels import HANDOVER_CYCLES, STEP_CYCLES, combine_cycles, copy_cycles, pack_cycles

FAMILY = "recurrence"
# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/reduction/accumulation/ema/kernels/compute/ema_compute.cpp, kernel_main:
# a multiply-add of the vector unit per column
COLUMN_CYCLES = 12.0


@prices("ttnn.ema")
def average(call: Call) -> Sequence[Launch]:
    """Channels are divided among cores in tiles; a tile's columns follow each other."""
    source, out = call.tensors[0], call.outputs[0]
    run = planned_run(call, "EmaDeviceOperation", (source,))
    kernels, size = kernels_of(run), tile_size(source)
    across = div_up(source.padded_shape[-1], TILE_SIZE)
    rows = max(tiles_of(source) // across, 1)
    cores = min(rows, call.board.cores)
    cycles = 2 * copy_cycles(size, source.dtype) + TILE_SIZE * COLUMN_CYCLES + pack_cycles(size, run.chip)
    stages = Stages(
        div_up(rows, cores) * across,
        reads(kernels, source).ns(size),
        run.chip.ns(cycles + HANDOVER_CYCLES),
        writes(kernels, out).ns(size),
    )
    traffic = read_traffic(source, rows * across, size) + write_traffic(out, rows * across, size)
    return [moved(run, FAMILY, cores, stages, traffic)]


@prices("ttnn.prim.prefix_scan")
def states(call: Call) -> Sequence[Launch]:
    """Every core has its columns in L1, and multiplies and adds row after row."""
    a = call.tensors[0]
    run = planned_run(call, "PrefixScanDeviceOperation", call.tensors)
    cores = shard_cores(a) or 1
    size = tile_size(a)
    tiles = div_up(tiles_of(a), cores)
    row = 2 * (combine_cycles(2 * size, 4) + pack_cycles(size, run.chip) + HANDOVER_CYCLES)
    # A group of tiles is untilized, processed row by row, and tilized.
    compute = run.chip.ns(row + 3 * (copy_cycles(size, a.dtype) + pack_cycles(size, run.chip)))
    return [moved(run, FAMILY, cores, Stages(tiles, 0.0, compute), NO_TRAFFIC)]


@prices("ttnn.experimental.hc_sum_reduce")
def sums(call: Call) -> Sequence[Launch]:
    """Sums of 32 columns: tiles are reduced and transposed, by columns of tiles."""
    source, out = call.tensors[0], call.outputs[0]
    run = planned_run(call, "HcSumReduceDeviceOperation", (source,))
    kernels, size, tiles = kernels_of(run), tile_size(source), tiles_of(source)
    cores = min(max(div_up(source.padded_shape[-1], TILE_SIZE * TILE_SIZE), 1), call.board.cores)
    cycles = 2 * combine_cycles(2 * size, 4) + 2 * pack_cycles(size, run.chip) + 2 * HANDOVER_CYCLES
    stages = Stages(
        div_up(tiles, cores),
        reads(kernels, source).ns(size),
        run.chip.ns(cycles),
        writes(kernels, out).ns(tile_size(out)) / TILE_SIZE,
    )
    traffic = read_traffic(source, tiles, size) + write_traffic(out, tiles_of(out), tile_size(out))
    return [moved(run, FAMILY, cores, stages, traffic)]


# Products of square matrices of a chunk: solving for the corrections takes four, the output and the state four more.
PRODUCTS = 8


@prices("ttnn.transformer.gated_delta_attn_seq", "ttnn.prim.chunk_gdn")
def delta_rule(call: Call) -> Sequence[Launch]:
    """Every core has a head, and goes from chunk to chunk with its state."""
    first, out = call.tensors[0], call.outputs[0]
    run = planned_run(call, call.name.rpartition(".")[2], call.tensors)
    kernels, chip, kernel = kernels_of(run), run.chip, KERNEL[call.board.arch]
    state = call.outputs[-1]
    heads = max(state.volume // max(state.shape[-1] * state.shape[-2], 1), 1)
    cores = min(heads, call.board.cores)
    side = div_up(state.shape[-1], TILE_SIZE)
    high = div_up(state.shape[-2], TILE_SIZE)
    values = max(out.volume // max(heads * state.shape[-1], 1), 1)
    chunks = div_up(values, max(state.shape[-2], TILE_SIZE))
    tile = FIDELITY_CYCLES[MathFidelity.HiFi4] + kernel.call / 4
    compute = chip.ns(PRODUCTS * (side * side * high * tile + STEP_CYCLES))
    sources = call.tensors
    size = sum([spec.num_pages * spec.page_bytes for spec in sources]) / max(heads * chunks, 1)
    pages = max(sum([spec.num_pages for spec in sources]) / max(heads * chunks, 1), 1.0)
    read = reads(kernels, first).ns(size / pages, pages)
    write = writes(kernels, out).ns(out.page_bytes, max(out.num_pages / max(heads * chunks, 1), 1.0))
    traffic = write_traffic(out, out.num_pages, out.page_bytes)
    for spec in sources:
        traffic += read_traffic(spec, spec.num_pages, spec.page_bytes)
    return [moved(run, FAMILY, cores, Stages(div_up(heads, cores) * chunks, read, compute, write), traffic)]
