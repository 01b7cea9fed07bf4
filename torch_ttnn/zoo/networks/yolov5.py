"""YOLOv5s (Ultralytics, 2020, version 6): CSP blocks, a feature pyramid in both directions, and decoded boxes."""

from __future__ import annotations

import torch
from torch import nn

CLASSES = 80
# Anchors in pixels, and pixels per cell, at each scale.
SCALES = (
    (((10, 13), (16, 30), (33, 23)), 8),
    (((30, 61), (62, 45), (59, 119)), 16),
    (((116, 90), (156, 198), (373, 326)), 32),
)


def conv(inner: int, outer: int, kernel: int = 1, stride: int = 1, padding: int | None = None) -> nn.Sequential:
    padding = kernel // 2 if padding is None else padding
    norm = nn.BatchNorm2d(outer, eps=1e-3, momentum=0.03)
    return nn.Sequential(nn.Conv2d(inner, outer, kernel, stride, padding, bias=False), norm, nn.SiLU())


class Bottleneck(nn.Module):
    def __init__(self, channels: int, adds: bool) -> None:
        super().__init__()
        self.body = nn.Sequential(conv(channels, channels), conv(channels, channels, 3))
        self.adds = adds

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.body(x) if self.adds else self.body(x)


class CrossStage(nn.Module):
    """A CSP block: half of the channels pass through bottlenecks, half bypass them."""

    def __init__(self, inner: int, outer: int, blocks: int, adds: bool = True) -> None:
        super().__init__()
        half = outer // 2
        self.through = nn.Sequential(conv(inner, half), *(Bottleneck(half, adds) for _ in range(blocks)))
        self.past = conv(inner, half)
        self.joined = conv(outer, outer)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.joined(torch.cat([self.through(x), self.past(x)], 1))


class Pyramid(nn.Module):
    """Spatial pyramid pooling with three pools in sequence."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.narrow = conv(channels, channels // 2)
        self.pool = nn.MaxPool2d(5, 1, 2)
        self.joined = conv(2 * channels, channels)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        seen = [self.narrow(x)]
        for _ in range(3):
            seen.append(self.pool(seen[-1]))
        return self.joined(torch.cat(seen, 1))


class Boxes(nn.Module):
    """Centres, sizes, confidence and classes of the boxes of one scale, in pixels."""

    def __init__(self, channels: int, anchors: tuple[tuple[int, int], ...], stride: int) -> None:
        super().__init__()
        self.outputs = CLASSES + 5
        self.head = nn.Conv2d(channels, len(anchors) * self.outputs, 1)
        self.stride = stride
        self.register_buffer("anchors", torch.tensor(anchors, dtype=torch.float32).reshape(1, -1, 1, 1, 2), False)

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        batch, _, height, width = features.shape
        raw = self.head(features).reshape(batch, -1, self.outputs, height, width).permute(0, 1, 3, 4, 2).sigmoid()
        rows, columns = torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij")
        cells = torch.stack([columns, rows], 2).to(raw.dtype) - 0.5
        centres, sizes, rest = raw.split((2, 2, CLASSES + 1), 4)
        centres = (centres * 2 + cells) * self.stride
        sizes = (sizes * 2) ** 2 * self.anchors
        return torch.cat([centres, sizes, rest], 4).flatten(1, 3)


class YOLOv5s(nn.Module):
    """All boxes of an image, finest scale first."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(conv(3, 32, 6, 2, 2), conv(32, 64, 3, 2), CrossStage(64, 64, 1))
        self.fine = nn.Sequential(conv(64, 128, 3, 2), CrossStage(128, 128, 2))
        self.middle = nn.Sequential(conv(128, 256, 3, 2), CrossStage(256, 256, 3))
        self.coarse = nn.Sequential(conv(256, 512, 3, 2), CrossStage(512, 512, 1), Pyramid(512), conv(512, 256))
        self.enlarge = nn.Upsample(scale_factor=2)
        self.to_middle = nn.Sequential(CrossStage(512, 256, 1, adds=False), conv(256, 128))
        self.to_fine = CrossStage(256, 128, 1, adds=False)
        self.halve = nn.ModuleList((conv(128, 128, 3, 2), conv(256, 256, 3, 2)))
        self.down = nn.ModuleList((CrossStage(256, 256, 1, adds=False), CrossStage(512, 512, 1, adds=False)))
        channels = (128, 256, 512)
        self.boxes = nn.ModuleList(Boxes(wide, anchors, stride) for wide, (anchors, stride) in zip(channels, SCALES))

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        fine = self.fine(self.stem(image))
        middle = self.middle(fine)
        coarse = self.coarse(middle)
        rising = self.to_middle(torch.cat([self.enlarge(coarse), middle], 1))
        found = [self.to_fine(torch.cat([self.enlarge(rising), fine], 1))]
        for halve, join, across in zip(self.halve, self.down, (rising, coarse)):
            found.append(join(torch.cat([halve(found[-1]), across], 1)))
        return torch.cat([boxes(features) for boxes, features in zip(self.boxes, found)], 1)
