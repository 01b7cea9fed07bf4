"""Recognises `topk` calls that only route: to experts, groups of experts, or keys of an attention.

Among equal values torch may choose any ("the indices of tied elements are not guaranteed to be stable", torch.topk),
and the device may choose others. Where results expose the difference, the choice stays on the host. A router's scores
are sums of products, or strictly monotonic functions of them, so two are equal only by chance, or if they differ by
less than a rounding; either choice is then equally valid.
"""

from __future__ import annotations

import operator
from typing import Any

import torch
import torch.fx

from torch_ttnn.compiler.fusion import composites
from torch_ttnn.compiler.fusion.nodes import ADD, CASTS, DIV, MUL, SOFTMAXES, SQUEEZES, SUB, VIEWS

aten = torch.ops.aten

# Sources of scores: products, and functions of them that keep different values different.
_SCORES = frozenset(
    {aten.mm.default, aten.addmm.default, aten.bmm.default, aten.baddbmm.default, *SOFTMAXES,
     aten._log_softmax.default, aten.sigmoid.default, composites.scale_mask_softmax}
)  # fmt: skip
_SCORED_BY = frozenset({*SOFTMAXES, aten._log_softmax.default, aten.sigmoid.default, composites.scale_mask_softmax})
_KEEPS_DISTINCT = frozenset(
    {*ADD, *SUB, *MUL, *DIV, *CASTS, *VIEWS, *SQUEEZES, aten.clone.default, aten.masked_fill.Scalar,
     aten.masked_fill.Tensor, aten.where.self, aten.where.ScalarSelf, aten.where.ScalarOther, aten.sum.dim_IntList,
     aten.tanh.default, aten.slice.Tensor, aten.transpose.int, aten.permute.default, aten.amax.default}
)  # fmt: skip
_REARRANGED = frozenset({*VIEWS, *SQUEEZES, *CASTS, aten.clone.default, aten.expand.default, aten.slice.Tensor,
                         aten.select.int, aten.transpose.int, aten.permute.default, aten.t.default,
                         aten.split.Tensor, operator.getitem})  # fmt: skip
_COMPARISONS = frozenset({aten.eq.Tensor, aten.eq.Scalar, aten.ne.Tensor, aten.ne.Scalar, aten.one_hot.default})
_ORDERS = frozenset({getattr(aten, name).Tensor for name in ("ge", "gt", "le", "lt")})
# Operations that select elements of a value, with or without their indices. The device keeps their full precision.
_SELECTED = frozenset({*VIEWS, *SQUEEZES, aten.clone.default, aten.expand.default, aten.slice.Tensor, aten.select.int,
                       aten.transpose.int, aten.permute.default, aten.t.default, aten.amax.default, aten.amin.default,
                       aten.max.default, aten.min.default, aten.gather.default, aten.index.Tensor,
                       aten.index_select.default, aten.median.default})  # fmt: skip
_SELECTED_WITH_INDICES = frozenset({aten.topk.default, aten.sort.default, aten.sort.stable, aten.max.dim, aten.min.dim,
                                    aten.kthvalue.default, aten.median.dim, aten.mode.default})  # fmt: skip
_MAY_STAY_ON_HOST = frozenset({aten.gather.default, aten.index.Tensor, aten.index_select.default, aten.median.default})
_LARGEST = (aten.topk.default, aten.max.dim)


def _index_of_scatter(node: torch.fx.Node, scored: torch.fx.Node) -> Any:
    return node.args[2]


def _index_of_gather(node: torch.fx.Node, scored: torch.fx.Node) -> Any:
    """From as many scores as were ranked; gathering anything else exposes the order."""
    return node.args[2] if _shape(node.args[0]) == _shape(scored) else None


def _index_of_lookup(node: torch.fx.Node, scored: torch.fx.Node) -> Any:
    """Into weights, with one entry per ranked position."""
    table: Any = node.args[0]
    indices: Any = node.args[1]
    is_weight = table.op in ("placeholder", "get_attr") and len(_shape(table)) > 1
    return indices[0] if is_weight and len(indices) == 1 and _shape(table)[0] == _shape(scored)[-1] else None


def _shape(node: Any) -> tuple[int, ...]:
    return tuple(node.meta["val"].shape)


# The index argument of lookups and writes, if it is only used for routing.
_BY_INDEX = {
    aten.gather.default: _index_of_gather,
    aten.scatter.src: _index_of_scatter,
    aten.scatter.value: _index_of_scatter,
    aten.scatter_add.default: _index_of_scatter,
    aten.index.Tensor: _index_of_lookup,
}


def routes(topk: torch.fx.Node) -> bool:
    """Whether a `topk` only decides which of the ranked positions take part."""
    scored: Any = topk.args[0]
    if not _are_scores(scored):
        return False
    indices = [user for user in topk.users if user.target is operator.getitem and user.args[1] == 1]
    return bool(indices) and all(_only_routes(each, scored) for each in indices)


def is_score(node: torch.fx.Node) -> bool:
    """Whether a router ranks by a value or a function of it, with `topk` or by comparison with its own elements.

    Rounding such a value would make different scores equal.
    """
    seen, stack, chooses = {node}, [node], False
    while stack:
        for user in stack.pop().users:
            if user.target in _COMPARISONS or user.target in _ORDERS:
                if not _compares_with_own_elements(user):  # the other side is rounded
                    return False
                chooses = True
            chooses |= user.target is aten.topk.default and routes(user)
            continues = user.target in _KEEPS_DISTINCT or user.target in _SCORED_BY or _is_largest(user)
            if user not in seen and (continues or user.target is aten.topk.default):
                seen.add(user)
                stack.append(user)
    return chooses


def _compares_with_own_elements(node: torch.fx.Node) -> bool:
    """Whether a value is compared with elements of itself, as in `p >= topk(p, k).values[..., -1:]`."""
    if len(node.args) != 2 or not all(_is_float(each) for each in node.args):
        return False
    one, other = [_selected_from(each) for each in node.args]
    return one is other


def _selected_from(node: Any) -> torch.fx.Node:
    """The value from which these elements were selected unchanged.

    Elements that the host selects are uploaded in full precision if they are compared directly or through a view. A
    part sliced on the device is rounded, and so no longer counts as selected.
    """
    is_cut = False
    while node.target in _SELECTED or _is_selection(node):
        source = node.args[0]
        if is_cut and (node.target in _MAY_STAY_ON_HOST or (_is_selection(node) and _may_stay_on_host(source))):
            break
        is_cut |= node.target not in VIEWS and node.target not in SQUEEZES and not _is_selection(node)
        node = source.args[0] if _is_selection(node) else source
    return node


def _may_stay_on_host(node: torch.fx.Node) -> bool:
    """Whether a selection with indices may fall back to the host: unsupported on the device, or with other ties."""
    if node.target not in (aten.topk.default, aten.sort.default, aten.sort.stable):
        return node.target not in (aten.max.dim, aten.min.dim)
    reads_indices = any(user.target is operator.getitem and user.args[1] == 1 for user in node.users)
    return reads_indices and not (node.target is aten.topk.default and routes(node))


def _is_selection(node: torch.fx.Node) -> bool:
    """Whether it is the first of two results, the second being the indices of its elements."""
    if node.target is not operator.getitem or node.args[1] != 0:
        return False
    source: Any = node.args[0]
    return source.target in _SELECTED_WITH_INDICES


def _is_largest(node: torch.fx.Node) -> bool:
    """Whether these are the largest values, not their indices."""
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
        elif node.target in _KEEPS_DISTINCT:
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
        if target in _REARRANGED:
            if not _only_routes(user, scored):
                return False
        elif target in _BY_INDEX:
            if _BY_INDEX[target](user, scored) is not indices:
                return False
        elif target not in _COMPARISONS:
            return False
    return True
