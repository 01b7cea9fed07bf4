"""Compiled models on `ttnn`: no move at all, nothing on the host, and results as torch's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest
import torch

import torch_ttnn
from tests.eager.test_models import Made, bert, gpt2, moved, resnet18, unet
from torch_ttnn.eager.device.boards import board_of
from torch_ttnn.workloads.agreement import pcc

MOVES = ("ttnn.from_torch", "ttnn.to_torch", "ttnn.copy_host_to_device_tensor")


def _first(result: object) -> torch.Tensor:
    return result if isinstance(result, torch.Tensor) else next(iter(result.values()))  # type: ignore[attr-defined]


@pytest.mark.parametrize("make", [resnet18, bert, gpt2, unet])
def test_models(make: Callable[[], Made]) -> None:
    torch._dynamo.reset()
    torch.manual_seed(0)
    model, args, kwargs = make()
    model.eval()
    options = torch_ttnn.TorchTtnnOption()
    with torch.no_grad():
        expected = _first(model(*args, **kwargs))
        model.to("ttnn")
        args, kwargs = tuple(map(moved, args)), {name: moved(each) for name, each in kwargs.items()}
        compiled = torch.compile(model, backend="ttnn", options=options)
        _first(compiled(*args, **kwargs))
        calls: Counter[str] = Counter()
        with board_of().target.border.listening(lambda path, *_: calls.update([path])):
            result = _first(compiled(*args, **kwargs))
    assert result.device.type == "ttnn"
    ours = result.cpu()
    assert pcc(ours, expected) > 0.999
    assert float((ours - expected).norm() / expected.norm()) < 0.03
    assert not any(calls[move] for move in MOVES)
    assert calls["ttnn.execute_trace"] == 1


def test_weights_that_change_are_prepared_again() -> None:
    torch._dynamo.reset()
    model = torch.nn.Linear(8, 8).to("ttnn")
    x = torch.randn(2, 8).to("ttnn")
    compiled = torch.compile(model, backend="ttnn")
    with torch.no_grad():
        before = compiled(x).cpu()
        model.weight.mul_(2)
        model.bias.mul_(2)
        after = compiled(x).cpu()
        state = {name: torch.zeros(each.shape) for name, each in model.state_dict().items()}
        model.load_state_dict(state)
        zero = compiled(x).cpu()
    assert torch.allclose(after, 2 * before, atol=2e-2)
    assert not zero.any()
