"""`tt_lib`, which ships beside `ttnn`."""

from __future__ import annotations

import pytest
import torch

import ttnn_emulator as ttnn
from ttnn_emulator.namespaces import attribute

utils = attribute("tt_lib.utils")
fallback = attribute("tt_lib.fallback_ops")

PADDED = [
    ("pad_activation", [5], [1, 1, 32, 32]),
    ("pad_activation", [3, 40], [3, 1, 32, 64]),
    ("pad_activation", [2, 5, 40], [2, 1, 32, 64]),
    ("pad_activation", [2, 3, 33, 40], [2, 3, 64, 64]),
    ("pad_weight", [3, 40], [1, 1, 32, 64]),
    ("pad_weight", [2, 3, 40], [2, 32, 64]),
]


@pytest.mark.parametrize("name, shape, padded", PADDED)
def test_padding_to_tiles(name, shape, padded) -> None:
    values = torch.rand(shape)
    made = getattr(utils, name)(values)
    assert list(made.shape) == padded
    assert torch.isclose(made.sum(), values.sum())


def test_convolutions_as_matrix_products() -> None:
    image, weights = torch.rand(2, 3, 6, 5), torch.rand(4, 3, 3, 3)
    rows = utils.convert_act_2d_matrix(image, 3, 3, 2, 1, 1, 1)
    matrix = utils.convert_weights_2d_matrix(weights, [4, 3, 3, 3])
    out = torch.nn.functional.conv2d(image, weights, stride=(2, 1), padding=1)
    assert torch.allclose((rows @ matrix)[0].transpose(1, 2).reshape(out.shape), out, atol=1e-5)


def test_small_functions() -> None:
    assert utils._nearest_32(33) == 64 and utils.roundup32(1) == 32 and utils.float_to_bits(1.0) == 0x3F800000
    assert utils.find_closest_largest_divisor(12, 5) == 4
    assert utils.is_close(torch.ones(4), torch.ones(4) * 1.01)
    with pytest.warns(DeprecationWarning):
        assert utils.tilize_to_list(torch.ones(2)) == [1.0, 1.0]


def test_fallback_operations_return_device_tensors(device) -> None:
    values = torch.rand(1, 1, 32, 64).bfloat16()
    tensor = ttnn.from_torch(values, layout=ttnn.TILE_LAYOUT, device=device)
    moved = fallback.reshape(tensor, 1, 2, 32, 32)
    assert moved.device() is device and moved.layout == ttnn.TILE_LAYOUT and list(moved.shape) == [1, 2, 32, 32]
    kept = fallback.reshape(tensor, 1, 2, 32, 32, output_layout=ttnn.ROW_MAJOR_LAYOUT, output_on_device=False)
    assert kept.layout == ttnn.ROW_MAJOR_LAYOUT and kept.storage_type() == ttnn.StorageType.HOST
    assert torch.equal(ttnn.to_torch(kept), values.reshape(1, 2, 32, 32))


def test_fallback_modules(device) -> None:
    ttnn.SetDefaultDevice(device)
    weights = ttnn.Tensor(torch.ones(1, 1, 1, 32).bfloat16())
    norm = fallback.LayerNorm(weights, weights, 32)
    values = torch.rand(1, 1, 32, 32).bfloat16()
    out = norm(ttnn.from_torch(values, layout=ttnn.TILE_LAYOUT, device=device))
    assert torch.allclose(ttnn.to_torch(out).float(), torch.layer_norm(values.float(), [32]) + 1, atol=0.02)
    ttnn.SetDefaultDevice(None)
