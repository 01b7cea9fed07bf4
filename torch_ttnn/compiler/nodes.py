"""Nodes of FX graphs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch.fx

PLACE = "place"  # in a node's meta: where what it was made of stands in the captured graph


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
