"""torch's float32 convolutions with weights that are reordered once.

oneDNN reorders weights on every call, which takes as long as a small convolution. If torch allows it, the weights are
passed in oneDNN's order.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass

import torch

FEW_CHANNELS = 4  # with fewer, torch's own loops are faster


@functools.cache
def is_possible() -> bool:
    return torch.backends.mkldnn.is_available() and hasattr(torch.ops.mkldnn, "_convolution_pointwise")


@dataclass(frozen=True)
class TorchConvolution:
    """One convolution of images [N, C, H, W] of fixed size."""

    images: tuple[int, int, int, int]
    stride: tuple[int, int]
    padding: tuple[int, int]
    dilation: tuple[int, int]
    groups: int

    def packed(self, filters: torch.Tensor) -> torch.Tensor:
        """Filters [out, in / groups, rows, columns] in the order that `__call__` expects."""
        if not is_possible() or self.images[1] < FEW_CHANNELS:
            return filters
        return torch.ops.mkldnn._reorder_convolution_weight(
            filters, list(self.padding), list(self.stride), list(self.dilation), self.groups, list(self.images)
        )

    def __call__(self, images: torch.Tensor, filters: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
        function, rest = self.call(filters, bias)
        return function(images, *rest)

    def call(self, filters: torch.Tensor, bias: torch.Tensor | None) -> tuple[Callable[..., torch.Tensor], tuple]:
        """torch's function, and its arguments after the images."""
        padding, stride, dilation = self.padding, self.stride, self.dilation
        if filters.is_mkldnn:
            function = torch.ops.mkldnn._convolution_pointwise.default
            return function, (filters, bias, padding, stride, dilation, self.groups, "none", [], "")
        return torch.conv2d, (filters, bias, stride, padding, dilation, self.groups)
