"""Attention of one token per user, as the decode kernel computes it.

The key chunks that a position attends to are distributed over cores, the last chunks to the first core. Each core
processes its own chunks; then partial results are merged in a tree, and the root divides by the sum.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from ttnn_emulator.enums import DataType
from ttnn_emulator.numerics.mode import exactly
from ttnn_emulator.numerics.programs.attention import softmax_steps as steps
from ttnn_emulator.numerics.programs.attention.softmax_steps import NEGATIVE_INFINITY, TILE
from ttnn_emulator.numerics.programs.attention.whole_sequences import Prefill, whole_rows
from ttnn_emulator.numerics.units import reductions as numeric
from ttnn_emulator.numerics.units import vector_unit
from ttnn_emulator.numerics.units.compute_core import Core
from ttnn_emulator.numerics.units.matrix_unit import PANEL_SPEED, PHASES, MathConfig, matmul

MIDDLE = DataType.BFLOAT16  # of all intermediate buffers, also with a 32-bit destination register


# tt-metal v0.81.1: ttnn/cpp/ttnn/operations/transformer/sdpa_decode/device/kernels/compute/sdpa_flash_decode.cpp,
#     kernel_main
@dataclass(frozen=True)
class Decode:
    """A decode kernel with its settings.

    chunk       keys processed at a time; 0: as many as the position needs, up to the capacity of the register
    cores       cores per head
    full_tiles  query tiles have 32 rows; with 16 rows the exponential is always the fast one
    """

    math: MathConfig
    scale: float
    out: DataType
    chunk: int
    cores: int
    causal: bool = True
    window: int = 0
    exp_approx: bool = True
    full_tiles: bool = True

    def chunk_at(self, position: int) -> int:
        if self.chunk:
            return self.chunk
        tiles = position // TILE + 1
        limit = 4 if self.math.fp32_acc else 8
        return min(1 << (tiles - 1).bit_length(), limit) * TILE

    def shares(self, position: int) -> tuple[int, int, list[range]]:
        """Keys per chunk, the first visible key, and the chunks of each core that has any."""
        step = self.chunk_at(position)
        end = position + 1
        unaligned = max(end - self.window, 0) if self.window else 0
        first = unaligned // step
        count = -(-end // step) - first
        if self.cores > count:
            return step, unaligned, [range(first + count - core - 1, first + count - core) for core in range(count)]
        each, rest = divmod(count, self.cores)
        shares = []
        for core in range(self.cores):
            from_end = self.cores - core - 1
            start = first + from_end * each + min(rest, from_end)
            shares.append(range(start, start + each + (from_end < rest)))
        return step, unaligned, shares


@dataclass
class _State:
    """The running state of a core: per query, the largest score, the sum of exponentials and of weighted values."""

    largest: torch.Tensor
    total: torch.Tensor
    weighted: torch.Tensor


def decode(
    kernel: Decode,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    position: int,
    *,
    mask: torch.Tensor | None = None,
    sink: torch.Tensor | None = None,
    absent: torch.Tensor | None = None,
    limits: torch.Tensor | None = None,
    users: int = 1,
) -> torch.Tensor:
    """Attention of one user: queries [groups, heads per group, …], keys and values [groups, keys, …].

    mask    added to the scores before scaling
    sink    [groups, heads per group]: the unscaled score of a key without a value
    absent  [keys]: which keys are padding
    limits  [groups, heads per group]: the position of each query; `position` is the largest
    users   users decoded in the same call
    """
    groups, heads, width = query.shape
    padded_keys = -(-(position + 1) // TILE) * TILE
    work = groups * heads * padded_keys * (width + value.shape[-1]) * PHASES[kernel.math.fidelity] // PANEL_SPEED
    if not exactly(users * (work + groups * heads * padded_keys * numeric.PASS)):
        return _fast(kernel, query, key, value, position, mask, sink, absent, limits)
    core = Core(kernel.math, True)
    step, first_seen, shares = kernel.shares(position)
    keys = max(share.stop for share in shares) * step
    key, value = (torch.nn.functional.pad(each, (0, 0, 0, max(keys - each.shape[-2], 0))) for each in (key, value))
    absent = _padded(absent, key.shape[-2])
    bounds = torch.tensor(position) if limits is None else limits.unsqueeze(-1)
    states: list[_State | None] = []
    for share in shares:
        state: _State | None = None
        for chunk in share:
            columns = slice(chunk * step, (chunk + 1) * step)
            scores = core.packed(matmul(query, key[..., columns, :], kernel.math, transposed=True), MIDDLE)
            if mask is not None:
                scores = core.packed(core.add(scores, mask[..., columns]), MIDDLE)
            places = torch.arange(columns.start, columns.stop)
            hidden = (places < first_seen) | absent[columns]
            if kernel.causal:
                hidden = hidden | (places > bounds)
            if bool(hidden.any()):
                scores = scores.masked_fill(hidden, NEGATIVE_INFINITY)
            state = _chunk(kernel, core, state, scores, value[..., columns, :])
        states.append(state)
    return _finished(kernel, core, _gathered(kernel, core, states, 0), sink)


def _padded(absent: torch.Tensor | None, keys: int) -> torch.Tensor:
    if absent is None:
        return torch.zeros(keys, dtype=torch.bool)
    return torch.nn.functional.pad(absent, (0, max(keys - absent.shape[0], 0)))


def _chunk(kernel: Decode, core: Core, before: _State | None, scores: torch.Tensor, value: torch.Tensor) -> _State:
    largest = numeric.extreme(scores, -1, largest=True).unsqueeze(-1)
    if before is not None:
        largest = torch.maximum(before.largest, largest)
    accurate = not kernel.exp_approx and kernel.full_tiles
    powers = steps.score_powers(core.sub(scores, largest), kernel.scale, wide=core.wide, accurate=accurate)
    powers = core.packed(powers, MIDDLE)
    total = core.packed(core.row_sums(powers), MIDDLE)
    weighted = core.packed(matmul(powers, value, kernel.math), MIDDLE)
    if before is None:
        return _State(largest, total, weighted)
    change = _change(kernel, core, before.largest, largest)
    scaled = core.packed(core.mul(before.total, change), MIDDLE)
    total = core.packed(core.add(total, scaled), MIDDLE)
    kept = core.packed(core.mul(before.weighted, change), MIDDLE)
    return _State(largest, total, core.packed(core.add(kept, weighted), MIDDLE))


def _change(kernel: Decode, core: Core, before: torch.Tensor, after: torch.Tensor) -> torch.Tensor:
    power = steps.maximum_powers(core.sub(before, after), kernel.scale, wide=core.wide, approx=kernel.exp_approx)
    return core.packed(power, MIDDLE)


# -- reduction tree ---------------------------------------------------------------------------------------------------


def _children(core: int, cores: int) -> list[int]:
    """The cores whose results this core receives, in order of rounds."""
    rounds = (cores - 1).bit_length()
    from_end = cores - 1 - core
    children = {r: core + (1 << r) for r in range(rounds) if from_end & ((2 << r) - 1) == (2 << r) - 1}
    if core == 0:
        for other in range(1, cores):
            other_from_end = cores - 1 - other
            r = ((~other_from_end) & (other_from_end + 1)).bit_length() - 1  # trailing ones
            if other_from_end + (1 << r) >= cores:
                children.setdefault(r, other)
    return [children[r] for r in sorted(children)]


def _gathered(kernel: Decode, core: Core, states: list[_State | None], which: int) -> _State:
    state = states[which]
    assert state is not None
    for child in _children(which, kernel.cores):
        if child < len(states):
            state = _merged(kernel, core, state, _gathered(kernel, core, states, child))
    return state


# tt-metal v0.81.1: ttnn/cpp/ttnn/operations/transformer/sdpa/device/kernels/compute/compute_common.hpp,
#     correction_block
def _merged(kernel: Decode, core: Core, mine: _State, other: _State) -> _State:
    """Two partial results: the vector unit merges maxima and sums, the matrix unit the weighted values."""
    largest = torch.maximum(mine.largest, other.largest)
    scale = float(steps.scale_of_maxima(kernel.scale))
    changes, sums = [], []
    for each in (mine, other):
        distance = vector_unit.sub(each.largest.contiguous().numpy(), largest.contiguous().numpy())
        change = steps.stored(steps.maximum_power(distance, scale, core.wide), core.wide)
        changes.append(core.packed(torch.from_numpy(change), MIDDLE))
        sums.append(steps.stored(vector_unit.mul(change, each.total.contiguous().numpy()), core.wide))
    total = steps.stored(vector_unit.add(sums[1], sums[0]), core.wide)
    weighted = [core.packed(core.mul(each.weighted, change), MIDDLE) for each, change in zip((mine, other), changes)]
    return _State(
        largest,
        core.packed(torch.from_numpy(np.asarray(total, np.float32)), MIDDLE),
        core.packed(core.add(*weighted), MIDDLE),
    )


def _finished(kernel: Decode, core: Core, state: _State, sink: torch.Tensor | None) -> torch.Tensor:
    total, weighted = state.total, state.weighted
    if sink is not None:
        score = sink.unsqueeze(-1)
        largest = torch.maximum(score, state.largest)
        change = _change(kernel, core, state.largest, largest)
        total = core.packed(core.mul(total, change), MIDDLE)
        total = core.packed(core.add(total, _change(kernel, core, score, largest)), MIDDLE)
        weighted = core.packed(core.mul(weighted, change), MIDDLE)
    inverse = core.packed(steps.inverses(total, wide=core.wide, approx=kernel.math.approx), MIDDLE)
    return core.packed(core.packed(core.mul(weighted, inverse), MIDDLE), kernel.out)


# -- large inputs -----------------------------------------------------------------------------------------------------


def _fast(
    kernel: Decode,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    position: int,
    mask: torch.Tensor | None,
    sink: torch.Tensor | None,
    absent: torch.Tensor | None,
    limits: torch.Tensor | None,
) -> torch.Tensor:
    """All keys at once; the heads of a group are treated as the queries of a sequence."""
    first = max(position + 1 - kernel.window, 0) if kernel.window else 0
    seen = slice(first, position + 1)
    key, value = key[..., seen, :], value[..., seen, :]
    accurate = not kernel.exp_approx and kernel.full_tiles
    prefill = Prefill(kernel.math, kernel.scale, kernel.out, 1, 1, 1, exp_approx=not accurate, streams=False)
    part = None if mask is None else mask[..., seen].unsqueeze(0)
    if limits is not None:
        hidden = torch.arange(seen.start, seen.stop) > limits.unsqueeze(-1)
        if absent is not None:
            hidden = hidden | absent[seen]
        part = torch.where(hidden, NEGATIVE_INFINITY, 0.0).unsqueeze(0)
    padding = None if absent is None else absent[seen]
    out = whole_rows(prefill, query.unsqueeze(0), key.unsqueeze(0), value.unsqueeze(0), part, sink, padding)
    return out.squeeze(0)
