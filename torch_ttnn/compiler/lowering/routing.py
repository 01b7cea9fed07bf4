"""Which choices of the largest scores route: to experts, groups of experts, keys of an attention.

Of equal values torch chooses any ("the indices of tied elements are not guaranteed to be stable", torch.topk), and the
device chooses others. Where that can be seen in results, the choice stays on the host. A router's scores are sums of
products and functions of them that rise or fall strictly, so that two are equal by chance only, or because they are as
far apart as a rounding; either choice is then as good.
"""

from __future__ import annotations

import operator
from typing import Any

import torch
import torch.fx

from torch_ttnn.compiler.fusion import composites
from torch_ttnn.compiler.fusion.nodes import ADD, CASTS, DIV, MUL, SOFTMAXES, SQUEEZES, SUB, VIEWS

aten = torch.ops.aten

# Where scores come from: products, and functions of them under which different values stay different.
_SCORES = frozenset(
    {aten.mm.default, aten.addmm.default, aten.bmm.default, aten.baddbmm.default, *SOFTMAXES,
     aten._log_softmax.default, aten.sigmoid.default, composites.scale_mask_softmax}
)  # fmt: skip
_SCORED_BY = frozenset({*SOFTMAXES, aten._log_softmax.default, aten.sigmoid.default, composites.scale_mask_softmax})
_KEEPS_APART = frozenset(
    {*ADD, *SUB, *MUL, *DIV, *CASTS, *VIEWS, *SQUEEZES, aten.clone.default, aten.masked_fill.Scalar,
     aten.masked_fill.Tensor, aten.where.self, aten.where.ScalarSelf, aten.where.ScalarOther, aten.sum.dim_IntList,
     aten.tanh.default, aten.slice.Tensor, aten.transpose.int, aten.permute.default, aten.amax.default}
)  # fmt: skip
_SEEN_OTHERWISE = frozenset({*VIEWS, *SQUEEZES, *CASTS, aten.clone.default, aten.expand.default, aten.slice.Tensor,
                             aten.select.int, aten.transpose.int, aten.permute.default, aten.t.default,
                             aten.split.Tensor, operator.getitem})  # fmt: skip
_COMPARISONS = frozenset({aten.eq.Tensor, aten.eq.Scalar, aten.ne.Tensor, aten.ne.Scalar, aten.one_hot.default})
_LARGEST = (aten.topk.default, aten.max.dim)
_BY_INDEX = {
    aten.gather.default: 2,
    aten.scatter.src: 2,
    aten.scatter.value: 2,
    aten.scatter_add.default: 2,
}


def routes(topk: torch.fx.Node) -> bool:
    """Whether a choice of the largest scores only decides which of the places that were scored take part."""
    scored: Any = topk.args[0]
    if not _are_scores(scored):
        return False
    indices = [user for user in topk.users if user.target is operator.getitem and user.args[1] == 1]
    return all(_only_routes(each) for each in indices)


def is_score(node: torch.fx.Node) -> bool:
    """Whether a value, as it is or by a function of it, is what a router chooses by: digits that are rounded off would
    make equal what is not."""
    seen, stack = {node}, [node]
    while stack:
        for user in stack.pop().users:
            if user.target is aten.topk.default and routes(user):
                return True
            goes_on = user.target in _KEEPS_APART or user.target in _SCORED_BY or _is_largest(user)
            if user not in seen and (goes_on or user.target is aten.topk.default):
                seen.add(user)
                stack.append(user)
    return False


def _is_largest(node: torch.fx.Node) -> bool:
    """Whether these are the largest values, and not where they are."""
    return node.target is operator.getitem and node.args[1] == 0 and node.args[0].target in _LARGEST  # type: ignore[union-attr]


def _are_scores(node: Any) -> bool:
    while isinstance(node, torch.fx.Node):
        if node.target in _SCORES:
            return True
        if node.target is composites.linear:
            return node.args[3] in ("sigmoid", "tanh")
        if _is_largest(node):
            node = node.args[0].args[0]  # type: ignore[union-attr]
        elif node.target in _KEEPS_APART:
            node = next((each for each in node.args if _is_float(each)), None)
        else:
            return False
    return False


def _is_float(item: Any) -> bool:
    val = item.meta.get("val") if isinstance(item, torch.fx.Node) else None
    return isinstance(val, torch.Tensor) and val.is_floating_point()


def _only_routes(indices: torch.fx.Node) -> bool:
    for user in indices.users:
        if user.target in _SEEN_OTHERWISE:
            if not _only_routes(user):
                return False
        elif user.target in _BY_INDEX:
            if len(user.args) <= _BY_INDEX[user.target] or user.args[_BY_INDEX[user.target]] is not indices:
                return False
        elif user.target not in _COMPARISONS:
            return False
    return True
