"""`torch.compile` over tensors on `ttnn`: they are not captured, and run in eager mode with a warning."""

from __future__ import annotations

import pytest
import torch

import torch_ttnn
from torch_ttnn.eager import tensor


@pytest.mark.parametrize("backend", ["ttnn", "aot_eager"])
def test_a_model_on_the_device_runs_in_eager_mode(backend: str) -> None:
    torch._dynamo.reset()
    tensor._warn_of_eager_mode.cache_clear()
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.LayerNorm(8), torch.nn.Linear(8, 2))
    x = torch.randn(3, 4)
    expected = model(x).detach()
    compiled = torch.compile(model.to("ttnn"), backend=backend)
    with pytest.warns(torch_ttnn.GraphBreakWarning, match="in eager mode"):
        result = compiled(x.to("ttnn"))
    assert result.device.type == "ttnn"
    assert torch.allclose(result.detach().cpu(), expected, atol=5e-3)
    result.sum().backward()
    assert model[0].weight.grad.device.type == "ttnn"


def test_tensors_that_a_compiled_function_creates() -> None:
    compiled = torch.compile(lambda: torch.ones(2, device="ttnn") * 3, backend="ttnn")
    assert compiled().cpu().tolist() == [3, 3]
