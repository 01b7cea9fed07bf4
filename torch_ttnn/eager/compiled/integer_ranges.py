"""Bounds of integers that a program returns or writes, from those of its inputs: they need not be downloaded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
import torch.fx

from torch_ttnn.compiler.analysis.index_bounds import INT32, Bounds
from torch_ttnn.compiler.analysis.ranges import Range, Ranges
from torch_ttnn.eager.tensor import TtnnTensor


def result_bounds(
    graph_module: torch.fx.GraphModule, results: Mapping[int, torch.fx.Node], inputs: Sequence[Any]
) -> dict[int, Bounds]:
    """The bounds of results, as far as they follow from what is known of the inputs."""
    known: dict[torch.fx.Node, Range] = {}
    for node, item in zip(graph_module.graph.find_nodes(op="placeholder"), inputs):
        bounds = item._held.known_bounds if isinstance(item, TtnnTensor) else None
        if bounds is not None:
            known[node] = Range(*bounds)
    ranges = Ranges(known, lambda node: _constant(graph_module, node), lambda node: node.op == "get_attr")
    found = {place: ranges(node) for place, node in results.items()}
    return {
        place: Bounds(int(each.low), int(each.high))
        for place, each in found.items()
        if each.low >= INT32.low and each.high <= INT32.high
    }


def _constant(graph_module: torch.fx.GraphModule, node: torch.fx.Node) -> torch.Tensor | None:
    return getattr(graph_module, str(node.target), None) if node.op == "get_attr" else None
