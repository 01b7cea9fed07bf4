"""Helpers for nodes of FX graphs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch.fx

from torch_ttnn.compiler.ir.arguments import leaves
from torch_ttnn.compiler.ir.metadata import CAPTURED, EFFECT


def drop_dead_code(graph: torch.fx.Graph) -> None:
    """Erase unused nodes, except those with side effects."""
    graph.eliminate_dead_code(lambda node: node.is_impure() or EFFECT.on(node))


def captured_val(node: torch.fx.Node) -> Any:
    """The captured fake tensor of a value: it has torch's strides, which fusions do not keep."""
    captured = CAPTURED.get(node)
    return (captured if captured is not None else node).meta.get("val")


def captured_vals(node: torch.fx.Node) -> Iterator[Any]:
    """The captured arguments of a call, leaf by leaf: strides matter to an operation that reads memory directly."""
    captured = CAPTURED.get(node)
    items = leaves((node.args, node.kwargs))
    if captured is not None and captured.target is node.target:
        theirs = leaves((captured.args, captured.kwargs))
        items = theirs if len(theirs) == len(items) else items
    for item in items:
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
    """Create a call at the graph's insertion point.

    Its arguments are set afterwards: `create_node` searches them for symbolic sizes, which our graphs do not have, and
    takes half as long again for it.
    """
    node = graph.create_node("call_function", function, name=name)
    node.args = args
    if kwargs:
        node.kwargs = dict(kwargs)
    return node
