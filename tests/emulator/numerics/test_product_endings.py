"""Rounding and rectifying in one pass equals the activation followed by the packer."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from ttnn_emulator.enums import DataType
from ttnn_emulator.numerics.functions.apply import Activation
from ttnn_emulator.numerics.kernels.product_endings import RELU, ROUNDED, ending_of, round_in_place
from ttnn_emulator.numerics.units.packer import pack

CAPS = (Activation("relu6"), Activation("relu_max", (6.0,)), Activation("relu_max", (0.5,)))


def sums() -> torch.Tensor:
    """All signs and exponents with mantissas near ties between two bfloat16, including infinities and NaN."""
    upper = np.arange(1 << 16, dtype=np.uint32) << 16
    patterns = np.concatenate([upper | lower for lower in (0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF)])
    return torch.from_numpy(patterns.view(np.float32).copy())


@pytest.mark.parametrize("activation", CAPS, ids=str)
def test_capping_and_rounding_commute(activation):
    ending = ending_of(activation)
    assert ending is not None
    expected = pack(activation(sums(), fp32_dest=True), DataType.BFLOAT16, from_fp32=True)
    assert torch.equal(round_in_place(sums(), ending), expected)


def test_without_an_activation_sums_are_packed():
    assert ending_of(None) == ROUNDED
    assert torch.equal(round_in_place(sums()), pack(sums(), DataType.BFLOAT16, from_fp32=True))


def test_relu_has_an_infinite_cap():
    assert ending_of(Activation("relu")) == RELU
    rounded = pack(sums(), DataType.BFLOAT16, from_fp32=True)
    assert torch.equal(round_in_place(sums(), RELU), rounded.clamp(min=0.0))


@pytest.mark.parametrize(
    "activation", [Activation("gelu"), Activation("relu_max", (6.01,)), Activation("relu_max", (-1.0,))], ids=str
)
def test_activations_that_do_not_commute_with_rounding(activation):
    """6.01 is not a bfloat16, and a negative cap is not supported."""
    assert ending_of(activation) is None
