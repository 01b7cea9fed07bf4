"""Choosing experts: scores of 32 tokens at a time are sorted by the vector unit."""

from __future__ import annotations

from collections.abc import Sequence

from ttnn_emulator.enums import MathFidelity
from ttnn_emulator.hardware.boards import Board
from ttnn_emulator.tensors.shapes import TILE_SIZE, div_up
from ttnn_emulator.tensors.spec import Spec
from ttnn_emulator.timing.calls import Call, prices
from ttnn_emulator.timing.chips import CHIPS, FIDELITY_CYCLES
from ttnn_emulator.timing.families.reduction.ordering import MERGE_CYCLES, SORT_CYCLES
from ttnn_emulator.timing.launches import Launch
from ttnn_emulator.timing.movement import (
    NO_TRAFFIC,
    Stages,
    kernels_of,
    moved,
    planned_run,
    read_traffic,
    reads,
    tile_size,
    writes,
)
from ttnn_emulator.timing.shards import is_local
from ttnn_emulator.timing.tile_kernels import combine_cycles
from ttnn_emulator.timing.vector_unit import unary_cycles

FAMILY = "experts"
GROUPS = 8
NARROW = 2048
# Exponentials, their sum and its reciprocal, of the chosen scores.
SHARES = ("exp", "recip")


def choosing_ns(experts: int, board: Board, *, sigmoid: bool, grouped: bool) -> float:
    """The best of so many experts for 32 tokens."""
    chip, tiles = CHIPS[board.arch], div_up(experts, TILE_SIZE)
    cycles = tiles * combine_cycles(2 * NARROW)
    if sigmoid:
        cycles += tiles * unary_cycles("sigmoid", board.arch)
    # Every group is sorted for its best, then the groups; then the experts of the best groups.
    rounds = tiles / 2 + (GROUPS / 2 if grouped else 0)
    cycles += rounds * SORT_CYCLES + max(tiles / 2 - 1, 0) * MERGE_CYCLES
    cycles += sum([unary_cycles(each, board.arch) for each in SHARES])
    return chip.ns(cycles)


GATES = {
    "ttnn.experimental.deepseek.moe.deepseek_moe_gate": ("DeepseekMoeGateDeviceOperation", True),
    "ttnn.experimental.deepseek.moe.generalized_moe_gate": ("GeneralizedMoeGateDeviceOperation", False),
    "ttnn.experimental.deepseek_grouped_gate": ("DeepseekGroupedGateDeviceOperation", True),
    "ttnn.experimental.deepseek_prefill.moe_grouped_topk": ("MoeGroupedTopkDeviceOperation", True),
    "ttnn.moe": ("MoeDeviceOperation", False),
}


@prices(*GATES)
def gate(call: Call) -> Sequence[Launch]:
    """Rows of tiles of tokens are divided among cores."""
    program, grouped = GATES[call.name]
    scores = call.tensors[0]
    run = planned_run(call, program, call.tensors)
    experts = scores.padded_shape[-1] if len(scores.padded_shape) else TILE_SIZE
    rows = max(div_up(scores.volume, max(scores.shape[-1], 1) * TILE_SIZE), 1) if scores.shape else 1
    cores = min(rows, call.board.cores)
    grouped = grouped and call.arguments.get("n_groups", GROUPS) != 1
    compute = choosing_ns(experts, call.board, sigmoid=call.name != "ttnn.moe", grouped=grouped)
    kernels, tiles = kernels_of(run), div_up(experts, TILE_SIZE)
    own = is_local(scores)
    read = 0.0 if own else reads(kernels, scores).ns(NARROW, tiles)
    out = call.outputs[0]
    write = 0.0 if is_local(out) else writes(kernels, out).ns(out.page_bytes)
    traffic = NO_TRAFFIC if own else read_traffic(scores, rows * tiles, NARROW)
    return [moved(run, FAMILY, cores, Stages(div_up(rows, cores), read, compute, write), traffic)]


@prices("ttnn.experimental.topk_router_gpt")
def router(call: Call) -> Sequence[Launch]:
    """A product by the router's weights, divided by its inner dimension, then the best experts."""
    tokens, weight = call.tensors[:2]
    run = planned_run(call, "TopkRouterGptDeviceOperation", call.tensors)
    kernels, chip = kernels_of(run), run.chip
    inner, columns = div_up(weight.padded_shape[-2], TILE_SIZE), div_up(weight.padded_shape[-1], TILE_SIZE)
    cores = min(call.board.dram_banks, call.board.cores)
    mine = div_up(inner, cores)
    size = tile_size(weight)
    read = reads(kernels, weight).ns(size, columns) + reads(kernels, tokens).ns(tile_size(tokens))
    compute = chip.ns(columns * FIDELITY_CYCLES[MathFidelity.HiFi2])
    ending = choosing_ns(weight.shape[-1], call.board, sigmoid=False, grouped=False)
    ending += cores * (kernels.l1_write.ns(NARROW, columns) / 2 + chip.semaphore_ns / 2)
    traffic = read_traffic(weight, inner * columns, size)
    return [moved(run, FAMILY, cores, Stages(mine, read, compute), traffic, ending)]


# -- adding up --------------------------------------------------------------------------------------------------------


def _summed(call: Call, program: str, experts: int, columns: int, source: Spec) -> Launch:
    """A tile of the output is the sum of a tile of every expert, weighted by its score."""
    run = planned_run(call, program, call.tensors)
    kernels, size = kernels_of(run), float(tile_size(source) if source.is_tile else NARROW)
    cores = min(max(columns, 1), call.board.cores)
    compute = run.chip.ns(experts * combine_cycles(2 * size, 4))
    out = call.outputs[0]
    read = reads(kernels, source).ns(size, experts)
    write = writes(kernels, out).ns(float(tile_size(out) if out.is_tile else NARROW))
    traffic = read_traffic(source, columns * experts, size)
    return moved(run, FAMILY, cores, Stages(div_up(columns, cores), read, compute, write), traffic)


SUMS = {
    "ttnn.experimental.deepseek_moe_fast_reduce_nc": "DeepseekMoeFastReduceNcDeviceOperation",
    "ttnn::prim::deepseek_moe_fast_reduce_nc_fused": "DeepseekMoeFastReduceNcFusedDeviceOperation",
    "ttnn.experimental.deepseek_prefill.post_combine_reduce": "PostCombineReduceDeviceOperation",
}


@prices(*SUMS)
def weighted_sums(call: Call) -> Sequence[Launch]:
    source = call.tensors[0]
    outputs = sum([max(spec.volume // TILE_SIZE**2, 1) for spec in call.outputs])
    experts = max(source.volume // max(sum([spec.volume for spec in call.outputs]), 1), 1)
    return [_summed(call, SUMS[call.name], experts, outputs, source)]
