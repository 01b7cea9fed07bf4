"""torch runs graphs with sizes that depend on values, and says so."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

import torch_ttnn
from torch_ttnn.compiler.errors import TorchTtnnError


def checked(x: torch.Tensor) -> torch.Tensor:
    torch._check((x > 0).any().item())
    return x + 1


def counted(x: torch.Tensor) -> torch.Tensor:
    count = (x > 0).sum().item()
    torch._check(count >= 1)
    return torch.full((4,), count) * x.sum()


CASES: dict[str, Callable] = {
    "a check": checked,
    "a number": counted,
    "a mask": lambda x: x[x > 0] + 1,
    "positions": lambda x: x.nonzero() * 2,
}
X = torch.tensor([1.0, 2.0, -3.0])


@pytest.fixture(autouse=True)
def fresh_dynamo():
    torch._dynamo.reset()
    with torch._dynamo.config.patch(capture_scalar_outputs=True, capture_dynamic_output_shape_ops=True):
        yield


@pytest.mark.parametrize("name", CASES)
def test_results_are_torchs(name: str) -> None:
    compiled = torch.compile(CASES[name], backend="ttnn")
    with pytest.warns(torch_ttnn.HostOperationWarning, match="depends on values"):
        assert torch.equal(compiled(X), CASES[name](X))


def test_a_check_fails() -> None:
    with pytest.raises(RuntimeError, match="assertion failed"):
        torch.compile(checked, backend="ttnn", options={"warn": False})(-X.abs())


def test_gradients() -> None:
    weight = torch.ones(3, requires_grad=True)
    torch.compile(lambda x: ((x * weight)[x > 0]).sum(), backend="ttnn", options={"warn": False})(X).backward()
    assert torch.equal(weight.grad, torch.tensor([1.0, 2.0, 0.0]))


def test_explain_names_the_operation() -> None:
    with pytest.raises(TorchTtnnError, match="returns a size or a number"):
        torch_ttnn.explain(CASES["positions"], X)
