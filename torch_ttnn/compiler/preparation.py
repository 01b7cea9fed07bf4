"""Functions of torch that prepare weights and constants, once and not on every call."""

from __future__ import annotations

import torch
from torch._subclasses.fake_tensor import FakeTensor

LARGEST = torch.finfo(torch.bfloat16).max


def saturated(tensor: torch.Tensor) -> torch.Tensor:
    """Finite values stay finite in bfloat16: masks are often filled with the least float32, which would become -inf."""
    if isinstance(tensor, FakeTensor) or tensor.is_meta or not tensor.numel():
        return tensor
    if float(tensor.abs().amax()) <= LARGEST:
        return tensor
    return torch.where(tensor.isinf(), tensor, tensor.clamp(-LARGEST, LARGEST))
