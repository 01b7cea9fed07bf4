"""Higher-order operators run on the host, except nested regions, which become part of the graph."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch._higher_order_ops import while_loop
from torch._higher_order_ops.map import map as mapped
from torch._higher_order_ops.scan import scan
from torch.nn.attention.flex_attention import flex_attention

import torch_ttnn
from torch_ttnn.compiler.errors import CompileError
from torch_ttnn.compiler.ir.metadata import REASON
from torch_ttnn.options import TorchTtnnOption


@torch.library.custom_op("higher_order_tests::add_one", mutates_args=("x",))
def add_one(x: torch.Tensor) -> None:
    x.add_(1)


@torch.compiler.nested_compile_region
def region(x: torch.Tensor) -> torch.Tensor:
    return x.sin() + 1


def bumped(x: torch.Tensor) -> torch.Tensor:
    y = x * 2
    add_one(y)
    return y * 3


def bumped_input(x: torch.Tensor) -> torch.Tensor:
    add_one(x)
    return x * 3


def branches(x: torch.Tensor) -> torch.Tensor:
    return torch.cond(x.sum() > 0, lambda x: x * 2, lambda x: x - 1, (x * 4,)) + 1


def loop(x: torch.Tensor) -> torch.Tensor:
    return while_loop(lambda n, x: n < 3, lambda n, x: (n + 1, x * 2), (torch.tensor(0), x + 1))[1]


def attention(x: torch.Tensor) -> torch.Tensor:
    q = x.reshape(1, 1, 4, 6)
    return flex_attention(q, q, q, score_mod=lambda score, b, h, i, j: score + (i - j))


FUNCTIONS: dict[str, Callable] = {
    "custom operator that writes": bumped,
    "custom operator that writes to an input": bumped_input,
    "cond": branches,
    "while_loop": loop,
    "map": lambda x: mapped(lambda row: row * 2 + 1, x),
    "scan": lambda x: scan(lambda carry, row: (carry + row, carry * row), torch.zeros(6), x)[1],
    "flex_attention": attention,
    "nested region": lambda x: region(x) + region(x * 2),
}
X = torch.linspace(-1, 1.3, 24).reshape(4, 6)


@pytest.fixture(autouse=True)
def fresh_dynamo():
    torch._dynamo.reset()


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("name", FUNCTIONS)
@torch.no_grad()
def test_results(name: str, sign: int) -> None:
    function = FUNCTIONS[name]
    compiled = torch.compile(function, backend="ttnn", options={"warn": False})
    for _ in range(3):
        given = X * sign
        ours, wanted = X * sign, X * sign
        torch.testing.assert_close(compiled(ours), function(wanted), rtol=0.02, atol=0.02)
        torch.testing.assert_close(ours, wanted, rtol=0.02, atol=0.02)
        assert name == "custom operator that writes to an input" or torch.equal(ours, given)


@pytest.mark.parametrize("name", ["cond", "map", "nested region"])
def test_gradients(name: str) -> None:
    function = FUNCTIONS[name]
    found = []
    for run in (function, torch.compile(function, backend="ttnn", options={"warn": False})):
        weight = torch.eye(6, requires_grad=True)
        run(X @ weight).sum().backward()
        found.append(weight.grad)
    torch.testing.assert_close(found[1], found[0], rtol=0.03, atol=0.05)


def test_nested_regions_run_on_the_device() -> None:
    options = TorchTtnnOption(warn=False)
    with torch.no_grad():
        torch.compile(FUNCTIONS["nested region"], backend="ttnn", options=options)(X)
    (program,) = options.programs
    assert not any(REASON.on(node) for node in program.graph.nodes)


def test_other_operators_have_a_reason() -> None:
    text = str(torch_ttnn.explain(branches, X))
    assert "cond" in text and "calls graphs" in " ".join(text.split())


def test_export_names_the_operator(tmp_path) -> None:
    with torch.no_grad(), pytest.raises(CompileError, match="cond cannot be written as source"):
        torch_ttnn.export_code(branches, (X,), tmp_path)
