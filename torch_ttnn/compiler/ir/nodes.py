"""Nodes of FX graphs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch.fx

from torch_ttnn.compiler.ir.arguments import leaves
from torch_ttnn.compiler.ir.metadata import CAPTURED, EFFECT


def drop_dead_code(graph: torch.fx.Graph) -> None:
    """Erase what nobody reads, unless it is run for its effect."""
    graph.eliminate_dead_code(lambda node: node.is_impure() or EFFECT.on(node))


def captured_val(node: torch.fx.Node) -> Any:
    """What torch has for a value: with its strides, which fusions do not keep."""
    captured = CAPTURED.get(node)
    return (captured if captured is not None else node).meta.get("val")


def captured_vals(node: torch.fx.Node) -> Iterator[Any]:
    """What torch's arguments of a call are, leaf by leaf: an operation may read memory, so that strides matter."""
    captured = CAPTURED.get(node)
    given = leaves((node.args, node.kwargs))
    if captured is not None and captured.target is node.target:
        theirs = leaves((captured.args, captured.kwargs))
        given = theirs if len(theirs) == len(given) else given
    for item in given:
        yield captured_val(item) if isinstance(item, torch.fx.Node) else item


def target_name(node: torch.fx.Node) -> str:
    """`aten.mm.default`, or the name of a fused operation."""
    return str(node.target) if isinstance(node.target, torch._ops.OpOverload) else node.target.__name__  # type: ignore[union-attr]


def call_node(
    graph: torch.fx.Graph,
    function: Callable[..., Any],
    args: tuple = (),
    kwargs: Mapping[str, Any] | None = None,
    name: str | None = None,
) -> torch.fx.Node:
    """A call where the graph's next node goes.

    Its arguments are given to it afterwards: `create_node` looks through them for symbolic sizes, of which our graphs
    have none, and takes half as long again for it.
    """
    node = graph.create_node("call_function", function, name=name)
    node.args = args
    if kwargs:
        node.kwargs = dict(kwargs)
    return node
