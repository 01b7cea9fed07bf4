"""Observers of NaN see torch's, wherever it arises; see `torch_ttnn/compiler/analysis/nan_observers.py`."""

from __future__ import annotations

import math

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import given

import torch_ttnn
from tests.compiler.against_torch import run
from torch_ttnn.compiler.ir.metadata import REASON

NAN, INF = math.nan, math.inf
X = torch.tensor([[1.0, -2.0, 0.0, NAN], [INF, -INF, 3.5, -0.5]])

MAKING = {
    "0 / 0": lambda x: x / (x - x),
    "inf - inf": lambda x: (x * INF) - (x * INF),
    "log": lambda x: x.log(),
    "sqrt": lambda x: x.sqrt(),
    "constant": lambda x: torch.where(x > 0, x, NAN),
    "constant tensor": lambda x: x + torch.tensor([NAN, 0.0, 1.0, 2.0]),
    "masked_fill": lambda x: x.masked_fill(x > 1, NAN),
    "acos": lambda x: x.acos(),
    "fmod": lambda x: x.fmod(0.0),
    "softmax of -inf": lambda x: torch.full_like(x, -INF).softmax(-1) + x,
    "nothing": lambda x: x,
    "mean of none": lambda x: x + x[:0].mean(),
    "integers": lambda x: (x > 0).float() / (x > 1).float(),
}
PASSING = {
    "add": lambda x: x + 1,
    "relu": torch.relu,
    "minimum": lambda x: torch.minimum(x, x * 2),
    "clamp": lambda x: x.clamp(-1, 1),
    "sort": lambda x: x.sort(-1).values,
    "amin": lambda x: x.amin(-1, keepdim=True),
    "max": lambda x: x.max(-1, keepdim=True).values,
    "transpose": lambda x: x.t(),
    "flip": lambda x: x.flip(0),
    "cat": lambda x: torch.cat([x, x * 0]),
    "view": lambda x: x.reshape(-1),
    "select": lambda x: x[:1] if x.ndim else x,
    "split": lambda x: x.split(1)[0] if x.ndim else x,
    "softmax": lambda x: x.softmax(-1),
    "matmul": lambda x: x @ x.mT if x.ndim == 2 else x,
    "sum": lambda x: x.sum(-1, keepdim=True),
    "reciprocal": lambda x: 1 / x,
    "pow": lambda x: x**2,
    "where": lambda x: torch.where(x > 0, x, -x),
    "replaced": lambda x: x.nan_to_num(0.5) - 1,
    "bfloat16": lambda x: x.bfloat16().float(),
}
LOOKING = {
    "isnan": torch.isnan,
    "isinf": torch.isinf,
    "isposinf": torch.isposinf,
    "isneginf": torch.isneginf,
    "isfinite": torch.isfinite,
    "nan_to_num": lambda x: x.nan_to_num(7.0),
    "nan_to_num, infinities too": lambda x: torch.nan_to_num(x, 7.0, 8.0, -8.0),
    "nansum": lambda x: x.nansum(),
    "nanmean": lambda x: x.nanmean(),
    "nanmedian": lambda x: x.nanmedian(),
    "nanmedian of rows": lambda x: x.nanmedian(-1),
    "nanquantile": lambda x: x.nanquantile(0.5),
    "x != x": lambda x: x != x,
    "x == x": lambda x: x == x,
    "x <= a clone": lambda x: x <= x.clone(),
    "x == inf": lambda x: x == INF,
    "x > -inf": lambda x: x > -INF,
    "x < inf, a tensor": lambda x: x < torch.tensor(INF),
    "abs < inf": lambda x: x.abs() < INF,
    "isclose": lambda x: torch.isclose(x, x.flip(0)),
    "isclose, equal_nan": lambda x: torch.isclose(x, x.flip(0), equal_nan=True),
    "fmax": lambda x: torch.fmax(x, torch.zeros_like(x)),
    "fmin": lambda x: torch.fmin(x, x.flip(0)),
    "any": lambda x: x.isnan().any(),
    "equal or both NaN": lambda x: (x == x.flip(0)) | (x.isnan() & x.flip(0).isnan()),
    "replaced by choice": lambda x: torch.where(x.isnan(), 7.0, x).isnan(),
    "replaced in place": lambda x: x.clone().masked_fill_(x.isnan(), 1.0).isfinite(),
    "comparison of the same value": lambda x: (x.isnan(), x > 0, x.argmax()),
}


# They continue on the device after replacing NaN; there their own NaN (infinity minus infinity) is infinity.
COMPUTING = {"nansum", "nanmean", "nanquantile"}


def assert_exact(function, *args, computes=False, **options) -> torch_ttnn.TorchTtnnOption:
    torch._dynamo.reset()
    chosen = torch_ttnn.TorchTtnnOption(warn=False, **options)
    got, wanted = torch.compile(function, backend="ttnn", options=chosen)(*args), function(*args)
    if computes:
        finite = wanted.isfinite()
        assert torch.equal(finite, got.isfinite())
        torch.testing.assert_close(got[finite], wanted[finite], rtol=0.02, atol=0.02)
    else:
        torch.testing.assert_close(got, wanted, rtol=0, atol=0, equal_nan=True)
    return chosen


def host_operations(options: torch_ttnn.TorchTtnnOption) -> dict[str, str]:
    nodes = [node for program in options.programs for node in program.graph.nodes]
    return {str(node.target): REASON[node] for node in nodes if REASON.on(node)}


@pytest.mark.parametrize("look", LOOKING)
@pytest.mark.parametrize("precision", ["bfloat16", "float32"])
@torch.no_grad()
def test_every_observer(look, precision):
    def function(x):
        y = torch.where(x > 0, x.log() - 1, NAN)
        return LOOKING[look](torch.minimum(y, x + 2))

    assert_exact(function, X, computes=look in COMPUTING, precision=precision)
    assert_exact(LOOKING[look], X, computes=look in COMPUTING, precision=precision)


@given(
    make=st.sampled_from(sorted(MAKING)),
    steps=st.lists(st.sampled_from(sorted(PASSING)), max_size=3),
    look=st.sampled_from(sorted(LOOKING)),
    precision=st.sampled_from(["bfloat16", "float32"]),
)
@torch.no_grad()
def test_nan_of_any_source_is_observed(make, steps, look, precision):
    def function(x):
        x = MAKING[make](x)
        for name in steps:
            x = PASSING[name](x)
        return LOOKING[look](x)

    assert_exact(function, X, computes=look in COMPUTING, precision=precision)


# -- non-observers -----------------------------------------------------------------------------------------------------

ON_DEVICE = {
    "what passes NaN on": lambda x: torch.softmax(torch.relu(x * 2).clamp(-1, 1), -1).log() + 1,
    "a mask of booleans": lambda x: torch.isinf(torch.zeros_like(x).masked_fill(x > 0, -INF)),
    "numbers of comparisons": lambda x: torch.nan_to_num((x > 0).float() * 3 - 1),
    "a mask compared with infinity": lambda x: torch.where(x > 0, 0.0, -INF) == -INF,
    "a finite input": lambda x: torch.isfinite(x.t()),
    "xlog1py": lambda x: torch.special.xlog1py(x, x),
    "isnan of integers": lambda x: (x > 0).sum().isnan(),
    "other comparisons": lambda x: (x * 2 > 0.5) & (x == x + 1),
}


@pytest.mark.parametrize("name", ON_DEVICE)
@torch.no_grad()
def test_non_observers_stay_on_the_device(name):
    x = torch.tensor([[1.0, -2.0], [0.5, 3.0]])
    assert not run(ON_DEVICE[name], x).host_ops


@torch.no_grad()
def test_only_observed_values_stay_on_the_host():
    options = assert_exact(lambda x: (x / 0.0).isnan() & (torch.relu(x) > 0.5), X[1])
    assert set(host_operations(options)) == {"aten.div.Tensor", "aten.isnan.default"}


@torch.no_grad()
def test_nan_of_a_weight_is_observed_when_it_is_prepared():
    weight = torch.tensor([1.0, NAN, INF])
    outcome = run(lambda x, w: torch.where(w.isnan(), x, x * 2), torch.ones(3), weight, statics=(1,))
    assert not outcome.host_ops
    assert torch.equal(outcome.outputs[0], torch.tensor([2.0, 1.0, 2.0]))


@torch.no_grad()
def test_the_reason_names_the_observer_and_its_line():
    torch._dynamo.reset()

    def model(x):
        y = torch.log(x)
        return torch.nan_to_num(y + 1)

    report = torch_ttnn.explain(model, X).to_json()
    reasons = {each["op"]: each["reason"] for program in report["programs"] for each in program["host_ops"]}
    assert set(reasons) == {"aten.log.default", "aten.add.Tensor", "aten.nan_to_num.default"}
    assert "aten.nan_to_num.default at" in reasons["aten.log.default"]
    assert "test_nan.py" in reasons["aten.log.default"] and "torch.nan_to_num(y + 1)" in reasons["aten.add.Tensor"]


@torch.no_grad()
def test_nan_can_be_accepted():
    outcome = run(lambda x: torch.isnan(x.log() * 2), torch.tensor([1.0, 2.0]), accept=("nan",))
    assert not outcome.host_ops


# -- NaN among the inputs ----------------------------------------------------------------------------------------------

F = torch.nn.functional
LOSING = {
    "min": lambda x: x.min(),
    "amin": lambda x: x.amin(1),
    "argmin": lambda x: x.argmin(1),
    "minimum": lambda x: torch.minimum(x, torch.ones(3, 4)),
    "clamp": lambda x: x.clamp(-1, 1),
    "sign": torch.sign,
    "relu6": lambda x: F.relu6(x),
    "hardsigmoid": lambda x: F.hardsigmoid(x),
    "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
    "erf": torch.erf,
    "reciprocal": torch.reciprocal,
    "greater": lambda x: (x.t() * 2 > 0.5).int(),
    "a product": lambda x: torch.sigmoid(x @ torch.ones(4, 2)),
}
WITH_NAN = torch.tensor([[NAN, -1.5, 2.0, 0.5], [3.0, NAN, -2.0, 1.0], [0.0, 1.0, 2.0, 3.0]])


@pytest.mark.parametrize("name", LOSING)
@torch.no_grad()
def test_a_call_with_nan_among_its_inputs_is_torchs(name, caplog):
    outcome = run(LOSING[name], torch.ones(3, 4))
    assert not outcome.host_ops
    torch.testing.assert_close(outcome.program([WITH_NAN])[0], LOSING[name](WITH_NAN), rtol=0, atol=0, equal_nan=True)
    assert "input 0 has NaN" in caplog.text


@torch.no_grad()
def test_a_weight_with_nan_is_torchs(caplog):
    weight = torch.tensor([1.0, NAN, 3.0])
    outcome = run(lambda x, w: torch.sigmoid(x * w), torch.ones(3), weight, statics=(1,))
    torch.testing.assert_close(outcome.outputs[0], torch.sigmoid(weight), rtol=0, atol=0, equal_nan=True)
    assert "a weight, has NaN" in caplog.text


@torch.no_grad()
def test_nan_among_the_inputs_can_be_accepted(caplog):
    outcome = run(torch.relu, torch.ones(3, 4), accept=("nan",))
    outcome.program([WITH_NAN])
    assert "NaN" not in caplog.text


# -- gradients ---------------------------------------------------------------------------------------------------------


def test_a_gradient_with_nan_is_torchs():
    torch._dynamo.reset()
    x, reference = (torch.ones(3, 4).requires_grad_() for _ in range(2))
    torch.compile(lambda x: torch.sigmoid(x * 2), backend="ttnn")(x).backward(WITH_NAN)
    torch.sigmoid(reference * 2).backward(WITH_NAN)
    assert torch.equal(x.grad.isnan(), reference.grad.isnan())


@pytest.mark.parametrize("reduce", [lambda x: x.max(), lambda x: torch.linalg.vector_norm(x, INF)])
def test_the_gradient_of_a_maximum_keeps_nothing_on_the_host(reduce):
    """Its formula tests for NaN, but the model does not."""
    torch._dynamo.reset()
    options = torch_ttnn.TorchTtnnOption()
    x = torch.tensor([1.0, 5.0, -2.0], requires_grad=True)
    torch.compile(lambda x: reduce(x * 2), backend="ttnn", options=options)(x).backward()
    assert not [name for name in host_operations(options) if "mul" in name or "isnan" in name]
    assert torch.equal(x.grad, torch.tensor([0.0, 2.0, 0.0]))


@pytest.mark.parametrize("look", [lambda x: x.nansum(), lambda x: x.nan_to_num(2.0).sum(), lambda x: x.nanmean()])
def test_gradients_of_observers(look):
    torch._dynamo.reset()
    x, reference = X.clone().requires_grad_(), X.clone().requires_grad_()
    torch.compile(lambda x: look(x.log()), backend="ttnn")(x).backward()
    look(reference.log()).backward()
    finite = reference.grad.isfinite()
    assert torch.equal(finite, x.grad.isfinite())
    torch.testing.assert_close(x.grad[finite], reference.grad[finite], rtol=0.02, atol=0.02)
