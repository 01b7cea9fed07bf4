"""Functions of torch that prepare weights and constants, once and not on every call."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor

from ttnn_emulator.numerics.pages import in_large_pages

LARGEST = torch.finfo(torch.bfloat16).max


def saturated(tensor: torch.Tensor) -> torch.Tensor:
    """Finite values stay finite in bfloat16: masks are often filled with the least float32, which would become -inf."""
    if isinstance(tensor, FakeTensor) or tensor.is_meta or not tensor.numel():
        return tensor
    # Not by absolute values: of a large weight those would be another large tensor.
    if float(tensor.amin()) >= -LARGEST and float(tensor.amax()) <= LARGEST:
        return tensor
    return torch.where(tensor.isinf(), tensor, tensor.clamp(-LARGEST, LARGEST))


def joined(tensors: Sequence[torch.Tensor], dim: int = 0) -> torch.Tensor:
    """`torch.cat` by all threads: most of the time goes into memory that is touched for the first time."""
    first = tensors[0]
    if any(each.dtype is not first.dtype or each.dim() != first.dim() for each in tensors):
        return torch.cat(list(tensors), dim)
    shape = list(first.shape)
    shape[dim] = sum(each.shape[dim] for each in tensors)
    made = in_large_pages(first.new_empty(shape))
    for part, each in zip(made.split([each.shape[dim] for each in tensors], dim), tensors):
        part.copy_(each)
    return made


# What weights are prepared with in place of an operation of ATen.
INSTEAD: Mapping[Any, Callable[..., Any]] = {torch.ops.aten.cat.default: joined}
