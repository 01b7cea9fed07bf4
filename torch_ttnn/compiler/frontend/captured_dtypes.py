"""Corrects wrong dtypes of torch's fake tensors to those that torch computes."""

from __future__ import annotations

import operator
from typing import Any

import torch
import torch.fx

from torch_ttnn.compiler.ir.arguments import call_with

aten = torch.ops.aten

# Index of a result: index of the argument whose dtype it has. Statistics have that of running statistics or weights.
RESULTS_LIKE: dict[Any, dict[int, int]] = {
    aten._native_batch_norm_legit_functional.default: {1: 3, 2: 3, 3: 3, 4: 4},
    aten._native_batch_norm_legit.no_stats: {1: 1, 2: 1},
}


def correct(graph: torch.fx.Graph) -> None:
    """Correct `meta["val"]` of the operations above, and of all values computed from them."""
    changed: set[torch.fx.Node] = set()
    for node in graph.nodes:
        if node.target in RESULTS_LIKE:
            val = _corrected(node)
        elif node.op == "call_function" and not changed.isdisjoint(node.all_input_nodes):
            val = _computed(node)
        else:
            continue
        if _dtypes(val) != _dtypes(node.meta["val"]):
            node.meta["val"] = val
            changed.add(node)


def _corrected(node: torch.fx.Node) -> tuple[Any, ...]:
    vals = list(node.meta["val"])
    for number, like in RESULTS_LIKE[node.target].items():
        argument = node.args[like]
        if isinstance(argument, torch.fx.Node) and isinstance(vals[number], torch.Tensor):
            vals[number] = vals[number].to(argument.meta["val"].dtype)
    return tuple(vals)


def _computed(node: torch.fx.Node) -> Any:
    def val_of(item: Any) -> Any:
        return item.meta["val"] if isinstance(item, torch.fx.Node) else item

    target: Any = node.target
    if target is operator.getitem:
        source, number = node.args
        return source.meta["val"][number]  # type: ignore[union-attr, index]
    return call_with(target, node.args, node.kwargs, val_of)


def _dtypes(val: Any) -> list[Any]:
    items = val if isinstance(val, tuple | list) else [val]
    return [getattr(each, "dtype", None) for each in items]
