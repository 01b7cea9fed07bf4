"""The windows of a convolution."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch.nn.functional import pad

from ttnn_emulator.numerics.programs.convolution.direct import DirectConvolution
from ttnn_emulator.numerics.programs.convolution.packed_weights import TorchConvolution

Pair = tuple[int, int]
Sides = tuple[int, int, int, int]  # top, bottom, left, right


@dataclass(frozen=True)
class Windows:
    """Windows over images [N, H, W, C].

    spread  input dilation of a transposed convolution: distance between pixels, with zeros between them
    edges   padding replicates the edge pixels instead of zeros
    """

    images: tuple[int, int, int, int]
    kernel: Pair
    stride: Pair
    padding: Sides
    dilation: Pair
    size: Pair  # of the output
    spread: Pair = (1, 1)
    edges: bool = False

    def padded(self, images: torch.Tensor) -> torch.Tensor:
        """Images with their padding, and zeros between pixels."""
        top, bottom, left, right = self.padding
        if self.spread != (1, 1):
            batch, height, width, channels = images.shape
            step_y, step_x = self.spread
            wide = images.new_zeros(batch, (height - 1) * step_y + 1, (width - 1) * step_x + 1, channels)
            wide[:, ::step_y, ::step_x] = images
            images = wide
        if self.edges:
            around = (left, right, top, bottom)
            return pad(images.permute(0, 3, 1, 2), around, mode="replicate").permute(0, 2, 3, 1)
        return pad(images, (0, 0, left, right, top, bottom)) if any(self.padding) else images

    def pad_into(self, target: torch.Tensor, images: torch.Tensor) -> None:
        """`padded` images written to a buffer whose padding is already zero."""
        if self.edges or self.spread != (1, 1):
            target.copy_(self.padded(images))
            return
        _, height, width, _ = images.shape
        top, _, left, _ = self.padding
        target[:, top : top + height, left : left + width].copy_(images)

    def rows(self, images: torch.Tensor) -> torch.Tensor:
        """Images [N, H, W, C] → [pixels, kernel rows × kernel columns × C]."""
        source = self.padded(images).contiguous()
        batch, channels = source.shape[0], source.shape[3]
        by_image, by_row, by_pixel, by_channel = source.stride()
        (step_y, step_x), (apart_y, apart_x) = self.stride, self.dilation
        view = source.as_strided(
            (batch, *self.size, *self.kernel, channels),
            (by_image, by_row * step_y, by_pixel * step_x, by_row * apart_y, by_pixel * apart_x, by_channel),
        )
        return view.reshape(batch * self.size[0] * self.size[1], -1)

    @property
    def is_plain(self) -> bool:
        """Whether torch's own padding is enough for these windows."""
        top, bottom, left, right = self.padding
        return top == bottom and left == right and self.spread == (1, 1) and not self.edges

    def in_torch(self, groups: int) -> TorchConvolution:
        """torch's convolution of the images that `for_torch` returns."""
        batch, height, width, channels = self.images
        if self.is_plain:
            size, around = (height, width), (self.padding[0], self.padding[2])
        else:
            steps, around = zip((height, width), self.spread, (sum(self.padding[:2]), sum(self.padding[2:]))), (0, 0)
            size = tuple([(count - 1) * step + 1 + more for count, step, more in steps])  # type: ignore[assignment]
        return TorchConvolution((batch, channels, *size), self.stride, around, self.dilation, groups)

    def directly(self, channels: int, *, narrow: bool) -> DirectConvolution:
        """The compiled convolution of `padded` images to `channels` output channels."""
        batch, height, width, depth = self.images
        top, bottom, left, right = self.padding
        size = ((height - 1) * self.spread[0] + 1 + top + bottom, (width - 1) * self.spread[1] + 1 + left + right)
        images = (batch, *size, depth)
        return DirectConvolution(images, self.kernel, self.stride, self.dilation, self.size, channels, narrow)

    def for_torch(self, images: torch.Tensor) -> torch.Tensor:
        """Images [N, H, W, C] in torch's order, padded if torch cannot pad them."""
        return (images if self.is_plain else self.padded(images)).permute(0, 3, 1, 2)
