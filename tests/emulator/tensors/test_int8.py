"""Tensors of int8: created, tilized, moved and read back."""

from __future__ import annotations

import pytest
import torch

import ttnn_emulator as ttnn

VALUES = torch.tensor([[-128, -1, 0], [1, 2, 127]], dtype=torch.int8)


@pytest.mark.parametrize("layout", [ttnn.ROW_MAJOR_LAYOUT, ttnn.TILE_LAYOUT])
def test_round_trip(device, layout) -> None:
    tensor = ttnn.from_torch(VALUES, layout=layout)
    assert tensor.dtype == ttnn.int8
    assert torch.equal(ttnn.to_torch(tensor), VALUES)


def test_conversion_to_int8_on_the_host() -> None:
    wide = ttnn.from_torch(VALUES.to(torch.int32), dtype=ttnn.int32)
    assert torch.equal(ttnn.to_torch(ttnn.to_dtype(wide, ttnn.int8)), VALUES)
    assert ttnn.from_torch(VALUES[:1, :1]).item() == -128


@pytest.mark.parametrize(
    ("target", "values"),
    [
        (ttnn.int8, [-128, -3, 0, 5, 127]),
        (ttnn.uint8, [128, 253, 0, 5, 127]),
        (ttnn.uint16, [65408, 65533, 0, 5, 127]),
        (ttnn.int32, [-128, -3, 0, 5, 127]),
        (ttnn.uint32, [4294967168, 4294967293, 0, 5, 127]),
        (ttnn.float32, [-128, -3, 0, 5, 127]),
        (ttnn.bfloat16, [-128, -3, 0, 5, 127]),
        (ttnn.bfloat8_b, [-128, -4, 0, 4, 128]),
        (ttnn.bfloat4_b, [-128, 0, 0, 0, 128]),
    ],
)
def test_conversion_from_int8_on_the_host(target, values) -> None:
    row = torch.zeros(32, dtype=torch.int8)
    row[:5] = torch.tensor([-128, -3, 0, 5, 127])
    made = ttnn.to_dtype(ttnn.from_torch(row.repeat(32, 1)), target)
    assert made.dtype == target
    assert ttnn.to_torch(made)[0, :5].tolist() == values


@pytest.mark.parametrize("source", [torch.float32, torch.bfloat16])
def test_floats_saturate_in_full_vectors_only(source) -> None:
    values = torch.tensor([300.0, -300.0, 2.5, -0.9, 1e10, torch.inf, torch.nan, 130.0, 300.0, 1e10]).to(source)
    made = ttnn.to_torch(ttnn.to_dtype(ttnn.from_torch(values), ttnn.int8))
    assert made.tolist() == [127, -128, 2, 0, -128, -128, -128, 127, 44, 0]


def test_device_operations_raise_not_emulated(device) -> None:
    tensor = ttnn.from_torch(VALUES, layout=ttnn.TILE_LAYOUT, device=device)
    with pytest.raises(ttnn.NotEmulated, match="int8"):
        ttnn.relu(tensor)
