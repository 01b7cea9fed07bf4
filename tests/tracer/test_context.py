"""`tracing` records everything that runs in a block, without the compiler."""

from __future__ import annotations

import pathlib

import pytest
import torch
from torch import nn

from tests.compiler.small_models import cnn
from tests.tracer.traced import SAMPLES, counts, traces
from torch_ttnn import tracer
from torch_ttnn.tracer import TracerOption, context


def test_forward_and_backward_are_distinguished(tmp_path: pathlib.Path) -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
    with tracer.tracing("net", out_folder=tmp_path):
        model(torch.randn(2, 4)).sum().backward()
    found = traces(tmp_path)
    assert [(each.phase, each.graph, each.model) for each in found] == [("bw", 0, "net"), ("fw", 0, "net")]
    assert counts(found, "fw")["aten.addmm.default"] == 1 and counts(found, "fw")["aten.mm.default"] == 0
    assert counts(found, "bw")["aten.mm.default"] == 1


def test_results_are_those_of_eager_torch(tmp_path: pathlib.Path) -> None:
    model, x = cnn(), torch.randn(1, 3, 16, 16)
    expected = model(x)
    with tracer.tracing(out_folder=tmp_path, lowering=False):
        found = model(x)
    assert torch.equal(found, expected) and found.requires_grad


def test_every_step_of_a_loop_is_a_graph(tmp_path: pathlib.Path) -> None:
    model = nn.Linear(4, 4)
    with tracer.tracing("net", out_folder=tmp_path, lowering=False):
        for _ in range(3):
            model(torch.randn(2, 4)).sum().backward()
    assert sorted((each.phase, each.graph) for each in traces(tmp_path)) == [
        (phase, number) for phase in ("bw", "fw") for number in range(3)
    ]


def test_memory_is_bounded(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(context, "MOST_RECORDS", 10)
    x = torch.ones(3)
    with tracer.tracing("long", out_folder=tmp_path, lowering=False):
        for _ in range(35):
            x = x + 1
    assert [len(each.records) for each in traces(tmp_path)] == [10, 10, 10, 5]


def test_source_and_module_are_those_of_the_model(tmp_path: pathlib.Path) -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.block = nn.Sequential(nn.Linear(4, 4))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.block(x).relu()

    with tracer.tracing(out_folder=tmp_path, lowering=False), torch.no_grad():
        Net()(torch.ones(2, 4))
    found = {each.op_type: each for each in traces(tmp_path)[-1].records}
    assert found["aten.addmm.default"].module == "block.0"
    assert found["aten.addmm.default"].source.startswith(f"{__file__}:")
    assert "self.block(x).relu()" in found["aten.relu.default"].source
    assert found["aten.relu.default"].module == ""


def test_sources_in_other_libraries_are_recorded(tmp_path: pathlib.Path) -> None:
    model, x = SAMPLES["vision_transformer"].build(), SAMPLES["vision_transformer"].feed()
    with tracer.tracing(out_folder=tmp_path, lowering=False), torch.no_grad():
        model(x)
    sources = [each.source for each in traces(tmp_path)[0].records]
    assert all("torchvision" in each for each in sources)


def test_a_failing_model_leaves_its_records(tmp_path: pathlib.Path) -> None:
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"), tracer.tracing(out_folder=tmp_path):
        torch.ones(2, 3).relu() @ torch.ones(4, 4)
    (trace,) = traces(tmp_path)
    assert "aten.relu.default" in counts([trace], "fw")


def test_subclasses_of_tensors_pass_through(tmp_path: pathlib.Path) -> None:
    class Tagged(torch.Tensor):
        pass

    with tracer.tracing(out_folder=tmp_path):
        result = torch.ones(3).as_subclass(Tagged) * 2
    assert type(result) is Tagged
    assert counts(traces(tmp_path), "fw")["aten.mul.Tensor"] == 1


def test_sparse_tensors_are_recorded(tmp_path: pathlib.Path) -> None:
    with tracer.tracing(out_folder=tmp_path):
        result = torch.sparse.mm(torch.eye(3).to_sparse(), torch.ones(3, 2))
    assert torch.equal(result, torch.ones(3, 2))
    assert any("sparse" in each.op_type or "mm" in each.op_type for each in traces(tmp_path)[0].records)


def test_an_empty_block_writes_nothing(tmp_path: pathlib.Path) -> None:
    with tracer.tracing(out_folder=tmp_path):
        pass
    assert not list(tmp_path.iterdir())


def test_options_that_need_a_graph_are_rejected() -> None:
    with pytest.raises(ValueError, match="records what runs"), tracer.tracing(decompositions="core"):
        pass
    both = tracer.tracing(options=TracerOption(), facts=False)
    with pytest.raises(TypeError, match="either `options` or its fields"), both:
        pass
    with pytest.raises(TypeError, match="unknown tracer option 'nosuch'"), tracer.tracing(nosuch=1):
        pass
