"""Transparent huge pages for large tensors, where the system supports them.

A product reads rows of a weight that are pages apart: with 4 KiB pages, every row needs another TLB entry.
"""

from __future__ import annotations

import ctypes
import functools
import mmap
import sys
from collections.abc import Callable

import torch

LEAST = 4 << 20  # bytes
LARGE_PAGES = getattr(mmap, "MADV_HUGEPAGE", None)


@functools.cache
def _advise() -> Callable[..., int] | None:
    if LARGE_PAGES is None or not sys.platform.startswith("linux"):
        return None
    advise = ctypes.CDLL(None, use_errno=True).madvise
    advise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    return advise


def in_large_pages(values: torch.Tensor) -> torch.Tensor:
    """Advise huge pages for a tensor that has not been written yet; no effect without system support."""
    size = values.numel() * values.element_size()
    advise = _advise() if size >= LEAST else None
    if advise is not None:
        start = -(-values.data_ptr() // mmap.PAGESIZE) * mmap.PAGESIZE
        advise(start, values.data_ptr() + size - start, LARGE_PAGES)  # a hint: results do not depend on it
    return values
