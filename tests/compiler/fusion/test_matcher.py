"""Patterns: what they match, and what they do not."""

from __future__ import annotations

import torch
from torch.fx.experimental.proxy_tensor import make_fx

from torch_ttnn.compiler.fusion.matcher import (
    BEFORE,
    Chain,
    Constant,
    Either,
    Match,
    Number,
    Op,
    Tensor,
    closed_matches,
)
from torch_ttnn.compiler.fusion.nodes import ADD, DIV, MUL, number_of

aten = torch.ops.aten
X = torch.ones(2, 3)


def root_of(function, *args):
    graph = make_fx(function, tracing_mode="fake")(*args).graph
    return next(iter(reversed(graph.nodes))).args[0]


def found(pattern, function, *args) -> Match | None:
    return next(closed_matches(pattern, root_of(function, *args)), None)


def test_a_name_is_the_same_value_wherever_it_occurs():
    pattern = Op(MUL, Tensor("x"), Op(aten.sigmoid.default, Tensor("x")), commutative=True)
    assert found(pattern, lambda x, y: x * x.sigmoid(), X, X + 1)
    assert found(pattern, lambda x, y: x.sigmoid() * x, X, X + 1)
    assert not found(pattern, lambda x, y: y * x.sigmoid(), X, X + 1)


def test_no_ops_may_be_between():
    pattern = Op(aten.relu.default, Op(aten.exp.default, Tensor("x")))
    assert found(pattern, lambda x: x.exp().clone().view(2, 3).relu(), X)
    assert not found(pattern, lambda x: x.exp().view(6).relu(), X)
    assert not found(pattern, lambda x: x.exp().double().relu(), X)


def test_inner_nodes_have_no_outside_users():
    pattern = Op(aten.relu.default, Op(aten.exp.default, Tensor("x")))

    def used_twice(x):
        inner = x.exp()
        return inner.relu(), inner

    graph = make_fx(used_twice, tracing_mode="fake")(X).graph
    relu = next(node for node in graph.nodes if node.target is aten.relu.default)
    assert next(closed_matches(pattern, relu), None) is None


def test_numbers_are_compared_with_tolerance():
    pattern = Op(MUL, Tensor("x"), Constant(0.7978845608028654))
    assert found(pattern, lambda x: x * 0.79788456, X)
    assert not found(pattern, lambda x: x * 0.7979, X)
    assert found(Op(MUL, Tensor("x"), Number("n")), lambda x: x * 3, X)["n"] == 3
    assert not found(Op(MUL, Tensor("x"), Number("n")), lambda x: x * x, X)


def test_a_tensor_of_no_dimensions_is_a_number():
    assert number_of(root_of(lambda x: torch.full((), 2.5), X)) == 2.5
    assert number_of(root_of(lambda x: torch.full((1,), 2.5), X)) is None


def test_arguments_that_the_pattern_does_not_name_are_rejected():
    pattern = Op(ADD, Tensor("x"), Tensor("y"))
    assert found(pattern, lambda x, y: x + y, X, X + 1)
    assert not found(pattern, lambda x, y: torch.add(x, y, alpha=2), X, X + 1)


def test_steps_of_a_chain_are_listed_in_the_order_of_computation():
    chain = Chain(
        Op(aten.exp.default, Tensor("x")),
        times=Op(MUL, BEFORE, Number("factor")),
        over=Op(DIV, BEFORE, Number("divisor")),
        plus=Op(ADD, BEFORE, Tensor("y"), commutative=True),
    )
    pattern = Op(aten.relu.default, chain)
    match = found(pattern, lambda x, y: ((y + x.exp() * 2) / 3).relu(), X, X + 1)
    assert [name for name, _, _ in match.steps] == ["times", "plus", "over"]
    assert match.steps[0][2] == {"factor": 2}
    assert found(pattern, lambda x, y: x.exp().relu(), X, X + 1).steps == ()
    assert not found(pattern, lambda x, y: (x.exp() - y).relu(), X, X + 1)


def test_one_of_several_forms():
    pattern = Either(Op(aten.relu.default, Tensor("x")), Op(aten.exp.default, Tensor("x")))
    assert pattern.roots == {aten.relu.default, aten.exp.default}
    assert found(pattern, torch.exp, X)
