"""Merges the products for queries, keys and values of one attention, where they have the same input."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Any

import torch

from torch_ttnn.compiler.fusion import composites
from torch_ttnn.compiler.fusion.attention import ATTENTION, FLASH
from torch_ttnn.compiler.fusion.matcher import Match, Op, Tensor
from torch_ttnn.compiler.fusion.nodes import (
    CASTS,
    DIV,
    MUL,
    SQUEEZES,
    TRANSPOSES,
    VIEWS,
    Node,
    dtype_of,
    number_of,
    shape_of,
    skip_no_ops,
    source_of,
)
from torch_ttnn.compiler.fusion.rewriting import Rewriter
from torch_ttnn.compiler.fusion.rule import Fusion

aten = torch.ops.aten

PATTERN = Op((ATTENTION, FLASH), Tensor("q"), Tensor("k"), Tensor("v"), rest="settings",
             optional=("attn_mask", "scale", "enable_gqa"))  # fmt: skip

# Calls allowed between a projection and its attention, besides factors and per-head norms.
_MOVES = frozenset({*VIEWS, *SQUEEZES, *TRANSPOSES, *CASTS, aten.clone.default, aten.expand.default})
PRODUCTS = (aten.mm.default, aten.addmm.default)
NORMS = frozenset({aten.native_layer_norm.default, aten._fused_rms_norm.default})


def projected_from(node: Node) -> Node | None:
    """The input of a call that only moves, scales, normalises or rotates a projection."""
    before = source_of(node) if node.op == "call_function" else None
    if not isinstance(before, Node):
        return None
    if node.target in _MOVES or node.target is composites.rotary_embedding:
        return before
    if node.target in (*MUL, *DIV):
        return before if number_of(node.args[1]) is not None else None
    if node.target is operator.getitem and node.args[1] == 0 and before.target in NORMS:
        return source_of(before)
    return None


@dataclass(frozen=True)
class Projection:
    """x @ weight + bias, with static weights."""

    node: Node
    x: Node
    weight: Node
    bias: Node | None


def projection_of(rewriter: Rewriter, node: Node | None) -> Projection | None:
    while node is not None and node.target not in PRODUCTS:
        node = projected_from(node)
    if node is None or node.kwargs:
        return None
    bias: Any
    x: Any
    weight: Any
    bias, x, weight = (None, *node.args) if node.target is aten.mm.default else node.args
    if not rewriter.is_static(weight) or not rewriter.is_static(bias) or rewriter.is_static(x):
        return None
    if bias is not None and shape_of(bias) != shape_of(weight)[1:]:
        return None
    return Projection(node, skip_no_ops(x), weight, bias)


def siblings(rewriter: Rewriter, match: Match) -> list[Projection]:
    """The largest group of projections of one input that feed this attention, in the order q, k, v."""
    groups: dict[Node, list[Projection]] = {}
    for name in ("q", "k", "v"):
        found = projection_of(rewriter, match[name])
        if found is not None:
            group = groups.setdefault(found.x, [])
            if all(each.node is not found.node for each in group):
                group.append(found)
    return max(groups.values(), key=len, default=[])


def _project(rewriter: Rewriter, match: Match) -> Node | None:
    group = siblings(rewriter, match)
    if len(group) < 2 or len({dtype_of(each.weight) for each in group}) > 1:
        return None
    first = rewriter.anchor = min([each.node for each in group])
    for each in group:
        rewriter.hoist_before(each.weight, first)
        rewriter.hoist_before(each.bias, first)
    x, dtype = group[0].node.args[-2], dtype_of(group[0].weight)
    rows, _ = shape_of(group[0].weight)
    widths = [shape_of(each.weight)[1] for each in group]
    total = sum(widths)
    weight = rewriter.call(aten.cat.default, [each.weight for each in group], 1, val=((rows, total), dtype))
    result = (shape_of(group[0].node)[0], total), dtype
    if all(each.bias is None for each in group):
        merged = rewriter.call(aten.mm.default, x, weight, val=result)
    else:
        biases = [each.bias or _zeros(rewriter, width, dtype) for each, width in zip(group, widths)]
        bias = rewriter.call(aten.cat.default, biases, 0, val=((total,), dtype))
        merged = rewriter.call(aten.addmm.default, bias, x, weight, val=result)
    pieces = rewriter.call(
        aten.split_with_sizes.default, merged, widths, 1, val=[((result[0][0], width), dtype) for width in widths]
    )
    items = [rewriter.item(pieces, index) for index in range(len(group))]
    for each, item in zip(group, items):
        rewriter.replace(each.node, item)
    return match.root


def _zeros(rewriter: Rewriter, width: int, dtype: torch.dtype) -> Node:
    return rewriter.call(aten.full.default, [width], 0.0, dtype=dtype, val=((width,), dtype))


FUSIONS = (Fusion("one product for queries, keys and values", PATTERN, _project),)
