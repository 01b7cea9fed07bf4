"""Tensors filled with a number are constants, for any tensor that they are like."""

import pytest
import torch

from tests.compiler.against_torch import check

FILLED = {
    "zeros_like": lambda x: torch.zeros_like(x) + x,
    "ones_like": lambda x: torch.ones_like(x) * x,
    "full_like": lambda x: torch.full_like(x, 3) - x,
    "ones_like of another dtype": lambda x: torch.ones_like(x, dtype=torch.float32) * 0.5 + x,
    "new_zeros": lambda x: x.new_zeros(3, 1) + x,
    "new_ones": lambda x: x.new_ones(5) * x,
    "new_full": lambda x: x.new_full((5,), 2) * x,
    "fill": lambda x: torch.ops.aten.fill(x, 7) + x,
    "zero": lambda x: torch.ops.aten.zero(x) + x,
    "scalar_tensor": lambda x: x * torch.scalar_tensor(2),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.bfloat16])
@pytest.mark.parametrize("name", FILLED)
def test_against_torch(name, dtype):
    x = (torch.arange(15).reshape(3, 5) - 7).to(dtype)
    out = check(FILLED[name], x)
    assert out.program.code.count("from_torch(") == 1, "nothing but the input is uploaded in a call"
    assert "weights[" not in out.program.code, "one number is a number, not a tensor"


def test_filled_with_a_tensor():
    check(lambda x, y: torch.ops.aten.fill(x, y * 2) + x, torch.randn(3, 5), torch.tensor(1.5))
    check(lambda x, y: torch.ops.aten.fill(x, y * 2) + x, torch.arange(5), torch.tensor(1.5))


def test_the_result_itself():
    check(
        lambda x: (torch.zeros_like(x), torch.full_like(x, -2.5), torch.ones_like(x, dtype=torch.bool)), torch.randn(4)
    )
