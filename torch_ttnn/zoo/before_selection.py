"""The outputs of torchvision's detection networks before they select boxes.

Scores decide which boxes are kept, and in which order. With random weights they are closer together than bfloat16 can
resolve, so two correct runs keep different boxes, and their lists cannot be compared. These are the scores and offsets
of all boxes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import nn

NOTE = "PCC is of the scores and offsets of all boxes: random weights rank them too closely to compare those selected."

# Regions as fractions of the image (left, top, right, bottom) for a second stage, in place of those it would select.
REGIONS = (
    (0.0, 0.0, 1.0, 1.0),
    (0.1, 0.2, 0.5, 0.6),
    (0.4, 0.3, 0.9, 0.8),
    (0.7, 0.05, 0.8, 0.3),
    (0.3, 0.6, 0.6, 0.9),
)


class BeforeSelection(nn.Module):
    """The scores and offsets of a torchvision detection network, of both stages if it has two."""

    def __init__(self, detector: Any) -> None:
        super().__init__()
        self.detector = detector

    def forward(self, images: list[torch.Tensor]) -> list[torch.Tensor]:
        batch, _ = self.detector.transform(images, None)
        named = self.detector.backbone(batch.tensors)
        features = list(named.values())
        if not hasattr(self.detector, "roi_heads"):
            return list(self.detector.head(features).values())
        scores, offsets = self.detector.rpn.head(features)
        return [*scores, *offsets, *self._second_stage(named, batch.image_sizes)]

    def _second_stage(self, features: Mapping[str, torch.Tensor], sizes: list[tuple[int, int]]) -> list[torch.Tensor]:
        regions = [torch.tensor(REGIONS) * torch.tensor([width, height] * 2) for height, width in sizes]
        stage = self.detector.roi_heads
        return list(stage.box_predictor(stage.box_head(stage.box_roi_pool(features, regions, sizes))))
