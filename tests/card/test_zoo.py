"""Every model of the zoo on the real library with a mock card: it takes every call, in the emulator's order."""

from __future__ import annotations

import gc
from typing import Any

import pytest
import torch

from tests.card.heard import Heard, assert_alike, first_difference
from torch_ttnn import TorchTtnnOption, devices, zoo
from torch_ttnn.card import is_stand_in
from torch_ttnn.compiler.pipeline import VERIFY

pytestmark = pytest.mark.skipif(not is_stand_in(), reason="needs the real ttnn and a mock card: run by `make card`")


class Run:
    """A compiled model on one device, with what its first call told the library."""

    def __init__(self, model: Any, inputs: tuple[tuple, dict], target: devices.Target, device: str) -> None:
        torch._dynamo.reset()
        self.target = target
        self.inputs = inputs
        self.options = TorchTtnnOption(device=device, trace=False)
        self.compiled = torch.compile(model, backend="ttnn", options=self.options)
        self.first = Heard(target)
        self.outputs = self.call(self.first)

    def call(self, heard: Heard) -> Any:
        args, kwargs = self.inputs
        with torch.no_grad(), self.target.listening(heard):
            return self.compiled(*args, **kwargs)

    @property
    def code(self) -> list[str]:
        return [program.code for program in self.options.programs]


@pytest.fixture(autouse=True)
def unverified(monkeypatch: pytest.MonkeyPatch):
    """The stages are verified by other tests; here it would take a third of the time."""
    monkeypatch.setenv(VERIFY, "")
    yield
    gc.collect()


@pytest.mark.parametrize("name", zoo.names())
def test_runs_as_on_the_emulator(name: str, target: devices.Target) -> None:
    entry = zoo.find(name)
    model = entry.build()
    board = f"emulator:{target.typing.board.name}"
    emulated = Run(model, entry.inputs(0), devices.resolve(board), board)
    code, expected, wanted = emulated.code, emulated.first, emulated.outputs
    del emulated
    gc.collect()

    card = Run(model, entry.inputs(0), target, "ttnn")
    assert card.code == code
    assert not first_difference(card.first, expected)
    assert_alike(card.outputs, wanted)

    warm = Heard(target)
    for _ in range(2):
        assert_alike(card.call(warm), wanted)

    weight = next((each for each in model.parameters() if each.dim() > 1), None)
    changed = Heard(target)
    if weight is not None:
        with torch.no_grad():
            weight += 0.5
        card.call(changed)
        assert len(changed.calls) > len(warm.calls) // 2  # what depends on it was prepared again
    for heard in (card.first, warm, changed):
        assert not heard.foreign
