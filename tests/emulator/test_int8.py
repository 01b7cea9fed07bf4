"""Tensors of int8: made, laid out, moved and read back."""

from __future__ import annotations

import pytest
import torch

import ttnn_emulator as ttnn

VALUES = torch.tensor([[-128, -1, 0], [1, 2, 127]], dtype=torch.int8)


@pytest.mark.parametrize("layout", [ttnn.ROW_MAJOR_LAYOUT, ttnn.TILE_LAYOUT])
def test_values_come_back(device, layout) -> None:
    tensor = ttnn.from_torch(VALUES, layout=layout)
    assert tensor.dtype == ttnn.int8
    assert torch.equal(ttnn.to_torch(tensor), VALUES)


def test_values_become_int8_on_the_host() -> None:
    wide = ttnn.from_torch(VALUES.to(torch.int32), dtype=ttnn.int32)
    assert torch.equal(ttnn.to_torch(ttnn.to_dtype(wide, ttnn.int8)), VALUES)
    assert ttnn.from_torch(VALUES[:1, :1]).item() == -128


def test_operations_on_the_device_say_that_they_are_not_emulated(device) -> None:
    tensor = ttnn.from_torch(VALUES, layout=ttnn.TILE_LAYOUT, device=device)
    with pytest.raises(ttnn.NotEmulated, match="int8"):
        ttnn.relu(tensor)
