"""Rotary position embeddings."""

from __future__ import annotations

from collections.abc import Sequence

from ttnn_emulator.enums import MathFidelity
from ttnn_emulator.tensors.shapes import TILE_SIZE, div_up
from ttnn_emulator.tensors.spec import Spec
from ttnn_emulator.timing.calls import Call, prices
from ttnn_emulator.timing.families.data_movement.tilize import tilize_ns
from ttnn_emulator.timing.families.data_movement.untilize import untilize_ns
from ttnn_emulator.timing.launches import Launch
from ttnn_emulator.timing.movement import (
    NO_TRAFFIC,
    Stages,
    Traffic,
    is_dram,
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
from ttnn_emulator.timing.programs import ProgramRun, times
from ttnn_emulator.timing.recorded_arguments import precision_of_call
from ttnn_emulator.timing.shards import is_local
from ttnn_emulator.timing.tile_kernels import HANDOVER_CYCLES, PHASES, STEP_CYCLES, combine_cycles, pack_cycles

FAMILY = "rotary embedding"
HALVES, PAIRS, FUSED = "RotaryEmbedding", "RotaryEmbeddingLlamaDeviceOperation", "RotaryEmbeddingLlamaFusedQK"
# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/experimental/transformer/rotary_embedding_llama/device/kernels/compute/rotary_embedding_llama.cpp,  # noqa: E501
# kernel_main: a product by the matrix, two by sine and cosine, and a sum
STEPS = 4


def step_cycles(run: ProgramRun, tiles: int, fidelity: MathFidelity) -> float:
    """A product or sum of some tiles at a time, not overlapped with other steps."""
    size = tile_size(run.inputs[0])
    return STEP_CYCLES + tiles * (combine_cycles(2 * size, PHASES[fidelity]) + pack_cycles(size, run.chip))


def same_page_ns(run: ProgramRun, spec: Spec, cores: int) -> float:
    """All cores read the same page, which is in one bank of DRAM, or in the L1 of one core."""
    access = reads(kernels_of(run), spec)
    return access.wait_ns(tile_size(spec)) + cores * tile_size(spec) / access.bytes_per_ns


# -- pairs ------------------------------------------------------------------------------------------------------------


def _pairs(run: ProgramRun, fidelity: MathFidelity) -> Launch:
    """Rows of tiles are divided among cores by batch and position; a core takes all heads of its positions."""
    source, cos, _, matrix = run.inputs[:4]
    out = run.outputs[0]
    kernels, size = kernels_of(run), tile_size(source)
    width = div_up(source.shape[-1], TILE_SIZE)
    compute = run.chip.ns(STEPS * step_cycles(run, width, fidelity))
    if is_local(source):
        shards = source.shard_spec
        rows = 1 if shards is None else div_up(shards.shape[0], TILE_SIZE)
        return moved(run, FAMILY, shard_cores(source) or 1, Stages(rows, 0.0, compute), NO_TRAFFIC)
    batch, heads, length = (1, 1, 1, *source.padded_shape)[-4:-1]
    rows = div_up(length, TILE_SIZE)
    available = run.board.cores
    by_batch = min(batch, available)
    by_rows = min(max(available // by_batch, 1), rows)
    mine = div_up(batch, by_batch) * div_up(rows, by_rows)
    cores = by_batch * by_rows
    read = reads(kernels, source).ns(size, width)
    write = writes(kernels, out).ns(size, width)
    # Sine and cosine are read with the first head.
    tables = div_up(rows, by_rows) * reads(kernels, cos).stream_ns(tile_size(cos), 2 * width)
    start = same_page_ns(run, matrix, cores) + tables
    tiles = tiles_of(source)
    traffic = read_traffic(source, tiles + 2 * cores * mine * width, size) + write_traffic(out, tiles, size)
    return moved(run, FAMILY, cores, Stages(mine * heads, read, compute, write), traffic, start)


@times(PAIRS, "RotaryEmbeddingLlama", family=FAMILY)
def pairs_row(run: ProgramRun) -> Launch:
    return _pairs(run, run.fidelity or MathFidelity.HiFi4)


@prices("ttnn.experimental.rotary_embedding_llama", "ttnn.experimental.deepseek_prefill.rotary_embedding_indexed")
def pairs(call: Call) -> Sequence[Launch]:
    """Rows of sine and cosine begin at the first position, or at one from a tensor."""
    precision = precision_of_call(call, MathFidelity.HiFi4)
    return [_pairs(planned_run(call, PAIRS, call.tensors), precision.fidelity)]


@prices("ttnn.experimental.rotary_embedding_llama_fused_qk")
def fused(call: Call) -> Sequence[Launch]:
    """Queries and keys of all users, one core per user: queries on some cores, keys on others."""
    run = planned_run(call, FUSED, call.tensors)
    precision = precision_of_call(call, MathFidelity.HiFi4)
    q, k = call.tensors[:2]
    width = div_up(q.shape[-1], TILE_SIZE)
    shards = q.shard_spec
    rows = 1 if shards is None else div_up(shards.shape[0], TILE_SIZE)
    compute = run.chip.ns(STEPS * step_cycles(run, width, precision.fidelity))
    cores = (shard_cores(q) or 1) + (shard_cores(k) or 1)
    return [moved(run, FAMILY, min(cores, call.board.cores), Stages(rows, 0.0, compute), NO_TRAFFIC)]


# -- halves -----------------------------------------------------------------------------------------------------------


def _halves(run: ProgramRun, fidelity: MathFidelity, *, one_position: bool) -> Launch:
    """Rows of tiles are divided among cores; every tile of every operand is read and waited for by itself."""
    source, cos = run.inputs[:2]
    out = run.outputs[0]
    kernels, size = kernels_of(run), tile_size(source)
    width = div_up(source.padded_shape[-1], TILE_SIZE)
    tiles = tiles_of(source)
    rows = max(tiles // width, 1)
    cores = shard_cores(source) or shard_cores(out) or min(rows, run.board.cores)
    mine = div_up(rows, cores)
    local = is_local(source)
    table = reads(kernels, cos)
    own = kernels.local.ns(size) if local else 2 * reads(kernels, source).ns(size)
    read = own + (0.0 if one_position else 2 * table.ns(tile_size(cos)))
    # Half of the tiles are multiplied by -1 first.
    steps = (STEPS - 0.5) * (HANDOVER_CYCLES + step_cycles(run, 1, fidelity) - STEP_CYCLES / 2)
    write = 0.0 if is_local(out) else writes(kernels, out).ns(size)
    start = 0.0
    if one_position:
        # The row of the position is copied out of untilized tiles of sine and cosine, and tilized again.
        start = table.ns(tile_size(cos), 2 * width)
        start += 2 * (untilize_ns(run, cos, width) + tilize_ns(run, cos, cos, width) + kernels.local.ns(64.0 * width))
    traffic = NO_TRAFFIC if local else read_traffic(source, 2 * tiles, size)
    traffic += _tables(cos, cores * width * 2 if one_position else 2 * tiles)
    if is_dram(out):
        traffic += write_traffic(out, tiles, size)
    return moved(run, FAMILY, cores, Stages(mine * width, read, run.chip.ns(steps), write), traffic, start)


def _tables(cos: Spec, tiles: int) -> Traffic:
    return read_traffic(cos, tiles, tile_size(cos))


@times(HALVES, "RotaryEmbeddingDeviceOperation", family=FAMILY)
def halves_row(run: ProgramRun) -> Launch:
    one = "token_idx" in run.attributes and "nullopt" not in run.attributes
    return _halves(run, run.fidelity or MathFidelity.HiFi4, one_position=one)


@prices("ttnn::rotary_embedding")
def halves(call: Call) -> Sequence[Launch]:
    precision = precision_of_call(call, MathFidelity.HiFi4)
    one = call.arguments.get("token_index") is not None
    return [_halves(planned_run(call, HALVES, call.tensors), precision.fidelity, one_position=one)]


@prices("ttnn.experimental.rotary_embedding_hf")
def halves_of_users(call: Call) -> Sequence[Launch]:
    precision = precision_of_call(call, MathFidelity.HiFi4)
    return [
        _halves(
            planned_run(call, "RotaryEmbeddingHfDeviceOperation", call.tensors), precision.fidelity, one_position=False
        )
    ]


@prices("ttnn::rotate_half")
def rotate_half(call: Call) -> Sequence[Launch]:
    """One half is multiplied by -1, the other is copied; one core reads and writes tile by tile."""
    run = planned_run(call, "RotateHalfDeviceOperation", call.tensors)
    source, out = call.tensors[0], call.outputs[0]
    kernels, size, tiles = kernels_of(run), tile_size(source), tiles_of(source)
    compute = run.chip.ns(step_cycles(run, 1, MathFidelity.HiFi4) / 2)
    stages = Stages(tiles, reads(kernels, source).ns(size), compute, writes(kernels, out).ns(size))
    traffic = read_traffic(source, tiles, size) + write_traffic(out, tiles, size)
    return [moved(run, FAMILY, 1, stages, traffic)]
