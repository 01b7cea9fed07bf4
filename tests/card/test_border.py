"""Programs reach a library through its own functions and objects only."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

import ttnn_emulator
from tests.card.paired import Paired, opened_twice
from tests.compiler.small_models import cnn, transformer
from torch_ttnn import TorchTtnnOption, devices
from torch_ttnn.devices import card
from ttnn_emulator.numerics.mode import numerics


@pytest.fixture(autouse=True)
def another_library(monkeypatch: pytest.MonkeyPatch):
    """The device `ttnn` belongs to a library that accepts only its own objects."""
    monkeypatch.setattr(card, "open_card", opened_twice)
    monkeypatch.setattr("torch_ttnn.devices.target._opened", {})
    with numerics("fast"):
        yield


def depthwise() -> nn.Module:
    return nn.Sequential(nn.Conv2d(32, 32, 3, groups=32, padding=1, bias=False), nn.SiLU(), nn.Conv2d(32, 64, 1)).eval()


MODELS = {
    "cnn": (cnn, (2, 3, 32, 32)),
    "transformer": (transformer, (2, 17, 64)),
    "depthwise": (depthwise, (1, 32, 14, 14)),
    "transposed": (lambda: nn.ConvTranspose2d(8, 16, 2, stride=2).eval(), (1, 8, 6, 6)),
    "linear, tanh, softmax": (lambda: nn.Sequential(nn.Linear(32, 32), nn.Tanh(), nn.Softmax(-1)).eval(), (3, 32)),
}
SETTINGS = ({}, {"precision": "float32"}, {"weights": "bfloat8_b"})


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize("name", MODELS)
@torch.no_grad()
def test_inference(name: str, settings: dict) -> None:
    make, shape = MODELS[name]
    model, x = make(), torch.randn(shape)
    options = TorchTtnnOption(device="ttnn", **settings)
    compiled = torch.compile(model, backend="ttnn", options=options)
    for _ in range(2):
        torch.testing.assert_close(compiled(x), model(x), rtol=0.1, atol=0.1)
    assert isinstance(options.programs[0].target.ttnn, Paired)
    for parameter in model.parameters():
        parameter *= 1.25
    torch.testing.assert_close(compiled(x), model(x), rtol=0.1, atol=0.2)


def test_training() -> None:
    model = nn.Sequential(nn.Linear(16, 32), nn.LayerNorm(32), nn.GELU(), nn.Linear(32, 4))
    own = copy.deepcopy(model)
    compiled = torch.compile(model, backend="ttnn", options={"device": "ttnn", "precision": "float32"})
    x = torch.randn(8, 16)
    for run in (compiled, own):
        run(x).square().mean().backward()
    for got, want in zip(model.parameters(), own.parameters()):
        torch.testing.assert_close(got.grad, want.grad, rtol=0.05, atol=0.05)


@torch.no_grad()
def test_an_object_of_the_emulator_is_detected() -> None:
    """The test itself can fail."""
    target = devices.resolve("ttnn")
    with pytest.raises(AssertionError, match="the emulator's own"):
        target.ttnn.from_torch(torch.ones(2, 2), dtype=ttnn_emulator.bfloat16)


@torch.no_grad()
def test_the_graphs_that_users_see_call_the_library_of_the_device() -> None:
    options = TorchTtnnOption(device="ttnn")
    torch.compile(lambda x: torch.relu(x @ x), backend="ttnn", options=options)(torch.ones(32, 32))
    target = devices.resolve("ttnn")
    called = [node.target for node in options._out_fx_graphs[0].nodes if node.op == "call_function"]
    assert target.ttnn.matmul in called
    assert all(isinstance(each, Paired) for each in called)


@torch.no_grad()
def test_listeners_receive_calls_while_they_are_registered() -> None:
    compiled = torch.compile(nn.Linear(32, 32), backend="ttnn", options={"device": "ttnn"})
    paths: list[str] = []
    with devices.resolve("ttnn").listening(lambda path, args, kwargs, result: paths.append(path)):
        compiled(torch.ones(2, 32))
        assert paths.count("ttnn.linear") == 1
    compiled(torch.ones(2, 32))
    assert paths.count("ttnn.linear") == 1
