"""Functions of one bfloat16, as tables of all 65,536 arguments."""

from __future__ import annotations

import functools
import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch

from ttnn_emulator.numerics.addresses import address_of
from ttnn_emulator.numerics.lookup_kernels import look_up, look_up_at

ALL_BF16 = (np.arange(65536, dtype=np.uint32) << 16).view(np.float32)
WORKERS = min(8, os.cpu_count() or 1)
ONE_WORKER = 1 << 17  # elements below which threads cost more than they save


@functools.cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(WORKERS, thread_name_prefix="lookup")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.cache_clear)  # a child process has none of its parent's threads


def apply_table(table: np.ndarray, x: torch.Tensor) -> torch.Tensor:
    """table[upper half of the bits of x], element by element."""
    source = x.contiguous()
    result = torch.empty_like(source)
    count = source.numel()
    if count <= ONE_WORKER or WORKERS == 1:
        look_up_at(table, address_of(source), address_of(result), count)
    else:
        indices, values = source.view(torch.int32).numpy().reshape(-1), result.numpy().reshape(-1)
        parts = zip(np.array_split(indices, WORKERS), np.array_split(values, WORKERS))
        for done in [_pool().submit(look_up, table, *part) for part in parts]:
            done.result()
    return result
