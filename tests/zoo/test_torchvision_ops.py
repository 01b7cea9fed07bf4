"""The operators that torchvision needs for its import, where its own cannot be loaded."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch

from tests.zoo.installed import need
from torch_ttnn.zoo.torchvision_ops import SCHEMAS, ensure_operators, is_defined, non_maximum_suppression


def reference(boxes: torch.Tensor, scores: torch.Tensor, threshold: float) -> list[int]:
    """The definition: take the best box left, drop all that overlap it by more than the threshold."""

    def overlap(a: list[float], b: list[float]) -> float:
        sides = [max(0.0, min(a[i + 2], b[i + 2]) - max(a[i], b[i])) for i in (0, 1)]
        area = [(box[2] - box[0]) * (box[3] - box[1]) for box in (a, b)]
        return sides[0] * sides[1] / (sum(area) - sides[0] * sides[1])

    left = sorted(range(len(scores)), key=lambda i: -scores[i].item())
    kept = []
    while left:
        best = left.pop(0)
        kept.append(best)
        left = [i for i in left if overlap(boxes[best].tolist(), boxes[i].tolist()) <= threshold]
    return kept


@pytest.mark.parametrize("threshold", [0.1, 0.3, 0.5, 0.9])
@pytest.mark.parametrize("count", [0, 1, 40])
def test_the_boxes_kept_are_those_of_the_definition(count: int, threshold: float) -> None:
    corner = torch.rand(count, 2) * 20
    boxes = torch.cat([corner, corner + 1 + torch.rand(count, 2) * 10], dim=1)
    scores = torch.rand(count)
    assert non_maximum_suppression(boxes, scores, threshold).tolist() == reference(boxes, scores, threshold)


def test_the_zoo_imports_no_model_library_and_lets_all_be_imported() -> None:
    need("torchvision", "timm", "transformers")
    code = """
import sys, torch_ttnn.zoo
print({"torchvision", "timm", "transformers"} & set(sys.modules))
from torch_ttnn.zoo.torchvision_ops import ensure_operators
ensure_operators()
ensure_operators()
import torchvision, timm
print(torchvision.models.resnet18.__name__)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.split() == ["set()", "resnet18"], done.stderr


def test_the_operators_are_callable_and_defined_once() -> None:
    need("torchvision")
    ensure_operators()
    assert all(is_defined(name) for name in SCHEMAS)
    boxes = torch.tensor([[0.0, 0, 10, 10], [1, 1, 10, 10], [20, 20, 30, 30]])
    assert torch.ops.torchvision.nms(boxes, torch.tensor([0.5, 0.9, 0.1]), 0.5).tolist() == [1, 2]
    assert ensure_operators() is ensure_operators()
