"""`explain`, `check` and `export_code` accept a model and its arguments in the same ways."""

from __future__ import annotations

import collections
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import torch_ttnn
from torch_ttnn.capture.model_call import ModelCall

X, Y = torch.randn(4, 8), torch.randn(4, 8)


class Weighted(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(8, 8)

    def forward(self, x: torch.Tensor, other: torch.Tensor | None = None, scale: float = 1.0) -> torch.Tensor:
        x = self.linear(x)
        return x * scale if other is None else x * scale + torch.tanh(other)


@pytest.fixture(autouse=True)
def inference():
    with torch.no_grad():
        yield


@pytest.fixture(params=["explain", "check", "export_code"])
def programs_of(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """The programs as text, by each of the three, without the real library."""
    if request.param == "explain":
        return lambda *args, **kwargs: [program.code for program in torch_ttnn.explain(*args, **kwargs).programs]
    if request.param == "export_code":
        return lambda *args, **kwargs: [
            path.read_text() for path in torch_ttnn.export_code(*args, folder=tmp_path, mode="profiling", **kwargs)
        ]
    from torch_ttnn.check import checker as module

    found: list[str] = []
    monkeypatch.setattr(module, "real_python", lambda install=False: "python")

    def kept(programs: Any, **_: Any) -> list[str]:
        found[:] = [program.code for program in programs]
        return found

    monkeypatch.setattr(module, "check_programs", kept)
    return torch_ttnn.check


WAYS: dict[str, tuple[tuple, dict[str, Any]]] = {
    "as in a call": ((X, Y), {"scale": 2.0}),
    "by name": ((X,), {"other": Y, "scale": 2.0}),
    "a tuple": (((X, Y, 2.0),), {}),
    "as torch.export": (((X,), {"other": Y, "scale": 2.0}), {}),
    "a mapping": (({"x": X, "other": Y, "scale": 2.0},), {}),
    "a custom mapping": ((collections.UserDict({"x": X, "other": Y, "scale": 2.0}),), {}),
    "args and kwargs": ((), {"args": (X,), "kwargs": {"other": Y, "scale": 2.0}}),
    "some of each": ((X,), {"kwargs": {"other": Y}, "scale": 2.0}),
}


@pytest.mark.parametrize("way", WAYS)
def test_every_way_to_pass_arguments(way: str, programs_of: Callable[..., Any]):
    positional, named = WAYS[way]
    (code,) = programs_of(Weighted(), *positional, **named)
    assert "ttnn.tanh" in code
    assert "ttnn.linear" in code


def test_a_list_is_an_argument(programs_of: Callable[..., Any]):
    (code,) = programs_of(lambda items: torch.tanh(items[0]) + items[1], [X, Y])
    assert "ttnn.tanh" in code


def test_options_and_device(programs_of: Callable[..., Any]):
    (code,) = programs_of(nn.ReLU(), X, options={"precision": "float32"}, device="emulator:p150")
    assert "float32" in code


def test_the_device_argument():
    assert torch_ttnn.explain(nn.ReLU(), X, device="emulator:p150").report.target == "emulated p150"
    options = torch_ttnn.TorchTtnnOption(device="emulator:n300")
    assert torch_ttnn.explain(nn.ReLU(), X, options=options).report.target == "emulated n300"
    assert torch_ttnn.explain(nn.ReLU(), X, options=options, device="emulator:p150").report.target == "emulated p150"


def test_an_exported_program_has_its_inputs(programs_of: Callable[..., Any]):
    exported = torch.export.export(Weighted(), (X,), {"other": Y, "scale": 2.0})
    (code,) = programs_of(exported)
    assert "ttnn.tanh" in code
    assert "ttnn.linear" in code


def test_an_exported_program_with_other_inputs(programs_of: Callable[..., Any]):
    batch = torch.export.Dim("batch")
    exported = torch.export.export(Weighted(), (X, Y), dynamic_shapes={"x": {0: batch}, "other": {0: batch}})
    (code,) = programs_of(exported, torch.randn(64, 8), torch.randn(64, 8))
    assert "ttnn.tanh" in code


def test_graph_breaks(programs_of: Callable[..., Any]):
    def broken(x: torch.Tensor) -> torch.Tensor:
        x = torch.relu(x)
        torch._dynamo.graph_break()
        return torch.tanh(x)

    first, second = programs_of(broken, X)
    assert "ttnn.relu" in first
    assert "ttnn.tanh" in second


def test_a_compiled_model_is_accepted(programs_of: Callable[..., Any]):
    (code,) = programs_of(torch.compile(Weighted(), backend="ttnn"), X, Y)
    assert "ttnn.tanh" in code


def test_contradictions_are_rejected():
    with pytest.raises(TypeError, match="either in order or as args="):
        torch_ttnn.explain(Weighted(), X, args=(X,))
    with pytest.raises(TypeError, match="'other' of the model is passed twice"):
        torch_ttnn.explain(Weighted(), X, kwargs={"other": Y}, other=Y)
    with pytest.raises(TypeError, match="args must be a tuple"):
        torch_ttnn.explain(Weighted(), args=X)
    with pytest.raises(TypeError, match="needs a folder"):
        torch_ttnn.export_code(Weighted(), X)
    with pytest.raises(TypeError, match="only the mode may follow the folder"):
        torch_ttnn.export_code(Weighted(), X, "out", Y)


def test_the_three_have_the_same_parameters():
    shared = set(inspect.signature(torch_ttnn.explain).parameters)
    for function in (torch_ttnn.check, torch_ttnn.export_code):
        assert shared <= set(inspect.signature(function).parameters)


def test_a_named_tuple_is_an_argument():
    Pair = collections.namedtuple("Pair", "first second")
    call = ModelCall.of(abs, (Pair(1, 2),))
    assert call.args == (Pair(1, 2),)
