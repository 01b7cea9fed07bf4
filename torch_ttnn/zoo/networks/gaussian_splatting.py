"""A scene of coloured 3D Gaussians, rendered (Kerbl et al., 2023, arXiv:2308.04079): the scene is the model.

Every Gaussian is projected to the screen, sorted by depth, and blended over every pixel from front to back.
"""

from __future__ import annotations

import math

import torch
from torch import nn

FIELD_OF_VIEW = math.radians(50)
BLUR = 0.3  # pixels² added to the variance of every splat, so that none falls between pixels
OPAQUE = 0.99  # maximal opacity of one Gaussian
# Real spherical harmonics up to degree 2, as polynomials of a direction's coordinates.
HARMONICS = (0.28209479, 0.48860251, 1.09254843, 0.31539157, 0.54627422)


class GaussianScene(nn.Module):
    """Colour, depth and coverage of every pixel, seen from a camera: a 4 × 4 matrix from the world to its view."""

    def __init__(self, gaussians: int = 512, pixels: int = 64) -> None:
        super().__init__()
        self.pixels = pixels
        self.focal = pixels / 2 / math.tan(FIELD_OF_VIEW / 2)
        self.centres = nn.Parameter(torch.randn(gaussians, 3) * 0.5)
        self.log_scales = nn.Parameter(torch.randn(gaussians, 3) * 0.3 - 2.2)
        self.turns = nn.Parameter(torch.randn(gaussians, 4))  # quaternions
        self.opacities = nn.Parameter(torch.randn(gaussians, 1))
        self.colours = nn.Parameter(torch.randn(gaussians, 9, 3) * 0.3)

    def forward(self, camera: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        turn, shift = camera[:3, :3], camera[:3, 3]
        seen = self.centres @ turn.T + shift
        depth, order = torch.sort(seen[:, 2], stable=True)
        spread = self.projected_covariances(seen, turn)[order]
        middle = (self.focal * seen[:, :2] / seen[:, 2:])[order]
        hidden = self.coverage(middle, spread) * torch.sigmoid(self.opacities[order]).T
        alpha = hidden.clamp(max=OPAQUE)
        passing = torch.cumprod(1 - alpha, dim=1)
        before = torch.cat([torch.ones_like(passing[:, :1]), passing[:, :-1]], 1)
        weight = alpha * before
        colour = weight @ self.shades(-shift @ turn)[order]
        return colour, weight @ depth[:, None], weight.sum(1)

    def projected_covariances(self, seen: torch.Tensor, turn: torch.Tensor) -> torch.Tensor:
        """2 × 2 covariances on the screen: perspective to first order at the centre of each Gaussian."""
        axes = rotations(self.turns) * torch.exp(self.log_scales)[:, None, :]
        in_view = turn @ axes
        x, y, z = seen.unbind(1)
        zero = torch.zeros_like(z)
        jacobian = torch.stack([1 / z, zero, -x / z**2, zero, 1 / z, -y / z**2], 1).reshape(-1, 2, 3) * self.focal
        root = jacobian @ in_view
        return root @ root.transpose(1, 2) + BLUR * torch.eye(2)

    def coverage(self, middle: torch.Tensor, spread: torch.Tensor) -> torch.Tensor:
        """How much of each Gaussian is at each pixel: pixels × Gaussians."""
        steps = torch.arange(self.pixels, dtype=middle.dtype) - (self.pixels - 1) / 2
        down, right = torch.meshgrid(steps, steps, indexing="ij")
        x = right.reshape(-1, 1) - middle[:, 0]
        y = down.reshape(-1, 1) - middle[:, 1]
        a, b, c = spread[:, 0, 0], spread[:, 0, 1], spread[:, 1, 1]
        scale = 1 / (a * c - b * b)
        return torch.exp(-0.5 * scale * (c * x * x - 2 * b * x * y + a * y * y))

    def shades(self, eye: torch.Tensor) -> torch.Tensor:
        """The colour of each Gaussian as seen from the camera."""
        x, y, z = nn.functional.normalize(self.centres - eye, dim=1).unbind(1)
        one, line, cross, axis, square = HARMONICS
        basis = torch.stack(
            [one + 0 * x, -line * y, line * z, -line * x, cross * x * y, -cross * y * z,
             axis * (3 * z * z - 1), -cross * x * z, square * (x * x - y * y)], 1,
        )  # fmt: skip
        return ((basis[:, :, None] * self.colours).sum(1) + 0.5).clamp(min=0)


def rotations(quaternions: torch.Tensor) -> torch.Tensor:
    """3 × 3 matrices of quaternions of any length."""
    w, x, y, z = nn.functional.normalize(quaternions, dim=1).unbind(1)
    rows = [
        1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y),
        2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x),
        2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y),
    ]  # fmt: skip
    return torch.stack(rows, 1).reshape(-1, 3, 3)
