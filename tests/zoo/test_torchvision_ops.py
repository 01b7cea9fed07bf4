"""The operators that torchvision needs for its import, where its own cannot be loaded."""

from __future__ import annotations

import itertools
import math
import subprocess
import sys

import pytest
import torch

from tests.zoo.installed import need
from torch_ttnn.zoo.region_pooling import roi_align
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
from torch_ttnn.zoo.region_pooling import roi_align
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


def sample(plane: torch.Tensor, y: float, x: float) -> float:
    """Bilinear, with the edge's value up to one place beyond it and 0 further out."""
    height, width = plane.shape
    if y < -1 or y > height or x < -1 or x > width:
        return 0.0
    y, x = min(max(y, 0.0), height - 1.0), min(max(x, 0.0), width - 1.0)
    top, left = int(y), int(x)
    bottom, right = min(top + 1, height - 1), min(left + 1, width - 1)
    upper = plane[top, left] * (1 - (x - left)) + plane[top, right] * (x - left)
    lower = plane[bottom, left] * (1 - (x - left)) + plane[bottom, right] * (x - left)
    return float(upper * (1 - (y - top)) + lower * (y - top))


def pooled_by_definition(features, boxes, scale, size, ratio, aligned) -> torch.Tensor:
    result = torch.zeros(len(boxes), features.shape[1], *size)
    for number, (image, *corners) in enumerate(boxes.tolist()):
        left, top, right, bottom = (corner * scale - (0.5 if aligned else 0.0) for corner in corners)
        extents = [bottom - top, right - left] if aligned else [max(bottom - top, 1.0), max(right - left, 1.0)]
        steps = [extent / parts for extent, parts in zip(extents, size)]
        counts = [ratio if ratio > 0 else max(1, math.ceil(step)) for step in steps]
        for channel, row, column in itertools.product(range(features.shape[1]), range(size[0]), range(size[1])):
            values = [
                sample(
                    features[int(image), channel],
                    top + (row + (i + 0.5) / counts[0]) * steps[0],
                    left + (column + (j + 0.5) / counts[1]) * steps[1],
                )
                for i, j in itertools.product(range(counts[0]), range(counts[1]))
            ]
            result[number, channel, row, column] = sum(values) / len(values)
    return result


@pytest.mark.parametrize("aligned", [False, True])
@pytest.mark.parametrize(("size", "ratio", "scale"), [((3, 3), 2, 0.5), ((2, 4), 1, 0.25), ((2, 2), 0, 0.5)])
def test_pooled_regions_are_those_of_the_definition(size, ratio: int, scale: float, aligned: bool) -> None:
    features = torch.randn(2, 3, 7, 9)
    corner = torch.rand(6, 2) * 12 - 2  # some reach over the edges
    boxes = torch.cat([torch.tensor([[0.0], [1], [1], [0], [1], [0]]), corner, corner + torch.rand(6, 2) * 10], dim=1)
    got = roi_align(features, boxes, scale, *size, ratio, aligned)
    torch.testing.assert_close(got, pooled_by_definition(features, boxes, scale, size, ratio, aligned))
    assert roi_align(features, boxes[:0], scale, *size, ratio, aligned).shape == (0, 3, *size)


def test_gradients_of_pooled_regions() -> None:
    need("torchvision")
    ensure_operators()
    features = torch.randn(1, 2, 5, 5, dtype=torch.float64, requires_grad=True)
    boxes = torch.tensor([[0.0, 1, 1, 7, 8], [0, 0, 2, 4, 9]], dtype=torch.float64)
    pool = torch.ops.torchvision.roi_align
    assert torch.autograd.gradcheck(lambda values: pool(values, boxes, 0.5, 2, 2, 2, True), features)


def test_detection_models_can_be_built_and_run() -> None:
    need("torchvision")
    from torch_ttnn.zoo import catalog

    entry = catalog.resolve("torchvision:fasterrcnn_mobilenet_v3_large_320_fpn", shape=(1, 3, 64, 64))
    model = entry.build(randomise=False)
    arguments, _ = entry.inputs(seed=0)
    with torch.no_grad():
        (found,) = model(*arguments)
    assert {name: len(values) for name, values in found.items()} == {"boxes": 100, "labels": 100, "scores": 100}
