"""Ranges of values that matter only where a condition holds: in `where(x < 16, x, f(x))`, f gets 16 and above.

The elements that `where` does not select may be anything: their integers may wrap around.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.fx

from torch_ttnn.compiler.analysis.ranges.propagation import RULES, Range, Ranges, rule

aten = torch.ops.aten

SELECTIONS = (aten.where.self, aten.where.ScalarOther, aten.where.ScalarSelf, aten.where.Scalar)
# Operations that read no values of their first argument, only its shape.
SHAPED_LIKE = {aten.full_like.default, aten.zeros_like.default, aten.ones_like.default, aten.empty_like.default}
# Operations in which each element of the result depends on the elements at its position.
ELEMENTWISE = SHAPED_LIKE | {
    *SELECTIONS, aten._to_copy.default, aten.to.dtype, torch.ops.prims.convert_element_type.default,
    aten.clone.default, aten.alias.default, aten.detach.default, aten.add.Tensor, aten.add.Scalar, aten.sub.Tensor,
    aten.sub.Scalar, aten.rsub.Scalar, aten.rsub.Tensor, aten.mul.Tensor, aten.mul.Scalar, aten.square.default,
    aten.neg.default, aten.abs.default, aten.sign.default, aten.relu.default, aten.pow.Tensor_Scalar,
    aten.div.Tensor, aten.div.Scalar, aten.maximum.default, aten.minimum.default, aten.clamp.default,
    aten.clamp.Tensor, aten.clamp_min.default, aten.clamp_max.default, aten.masked_fill.Scalar,
    aten.masked_fill.Tensor, aten.log.default, aten.log2.default, aten.log10.default, aten.sqrt.default,
    aten.exp.default, aten.floor.default, aten.ceil.default, aten.round.default, aten.trunc.default,
}  # fmt: skip
# What a comparison says if it holds, and if it does not: how the left side relates to the right one.
RELATIONS: dict[Any, tuple[str, str]] = {
    **dict.fromkeys((aten.lt.Scalar, aten.lt.Tensor), ("<", ">=")),
    **dict.fromkeys((aten.le.Scalar, aten.le.Tensor), ("<=", ">")),
    **dict.fromkeys((aten.gt.Scalar, aten.gt.Tensor), (">", "<=")),
    **dict.fromkeys((aten.ge.Scalar, aten.ge.Tensor), (">=", "<")),
}

Facts = dict[torch.fx.Node, Range]
Arm = tuple[torch.fx.Node, int]  # a selection, and the argument that it selects from


class Assumed(Ranges):
    """The ranges of elements for which something is known of others at the same position."""

    def __init__(self, others: Ranges, facts: Facts) -> None:
        super().__init__(facts, others._constant_of, others.is_static)
        self._others = others

    def _found(self, node: torch.fx.Node, output: int) -> Range:
        usual = self._others(node, output)
        if node.target not in ELEMENTWISE or self.is_static(node):
            return usual
        return _both(usual, super()._found(node, output)) or usual


def where(selection: torch.fx.Node, arm: int, ranges: Ranges) -> Ranges:
    """The ranges of the elements that `where` selects from its argument `arm`: 1 if the condition holds, else 2."""
    condition: Any = selection.args[0]
    if isinstance(ranges, Assumed) or not isinstance(condition, torch.fx.Node):
        return ranges
    facts = _facts(condition, arm == 1, ranges)
    return Assumed(ranges, facts) if facts else ranges


def where_read(node: torch.fx.Node, ranges: Ranges) -> Ranges:
    """The ranges of the elements of a node that are read in the end."""
    found = _selections_of(node, {})
    only = found.pop() if len(found) == 1 else None
    return ranges if only is None else where(*only, ranges)


def _selections_of(node: torch.fx.Node, known: dict[torch.fx.Node, set[Arm | None]]) -> set[Arm | None]:
    """The arms of `where` that read a node, perhaps through elementwise operations; None stands for other readers."""
    if node in known:
        return set(known[node])
    found: set[Arm | None] = set()
    for user in node.users:
        if user.target in SHAPED_LIKE:
            continue
        arms = [number for number, each in enumerate(user.args) if each is node]
        if user.target in SELECTIONS and len(arms) == 1 and arms[0] > 0:
            found.add((user, arms[0]))
        else:
            found |= _selections_of(user, known) if user.target in ELEMENTWISE else {None}
    known[node] = found or {None}
    return set(known[node])


def _facts(condition: torch.fx.Node, holds: bool, ranges: Ranges) -> Facts:
    """What a comparison of integers says of its two sides."""
    if condition.target not in RELATIONS:
        return {}
    relation = RELATIONS[condition.target][not holds]
    left, right = condition.args[:2]
    if not (_is_whole(left) and _is_whole(right)):
        return {}
    if relation.startswith(">"):
        left, right, relation = right, left, relation.replace(">", "<")
    step = 1 if relation == "<" else 0
    below, above = ranges(left), ranges(right)
    found: Facts = {}
    for side, known, limit in (
        (left, below, Range(below.low, above.high - step)),
        (right, above, Range(below.low + step, above.high)),
    ):
        narrowed = _both(known, limit)
        if isinstance(side, torch.fx.Node) and narrowed is not None:
            found[side] = narrowed
    return found


def _is_whole(item: Any) -> bool:
    val = item.meta.get("val") if isinstance(item, torch.fx.Node) else item
    if isinstance(val, torch.Tensor):
        return not (val.dtype.is_floating_point or val.dtype.is_complex)
    return isinstance(val, int)


def _both(one: Range, other: Range) -> Range | None:
    """The values in two ranges; None if there are none."""
    low, high = max(one.low, other.low), min(one.high, other.high)
    return Range(low, high) if low <= high else None


@rule(*SELECTIONS)
def _where(node: torch.fx.Node, ranges: Ranges) -> Range:
    return where(node, 1, ranges)(node.args[1]).joined(where(node, 2, ranges)(node.args[2]))


assert all(each in RULES or each in SHAPED_LIKE for each in ELEMENTWISE)
