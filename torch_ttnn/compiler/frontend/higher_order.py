"""Higher-order operators of a captured graph: `cond`, `while_loop`, `scan`, custom operators that write to arguments.

Their arguments include graphs, of branches or loop bodies, and they run on the host as they are. A region that is
compiled once and called often (`torch.compiler.nested_compile_region`) is copied into the graph that calls it.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Iterator
from typing import Any
from weakref import WeakValueDictionary

import torch
import torch.fx

from torch_ttnn.compiler.ir.arguments import mapped

INVOKES = torch.ops.higher_order.invoke_subgraph  # (graph, its name, *operands)
_numbers = itertools.count(1)


class HigherOrderCall:
    """A higher-order operator with its graphs: a function of the tensors among its arguments."""

    def __init__(self, operator_: Any, args: tuple, kwargs: dict[str, Any]) -> None:
        self.operator = operator_
        self.arguments = args, kwargs
        self.__name__ = str(operator_)
        self.number = next(_numbers)
        CALLS[self.number] = self

    def __call__(self, *tensors: Any) -> Any:
        given = iter(tensors)
        args, kwargs = mapped(self.arguments, lambda item: next(given) if item is OPERAND else item)
        return self.operator(*args, **kwargs)

    def __repr__(self) -> str:
        return f"higher_order.{self.__name__}"


class _Operand:
    """Takes the place of a tensor among the arguments."""


OPERAND = _Operand()
# For the source of programs, which cannot contain a graph. The nodes of a program keep their calls alive.
CALLS: WeakValueDictionary[int, HigherOrderCall] = WeakValueDictionary()


def is_higher_order(node: torch.fx.Node) -> bool:
    return isinstance(node.target, torch._ops.HigherOrderOperator)


def call_of(node: torch.fx.Node) -> tuple[HigherOrderCall, list[torch.fx.Node]]:
    """The call of a higher-order operator, and the nodes of its operands."""
    owner = node.graph.owning_module
    operands: list[torch.fx.Node] = []

    def held(item: Any) -> Any:
        if not isinstance(item, torch.fx.Node):
            return item
        graph = subgraph(item, owner)
        if graph is not None:
            return graph
        operands.append(item)
        return OPERAND

    args, kwargs = mapped((tuple(node.args), dict(node.kwargs)), held)
    return HigherOrderCall(node.target, args, kwargs), operands


def subgraph(node: Any, owner: Any) -> torch.fx.GraphModule | None:
    """The graph that a node of a module stands for, if it does for one."""
    if not isinstance(node, torch.fx.Node) or node.op != "get_attr":
        return None
    held = operator.attrgetter(str(node.target))(owner)
    return held if isinstance(held, torch.fx.GraphModule) else None


def subgraphs(graph_module: torch.fx.GraphModule) -> Iterator[torch.fx.GraphModule]:
    """All graphs that the nodes of a module stand for."""
    for node in graph_module.graph.find_nodes(op="get_attr"):
        held = subgraph(node, graph_module)
        if held is not None:
            yield held
            yield from subgraphs(held)


def inlined(captured: torch.fx.GraphModule) -> torch.fx.GraphModule:
    """The graph with the regions that it invokes copied into it; itself if there are none."""
    if not any(node.target is INVOKES for node in captured.graph.nodes):
        return captured
    graph = torch.fx.Graph()
    output = _copied(captured, graph, {})
    graph.output(output)
    made = torch.fx.GraphModule(captured, graph)
    for node, theirs in zip(
        (graph.output_node(), *graph.find_nodes(op="placeholder")),
        (captured.graph.output_node(), *captured.graph.find_nodes(op="placeholder")),
        strict=True,
    ):
        node.meta.update(theirs.meta)
    return made


def _copied(
    module: torch.fx.GraphModule, graph: torch.fx.Graph, copies: dict[torch.fx.Node, Any], prefix: str = ""
) -> Any:
    """Copy the nodes of a module, whose placeholders may be among `copies`; returns its outputs."""
    for node in module.graph.nodes:
        if node.op == "output":
            return mapped(node.args[0], lambda item: _copy_of(item, copies))
        if node in copies:
            continue
        if node.target is INVOKES:
            body = subgraph(node.args[0], module)
            assert body is not None
            operands = zip(body.graph.find_nodes(op="placeholder"), node.args[2:], strict=True)
            given = {inner: _copy_of(outer, copies) for inner, outer in operands}
            copies[node] = _copied(body, graph, given, f"{prefix}{node.args[0].target}.")  # type: ignore[union-attr]
        elif node.target is operator.getitem and not isinstance(copies[node.args[0]], torch.fx.Node):  # type: ignore[index]
            copies[node] = copies[node.args[0]][node.args[1]]  # type: ignore[index]
        elif subgraph(node, module) is None or any(user.target is not INVOKES for user in node.users):
            copies[node] = graph.node_copy(node, lambda item: _copy_of(item, copies))
            if node.op == "get_attr":
                copies[node].target = f"{prefix}{node.target}"
    raise AssertionError("a graph without an output")


def _copy_of(item: Any, copies: dict[torch.fx.Node, Any]) -> Any:
    return copies[item] if isinstance(item, torch.fx.Node) else item
