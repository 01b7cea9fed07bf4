"""The operations of an FX graph as calls: arguments, results, and source."""

from __future__ import annotations

import operator
import sys
from collections.abc import Iterator
from typing import Any

import torch
import torch.fx

from torch_ttnn.compiler.ir.arguments import mapped
from torch_ttnn.compiler.ir.source_lines import module_path, source_line
from torch_ttnn.tracer.calls import Call, concrete

Node = torch.fx.Node


def operations(graph_module: torch.fx.GraphModule) -> Iterator[tuple[Node, Call]]:
    """Every operation in order; those of subgraphs (branches, loops) at their place of use.

    An operation is an overload of any namespace, not a Python function such as `getitem`. Operations that torch
    wraps to keep the graph functional are unwrapped.
    """
    for node in graph_module.graph.nodes:
        if node.op != "call_function":
            continue
        if isinstance(node.target, torch._ops.OpOverload):
            yield node, call_of(node, node.target, node.args, dict(node.kwargs), graph_module)
        elif isinstance(node.target, torch._ops.HigherOrderOperator):
            yield from _within(node, graph_module)


def _within(node: Node, graph_module: torch.fx.GraphModule) -> Iterator[tuple[Node, Call]]:
    """The operations within a node: the one that it wraps, or those of its subgraphs."""
    wrapped = next((each for each in node.args if isinstance(each, torch._ops.OpOverload)), None)
    if wrapped is not None:
        args = node.args[node.args.index(wrapped) + 1 :]
        yield node, call_of(node, wrapped, args, dict(node.kwargs), graph_module)
    for used in node.all_input_nodes:
        if used.op == "get_attr":
            part = operator.attrgetter(str(used.target))(graph_module)
            if isinstance(part, torch.fx.GraphModule):
                yield from operations(part)


def call_of(
    node: Node, op: torch._ops.OpOverload, args: Any, kwargs: dict[str, Any], graph_module: torch.fx.GraphModule
) -> Call:
    """A node as a call with concrete sizes."""

    def value_of(item: Any) -> Any:
        return value(item, graph_module) if isinstance(item, Node) else item

    return Call(
        op,
        concrete(mapped(tuple(args), value_of)),
        concrete(mapped(kwargs, value_of)),
        concrete(node.meta.get("val")),
        source_line(node),
        _module(node),
    )


def value(node: Node, graph_module: torch.fx.GraphModule) -> Any:
    """The value of a node: a fake tensor, a number, a constant."""
    if "val" in node.meta:
        return node.meta["val"]
    if node.op == "get_attr":
        return operator.attrgetter(str(node.target))(graph_module)
    return None


def _module(node: Node) -> str:
    """The module of an operation; for a backward operation, that of the forward operation it differentiates."""
    if node.meta.get("nn_module_stack"):
        return module_path(node)
    stack = node.meta.get("fwd_nn_module_stack")
    return module_path(_Stacked(stack)) if stack else ""  # type: ignore[arg-type]


class _Stacked:
    """Looks like a node of the forward graph to `module_path`."""

    def __init__(self, stack: Any) -> None:
        self.meta = {"nn_module_stack": stack}


# -- the name of a model ----------------------------------------------------------------------------------------------

UNNAMED = "model"


def model_name(graph_module: torch.fx.GraphModule) -> str:
    """The class of the model that is being compiled, if it can be determined; `"model"` for a function.

    Dynamo's graph names the modules inside the model but not the model itself, which is found on the call stack.
    """
    called = _called_module()
    if called is not None:
        return type(called).__name__
    for node in graph_module.graph.nodes:
        for _, kind in (node.meta.get("nn_module_stack") or {}).values():
            return getattr(kind, "__name__", str(kind).rpartition(".")[2])
    return UNNAMED


def _called_module() -> torch.nn.Module | None:
    """The outermost module being called, without the wrapper of `torch.compile`."""
    outermost = None
    frame = sys._getframe(1)
    while frame is not None:
        owner = frame.f_locals.get("self")
        if isinstance(owner, torch._dynamo.eval_frame.OptimizedModule):
            break
        if isinstance(owner, torch.nn.Module) and not isinstance(owner, torch.fx.GraphModule):
            outermost = owner
        frame = frame.f_back  # type: ignore[assignment]
    return outermost
