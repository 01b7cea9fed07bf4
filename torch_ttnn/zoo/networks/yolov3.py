"""YOLOv3 (Redmon and Farhadi, 2018, arXiv:1804.02767): Darknet-53 and boxes at three scales."""

from __future__ import annotations

import torch
from torch import nn

CLASSES, ANCHORS = 80, 3
OUTPUTS = ANCHORS * (CLASSES + 5)  # a box is four numbers, a confidence and its classes
STAGES = ((64, 1), (128, 2), (256, 8), (512, 8), (1024, 4))  # channels and residual blocks


def conv(inner: int, outer: int, kernel: int = 3, stride: int = 1) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(inner, outer, kernel, stride, kernel // 2, bias=False), nn.BatchNorm2d(outer), nn.LeakyReLU(0.1)
    )


class Residual(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.body = nn.Sequential(conv(channels, channels // 2, 1), conv(channels // 2, channels))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.body(x)


class Darknet53(nn.Module):
    """Features at an eighth, a sixteenth and a thirty-second of the image's size."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = conv(3, 32)
        self.stages = nn.ModuleList(
            nn.Sequential(conv(channels // 2, channels, stride=2), *(Residual(channels) for _ in range(blocks)))
            for channels, blocks in STAGES
        )

    def forward(self, image: torch.Tensor) -> list[torch.Tensor]:
        x, features = self.stem(image), []
        for stage in self.stages:
            x = stage(x)
            features.append(x)
        return features[2:]


class Scale(nn.Module):
    """Five convolutions to features, and two more to boxes."""

    def __init__(self, inner: int, channels: int) -> None:
        super().__init__()
        wide = 2 * channels
        self.body = nn.Sequential(
            conv(inner, channels, 1), conv(channels, wide), conv(wide, channels, 1), conv(channels, wide),
            conv(wide, channels, 1),
        )  # fmt: skip
        self.head = nn.Sequential(conv(channels, wide), nn.Conv2d(wide, OUTPUTS, 1))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        x = self.body(x)
        return x, self.head(x)


class YOLOv3(nn.Module):
    """Raw boxes at three scales, the coarsest first."""

    def __init__(self) -> None:
        super().__init__()
        self.backbone = Darknet53()
        self.scales = nn.ModuleList((Scale(1024, 512), Scale(768, 256), Scale(384, 128)))
        self.rising = nn.ModuleList(
            nn.Sequential(conv(inner, inner // 2, 1), nn.Upsample(scale_factor=2)) for inner in (512, 256)
        )

    def forward(self, image: torch.Tensor) -> list[torch.Tensor]:
        fine, middle, coarse = self.backbone(image)
        x, boxes = self.scales[0](coarse)
        found = [boxes]
        for rise, scale, features in zip(self.rising, self.scales[1:], (middle, fine)):
            x, boxes = scale(torch.cat([rise(x), features], 1))
            found.append(boxes)
        return found
