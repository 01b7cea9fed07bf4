"""The small convolutional network of PyTorch's MNIST example."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional


class MnistNet(nn.Module):
    """Two convolutions, a pool, two linear layers; log-probabilities of ten digits for 1 × 28 × 28 images.

    Images may be of another even `size`; `hidden` is the width between the linear layers.
    """

    def __init__(self, size: int = 28, hidden: int = 128) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 32, kernel_size=3)
        self.conv2 = nn.Conv2d(32, 64, kernel_size=3)
        self.dropout1 = nn.Dropout(0.25)
        self.dropout2 = nn.Dropout(0.5)
        pooled = (size - 4) // 2  # the convolutions remove two pixels at each border, the pool halves
        self.fc1 = nn.Linear(64 * pooled * pooled, hidden)
        self.fc2 = nn.Linear(hidden, 10)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        features = functional.relu(self.conv2(functional.relu(self.conv1(image))))
        features = self.dropout1(functional.max_pool2d(features, 2)).flatten(1)
        hidden = self.dropout2(functional.relu(self.fc1(features)))
        return functional.log_softmax(self.fc2(hidden), dim=1)
