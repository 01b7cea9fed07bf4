"""Exported scripts: complete, exact in their weights, and running under `python -m ttnn_emulator`."""

from __future__ import annotations

import os
import re
import runpy
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from torch import nn
from torch._library.custom_ops import OPDEFS

import ttnn_emulator
from tests.compiler.small_models import cnn, transformer
from torch_ttnn.compiler.errors import TorchTtnnError
from torch_ttnn.compiler.fusion import composites
from torch_ttnn.compiler.ir.metadata import PATH, annotate
from torch_ttnn.explain import capture
from torch_ttnn.export import export_code, export_program

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def inference():
    with torch.no_grad():
        yield


def run_script(path: Path, folder: Path) -> str:
    """Its output, from another folder and with only the emulator importable."""
    done = subprocess.run(
        [sys.executable, "-m", "ttnn_emulator", str(path)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    "model, shape, operations",
    [
        (transformer(1), (1, 33, 64), ("addmm", "layer_norm", "gelu", "attention")),
        (cnn(), (1, 3, 16, 16), ("relu", "max_pool2d", "mean", "addmm")),
    ],
    ids=["transformer", "cnn"],
)
def test_accuracy_prints_the_pcc_of_every_operation(
    model: nn.Module, shape: tuple[int, ...], operations: tuple[str, ...], tmp_path: Path
):
    (path,) = export_code(model, torch.randn(shape), tmp_path / "out", "accuracy")
    assert path == tmp_path / "out" / "script.py"
    output = run_script(path, tmp_path)
    scores = [float(score) for score in re.findall(r"^PCC +(-?[\d.]+)", output, re.MULTILINE)]
    assert len(scores) >= len(operations)
    assert min(scores) > 0.99
    assert float(re.search(r"output 0: PCC ([\d.]+)", output).group(1)) > 0.99  # type: ignore[union-attr]
    assert f"{len(scores)} operations compared" in output
    for operation in operations:
        assert operation in output


@pytest.fixture
def run_here(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture):
    """Runs a script in this process, which is faster."""
    monkeypatch.setitem(sys.modules, "ttnn", ttnn_emulator)

    def run(path: Path) -> str:
        runpy.run_path(str(path), run_name="__main__")
        return capsys.readouterr().out

    return run


def test_accuracy_detects_a_wrong_operation(tmp_path: Path, run_here: Callable[[Path], str]):
    (path,) = export_code(nn.Sequential(nn.Linear(32, 32), nn.ReLU(), nn.Tanh()), torch.randn(8, 32), tmp_path)
    text = path.read_text()
    assert "ttnn.tanh(" in text
    path.write_text(text.replace("ttnn.tanh(", "ttnn.cos("))
    output = run_here(path)
    score = re.search(r"^PCC +(-?[\d.]+) +ttnn\.tanh", output, re.MULTILINE)
    assert score is not None and float(score.group(1)) < 0.5


def test_profiling_times_warm_iterations(tmp_path: Path, run_here: Callable[[Path], str]):
    (path,) = export_code(nn.Linear(32, 32), torch.randn(8, 32), tmp_path, "profiling", iterations=3)
    output = run_here(path)
    assert len(re.findall(r"^iteration \d: [\d.]+ ms", output, re.MULTILINE)) == 3
    assert re.search(r"mean [\d.]+ ms, best [\d.]+ ms", output)
    assert not (tmp_path / "reference.safetensors").exists()


def test_weights_are_stored_as_they_are_uploaded(tmp_path: Path):
    model = nn.Linear(32, 16)
    export_code(model, torch.randn(8, 32), tmp_path)
    stored = load_file(tmp_path / "weights.safetensors")
    assert all(tensor.dtype is torch.bfloat16 for tensor in stored.values())
    assert any(torch.equal(tensor, model.weight.t().bfloat16()) for tensor in stored.values())
    assert any(torch.equal(tensor.flatten(), model.bias.bfloat16()) for tensor in stored.values())


def test_the_script_does_not_import_this_package(tmp_path: Path):
    (path,) = export_code(transformer(1), torch.randn(1, 33, 64), tmp_path)
    imports = re.findall(r"^\s*(?:import|from) (\w+)", path.read_text(), re.MULTILINE)
    assert set(imports) == {"pathlib", "torch", "ttnn", "safetensors"}


def test_a_fused_operation_on_the_host_is_exported(tmp_path: Path, run_here: Callable[[Path], str]):
    def quick_gelu(x: torch.Tensor) -> torch.Tensor:
        return x * torch.sigmoid(1.702 * x)

    ((_, program),) = capture(quick_gelu, (torch.randn(4, 4),), {}).found
    graph = program.graph
    upload = next(node for node in graph.nodes if PATH.get(node) == "ttnn.from_torch")
    with graph.inserting_before(upload):
        node = graph.create_node("call_function", composites.quick_gelu, (upload.args[0],))
        annotate(node, val=upload.args[0].meta["val"], reason="for this test")  # type: ignore[union-attr]
    upload.args = (node,)
    path = export_program(program, [torch.randn(4, 4)], tmp_path, "profiling", 1)
    assert (tmp_path / "composites.py").exists()
    assert "mean " in run_here(path)


class Breaks(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.relu(x)
        torch._dynamo.graph_break()
        return torch.tanh(x)


def test_several_graphs_give_several_scripts(tmp_path: Path):
    first, second = export_code(Breaks(), torch.randn(8, 8), tmp_path)
    assert first == tmp_path / "script.py"
    assert second == tmp_path / "graph_2" / "script.py"
    assert "ttnn.tanh" in second.read_text()
    given = load_file(second.parent / "inputs.safetensors")
    assert min(tensor.min() for tensor in given.values()) >= 0  # the actual results of the first graph


def test_keyword_inputs(tmp_path: Path):
    def scaled(x: torch.Tensor, *, other: torch.Tensor) -> torch.Tensor:
        return x * other

    (path,) = export_code(scaled, {"x": torch.randn(4, 4), "other": torch.randn(4, 4)}, tmp_path)
    assert len(load_file(path.parent / "inputs.safetensors")) == 2


def test_a_model_without_values_cannot_be_exported(tmp_path: Path):
    with torch.device("meta"):
        model = nn.Linear(4, 4)
    with pytest.raises(TorchTtnnError, match="meta device"):
        export_code(model, torch.empty(2, 4, device="meta"), tmp_path)


def test_unknown_modes_are_rejected(tmp_path: Path):
    with pytest.raises(ValueError, match="accuracy"):
        export_code(nn.ReLU(), torch.ones(2), tmp_path, "speed")


def test_training_graphs_are_labelled(tmp_path: Path):
    model, x = nn.Linear(8, 4), torch.randn(2, 8)
    inference = export_code(model, x, tmp_path / "inference")
    assert not inference.is_training and inference.kinds == ["inference"]
    assert "of training" not in inference[0].read_text()
    with torch.enable_grad():
        training = export_code(model, x, tmp_path / "training")
    assert training.is_training and training.kinds == ["forward"]
    assert "This is the forward graph of training" in training[0].read_text()
    assert "(forward)" in repr(training)


def test_training_graphs_of_the_option_are_labelled(tmp_path: Path, run_here: Callable[[Path], str]):
    model = nn.Sequential(nn.Linear(8, 4), nn.Tanh())
    options = {"export_code": "profiling", "export_dir": str(tmp_path), "cache_dir": ""}
    with torch.enable_grad():
        torch.compile(model, backend="ttnn", options=options)(torch.randn(2, 8)).sum().backward()
    heads = [path.read_text() for path in sorted(tmp_path.rglob("script.py"))]
    assert sum("forward graph of training" in each for each in heads) == 1
    assert sum("backward graph of training" in each for each in heads) == 1
    for path in tmp_path.rglob("script.py"):
        assert "mean " in run_here(path)


@pytest.mark.parametrize("mode", ["accuracy", "profiling"])
def test_operators_of_other_libraries_are_imported(mode: str, tmp_path: Path):
    library = tmp_path / "a_library_of_operators.py"
    library.write_text(
        """
import torch

@torch.library.custom_op("a_library::doubled", mutates_args=())
def doubled(x: torch.Tensor) -> torch.Tensor:
    return x * 2

@doubled.register_fake
def _(x):
    return torch.empty_like(x)

library = torch.library.Library("another_library", "DEF")
library.define("halved(Tensor x) -> Tensor")
library.impl("halved", lambda x: x / 2, "CompositeExplicitAutograd")
torch.library.register_fake("another_library::halved", lambda x: torch.empty_like(x))
"""
    )
    program = tmp_path / "program.py"
    program.write_text(
        f"""
import torch, torch_ttnn, a_library_of_operators

def scaled(x):
    return torch.relu(torch.ops.another_library.halved(torch.ops.a_library.doubled(x)))

with torch.no_grad():
    (path,) = torch_ttnn.export_code(scaled, torch.randn(8, 8), {str(tmp_path / "out")!r}, {mode!r})
"""
    )
    path = [str(ROOT), str(tmp_path)]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(path)}
    subprocess.run([sys.executable, str(program)], env=env, cwd=tmp_path, check=True, capture_output=True)
    script = tmp_path / "out" / "script.py"
    assert script.read_text().count("import a_library_of_operators") == 1
    done = subprocess.run(
        [sys.executable, "-m", "ttnn_emulator", str(script)], env=env, cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


@torch.library.custom_op("torch_ttnn_tests::tripled", mutates_args=())
def tripled(x: torch.Tensor) -> torch.Tensor:
    return x * 3


@tripled.register_fake
def _(x: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(x)


def test_operators_that_no_module_defines_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setattr(OPDEFS["torch_ttnn_tests::tripled"]._init_fn, "__module__", "__main__")
    (path,) = export_code(lambda x: torch.relu(tripled(x)), torch.randn(8, 8), tmp_path)
    text = path.read_text()
    assert 'hasattr(torch.ops.torch_ttnn_tests, "tripled")' in text
    assert "calls torch_ttnn_tests::tripled, which no importable module defines" in text


def test_the_reference_has_the_captured_strides(tmp_path: Path):
    class Norm(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm = nn.BatchNorm1d(8)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.norm(x.transpose(1, 2)).transpose(1, 2).reshape(-1, 8) + 1

    (path,) = export_code(Norm().eval(), torch.randn(2, 5, 8), tmp_path)
    assert "output 0: PCC 0.99" in run_script(path, tmp_path)


def test_operators_with_effects(tmp_path: Path):
    (path,) = export_code(lambda x: torch.linalg.inv(x) + 1, torch.eye(8) * 2, tmp_path)
    assert "output 1: PCC 1.0" in run_script(path, tmp_path)  # output 0 is the token that orders effects
