"""Recurrent modules on the device: values, strides, gradients; Dynamo traces them for our backend only."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.utils._pytree as pytree
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

import torch_ttnn
from tests.compiler.against_torch import assert_like
from torch_ttnn.compiler.frontend.dynamo_rules import wants_recurrent_modules
from torch_ttnn.compiler.frontend.recurrent_operators import LIBRARY
from torch_ttnn.compiler.ir.metadata import PATH, REASON

MODULES: dict[str, Callable[[], nn.Module]] = {
    "lstm": lambda: nn.LSTM(12, 40),
    "lstm of whole tiles, batch first": lambda: nn.LSTM(32, 64, batch_first=True),
    "lstm without bias": lambda: nn.LSTM(12, 40, bias=False),
    "lstm with projections": lambda: nn.LSTM(12, 40, num_layers=2, proj_size=24),
    "lstm with projections, both ways, no bias": lambda: nn.LSTM(12, 33, proj_size=7, bidirectional=True, bias=False),
    "lstm of two layers both ways": lambda: nn.LSTM(12, 20, num_layers=2, bidirectional=True, dropout=0.5),
    "gru": lambda: nn.GRU(12, 40),
    "gru of three layers, batch first": lambda: nn.GRU(12, 32, num_layers=3, batch_first=True),
    "gru without bias, both ways": lambda: nn.GRU(12, 40, bias=False, bidirectional=True),
    "rnn": lambda: nn.RNN(12, 40),
    "rnn with relu, both ways": lambda: nn.RNN(12, 40, nonlinearity="relu", bidirectional=True, batch_first=True),
    "rnn of two layers without bias": lambda: nn.RNN(12, 40, num_layers=2, bias=False),
    "lstm cell": lambda: nn.LSTMCell(12, 40),
    "gru cell": lambda: nn.GRUCell(12, 40),
    "rnn cell": lambda: nn.RNNCell(12, 40, nonlinearity="relu"),
}
FLOAT32 = (3e-3, 3e-3)  # the matrix unit uses 11 bits of a float32, and errors of steps accumulate
LAYERS = [name for name in MODULES if "cell" not in name]


@pytest.fixture(autouse=True)
def _fresh() -> None:
    torch._dynamo.reset()
    torch.manual_seed(0)


def made(name: str) -> nn.Module:
    return MODULES[name]().eval()


def compiled(module: Any, **options: Any) -> tuple[Callable[..., Any], torch_ttnn.TorchTtnnOption]:
    chosen = torch_ttnn.TorchTtnnOption(cache_dir="", **options)
    return torch.compile(module, backend="ttnn", options=chosen), chosen


def host_ops(options: torch_ttnn.TorchTtnnOption) -> list[str]:
    assert options.programs, "nothing was compiled"
    graphs = [program.graph for program in options.programs]
    return [f"{node.target}: {REASON[node]}" for graph in graphs for node in graph.nodes if REASON.on(node)]


def device_calls(options: torch_ttnn.TorchTtnnOption) -> int:
    moves = ("ttnn.from_torch", "ttnn.to_torch")
    nodes = [node for program in options.programs for node in program.graph.nodes]
    return len([node for node in nodes if PATH.get(node) and PATH[node] not in moves])


def assert_same(got: Any, want: Any, relative: float = 0.02, absolute: float = 0.01) -> None:
    leaves = list(zip(pytree.tree_leaves(got), pytree.tree_leaves(want), strict=True))
    for one, other in leaves:
        assert_like(one.detach(), other.detach(), relative, absolute)
        assert one.stride() == other.stride()


def sequence(module: nn.Module, batch: int = 3, steps: int = 6) -> torch.Tensor:
    if isinstance(module, nn.RNNCellBase):
        return torch.randn(batch, module.input_size)
    shape = (batch, steps) if module.batch_first else (steps, batch)
    return torch.randn(*shape, module.input_size)


def states(module: nn.RNNBase, batch: int = 3) -> Any:
    count = module.num_layers * (2 if module.bidirectional else 1)
    h = torch.randn(count, batch, module.proj_size or module.hidden_size)
    return (h, torch.randn(count, batch, module.hidden_size)) if isinstance(module, nn.LSTM) else h


@pytest.mark.parametrize("name", MODULES)
def test_values_and_strides_are_torchs(name: str) -> None:
    module = made(name)
    run, options = compiled(module)
    x = sequence(module)
    with torch.no_grad():
        for _ in range(3):  # run, captured, replayed
            assert_same(run(x), module(x))
    assert not host_ops(options)


@pytest.mark.parametrize("name", LAYERS)
def test_initial_states_are_read(name: str) -> None:
    module = made(name)
    run, options = compiled(module)
    x = sequence(module)
    with torch.no_grad():
        for _ in range(2):
            given = states(module)
            assert_same(run(x, given), module(x, given))
    assert not host_ops(options)


@pytest.mark.parametrize("name", ["lstm with projections", "gru without bias, both ways", "rnn"])
def test_float32(name: str) -> None:
    module = made(name)
    run, options = compiled(module, precision="float32")
    x = sequence(module, steps=20)
    with torch.no_grad():
        assert_same(run(x), module(x), *FLOAT32)
    assert not host_ops(options)


@pytest.mark.parametrize("name", MODULES)
def test_gradients(name: str) -> None:
    """Including those of the initial states; relu in float32, where no sum near zero changes its sign."""
    module = made(name)
    reference = copy.deepcopy(module)
    run, options = compiled(module, precision="float32")
    x = sequence(module)
    start = [states(module)] if isinstance(module, nn.RNNBase) else []
    ours, theirs = [[x.clone(), *pytree.tree_map(torch.clone, start)] for _ in range(2)]
    for function, given in ((run, ours), (reference, theirs)):
        for leaf in pytree.tree_leaves(given):
            leaf.requires_grad_()
        sum([leaf.sin().mean() for leaf in pytree.tree_leaves(function(*given))]).backward()
    grads = [leaf.grad for leaf in pytree.tree_leaves(ours)] + [each.grad for each in module.parameters()]
    wanted = [leaf.grad for leaf in pytree.tree_leaves(theirs)] + [each.grad for each in reference.parameters()]
    assert_same(grads, wanted, *FLOAT32)
    assert not host_ops(options)
    assert len(options.programs) == 2


@pytest.mark.parametrize("name", ["lstm", "gru", "rnn"])
def test_training_in_bfloat16(name: str) -> None:
    module = made(name).train()
    reference = copy.deepcopy(module)
    run, options = compiled(module)
    x = sequence(module, steps=30)
    for function in (run, reference):
        function(x)[0].square().mean().backward()
    assert_same([each.grad for each in module.parameters()], [each.grad for each in reference.parameters()], 0.03, 0.02)
    assert not host_ops(options)


def test_gradients_of_last_states_only() -> None:
    module = nn.LSTM(12, 40)
    reference = copy.deepcopy(module)
    run, _ = compiled(module, precision="float32")
    x = torch.randn(5, 2, 12)
    for function in (run, reference):
        function(x)[1][1].square().sum().backward()
    assert_same([each.grad for each in module.parameters()], [each.grad for each in reference.parameters()], *FLOAT32)


def test_sequences_of_changing_length() -> None:
    module = nn.LSTM(12, 40, batch_first=True)
    run, options = compiled(module)
    with torch.no_grad():
        for steps in (5, 9, 1, 5):
            x = torch.randn(2, steps, 12)
            assert_same(run(x), module(x))
    assert not host_ops(options)


def test_one_sequence_without_batch() -> None:
    module = nn.GRU(12, 40, num_layers=2)
    run, options = compiled(module)
    x = torch.randn(7, 12)
    with torch.no_grad():
        assert_same(run(x), module(x))
    assert not host_ops(options)


def test_a_changed_weight_is_detected() -> None:
    module = nn.LSTM(12, 40)
    run, _ = compiled(module)
    x = torch.randn(5, 2, 12)
    with torch.no_grad():
        run(x)
        module.weight_hh_l0.mul_(-1.5)
        module.bias_hh_l0.add_(0.3)
        assert_same(run(x), module(x))


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
def test_weights_that_are_computed(kind: Any) -> None:
    """They change with each call, and are padded on the device."""
    module = kind(12, 40)

    def scaled(x: torch.Tensor, by: torch.Tensor) -> Any:
        weights = {name: weight * by for name, weight in module.named_parameters()}
        return torch.func.functional_call(module, weights, (x,))

    run, options = compiled(scaled)
    x = torch.randn(5, 2, 12)
    with torch.no_grad():
        assert_same(run(x, torch.tensor(1.5)), scaled(x, torch.tensor(1.5)))
    assert not host_ops(options)


def test_bfloat16_module() -> None:
    module = nn.GRU(12, 40).bfloat16()
    run, options = compiled(module)
    x = torch.randn(5, 2, 12).bfloat16()
    with torch.no_grad():
        want = copy.deepcopy(module).float()(x.float())
        got = run(x)
    assert [leaf.dtype for leaf in pytree.tree_leaves(got)] == [torch.bfloat16] * 2
    assert_same(pytree.tree_map(torch.Tensor.float, got), want)
    assert not host_ops(options)


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU])
def test_autocast_has_torchs_dtypes(kind: Any) -> None:
    module = kind(12, 40)
    run, _ = compiled(module)
    x = torch.randn(5, 2, 12)
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        got, want = run(x), module(x)
    for one, other in zip(pytree.tree_leaves(got), pytree.tree_leaves(want)):
        assert_like(one, other, 0.02, 0.02)


@pytest.mark.parametrize("name", LAYERS)
def test_float64_is_exact_on_the_host(name: str) -> None:
    """The CPU implementation of the operators, which runs on the host."""
    module = made(name).double()
    run, options = compiled(module, warn=False)
    x = sequence(module).double()
    with torch.no_grad():
        assert_same(run(x), module(x), 1e-12, 1e-12)
    assert host_ops(options)


def test_packed_sequences() -> None:
    """Their sizes depend on data: torch runs them."""

    class Tagger(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding = nn.Embedding(50, 8)
            self.recurrent = nn.LSTM(8, 16, batch_first=True, bidirectional=True)
            self.head = nn.Linear(32, 4)

        def forward(self, tokens: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
            packed = pack_padded_sequence(self.embedding(tokens), lengths, batch_first=True, enforce_sorted=False)
            padded, _ = pad_packed_sequence(self.recurrent(packed)[0], batch_first=True)
            return self.head(padded)

    model = Tagger().eval()
    run, _ = compiled(model)
    tokens, lengths = torch.randint(0, 50, (3, 7)), torch.tensor([4, 7, 2])
    with torch.no_grad():
        assert_same(run(tokens, lengths), model(tokens, lengths))
        packed = pack_padded_sequence(torch.randn(5, 2, 8), [5, 3])
        plain = nn.GRU(8, 16)
        assert_same(compiled(plain)[0](packed)[0].data, plain(packed)[0].data)


def test_an_exported_program() -> None:
    module = nn.LSTM(12, 40, batch_first=True).eval()
    x = torch.randn(2, 5, 12)
    options = torch_ttnn.TorchTtnnOption(cache_dir="")
    with torch.no_grad():
        run = torch_ttnn.compile(torch.export.export(module, (x,)), options=options)
        assert_same(run(x), module(x))
    assert not host_ops(options)


def test_activation_checkpointing() -> None:
    module = nn.GRU(12, 40)
    reference = copy.deepcopy(module)

    def checkpointed(layer: nn.Module, x: torch.Tensor) -> torch.Tensor:
        return torch.utils.checkpoint.checkpoint(lambda given: layer(given)[0], x, use_reentrant=False)

    run, options = compiled(lambda x: checkpointed(module, x), precision="float32")
    x = torch.randn(5, 2, 12)
    run(x).square().sum().backward()
    reference(x)[0].square().sum().backward()
    assert_same([each.grad for each in module.parameters()], [each.grad for each in reference.parameters()], *FLOAT32)
    assert not host_ops(options)


# Calls per step of the loop: slices of the inputs' sums and of gates, the product, and the rest.
CALLS_PER_STEP = {"lstm": 11, "gru": 13, "rnn": 3}


@pytest.mark.parametrize("name", CALLS_PER_STEP)
def test_calls_per_step(name: str) -> None:
    module = made(name)
    counts = []
    for steps in (10, 20):
        torch._dynamo.reset()
        run, options = compiled(module)
        with torch.no_grad():
            run(sequence(module, steps=steps))
        counts.append(device_calls(options))
    assert counts[1] - counts[0] == 10 * CALLS_PER_STEP[name]


def test_long_loops_stay_on_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch_ttnn.compiler.lowering.recurrent.forward.MOST_STEPS", 4)
    module = nn.GRU(12, 40)
    run, options = compiled(module, warn=False)
    x = torch.randn(5, 2, 12)
    with torch.no_grad():
        assert_same(run(x), module(x))
    assert "5 steps" in host_ops(options)[0]


def test_explain_shows_them_on_the_device() -> None:
    with torch.no_grad():
        report = torch_ttnn.explain(nn.LSTM(12, 40), torch.randn(5, 2, 12)).to_json()
    assert [program["host_ops"] for program in report["programs"]] == [[]]
    assert "matmul" in str(report)


def test_programs_are_cached(tmp_path: Any) -> None:
    module = nn.LSTM(12, 40)
    x = torch.randn(5, 2, 12)
    for _ in range(2):
        torch._dynamo.reset()
        options = torch_ttnn.TorchTtnnOption(cache_dir=str(tmp_path))
        with torch.no_grad():
            assert_same(torch.compile(module, backend="ttnn", options=options)(x), module(x))
    assert "lower" not in options.programs[0].seconds


def test_other_backends_are_not_affected() -> None:
    seen = []

    def other(graph_module: torch.fx.GraphModule, inputs: Any) -> Any:
        seen.append(graph_module)
        return graph_module.forward

    module = nn.LSTM(12, 40)
    x = torch.randn(5, 2, 12)
    compiled(module)[0](x)
    torch._dynamo.reset()
    torch.compile(module, backend=other)(x)
    assert not seen
    assert not torch._dynamo.config.allow_rnn
    assert wants_recurrent_modules(torch_ttnn.backend) and not wants_recurrent_modules(other)


@pytest.mark.parametrize("name", ["lstm_layer", "gru_layer", "rnn_layer"])
def test_operators_are_sound(name: str) -> None:
    """Schema, meta functions and gradients, as checked by torch."""
    gates = {"lstm_layer": 4, "gru_layer": 3, "rnn_layer": 1}[name]
    x, h = torch.randn(4, 2, 3, dtype=torch.float64), torch.randn(2, 5, dtype=torch.float64)
    weights = [torch.randn(gates * 5, size, dtype=torch.float64) for size in (3, 5)]
    biases = [torch.randn(gates * 5, dtype=torch.float64) for _ in range(2)]
    tensors = [
        each.requires_grad_() for each in (x, h, *([h.detach().clone()] if gates == 4 else []), *weights, *biases)
    ]
    rest = {"lstm_layer": (None, True), "gru_layer": (True,), "rnn_layer": ("tanh", True)}[name]
    operator = getattr(getattr(torch.ops, LIBRARY.ns), name)
    torch.library.opcheck(operator.default, (*tensors, *rest))
    assert torch.autograd.gradcheck(lambda *given: operator(*given, *rest)[: 2 if gates == 4 else 1], tensors)
