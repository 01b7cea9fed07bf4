"""Strided copies on the emulator's worker threads.

torch's threads spin for a while after each parallel loop and compete with the compiled loops that follow. So copies
between compiled loops do not wake them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from ttnn_emulator.numerics.native.worker_threads import cut, share

ALONE = 1 << 17  # elements below which one thread copies alone
FEW = 1 << 15  # elements up to which torch uses one thread


def contiguous(values: torch.Tensor) -> torch.Tensor:
    """The values as a contiguous tensor; no copy if they already are."""
    return values if values.is_contiguous() else copied(values)


def copied(values: torch.Tensor) -> torch.Tensor:
    """A contiguous copy of the values."""
    if values.dtype is torch.bfloat16:
        return copied(values.view(torch.int16)).view(torch.bfloat16)
    if not values.numel() or not values.ndim:
        return values.clone(memory_format=torch.contiguous_format)
    source = values.numpy()
    out = np.empty(source.shape, source.dtype)
    share(np.copyto, _pieces(out, source))
    return torch.from_numpy(out)


def copying(source: torch.Tensor) -> tuple[Callable[[], Any], torch.Tensor]:
    """A function that copies the current values, and the contiguous buffer that it fills."""
    out = torch.empty(source.shape, dtype=source.dtype)
    if not out.numel() or not out.ndim:
        return functools.partial(out.copy_, source), out
    return functools.partial(share, np.copyto, _pieces(_array(out), _array(source))), out


def joined(parts: Sequence[torch.Tensor], dim: int) -> torch.Tensor:
    """The parts concatenated along a dimension."""
    first = parts[0]
    dtypes = {part.dtype for part in parts}
    if len(dtypes) > 1 or not first.dim() or sum(part.numel() for part in parts) <= FEW:
        return torch.cat(list(parts), dim)
    shape = list(first.shape)
    shape[dim] = sum(part.shape[dim] for part in parts)
    out = torch.empty(shape, dtype=first.dtype)
    into, at = _array(out), 0
    pieces = []
    for part in parts:
        place = [slice(None)] * len(shape)
        place[dim] = slice(at, at + part.shape[dim])
        at += part.shape[dim]
        pieces += _pieces(into[tuple(place)], _array(part))
    share(np.copyto, pieces)
    return out


def _array(values: torch.Tensor) -> np.ndarray:
    return values.view(torch.int16).numpy() if values.dtype is torch.bfloat16 else values.numpy()


def _pieces(target: np.ndarray, source: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """A copy split into pieces for several threads."""
    axis = max(range(source.ndim), key=lambda each: (source.shape[each] > 1) * (source.ndim - each))
    rows = source.shape[axis]
    lead = (slice(None),) * axis
    parts = cut(rows, max(ALONE * rows // max(source.size, 1), 1))
    return [(target[(*lead, slice(*part))], source[(*lead, slice(*part))]) for part in parts]
