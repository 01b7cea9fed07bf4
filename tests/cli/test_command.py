"""`torch-ttnn` end to end."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys

import pytest
import torch
from safetensors.torch import save_file

from tests.zoo.installed import need
from torch_ttnn import zoo
from torch_ttnn.cli import main
from torch_ttnn.cli.command import COMMANDS, parse
from torch_ttnn.tracer import records

TOOLS = pathlib.Path(__file__).parents[2] / "tools"

MODELS = """
import os
import torch
from torch import nn

class Tiny(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 4)

    def forward(self, x):
        return torch.relu(self.layer(x))

def tiny(): return Tiny(), torch.randn(2, 8)
def crashes(): os.abort()

class Chooses(Tiny):
    def forward(self, x):
        return torch.relu(self.layer(x)) if x.sum() > -1e9 else x

def chooses(): return Chooses(), torch.randn(2, 8)
"""


@pytest.fixture
def workplace(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """A working folder with models of the user."""
    (tmp_path / "mine.py").write_text(MODELS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "mine", raising=False)
    monkeypatch.setenv("COLUMNS", "120")
    return tmp_path


def call(*arguments: str) -> int:
    return main([*arguments, "--quiet"])


def row(folder: pathlib.Path, name: str) -> dict:
    return json.loads((folder / f"{name}.json").read_text())


def test_stat_records_operations_and_a_row(workplace: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call("stat", "mine:tiny", "--backward") == 0
    shown = capsys.readouterr().out
    assert "mine.tiny" in shown
    assert "1 of 1 models" in shown
    assert "torch-ttnn report" in shown
    forward, backward = (
        records.read(workplace / "stat" / "raw" / f"{phase}_mine.tiny_0.json") for phase in ("fw", "bw")
    )
    result = row(workplace / "stat" / "runs", "mine.tiny")["result"]
    assert result["forward_ops"] == len(forward.records) > 0
    assert result["backward_ops"] == len(backward.records) > 0
    assert result["parameters"] == 36
    assert result["inputs"] == {"0": [2, 8]}
    assert result["values"] == "fake"


def test_a_crash_costs_one_row(workplace: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call("stat", "mine:crashes", "mine:tiny") == 1
    shown = capsys.readouterr().out
    assert "mine.crashes (crash): its process was killed by SIGABRT" in shown
    assert "1 of 2 models, 1 failed" in shown
    assert (workplace / "stat" / "raw" / "fw_mine.tiny_0.json").exists()


def test_a_model_that_reads_values_runs_on_real_tensors(workplace: pathlib.Path) -> None:
    assert call("stat", "mine:chooses") == 0
    result = row(workplace / "stat" / "runs", "mine.chooses")["result"]
    assert result["values"] == "real"
    assert result["why_real"]
    assert call("stat", "mine:chooses", "--fake") == 1


def test_finished_models_are_kept_and_stale_traces_removed(workplace: pathlib.Path) -> None:
    raw = workplace / "stat" / "raw"
    assert call("stat", "mine:tiny") == 0
    written = (raw / "fw_mine.tiny_0.json").stat().st_mtime_ns
    stale, foreign = raw / "fw_mine.tiny_1.json", raw / "fw_mine.tiny_2_0.json"
    stale.write_text("{}")
    foreign.write_text("{}")
    assert call("stat", "mine:tiny") == 0
    assert (raw / "fw_mine.tiny_0.json").stat().st_mtime_ns == written, "it was done already"
    assert call("stat", "mine:tiny", "--again") == 0
    assert (raw / "fw_mine.tiny_0.json").stat().st_mtime_ns > written
    assert not stale.exists()
    assert foreign.exists(), "of another model"
    (raw / "fw_mine.tiny_0.json").unlink()
    assert call("stat", "mine:tiny") == 0
    assert (raw / "fw_mine.tiny_0.json").exists(), "a row without its traces is not done"


def test_profile_and_graphviz(workplace: pathlib.Path) -> None:
    assert call("stat", "mine:tiny", "--profile", "--graphviz") == 0
    profile = json.loads((workplace / "stat" / "profile" / "mine.tiny.json").read_text())
    names = {event.get("name") for event in profile["traceEvents"]}
    assert "aten::relu" in names or "aten::addmm" in names
    assert all({"ph", "pid"} <= set(event) for event in profile["traceEvents"])
    assert (workplace / "stat" / "graphviz" / "fw_mine.tiny_0.dot").read_text().startswith("digraph")
    assert row(workplace / "stat" / "runs", "mine.tiny")["result"]["values"] == "real"


def test_stat_then_report(workplace: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    need("matplotlib", "pyarrow")
    assert call("stat", "mine:tiny", "-o", "here") == 0
    assert "torch-ttnn report here" in capsys.readouterr().out
    assert call("report", "here") == 0
    assert "index.html" in capsys.readouterr().out
    assert "mine.tiny" in (workplace / "here" / "fw_node_count.csv").read_text()
    assert call("report", "here", "-o", "there", "--compare", "here", "--no-pictures") == 0
    assert (workplace / "there" / "compare.html").exists()


def test_run_on_the_device(workplace: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call("run", "mine:tiny") == 0
    result = row(workplace / "stat" / "runs_torch_ttnn", "mine.tiny")["result"]
    assert result["pcc"] > 0.999
    assert result["device_ops"] > 0
    assert result["host_ops"] == []
    assert "PCC" in capsys.readouterr().out


def test_run_backward_on_the_device_compares_gradients(workplace: pathlib.Path) -> None:
    assert call("run", "mine:tiny", "--backward") == 0
    result = row(workplace / "stat" / "runs_torch_ttnn", "mine.tiny")["result"]
    assert result["gradient_pcc"] > 0.99
    assert result["worst_gradient"].startswith("layer.")


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_run_with_torch(backend: str, workplace: pathlib.Path) -> None:
    assert call("run", "mine:tiny", "--backend", backend, "--profile") == 0
    assert row(workplace / "stat" / f"runs_{backend}", "mine.tiny")["result"]["warm_seconds"] > 0
    assert (workplace / "stat" / "profile" / "mine.tiny.json").exists()


def test_run_with_torch_stat_is_stat(workplace: pathlib.Path) -> None:
    assert call("run", "mine:tiny", "--backend", "torch_stat", "-o", "here") == 0
    assert (workplace / "here" / "raw" / "fw_mine.tiny_0.json").exists()


def test_weights_from_a_file(workplace: pathlib.Path) -> None:
    save_file({"layer.weight": torch.ones(4, 8), "layer.bias": torch.zeros(4)}, workplace / "w.safetensors")
    assert call("stat", "mine:tiny", "--weights", "w.safetensors") == 0
    save_file({"layer.weight": torch.ones(4, 8)}, workplace / "wrong.safetensors")
    assert call("stat", "mine:tiny", "--weights", "wrong.safetensors") == 1
    assert "do not fit Tiny" in row(workplace / "stat" / "runs", "mine.tiny")["reason"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["stat"], "name a model"),
        (["stat", "resnet-18"], "Did you mean zoo:resnet18"),
        (["stat", "mine:nothing"], "there is no model at 'mine:nothing'"),
        (["stat", "mine:tiny", "--weights", "nowhere"], "there is no file or folder nowhere"),
        (["stat", "mine:tiny", "--task", "detection"], "--task requires --all torchvision"),
        (["stat", "mnist-cnn", "--input-shape", "1,2"], "mnist-cnn takes Picture"),
        (["stat", "mine:tiny", "--timeout", "0"], "lets no job run"),
        (["report", "nowhere"], "nowhere"),
        (["run", "zoo:nothing*"], "matches 'zoo:nothing*'"),
    ],
)
def test_usage_errors_are_explained(
    arguments: list[str], message: str, workplace: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    need("torchvision", "timm", "transformers")
    assert main(arguments) == 2
    assert message in capsys.readouterr().err
    assert not (workplace / "stat").exists()


@pytest.mark.parametrize(
    "arguments",
    [[], ["fly"], ["stat", "a", "--batch", "0"], ["stat", "a", "--input-shape", "3,x"], ["run", "a", "-j", "-1"]],
)
def test_parse_errors_exit_with_two(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2


def test_every_command_has_examples(capsys: pytest.CaptureFixture[str]) -> None:
    for name in (module.__name__.rpartition(".")[2] for module in COMMANDS):
        with pytest.raises(SystemExit) as ended:
            main([name, "--help"])
        assert ended.value.code == 0
        assert f"torch-ttnn {name}" in capsys.readouterr().out.partition("examples")[2]


def examples() -> list[str]:
    """The examples of all help texts."""
    from torch_ttnn.cli import command

    texts = [command.EPILOG, *(module.EPILOG for module in command.COMMANDS)]
    lines = [line.strip() for text in texts for line in text.splitlines()]
    return [line.partition("   ")[0].removeprefix("torch-ttnn ") for line in lines if line.startswith("torch-ttnn ")]


@pytest.mark.parametrize("example", examples())
def test_the_examples_can_be_parsed(example: str) -> None:
    import shlex

    assert parse(shlex.split(example.partition(" >")[0])).command in example


def test_models_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models"]) == 0
    assert capsys.readouterr().out.split() == [f"zoo:{name}" for name in zoo.names()]
    need("torchvision")
    assert main(["models", "torchvision", "--task", "detection"]) == 0
    assert "torchvision:ssd300_vgg16" in capsys.readouterr().out


def test_explain(workplace: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "mine:tiny", "--html", "tiny.html"]) == 0
    assert "device operations" in capsys.readouterr().out
    assert (workplace / "tiny.html").exists()


STAT = ["--backend", "torch_stat"]


@pytest.mark.parametrize(
    ("tool", "arguments", "written"),
    [
        ("stat_torchvision.py", ["mine:tiny"], "stat/raw/fw_mine.tiny_0.json"),
        ("run_torchvision.py", [*STAT, "--model", "squeezenet1_1", "--backward"], "stat/raw/bw_squeezenet1_1_0.json"),
        ("run_transformers.py", [*STAT, "--model", "MPNetModel", "--layers", "1"], "stat/raw/fw_MPNetModel_0.json"),
    ],
)
@pytest.mark.slow
def test_tools_run_from_a_checkout(tool: str, arguments: list[str], written: str, workplace: pathlib.Path) -> None:
    need("torchvision", "transformers")
    environment = {**os.environ, "PYTHONPATH": str(TOOLS.parent)}
    for name, more in ((tool, arguments), ("generate_report.py", [])):
        called = [sys.executable, str(TOOLS / name), *more]
        done = subprocess.run(called, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    assert (workplace / written).exists()
    assert (workplace / "stat" / "index.html").exists()


def test_tables_fit_a_narrow_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    from rich.console import Console

    from torch_ttnn.cli import run, stat, tables
    from torch_ttnn.jobs import Outcome, Status

    traced = {
        "graphs": 12, "forward_ops": 12345, "backward_ops": 12345, "distinct_ops": 123, "flops": 10**13,
        "values": "fake",
    }  # fmt: skip
    ran = {
        "ops_before": 1234, "device_ops": 1234, "host_ops": [], "uploads": 12, "downloads": 12, "pcc": 0.99,
        "first_seconds": 123.4, "warm_seconds": 0.05, "eager_seconds": 12.0,
    }  # fmt: skip
    for columns, result in ((stat.COLUMNS, traced), (run.ON_DEVICE, ran)):
        good = Outcome("a_model_of_a_name_so_long_that_it_must_be_folded", Status.OK, result, "", "", 123.4, 2**34)
        tables.show(Console(width=80), [good, Outcome("[bad]", Status.CRASH, reason="no [x]")], columns)
        shown = capsys.readouterr().out
        assert "a_model_of" in shown
        assert all(text(good) in shown for text in columns.values()), "nothing is cut"
        assert "…" not in shown
        assert "[bad] (crash): no [x]" in shown
        assert "1 of 2 models, 1 failed" in shown
