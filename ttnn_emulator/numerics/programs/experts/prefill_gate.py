"""The gates of mixtures of experts in prefill: scores, the selected experts, and their weights.

The kernels run with a 32-bit destination register. Values read from float32 buffers pass through a source register,
which keeps 11 bits of the mantissa.
"""

from __future__ import annotations

import numpy as np
import torch
from numba import njit

from ttnn_emulator.enums import DataType, MathFidelity
from ttnn_emulator.numerics.functions.apply import apply_function
from ttnn_emulator.numerics.kernels import sorting as sorting_kernels
from ttnn_emulator.numerics.mode import exactly
from ttnn_emulator.numerics.programs.reduction.ordering import NETWORK_DEPTH, keys
from ttnn_emulator.numerics.units.compute_core import Core
from ttnn_emulator.numerics.units.matrix_unit import MathConfig
from ttnn_emulator.numerics.units.sorting_network import BLOCK, MAX, merging, sorting

# tt-metal v0.81.1: ttnn/cpp/ttnn/operations/experimental/deepseek_prefill/moe_grouped_topk/device/kernels/compute/moe_gate_common_compute.hpp, upcast_tiles  # noqa: E501
GATING = MathConfig(MathFidelity.HiFi4, fp32_acc=True)
TILE = 32
GROUPS, BEST_GROUPS, SUMMED = 8, 4, 2
RUNS_OF_EIGHT, RUNS_OF_32 = 2, 4  # last phases of the network
SOFTPLUS = (1.0, 20.0)  # beta and threshold
WIDE = DataType.FLOAT32


def core_for(values: torch.Tensor) -> Core:
    return Core.of(GATING, values.numel())


# tt-metal v0.81.1: ttnn/cpp/ttnn/operations/experimental/deepseek_prefill/moe_grouped_topk/device/kernels/compute/moe_gate_common_compute.hpp, apply_score_func  # noqa: E501
def activated(scores: torch.Tensor, function: str) -> torch.Tensor:
    """sigmoid(x), or the square root of softplus(x), as float32."""
    x = core_for(scores).source(scores, WIDE)
    if function == "sigmoid":
        return apply_function("sigmoid", x, fp32_dest=True)
    return apply_function("sqrt", apply_function("softplus", x, *SOFTPLUS, fp32_dest=True), fp32_dest=True)


# tt-metal v0.81.1: ttnn/cpp/ttnn/operations/experimental/deepseek_prefill/moe_grouped_topk/device/kernels/compute/moe_gate_common_compute.hpp, add_bias  # noqa: E501
def biased(scores: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    core = core_for(scores)
    return core.add(core.source(scores, WIDE), core.source(core.source(bias, WIDE), WIDE))


def best(scores: torch.Tensor, *, stable: bool) -> torch.Tensor:
    """Indices of the 32 largest of each row [tokens, experts], largest first."""
    rows = _sort_keys(scores)
    places = torch.arange(rows.shape[1]).expand_as(rows)
    return _best(rows, places, stable=stable)


# tt-metal v0.81.1: ttnn/cpp/ttnn/operations/experimental/deepseek_prefill/moe_grouped_topk/device/kernels/compute/moe_gate_common_compute.hpp, sum_top_experts_per_group, topk_group_scores  # noqa: E501
def best_of_groups(scores: torch.Tensor, *, stable: bool) -> torch.Tensor:
    """Indices of the 32 largest in the four groups of 32 with the largest sum of two largest scores."""
    core = core_for(scores)
    cut = core.source(scores, WIDE)
    groups = cut.reshape(-1, GROUPS, TILE)
    top = groups.topk(SUMMED, -1).values
    sums = _sort_keys(core.add(top[..., 0].contiguous(), top[..., 1].contiguous()))
    chosen = _order_of_groups(sums, stable=stable)[:, :BEST_GROUPS]
    places = (chosen.unsqueeze(-1) * TILE + torch.arange(TILE)).reshape(len(chosen), -1)
    rows = torch.gather(_sort_keys(scores), 1, places)
    return _best(rows, places, stable=stable)


def _sort_keys(values: torch.Tensor) -> torch.Tensor:
    """int32 keys in the vector unit's order of float32, truncated by a source register."""
    return keys(core_for(values).source(values.contiguous(), WIDE))


def _in_order(rows: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
    """Indices by descending key; equal keys, also 0 and -0, by ascending index."""
    canonical = torch.where(rows == -1, 0, rows).to(torch.int64)
    return torch.argsort(canonical * (1 << 16) - places, dim=-1, descending=True)


def _best(rows: torch.Tensor, places: torch.Tensor, *, stable: bool) -> torch.Tensor:
    if stable or not exactly(rows.numel() * NETWORK_DEPTH):
        return torch.gather(places, 1, _in_order(rows, places)[:, :TILE])
    packed = (rows.to(torch.int64) << 32) | places
    selected = torch.empty(rows.shape[0], TILE, dtype=torch.int64)
    _insert_tiles(packed.numpy(), *sorting(RUNS_OF_32)[MAX], *merging(RUNS_OF_32)[MAX], selected.numpy())
    return selected & 0xFFFFFFFF


def _order_of_groups(sums: torch.Tensor, *, stable: bool) -> torch.Tensor:
    places = torch.arange(GROUPS).expand_as(sums)
    if stable or not exactly(sums.shape[0] * BLOCK * NETWORK_DEPTH):
        return _in_order(sums, places)
    rows = torch.zeros(sums.shape[0], BLOCK, dtype=torch.int64)
    rows[:, :GROUPS] = (sums.to(torch.int64) << 32) | places
    _run_all(rows.numpy(), *sorting(RUNS_OF_EIGHT)[MAX])
    return rows[:, :GROUPS] & 0xFFFFFFFF


@njit(cache=True, nogil=True)
def _run_all(rows, steps, places):
    scratch = np.empty(BLOCK, np.int64)
    for number in range(rows.shape[0]):
        sorting_kernels.run(rows[number], steps, places, scratch)


@njit(cache=True, nogil=True)
def _insert_tiles(rows, steps, places, last_steps, last_places, selected):
    """The best 32 of each row: two tiles sorted in opposite orders, the larger half kept, one tile after another."""
    scratch, pair = np.empty(BLOCK, np.int64), np.empty(BLOCK, np.int64)
    for number in range(rows.shape[0]):
        row = rows[number]
        pair[:TILE] = row[:TILE]
        for start in range(TILE, row.size, TILE):
            pair[TILE:] = row[start : start + TILE]
            sorting_kernels.run(pair, steps, places, scratch)
            for place in range(TILE):
                if (pair[place] >> 32) < (pair[place + TILE] >> 32):
                    pair[place], pair[place + TILE] = pair[place + TILE], pair[place]
        sorting_kernels.run(pair, last_steps, last_places, scratch)
        selected[number] = pair[:TILE]


# tt-metal v0.81.1: ttnn/cpp/ttnn/operations/experimental/deepseek_prefill/moe_grouped_topk/device/kernels/compute/moe_gate_common_compute.hpp, normalize_scores, scale  # noqa: E501
def weights(scores: torch.Tensor, chosen: torch.Tensor, scale: float, epsilon: float) -> torch.Tensor:
    """Scores [tokens, experts] of the selected experts, divided by their sum and scaled, as bfloat16."""
    gathered = torch.gather(scores, 1, chosen)
    core = core_for(gathered)
    source = core.source(gathered, WIDE)
    totals = core.source(core.row_sums(source), WIDE)
    small, factor = (core.source(torch.tensor(value, dtype=torch.float32), WIDE) for value in (epsilon, scale))
    inverse = apply_function("recip", core.add(totals, small.expand_as(totals).contiguous()), fp32_dest=True)
    shares = core.mul(source, core.source(inverse, WIDE).expand_as(source).contiguous())
    scaled = core.mul(core.source(shares, WIDE), factor.expand_as(shares).contiguous())
    return core.packed(scaled, DataType.BFLOAT16)
