"""Decomposes Euclidean distances into differences.

torch computes them by a product, `x² + y² - 2xy`, which cancels: in bfloat16 the distance of two close points would
have no correct digit.
"""

from __future__ import annotations

from typing import Any

import torch

MOST_DIFFERENCES = 1 << 26  # elements; more would not fit beside a model, and torch computes the distances


def euclidean_distances(x1: torch.Tensor, x2: torch.Tensor) -> Any:
    """Distances between all rows of two matrices; NotImplemented leaves the operation whole."""
    if x1.shape[-1] == 0 or x1.numel() * x2.shape[-2] > MOST_DIFFERENCES:
        return NotImplemented
    differences = x1.unsqueeze(-2) - x2.unsqueeze(-3)
    return differences.square().sum(-1).sqrt()


DECOMPOSITIONS = {torch.ops.aten._euclidean_dist.default: euclidean_distances}
