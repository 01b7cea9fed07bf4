"""The gate of a mixture of experts: which eight of 256 or 512 scores the vector unit selects, and their weights.

The unit sorts 16 values at a time in four registers of four rows. The order of equal keys depends on the order of
comparisons, so this module compares in the order of the kernel. Each key carries its expert's index.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ttnn_emulator.numerics.functions.exponential import exp
from ttnn_emulator.numerics.functions.roots import reciprocal
from ttnn_emulator.numerics.units.vector_unit import Float, add, bits, mul, store_bf16, sub

# tt-metal v0.81.1: tt_metal/tt-llk/tt_llk_wormhole_b0/common/inc/sfpu/experimental/ckernel_sfpu_generalized_moe_gate_topk_single_face.h, _generalized_moe_gate_top8  # noqa: E501
GROUPS = 8
KEPT = 8  # of every 16 that are sorted
BEST_GROUPS = 4
BLOCK = 256  # experts per tile, in its first face

# Which rows of a register put the larger value first.
ALL, UPPER, EVEN = (0, 1, 2, 3), (0, 1), (0, 2)
STEPS = ((0, 2), (1, 3), (0, 1), (2, 3))


@dataclass
class Registers:
    """Four registers [sorts, 4, 4]: `keys` that are compared, and `places` that move with them."""

    keys: np.ndarray
    places: np.ndarray

    @classmethod
    def holding(cls, keys: np.ndarray, places: np.ndarray) -> Registers:
        """Sixteen values per sort, four consecutive ones per register."""
        return cls(keys.reshape(-1, 4, 4).copy(), places.reshape(-1, 4, 4).copy())

    def swap(self, first: int, second: int, rows: Sequence[int] = ALL) -> None:
        """SFPSWAP: in `rows` the larger value goes to the first register, in other rows to the second."""
        smaller = self.keys[:, first] < self.keys[:, second]
        larger_first = np.isin(np.arange(4), rows)
        exchanged = smaller == larger_first
        for field in (self.keys, self.places):
            a, b = field[:, first].copy(), field[:, second].copy()
            field[:, first], field[:, second] = np.where(exchanged, b, a), np.where(exchanged, a, b)

    def transpose(self) -> None:
        self.keys, self.places = (np.swapaxes(field, 1, 2).copy() for field in (self.keys, self.places))

    # tt-metal v0.81.1: tt_metal/tt-llk/tt_llk_wormhole_b0/common/inc/sfpu/experimental/ckernel_sfpu_generalized_moe_gate_topk_single_face.h, bitonic_topk_ph1_st2_to_1_single_face  # noqa: E501
    def sort_pairs_and_fours(self) -> None:
        """Phases 0 and 1."""
        self.transpose()
        self.swap(0, 1)
        self.swap(3, 2)
        for first, second in STEPS:
            self.swap(first, second, EVEN)
        self.transpose()

    def sort_eights(self, *, bitonic: bool) -> None:
        """Phase 2: two runs of eight, the second in the opposite direction if `bitonic`."""
        self.swap(0, 1)
        self.swap(*((3, 2) if bitonic else (2, 3)))
        self.transpose()
        for first, second in STEPS:
            self.swap(first, second, UPPER if bitonic else ALL)
        self.transpose()

    def best_eight(self, *, descending: bool = True) -> None:
        """Phase 3: the larger half of a bitonic sequence, sorted, in the first or last two registers."""

        def larger(first: int, second: int) -> None:
            self.swap(*((first, second) if descending else (second, first)))

        larger(0, 2)
        larger(1, 3)
        larger(0, 1) if descending else larger(2, 3)
        self.transpose()
        for first, second in STEPS:
            larger(first, second)
        self.transpose()

    def sort(self, *, descending: bool = True) -> None:
        self.sort_pairs_and_fours()
        self.sort_eights(bitonic=True)
        self.best_eight(descending=descending)

    def half(self, number: int) -> tuple[np.ndarray, np.ndarray]:
        """[sorts, 8] keys and places of the first or last two registers."""
        part = slice(2 * number, 2 * number + 2)
        return self.keys[:, part].reshape(-1, KEPT), self.places[:, part].reshape(-1, KEPT)


Runs = tuple[np.ndarray, np.ndarray]  # keys and places, [..., 8]


def _joined(first: Runs, second: Runs) -> Registers:
    return Registers.holding(*(np.concatenate(pair, -1) for pair in zip(first, second)))


def _reversed(runs: Runs) -> Runs:
    return runs[0][..., ::-1], runs[1][..., ::-1]


def _group_runs(keys: np.ndarray, places: np.ndarray) -> Runs:
    """The best eight of each group's 32, sorted: [tokens, 8 groups, 8]. Two columns of 16 are sorted separately."""
    keys, places = (field.reshape(-1, GROUPS, 2, 16) for field in (keys, places))
    even = Registers.holding(keys[:, :, 0], places[:, :, 0])
    even.sort()
    odd = Registers.holding(keys[:, :, 1], places[:, :, 1])
    odd.sort(descending=False)
    both = _joined(even.half(0), odd.half(1))
    both.best_eight()
    best = both.half(0)
    return best[0].reshape(-1, GROUPS, KEPT), best[1].reshape(-1, GROUPS, KEPT)


def _of_four_runs(runs: Runs) -> Runs:
    """Four sorted runs [tokens, 4, 8] → their best eight, unsorted: [tokens, 8]."""
    pairs = _joined((runs[0][:, 0::2], runs[1][:, 0::2]), _reversed((runs[0][:, 1::2], runs[1][:, 1::2])))
    pairs.best_eight()
    keys, places = (field.reshape(-1, 2, KEPT) for field in pairs.half(0))
    both = _joined((keys[:, 0], places[:, 0]), _reversed((keys[:, 1], places[:, 1])))
    both.swap(0, 2)
    both.swap(1, 3)
    return both.half(0)


def _of_two_runs(first: Runs, second: Runs) -> Runs:
    """The best eight of 16, sorted."""
    both = _joined(first, second)
    both.sort()
    return both.half(0)


def order_keys(values: Float) -> np.ndarray:
    """int32 keys in the vector unit's order of floats: by sign, then by magnitude."""
    raw = bits(values)
    return np.where(raw < 0, raw ^ np.int32(0x7FFFFFFF), raw)


def best_eight(keys: Float) -> np.ndarray:
    """Indices of the best eight of [tokens, 256 or 512] keys, best first: [tokens, 8]."""
    blocks = []
    for start in range(0, keys.shape[-1], BLOCK):
        part = order_keys(keys[:, start : start + BLOCK])
        places = np.broadcast_to(np.arange(start, start + BLOCK), part.shape)
        runs = _group_runs(part, places)
        halves = (_of_four_runs((runs[0][:, half], runs[1][:, half])) for half in (np.s_[:4], np.s_[4:]))
        blocks.append(_of_two_runs(*halves))
    return (blocks[0] if len(blocks) == 1 else _of_two_runs(blocks[1], blocks[0]))[1]


# tt-metal v0.81.1: tt_metal/tt-llk/tt_llk_wormhole_b0/common/inc/sfpu/experimental/ckernel_sfpu_generalized_moe_gate_topk_single_face.h, _generalized_moe_gate_sort_top4_groups  # noqa: E501
def best_eight_of_groups(keys: Float) -> np.ndarray:
    """The best eight of the four groups with the largest sums of two keys, unsorted: [tokens, 256] → [tokens, 8]."""
    run_keys, run_places = _group_runs(order_keys(keys), np.broadcast_to(np.arange(BLOCK), keys.shape))
    two_best = np.take_along_axis(keys, run_places[:, :, :2].reshape(-1, 2 * GROUPS), -1).reshape(-1, GROUPS, 2)
    sums = order_keys(store_bf16(add(two_best[..., 0], two_best[..., 1])))
    groups = np.broadcast_to(np.arange(GROUPS), sums.shape)
    sorted_groups = _joined((sums, groups), (sums, groups))
    sorted_groups.sort_pairs_and_fours()
    sorted_groups.sort_eights(bitonic=False)
    chosen = sorted_groups.half(0)[1][:, :BEST_GROUPS, None]
    return _of_four_runs((np.take_along_axis(run_keys, chosen, 1), np.take_along_axis(run_places, chosen, 1)))[1]


# tt-metal v0.81.1: tt_metal/tt-llk/tt_llk_wormhole_b0/common/inc/sfpu/experimental/ckernel_sfpu_generalized_moe_gate_topk_single_face.h, _generalized_moe_gate_finalize_ungrouped  # noqa: E501
def weights(scores: Float, epsilon: float, scale: float, *, kept: int, softmax: bool) -> Float:
    """[tokens, 8] scores, or exponentials with `softmax`, divided by the sum of the first `kept`; the others are 0."""
    if softmax:
        scores = store_bf16(sub(scores, scores[:, :1]))
        scores = store_bf16(exp(scores, approx=False, fp32=False))
    scores = np.where(np.arange(KEPT) < kept, scores, np.float32(0.0))
    fours = add(scores[:, :4], scores[:, 4:])
    total = store_bf16(add(add(fours[:, 0], fours[:, 1]), add(fours[:, 2], fours[:, 3])))
    inverse = reciprocal(add(total, np.float32(epsilon)), steps=2)
    return store_bf16(mul(scores, mul(inverse, np.float32(scale))[:, None]))
