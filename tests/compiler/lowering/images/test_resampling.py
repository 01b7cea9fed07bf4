"""Images in another size, and at the points of a grid."""

import pytest
import torch

from tests.compiler.against_torch import check
from torch_ttnn.compiler.ir.metadata import PATH

F = torch.nn.functional
aten = torch.ops.aten

FLOAT32 = {"precision": "float32", "relative": 6e-3, "absolute": 4e-3}
SIZES = [(14, 18), (5, 30), (7, 9), (3, 4), (10, 11)]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("mode", ["nearest", "nearest-exact"])
def test_copies_of_pixels_are_exact(mode, size):
    x = torch.randn(2, 32, 7, 9).bfloat16().float()
    check(lambda x: F.interpolate(x, size, mode=mode) * 1, x, relative=0, absolute=0)


@pytest.mark.parametrize("options", [{}, FLOAT32], ids=["bfloat16", "float32"])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("align_corners", [False, True])
@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_smooth(mode, align_corners, size, options):
    check(
        lambda x: F.interpolate(x, size, mode=mode, align_corners=align_corners) * 1,
        torch.randn(2, 32, 7, 9),
        **options,
    )


@pytest.mark.parametrize("mode", ["nearest", "bilinear", "bicubic"])
def test_explicit_scales_are_used(mode):
    check(lambda x: F.interpolate(x, scale_factor=(1.7, 2.3), mode=mode), torch.randn(2, 5, 7, 9))
    check(
        lambda x: F.interpolate(x, scale_factor=(1.7, 2.3), mode=mode, recompute_scale_factor=True),
        torch.randn(2, 5, 7, 9),
    )


def test_other_ranks_and_antialiasing():
    check(lambda x: F.interpolate(x, 12, mode="linear"), torch.randn(2, 5, 7))
    check(lambda x: F.interpolate(x, 12), torch.randn(2, 5, 7))
    check(lambda x: F.interpolate(x, (3, 5, 7), mode="trilinear"), torch.randn(2, 5, 2, 4, 6))
    check(lambda x: F.interpolate(x, (5, 5), mode="bilinear", antialias=True), torch.randn(2, 5, 7, 9))
    check(lambda x: F.interpolate(x, (5, 5), mode="bicubic", antialias=True), torch.randn(2, 5, 7, 9))


def test_integer_factors_take_one_call():
    def doubled(mode):
        return check(lambda x: F.interpolate(x, scale_factor=2, mode=mode), torch.randn(1, 64, 8, 8)).device_ops

    assert "ttnn.upsample" in doubled("nearest")
    assert "ttnn.upsample" in doubled("bilinear")


def test_the_same_size_costs_nothing():
    assert check(lambda x: F.interpolate(x, (7, 9), mode="bilinear"), torch.randn(2, 3, 7, 9)).device_ops == []


def test_copies_in_float32_that_a_product_would_round_stay_on_the_host():
    out = check(lambda x: F.interpolate(x, (5, 5)), torch.randn(1, 3, 7, 7), on_device=False, precision="float32")
    assert "round float32" in out.host_ops["aten.upsample_nearest2d.default"]


def test_gradients():
    check(lambda g: aten.upsample_bilinear2d_backward(g, [14, 10], [2, 5, 7, 9], False), torch.randn(2, 5, 14, 10))
    check(lambda g: aten.upsample_nearest2d_backward(g, [14, 18], [2, 5, 7, 9]), torch.randn(2, 5, 14, 18))


@pytest.mark.parametrize("align_corners", [True, False])
def test_points_of_a_grid(align_corners):
    grid = torch.rand(2, 5, 6, 2) * 2.2 - 1.1
    check(lambda x, grid: F.grid_sample(x, grid, align_corners=align_corners), torch.randn(2, 40, 7, 9), grid)


@pytest.mark.parametrize("option", [{"mode": "nearest"}, {"padding_mode": "border"}])
def test_points_that_the_library_does_not_sample(option):
    grid = torch.rand(1, 3, 3, 2) * 2 - 1
    out = check(
        lambda x, g: F.grid_sample(x, g, align_corners=False, **option), torch.randn(1, 3, 5, 5), grid, on_device=False
    )
    assert "the device supports only" in out.host_ops["aten.grid_sampler_2d.default"]


def test_points_of_a_grid_are_not_rounded():
    """In bfloat16 they would be half a pixel off in an image of 200."""
    x = torch.arange(200).sin().expand(1, 32, 8, 200).contiguous()
    rows, columns = torch.meshgrid(torch.linspace(-0.9, 0.9, 8), torch.linspace(-0.99, 0.99, 60), indexing="ij")
    grid = torch.stack([columns, rows], -1)
    check(lambda x, g: F.grid_sample(x, g, align_corners=True), x, grid[None], absolute=0.03)
    check(lambda x, g: F.grid_sample(x, g[None], align_corners=True), x, grid, absolute=0.03)
    twice = check(lambda x, g: (g + 1, F.grid_sample(x, g[None], align_corners=True)), x, grid, absolute=0.03)
    paths = [PATH.get(node) for node in twice.program.graph.nodes]
    assert paths.count("ttnn.from_torch") == 2  # the grid is uploaded once, and cast on the device for the sum
    assert paths.count("ttnn.typecast") == 1
