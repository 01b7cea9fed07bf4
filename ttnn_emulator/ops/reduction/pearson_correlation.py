"""ttnn.pearson_correlation_coefficient: the correlation of two tensors, computed on the host."""

from __future__ import annotations

from typing import Any

import torch

from ttnn_emulator.execution.operation_table import composite, ttnn
from ttnn_emulator.tensors.tensor import Tensor

# tt-metal v0.81.1: ttnn/ttnn/operations/comparison.py, pearson_correlation_coefficient
RELATIVE, ABSOLUTE = 1e-5, 1e-4  # tolerances for equality where the correlation is undefined


@composite("ttnn.pearson_correlation_coefficient")
def pearson_correlation_coefficient(expected: Any, actual: Any) -> float:
    """Pearson correlation of a torch tensor and a tensor of either kind; NaNs and infinities count as zeros."""
    if isinstance(actual, Tensor):
        actual = ttnn.to_torch(actual)
    if not isinstance(expected, torch.Tensor):
        raise ValueError(f"the expected values must be a torch tensor, not {type(expected).__name__}")
    actual = torch.as_tensor(actual).type(expected.dtype)
    empty = [bool(each.isnan().all()) for each in (expected, actual)]
    if any(empty):
        return float(all(empty))
    if expected.any() != actual.any():
        return float(torch.allclose(expected, actual, RELATIVE, ABSOLUTE))
    ours, theirs = (_finite(each).flatten().double() for each in (expected, actual))
    if ours.shape != theirs.shape:
        raise ValueError(f"{list(expected.shape)} and {list(actual.shape)} differ in size")
    if torch.equal(ours, theirs):
        return 1.0
    if ours.numel() < 2 or not ours.std() or not theirs.std():
        return float(torch.allclose(ours, theirs, RELATIVE, ABSOLUTE))
    return torch.corrcoef(torch.stack([ours, theirs]))[0, 1].clamp(-1.0, 1.0).item()


def _finite(values: torch.Tensor) -> torch.Tensor:
    return torch.where(values.isfinite(), values, torch.zeros((), dtype=values.dtype))
