"""Warm calls of small programs take the short way, and nothing else about them is another."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

import torch_ttnn
from torch_ttnn.compiler.runtime.direct_replay import Shortcut
from ttnn_emulator.execution.listeners import Listener, listening

WARM = 4  # calls after which the way is known


class Small(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(16, 8)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        found = torch.relu(self.layer(x))
        return found.view(2, 2, 8), found.argmax(-1)


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether calls went the short way, call by call."""
    seen: list[bool] = []
    honest = Shortcut.__call__

    def call(self: Shortcut, *given: Any) -> Any:
        found = honest(self, *given)
        seen.append(found is not None)
        return found

    monkeypatch.setattr(Shortcut, "__call__", call)
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


def test_warm_calls_take_the_short_way(short: list[bool]) -> None:
    model = Small()
    call = compiled(model)
    for seed in range(WARM + 3):
        check(call, model, torch.randn(4, 16, generator=torch.Generator().manual_seed(seed)))
    assert short[-3:] == [True] * 3
    assert short.count(True) < len(short), "the first replays show what changes"


def test_the_bits_are_those_of_the_long_way(short: list[bool], monkeypatch: pytest.MonkeyPatch) -> None:
    model = Small()
    call = compiled(model)
    x = torch.randn(4, 16)
    with torch.no_grad():
        for _ in range(WARM):
            call(x)
        ours = call(x + 1)
        assert short[-1]
        monkeypatch.setattr(Shortcut, "__call__", lambda *_: None)
        theirs = call(x + 1)
    assert all(torch.equal(one, other) for one, other in zip(ours, theirs))


def test_changed_weights_are_seen(short: list[bool]) -> None:
    model = Small()
    call = compiled(model)
    x = torch.randn(4, 16)
    for _ in range(WARM):
        check(call, model, x)
    assert short[-1]
    with torch.no_grad():
        model.layer.weight.mul_(-2)
    for _ in range(WARM):
        check(call, model, x)
    assert short[-1], "and the short way is found again"


def test_who_listens_hears_every_operation(short: list[bool]) -> None:
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
    assert not short[-1]
    assert {"ttnn.from_torch", "ttnn.copy_host_to_device_tensor", "ttnn.to_torch"} <= set(names.heard)


def test_inputs_in_other_memory(short: list[bool]) -> None:
    """Transposed, expanded, and a part of something larger."""
    model = Small()
    call = compiled(model)
    for _ in range(WARM):
        check(call, model, torch.randn(4, 16))
    for x in (torch.randn(8, 16)[::2], torch.randn(4, 32)[:, :16].clone(), torch.randn(4, 16)):
        check(call, model, x)


def test_an_error_of_a_call_leaves_the_next_one_well(short: list[bool], monkeypatch: pytest.MonkeyPatch) -> None:
    model = Small()
    call = compiled(model)
    x = torch.randn(4, 16)
    for _ in range(WARM):
        check(call, model, x)
    from ttnn_emulator.execution.direct_replay import DirectReplay

    with monkeypatch.context() as patch:
        patch.setattr(DirectReplay, "__call__", lambda *_: 1 // 0)
        with pytest.raises(ZeroDivisionError), torch.no_grad():
            call(x)
    check(call, model, x)
    assert short[-1]
