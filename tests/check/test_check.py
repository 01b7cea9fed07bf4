"""`torch_ttnn.check`: the real library on a mock card accepts every call, and differences are reported."""

from __future__ import annotations

import pytest
import torch

import ttnn_emulator as ttnn
from tests.compiler.against_torch import run
from tests.compiler.small_models import cnn, transformer
from torch_ttnn.check import DIFFERENT, REJECTED, NoRealTtnn, check, check_programs, real_python
from torch_ttnn.compiler.ir.metadata import PATH, SPEC, annotate
from ttnn_emulator.api.recorded import ttnn_version
from ttnn_emulator.conformance import environment

HINT = f"set {environment.PYTHON_VARIABLE}, or run `make conformance` once"
found = environment.existing_python(ttnn_version())
has_ttnn = pytest.mark.skipif(not found, reason=f"no Python with ttnn {ttnn_version()}: {HINT}")


@has_ttnn
@pytest.mark.parametrize(
    "model, shape", [(transformer(2), (2, 33, 64)), (cnn(), (1, 3, 32, 32))], ids=["transformer", "cnn"]
)
def test_the_real_library_accepts_every_call(model: torch.nn.Module, shape: tuple[int, ...]):
    with torch.no_grad():
        result = check(model, torch.randn(shape))
    assert result.ok, str(result)
    assert 5 < result.asked < result.calls  # identical calls are checked once
    assert all(reason.startswith(("ttnn.from_torch", "ttnn.to_torch")) for reason in result.not_asked)


@has_ttnn
def test_differences_are_reported():
    programs = [run(torch.relu, torch.randn(32, 32)).program, run(torch.tanh, torch.randn(32, 32)).program]
    wrong, rejected = [
        next(node for node in program.graph.nodes if PATH.get(node) in ("ttnn.relu", "ttnn.tanh"))
        for program in programs
    ]
    device = SPEC[wrong].device()
    annotate(wrong, spec=ttnn.spec_tensor((32, 64), ttnn.bfloat16, device=device))
    rejected.update_kwarg("memory_config", 3)
    result = check_programs(programs, names=["first", "second"])
    assert [(each.verdict, each.program) for each in result.findings] == [(DIFFERENT, "first"), (REJECTED, "second")]
    text = str(result)
    assert "1 rejected, 1 typed differently" in text
    assert "ttnn.tanh(t0, memory_config=3)" in text or "memory_config=3" in text
    assert "t0: [32, 32] bfloat16 TILE DRAM" in text
    assert not result.ok


def test_without_the_real_library_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(environment, "existing_python", lambda version: "")
    with pytest.raises(NoRealTtnn, match=f"{environment.PYTHON_VARIABLE}.*pip install ttnn=="):
        real_python()
    with pytest.raises(NoRealTtnn):
        check(torch.nn.ReLU(), torch.ones(2, 2))
