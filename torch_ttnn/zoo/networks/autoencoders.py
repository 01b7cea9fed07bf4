"""Two small autoencoders common in tutorials: linear and convolutional."""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import nn

WIDTHS = (784, 128, 64, 12, 3)  # from an image of 28 × 28 to three numbers


class LinearAutoencoder(nn.Module):
    """Flattened images of 784 values to three numbers and back."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = stack(WIDTHS)
        self.decoder = stack(WIDTHS[::-1])

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        return self.decoder(self.encoder(values))


def stack(widths: tuple[int, ...]) -> nn.Sequential:
    """Linear layers with ReLUs in between."""
    layers: list[nn.Module] = []
    for inner, outer in pairwise(widths):
        layers += [nn.Linear(inner, outer), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


class ConvAutoencoder(nn.Module):
    """Images of one channel to a quarter of their size and back."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(16, 4, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        )  # fmt: skip
        self.decoder = nn.Sequential(
            nn.ConvTranspose2d(4, 16, 2, stride=2), nn.ReLU(), nn.ConvTranspose2d(16, 1, 2, stride=2)
        )

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        return self.decoder(self.encoder(image))
