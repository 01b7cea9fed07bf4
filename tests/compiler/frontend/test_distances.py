"""Euclidean distances of close points far from the origin, which a product would cancel."""

from __future__ import annotations

import pytest
import torch

import torch_ttnn


@pytest.mark.parametrize("shapes", [((1, 1), (5, 1)), ((2, 30, 4), (2, 40, 4)), ((3, 8), (3, 8))])
def test_distances_of_close_points(shapes: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    torch.manual_seed(0)
    x, y = (8 + torch.randint(-16, 16, shape) / 16 for shape in shapes)  # exact in bfloat16

    def function(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.cdist(x, y, compute_mode="use_mm_for_euclid_dist")

    ours = torch_ttnn.compile(function)(x, y)
    exact = torch.cdist(x.double(), y.double(), compute_mode="donot_use_mm_for_euclid_dist")
    assert torch.allclose(ours.double(), exact, atol=1e-2, rtol=1e-2)


def test_many_distances_stay_with_torch() -> None:
    x = torch.randn(9000, 2)

    def function(x: torch.Tensor) -> torch.Tensor:
        return torch.cdist(x, x)[:2, :2] * 2

    with pytest.warns(torch_ttnn.HostOperationWarning, match="_euclidean_dist"):
        ours = torch_ttnn.compile(function)(x)
    assert torch.allclose(ours, function(x), atol=2e-2, rtol=1e-2)
