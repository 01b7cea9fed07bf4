"""Nested arguments of calls: structure is kept, leaves are visited, and keys are compared."""

from __future__ import annotations

import pytest
import torch
import torch.fx

from torch_ttnn.compiler.ir.arguments import call_with, frozen, leaves, mapped


def graph_with(*args, **kwargs) -> torch.fx.Node:
    """A call in a graph, whose lists and dicts are immutable collections of torch."""
    return torch.fx.Graph().create_node("call_function", torch.cat, args, kwargs)


def test_nested_arguments_of_nodes_are_visited():
    call = graph_with([1, (2, 3)], dims=[4], given={"other": 5})
    assert leaves((call.args, call.kwargs)) == [1, 2, 3, 4, 5]
    made = mapped(call.args, str)
    assert made == (["1", ("2", "3")],)
    assert type(made[0]) is list  # for ttnn, which takes lists


def test_sizes_and_slices_are_leaves():
    given = (torch.Size([2, 3]), slice(1, 2))
    assert leaves(given) == [torch.Size([2, 3]), slice(1, 2)]


def test_call_with_looks_arguments_up():
    values = {"x": torch.ones(2), "y": torch.zeros(2)}
    made = call_with(torch.cat, (["x", "y"],), {"dim": 0}, lambda item: values.get(item, item))
    assert made.tolist() == [1, 1, 0, 0]


@pytest.mark.parametrize(
    "one, other", [(1, 1.0), (1, True), ([1], (1,)), (slice(1), slice(1, 1)), ({"a": 1}, {"b": 1}), (None, 0)]
)
def test_different_arguments_have_different_keys(one, other):
    assert frozen(one, lambda node: node) != frozen(other, lambda node: node)
    assert frozen(one, lambda node: node) == frozen(one, lambda node: node)
    hash(frozen([one, other], lambda node: node))


def test_nodes_are_compared_by_their_replacements():
    graph = torch.fx.Graph()
    one, other = graph.placeholder("one"), graph.placeholder("other")
    assert frozen([one], lambda node: node) != frozen([other], lambda node: node)
    assert frozen([one], lambda node: one) == frozen([other], lambda node: one)
