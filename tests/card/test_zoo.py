"""Every model of the zoo on the real library with a mock card, which receives the calls of the emulator's program."""

from __future__ import annotations

import copy
import gc
from typing import Any

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from tests.card.paired import open_paired
from tests.card.received_calls import ReceivedCalls, assert_same, calls_of, first_difference, have_same_layout
from torch_ttnn import TorchTtnnOption, devices, zoo
from torch_ttnn.compiler.pipeline import VERIFY, Compilation, compile_graph
from torch_ttnn.compiler.runtime.program import Program
from torch_ttnn.devices import card
from torch_ttnn.zoo.trained.packages import PackageMissing

pytestmark = pytest.mark.skipif(not card.is_stand_in(), reason="needs a mock card: run by `make card`")


# Their Python reads values between graphs, which are zeros on a mock card: every call also runs on the emulator, whose
# values are used.
READ_VALUES = ("vilt-vqa", "fasterrcnn_mobilenet_v3_large_320_fpn", "retinanet_resnet50_fpn")


@pytest.fixture
def chosen(name: str, target: devices.Target, monkeypatch: pytest.MonkeyPatch) -> devices.Target:
    if name not in READ_VALUES or not card.is_mock():
        return target
    monkeypatch.setattr(card, "open_card", open_paired)
    monkeypatch.setattr("torch_ttnn.devices.target._opened", {})
    return devices.resolve("ttnn")


@pytest.fixture(autouse=True)
def unverified(monkeypatch: pytest.MonkeyPatch):
    """Other tests verify the stages; here it would take a third of the time."""
    monkeypatch.setenv(VERIFY, "")
    yield
    gc.collect()


def for_the_emulator(program: Program) -> Program:
    """The program of the same graph on an emulated device."""
    board = devices.resolve(f"emulator:{program.target.typing.board.name}")
    options = TorchTtnnOption(trace=False)
    statics = list(program.lowered.statics)
    vals = [node.meta.get("val") for node in program.captured.graph.nodes]
    mode = next((val.fake_mode for val in vals if hasattr(val, "fake_mode")), None) or FakeTensorMode()
    return compile_graph(Compilation(program.captured, statics, board, options, mode))


@pytest.mark.parametrize("name", zoo.names())
@torch.no_grad()
def test_runs_as_on_the_emulator(name: str, chosen: devices.Target, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = zoo.find(name)
    try:
        model = entry.build()
    except PackageMissing as error:
        pytest.skip(str(error))
    args, kwargs = entry.inputs(0)
    wanted = model(*args, **kwargs)
    options = TorchTtnnOption(device="ttnn")
    compiled = torch.compile(model, backend="ttnn", options=options)

    run = Program._run
    order: list[Program] = []  # programs in execution order; a graph may run many times per call, or with torch
    monkeypatch.setattr(Program, "_run", lambda program, inputs: order.append(program) or run(program, inputs))

    def call() -> tuple[ReceivedCalls, Any]:
        order.clear()
        received = ReceivedCalls(chosen)
        with chosen.listening(received):
            return received, compiled(*args, **kwargs)

    first, outputs = call()
    if not have_same_layout(outputs, wanted):  # the capture itself may choose other strides than eager torch
        wanted = torch.compile(copy.deepcopy(model), backend="aot_eager")(*args, **kwargs)
    assert_same(outputs, wanted)
    emulated: dict[Program, Program] = {}

    def counterpart(program: Program) -> Program:
        if program not in emulated:
            emulated[program] = for_the_emulator(program)
            assert program.code == emulated[program].code
        return emulated[program]

    new = [program not in order[:number] for number, program in enumerate(order)]
    expected = [each for program, is_new in zip(order, new) for each in calls_of(counterpart(program), first=is_new)]
    assert not first_difference(first.calls, expected)

    for _ in range(2):
        seen = set(emulated)
        warm, again = call()
        assert_same(again, wanted)
        new = [program not in seen and program not in order[:number] for number, program in enumerate(order)]
        expected = [
            each for program, is_new in zip(order, new) for each in calls_of(counterpart(program), first=is_new)
        ]
        assert not first_difference(warm.calls, expected)

    weight = next((each for each in model.parameters() if each.dim() > 1), None)
    changed = warm
    if weight is not None:
        weight += 0.5
        changed, _ = call()
    for received in (first, warm, changed):
        assert not received.foreign
