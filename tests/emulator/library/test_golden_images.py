"""Golden functions of images compared with their definitions."""

from __future__ import annotations

import pytest
import torch

import ttnn_emulator as ttnn


@pytest.mark.parametrize("turns", (1, 2, 3))
@pytest.mark.parametrize("mode", ("nearest", "bilinear"))
def test_rotations_by_90_degrees(turns: int, mode: str) -> None:
    image = torch.rand(2, 5, 5, 3, generator=torch.Generator().manual_seed(0))
    made = ttnn.get_golden_function(ttnn.rotate)(image, 90.0 * turns, interpolation_mode=mode)
    assert torch.allclose(made, image.rot90(turns, (1, 2)), atol=1e-5)


def test_uncovered_pixels_are_filled() -> None:
    made = ttnn.operations.pool.golden_rotate(torch.zeros(1, 8, 8, 1), 45.0, fill=3.0)
    assert made[0, 0, 0, 0] == 3.0 and made[0, 4, 4, 0] == 0.0


@pytest.mark.parametrize("mode", ("nearest", "bilinear"))
def test_prepared_grids_sample_as_plain_ones(mode: str) -> None:
    image = torch.rand(1, 9, 7, 4, generator=torch.Generator().manual_seed(1))
    grid = torch.rand(1, 5, 6, 2, generator=torch.Generator().manual_seed(2)) * 1.8 - 0.9
    plain = ttnn.operations.pool.golden_grid_sample(image, grid, mode=mode)
    prepared = ttnn.prepare_grid_sample_grid(ttnn.from_torch(grid, dtype=ttnn.float32), list(image.shape), mode=mode)
    points = ttnn.to_torch(prepared)
    made = ttnn.operations.pool.golden_grid_sample(image, points, mode=mode, use_precomputed_grid=True)
    assert (made - plain).abs().max() <= 0.02


def test_golden_functions_of_activations() -> None:
    find = ttnn.operations.activations.get_golden_function_for_activation
    x = torch.linspace(-3, 3, 7)
    assert find(None) is None
    assert torch.equal(find("relu")(x), x.relu())
    assert torch.equal(find(ttnn.UnaryWithParam(ttnn.UnaryOpType.SILU))(x), torch.nn.functional.silu(x))
    for unknown in (ttnn.UnaryOpType.ERFINV, "no_such_function"):
        with pytest.raises(RuntimeError):
            find(unknown)


def test_pools_of_flat_images() -> None:
    flat = torch.rand(1, 1, 2 * 6 * 5, 3, generator=torch.Generator().manual_seed(3))
    image = flat.reshape(2, 6, 5, 3).permute(0, 3, 1, 2)
    sizes = (2, 6, 5, 3, (3, 3), (2, 2))
    expected = torch.nn.functional.max_pool2d(image, 3, 2, 1).permute(0, 2, 3, 1).reshape(1, 1, -1, 3)
    golden = ttnn.get_golden_function(ttnn.max_pool2d)
    assert torch.equal(golden(flat, *sizes, (1, 1), (1, 1)), expected)
    uneven, places = golden(flat, *sizes, [1, 0, 0, 1], (1, 1), return_indices=True)
    assert uneven.shape == places.shape == (1, 1, 2 * 3 * 2, 3)
    mean = ttnn.operations.pool.golden_avg_pool2d(flat, *sizes, [1, 1, 1, 1], dtype=ttnn.bfloat16)
    assert mean.dtype is torch.bfloat16


@pytest.mark.parametrize("kind", ("avg", "max"))
def test_adaptive_pools_of_flat_images(kind: str) -> None:
    flat = torch.rand(1, 1, 2 * 6 * 5, 3, generator=torch.Generator().manual_seed(3))
    image = flat.reshape(2, 6, 5, 3).permute(0, 3, 1, 2)
    twin = getattr(torch.nn.functional, f"adaptive_{kind}_pool2d")(image, (3, 2))
    golden = ttnn.get_golden_function(getattr(ttnn, f"adaptive_{kind}_pool2d"))
    assert golden is getattr(ttnn.operations.pool, f"golden_adaptive_{kind}_pool2d")
    assert torch.equal(golden(flat, 2, 6, 5, 3, [3, 2]), twin.permute(0, 2, 3, 1).reshape(1, 1, -1, 3))
