"""Every model of the zoo on the real library with a mock card, which hears the calls of the emulator's program."""

from __future__ import annotations

import gc
from typing import Any

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from tests.card.heard import Heard, assert_alike, first_difference, told_by
from tests.card.paired import open_paired
from torch_ttnn import TorchTtnnOption, card, devices, zoo
from torch_ttnn.compiler.pipeline import VERIFY, Compilation, compile_graph
from torch_ttnn.compiler.program import Program

pytestmark = pytest.mark.skipif(not card.is_stand_in(), reason="needs a mock card: run by `make card`")


# Their Python reads values between graphs, and those of a mock card are zeros: every call is made on the emulator too,
# and its values decide.
DECIDED_BY_VALUES = ("vilt-vqa",)


@pytest.fixture
def chosen(name: str, target: devices.Target, monkeypatch: pytest.MonkeyPatch) -> devices.Target:
    if name not in DECIDED_BY_VALUES or not card.is_mock():
        return target
    monkeypatch.setattr(card, "open_card", open_paired)
    monkeypatch.setattr(devices, "_opened", {})
    return devices.resolve("ttnn")


@pytest.fixture(autouse=True)
def unverified(monkeypatch: pytest.MonkeyPatch):
    """The stages are verified by other tests; here it would take a third of the time."""
    monkeypatch.setenv(VERIFY, "")
    yield
    gc.collect()


def for_the_emulator(program: Program) -> Program:
    """The program that the same graph becomes on an emulated device."""
    board = devices.resolve(f"emulator:{program.target.typing.board.name}")
    options = TorchTtnnOption(trace=False)
    statics = list(program.lowered.statics)
    vals = [node.meta.get("val") for node in program.captured.graph.nodes]
    mode = next((val.fake_mode for val in vals if hasattr(val, "fake_mode")), None) or FakeTensorMode()
    return compile_graph(Compilation(program.captured, statics, board, options, mode))


@pytest.mark.parametrize("name", zoo.names())
@torch.no_grad()
def test_runs_as_on_the_emulator(name: str, chosen: devices.Target) -> None:
    entry = zoo.find(name)
    model = entry.build()
    args, kwargs = entry.inputs(0)
    wanted = model(*args, **kwargs)
    options = TorchTtnnOption(device="ttnn")
    compiled = torch.compile(model, backend="ttnn", options=options)

    def call() -> tuple[Heard, Any]:
        heard = Heard(chosen)
        with chosen.listening(heard):
            return heard, compiled(*args, **kwargs)

    first, outputs = call()
    assert_alike(outputs, wanted)
    emulated = [for_the_emulator(program) for program in options.programs]
    assert [program.code for program in options.programs] == [program.code for program in emulated]
    assert not first_difference(first.calls, [each for program in emulated for each in told_by(program, first=True)])

    for _ in range(2):
        warm, again = call()
        assert_alike(again, wanted)
        assert not first_difference(warm.calls, [each for program in emulated for each in told_by(program)])

    weight = next((each for each in model.parameters() if each.dim() > 1), None)
    changed = warm
    if weight is not None:
        weight += 0.5
        changed, _ = call()
    for heard in (first, warm, changed):
        assert not heard.foreign
