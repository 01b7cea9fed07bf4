"""How the kernels of moe_gate_mm select experts: eight cores have the scores of one group each, one core collects.

Scores are bfloat16 in the upper half of a register, with their index in the lower half; SFPSWAP compares both. So no
two keys of a token are equal, and the sorting networks of the kernels agree with any other sort.
"""

from __future__ import annotations

import numpy as np
import torch

from ttnn_emulator.numerics.formats.carriers import flush
from ttnn_emulator.numerics.units import vector_unit

Int = np.ndarray

GROUPS, GROUP = 8, 32  # groups of experts, and experts per group
KEPT_GROUPS, KEPT = 4, 8
# tt-metal v0.81.1: ttnn/cpp/ttnn/operations/experimental/deepseek/moe/moe_gate_mm/device/kernels/top8_sfpu.h,
#     _top8_configure_addrmod_
SUBGROUP = 8  # experts sorted at a time, in place
COLLECTOR = GROUPS - 1
UPPER = np.int32(-0x10000)
HIDDEN = np.int32(-0x800000)  # -infinity, with index 0
HALF_GROUP = 16  # experts per 16-bit mask


# tt-metal v0.81.1: ttnn/cpp/ttnn/operations/experimental/deepseek/moe/moe_gate_mm/device/kernels/bias_bcast_sfpu.h,
#     _add_bias_
def biased(scores: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """scores + bias as the kernel stores it, packed."""
    total = vector_unit.add(scores.numpy(), np.broadcast_to(bias.numpy(), scores.shape))
    return flush(torch.from_numpy(np.ascontiguousarray(vector_unit.store_bf16(total))))


def collected(scores: torch.Tensor, column: int) -> torch.Tensor:
    """The tile [32, 32] that the last core computes from biased scores [group, token, expert]; a column is a token.

    Rows 0 to 7 are the best scores and rows 8 to 15 their experts. Rows 16 and 17 are masks of the 32 experts of
    `column` among them, 16 bits each. The other rows are stale registers: of that search in rows 18 and 19, then the
    lower half of the third and all of the fourth sorted eight of the last group.
    """
    values = np.ascontiguousarray(scores.numpy())
    keys = vector_unit.bits(values) & UPPER | np.arange(GROUP, dtype=np.int32)
    best = _sorted(keys)[..., :KEPT] + (np.arange(GROUPS, dtype=np.int32) << 5)[:, None, None]
    chosen = (_chosen_groups(values)[None] >> np.arange(GROUPS, dtype=np.int32)[:, None]) & 1
    best = np.where(chosen[..., None] == 1, best, HIDDEN)
    best = _sorted(np.moveaxis(best, 0, 1).reshape(best.shape[1], -1))[:, :KEPT]
    own = keys[COLLECTOR]
    third, fourth = (_sorted(own[:, first : first + SUBGROUP]) for first in (2 * SUBGROUP, 3 * SUBGROUP))
    rows = (
        _upper_halves(best),
        _lower_halves(best),
        _lower_halves(np.stack(_found_in_column(best, column), -1)),
        _upper_halves(third[:, SUBGROUP // 2 :]),
        _upper_halves(fourth),
    )
    return flush(torch.from_numpy(np.ascontiguousarray(np.concatenate(rows, 1).T)))


def _sorted(keys: Int) -> Int:
    """Registers in descending order, by sign and magnitude."""
    order = np.argsort(-vector_unit.total_order(keys.view(np.float32)).astype(np.int64), -1, kind="stable")
    return np.take_along_axis(keys, order, -1)


# tt-metal v0.81.1: ttnn/cpp/ttnn/operations/experimental/deepseek/moe/moe_gate_mm/device/kernels/top2_sum_sfpu.h,
#     _top2_calculate_top2_
# tt-metal v0.81.1: ttnn/cpp/ttnn/operations/experimental/deepseek/moe/moe_gate_mm/device/kernels/top4_sfpu.h,
#     _calculate_top4_
def _chosen_groups(values: np.ndarray) -> Int:
    """Per token, a bit mask of the groups with the largest sums of two best experts."""
    two = _sorted(vector_unit.bits(values))[..., :2].view(np.float32)
    sums = vector_unit.store_bf16(vector_unit.add(two[..., 0], two[..., 1]))
    packed = flush(torch.from_numpy(np.ascontiguousarray(sums))).numpy()
    keys = vector_unit.bits(packed.T) & UPPER | np.arange(GROUPS, dtype=np.int32)
    groups = _sorted(keys)[:, :KEPT_GROUPS] & 0xFF
    return np.bitwise_or.reduce(np.int32(1) << groups, -1)


# tt-metal v0.81.1: ttnn/cpp/ttnn/operations/experimental/deepseek/moe/moe_gate_mm/device/kernels/top8_merge_sfpu.h,
#     _top8_merge_
def _found_in_column(best: Int, column: int) -> tuple[Int, Int, Int, Int]:
    """Registers 4 to 7 at the end of the merge: two masks, and stale values of its last steps.

    Lanes are disabled by one condition after another, so register 7 keeps older values in lanes disabled early.
    """
    # The immediate operand of SFPIADD has 12 bits and a sign.
    offset = (-(column << 5)) & 0xFFF
    offset -= 0x1000 if offset & 0x800 else 0
    masks = [np.zeros(best.shape[0], np.int32) for _ in range(2)]
    flag, last = np.zeros(best.shape[0], np.int32), best[:, -1].copy()
    for first in range(0, KEPT, KEPT // 2):
        experts = (best[:, first : first + KEPT // 2] & 0xFFFF).T.copy()
        for half, step in enumerate((offset, -HALF_GROUP)):
            for expert in experts:
                expert += np.int32(step)
                reached = expert >= 0
                last = np.where(reached, expert - HALF_GROUP, last)
                inside = reached & (expert < HALF_GROUP)
                flag = inside.astype(np.int32)
                last = np.where(inside, np.int32(1) << (expert & 15), last)
                masks[half] |= np.where(inside, last, 0)
    return masks[0], masks[1], flag, last


def _upper_halves(registers: Int) -> np.ndarray:
    return vector_unit.store_bf16(registers.view(np.float32))


def _lower_halves(registers: Int) -> np.ndarray:
    """Bits 0 to 15 as SFPSTORE writes them to a bfloat16 register, whose lowest eight bits are the exponent."""
    raw = registers.astype(np.int32) & 0xFFFF
    bits = (raw & 0x8000) | (raw & 0xFF) << 7 | (raw >> 8) & 0x7F
    return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)
