"""Sampling at grid points, rotation and upsampling of images, compared with torch."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import ttnn_emulator as ttnn
from tests.emulator.ops.against_torch import Buffers, pcc
from ttnn_emulator.execution import listeners

# Weights are truncated to bfloat16, so that the error is a few 1/256 of the neighbouring pixels.
WEIGHT_ERROR = 2**-6
LEAST_PCC = {ttnn.bfloat16: 0.999, ttnn.float32: 0.999}


def upload(values: torch.Tensor, device, dtype=ttnn.bfloat16):
    return ttnn.from_torch(values, dtype=dtype, layout=ttnn.ROW_MAJOR_LAYOUT, device=device)


def read(tensor) -> torch.Tensor:
    return ttnn.to_torch(tensor).float()


def image(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.rand(shape, generator=torch.Generator().manual_seed(seed)).bfloat16().float()


def by_torch(values: torch.Tensor, grid: torch.Tensor, align_corners: bool, mode: str = "bilinear") -> torch.Tensor:
    sampled = torch.nn.functional.grid_sample(
        values.permute(0, 3, 1, 2), grid, mode=mode, padding_mode="zeros", align_corners=align_corners
    )
    return sampled.permute(0, 2, 3, 1)


def close(ours: torch.Tensor, reference: torch.Tensor, least: float = 0.999) -> None:
    assert ours.shape == reference.shape
    assert pcc(ours, reference) >= least
    assert (ours - reference).abs().max() <= WEIGHT_ERROR


@pytest.mark.parametrize("dtype", LEAST_PCC)
@pytest.mark.parametrize("align_corners", [False, True])
@pytest.mark.parametrize("size, target", [((8, 8), (5, 7)), ((16, 12), (20, 33)), ((1, 9), (3, 3))])
def test_grid_sample(device, dtype, align_corners, size, target) -> None:
    values = image(2, *size, 32)
    grid = torch.rand(2, *target, 2, generator=torch.Generator().manual_seed(1)) * 2.4 - 1.2
    ours = ttnn.grid_sample(
        upload(values, device, dtype), upload(grid, device, ttnn.float32), align_corners=align_corners
    )
    close(read(ours), by_torch(values, grid, align_corners), LEAST_PCC[dtype])


def test_grid_sample_of_several_points_per_row(device) -> None:
    values = image(1, 8, 8, 32)
    grid = torch.rand(1, 4, 6, 2, generator=torch.Generator().manual_seed(2)) * 2 - 1
    packed = upload(grid.reshape(1, 4, 2, 6), device, ttnn.float32)
    source = upload(values, device)
    close(read(ttnn.grid_sample(source, packed)), by_torch(values, grid, False))
    channels = read(ttnn.grid_sample(source, packed, batch_output_channels=True))
    assert list(channels.shape) == [1, 4, 2, 96]
    close(channels.reshape(1, 4, 6, 32), by_torch(values, grid, False))


def test_grid_sample_is_zero_outside(device) -> None:
    grid = torch.full((1, 2, 2, 2), 3.0)
    ours = ttnn.grid_sample(upload(image(1, 4, 4, 32), device), upload(grid, device, ttnn.float32))
    assert not read(ours).any()


@pytest.mark.parametrize("mode", ["bilinear", "nearest"])
@pytest.mark.parametrize("align_corners", [False, True])
def test_grid_sample_by_a_prepared_grid(device, mode, align_corners) -> None:
    values = image(1, 8, 9, 32)
    grid = torch.rand(1, 4, 6, 2, generator=torch.Generator().manual_seed(4)) * 2.4 - 1.2
    prepared = ttnn.prepare_grid_sample_grid(
        ttnn.from_torch(grid), [1, 8, 9, 32], mode=mode, align_corners=align_corners
    )
    assert list(prepared.shape) == [1, 4, 6, 2 if mode == "nearest" else 6]
    source = upload(values, device)
    ours = ttnn.grid_sample(source, ttnn.to_device(prepared, device), mode=mode, use_precomputed_grid=True)
    close(read(ours), by_torch(values, grid, align_corners, mode))


@pytest.mark.parametrize("dtype", [ttnn.bfloat16, ttnn.float32])
@pytest.mark.parametrize("mode", ["nearest", "bilinear"])
@pytest.mark.parametrize("turns", [0, 1, 2, 3])
def test_rotations_by_right_angles_move_pixels(device, dtype, mode, turns) -> None:
    values = image(2, 8, 8, 32)
    ours = read(ttnn.rotate(upload(values, device, dtype), 90.0 * turns, interpolation_mode=mode))
    want = torch.rot90(values, turns, (1, 2))
    # The sine of a right angle is inexact: pixels at the edge mix with the outside.
    close(ours[:, 1:-1, 1:-1], want[:, 1:-1, 1:-1])


def rotated_by_torch(values: torch.Tensor, angle: float, center: tuple[float, float] | None, fill: float, mode: str):
    _, height, width, _ = values.shape
    cx, cy = center if center is not None else (width / 2, height / 2)
    x = torch.arange(width).double() - (cx - 0.5)
    y = torch.arange(height).double() - (cy - 0.5)
    cosine, sine = math.cos(math.radians(angle)), math.sin(math.radians(angle))
    columns = x[None] * cosine - y[:, None] * sine + cx - 0.5
    rows = x[None] * sine + y[:, None] * cosine + cy - 0.5
    grid = torch.stack([(2 * columns + 1) / width - 1, (2 * rows + 1) / height - 1], -1).float()[None]
    shifted = values - fill
    return by_torch(shifted, grid.expand(values.shape[0], -1, -1, -1), False, mode) + fill


@pytest.mark.parametrize("angle", [30.0, -40.0, 123.4])
@pytest.mark.parametrize("center, fill", [(None, 0.0), ((3.0, 5.0), 0.5)])
def test_rotate(device, angle, center, fill) -> None:
    values = image(1, 12, 16, 32)
    options = {} if center is None else {"center": center}
    source = upload(values, device)
    smooth = read(ttnn.rotate(source, angle, fill=fill, interpolation_mode="bilinear", **options))
    close(smooth, rotated_by_torch(values, angle, center, fill, "bilinear"))
    nearest = read(ttnn.rotate(source, angle, fill=fill, **options))
    want = rotated_by_torch(values, angle, center, fill, "nearest")
    assert ((nearest - want).abs() < 2**-8).float().mean() > 0.97  # ties between two pixels may go either way


@pytest.mark.parametrize("dtype", [ttnn.bfloat16, ttnn.float32])
@pytest.mark.parametrize("scale", [2, (3, 2), (1, 4)])
def test_upsample_nearest_copies(device, dtype, scale) -> None:
    values = image(2, 5, 7, 32)
    down, across = scale if isinstance(scale, tuple) else (scale, scale)
    ours = read(ttnn.upsample(upload(values, device, dtype), scale))
    assert torch.equal(ours, values.repeat_interleave(down, 1).repeat_interleave(across, 2))


@pytest.mark.parametrize("scale", [2, (3, 2), 4])
def test_upsample_bilinear(device, scale) -> None:
    values = image(1, 6, 5, 32)
    ours = read(ttnn.upsample(upload(values, device), scale, mode="bilinear"))
    want = torch.nn.functional.interpolate(
        values.permute(0, 3, 1, 2), scale_factor=scale, mode="bilinear", align_corners=False
    )
    close(ours, want.permute(0, 2, 3, 1))


@settings(max_examples=15, deadline=None)
@given(st.integers(1, 9), st.integers(1, 9), st.integers(1, 6), st.integers(1, 6), st.booleans())
def test_grids_of_any_size(height: int, width: int, tall: int, wide: int, align_corners: bool) -> None:
    values = image(1, height, width, 32, seed=height)
    grid = torch.rand(1, tall, wide, 2, generator=torch.Generator().manual_seed(width)) * 3 - 1.5
    with ttnn.open_device(device_id=0) as device:
        ours = ttnn.grid_sample(upload(values, device), upload(grid, device, ttnn.float32), align_corners=align_corners)
        assert (read(ours) - by_torch(values, grid, align_corners)).abs().max() <= WEIGHT_ERROR


# -- deformable attention, integral images -----------------------------------------------------------------


@pytest.mark.parametrize("align_corners", (False, True))
@pytest.mark.parametrize(("depth", "queries", "points"), ((16, 5, 4), (48, 40, 1), (64, 33, 3)))
def test_deformable_attention(device, depth: int, queries: int, points: int, align_corners: bool) -> None:
    value = image(2, 9, 7, depth)
    grid = (image(2, queries * points, 1, 2, seed=1) * 2.4 - 1.2).bfloat16().float()
    attn = image(2, queries, points, seed=2).softmax(-1).bfloat16().float()
    tensors = [upload(each, device) for each in (value, grid, attn)]
    ours = ttnn.experimental.multi_scale_deformable_attn(*tensors, align_corners=align_corners)
    sampled = by_torch(value, grid, align_corners).reshape(2, queries, points, depth)
    close(read(ours), (sampled * attn.unsqueeze(-1)).sum(2))


@pytest.mark.parametrize("dtype", (ttnn.bfloat16, ttnn.float32))
@pytest.mark.parametrize("shape", ((1, 3, 40, 33), (1, 60, 70, 32), (1, 1, 1, 1)))
def test_integral_image(device, shape: tuple[int, ...], dtype) -> None:
    values = image(*shape)
    source = ttnn.from_torch(values, dtype=dtype, layout=ttnn.TILE_LAYOUT, device=device)
    expected = values.cumsum(1).cumsum(2)
    with listeners.listening(Buffers()) as buffers:
        ours = read(ttnn.experimental.intimg(source))
    assert buffers.largest == (602112 if dtype == ttnn.bfloat16 else 1204224)  # as ttnn 0.81.1 reports
    assert ((ours - expected).abs() <= 0.03 * expected.abs() + 1e-6).all()
