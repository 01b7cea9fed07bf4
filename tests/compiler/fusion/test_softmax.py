"""Softmax with scale and mask, outside of attention."""

from __future__ import annotations

import pytest
import torch

from tests.compiler.fusion.captured import fused

X, MASK = torch.randn(2, 4, 6, 10), torch.randn(2, 1, 1, 10)


@pytest.mark.parametrize(
    "function",
    [
        lambda x, mask: torch.softmax(x * 0.25 + mask, dim=-1),
        lambda x, mask: torch.softmax(mask + x / 4, dim=3),
    ],
)
def test_scale_and_mask(function):
    result = fused(function, X, MASK)
    assert result.names == {"softmax with scale and mask": 1}
    assert result.calls == ["scale_mask_softmax"]


def test_scale_alone():
    assert fused(lambda x: torch.softmax(x / 4, dim=-1), X).calls == ["scale_mask_softmax"]


OTHERS = {
    "another dimension": lambda x, mask: torch.softmax(x * 0.25 + mask, dim=1),
    "no scale": lambda x, mask: torch.softmax(x + mask, dim=-1),
    "a mask before the scale": lambda x, mask: torch.softmax((x + mask) * mask, dim=-1),
    "a difference": lambda x, mask: torch.softmax(x * 0.25 - mask, dim=-1),
    "a scale for each element": lambda x, mask: torch.softmax(x * mask, dim=-1),
    "a mask that widens the scores": lambda x, mask: torch.softmax(x[:1] * 0.25 + mask, dim=-1),
}


@pytest.mark.parametrize("name", OTHERS)
def test_others_are_left(name):
    result = fused(OTHERS[name], X, MASK)
    assert result.names == {}


def test_scores_that_are_used_elsewhere_are_left():
    def function(x):
        scores = x / 4
        return torch.softmax(scores, dim=-1), scores

    assert fused(function, X).names == {}
