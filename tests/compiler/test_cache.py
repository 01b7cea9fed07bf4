"""Programs kept on disk: found again, never trusted, never in the way."""

from __future__ import annotations

import json
import logging

import pytest
import torch
from torch import nn

import torch_ttnn
from torch_ttnn.compiler.serialise import object_from, target_from


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(32, 64)
        self.norm = nn.LayerNorm(64)
        self.last = nn.Linear(64, 8)

    def forward(self, x):
        y = torch.softmax(self.last(self.norm(torch.relu(self.first(x)))), -1)
        return y, y.double().sum(), torch.arange(3)


def run(place, model=None, **more):
    torch._dynamo.reset()
    torch.manual_seed(0)
    model = model or Net().eval()
    options = torch_ttnn.TorchTtnnOption(cache_dir=str(place), **more)
    with torch.no_grad():
        outputs = torch.compile(model, backend="ttnn", options=options)(torch.ones(4, 32))
    return outputs, options.programs[0]


def test_a_kept_program_is_the_same_program(tmp_path):
    first, made = run(tmp_path)
    second, found = run(tmp_path)
    assert "lower" in made.seconds and "lower" not in found.seconds
    assert found.source == made.source
    for one, other in zip(first, second):
        assert torch.equal(one, other)
    assert [node.meta.get("reason") for node in found.graph.nodes] == [
        node.meta.get("reason") for node in made.graph.nodes
    ]


def test_other_weights_use_the_kept_program(tmp_path):
    run(tmp_path)
    model = Net().eval()
    with torch.no_grad():
        model.last.bias[0] += 5
    outputs, found = run(tmp_path, model)
    assert "lower" not in found.seconds
    torch.testing.assert_close(outputs[0], model(torch.ones(4, 32))[0], rtol=0.05, atol=0.02)


@pytest.mark.parametrize("change", [{"precision": "float32"}, {"device": "emulator:p150"}])
def test_other_options_and_boards_do_not(tmp_path, change):
    run(tmp_path)
    _, made = run(tmp_path, **change)
    assert "lower" in made.seconds


@pytest.mark.parametrize("content", ["", "{", "[]", '{"lowered": {"main": []}}', '{"constants": false, "lowered": 3}'])
def test_a_spoilt_file_is_named_and_compiled_anew(tmp_path, content, caplog):
    run(tmp_path)
    for path in tmp_path.glob("*.json"):
        path.write_text(content)
    with caplog.at_level(logging.WARNING, "torch_ttnn"):
        _, made = run(tmp_path)
    assert "cannot be read" in caplog.text
    assert "lower" in made.seconds


def test_a_hostile_file_runs_nothing(tmp_path):
    run(tmp_path)
    (path,) = tmp_path.glob("*.json")
    document = json.loads(path.read_text())
    for node in document["lowered"]["prepare"]:
        if "target" in node:
            node["target"] = "os:system"
    path.write_text(json.dumps(document))
    _, made = run(tmp_path)
    assert "lower" in made.seconds


@pytest.mark.parametrize(
    "name", ["os:system", "torch:load", "builtins:eval", "torch_ttnn.compiler.cache:Path.unlink.x"]
)
def test_only_functions_on_tensors_are_found_by_name(name):
    with pytest.raises(Exception):  # noqa: B017
        target_from(name, None)


@pytest.mark.parametrize("source", ["ttnn.os.system('x')", "torch.hub.load('x')", "ttnn.__loader__", "(lambda: 1)()"])
def test_only_literals_and_configs_are_read(source):
    with pytest.raises(Exception):  # noqa: B017
        object_from(source)


def test_the_oldest_programs_go(tmp_path, monkeypatch):
    monkeypatch.setattr("torch_ttnn.compiler.cache.MOST_PROGRAMS", 2)
    for width in (8, 16, 24):
        run(tmp_path, nn.Sequential(nn.Linear(32, width)))
    assert len(list(tmp_path.glob("*.json"))) == 2
    _, found = run(tmp_path, nn.Sequential(nn.Linear(32, 24)))
    assert "lower" not in found.seconds


def test_no_folder_no_files(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    _, made = run("")
    assert "cache" not in made.seconds
    assert not list(tmp_path.iterdir())


def test_a_folder_that_cannot_be_written_costs_nothing(tmp_path, caplog):
    (tmp_path / "file").write_text("")
    outputs, _ = run(tmp_path / "file" / "folder")
    assert outputs[0].shape == (4, 8)
    assert "could not be kept" in caplog.text
