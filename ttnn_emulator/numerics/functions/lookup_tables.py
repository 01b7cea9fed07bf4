"""Functions of one bfloat16 as tables over all 65,536 arguments."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from ttnn_emulator.numerics.kernels.lookup_tables import look_up_at
from ttnn_emulator.numerics.native.addresses import address_of
from ttnn_emulator.numerics.native.worker_threads import cut, share

ALL_BF16 = (np.arange(65536, dtype=np.uint32) << 16).view(np.float32)
ONE_WORKER = 1 << 17  # elements below which threads cost more than they save


def apply_table(table: np.ndarray, x: torch.Tensor) -> torch.Tensor:
    """table[upper 16 bits of x], elementwise."""
    source = x.contiguous()
    run, result = applying_table(table, source)
    run()
    return result


def applying_table(table: np.ndarray, source: torch.Tensor) -> tuple[Callable[[], Any], torch.Tensor]:
    """A function that looks up the current contiguous values, and its output; it keeps neither buffer alive."""
    result = torch.empty_like(source)
    count = source.numel()
    start, end = address_of(source), address_of(result)
    if count <= ONE_WORKER:
        return functools.partial(look_up_at, table, start, end, count), result
    parts = cut(count, ONE_WORKER)
    pieces = [(table, start + 4 * first, end + 4 * first, last - first) for first, last in parts]
    return functools.partial(share, look_up_at, pieces), result
