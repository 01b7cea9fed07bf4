"""Gradients of recurrent layers in bfloat16, against float32 torch with the same weights."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

from torch_ttnn import TorchTtnnOption
from torch_ttnn.compiler.ir.metadata import REASON

LAYERS = {
    "rnn tanh": lambda: nn.RNN(16, 24, 2, batch_first=True),
    "rnn relu": lambda: nn.RNN(16, 24, nonlinearity="relu"),
    "lstm": lambda: nn.LSTM(16, 24, 2, bidirectional=True),
    "lstm with projections": lambda: nn.LSTM(16, 24, proj_size=8),
    "gru": lambda: nn.GRU(16, 24, 2, bidirectional=True, batch_first=True),
}


def gradients(module: nn.Module, run, x: torch.Tensor) -> list[torch.Tensor]:
    x = x.clone().requires_grad_()
    out, _ = run(x)
    (out.float() * torch.linspace(-1, 1, out.shape[-1])).sum().backward()
    return [out.detach(), x.grad, *[each.grad for each in module.parameters()]]


@pytest.mark.parametrize("name", LAYERS)
def test_gradients_in_bfloat16(name: str):
    torch._dynamo.reset()
    torch.manual_seed(0)
    module = LAYERS[name]().to(torch.bfloat16)
    reference = copy.deepcopy(module).float()
    x = torch.randn(7, 5, 16).bfloat16()
    options = TorchTtnnOption(cache_dir="", warn=False)
    got = gradients(module, torch.compile(module, backend="ttnn", options=options), x)
    for mine, theirs in zip(got, gradients(reference, reference, x.float()), strict=True):
        assert mine.dtype is torch.bfloat16
        assert (mine.float() - theirs).norm() <= 0.03 * theirs.norm()
    assert not [node for program in options.programs for node in program.graph.nodes if REASON.on(node)]
