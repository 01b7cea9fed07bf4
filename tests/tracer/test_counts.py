"""The tracer records every operation once: its counts equal those of independent counters."""

from __future__ import annotations

import pathlib
from collections import Counter
from typing import Any

import pytest
import torch
from torch._dynamo.backends.common import aot_autograd
from torch._functorch.partitioners import default_partition
from torch.utils._python_dispatch import TorchDispatchMode

from tests.tracer.traced import MODELS, SAMPLES, counts, loss, traces
from torch_ttnn import tracer

# The same number in eager torch as in a functional graph. The others differ, because functional graphs have no in-place
# operations, dropout as one operation, and no `detach` of saved values.
PRODUCTS = ("convolution", "mm", "addmm", "bmm", "_scaled_dot_product", "embedding", "layer_norm", "_softmax")


class Dispatched(TorchDispatchMode):
    """Counts the operations of eager torch."""

    def __init__(self) -> None:
        super().__init__()
        self.counts: Counter[str] = Counter()

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple = (), kwargs: Any = None) -> Any:
        self.counts[str(func)] += 1
        return func(*args, **(kwargs or {}))


class Walked:
    """A backend that counts the nodes of its graphs."""

    def __init__(self) -> None:
        self.forward: Counter[str] = Counter()
        self.backward: Counter[str] = Counter()

    def __call__(self, graph_module: Any, inputs: Any) -> Any:
        return aot_autograd(
            fw_compiler=lambda graph, _: self._count(graph, self.forward),
            bw_compiler=lambda graph, _: self._count(graph, self.backward),
            partition_fn=default_partition,
        )(graph_module, inputs)

    def _count(self, graph_module: Any, into: Counter[str]) -> Any:
        for node in graph_module.graph.nodes:
            if node.op == "call_function" and not getattr(node.target, "__module__", "").startswith("_operator"):
                into[str(node.target)] += 1
        run = lambda args: graph_module(*args)  # noqa: E731
        run._boxed_call = True  # type: ignore[attr-defined]
        return run


@pytest.fixture(autouse=True)
def fresh() -> None:
    torch._dynamo.reset()


@pytest.mark.parametrize("name", MODELS)
def test_graphs_have_the_operations_of_independent_counts(name: str, tmp_path: pathlib.Path) -> None:
    model, given = SAMPLES[name].build().train(), SAMPLES[name].feed()
    walked = Walked()
    loss(torch.compile(model, backend=walked)(given)).backward()
    torch._dynamo.reset()
    traced = tracer.backend(model_name=name, out_folder=tmp_path, lowering=False)
    loss(torch.compile(model, backend=traced)(given)).backward()
    found = traces(tmp_path)
    assert counts(found, "fw") == walked.forward
    assert counts(found, "bw") == walked.backward
    forward, backward = _dispatched(model, given)
    assert _products(counts(found, "fw")) == _products(forward)
    assert _products(counts(found, "bw")) == _products(backward)
    assert _products(forward) and _products(backward)


@pytest.mark.parametrize("name", MODELS)
def test_the_context_has_the_operations_of_an_independent_mode(name: str, tmp_path: pathlib.Path) -> None:
    model, given = SAMPLES[name].build().train(), SAMPLES[name].feed()
    forward, backward = _dispatched(model, given)
    ones = torch.ones(())
    with tracer.tracing(name, out_folder=tmp_path, lowering=False):
        loss(model(given)).backward(ones)
    found = traces(tmp_path)
    assert counts(found, "fw") == forward
    assert counts(found, "bw") == backward


def _dispatched(model: torch.nn.Module, given: torch.Tensor) -> tuple[Counter[str], Counter[str]]:
    """What eager torch runs, forward and backward."""
    model.zero_grad()
    ones = torch.ones(())
    with Dispatched() as forward:
        total = loss(model(given))
    with Dispatched() as backward:
        total.backward(ones)
    model.zero_grad()
    return forward.counts, backward.counts


def _products(found: Counter[str]) -> Counter[str]:
    return Counter({name: number for name, number in found.items() if any(each in name for each in PRODUCTS)})
