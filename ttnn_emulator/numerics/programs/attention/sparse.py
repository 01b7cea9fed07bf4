"""Sparse attention, in which every query attends to selected keys, as its kernels compute it.

The heads of a token are the rows of one matrix. Its selected keys are processed in chunks with the steps of the
streaming kernel (`whole_sequences`): bfloat16 buffers, whatever the width of the destination register, and products
over a whole chunk of keys at once. Chunks without selected keys are skipped.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from ttnn_emulator.enums import DataType
from ttnn_emulator.numerics.mode import exactly
from ttnn_emulator.numerics.programs.attention import softmax_steps
from ttnn_emulator.numerics.programs.attention.softmax_steps import NEGATIVE_INFINITY, TILE, added_in_l1
from ttnn_emulator.numerics.programs.attention.whole_sequences import Prefill, pack_out, whole_rows
from ttnn_emulator.numerics.units import reductions as numeric
from ttnn_emulator.numerics.units.compute_core import Core
from ttnn_emulator.numerics.units.matrix_unit import PANEL_SPEED, PHASES, matmul
from ttnn_emulator.numerics.units.vector_unit import add

NARROW = DataType.BFLOAT16
GATHERED_AT_ONCE = 1 << 24  # elements of gathered keys and values that are in memory at once

# First and last token → keys [tokens, keys, depth], values [tokens, keys, width] and which keys are masked.
Gather = Callable[[int, int], tuple[torch.Tensor, torch.Tensor, torch.Tensor]]


# tt-metal v0.81.1: ttnn/cpp/ttnn/operations/transformer/sdpa/device/kernels/compute/sparse_sdpa_compute.cpp,
#     kernel_main
# tt-metal v0.81.1: ttnn/cpp/ttnn/operations/transformer/sdpa/device/kernels/compute/sparse_sdpa_msa_compute.cpp,
#     kernel_main
def attend_chosen(
    kernel: Prefill,
    query: torch.Tensor,
    gather: Gather,
    active: torch.Tensor,
    sink: torch.Tensor | None = None,
) -> torch.Tensor:
    """softmax(scale × query keysᵀ) values per token: [tokens, heads, depth] → [tokens, heads, width].

    active  [tokens]: number of key chunks per token
    sink    [heads]: the score of a key without a value
    """
    tokens, rows, depth = query.shape
    width, chunk = kernel.width * TILE, kernel.k_chunk * TILE
    keys = int(active.max()) * chunk
    products = tokens * rows * keys
    work = products * (depth + width) * PHASES[kernel.math.fidelity] // PANEL_SPEED
    exact = exactly(work + products * numeric.PASS)
    out = torch.empty(tokens, rows, width)
    step = max(GATHERED_AT_ONCE // (keys * (depth + width)), 1)
    for at in range(0, tokens, step):
        end = min(at + step, tokens)
        key, value, hidden = (each[:, :keys] for each in gather(at, end))
        if not exact:
            mask = torch.zeros(hidden.shape).masked_fill_(hidden, NEGATIVE_INFINITY)
            mask = mask[:, None, None, :].expand(-1, 1, rows, -1)
            scores = None if sink is None else sink.reshape(1, -1)
            q, k, v = (each.unsqueeze(1) for each in (query[at:end], key, value))
            out[at:end] = whole_rows(kernel, q, k, v, mask, scores)[:, 0]
            continue
        counts = active[at:end]
        for count in counts.unique().tolist():
            index = (counts == count).nonzero().flatten()
            queries = query[at:end][index]
            out[at + index] = _tokens(kernel, queries, key[index], value[index], hidden[index], count, sink)
    return out


def _tokens(
    kernel: Prefill,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    hidden: torch.Tensor,
    chunks: int,
    sink: torch.Tensor | None,
) -> torch.Tensor:
    """Tokens with the same number of key chunks, bit-exact."""
    core = Core(kernel.math, True)
    chunk = kernel.k_chunk * TILE
    largest = total = accumulated = torch.empty(0)
    for number in range(chunks):
        columns = slice(number * chunk, (number + 1) * chunk)
        scores = core.packed(matmul(query, key[:, columns], core.config, transposed=True), NARROW)
        scores = scores.masked_fill(hidden[:, None, columns], NEGATIVE_INFINITY)
        before, largest = largest, numeric.extreme(scores, -1, largest=True).unsqueeze(-1)
        if number:
            largest = torch.maximum(before, largest)
        distance = core.sub(scores, largest)
        powers = core.packed(softmax_steps.score_powers(distance, kernel.scale, wide=core.wide), NARROW)
        sums = softmax_steps.tile_sums(powers, NARROW)
        weighted = core.packed(matmul(powers, value[:, columns], core.config), NARROW)
        if number:
            change = softmax_steps.maximum_powers(
                core.sub(before, largest), kernel.scale, wide=core.wide, approx=kernel.exp_approx
            )
            change = core.packed(change, NARROW)
            sums = added_in_l1(sums, core.packed(core.mul(total, change), NARROW), NARROW)
            weighted = added_in_l1(weighted, core.packed(core.mul(accumulated, change), NARROW), NARROW)
        total, accumulated = sums, weighted
    total = matmul(total, torch.ones(TILE, 1), core.config)
    if sink is not None:
        distance = core.sub(largest, sink.reshape(-1, 1).expand_as(largest))
        power = softmax_steps.maximum_powers(distance, -kernel.scale, wide=core.wide, approx=kernel.exp_approx)
        both = add(total.contiguous().numpy(), power.contiguous().numpy())
        total = torch.from_numpy(softmax_steps.stored(both, core.wide))
    inverse = softmax_steps.inverses(total, wide=core.wide, approx=kernel.math.approx, streaming=True)
    return pack_out(kernel, core.mul(accumulated, core.through(inverse, NARROW)))
