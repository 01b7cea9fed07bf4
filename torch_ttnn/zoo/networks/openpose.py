"""Lightweight OpenPose (Osokin, 2018, arXiv:1811.12004): joints and limbs of people, on a dilated MobileNet."""

from __future__ import annotations

import torch
from torch import nn

KEYPOINTS = 19
WIDTH = 128  # of the features that the decoders share
# Channels and stride of MobileNet's blocks; the last number is the dilation.
BLOCKS = (
    (64, 1, 1), (128, 2, 1), (128, 1, 1), (256, 2, 1), (256, 1, 1),
    (512, 1, 1), (512, 1, 2), (512, 1, 1), (512, 1, 1), (512, 1, 1), (512, 1, 1),
)  # fmt: skip


def conv(
    inner: int, outer: int, kernel: int = 3, *, stride: int = 1, dilation: int = 1, groups: int = 1, bias: bool = True,
    norm: bool = False, activation: type[nn.Module] = nn.ReLU,
) -> nn.Sequential:  # fmt: skip
    padding = dilation * (kernel // 2)
    convolution = nn.Conv2d(inner, outer, kernel, stride, padding, dilation, groups, bias=bias)
    return nn.Sequential(convolution, *([nn.BatchNorm2d(outer)] if norm else []), activation())


def separable(inner: int, outer: int, stride: int, dilation: int) -> nn.Sequential:
    """A depthwise separable convolution."""
    return nn.Sequential(
        conv(inner, inner, stride=stride, dilation=dilation, groups=inner, bias=False, norm=True),
        conv(inner, outer, 1, bias=False, norm=True),
    )


class ResidualBlock(nn.Module):
    """A residual body after an initial layer."""

    def __init__(self, first: nn.Module, body: nn.Module) -> None:
        super().__init__()
        self.first = first
        self.body = body

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.first(x)
        return x + self.body(x)


class Encoder(nn.Sequential):
    def __init__(self) -> None:
        parts: list[nn.Module] = [conv(3, 32, stride=2, bias=False, norm=True)]
        inner = 32
        for outer, stride, dilation in BLOCKS:
            parts.append(separable(inner, outer, stride, dilation))
            inner = outer
        layers = [
            layer
            for _ in range(3)
            for layer in (
                conv(WIDTH, WIDTH, groups=WIDTH, bias=False, activation=nn.ELU),
                conv(WIDTH, WIDTH, 1, bias=False, activation=nn.ELU),
            )
        ]
        super().__init__(*parts, ResidualBlock(conv(inner, WIDTH, 1), nn.Sequential(*layers)), conv(WIDTH, WIDTH))


class Decoder(nn.Module):
    """Features to heatmaps of joints and fields of limbs."""

    def __init__(self, body: nn.Module, middle: int) -> None:
        super().__init__()
        self.body = body
        self.heatmaps = nn.Sequential(conv(WIDTH, middle, 1), nn.Conv2d(middle, KEYPOINTS, 1))
        self.fields = nn.Sequential(conv(WIDTH, middle, 1), nn.Conv2d(middle, 2 * KEYPOINTS, 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        features = self.body(x)
        return torch.cat([self.heatmaps(features), self.fields(features)], 1)


def refinement(inner: int) -> ResidualBlock:
    return ResidualBlock(
        conv(inner, WIDTH, 1),
        nn.Sequential(conv(WIDTH, WIDTH, norm=True), conv(WIDTH, WIDTH, dilation=2, norm=True)),
    )


class LightweightOpenPose(nn.Module):
    """Heatmaps and fields at an eighth of the image's size, refined once."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = Encoder()
        self.first = Decoder(nn.Sequential(*(conv(WIDTH, WIDTH) for _ in range(3))), 512)
        wide = WIDTH + 3 * KEYPOINTS
        self.refined = Decoder(nn.Sequential(refinement(wide), *(refinement(WIDTH) for _ in range(4))), WIDTH)
        for layer in self.modules():
            if isinstance(layer, nn.Conv2d):  # half of the layers have no norm: signals would vanish
                nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        features = self.encoder(image)
        return self.refined(torch.cat([features, self.first(features)], 1))
