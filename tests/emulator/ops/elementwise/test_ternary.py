"""Operations of three operands and quantisation: broadcasts, integers and special values."""

from __future__ import annotations

import pytest
import torch

import ttnn_emulator as ttnn
from tests.emulator.ops.against_torch import stored, upload, values

TRIPLES = (((64, 64), (1, 64), (64, 1)), ((5, 33), (1, 1), (5, 33)), ((2, 3, 17, 40), (3, 17, 40), (1, 40)))


@pytest.mark.parametrize("triple", TRIPLES, ids=str)
def test_broadcasts(triple, device):
    operands = [values(shape, -2, 2, "float32", 3 + number) for number, shape in enumerate(triple)]
    tensors = [upload(operand, "float32", "TILE", device) for operand in operands]
    flags = ttnn.gt(tensors[0], 0.0)
    assert torch.equal(stored(ttnn.where(flags, *tensors[1:])), torch.where(operands[0] > 0, *operands[1:]))
    assert torch.allclose(stored(ttnn.mac(*tensors)), operands[0] * operands[1] + operands[2], rtol=1e-5, atol=1e-5)


def test_where_treats_minus_zero_as_true(device):
    flags = upload(torch.tensor([[0.0, -0.0, 1.0, float("nan")]]), "bfloat16", "TILE", device)
    assert stored(ttnn.where(flags, 1.0, 2.0)).tolist() == [[2.0, 1.0, 1.0, 1.0]]


def test_integers(device):
    a, b, c = (upload(values((5, 33), -50, 50, "int32", seed), "int32", "TILE", device) for seed in range(3))
    x, y, z = map(stored, (a, b, c))
    assert torch.equal(stored(ttnn.addcmul(a, b, c, value=3)), x + 3 * y * z)
    assert torch.equal(stored(ttnn.where(a, b, c)), torch.where(x != 0, y, z))
    assert torch.equal(stored(ttnn.mac(a, b, c)), x * y + z)


def test_output_tensor_receives_the_result(device):
    a = upload(torch.full((5, 33), 1.5), "bfloat16", "TILE", device)
    target = upload(torch.zeros(5, 33), "bfloat16", "TILE", device)
    assert ttnn.where(a, a, 2.0, output_tensor=target).buffer_address() == target.buffer_address()
    assert torch.all(stored(target) == 1.5)


@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
def test_quantisation_and_back(dtype, device):
    x = upload(values((40, 50), -5, 5, dtype, 1), dtype, "TILE", device)
    source = stored(x)
    quantized = ttnn.quantize(x, 0.05, 3)
    expected = (torch.floor((source / 0.05 + 3).abs() + 0.5) * torch.sign(source / 0.05 + 3)).clamp(-127, 127)
    assert (stored(quantized) - expected).abs().max() <= 1
    back = stored(ttnn.dequantize(quantized, 0.05, 3, dtype=ttnn.float32))
    assert torch.allclose(back, (stored(quantized) - 3) * 0.05, atol=1e-6)


def test_quantisation_per_channel(device):
    x = values((4, 3, 40), -5, 5, "float32", 2)
    scale, zero = torch.tensor([0.1, 0.2, 0.5]), torch.tensor([0, 5, -5])
    tensors = upload(x, "float32", "TILE", device), upload(scale, "float32", "TILE", device)
    quantized = ttnn.quantize(*tensors, upload(zero, "int32", "TILE", device), axis=1)
    expected = x / scale.reshape(1, 3, 1) + zero.reshape(1, 3, 1)
    assert (stored(quantized) - expected).abs().max() <= 1.001
    shifted = ttnn.requantize(quantized, 0.1, 0, 0.2, 1)
    assert (stored(shifted) - (stored(quantized) * 0.5 + 1)).abs().max() <= 1
