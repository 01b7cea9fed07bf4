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
_ORDERS = frozenset({getattr(aten, name).Tensor for name in ("ge", "gt", "le", "lt")})
_LARGEST = (aten.topk.default, aten.max.dim)


def _index_of_scatter(node: torch.fx.Node, scored: torch.fx.Node) -> Any:
    return node.args[2]


def _index_of_gather(node: torch.fx.Node, scored: torch.fx.Node) -> Any:
    """Of scores as many as were scored; what else is gathered has an order that can be seen."""
    return node.args[2] if _shape(node.args[0]) == _shape(scored) else None


def _index_of_lookup(node: torch.fx.Node, scored: torch.fx.Node) -> Any:
    """In weights, of which each place that was scored has its own."""
    table: Any = node.args[0]
    indices: Any = node.args[1]
    is_weight = table.op in ("placeholder", "get_attr") and len(_shape(table)) > 1
    return indices[0] if is_weight and len(indices) == 1 and _shape(table)[0] == _shape(scored)[-1] else None


def _shape(node: Any) -> tuple[int, ...]:
    return tuple(node.meta["val"].shape)


# The index by which these look up or write, if all it does is to route.
_BY_INDEX = {
    aten.gather.default: _index_of_gather,
    aten.scatter.src: _index_of_scatter,
    aten.scatter.value: _index_of_scatter,
    aten.scatter_add.default: _index_of_scatter,
    aten.index.Tensor: _index_of_lookup,
}


def routes(topk: torch.fx.Node) -> bool:
    """Whether a choice of the largest scores only decides which of the places that were scored take part."""
    scored: Any = topk.args[0]
    if not _are_scores(scored):
        return False
    indices = [user for user in topk.users if user.target is operator.getitem and user.args[1] == 1]
    return bool(indices) and all(_only_routes(each, scored) for each in indices)


def is_score(node: torch.fx.Node) -> bool:
    """Whether a value, as it is or by a function of it, is what a router chooses by: digits that are rounded off would
    make equal what is not."""
    seen, stack, chooses = {node}, [node], False
    while stack:
        for user in stack.pop().users:
            if user.target in _COMPARISONS or user.target in _ORDERS:  # with something that is rounded
                return False
            chooses |= user.target is aten.topk.default and routes(user)
            goes_on = user.target in _KEEPS_APART or user.target in _SCORED_BY or _is_largest(user)
            if user not in seen and (goes_on or user.target is aten.topk.default):
                seen.add(user)
                stack.append(user)
    return chooses


def _is_largest(node: torch.fx.Node) -> bool:
    """Whether these are the largest values, and not where they are."""
    if node.target is not operator.getitem or node.args[1] != 0:
        return False
    source: Any = node.args[0]
    return source.target in _LARGEST


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


def _only_routes(indices: torch.fx.Node, scored: torch.fx.Node) -> bool:
    for user in indices.users:
        target = user.target
        if target in _SEEN_OTHERWISE:
            if not _only_routes(user, scored):
                return False
        elif target in _BY_INDEX:
            if _BY_INDEX[target](user, scored) is not indices:
                return False
        elif target not in _COMPARISONS:
            return False
    return True
