"""Options of the backend, the captured graphs and exported programs."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import torch_ttnn
from tests.compiler.semantics.compiled_models import WIDTH, assert_near


def test_an_unknown_option_lists_the_known_ones():
    with pytest.raises(Exception, match="unknown option 'devise'; known are device, precision"):
        torch.compile(lambda x: x + 1, backend="ttnn", options={"devise": 0})(torch.ones(2))


@torch.no_grad()
def test_no_options_a_dict_and_the_object():
    for options in (None, {"precision": "float32"}, torch_ttnn.TorchTtnnOption()):
        for backend in ("ttnn", torch_ttnn.backend):
            torch._dynamo.reset()
            run = torch.compile(lambda x: x + 1, backend=backend, options=options)
            assert torch.equal(run(torch.ones(2)), torch.full((2,), 2.0))


@torch.no_grad()
def test_float32_stays_float32_if_asked():
    x = torch.randn(100)
    got = torch.compile(lambda x: x * 1.2345, backend="ttnn", options={"precision": "float32"})(x)
    torch.testing.assert_close(got, x * 1.2345, rtol=1e-6, atol=0)


@torch.no_grad()
def test_graphs_contain_the_library_functions():
    options = torch_ttnn.TorchTtnnOption()
    torch.compile(lambda x, y: x @ y, backend="ttnn", options=options)(torch.ones(32, 32), torch.ones(32, 32))
    targets = [node.target for node in options._out_fx_graphs[0].nodes if node.op == "call_function"]
    assert options.programs[0].target.ttnn.matmul in targets


@torch.no_grad()
def test_exported_programs():
    model = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU())
    x = torch.randn(4, WIDTH)
    exported = torch.export.export(model, (x,))
    assert_near(torch_ttnn.compile(exported)(x), model(x))
