"""The gated delta rule, a chunk of a sequence at a time, as its kernels compute it in float32 buffers.

A state of keys × values goes along the sequence. Within a chunk, corrections of one position by those before it form a
unit lower triangular matrix L, and its inverse gives all new values of the chunk at once.
"""

from __future__ import annotations

import torch

from ttnn_emulator.enums import DataType
from ttnn_emulator.numerics import reduce as numeric
from ttnn_emulator.numerics.matrix_unit import PANEL_SPEED, PHASES, MathConfig, matmul
from ttnn_emulator.numerics.mode import exactly
from ttnn_emulator.numerics.normalize import Core

WIDE = DataType.FLOAT32
TILE = 32


class Unit:
    """The matrix unit between buffers of float32: what a source register takes of them are 11 bits of mantissa."""

    def __init__(self, math: MathConfig, products: int) -> None:
        work = products * PHASES[math.fidelity] // PANEL_SPEED
        self.core = Core(math, exactly(work + products // TILE * numeric.PASS))

    def copied(self, values: torch.Tensor) -> torch.Tensor:
        return self.core.source(values, WIDE)

    def product(self, a: torch.Tensor, b: torch.Tensor, *, transposed: bool = False) -> torch.Tensor:
        return matmul(self.copied(a), self.copied(b), self.core.config, transposed=transposed)

    def add(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return self.core.add(self.copied(a), self.copied(b))

    def sub(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return self.core.sub(self.copied(a), self.copied(b))

    def mul(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return self.core.mul(self.copied(a), self.copied(b).expand_as(a))


def solved(unit: Unit, lower: torch.Tensor, inverses: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """L⁻¹ right by forward substitution in rows of tiles: [heads, C, C], [heads, C, 32], [heads, C, width].

    `inverses` are those of the tiles on the diagonal; only tiles below it are taken of L.
    """
    rows: list[torch.Tensor] = []
    for at in range(0, lower.shape[-1], TILE):
        here = slice(at, at + TILE)
        rest = unit.copied(right[:, here])
        for number, done in enumerate(rows):
            block = lower[:, here, number * TILE : (number + 1) * TILE]
            rest = unit.copied(unit.sub(rest, unit.product(block, done)))
        rows.append(unit.product(inverses[:, here], rest))
    return torch.cat(rows, 1)


def scan(
    unit: Unit,
    values: torch.Tensor,
    keys: torch.Tensor,
    attention: torch.Tensor,
    queries: torch.Tensor,
    updates: torch.Tensor,
    decay: torch.Tensor,
    state: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    """One chunk of all heads: its output and the state after it.

    values     [heads, C, V], corrected within the chunk
    keys       [heads, C, K], corrected alike: what they find in the state is taken off the values
    attention  [heads, C, C], of positions to those before them
    queries    [heads, C, K], decayed since the chunk began
    updates    [heads, K, C], keys decayed to the chunk's end
    decay      [heads, 1, 1], of the state over the chunk
    """
    fresh = unit.sub(values, unit.product(keys, state))
    out = unit.add(unit.product(queries, state), unit.product(attention, fresh))
    return out, unit.add(unit.mul(state, decay), unit.product(updates, fresh))
