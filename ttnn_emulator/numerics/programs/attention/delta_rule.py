"""The gated delta rule, one chunk of a sequence at a time, as its kernels compute it in float32 buffers.

A keys × values state is carried along the sequence. Within a chunk, the corrections of a position by earlier ones form
a unit lower triangular matrix L; its inverse gives all new values of the chunk at once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields

import torch

from ttnn_emulator.enums import DataType
from ttnn_emulator.numerics.mode import exactly
from ttnn_emulator.numerics.units import reductions as numeric
from ttnn_emulator.numerics.units.compute_core import Core
from ttnn_emulator.numerics.units.matrix_unit import PANEL_SPEED, PHASES, MathConfig, matmul

WIDE = DataType.FLOAT32
TILE = 32


class Unit:
    """The matrix unit on float32 buffers: source registers keep 11 bits of the mantissa."""

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
    """L⁻¹ right by forward substitution over tile rows: [heads, C, C], [heads, C, 32], [heads, C, width].

    `inverses` are the inverses of the diagonal tiles; of L, only tiles below the diagonal are read.
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
    keys       [heads, C, K], corrected likewise; their product with the state is subtracted from the values
    attention  [heads, C, C], of positions to earlier positions
    queries    [heads, C, K], with the decay since the start of the chunk
    updates    [heads, K, C], keys with the decay until the end of the chunk
    decay      [heads, 1, 1], of the state over the chunk
    """
    new_values = unit.sub(values, unit.product(keys, state))
    out = unit.add(unit.product(queries, state), unit.product(attention, new_values))
    return out, unit.add(unit.mul(state, decay), unit.product(updates, new_values))


# -- chunk preparation ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Chunks:
    """What the scan needs of all chunks and does not depend on the state; [chunks, …] each."""

    values: torch.Tensor  # × beta
    keys: torch.Tensor  # × beta × decay since the start of the chunk
    inverse: torch.Tensor  # of the corrections within a chunk
    attention: torch.Tensor
    queries: torch.Tensor
    updates: torch.Tensor
    decay: torch.Tensor  # of the state over the chunk, repeated for 32 rows


# tt-metal v0.81.1: ttnn/cpp/ttnn/operations/transformer/chunk_gated_delta_rule/device/kernels/compute/chunk_gdn_math.hpp, prep_chunk  # noqa: E501
def prepared(
    unit: Unit,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    gate: torch.Tensor,
    beta: torch.Tensor,
    *,
    whole: bool,
    solves: bool,
) -> Chunks:
    """[chunks, C, …] of queries, keys and values, [chunks, C, 1] of logarithmic gates and of beta.

    `whole` inverts a chunk with one power series; otherwise the diagonal tiles are inverted block by block. With
    `solves` the vector unit inverts a chunk of one tile by forward substitution.
    """
    size = key.shape[1]
    lower, ones = torch.tril(torch.ones(size, size)), torch.ones(size, size)
    values, keys = unit.mul(value, beta), unit.mul(key, beta)
    since = unit.product(lower.expand(len(gate), -1, -1), gate)
    total = unit.product(ones.expand(len(gate), -1, -1), gate)
    decay, until = unit.core.apply("exp", since), unit.core.apply("exp", total - since)
    between = unit.copied(since) - unit.copied(since).transpose(1, 2)
    mask = lower * unit.core.apply("exp", lower * between)
    corrections = -torch.tril(unit.product(keys, key, transposed=True) * mask, -1)
    if whole:
        inverse = _series(unit, corrections, size)
    elif solves:
        eye = torch.eye(size).expand_as(corrections)
        inverse = torch.linalg.solve_triangular(eye - corrections, eye, upper=False, unitriangular=True)
    else:
        inverse = _inverted(unit, corrections)
    over = (until * decay)[:, size - TILE :]
    return Chunks(
        values,
        unit.mul(keys, decay),
        inverse,
        unit.product(query, key, transposed=True) * mask,
        unit.mul(query, decay),
        unit.copied(unit.mul(key, until)).transpose(1, 2),
        over[:, :1].expand_as(over) if whole else over,
    )


def _series(unit: Unit, corrections: torch.Tensor, terms: int) -> torch.Tensor:
    """(1 - N)⁻¹ = 1 + N (1 + N (1 + …)) for strictly lower triangular N."""
    eye = torch.eye(corrections.shape[-1]).expand_as(corrections)
    inverse = unit.add(eye, corrections)
    for _ in range(2, terms):
        inverse = unit.add(eye, unit.product(corrections, inverse))
    return inverse


# tt-metal v0.81.1: ttnn/cpp/ttnn/operations/transformer/chunk_gated_delta_rule/device/kernels/compute/chunk_gdn_math.hpp, invert_block  # noqa: E501
def _inverted(unit: Unit, corrections: torch.Tensor) -> torch.Tensor:
    """(1 - N)⁻¹ by blocks: tiles, and half tiles, whose power series are short."""
    if corrections.shape[-1] == TILE:
        return _joined(unit, corrections, TILE // 2, lambda block: _series(unit, block, TILE // 2))
    inverse = _joined(unit, corrections, TILE, lambda block: _inverted(unit, block))
    return unit.copied(inverse)


def _joined(
    unit: Unit, corrections: torch.Tensor, half: int, invert: Callable[[torch.Tensor], torch.Tensor]
) -> torch.Tensor:
    """The inverse of a 2 × 2 block matrix from the inverses of its diagonal blocks."""
    block = unit.copied(corrections)
    first, second = invert(block[:, :half, :half]), invert(block[:, half:, half:])
    below = unit.product(unit.product(second, block[:, half:, :half]), first)
    inverse = torch.zeros_like(block)
    inverse[:, :half, :half], inverse[:, half:, half:] = unit.copied(first), unit.copied(second)
    inverse[:, half:, :half] = unit.copied(below)
    return inverse


# tt-metal v0.81.1: ttnn/cpp/ttnn/operations/transformer/chunk_gated_delta_rule/device/kernels/compute/chunk_gdn_math.hpp, scan_step  # noqa: E501
def scan_prepared(unit: Unit, chunks: Chunks, state: torch.Tensor, *, whole: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """Chunks [heads, count, …] in sequence: outputs [heads, count, C, V] and the final state.

    `whole` is the single-program kernel, which stores every product in a buffer; the others accumulate in the
    destination register and apply the inverse last.
    """
    parts = [getattr(chunks, each.name).unflatten(0, (len(state), -1)) for each in fields(chunks)]
    outputs = []
    for values, keys, inverse, attention, queries, updates, decay in zip(*(part.unbind(1) for part in parts)):
        lines = decay.repeat(1, state.shape[1] // TILE, 1)
        if whole:
            new_values = unit.sub(unit.product(inverse, values), unit.product(unit.product(inverse, keys), state))
            out = unit.add(unit.product(queries, state), unit.product(attention, new_values))
            state = unit.add(unit.mul(state, lines), unit.product(updates, new_values))
        else:
            new_values = unit.product(inverse, unit.copied(values) - unit.product(keys, state))
            out = unit.product(queries, state) + unit.product(attention, new_values)
            state = unit.mul(state, lines) + unit.product(updates, new_values)
        outputs.append(out)
    return torch.stack(outputs, 1), state


def unit_rows(unit: Unit, values: torch.Tensor, epsilon: float, scale: float) -> torch.Tensor:
    """Rows normalised to length `scale`: × rsqrt(Σ x² + epsilon)."""
    squares = unit.core.row_sums(unit.core.mul(values, values))
    inverse = unit.core.apply("rsqrt", squares + epsilon) * scale
    return unit.mul(values, inverse)
