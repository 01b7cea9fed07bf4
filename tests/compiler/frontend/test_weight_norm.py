"""Weight normalisation: torch's values and gradients, and no host operation."""

from __future__ import annotations

import copy
from collections.abc import Callable

import pytest
import torch
from torch import nn
from torch.nn.utils import parametrizations

import torch_ttnn
from tests.compiler.against_torch import assert_like
from torch_ttnn.compiler.frontend.weight_norm import weight_norm_backward
from torch_ttnn.compiler.ir.metadata import REASON

MODULES: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "linear": (lambda: parametrizations.weight_norm(nn.Linear(24, 40)), (6, 24)),
    "last dimension": (lambda: parametrizations.weight_norm(nn.Linear(24, 40), dim=1), (6, 24)),
    "whole weight": (lambda: parametrizations.weight_norm(nn.Linear(24, 40), dim=None), (6, 24)),
    "convolution": (lambda: parametrizations.weight_norm(nn.Conv1d(16, 8, 3)), (2, 16, 12)),
    "middle dimension": (lambda: parametrizations.weight_norm(nn.Conv1d(16, 8, 3), dim=1), (2, 16, 12)),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("name", MODULES)
def test_gradients(name: str, dtype: torch.dtype) -> None:
    torch._dynamo.reset()
    torch.manual_seed(0)
    make, shape = MODULES[name]
    module = make().to(dtype)
    x = torch.randn(shape).to(dtype)
    wanted = copy.deepcopy(module).float()
    expected = wanted(x.float())
    seed = torch.randn(expected.shape).to(dtype)
    expected.backward(seed.float())
    options = torch_ttnn.TorchTtnnOption(cache_dir="")
    got = torch.compile(module, backend="ttnn", options=options)(x)
    got.backward(seed)
    assert_like(got.detach(), expected.detach().to(dtype), 0.02, 0.02)
    for ours, its in zip(module.parameters(), wanted.parameters()):
        assert ours.grad is not None and its.grad is not None
        assert ours.grad.stride() == its.grad.stride()
        assert_like(ours.grad, its.grad.to(dtype), 0.03, 0.02)
    host = [node.target for program in options.programs for node in program.graph.nodes if REASON.on(node)]
    assert len(options.programs) == 2 and not host


@pytest.mark.parametrize("dim", [0, 2])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_the_formula_equals_the_kernel(dtype: torch.dtype, dim: int) -> None:
    torch.manual_seed(0)
    v, grad = torch.randn(5, 3, 4).to(dtype), torch.randn(5, 3, 4).to(dtype)
    length = torch.rand([size if each == dim else 1 for each, size in enumerate(v.shape)]).to(dtype)
    _, norms = torch.ops.aten._weight_norm_interface(v, length, dim)
    wanted = torch.ops.aten._weight_norm_interface_backward(grad, v, length, norms, dim)
    for ours, its in zip(weight_norm_backward(grad, v, length, norms, dim), wanted):
        assert ours.dtype is its.dtype and ours.shape == its.shape and ours.stride() == its.stride()
        torch.testing.assert_close(ours, its)
