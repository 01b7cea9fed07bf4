"""Torch counterparts of image operations (`ttnn.operations.pool`) and of activations."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional

from ttnn_emulator.enums import ALL_ENUMS
from ttnn_emulator.golden_functions import GOLDEN_FUNCTIONS
from ttnn_emulator.numerics.formats.carriers import bits_of

UnaryOpType: Any = ALL_ENUMS["UnaryOpType"]
CORNERS = ((0, 0), (0, 1), (1, 0), (1, 1))  # row and column offsets


def golden_upsample(input_tensor, scale_factor, mode="nearest", **_):
    """[N, H, W, C] upsampled."""
    scale = (scale_factor, scale_factor) if isinstance(scale_factor, int | float) else tuple(scale_factor)
    result = functional.interpolate(input_tensor.permute(0, 3, 1, 2), scale_factor=scale, mode=mode)
    return result.permute(0, 2, 3, 1)


def golden_grid_sample(
    input_tensor,
    grid,
    mode="bilinear",
    padding_mode="zeros",
    align_corners=False,
    use_precomputed_grid=False,
    batch_output_channels=False,
    grid_batching_factor=None,
    **_,
):
    """[N, H, W, C] sampled at a grid [N, h, w, numbers × K]; the K points per entry are concatenated in W or C."""
    batch, height, width, numbers = grid.shape
    per_point = 2 if not use_precomputed_grid or mode == "nearest" else 6
    points = grid.reshape(batch, height, width * numbers // per_point, per_point)
    if use_precomputed_grid:
        result = _by_prepared_grid(input_tensor, points, mode)
    else:
        image, places = input_tensor.permute(0, 3, 1, 2).float(), points.float()
        result = functional.grid_sample(
            image, places, mode=mode, padding_mode=padding_mode, align_corners=align_corners
        ).permute(0, 2, 3, 1)
    sets = numbers // per_point if grid_batching_factor is None else grid_batching_factor
    if batch_output_channels:
        result = result.reshape(batch, height, points.shape[2] // sets, -1)
    return result.to(input_tensor.dtype)


def _by_prepared_grid(image: torch.Tensor, points: torch.Tensor, mode: str) -> torch.Tensor:
    """Rows and columns are integers in the bits of bfloat16 values, followed by the weights of the four corners."""
    batch, height, width, _ = image.shape
    rows, columns = ((bits_of(points[..., axis].float()) >> 16).long() for axis in (0, 1))
    number = torch.arange(batch).reshape(-1, 1, 1)
    result = torch.zeros(*points.shape[:3], image.shape[3])
    for corner, (down, across) in enumerate(CORNERS if mode != "nearest" else CORNERS[:1]):
        row, column = rows + down, columns + across
        inside = (row >= 0) & (row < height) & (column >= 0) & (column < width)
        found = image[number, row.clamp(0, height - 1), column.clamp(0, width - 1)].float()
        weight = 1.0 if mode == "nearest" else points[..., 2 + corner, None].float()
        result += torch.where(inside.unsqueeze(-1), found, 0.0) * weight
    return result


def golden_rotate(input_tensor, angle, center=None, fill=0.0, expand=False, interpolation_mode="nearest", **_):
    """[N, H, W, C] rotated counter-clockwise by `angle` degrees around `center` (x, y), or around its middle."""
    if interpolation_mode not in ("nearest", "bilinear"):
        raise ValueError(f"Unsupported interpolation mode: {interpolation_mode}")
    batch, height, width, _ = input_tensor.shape
    image = input_tensor.permute(0, 3, 1, 2).float()
    image = torch.cat([image, torch.ones(batch, 1, height, width)], 1)  # marks pixels that the image covers
    middle = (0.0, 0.0) if center is None else (center[0] - width * 0.5, center[1] - height * 0.5)
    turn = math.radians(-angle)
    cosine, sine = math.cos(turn), math.sin(turn)
    x = torch.linspace(-width * 0.5 + 0.5, width * 0.5 - 0.5, width) - middle[0]
    y = (torch.linspace(-height * 0.5 + 0.5, height * 0.5 - 0.5, height) - middle[1]).unsqueeze(-1)
    across, down = cosine * x + sine * y + middle[0], -sine * x + cosine * y + middle[1]
    grid = torch.stack([across / (0.5 * width), down / (0.5 * height)], -1).expand(batch, -1, -1, -1)
    result = functional.grid_sample(image, grid, mode=interpolation_mode, padding_mode="zeros", align_corners=False)
    share, result = result[:, -1:], result[:, :-1]
    result = (
        torch.where(share < 0.5, fill, result) if interpolation_mode == "nearest" else result + (1.0 - share) * fill
    )
    return result.permute(0, 2, 3, 1).to(input_tensor.dtype)


GOLDEN_FUNCTIONS["ttnn.upsample"] = golden_upsample
GOLDEN_FUNCTIONS["ttnn.grid_sample"] = golden_grid_sample
GOLDEN_FUNCTIONS["ttnn.rotate"] = golden_rotate

# -- activations ------------------------------------------------------------------------------------------------------

ACTIVATIONS: dict[Any, Callable[[torch.Tensor], torch.Tensor]] = {
    UnaryOpType.RELU: functional.relu,
    UnaryOpType.RELU6: functional.relu6,
    UnaryOpType.SILU: functional.silu,
    UnaryOpType.MISH: functional.mish,
    UnaryOpType.SIGMOID: torch.sigmoid,
    UnaryOpType.HARDSIGMOID: functional.hardsigmoid,
    UnaryOpType.TANH: torch.tanh,
    UnaryOpType.LOG: torch.log,
    UnaryOpType.SOFTPLUS: functional.softplus,
    UnaryOpType.GELU: functional.gelu,
    UnaryOpType.GELU_TANH: lambda x: functional.gelu(x, approximate="tanh"),
    UnaryOpType.SQRT: torch.sqrt,
}


def get_golden_function_for_activation(activation):
    """The torch counterpart of an activation: a name, a `UnaryOpType`, or one with parameters; None for None."""
    if activation is None:
        return None
    if isinstance(activation, str):
        if activation == "gelu_tanh":
            return ACTIVATIONS[UnaryOpType.GELU_TANH]
        name = f"ttnn.{activation.removesuffix('_approx')}"
        if name not in GOLDEN_FUNCTIONS:
            raise RuntimeError(f"Unsupported activation: {activation}")
        return GOLDEN_FUNCTIONS[name]
    kind = getattr(activation, "op_type", activation)
    if kind not in ACTIVATIONS:
        raise RuntimeError(f"{kind} is not supported as activation function")
    return ACTIVATIONS[kind]
