"""Operations with side effects, such as the checks of torch.linalg."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import torch_ttnn  # noqa: F401

REGULAR = torch.eye(4) * 3 + 0.1


@pytest.fixture(autouse=True)
def fresh_dynamo():
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


@pytest.mark.parametrize(
    "function",
    [
        torch.linalg.inv,
        torch.linalg.cholesky,
        lambda a: torch.linalg.lu_factor(a).LU,
        lambda a: torch.linalg.solve(a, torch.ones(4, 2)),
        lambda a: torch.linalg.det(torch.linalg.inv(a)) * torch.linalg.inv(a),
    ],
)
@torch.no_grad()
def test_linear_algebra(function):
    compiled = torch.compile(lambda a: function(a * 1.0), backend="ttnn")
    torch.testing.assert_close(compiled(REGULAR), function(REGULAR), rtol=0.02, atol=0.02)


@torch.no_grad()
def test_a_singular_matrix_raises_torchs_error():
    compiled = torch.compile(lambda a: torch.linalg.inv(a * 1.0), backend="ttnn")
    compiled(REGULAR)
    with pytest.raises(torch.linalg.LinAlgError) as expected:
        torch.linalg.inv(torch.zeros(4, 4))
    with pytest.raises(torch.linalg.LinAlgError) as found:
        compiled(torch.zeros(4, 4))
    assert str(found.value) == str(expected.value)


def test_gradients_of_weights_with_an_effect():
    torch.manual_seed(0)
    layer = nn.Linear(4, 4)
    x = torch.randn(4, 4)

    def function(x):
        return (torch.linalg.cholesky(layer.weight @ layer.weight.T + torch.eye(4)) @ layer(x)).sum()

    function(x).backward()
    wanted = layer.weight.grad.clone()
    layer.weight.grad = None
    torch.compile(function, backend="ttnn")(x).backward()
    torch.testing.assert_close(layer.weight.grad, wanted, rtol=0.05, atol=0.1)
