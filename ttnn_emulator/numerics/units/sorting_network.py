"""The sorting network of the vector unit, traced: which of 64 positions are compared, and in which order.

The unit sorts 64 values at a time, the columns of two tiles. It loads 16 of them into four registers of four rows each,
compares and swaps registers, transposes them and stores them back. The comparisons do not depend on the values, so they
are traced once; the final order of equal values follows from them.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, field

import numpy as np

# tt-metal v0.81.1: tt_metal/tt-llk/tt_llk_wormhole_b0/common/inc/sfpu/ckernel_sfpu_topk.h, _bitonic_topk_phases_steps
BLOCK = 64  # values that one pass over the registers sorts: two tiles
MAX, MIN = 0, 1  # descending, ascending

# The steps (two positions and the kind of exchange), and the final position of every value.
Network = tuple[np.ndarray, np.ndarray]
Networks = tuple[Network, Network]  # descending, ascending

# Kind of exchange: if the first is smaller, or if it is not smaller, which exchanges equal values too.
IF_SMALLER, IF_NOT_SMALLER = 0, 1

# Which rows of a register put the larger value first.
ALL, UPPER, EVEN = (0, 1, 2, 3), (0, 1), (0, 2)


@dataclass
class _Trace:
    """The registers hold positions instead of values; a swap records the positions that it compares."""

    places: list[int] = field(default_factory=lambda: list(range(BLOCK)))
    steps: list[tuple[int, int, int]] = field(default_factory=list)
    registers: list[list[int]] = field(default_factory=list)

    def load(self, start: int, step: int, far: int) -> None:
        bases = (start, start + step, start + far, start + far + step)
        self.registers = [[self.places[base + row] for row in range(4)] for base in bases]

    def store(self, start: int, step: int, far: int) -> None:
        for base, register in zip((start, start + step, start + far, start + far + step), self.registers):
            self.places[base : base + 4] = register

    def swap(self, first: int, second: int, rows: tuple[int, ...] = ALL, *, reverse: bool = False) -> None:
        for row in range(4):
            kind = IF_SMALLER if (row in rows) != reverse else IF_NOT_SMALLER
            self.steps.append((self.registers[first][row], self.registers[second][row], kind))

    def exchange(self, first: int, second: int) -> None:
        self.registers[first], self.registers[second] = self.registers[second], self.registers[first]

    def transpose(self) -> None:
        self.registers = [list(column) for column in zip(*self.registers)]

    def sort_sixteen(self, order: int) -> None:
        """Steps 4 to 1: a bitonic sequence of 16 in order."""
        for _ in range(2):
            for first, second in ((0, 2), (1, 3), (0, 1), (2, 3)):
                self.swap(first, second, reverse=order == MIN)
            self.transpose()

    def compare_halves(self, distance: int, order: int, length: int) -> None:
        """Compare every value with the one `distance` further; the order alternates every `length` values."""
        for block in range(0, BLOCK, 2 * distance):
            for start in range(block, block + distance, 8):
                self.load(start, 4, distance)
                for low, high in ((0, 2), (1, 3)):
                    self.swap(*((low, high) if order == MAX else (high, low)))
                self.store(start, 4, distance)
            if block + 2 * distance == length:
                order = 1 - order

    # tt-metal v0.81.1: tt_metal/tt-llk/tt_llk_wormhole_b0/common/inc/sfpu/ckernel_sfpu_topk.h,
    #     _bitonic_topk_merge, _bitonic_topk_rebuild
    def merge(self, order: int, phase: int) -> None:
        """Phase 4 or 5: sort bitonic runs of 32 or 64."""
        length = 2 << phase
        for step in range(phase + 1, 4, -1):
            self.compare_halves(16 if step == 5 else 32, order, length)
        for start in range(0, BLOCK, 16):
            self.load(start, 4, 8)
            self.sort_sixteen(order)
            self.store(start, 4, 8)
            if start + 16 == length:
                order = 1 - order

    def first_phases(self, order: int, last: int) -> None:
        for phase in range(last + 1):
            direction = order
            for start in range(0, BLOCK, 16):
                self.load(start, 4, 8)
                self._small_phase(phase, direction)
                self.store(start, 4, 8)
                direction = 1 - direction

    def _small_phase(self, phase: int, order: int) -> None:
        if phase == 3:
            self.sort_sixteen(order)
            return
        if phase == 2:
            self.swap(0, 1)
            self.swap(2, 3)
            self.exchange(2, 3)
        self.transpose()
        if phase == 0:
            self.swap(0, 1)
            self.swap(3, 2)
        else:
            rows = EVEN if phase == 1 else UPPER
            for first, second in ((0, 2), (1, 3), (0, 1), (2, 3)):
                self.swap(first, second, rows)
        self.transpose()

    def network(self) -> Network:
        return np.array(self.steps, np.intp).reshape(-1, 3), np.array(self.places, np.intp)


@functools.cache
def sorting(last_phase: int) -> Networks:
    """Networks that sort 64 values; up to phase 4, runs of 32 in alternating order."""

    def traced(order: int) -> Network:
        trace = _Trace()
        trace.first_phases(order, min(last_phase, 3))
        for phase in range(4, last_phase + 1):
            trace.merge(order, phase)
        return trace.network()

    return traced(MAX), traced(MIN)


@functools.cache
def merging(phase: int) -> Networks:
    """Networks that sort bitonic runs of 32 (phase 4) or 64 (phase 5)."""

    def traced(order: int) -> Network:
        trace = _Trace()
        trace.merge(order, phase)
        return trace.network()

    return traced(MAX), traced(MIN)
