"""The simulated memory use of a program, compared with that of a run."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import torch_ttnn
import ttnn_emulator as ttnn
from tests.compiler.against_torch import run
from tests.compiler.small_models import cnn, transformer
from torch_ttnn.compiler.analysis.memory import Memory, fits, measure, spec_bytes, together
from ttnn_emulator.tensors.spec import Spec

GIB = 1 << 30


@pytest.mark.parametrize(
    "model, shape", [(transformer(), (2, 33, 64)), (cnn(), (2, 3, 16, 16))], ids=["transformer", "cnn"]
)
def test_peak_is_that_of_a_run(model: nn.Module, shape: tuple[int, ...]):
    with ttnn.open_device(device_id=0, l1_small_size=32768, trace_region_size=1 << 22) as device:
        options = torch_ttnn.TorchTtnnOption(device=device, trace=False)
        compiled = torch.compile(
            model, backend=lambda graph, inputs: torch_ttnn.backend(graph, inputs, options=options), dynamic=False
        )
        with torch.no_grad():
            compiled(torch.randn(shape))
        dram = ttnn.get_memory_view(device, ttnn.BufferType.DRAM)
        l1 = ttnn.get_memory_view(device, ttnn.BufferType.L1)
        (program,) = options.programs
        memory = measure(program)
    assert memory.dram_peak == dram.peak_bytes_allocated_per_bank * dram.num_banks
    assert memory.l1_peak >= l1.peak_bytes_allocated_per_bank
    assert not memory.problems


def test_values_are_freed_at_their_last_use():
    program = run(lambda x: torch.relu(torch.tanh(torch.relu(x))), torch.randn(64, 64), trace=False).program
    memory = measure(program)
    one = spec_bytes(Spec.of((64, 64), ttnn.bfloat16, ttnn.TILE_LAYOUT))
    in_banks = -(-4 // 12) * 2048 * 12  # 4 tiles take one page in each of 12 banks
    assert one == 4 * 2048
    assert memory.dram_peak == 2 * in_banks
    assert memory.steps[-1].dram == 0
    assert memory.weights == 0


def test_a_trace_keeps_its_inputs_and_results():
    def three(x: torch.Tensor) -> torch.Tensor:
        return torch.relu(torch.tanh(torch.relu(x)))

    plain, traced = (measure(run(three, torch.randn(64, 64), trace=trace).program) for trace in (False, True))
    assert plain.dram_peak == 2 * 2048 * 12  # the operand and the result
    assert traced.dram_peak == 3 * 2048 * 12  # plus the input's buffer
    assert traced.steps[-1].dram == 2 * 2048 * 12


def test_weights_stay():
    weight = torch.randn(64, 64)
    program = run(lambda x, w: x @ w, torch.randn(64, 64), weight, statics=(1,), trace=False).program
    memory = measure(program)
    assert memory.weights == 2048 * 12
    assert memory.steps[-1].dram == memory.weights
    assert memory.dram_peak == 3 * 2048 * 12


def test_a_view_allocates_nothing():
    def both(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        made = torch.relu(x)
        return made, torch.softmax(made.reshape(2, 32, 64), dim=-1)

    program = run(both, torch.randn(64, 64), trace=False).program
    memory = measure(program)
    assert "ttnn.reshape" in program.code
    assert memory.dram_peak == 2 * 2048 * 12  # never three: the reshaped tensor is a view


def test_programs_share_a_device():
    both = together([Memory(weights=100, dram_peak=130, l1_peak=7), Memory(weights=50, dram_peak=150, l1_peak=9)])
    assert (both.weights, both.dram_peak, both.l1_peak) == (150, 250, 9)


@pytest.mark.parametrize(
    "weights, peak, fitting",
    [
        (1 * GIB, 2 * GIB, {"e150", "n150", "n300", "t3000", "p150"}),
        (9 * GIB, 10 * GIB, {"n150", "n300", "t3000", "p150"}),
        (20 * GIB, 21 * GIB, {"n300", "t3000", "p150"}),
        (80 * GIB, 81 * GIB, {"t3000"}),
        (140 * GIB, 141 * GIB, set()),
    ],
)
def test_which_boards_a_model_fits(weights: int, peak: int, fitting: set[str]):
    found = fits(Memory(weights, peak, 0))
    assert {fit.board for fit in found if fit.fits} == fitting
    split = {fit.board for fit in found if fit.split}
    assert split <= {"n300", "t3000"}
    assert bool(split) == (peak > 12 * GIB)


def test_calls_that_do_not_fit_into_l1_are_reported(monkeypatch: pytest.MonkeyPatch):
    program = run(lambda x: torch.softmax(x, -1), torch.randn(32, 64), trace=False).program
    from ttnn_emulator.execution import dispatch

    def refuse(l1_bytes: int, device: object) -> None:
        raise ttnn.OutOfMemory("circular buffers do not fit")

    monkeypatch.setattr(dispatch, "require_l1", refuse)
    memory = measure(program)
    assert any("circular buffers do not fit" in problem for problem in memory.problems)
    assert memory.dram_peak > 0
