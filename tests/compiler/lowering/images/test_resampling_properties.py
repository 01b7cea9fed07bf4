"""Upsampling and downsampling between all sizes."""

import hypothesis.strategies as st
import torch
from hypothesis import given

from tests.compiler.against_torch import check

F = torch.nn.functional

SIZE = st.integers(1, 20)
CHANNELS = st.sampled_from([1, 3, 8, 31, 32, 64])
PRECISIONS = st.sampled_from(["bfloat16", "bfloat16", "float32"])
BOUNDS = {"bfloat16": {}, "float32": {"relative": 6e-3, "absolute": 5e-3}}


@given(
    st.sampled_from(["bilinear", "bicubic"]), st.booleans(), st.tuples(SIZE, SIZE), st.tuples(SIZE, SIZE), CHANNELS,
    st.integers(1, 2), PRECISIONS,
)  # fmt: skip
def test_smooth(mode, align_corners, old, new, channels, batch, precision):
    x = torch.randn(batch, channels, *old)
    check(
        lambda x: F.interpolate(x, new, mode=mode, align_corners=align_corners) * 1,
        x,
        precision=precision,
        **BOUNDS[precision],
    )


@given(st.sampled_from(["nearest", "nearest-exact"]), st.tuples(SIZE, SIZE), st.tuples(SIZE, SIZE), CHANNELS)
def test_copies(mode, old, new, channels):
    x = torch.randn(2, channels, *old).bfloat16().float()
    check(lambda x: F.interpolate(x, new, mode=mode) * 1, x, relative=0, absolute=0)
    check(lambda x: F.interpolate(x, new, mode=mode) * 1, x, precision="float32", on_device=False)


@given(
    st.sampled_from(["nearest", "bilinear", "bicubic"]),
    st.tuples(st.floats(0.5, 3), st.floats(0.5, 3)),
    st.tuples(st.integers(2, 9), st.integers(2, 9)),
)
def test_scales(mode, scales, old):
    check(lambda x: F.interpolate(x, scale_factor=scales, mode=mode) * 1, torch.randn(1, 8, *old))


@given(st.tuples(SIZE, SIZE), st.tuples(SIZE, SIZE), CHANNELS, st.booleans())
def test_grids(old, new, channels, align_corners):
    grid = torch.rand(2, *new, 2) * 2.4 - 1.2
    x = torch.randn(2, channels, *old)
    check(lambda x, g: F.grid_sample(x, g, align_corners=align_corners), x, grid, absolute=0.03)  # weights are rounded
