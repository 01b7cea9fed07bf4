"""Shapes that change from call to call."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import torch_ttnn
from tests.compiler.semantics.compiled_models import WIDTH, assert_near


@torch.no_grad()
@pytest.mark.parametrize("dynamic", [True, None], ids=["dynamic", "automatic"])
def test_changing_shapes(dynamic):
    model = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU())
    function = torch.compile(model, backend="ttnn", dynamic=dynamic)
    for batch in (1, 3, 5, 3, 8):
        x = torch.randn(batch, 7, WIDTH)
        assert_near(function(x), model(x))


@torch.no_grad()
def test_programs_of_changing_shapes_equal_those_of_fixed_ones():
    found = []
    for dynamic in (False, True):
        torch._dynamo.reset()
        options = torch_ttnn.TorchTtnnOption()
        torch.compile(nn.Linear(WIDTH, WIDTH), backend="ttnn", dynamic=dynamic, options=options)(torch.ones(3, WIDTH))
        found.append([node.target for node in options.programs[0].captured.graph.nodes if node.op == "call_function"])
    assert found[0] == found[1]


@torch.no_grad()
def test_symbolic_sizes_in_arithmetic_and_shapes():
    def function(x):
        n = x.shape[0]
        return (x.reshape(n * 2, -1) * n).view(n, 2, -1) + torch.arange(n)[:, None, None]

    run = torch.compile(function, backend="ttnn", dynamic=True)
    for n in (2, 5, 9):
        x = torch.randn(n, 6)
        assert_near(run(x), function(x), 0.1)


@torch.no_grad()
def test_many_shapes_keep_the_cache_bounded_and_log_a_hint(caplog):
    options = torch_ttnn.TorchTtnnOption(max_programs=2)
    run = torch.compile(lambda x: x + 1, backend="ttnn", dynamic=True, options=options)
    for n in range(3, 8):
        assert torch.equal(run(torch.zeros(n)), torch.ones(n))
    assert "max_programs" in caplog.text
    assert len(options.programs) == len(options._out_fx_graphs) == 2
