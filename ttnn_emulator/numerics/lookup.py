"""Functions of one bfloat16, as tables of all 65,536 arguments."""

from __future__ import annotations

import numpy as np
import torch

from ttnn_emulator.numerics.addresses import address_of
from ttnn_emulator.numerics.lookup_kernels import look_up_at
from ttnn_emulator.numerics.workers import cut, share

ALL_BF16 = (np.arange(65536, dtype=np.uint32) << 16).view(np.float32)
ONE_WORKER = 1 << 17  # elements below which threads cost more than they save


def apply_table(table: np.ndarray, x: torch.Tensor) -> torch.Tensor:
    """table[upper half of the bits of x], element by element."""
    source = x.contiguous()
    result = torch.empty_like(source)
    count = source.numel()
    start, end = address_of(source), address_of(result)
    if count <= ONE_WORKER:
        look_up_at(table, start, end, count)
        return result
    parts = cut(count, ONE_WORKER)
    share(look_up_at, [(table, start + 4 * first, end + 4 * first, last - first) for first, last in parts])
    return result
