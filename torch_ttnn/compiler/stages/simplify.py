"""The stage `simplify`: removes conversions that cancel, merges chains of them, and deduplicates them.

Lowerings ask for the layout, dtype and order of dimensions that they need. Where one returns what the next asks for, no
conversion is needed between them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.fx

from torch_ttnn.compiler.ir.arguments import frozen
from torch_ttnn.compiler.ir.metadata import MOVE, PATH, REASON, SPEC, Move, annotate
from torch_ttnn.compiler.ir.nodes import drop_dead_code
from ttnn_emulator import DataType

Rule = Callable[[torch.fx.Node], "torch.fx.Node | None"]


def simplify(graph: torch.fx.Graph) -> int:
    """Simplify a main graph in place; returns the number of nodes removed."""
    before = len(graph.nodes)
    _merge_twins(graph)
    changed = True
    while changed:
        changed = False
        for node in list(graph.nodes):
            rule = RULES.get(PATH.get(node))
            other = rule(node) if rule is not None and node.users else None
            if other is not None and other is not node:
                node.replace_all_uses_with(other)
                changed = True
        _merge_twins(graph)
        drop_dead_code(graph)
    return before - len(graph.nodes)


def _merge_twins(graph: torch.fx.Graph) -> None:
    seen: dict[Any, torch.fx.Node] = {}
    for node in graph.nodes:
        if node.op != "call_function" or REASON.on(node) or _is_clone(node):
            continue  # a clone must stay a separate tensor
        if MOVE.get(node) is Move.RANDOM_STATE:
            continue  # each call draws another seed
        key = PATH.get(node) or node.target, frozen(node.args, _itself), frozen(node.kwargs, _itself)
        try:
            first_equal = seen.setdefault(key, node)
        except TypeError:  # an argument that cannot be compared
            continue
        if first_equal is not node:
            node.replace_all_uses_with(first_equal)


def _is_clone(node: torch.fx.Node) -> bool:
    return node.target is torch.ops.aten.clone.default or PATH.get(node) == "ttnn.clone"


def _itself(node: torch.fx.Node) -> torch.fx.Node:
    return node


def _source(node: torch.fx.Node) -> torch.fx.Node:
    return node.args[0]  # type: ignore[return-value]


def _spec(node: torch.fx.Node) -> Any:
    return SPEC[node].spec


def _same_kind(rule_path: str) -> Rule:
    """A rule that merges two conversions of one kind into one, or none."""

    def rule(node: torch.fx.Node) -> torch.fx.Node | None:
        inner = _source(node)
        if _spec(inner) == _spec(node):
            return inner
        if PATH.get(inner) != rule_path:
            return None
        first = _source(inner)
        if _spec(first) == _spec(node):
            return first
        node.args = (first, *node.args[1:])
        return node

    return rule


def _typecast(node: torch.fx.Node) -> torch.fx.Node | None:
    """Removes a cast back if the first cast was lossless, and lets products write float32 directly."""
    inner = _source(node)
    if _spec(inner) == _spec(node):
        return inner
    if PATH.get(inner) == "ttnn.typecast":
        first = _source(inner)
        if _spec(first) == _spec(node) and (_spec(first).dtype, _spec(inner).dtype) in _WIDENING:
            return first
    if PATH.get(inner) in _PRODUCTS and len(inner.users) == 1 and _is_widened(inner, node):
        inner.kwargs = {**inner.kwargs, "dtype": DataType.FLOAT32}  # type: ignore[dict-item]
        annotate(inner, spec=SPEC[node])
        return inner
    return None


def _is_widened(inner: torch.fx.Node, node: torch.fx.Node) -> bool:
    """Whether a product, accumulated in float32, is rounded to bfloat16 only to be cast to float32."""
    return _spec(inner).dtype is DataType.BFLOAT16 and _spec(node) == _spec(inner).with_(dtype=DataType.FLOAT32)


def _permute(node: torch.fx.Node) -> torch.fx.Node | None:
    """Merges two permutations into one, and removes the identity."""
    inner = _source(node)
    order = list(node.args[1])  # type: ignore[arg-type]
    if order == sorted(order):
        return inner
    if PATH.get(inner) == "ttnn.permute" and len(node.args) == len(inner.args) == 2:
        earlier = list(inner.args[1])  # type: ignore[arg-type]
        both = [earlier[axis] for axis in order]
        if both == sorted(both):
            return _source(inner)
        if len(inner.users) == 1:
            node.args = (_source(inner), both)
    return None


def _download(node: torch.fx.Node) -> torch.fx.Node | None:
    """Skips conversions that a download does not need: the host reads tiles as well as rows.

    A float32 need not be rounded before it is downloaded as float32.
    """
    inner = _source(node)
    rounds = node.kwargs.get("dtype") is torch.float32 and PATH.get(inner) == "ttnn.typecast"
    needless = rounds and _spec(_source(inner)).dtype is DataType.FLOAT32
    if PATH.get(inner) == "ttnn.to_layout" or needless:
        node.args = (_source(inner), *node.args[1:])
        return node
    return None


# Lossless casts: (from, to).
_WIDENING = {
    (DataType.BFLOAT16, DataType.FLOAT32),
    (DataType.UINT16, DataType.INT32),
    (DataType.UINT8, DataType.INT32),
    (DataType.INT32, DataType.UINT32),
    (DataType.UINT32, DataType.INT32),
}
_PRODUCTS = ("ttnn.linear", "ttnn.matmul")
RULES: dict[str | None, Rule] = {
    "ttnn.to_layout": _same_kind("ttnn.to_layout"),
    "ttnn.reshape": _same_kind("ttnn.reshape"),
    "ttnn.permute": _permute,
    "ttnn.typecast": _typecast,
    "ttnn.to_torch": _download,
}
