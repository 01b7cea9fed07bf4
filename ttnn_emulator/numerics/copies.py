"""Copies in another order, by the emulator's own threads.

torch's threads go on spinning for a while after each of their loops, and keep the cores from the compiled loops that
follow. So what stands between those does not wake them.
"""

from __future__ import annotations

import numpy as np
import torch

from ttnn_emulator.numerics.workers import cut, share

ALONE = 1 << 17  # elements that one thread copies before others are woken


def contiguous(values: torch.Tensor) -> torch.Tensor:
    """The values one after the other in memory; themselves if they already are."""
    return values if values.is_contiguous() else copied(values)


def copied(values: torch.Tensor) -> torch.Tensor:
    """The values one after the other in memory of their own."""
    if values.dtype is torch.bfloat16:
        return copied(values.view(torch.int16)).view(torch.bfloat16)
    if not values.numel() or not values.ndim:
        return values.clone(memory_format=torch.contiguous_format)
    source = values.numpy()
    made = np.empty(source.shape, source.dtype)
    axis = max(range(source.ndim), key=lambda each: (source.shape[each] > 1) * (source.ndim - each))
    rows = source.shape[axis]
    lead = (slice(None),) * axis
    parts = cut(rows, max(ALONE * rows // max(source.size, 1), 1))
    share(np.copyto, [(made[(*lead, slice(*part))], source[(*lead, slice(*part))]) for part in parts])
    return torch.from_numpy(made)
