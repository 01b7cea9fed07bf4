"""Warm calls of small programs are replayed directly, with the same results."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

import torch_ttnn
from torch_ttnn.compiler.runtime.direct_replay import DirectReplay
from ttnn_emulator.execution.direct_replay import DirectReplay as EmulatorReplay
from ttnn_emulator.execution.listeners import Listener, listening

WARM = 4  # calls after which direct replay is possible


class Small(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(16, 8)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        found = torch.relu(self.layer(x))
        return found.view(2, 2, 8), found.argmax(-1)


@pytest.fixture
def direct(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """For each call, whether it was replayed directly."""
    seen: list[bool] = []
    original = DirectReplay.__call__

    def call(self: DirectReplay, *given: Any) -> Any:
        found = original(self, *given)
        seen.append(found is not None)
        return found

    monkeypatch.setattr(DirectReplay, "__call__", call)
    return seen


def compiled(model: nn.Module) -> Any:
    torch.manual_seed(0)
    return torch_ttnn.compile(model.eval(), options={"cache_dir": ""})


def check(call: Any, model: nn.Module, x: torch.Tensor) -> None:
    with torch.no_grad():
        got, want = call(x), model(x)
    assert torch.allclose(got[0], want[0], rtol=0.02, atol=0.02)
    assert got[0].shape == want[0].shape
    assert got[1].dtype is torch.int64
    picked = want[0].reshape(-1, 8).gather(1, got[1].reshape(-1, 1))
    assert torch.allclose(picked.flatten(), want[0].reshape(-1, 8).amax(-1), rtol=0.02, atol=0.02)


def test_warm_calls_are_replayed_directly(direct: list[bool]) -> None:
    model = Small()
    call = compiled(model)
    for seed in range(WARM + 3):
        check(call, model, torch.randn(4, 16, generator=torch.Generator().manual_seed(seed)))
    assert direct[-3:] == [True] * 3
    assert direct.count(True) < len(direct), "the first replays record what changes"


def test_direct_and_ordinary_replay_agree(direct: list[bool], monkeypatch: pytest.MonkeyPatch) -> None:
    model = Small()
    call = compiled(model)
    x = torch.randn(4, 16)
    with torch.no_grad():
        for _ in range(WARM):
            call(x)
        ours = call(x + 1)
        assert direct[-1]
        monkeypatch.setattr(DirectReplay, "__call__", lambda *_: None)
        theirs = call(x + 1)
    assert all(torch.equal(one, other) for one, other in zip(ours, theirs))


def test_changed_weights_are_seen(direct: list[bool]) -> None:
    model = Small()
    call = compiled(model)
    x = torch.randn(4, 16)
    for _ in range(WARM):
        check(call, model, x)
    assert direct[-1]
    with torch.no_grad():
        model.layer.weight.mul_(-2)
    for _ in range(WARM):
        check(call, model, x)
    assert direct[-1], "direct replay resumes"


def test_listeners_receive_every_operation(direct: list[bool]) -> None:
    class Names(Listener):
        def __init__(self) -> None:
            self.heard: list[str] = []

        def started(self, event: Any) -> None:
            self.heard.append(event.name)

    model = Small()
    call = compiled(model)
    x = torch.randn(4, 16)
    for _ in range(WARM):
        check(call, model, x)
    with listening(Names()) as names:
        check(call, model, x)
    assert not direct[-1]
    assert {"ttnn.from_torch", "ttnn.copy_host_to_device_tensor", "ttnn.to_torch"} <= set(names.heard)


def test_inputs_in_other_memory(direct: list[bool]) -> None:
    """Transposed, expanded, and sliced inputs."""
    model = Small()
    call = compiled(model)
    for _ in range(WARM):
        check(call, model, torch.randn(4, 16))
    for x in (torch.randn(8, 16)[::2], torch.randn(4, 32)[:, :16].clone(), torch.randn(4, 16)):
        check(call, model, x)


def test_a_failed_call_does_not_affect_the_next(direct: list[bool], monkeypatch: pytest.MonkeyPatch) -> None:
    model = Small()
    call = compiled(model)
    x = torch.randn(4, 16)
    for _ in range(WARM):
        check(call, model, x)
    with monkeypatch.context() as patch:
        patch.setattr(EmulatorReplay, "__call__", lambda *_: 1 // 0)
        with pytest.raises(ZeroDivisionError), torch.no_grad():
            call(x)
    check(call, model, x)
    assert direct[-1]
