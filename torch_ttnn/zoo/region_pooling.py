"""RoIAlign in plain torch: features of boxes, sampled to one size.

It replaces torchvision's compiled operator where that cannot be loaded. torchvision's own Python version is compiled
with Inductor on first use, which needs a C++ compiler and a minute.
"""

from __future__ import annotations

import torch
from torch.nn import functional


def roi_align(
    features: torch.Tensor,
    boxes: torch.Tensor,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
    sampling_ratio: int,
    aligned: bool,
) -> torch.Tensor:
    """Mean of bilinear samples in each of `pooled_height` × `pooled_width` parts of every box.

    `boxes` have five columns: the number of the image, then left, top, right and bottom in its pixels, which
    `spatial_scale` converts to positions in the features. A part has `sampling_ratio` × `sampling_ratio` samples; 0 or
    less means about one per position. Samples beyond the edge count as 0.
    """
    result = features.new_zeros(len(boxes), features.shape[1], pooled_height, pooled_width)
    for image in range(len(features)):
        inside = (boxes[:, 0] == image).nonzero().flatten()
        for chosen in [inside] if sampling_ratio > 0 else inside.split(1):
            if len(chosen):
                corners = boxes[chosen, 1:] * spatial_scale - (0.5 if aligned else 0.0)
                size = (pooled_height, pooled_width)
                pooled = _pooled(features[image], corners, size, sampling_ratio, aligned)
                result = result.index_copy(0, chosen, pooled)
    return result


def _pooled(
    features: torch.Tensor, corners: torch.Tensor, size: tuple[int, int], ratio: int, aligned: bool
) -> torch.Tensor:
    """Boxes of one image, all with the same number of samples."""
    height, width = features.shape[1:]
    rows, row_inside, down = _places(corners[:, 1], corners[:, 3], size[0], height, ratio, aligned)
    columns, column_inside, across = _places(corners[:, 0], corners[:, 2], size[1], width, ratio, aligned)
    grid = torch.stack(
        [
            columns[:, None, :].expand(-1, rows.shape[1], -1),
            rows[:, :, None].expand(-1, -1, columns.shape[1]),
        ],
        dim=-1,
    )
    sampled = functional.grid_sample(features[None], grid.flatten(0, 1)[None], align_corners=True)[0]
    sampled = sampled.unflatten(1, rows.shape).transpose(0, 1)  # boxes, channels, rows, columns
    sampled = sampled * (row_inside[:, None, :, None] & column_inside[:, None, None, :])
    return functional.avg_pool2d(sampled, (down, across))


def _places(
    start: torch.Tensor, end: torch.Tensor, parts: int, length: int, ratio: int, aligned: bool
) -> tuple[torch.Tensor, torch.Tensor, int]:
    """Positions of samples along one axis, from -1 to 1; which of them count; how many each bin has."""
    extent = end - start if aligned else (end - start).clamp(min=1.0)
    samples = ratio if ratio > 0 else max(1, int((extent / parts).ceil().max()))
    steps = (torch.arange(parts * samples, device=start.device, dtype=start.dtype) + 0.5) / (parts * samples)
    places = start[:, None] + extent[:, None] * steps
    inside = (places >= -1) & (places <= length)
    return places.clamp(0, length - 1) * 2 / max(length - 1, 1) - 1, inside, samples


def roi_align_backward(
    gradient: torch.Tensor,
    boxes: torch.Tensor,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
    batch: int,
    channels: int,
    height: int,
    width: int,
    sampling_ratio: int,
    aligned: bool,
) -> torch.Tensor:
    """The gradient of the features. Pooling is linear in them, so it can be differentiated at any features."""
    with torch.enable_grad():
        features = gradient.new_zeros(batch, channels, height, width, requires_grad=True)
        pooled = roi_align(features, boxes, spatial_scale, pooled_height, pooled_width, sampling_ratio, aligned)
        return torch.autograd.grad(pooled, features, gradient)[0]
