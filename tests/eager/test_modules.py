"""Modules on `ttnn`: moves, tied weights, state, copies, files."""

from __future__ import annotations

import copy
import io
import pickle

import pytest
import torch
from torch import nn

import torch_ttnn


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(5, 4)
        self.head = nn.Linear(4, 5, bias=False)
        self.head.weight = self.embedding.weight

    def forward(self, index: torch.Tensor) -> torch.Tensor:
        return self.head(self.embedding(index))


def small() -> nn.Module:
    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(144, 2))


def test_a_module_moves_and_returns() -> None:
    module, x = small().eval(), torch.randn(2, 3, 8, 8)
    with torch.no_grad():
        want = module(x)
        with torch_ttnn.eager(strict=True):
            got = module.to("ttnn")(x.to("ttnn"))
        assert torch.allclose(got.cpu(), want, atol=1e-3)
        assert torch.allclose(module.cpu()(x), want, atol=1e-5)
    assert all(isinstance(each, nn.Parameter) for each in module.ttnn().parameters())


def test_tied_weights_stay_tied() -> None:
    module = Tied().to("ttnn")
    assert module.head.weight is module.embedding.weight
    assert module.head.weight.device.type == "ttnn" and len(list(module.parameters())) == 1
    assert module.cpu().head.weight is module.embedding.weight


def test_dtypes_of_a_module() -> None:
    module = nn.Linear(4, 4).to("ttnn").to(torch.bfloat16)
    assert module.weight.dtype is torch.bfloat16
    assert module(torch.ones(1, 4, device="ttnn", dtype=torch.bfloat16)).dtype is torch.bfloat16


def test_state_dict() -> None:
    module, other = small().to("ttnn"), small()
    other.load_state_dict({name: value.cpu() for name, value in module.state_dict().items()})
    module.load_state_dict(other.state_dict())
    for one, two in zip(module.state_dict().values(), other.state_dict().values()):
        assert one.device.type == "ttnn" and torch.equal(one.cpu(), two)


def test_copies() -> None:
    module = Tied().to("ttnn")
    copied = copy.deepcopy(module)
    assert copied.head.weight is copied.embedding.weight and isinstance(copied.head.weight, nn.Parameter)
    with torch.no_grad():
        copied.head.weight.zero_()
    assert module.head.weight.abs().sum().item() > 0
    with pytest.raises(RuntimeError, match="graph leaves"):
        copy.deepcopy(module.head.weight * 1)


@pytest.mark.parametrize("location", [None, "cpu"])
def test_files(location: str | None) -> None:
    module = small().to("ttnn")
    file = io.BytesIO()
    torch.save({"state": module.state_dict(), "parameter": module[0].weight}, file)
    file.seek(0)
    loaded = torch.load(file, weights_only=True, map_location=location)
    for name, value in module.state_dict().items():
        assert loaded["state"][name].device.type == (location or "ttnn")
        assert torch.equal(loaded["state"][name].cpu(), value.cpu())
    assert isinstance(loaded["parameter"], nn.Parameter)


def test_pickle() -> None:
    x = torch.randn(2, 3, device="ttnn")
    assert torch.equal(pickle.loads(pickle.dumps(x)).cpu(), x.cpu())


def test_data_of_a_parameter() -> None:
    module, value = nn.Linear(2, 2).to("ttnn"), torch.ones(2, 2, device="ttnn")
    module.weight.data = value
    assert torch.equal(module.weight.cpu(), torch.ones(2, 2))
    module.weight.data.copy_(torch.zeros(2, 2))
    assert module.weight.abs().sum().item() == 0
    with pytest.raises(RuntimeError, match="takes another one there"):
        module.weight.data = torch.ones(2, 2)


@pytest.mark.parametrize("layer", [nn.LSTM, nn.GRU, nn.RNN])
@pytest.mark.parametrize("trains", [False, True])
def test_recurrent_layers_are_lowered_whole(layer: type[nn.Module], trains: bool) -> None:
    module, x = layer(4, 5, num_layers=2, batch_first=True), torch.randn(2, 3, 4)
    want = module(x)[0]
    want.sum().backward()
    gradient = module.weight_ih_l0.grad
    module.zero_grad()
    with torch_ttnn.eager(strict=True), torch.set_grad_enabled(trains):
        got = module.to("ttnn")(x.to("ttnn"))[0]
        assert torch.allclose(got.cpu(), want, atol=2e-2)
        if trains:
            got.sum().backward()
            assert torch.allclose(module.weight_ih_l0.grad.cpu(), gradient, atol=5e-2)


def test_inference_mode() -> None:
    module, x = nn.Sequential(nn.Linear(4, 4), nn.LSTM(4, 4)), torch.randn(3, 4)
    want = module(x)[0]
    with torch.inference_mode():
        assert torch.allclose(module.to("ttnn")(x.to("ttnn"))[0].cpu(), want, atol=2e-2)
