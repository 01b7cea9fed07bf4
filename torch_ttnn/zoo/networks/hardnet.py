"""HarDNet-68 (Chao et al., 2019, arXiv:1909.00948): dense blocks with few, harmonically spaced connections."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn

GROWTH_FACTOR = 1.7  # growth of a layer's width per power of two that divides its number


@dataclass(frozen=True)
class Stage:
    """A dense block, the 1 × 1 convolution after it, and whether downsampling follows."""

    growth: int
    layers: int
    channels: int
    halves: bool


STAGES = (
    Stage(14, 8, 128, True),
    Stage(16, 16, 256, False),
    Stage(20, 16, 320, True),
    Stage(40, 16, 640, True),
    Stage(160, 4, 1024, False),
)


def conv(inner: int, outer: int, kernel: int = 3, stride: int = 1) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(inner, outer, kernel, stride, kernel // 2, bias=False), nn.BatchNorm2d(outer), nn.ReLU6(inplace=True)
    )


def links(layer: int) -> list[int]:
    """The earlier layers that a layer reads: as far back as each power of two that divides its number."""
    return [layer - 2**power for power in range(10) if layer and layer % 2**power == 0]


def width(layer: int, base: int, growth: int) -> int:
    """Channels of a layer; number 0 is the input of the block."""
    if layer == 0:
        return base
    wide = growth * GROWTH_FACTOR ** (len(links(layer)) - 1)
    return int(int(wide + 1) / 2) * 2


class HarmonicBlock(nn.Module):
    def __init__(self, base: int, growth: int, layers: int) -> None:
        super().__init__()
        numbers = range(1, layers + 1)
        self.links = [links(number) for number in numbers]
        inner = [sum(width(link, base, growth) for link in inputs) for inputs in self.links]
        self.layers = nn.ModuleList(conv(inner[n - 1], width(n, base, growth)) for n in numbers)
        self.kept = [number for number in numbers if number % 2 == 1 or number == layers]
        self.channels = sum(width(number, base, growth) for number in self.kept)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        outputs = [x]
        for inputs, layer in zip(self.links, self.layers):
            outputs.append(
                layer(torch.cat([outputs[link] for link in inputs], 1) if len(inputs) > 1 else outputs[inputs[0]])
            )
        return torch.cat([outputs[number] for number in self.kept], 1)


class HarDNet68(nn.Module):
    def __init__(self, classes: int = 1000) -> None:
        super().__init__()
        parts: list[nn.Module] = [conv(3, 32, stride=2), conv(32, 64), nn.MaxPool2d(3, 2, padding=1)]
        channels = 64
        for stage in STAGES:
            block = HarmonicBlock(channels, stage.growth, stage.layers)
            channels = stage.channels
            parts += [block, conv(block.channels, channels, 1)]
            if stage.halves:
                parts.append(nn.MaxPool2d(2))
        self.features = nn.Sequential(*parts)
        self.head = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(0.1), nn.Linear(channels, classes))

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        return self.head(self.features(image))
