"""Sums on their way out: rounding and rectifying at once gives what the vector unit and then the packer give."""

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
    """All signs and exponents with mantissas about the middle between two bfloat16, infinities and NaN too."""
    upper = np.arange(1 << 16, dtype=np.uint32) << 16
    patterns = np.concatenate([upper | lower for lower in (0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF)])
    return torch.from_numpy(patterns.view(np.float32).copy())


@pytest.mark.parametrize("activation", CAPS, ids=str)
def test_capping_and_rounding_change_places(activation):
    ending = ending_of(activation)
    assert ending is not None
    wanted = pack(activation(sums(), fp32_dest=True), DataType.BFLOAT16, from_fp32=True)
    assert torch.equal(round_in_place(sums(), ending), wanted)


def test_without_an_activation_sums_are_packed():
    assert ending_of(None) == ROUNDED
    assert torch.equal(round_in_place(sums()), pack(sums(), DataType.BFLOAT16, from_fp32=True))


def test_a_rectifier_caps_at_infinity():
    assert ending_of(Activation("relu")) == RELU
    rounded = pack(sums(), DataType.BFLOAT16, from_fp32=True)
    assert torch.equal(round_in_place(sums(), RELU), rounded.clamp(min=0.0))


@pytest.mark.parametrize(
    "activation", [Activation("gelu"), Activation("relu_max", (6.01,)), Activation("relu_max", (-1.0,))], ids=str
)
def test_what_does_not_change_places_with_rounding_is_left_alone(activation):
    """6.01 is no bfloat16, and below zero nothing would be left."""
    assert ending_of(activation) is None
