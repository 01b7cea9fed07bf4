"""U-Net (Ronneberger et al., 2015, arXiv:1505.04597) with batch norms, and skip connections at every scale."""

from __future__ import annotations

import torch
from torch import nn


def double(inner: int, outer: int) -> nn.Sequential:
    """Two convolutions, each with batch norm and ReLU."""
    return nn.Sequential(
        nn.Conv2d(inner, outer, 3, padding=1, bias=False), nn.BatchNorm2d(outer), nn.ReLU(inplace=True),
        nn.Conv2d(outer, outer, 3, padding=1, bias=False), nn.BatchNorm2d(outer), nn.ReLU(inplace=True),
    )  # fmt: skip


class UNet(nn.Module):
    """One class per pixel of an RGB image; `width` channels at full size, doubled at every halving."""

    def __init__(self, width: int = 32, depth: int = 4, *, probabilities: bool = True) -> None:
        super().__init__()
        widths = [width * 2**level for level in range(depth + 1)]
        self.down = nn.ModuleList(double(inner, outer) for inner, outer in zip([3, *widths], widths[:-1]))
        self.pool = nn.MaxPool2d(2)
        self.bottom = double(widths[-2], widths[-1])
        rising = widths[-2::-1]
        self.up = nn.ModuleList(nn.ConvTranspose2d(2 * outer, outer, 2, stride=2) for outer in rising)
        self.joined = nn.ModuleList(double(2 * outer, outer) for outer in rising)
        self.head = nn.Conv2d(width, 1, 1)
        self.probabilities = probabilities

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        seen = []
        for block in self.down:
            x = block(x)
            seen.append(x)
            x = self.pool(x)
        x = self.bottom(x)
        for up, block, across in zip(self.up, self.joined, reversed(seen)):
            x = block(torch.cat([up(x), across], 1))
        x = self.head(x)
        return torch.sigmoid(x) if self.probabilities else x


def brain() -> UNet:
    """For tumours in magnetic resonance images (Buda et al., 2019): 7.8 million parameters."""
    return UNet(32)


def carvana() -> UNet:
    """For cars in front of a background: twice as wide, without the sigmoid."""
    return UNet(64, probabilities=False)
