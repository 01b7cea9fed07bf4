"""Dynamo over tensors on `ttnn`: it captures them as tensors, also for other backends."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch

import torch_ttnn
from torch_ttnn.eager.tensor import TtnnTensor


@pytest.mark.parametrize("backend", ["ttnn", "aot_eager", "eager"])
def test_a_model_on_the_device_is_captured(backend: str) -> None:
    torch._dynamo.reset()
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.LayerNorm(8), torch.nn.Linear(8, 2))
    x = torch.randn(3, 4)
    expected = model(x).detach()
    compiled = torch.compile(model.to("ttnn"), backend=backend, fullgraph=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error", torch_ttnn.GraphBreakWarning)
        result = compiled(x.to("ttnn"))
    assert isinstance(result, TtnnTensor)
    assert torch.allclose(result.detach().cpu(), expected, atol=1e-2)
    result.sum().backward()
    assert model[0].weight.grad.device.type == "ttnn"


def test_tensors_that_a_compiled_function_creates() -> None:
    compiled = torch.compile(lambda: torch.ones(2, device="ttnn") * 3, backend="ttnn", fullgraph=True)
    assert compiled().cpu().tolist() == [3, 3]


def _facts(x: torch.Tensor) -> Any:
    if not (isinstance(x, torch.Tensor) and x.device.type == "ttnn" and x.is_floating_point()):
        return None
    index = torch.tensor([1, 0], device=x.device)
    made = torch.arange(4, device=x.device) + x.new_zeros(4)
    return (x + made)[index].view(-1).unsqueeze(0), x.shape, x.dtype, x.device.type


def _branch(x: torch.Tensor) -> Any:
    return x * 2 if x.sum().item() > -1e9 else x


def _selected(x: torch.Tensor) -> Any:
    return x[x > 0] * 2


@pytest.mark.parametrize(("function", "whole"), [(_facts, True), (_branch, False), (_selected, False)])
def test_what_python_code_sees_of_a_tensor(function: Callable[..., Any], whole: bool) -> None:
    torch._dynamo.reset()
    x = torch.randn(2, 4).bfloat16().float().to("ttnn")
    expected = function(x)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = torch.compile(function, backend="ttnn", fullgraph=whole)(x)
    for one, other in zip(
        expected if isinstance(expected, tuple) else [expected], made if isinstance(made, tuple) else [made]
    ):
        if isinstance(one, torch.Tensor):
            assert one.device == other.device
            assert torch.allclose(one.cpu(), other.cpu(), atol=3e-2)
        else:
            assert one == other
