"""Calls that compute the new value of an input from its old one, and may write the part that changes over it."""

from __future__ import annotations

from collections.abc import Mapping

import torch.fx


def overwriting(graph: torch.fx.Graph, written: Mapping[int, int]) -> dict[torch.fx.Node, int]:
    """The calls whose result is the new value of their first argument, an input that nothing else reads.

    `written` has the index of the input for each result that is a new value. Each call gets the index of its input.
    """
    outputs: tuple = graph.output_node().args[0]  # type: ignore[assignment]
    placeholders = graph.find_nodes(op="placeholder")
    found: dict[torch.fx.Node, int] = {}
    for result, number in written.items():
        node, old = outputs[result], placeholders[number]
        if not isinstance(node, torch.fx.Node) or node.op != "call_function":
            continue
        if node.args[:1] == (old,) and list(old.users) == [node] and _reads(node).count(old) == 1:
            found[node] = number
    return found


def _reads(node: torch.fx.Node) -> list[torch.fx.Node]:
    """The nodes among the arguments of a call, as often as they are there."""
    read: list[torch.fx.Node] = []
    torch.fx.node.map_arg((node.args, node.kwargs), read.append)
    return read
