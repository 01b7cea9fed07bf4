"""Options that write files, log or warn."""

from __future__ import annotations

import copy
import json
import logging
import subprocess
import sys
import warnings

import pytest
import torch
from torch import nn

import torch_ttnn
from tests.patience import HANG_SECONDS
from torch_ttnn import TorchTtnnOption
from torch_ttnn.compiler.ir.metadata import OUTPUT_VALS


@pytest.fixture(autouse=True)
def fresh_dynamo():
    torch._dynamo.reset()


def run(**options):
    model = nn.Sequential(nn.Linear(32, 64), nn.GELU(), nn.Linear(64, 8)).eval()
    with torch.no_grad():
        return torch_ttnn.compile(model, options=options)(torch.randn(4, 32))


def test_debug_writes_graphs_before_and_after(tmp_path):
    run(debug=("lower",), debug_dir=tmp_path)
    names = sorted(path.name for path in tmp_path.iterdir())
    assert any("lower_before" in name for name in names)
    assert any("lower_after" in name for name in names)
    assert not any("simplify" in name for name in names)


def test_metrics_path_writes_a_report_per_graph(tmp_path):
    run(metrics_path=tmp_path)
    report = json.loads((tmp_path / "graph_1.json").read_text())
    parts = {"programs", "memory", "predicted", "missed", "compile_seconds", "numerics", "versions"}
    assert set(report) == parts
    assert report["programs"][0]["host_ops"] == []


def test_export_code_writes_a_script_that_runs(tmp_path):
    run(export_code="profiling", export_dir=tmp_path, total_num_iterations=2)
    (script,) = tmp_path.rglob("*.py")
    done = subprocess.run(
        [sys.executable, "-m", "ttnn_emulator", str(script)], capture_output=True, text=True, timeout=HANG_SECONDS
    )
    assert done.returncode == 0, done.stderr


def test_verbose_logs_and_prints_nothing(caplog, capsys):
    run(verbose=True)
    assert "operations became" in caplog.text
    assert capsys.readouterr().out == ""


def test_silence_by_default(caplog, capsys):
    with caplog.at_level(logging.WARNING):
        run()
    assert not [record for record in caplog.records if record.name.startswith("torch_ttnn")]
    assert capsys.readouterr().out == ""


def test_bypass_compile_runs_with_torch():
    torch.manual_seed(0)
    model = nn.Linear(8, 8)
    x = torch.randn(2, 8)
    assert torch.equal(torch_ttnn.compile(model, options={"bypass_compile": True})(x), model(x))


@pytest.mark.parametrize(
    "wrong", [{"precision": "int4"}, {"weights": "bfloat2"}, {"max_programs": 0}, {"accept": "rounding"}]
)
def test_invalid_values_list_the_valid_ones(wrong):
    with pytest.raises(ValueError, match=r"choose one of|positive"):
        torch_ttnn.TorchTtnnOption(**wrong)


def test_the_backend_is_registered_by_name():
    code = "import torch; torch.compile(lambda x: x + 1, backend='ttnn')(torch.ones(2))"
    probe = "import importlib.metadata as m; print([e.value for e in m.entry_points(group='torch_dynamo_backends')])"
    found = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True).stdout
    if "torch_ttnn:backend" not in found:
        pytest.skip("torch_ttnn is not installed, only on the path")
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).returncode == 0


def test_debug_accepts_names_or_true():
    assert TorchTtnnOption(debug=True).debug == ("all",)
    assert TorchTtnnOption(debug=False).debug == ()
    assert TorchTtnnOption(debug="lower").debug == ("lower",)
    with pytest.raises(TypeError, match="debug takes a name or a sequence of names, not 3"):
        TorchTtnnOption(debug=3)
    with pytest.raises(TypeError, match="accept takes"):
        TorchTtnnOption(accept=None)


def _sorted_complex(x):
    return torch.view_as_real(torch.fft.fft(x + 1))


@torch.no_grad()
def test_one_warning_per_compile_for_host_operations():
    torch._dynamo.reset()
    compiled = torch.compile(_sorted_complex, backend="ttnn")
    with pytest.warns(torch_ttnn.HostOperationWarning) as caught:
        compiled(torch.ones(8))
    assert len(caught) == 1
    assert "aten._fft" in str(caught[0].message) and "torch_ttnn.explain" in str(caught[0].message)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compiled(torch.ones(8))
        torch._dynamo.reset()
        torch.compile(_sorted_complex, backend="ttnn", options={"warn": False})(torch.ones(8))
        torch.compile(lambda x: x + 1, backend="ttnn")(torch.ones(8))


@torch.no_grad()
def test_a_program_without_device_operations_warns():
    with pytest.warns(torch_ttnn.HostOperationWarning, match="nothing of graph 1 runs on the device"):
        torch.compile(lambda x: x.t().clone(), backend="ttnn")(torch.ones(8, 8))


@torch.no_grad()
@pytest.mark.parametrize("given", [{"cache_dir": ""}, TorchTtnnOption(cache_dir="")], ids=["dict", "object"])
def test_a_compiled_model_can_be_copied(given):
    x = torch.randn(4, 8)
    model = nn.Sequential(nn.Linear(8, 8), nn.ReLU()).eval()
    compiled = torch.compile(model, backend="ttnn", options=given)
    compiled(x)
    copied = copy.deepcopy(compiled).double()
    torch.testing.assert_close(copied(x.double()), copy.deepcopy(model).double()(x.double()))
    assert next(model.parameters()).dtype is torch.float32
    assert not copy.deepcopy(TorchTtnnOption.of(given)).programs


def test_every_node_of_a_published_graph_has_a_val():
    torch._dynamo.reset()
    model = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.BatchNorm2d(8), torch.nn.ReLU(), torch.nn.Flatten())
    options = TorchTtnnOption()

    def function(x):
        made = model(x)
        return made.topk(2).values, torch.linalg.qr(made[:, :2]).R, made.argmax(-1), made.split(100, 1)[0] * 2

    torch.compile(function, backend="ttnn", options=options)(torch.randn(2, 3, 8, 8))
    for graph in options._out_fx_graphs:
        for node in graph.nodes:
            val = node.meta.get("val", OUTPUT_VALS.get(node))
            vals = val if isinstance(val, tuple | list) else [val]
            assert vals and all(isinstance(each, torch.Tensor) for each in vals), node.format_node()
