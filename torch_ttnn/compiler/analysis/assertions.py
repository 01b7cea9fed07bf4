"""Assertions in a captured graph, such as those of `one_hot`: which hold for certain, and what they ask of an input.

The program computes the conditions of the others. If one is false, torch runs the call and raises its own error.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.fx

from torch_ttnn.compiler.analysis.never_nan import overloads
from torch_ttnn.compiler.analysis.ranges import Range, Ranges

aten = torch.ops.aten

ASSERTIONS = overloads("_assert_async")
ALL = overloads("all", "view", "reshape", "squeeze", "unsqueeze", "clone", "alias", "detach", "expand")
BOTH = overloads("logical_and", "bitwise_and")
# Whether a comparison is true of all numbers in two ranges.
CERTAIN: dict[Any, Callable[[Range, Range], bool]] = {
    **dict.fromkeys(overloads("ge"), lambda one, other: one.low >= other.high),
    **dict.fromkeys(overloads("gt"), lambda one, other: one.low > other.high),
    **dict.fromkeys(overloads("le"), lambda one, other: one.high <= other.low),
    **dict.fromkeys(overloads("lt"), lambda one, other: one.high < other.low),
}
# The integers for which a comparison with a number is true.
ASKED: dict[Any, Callable[[float], tuple[float, float]]] = {
    aten.ge.Scalar: lambda number: (math.ceil(number), math.inf),
    aten.gt.Scalar: lambda number: (math.floor(number) + 1, math.inf),
    aten.le.Scalar: lambda number: (-math.inf, math.floor(number)),
    aten.lt.Scalar: lambda number: (-math.inf, math.ceil(number) - 1),
}


def in_graph(graph: torch.fx.Graph) -> list[torch.fx.Node]:
    return [node for node in graph.nodes if node.target in ASSERTIONS]


def holds(condition: Any, ranges: Ranges) -> bool:
    """Whether a condition is true for all values in these ranges."""
    if not isinstance(condition, torch.fx.Node):
        return bool(condition)
    if condition.target in BOTH:
        return all(holds(each, ranges) for each in condition.args[:2])
    if condition.target in CERTAIN:
        return CERTAIN[condition.target](*[ranges(each) for each in condition.args[:2]])
    return condition.target in ALL and holds(condition.args[0], ranges)


def asked_of(node: torch.fx.Node) -> Iterator[tuple[float, float]]:
    """The ranges of integers for which assertions about a value hold."""
    for user in node.users:
        if user.target in ASKED and user.args[0] is node and math.isfinite(user.args[1]) and _is_asserted(user):  # type: ignore[arg-type]
            yield ASKED[user.target](user.args[1])  # type: ignore[arg-type]


def _is_asserted(node: torch.fx.Node) -> bool:
    return any(user.target in ASSERTIONS or (user.target in ALL | BOTH and _is_asserted(user)) for user in node.users)


def may_fail(captured: torch.fx.GraphModule, inputs: dict[torch.fx.Node, Range]) -> list[torch.fx.Node]:
    """The assertions of a captured graph that may fail for integer inputs in these ranges."""

    def constant_of(node: torch.fx.Node) -> torch.Tensor | None:
        return operator.attrgetter(str(node.target))(captured) if node.op == "get_attr" else None

    ranges = Ranges(inputs, constant_of, lambda node: node.op == "get_attr")
    return [node for node in in_graph(captured.graph) if not holds(node.args[0], ranges)]
