"""Graphs written before and after a stage."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx

from torch_ttnn import devices
from torch_ttnn.compiler.ir.dump import dot, dumped, text
from torch_ttnn.compiler.pipeline import STAGES, Compilation
from torch_ttnn.compiler.stages.capture import decompositions
from torch_ttnn.options import TorchTtnnOption


def through_the_stages(**options: object) -> Compilation:
    mode = FakeTensorMode()
    x = mode.from_tensor(torch.randn(4, 4))
    with mode:
        captured = make_fx(lambda x: (torch.linalg.inv_ex(torch.tanh(x) * x)[0],), decompositions())(x)
    chosen = TorchTtnnOption.of(options)
    compilation = Compilation(captured, (), devices.resolve("emulator"), chosen, mode)
    for number, stage in enumerate(STAGES, start=1):
        with dumped(compilation, number, stage.name, last=number == len(STAGES)):
            stage.run(compilation)
    return compilation


def number_of(stage: str) -> str:
    return f"{[each.name for each in STAGES].index(stage) + 1:02}_{stage}"


def test_the_chosen_stage_is_written_before_and_after(tmp_path: Path):
    through_the_stages(debug=("lower",), debug_dir=tmp_path)
    name = number_of("lower")
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"{name}_after.txt", f"{name}_before.txt"]
    before = (tmp_path / f"{name}_before.txt").read_text()
    after = (tmp_path / f"{name}_after.txt").read_text()
    assert "aten.tanh.default(" in before
    assert "ttnn." not in before
    assert "# main" in after
    assert "# prepare" in after
    assert "ttnn.tanh(" in after
    assert "bfloat16 TILE DRAM" in after
    assert "on the host:" in after


def test_all_stages(tmp_path: Path):
    through_the_stages(debug=("all",), debug_dir=tmp_path)
    assert len(list(tmp_path.glob("*_before.txt"))) == len(STAGES)
    assert (tmp_path / "01_normalise_before.txt").exists()


def test_nothing_is_written_by_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("TORCH_TTNN_DEBUG", raising=False)
    through_the_stages(debug_dir=tmp_path / "none")
    assert not (tmp_path / "none").exists()


def test_the_environment_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TORCH_TTNN_DEBUG", "normalise,lower")
    through_the_stages(debug_dir=tmp_path)
    assert len(list(tmp_path.iterdir())) == 4


def test_a_second_graph_has_its_own_folder(tmp_path: Path):
    options = TorchTtnnOption(debug=("lower",), debug_dir=tmp_path)
    options.compiled += 1
    compilation = through_the_stages()
    compilation.options = options
    with dumped(compilation, 3, "lower"):
        pass
    assert (tmp_path / "graph_2" / "03_lower_after.txt").exists()


def test_every_node_has_a_line():
    lowered = through_the_stages().lowered
    assert lowered is not None
    lines = text(lowered.main).splitlines()
    for node in lowered.main.nodes:
        assert sum(line.strip().startswith(f"%{node.name} = ") for line in lines) == 1


def test_missing_graphviz_is_logged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture):
    monkeypatch.setenv("PATH", str(tmp_path))
    with caplog.at_level(logging.WARNING, "torch_ttnn"):
        through_the_stages(debug=("lower",), debug_dir=tmp_path, gen_graphviz=True)
    assert "graphviz (the program dot) was not found" in caplog.text
    assert not list(tmp_path.glob("*.svg"))


def test_pictures_come_from_graphviz(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    tool = tmp_path / "bin" / "dot"
    tool.parent.mkdir()
    tool.write_text('#!/bin/sh\ncat > "$3"\n')  # writes its input to the output file
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tool.parent}:/bin:/usr/bin")
    compilation = through_the_stages(gen_graphviz=True, debug_dir=tmp_path)
    (drawn,) = tmp_path.glob("*.svg")
    assert drawn.name == f"{number_of(STAGES[-1].name)}_after.svg"
    assert compilation.lowered is not None
    assert drawn.read_text() == dot(compilation.lowered.main)
    assert '"tanh" -> ' in drawn.read_text()
