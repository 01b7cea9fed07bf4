"""`ttnn.tracer`: torch and ttnn calls as graphs, code and diagrams, in the slow runtime mode."""

from __future__ import annotations

import networkx
import pytest
import torch

import ttnn_emulator as ttnn

TRACER = ttnn.tracer


@pytest.fixture(autouse=True)
def slow_mode():
    with ttnn.manage_config("enable_fast_runtime_mode", False):
        yield


@pytest.fixture
def device():
    with ttnn.open_device(device_id=0) as opened:
        yield opened


def model() -> torch.nn.Module:
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2)).eval()


def test_fast_mode_does_not_trace():
    with ttnn.manage_config("enable_fast_runtime_mode", True), pytest.raises(ValueError):
        TRACER.enable_tracing()


def test_ttnn_calls_are_nodes(device):
    with TRACER.trace():
        x = torch.randint(0, 100, (4, 64))
        x = ttnn.reshape(ttnn.from_torch(x), (2, 4, 32))
        assert isinstance(x, TRACER.TracedTTNNTensor)
        y = ttnn.to_torch(x)
    assert len(TRACER.get_graph(y)) == len(TRACER.get_graph(x)) == 4
    assert not TRACER.is_tracing_enabled()


def test_results_are_those_without_a_trace(device):
    x, net = torch.rand(3, 4), model()
    expected = net(x)
    with TRACER.trace():
        found = net(x)
    assert torch.equal(found, expected)
    assert type(torch.rand(2)) is torch.Tensor


def evaluate(graph, known):
    """Compute the graph from its nodes."""
    for node in networkx.topological_sort(graph):
        edges = sorted(graph.in_edges(node, data=True), key=lambda edge: edge[2]["sink_input_index"])
        inputs = [known[source] for source, *_ in edges]
        operation = graph.nodes[node]["operation"]
        if node in known:
            continue
        if isinstance(operation, TRACER.TorchParameter):
            known[node] = operation.parameter
            continue
        assert isinstance(operation, TRACER.TorchFunction)
        args, kwargs = [], {}
        for name, value in operation.arg_name_value_pairs:
            value = inputs[value.index] if isinstance(value, TRACER.InputTensorIndex) else value
            if isinstance(name, TRACER.PositionalArgumentName):
                args.append(value)
            else:
                kwargs[name] = value
        known[node] = operation.function(*args, **kwargs)
    return known


def test_flat_graphs_can_be_computed():
    net = model()
    with TRACER.trace():
        x = torch.rand(3, 4)
        y = net(x) * 2
    flat = TRACER.get_graph(y, flatten=True)
    assert not any(isinstance(facts["operation"], TRACER.TorchModule) for _, facts in flat.nodes(data=True))
    assert torch.allclose(evaluate(flat, {x.node: x})[y.node], y)


def test_modules_have_their_own_graphs():
    net = model()
    with TRACER.trace():
        y = net(torch.rand(3, 4))
    operation = TRACER.get_graph(y).nodes[y.node]["operation"]
    assert isinstance(operation, TRACER.TorchModule)
    assert [str(facts["operation"]) for _, facts in operation.graph.nodes(data=True)][1:] == [
        "torch.nn.modules.linear.Linear\n0",
        "torch.nn.modules.activation.ReLU\n1",
        "torch.nn.modules.linear.Linear\n2",
    ]


def test_parameters_created_during_tracing_are_leaves():
    with TRACER.trace():
        weight = torch.nn.Linear(4, 8).weight
    assert isinstance(weight, torch.nn.Parameter) and weight.is_leaf and weight.grad_fn is None


def test_graphs_become_code(device):
    net = model()
    with TRACER.trace():
        y = ttnn.add(ttnn.from_torch(net(torch.rand(3, 4)), layout=ttnn.TILE_LAYOUT, device=device), 1.5)
    code = TRACER.codegen(y)
    assert "def Sequential(config, input, *, parameters):" in code
    assert "variable_1 = Sequential(config, input=variable_0, parameters=parameters)" in code
    assert "variable_3 = ttnn.add(variable_2, 1.5)" in code


@pytest.mark.parametrize("options", [{}, {"show_modules": False}, {"max_depth": 1, "verbose": True}])
def test_graphs_are_drawn(device, options, monkeypatch):
    pytest.importorskip("graphviz", reason="diagrams need the optional package graphviz")
    monkeypatch.setattr("shutil.which", lambda _: "/usr/bin/dot")
    net = model()
    with TRACER.trace():
        y = ttnn.from_torch(net(torch.rand(3, 4)), layout=ttnn.TILE_LAYOUT, device=device)
    source = TRACER.visualize(y, **options).source
    assert "ttnn.from_torch" in source and "Layout: TILE" in source
    assert ("torch.nn.functional.relu" in source) is ("max_depth" not in options)
