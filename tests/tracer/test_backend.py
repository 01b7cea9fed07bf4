"""`torch_stat` records every graph and does not change the model's results."""

from __future__ import annotations

import gc
import json
import logging
import pathlib
import threading
from typing import Any

import pytest
import torch
from torch import nn
from torch._dynamo.backends.debugging import boxed_nop

import torch_ttnn
from tests.compiler.small_models import cnn, transformer
from tests.tracer.traced import counts, traces
from torch_ttnn.tracer import TracerOption
from torch_ttnn.tracer.backend import recorded
from torch_ttnn.tracer.recording import Recording
from torch_ttnn.tracer.records import NOT_JSONABLE, Record, TensorFact, read


@pytest.fixture(autouse=True)
def fresh() -> None:
    torch._dynamo.reset()


def traced(model: Any, folder: pathlib.Path, **fields: Any) -> Any:
    fields = {"out_folder": folder, "model_name": "m", "lowering": False} | fields
    return torch.compile(model, backend="torch_stat", options=fields)


def names(folder: pathlib.Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


# -- results are unchanged --------------------------------------------------------------------------------------------


class Noisy(nn.Module):
    """Batch norm and dropout in training, a mutated buffer, an output that is a view."""

    def __init__(self) -> None:
        super().__init__()
        self.linear, self.norm, self.drop = nn.Linear(8, 6), nn.BatchNorm1d(6), nn.Dropout(0.3)
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        self.calls += 1
        hidden = self.drop(self.norm(self.linear(x)))
        return hidden, hidden.t()


MODELS = {
    "cnn": (cnn, (1, 3, 16, 16)),
    "transformer": (transformer, (1, 16, 64)),
    "batch_norm": (lambda: nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(inplace=True)), (2, 3, 8, 8)),
    "noisy": (Noisy, (4, 8)),
}


@pytest.mark.parametrize("name", MODELS)
def test_results_gradients_and_buffers_equal_eager_torch_bit_for_bit(name: str, tmp_path: pathlib.Path) -> None:
    build, shape = MODELS[name]
    given = torch.randn(shape)
    seen = []
    for compiled in (False, True):
        torch.manual_seed(1)
        model = build().train()
        x = given.clone().requires_grad_()
        torch.manual_seed(2)
        output = (traced(model, tmp_path) if compiled else model)(x)
        first = output[0] if isinstance(output, tuple) else output
        (first * first).sum().backward()
        seen.append([first.detach(), x.grad, *[each.grad for each in model.parameters()], *model.buffers()])
    assert len(seen[0]) > 2
    assert all(torch.equal(ours, eager) for ours, eager in zip(seen[1], seen[0], strict=True))
    assert names(tmp_path) == ["bw_m_0.json", "fw_m_0.json"]


def test_an_input_that_the_model_changes_is_changed(tmp_path: pathlib.Path) -> None:
    def double(x: torch.Tensor) -> torch.Tensor:
        x.mul_(2)
        return x + 1

    given = torch.ones(3)
    assert torch.equal(traced(double, tmp_path)(given), torch.full((3,), 3.0))
    assert torch.equal(given, torch.full((3,), 2.0))
    assert counts(traces(tmp_path), "fw") == {"aten.mul.Tensor": 1, "aten.add.Tensor": 1}


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode], ids=["no_grad", "inference_mode"])
def test_without_gradients_there_is_no_backward(mode: Any, tmp_path: pathlib.Path) -> None:
    model, x = cnn(), torch.randn(1, 3, 16, 16)
    with mode():
        assert torch.equal(traced(model, tmp_path)(x), model(x))
    assert names(tmp_path) == ["fw_m_0.json"]


def test_a_backward_that_never_runs_is_not_recorded(tmp_path: pathlib.Path) -> None:
    output = traced(cnn(), tmp_path)(torch.randn(1, 3, 16, 16))
    assert names(tmp_path) == ["fw_m_0.json"]
    output.sum().backward()
    assert names(tmp_path) == ["bw_m_0.json", "fw_m_0.json"]


def test_autocast_is_recorded_with_its_casts(tmp_path: pathlib.Path) -> None:
    model, x = nn.Linear(8, 4), torch.randn(2, 8)
    with torch.autocast("cpu", dtype=torch.bfloat16), torch.no_grad():
        assert torch.equal(traced(model, tmp_path)(x), model(x))
    (trace,) = traces(tmp_path)
    product = next(each for each in trace.records if each.op_type == "aten.addmm.default")
    assert {each.dtype for each in product.inputs} == {"bfloat16"}
    assert counts([trace], "fw")["aten._to_copy.default"] == 3


# -- graphs -----------------------------------------------------------------------------------------------------------


class Broken(nn.Module):
    """Two graphs with Python between them."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.first(x)
        torch._dynamo.graph_break()
        return self.second(x).relu()


def test_every_graph_of_a_model_is_recorded_and_named_after_its_class(tmp_path: pathlib.Path) -> None:
    model = traced(Broken(), tmp_path, model_name="")
    model(torch.randn(2, 4)).sum().backward()
    assert names(tmp_path) == ["bw_Broken_0.json", "bw_Broken_1.json", "fw_Broken_0.json", "fw_Broken_1.json"]
    by_number = {(each.phase, each.graph): counts([each], each.phase) for each in traces(tmp_path)}
    assert "aten.relu.default" not in by_number["fw", 0] and "aten.relu.default" in by_number["fw", 1]
    assert "aten.threshold_backward.default" in by_number["bw", 1]


def test_a_recompile_is_another_graph(tmp_path: pathlib.Path) -> None:
    function = traced(lambda x: x.relu(), tmp_path)
    for dtype in (torch.float32, torch.float64):
        function(torch.ones(3, dtype=dtype))
        function(torch.ones(3, dtype=dtype))
    found = traces(tmp_path)
    assert [(each.graph, each.records[0].inputs[0].dtype) for each in found] == [(0, "float32"), (1, "float64")]


def test_functions_are_called_model(tmp_path: pathlib.Path) -> None:
    traced(lambda x: x.relu(), tmp_path, model_name="", out_prefix="a_")(torch.ones(3))
    assert names(tmp_path) == ["fw_a_model_0.json"]


def test_changing_sizes_are_recorded_as_those_of_this_run(tmp_path: pathlib.Path) -> None:
    function = torch.compile(
        lambda x: x.reshape(-1, 2) * 2,
        backend="torch_stat",
        dynamic=True,
        options={"out_folder": tmp_path, "model_name": "m"},
    )
    function(torch.ones(5, 4))
    (trace,) = traces(tmp_path)
    product = next(each for each in trace.records if each.op_type == "aten.mul.Tensor")
    assert product.inputs[0].shape == product.outputs[0].shape == (10, 2)
    assert (product.flops, product.bytes_in, product.lowering) == (20, 80, "device")
    view = next(each for each in trace.records if each.op_type == "aten.view.default")
    assert view.arguments["size"] in ([-1, 2], [10, 2])


def test_sizes_that_depend_on_values_are_those_of_the_first_run(tmp_path: pathlib.Path) -> None:
    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
        function = traced(lambda x: x.nonzero() + 1, tmp_path, lowering=True)
        assert function(torch.tensor([0.0, 3.0, 4.0])).tolist() == [[2], [3]]
    (trace,) = traces(tmp_path)
    found = {each.op_type: each for each in trace.records}
    assert found["aten.nonzero.default"].outputs[0].shape == (2, 1)
    assert found["aten.nonzero.default"].lowering == "host"
    assert found["aten.add.Tensor"].outputs[0].shape == (2, 1)


def test_both_branches_of_a_condition_are_recorded(tmp_path: pathlib.Path) -> None:
    def choose(x: torch.Tensor) -> torch.Tensor:
        return torch.cond(x.sum() > 0, lambda y: y.sin(), lambda y: y.cos(), (x,))

    x = torch.ones(3)
    with torch.no_grad():
        assert torch.equal(traced(choose, tmp_path)(x), x.sin())
    found = counts(traces(tmp_path), "fw")
    assert found["aten.sin.default"] == found["aten.cos.default"] == 1


def test_core_decomposes_operations(tmp_path: pathlib.Path) -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.Hardsigmoid())
    with torch.no_grad():
        traced(model, tmp_path / "none")(torch.ones(2, 4))
        torch._dynamo.reset()
        traced(model, tmp_path / "core", decompositions="core")(torch.ones(2, 4))
    assert "aten.hardsigmoid.default" in counts(traces(tmp_path / "none"), "fw")
    assert "aten.hardsigmoid.default" not in counts(traces(tmp_path / "core"), "fw")


# -- records ----------------------------------------------------------------------------------------------------------


def test_a_record_describes_a_call_completely(tmp_path: pathlib.Path) -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.stem = nn.Conv2d(3, 8, 3, stride=2, padding=1)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.cat([self.stem(x), torch.full((1, 8, 4, 4), float("-inf"))])

    with torch.no_grad():
        traced(Net(), tmp_path, lowering=True)(torch.randn(1, 3, 8, 8))
    (trace,) = traces(tmp_path)
    found = {each.op_type: each for each in trace.records}
    conv = found["aten.convolution.default"]
    assert conv == Record(
        op_type="aten.convolution.default",
        inputs=(
            TensorFact((1, 3, 8, 8), "float32", "input"),
            TensorFact((8, 3, 3, 3), "float32", "weight"),
            TensorFact((8,), "float32", "bias"),
        ),
        outputs=(TensorFact((1, 8, 4, 4), "float32"),),
        arguments={
            "input": NOT_JSONABLE,
            "weight": NOT_JSONABLE,
            "bias": NOT_JSONABLE,
            "stride": [2, 2],
            "padding": [1, 1],
            "dilation": [1, 1],
            "transposed": False,
            "output_padding": [0, 0],
            "groups": 1,
        },
        source=conv.source,
        module="stem",
        flops=2 * 8 * 16 * 27,
        bytes_in=4 * (192 + 216 + 8),
        bytes_out=4 * 128,
        lowering="device",
    )
    assert conv.source.startswith(f"{__file__}:") and "self.stem(x)" in conv.source
    assert found["aten.full.default"].arguments["fill_value"] == "-inf"
    assert [each.name for each in found["aten.cat.default"].inputs] == ["tensors[0]", "tensors[1]"]
    assert set(trace.versions) == {"python", "torch", "torch_ttnn"}


def test_backward_operations_have_the_module_of_their_forward(tmp_path: pathlib.Path) -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.Tanh())
    traced(model, tmp_path)(torch.randn(2, 4)).sum().backward()
    modules = {each.op_type: each.module for trace in traces(tmp_path) if trace.phase == "bw" for each in trace.records}
    assert modules["aten.tanh_backward.default"] == "1"
    assert modules["aten.mm.default"] == "0"


@pytest.mark.parametrize("name", ["../up", "/etc/passwd", "a/b c", "..", "x" * 300, "модель", "a\x00b", "con\n"])
def test_no_name_leaves_the_folder(name: str, tmp_path: pathlib.Path) -> None:
    inside = tmp_path / "deep" / "stat"
    traced(lambda x: x.relu(), inside, model_name=name)(torch.ones(3))
    (path,) = [each for each in tmp_path.rglob("*") if each.is_file()]
    assert path.parent == inside / "raw"
    assert read(path).model == name


def test_a_library_call_prints_nothing(tmp_path: pathlib.Path, capfd: Any, caplog: Any) -> None:
    with caplog.at_level(logging.INFO, "torch_ttnn"):
        traced(lambda x: x.relu(), tmp_path)(torch.ones(3))
    assert capfd.readouterr() == ("", "")
    assert "traced 1 operations of m" in caplog.text


def test_graphs_can_be_drawn(tmp_path: pathlib.Path) -> None:
    traced(lambda x: x.relu(), tmp_path, gen_graphviz=True)(torch.ones(3))
    text = (tmp_path / "graphviz" / "fw_m_0.dot").read_text()
    assert text.startswith("digraph") and "aten.relu.default" in text


# -- ways to use it ---------------------------------------------------------------------------------------------------


def test_the_backend_by_name_by_function_or_with_options(tmp_path: pathlib.Path) -> None:
    backend = torch_ttnn.tracer.backend
    option = TracerOption(model_name="second", out_folder=tmp_path)
    for number, settings in enumerate(
        (
            {"backend": "torch_stat", "options": {"model_name": "first", "out_folder": str(tmp_path)}},
            {"backend": backend, "options": option},
            {"backend": backend(model_name="third", out_folder=tmp_path)},
        )
    ):
        torch.compile(lambda x, n=number: x + n, **settings)(torch.ones(2))
    assert names(tmp_path) == ["fw_first_0.json", "fw_second_0.json", "fw_third_0.json"]


def test_invalid_options_are_rejected() -> None:
    with pytest.raises(TypeError, match="unknown tracer option 'folder'; known are model_name, out_folder"):
        torch_ttnn.tracer.backend(folder="x")
    with pytest.raises(ValueError, match="decompositions='all' is not supported; choose one of 'none', 'core'"):
        TracerOption(decompositions="all")
    with pytest.raises(TypeError, match="model_name must be a string, not 3"):
        TracerOption(model_name=3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="must be a TracerOption, a dict or None, not int"):
        TracerOption.of(3)  # type: ignore[arg-type]
    with pytest.raises(Exception, match="torch_stat does not compile"):
        torch.compile(lambda x: x + 1, backend="torch_stat", options={"trace_modi": True})(torch.ones(2))


# -- state ------------------------------------------------------------------------------------------------------------


def test_threads_and_models_do_not_mix(tmp_path: pathlib.Path) -> None:
    backend = torch_ttnn.tracer.backend(model_name="shared", out_folder=tmp_path)
    problems: list[BaseException] = []

    def run(rounds: int) -> None:
        try:
            for number in range(rounds):
                x = torch.ones(3)
                assert torch.equal(torch.compile(lambda y, n=number: y + n, backend=backend)(x), x + number)
        except BaseException as error:
            problems.append(error)

    threads = [threading.Thread(target=run, args=(4,)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems
    found = traces(tmp_path)
    assert sorted(each.graph for each in found) == list(range(len(found)))
    assert {len(each.records) for each in found} <= {0, 1}


def test_memory_does_not_grow_with_the_number_of_graphs(tmp_path: pathlib.Path) -> None:
    """torch keeps the code of every graph; the tracer keeps no more objects than `aot_eager`."""
    kept = Recording(TracerOption(lowering=False, out_folder=tmp_path), "m")
    records = _live_records()  # objects may be left from an earlier test
    # Twice, because leftovers of other tests may be freed meanwhile.
    without = max(_objects_kept(lambda graph_module: boxed_nop(graph_module, [])) for _ in range(2))
    with_tracer = _objects_kept(lambda graph_module: recorded(graph_module, kept, "fw", ()))
    assert len(traces(tmp_path)) == 200
    assert with_tracer < without + 50  # less than one object for each of the graphs
    assert _live_records() <= records


def _live_records() -> set[int]:
    gc.collect()
    return {id(each) for each in gc.get_objects() if type(each) in (Record, TensorFact)}


def _objects_kept(compiler: Any, graphs: int = 200) -> int:
    """Objects left by the second half of these graphs, which are built, compiled, run and dropped one by one."""
    for number in range(graphs):
        run = compiler(_graph(number))
        assert run([torch.ones(4)])[0].tolist() == [number + 1.0] * 4
        del run
        if number == graphs // 2:
            gc.collect()
            before = len(gc.get_objects())
    gc.collect()
    return len(gc.get_objects()) - before


def _graph(number: int) -> torch.fx.GraphModule:
    """A graph as torch captures it, built by hand for speed: x + number."""
    graph = torch.fx.Graph()
    x = graph.placeholder("x")
    total = graph.call_function(torch.ops.aten.add.Tensor, (x, number))
    graph.output((total,))
    x.meta["val"] = total.meta["val"] = torch.empty(4, device="meta")
    return torch.fx.GraphModule(nn.Module(), graph)


def test_files_are_plain_json(tmp_path: pathlib.Path) -> None:
    traced(lambda x: x.relu(), tmp_path)(torch.ones(3))
    content = json.loads((tmp_path / "raw" / "fw_m_0.json").read_text())
    assert content["records"][0]["op_type"] == "aten.relu.default"
    assert content["records"][0]["inputs"] == [{"name": "self", "shape": [3], "dtype": "float32"}]
