"""Predicted times of programs: equal to the device's clock, summed, on every board, and at little cost."""

from __future__ import annotations

import time
from typing import Any

import pytest
import torch
from torch import nn

import ttnn_emulator
from tests.compiler.small_models import transformer
from torch_ttnn import TorchTtnnOption
from torch_ttnn.capture.programs import backward_compiled, capture
from torch_ttnn.compiler.analysis.memory import measure
from torch_ttnn.compiler.runtime.program import Program
from torch_ttnn.perf.program_time import Mode, ModelTime, ProgramTime, Unpredicted, program_times, together
from ttnn_emulator.hardware.boards import board_names
from ttnn_emulator.timing.clock import device_time
from ttnn_emulator.timing.dispatch import DISPATCH
from ttnn_emulator.timing.launches import Bound, Launch

X = torch.randn(2, 64, 64)
CONV = nn.Sequential(nn.Conv2d(3, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(8192, 10))


def programs_of(model: Any, *inputs: torch.Tensor, **settings: Any) -> list[Program]:
    with torch.no_grad():
        return [program for _, program in capture(model, inputs, options=TorchTtnnOption(**settings)).found]


def time_of(model: Any, *inputs: torch.Tensor, board: str = "n150", **settings: Any) -> ModelTime:
    times = program_times(programs_of(model, *inputs, **settings), [board])
    found = together([each[board] for each in times], board)
    assert isinstance(found, ModelTime)
    return found


def chain(x: torch.Tensor) -> torch.Tensor:
    return torch.relu(torch.exp(x @ x.transpose(-1, -2)))


def test_it_is_what_the_clock_of_a_device_says() -> None:
    with ttnn_emulator.open_device(device_id=0) as device:
        model = torch.compile(chain, backend="ttnn", options={"device": device, "trace": False, "cache_dir": ""})
        with torch.no_grad():
            model(X)
            before = device_time(device)
            model(X)
            after = device_time(device)
    found = time_of(chain, X)
    assert found.kernels_ns == pytest.approx(after.kernels_ns - before.kernels_ns)
    assert found.programs == after.programs - before.programs
    assert found.programs >= 3


def test_asking_is_no_work_of_the_device() -> None:
    with ttnn_emulator.open_device(device_id=0) as device:
        programs = programs_of(chain, X, device=device)
        before = device_time(device)
        program_times(programs)
        assert device_time(device) == before


def test_sums_are_those_of_the_calls() -> None:
    found = time_of(transformer(1), X)
    (part,) = found.parts
    launches = [launch for call in part.calls for launch in call.launches]
    gap = DISPATCH[ttnn_emulator.Arch.WORMHOLE_B0].gap_ns
    assert found.programs == len(launches)
    assert found.kernels_ns == pytest.approx(sum(launch.kernel_ns for launch in launches))
    assert found.gaps_ns == pytest.approx(gap * len(launches))
    assert found.device_ns == found.kernels_ns + found.gaps_ns
    by_operation = found.by_operation()
    assert sum(ns for _, ns in by_operation.values()) == pytest.approx(found.kernels_ns)
    assert sum(count for count, _ in by_operation.values()) == len(part.calls)
    assert list(by_operation.values()) == sorted(by_operation.values(), key=lambda each: -each[1])


def test_every_board_has_a_time() -> None:
    programs = programs_of(CONV.eval(), torch.randn(1, 3, 32, 32))
    (times,) = program_times(programs)
    assert list(times) == board_names()
    found = {board: together([each], board) for board, each in times.items()}
    assert all(isinstance(each, ModelTime) and each.kernels_ns > 1000 for each in found.values())
    assert all(each.board == board for board, each in found.items())
    assert found["n150"].kernels_ns == found["n300"].kernels_ns == found["t3000"].kernels_ns
    assert found["p150"].kernels_ns < found["n150"].kernels_ns


def test_the_program_of_a_board_has_the_same_time_elsewhere() -> None:
    """Compiled for another board, these models become the same calls."""
    here, there = (
        time_of(transformer(1), X, board="p150"),
        time_of(transformer(1), X, board="p150", device="emulator:p150"),
    )
    assert here.kernels_ns == pytest.approx(there.kernels_ns)


def test_modes_are_ordered() -> None:
    found = time_of(transformer(1), X)
    as_is, traced, two = (found.end_to_end(mode) for mode in Mode)
    assert as_is.latency_ns > traced.latency_ns
    assert traced.latency_ns > found.device_ns
    assert traced.latency_ns == traced.interval_ns == two.latency_ns
    assert two.interval_ns < traced.interval_ns
    assert found.transfers_ns > 0


def test_weights_are_not_part_of_a_call() -> None:
    small, large = time_of(nn.Linear(64, 64), X), time_of(nn.Linear(64, 6400), X)
    assert small.parts[0].uploads == large.parts[0].uploads
    assert large.parts[0].downloads[0].pages == 100 * small.parts[0].downloads[0].pages


def test_programs_add_up() -> None:
    class Breaks(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            x = torch.relu(x)
            torch._dynamo.graph_break()
            return torch.tanh(x)

    found, relu, tanh = time_of(Breaks(), X), time_of(torch.relu, X), time_of(torch.tanh, X)
    assert len(found.parts) == 2
    assert found.device_ns == pytest.approx(relu.device_ns + tanh.device_ns)
    assert found.end_to_end(Mode.TRACED).latency_ns == pytest.approx(
        relu.end_to_end(Mode.TRACED).latency_ns + tanh.end_to_end(Mode.TRACED).latency_ns
    )


def test_training_has_the_backward_program() -> None:
    with backward_compiled():
        names = [name for name, _ in capture(nn.Linear(64, 64), (X,)).found]
    assert names == ["forward", "backward"]


def host_op(x: torch.Tensor) -> torch.Tensor:
    return torch.relu(torch.linalg.inv_ex(torch.relu(x))[0])


def test_host_operations_have_no_time_and_prevent_a_trace() -> None:
    found = time_of(host_op, torch.eye(64))
    assert found.host_ops == 1
    assert not found.can_trace
    assert found.end_to_end(Mode.TRACED) == found.end_to_end(Mode.AS_IS)
    assert time_of(chain, X).can_trace


def test_a_program_without_device_operations() -> None:
    found = time_of(lambda x: torch.linalg.inv_ex(x)[0], torch.eye(32))
    assert found.programs == 0
    assert found.kernels_ns == found.error == found.uncalibrated_share == 0
    assert found.by_operation() == {}


def test_a_fault_of_the_timing_model_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def price(record: Any, board: Any) -> tuple[Launch, ...]:
        raise KeyError("a grid")

    monkeypatch.setattr("torch_ttnn.perf.program_time.launches_of_record", price)
    (times,) = program_times(programs_of(torch.relu, X), ["n150"])
    assert times["n150"] == Unpredicted("n150", "no time for ttnn.relu: KeyError: 'a grid'")


def test_the_error_is_the_mean_by_time(monkeypatch: pytest.MonkeyPatch) -> None:
    def error_of(family: str) -> float:
        return {"small": 0.1, "large": 0.4}[family]

    monkeypatch.setattr("ttnn_emulator.timing.launches.error_of", error_of)
    monkeypatch.setattr("ttnn_emulator.timing.launches.is_calibrated", lambda family: family == "small")
    launches = {"ttnn.matmul": ("small", 1000.0), "ttnn.exp": ("large", 3000.0)}

    def price(record: Any, board: Any) -> tuple[Launch, ...]:
        family, ns = launches.get(record.operation, ("small", 0.0))
        return (Launch("Program", family, 64, ns, Bound.DRAM),)

    monkeypatch.setattr("torch_ttnn.perf.program_time.launches_of_record", price)
    found = time_of(lambda x: torch.exp(x @ x), X)
    assert found.error == pytest.approx((0.1 * 1000 + 0.4 * 3000) / 4000)
    assert found.uncalibrated_share == pytest.approx(0.75)


def test_a_board_that_refuses_a_call_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(program: Program, device: Any) -> Any:
        raise ttnn_emulator.EmulatorError("no such core\nmore")

    monkeypatch.setattr("torch_ttnn.perf.program_time.device_calls", refuses)
    (times,) = program_times(programs_of(chain, X), ["p150"])
    assert times["p150"] == Unpredicted("p150", "no such core")
    assert together([times["p150"]], "p150") == Unpredicted("p150", "no such core")


def test_models_without_values_take_the_same_time() -> None:
    with torch.device("meta"):
        model = transformer(1)
    assert time_of(model, X.to("meta")) == time_of(transformer(1), X)


def test_it_costs_little_beside_typing() -> None:
    """Typing is what `lower` does, and the memory walk does it once more; the fastest of five counts."""
    (program,) = programs_of(transformer(8), X)
    program_times([program])  # imports the families

    def fastest(run: Any) -> float:
        found = []
        for _ in range(5):
            start = time.process_time()
            run()
            found.append(time.process_time() - start)
        return min(found)

    (parts,) = (time for time in program_times([program], ["n150"])[0].values())
    assert isinstance(parts, ProgramTime)
    pricing, walk = fastest(lambda: program_times([program], ["n150"])), fastest(lambda: measure(program))
    assert pricing < 0.3 * program.seconds["lower"]
    assert pricing < 2 * walk
