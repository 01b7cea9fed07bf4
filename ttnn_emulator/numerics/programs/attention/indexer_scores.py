"""Indexer scores: per-head scores of the keys, weighted by gates and summed over heads, in the order of the kernel.

The kernel has two variants. In the first, the heads of one plane are multiplied with the keys, packed, and accumulated
as gate × score in a 16-bit destination register, one batch of heads at a time; batches are accumulated in L1. If a
plane has one head and no relu, the queries are multiplied by the gate first, and their product with the keys is the
score.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from numba import njit, uint32

from ttnn_emulator.enums import DataType, MathFidelity
from ttnn_emulator.numerics.formats.carriers import round_bf16_nearest_even
from ttnn_emulator.numerics.kernels.reductions import _multiplied
from ttnn_emulator.numerics.mode import exactly
from ttnn_emulator.numerics.native.worker_threads import cut, share
from ttnn_emulator.numerics.programs.attention.softmax_steps import added_in_l1
from ttnn_emulator.numerics.units import reductions as numeric
from ttnn_emulator.numerics.units.compute_core import Core
from ttnn_emulator.numerics.units.matrix_unit import PANEL_SPEED, PHASES, MathConfig, matmul

NARROW = DataType.BFLOAT16


# tt-metal v0.81.1: ttnn/cpp/ttnn/operations/experimental/indexer_score/device/kernels/compute_indexer_score.cpp,
#     kernel_main
# tt-metal v0.81.1: tt_metal/tt-llk/tt_llk_blackhole/llk_lib/experimental/llk_math_eltwise_binary_custom.h,
#     _bcast_cols_op_
@dataclass(frozen=True)
class Scorer:
    """A kernel with its settings.

    relu     negative scores of a head become zero
    planes   groups of heads, each with its own scores
    batch    heads of a plane that are accumulated in the destination register
    strip    whole rows of keys are processed at once: the multiplication by gates runs one fidelity phase, whatever
             math fidelity is configured
    folded   gates are multiplied into the queries
    """

    math: MathConfig
    relu: bool
    planes: int
    batch: int
    strip: bool
    folded: bool

    def scores(self, query: torch.Tensor, key: torch.Tensor, gates: torch.Tensor) -> torch.Tensor:
        """[heads, queries, depth], [keys, depth], gates [heads, queries] → [planes, queries, keys], bfloat16."""
        heads, queries, depth = query.shape
        size = queries * key.shape[0]
        work = heads * size * depth * PHASES[self.math.fidelity] // PANEL_SPEED
        core = Core(self.math, exactly(work + heads * size * numeric.PASS))
        gates = gates.unsqueeze(-1)
        each = heads // self.planes
        out = torch.empty(self.planes, queries, key.shape[0])
        for plane in range(self.planes):
            part = slice(plane * each, (plane + 1) * each)
            of_plane = self._folded if self.folded else self._added
            out[plane] = of_plane(core, query[part], key, gates[part])
        return out

    def _folded(self, core: Core, query: torch.Tensor, key: torch.Tensor, gates: torch.Tensor) -> torch.Tensor:
        gated = core.packed(core.mul(query[0], gates[0].expand_as(query[0])), NARROW)
        return core.packed(matmul(gated, key, core.config, transposed=True), NARROW)

    def _added(self, core: Core, query: torch.Tensor, key: torch.Tensor, gates: torch.Tensor) -> torch.Tensor:
        config = replace(core.config, fidelity=MathFidelity.LoFi) if self.strip else core.config
        total: torch.Tensor | None = None
        for first in range(0, len(query), self.batch):
            sums = torch.zeros(query.shape[1], key.shape[0])
            for head in range(first, first + self.batch):
                score = core.packed(matmul(query[head], key, core.config, transposed=True), NARROW)
                score = score.clamp(min=0.0) if self.relu else score
                sums = multiplied_onto(sums, score, gates[head], config, exact=core.exact)
            sums = core.packed(sums, NARROW)
            total = sums if total is None else added_in_l1(total, sums, NARROW)
        assert total is not None
        return total


def multiplied_onto(
    sums: torch.Tensor, a: torch.Tensor, b: torch.Tensor, config: MathConfig, *, exact: bool
) -> torch.Tensor:
    """The destination register after a × b has been accumulated, one fidelity phase at a time.

    `a` is in source A, and `b`, which is broadcast, in source B.
    """
    if not exact:
        total = sums + numeric.multiply(a, b, replace(config, fp32_acc=True), exact=False)
        return total if config.fp32_acc else round_bf16_nearest_even(total)
    out = torch.empty_like(sums)
    words = [_words(each.expand_as(sums)) for each in (a, b, sums, out)]
    end = (*words[:3], PHASES[config.fidelity], config.fp32_acc, words[3])
    share(_multiply_onto, [(*part, *end) for part in cut(out.numel(), numeric.ONE_WORKER)])
    return out


def _words(values: torch.Tensor) -> np.ndarray:
    return values.contiguous().view(torch.int32).numpy().view(np.uint32).reshape(-1)


@njit(cache=True, nogil=True)
def _multiply_onto(first, last, a, b, starts, phases, wide, out):
    """starts + a × b for elements `first` to `last`."""
    for i in range(first, last):
        out[i] = _multiplied(a[i], b[i], uint32(starts[i]), phases, wide)
