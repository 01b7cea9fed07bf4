"""Sums of products in the destination register, accumulated one fidelity phase at a time (ELWMUL, acc_to_dest)."""

from __future__ import annotations

import numpy as np
import torch
from numba import njit, uint32

from ttnn_emulator.numerics.formats.carriers import round_bf16_nearest_even
from ttnn_emulator.numerics.kernels.reductions import _multiplied
from ttnn_emulator.numerics.mode import exactly
from ttnn_emulator.numerics.native.worker_threads import cut, share
from ttnn_emulator.numerics.units.matrix_unit import PHASES, MathConfig
from ttnn_emulator.numerics.units.reductions import ONE_WORKER, PASS, multiply


@njit(cache=True, nogil=True)
def _sum_all(first, last, values, weights, phases, fp32_acc, out):
    for place in range(first, last):
        total = uint32(0)
        for number in range(values.shape[0]):
            total = _multiplied(values[number, place], weights[number, place], total, phases, fp32_acc)
        out[place] = total


def weighted_sum(values: torch.Tensor, weights: torch.Tensor, config: MathConfig) -> torch.Tensor:
    """The sum of values × weights over the first dimension, in the destination register."""
    weights = weights.expand(values.shape)
    if not exactly(values.numel() * PASS * PHASES[config.fidelity]):
        total = torch.zeros(values.shape[1:])
        for value, weight in zip(values, weights):
            product = multiply(value, weight, config, exact=False)
            total = total + product if config.fp32_acc else round_bf16_nearest_even(total + product)
        return total
    raw = [each.contiguous().numpy().view(np.uint32).reshape(values.shape[0], -1) for each in (values, weights)]
    out = np.empty(raw[0].shape[1], np.uint32)
    end = (*raw, PHASES[config.fidelity], config.fp32_acc, out)
    share(_sum_all, [(*part, *end) for part in cut(out.size, ONE_WORKER)])
    return torch.from_numpy(out.view(np.float32)).reshape(values.shape[1:])
