"""Attention of one token a user as the decoding kernel computes it.

The chunks of keys that a position can see are spread over cores, the last ones to the first core. Each core walks over
its own, then cores hand what they have to one another in a tree, whose root divides by the sum.
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

MIDDLE = DataType.BFLOAT16  # of all buffers between steps, also from a 32-bit destination register


# tt-metal v0.81.1: ttnn/cpp/ttnn/operations/transformer/sdpa_decode/device/kernels/compute/sdpa_flash_decode.cpp,
#     kernel_main
@dataclass(frozen=True)
class Decode:
    """A decoding kernel with its settings.

    chunk       keys that are taken at a time; 0: as many as the position needs, up to what the register holds
    cores       cores that share a head
    full_tiles  queries fill tiles of 32 rows; in tiles of 16 rows the exponential is always the fast one
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
        most = 4 if self.math.fp32_acc else 8
        return min(1 << (tiles - 1).bit_length(), most) * TILE

    def shares(self, position: int) -> tuple[int, int, list[range]]:
        """Keys a chunk, the first key that is seen, and the chunks of every core that has any."""
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
            turned = self.cores - core - 1
            start = first + turned * each + min(rest, turned)
            shares.append(range(start, start + each + (turned < rest)))
        return step, unaligned, shares


@dataclass
class _State:
    """What a core has: the largest score, the sum of powers and the sum of weighted values, a row a query."""

    largest: torch.Tensor
    total: torch.Tensor
    made: torch.Tensor


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
    """One user's attention: [groups, heads a group, …] with keys and values [groups, keys, …].

    mask    added to the scores before they are scaled
    sink    [groups, heads a group]: a score before scaling, of a key without a value
    absent  [keys]: which of them are padding
    limits  [groups, heads a group]: the position of each query; `position` is the last of them
    users   how many are decoded for in the same call
    """
    groups, heads, width = query.shape
    room = -(-(position + 1) // TILE) * TILE
    work = groups * heads * room * (width + value.shape[-1]) * PHASES[kernel.math.fidelity] // PANEL_SPEED
    if not exactly(users * (work + groups * heads * room * numeric.PASS)):
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
    made = core.packed(matmul(powers, value, kernel.math), MIDDLE)
    if before is None:
        return _State(largest, total, made)
    change = _change(kernel, core, before.largest, largest)
    scaled = core.packed(core.mul(before.total, change), MIDDLE)
    total = core.packed(core.add(total, scaled), MIDDLE)
    kept = core.packed(core.mul(before.made, change), MIDDLE)
    return _State(largest, total, core.packed(core.add(kept, made), MIDDLE))


def _change(kernel: Decode, core: Core, before: torch.Tensor, after: torch.Tensor) -> torch.Tensor:
    power = steps.maximum_powers(core.sub(before, after), kernel.scale, wide=core.wide, approx=kernel.exp_approx)
    return core.packed(power, MIDDLE)


# -- the tree of cores ------------------------------------------------------------------------------------------------


def _children(core: int, cores: int) -> list[int]:
    """The cores that hand over to this one, round by round."""
    rounds = (cores - 1).bit_length()
    turned = cores - 1 - core
    children = {r: core + (1 << r) for r in range(rounds) if turned & ((2 << r) - 1) == (2 << r) - 1}
    if core == 0:
        for other in range(1, cores):
            place = cores - 1 - other
            r = ((~place) & (place + 1)).bit_length() - 1  # trailing ones
            if place + (1 << r) >= cores:
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
    """The vector unit merges the statistics, the matrix unit the values."""
    largest = torch.maximum(mine.largest, other.largest)
    scale = float(steps.scale_of_maxima(kernel.scale))
    changes, sums = [], []
    for each in (mine, other):
        distance = vector_unit.sub(each.largest.contiguous().numpy(), largest.contiguous().numpy())
        change = steps.stored(steps.maximum_power(distance, scale, core.wide), core.wide)
        changes.append(core.packed(torch.from_numpy(change), MIDDLE))
        sums.append(steps.stored(vector_unit.mul(change, each.total.contiguous().numpy()), core.wide))
    total = steps.stored(vector_unit.add(sums[1], sums[0]), core.wide)
    made = [core.packed(core.mul(each.made, change), MIDDLE) for each, change in zip((mine, other), changes)]
    return _State(
        largest,
        core.packed(torch.from_numpy(np.asarray(total, np.float32)), MIDDLE),
        core.packed(core.add(*made), MIDDLE),
    )


def _finished(kernel: Decode, core: Core, state: _State, sink: torch.Tensor | None) -> torch.Tensor:
    total, made = state.total, state.made
    if sink is not None:
        score = sink.unsqueeze(-1)
        largest = torch.maximum(score, state.largest)
        change = _change(kernel, core, state.largest, largest)
        total = core.packed(core.mul(total, change), MIDDLE)
        total = core.packed(core.add(total, _change(kernel, core, score, largest)), MIDDLE)
        made = core.packed(core.mul(made, change), MIDDLE)
    inverse = core.packed(steps.inverses(total, wide=core.wide, approx=kernel.math.approx), MIDDLE)
    return core.packed(core.packed(core.mul(made, inverse), MIDDLE), kernel.out)


# -- large work -------------------------------------------------------------------------------------------------------


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
    """All keys at once; the queries of a group stand for those of a sequence."""
    first = max(position + 1 - kernel.window, 0) if kernel.window else 0
    seen = slice(first, position + 1)
    key, value = key[..., seen, :], value[..., seen, :]
    accurate = not kernel.exp_approx and kernel.full_tiles
    whole = Prefill(kernel.math, kernel.scale, kernel.out, 1, 1, 1, exp_approx=not accurate, streams=False)
    part = None if mask is None else mask[..., seen].unsqueeze(0)
    if limits is not None:
        hidden = torch.arange(seen.start, seen.stop) > limits.unsqueeze(-1)
        if absent is not None:
            hidden = hidden | absent[seen]
        part = torch.where(hidden, NEGATIVE_INFINITY, 0.0).unsqueeze(0)
    gone = None if absent is None else absent[seen]
    made = whole_rows(whole, query.unsqueeze(0), key.unsqueeze(0), value.unsqueeze(0), part, sink, gone)
    return made.squeeze(0)
