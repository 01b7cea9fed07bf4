"""Small models of the two most important kinds, for tests of whole programs."""

from __future__ import annotations

import torch
from torch import nn


class Layer(nn.Module):
    """One layer of a transformer, as BERT has it."""

    def __init__(self, width: int = 64, heads: int = 2) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.up = nn.Linear(width, 2 * width)
        self.down = nn.Linear(2 * width, width)
        self.norm_1 = nn.LayerNorm(width)
        self.norm_2 = nn.LayerNorm(width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        split = [y.view(batch, length, self.heads, -1).transpose(1, 2) for y in self.qkv(x).chunk(3, dim=-1)]
        attended = nn.functional.scaled_dot_product_attention(*split)
        x = self.norm_1(x + self.out(attended.transpose(1, 2).reshape(batch, length, width)))
        return self.norm_2(x + self.down(nn.functional.gelu(self.up(x))))


def transformer(layers: int = 2, width: int = 64, heads: int = 2) -> nn.Module:
    return nn.Sequential(*[Layer(width, heads) for _ in range(layers)]).eval()


def cnn() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, stride=2),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(32, 10),
    ).eval()
