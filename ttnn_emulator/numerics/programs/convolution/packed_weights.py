"""torch's convolutions in float32 with weights that are brought into the order of its library once.

oneDNN reorders weights on every call, which takes as long as a small convolution; where torch lets us, it is given
weights that are in order already.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass

import torch

FEW_CHANNELS = 4  # below, torch's own loops are faster


@functools.cache
def is_possible() -> bool:
    return torch.backends.mkldnn.is_available() and hasattr(torch.ops.mkldnn, "_convolution_pointwise")


@dataclass(frozen=True)
class TorchConvolution:
    """One convolution of images [N, C, H, W] of a fixed size."""

    images: tuple[int, int, int, int]
    stride: tuple[int, int]
    padding: tuple[int, int]
    dilation: tuple[int, int]
    groups: int

    def packed(self, filters: torch.Tensor) -> torch.Tensor:
        """Filters [out, in / groups, rows, columns] as `__call__` takes them."""
        if not is_possible() or self.images[1] < FEW_CHANNELS:
            return filters
        return torch.ops.mkldnn._reorder_convolution_weight(
            filters, list(self.padding), list(self.stride), list(self.dilation), self.groups, list(self.images)
        )

    def __call__(self, images: torch.Tensor, filters: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
        function, rest = self.call(filters, bias)
        return function(images, *rest)

    def call(self, filters: torch.Tensor, bias: torch.Tensor | None) -> tuple[Callable[..., torch.Tensor], tuple]:
        """The function of torch, and what it takes after the images."""
        padding, stride, dilation = self.padding, self.stride, self.dilation
        if filters.is_mkldnn:
            function = torch.ops.mkldnn._convolution_pointwise.default
            return function, (filters, bias, padding, stride, dilation, self.groups, "none", [], "")
        return torch.conv2d, (filters, bias, stride, padding, dilation, self.groups)
