"""An operation's torch twin, and the operation computed by it."""

from __future__ import annotations

import pytest
import torch

import ttnn_emulator as ttnn
from ttnn_emulator.golden_functions import TWINS
from ttnn_emulator.table import OPERATIONS


def test_every_twin_belongs_to_an_operation() -> None:
    assert set(TWINS) <= set(OPERATIONS)


def test_a_fallback_computes_on_the_host_and_puts_the_result_back(device) -> None:
    values = torch.arange(64.0).reshape(8, 8)
    x = ttnn.from_torch(values, dtype=ttnn.bfloat16, layout=ttnn.TILE_LAYOUT, device=device)
    y = ttnn.get_fallback_function(ttnn.reshape)(x, (4, 16))
    assert (list(y.shape), y.dtype, y.layout, y.device()) == ([4, 16], ttnn.bfloat16, ttnn.TILE_LAYOUT, device)
    assert torch.equal(ttnn.to_torch(y).float(), values.reshape(4, 16))


def test_an_operation_without_a_twin_says_so() -> None:
    with pytest.raises(ttnn.NotEmulated, match=r"ttnn\.conv2d"):
        ttnn.get_golden_function(ttnn.conv2d)
