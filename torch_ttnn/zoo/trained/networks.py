"""The two networks that were trained here, without weights, and the preprocessing of their images."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional

from torch_ttnn.zoo.networks.mnist import MnistNet
from torch_ttnn.zoo.sources import library

EDGE = 32  # pixels of both
CIFAR_MEAN, CIFAR_SPREAD = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)  # of the training images
MNIST_MEAN, MNIST_SPREAD = (0.1307,), (0.3081,)
MNIST_HIDDEN = 64  # in place of 128, to keep the weights in the repository small


def mnist_net() -> nn.Module:
    """The MNIST network for padded digits, 32 × 32."""
    return MnistNet(size=EDGE, hidden=MNIST_HIDDEN)


def cifar_resnet18() -> nn.Module:
    """torchvision's ResNet-18 with the stem that suits 32 × 32: a 3 × 3 convolution that keeps the size."""
    model: Any = library("torchvision.models").resnet18(num_classes=10)
    model.conv1 = nn.Conv2d(3, 64, kernel_size=3, stride=1, padding=1, bias=False)
    return model


def mnist_input(pixels: torch.Tensor) -> torch.Tensor:
    """Normalised digits; 28 × 28 images are padded with two black pixels on each side."""
    margin = (EDGE - pixels.shape[-1]) // 2
    return normalised(functional.pad(pixels, [margin] * 4), MNIST_MEAN, MNIST_SPREAD)


def cifar_input(pixels: torch.Tensor) -> torch.Tensor:
    return normalised(pixels, CIFAR_MEAN, CIFAR_SPREAD)


def normalised(pixels: torch.Tensor, mean: tuple[float, ...], spread: tuple[float, ...]) -> torch.Tensor:
    """Bytes as numbers with mean 0 and standard deviation 1 per channel."""
    values = pixels.float() / 255
    return (values - torch.tensor(mean)[:, None, None]) / torch.tensor(spread)[:, None, None]
