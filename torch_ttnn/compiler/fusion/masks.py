"""Scale and masks of attention scores, in whatever order they are applied: one factor and one mask to add."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import partial

import torch

from torch_ttnn.compiler.fusion.matcher import Match
from torch_ttnn.compiler.fusion.nodes import CASTS, Node, is_float, shape_of
from torch_ttnn.compiler.fusion.rewriting import Rewriter
from torch_ttnn.compiler.ir.storage_order import matched_groups

aten = torch.ops.aten

# A fill at or below this hides a score whatever it was: adding it gives what replacing by it gives.
HIDES = -1e20


@dataclass(frozen=True)
class Mask:
    """One mask: added with a factor ("plus"), or a fill where it is true ("hidden") or false ("shown")."""

    kind: str
    node: Node
    shape: tuple[int, ...]  # of the scores when it was applied
    fill: float = 0.0
    factor: float = 1.0


@dataclass(frozen=True)
class Masks:
    """scale × scores + the sum of masks."""

    scale: float
    added: tuple[Mask, ...]


def masks_of(match: Match) -> Masks | None:
    """What the steps between the product and the softmax come to, or None if they are something else."""
    scale = 1.0
    added: list[Mask] = []
    product = match.nodes[-1]
    if match.get("added") is not None:
        scale = float(match.get("alpha", 1))
        added.append(Mask("plus", match["added"], shape_of(product), factor=float(match.get("beta", 1))))
    for name, node, bound in match.steps:
        if name == "seen":
            if node.target in CASTS and not is_float(node):
                return None
            continue
        if name in ("times", "over"):
            divisor = bound.get("divisor", 1)
            if divisor == 0:
                return None
            factor = float(bound.get("factor", 1)) / divisor
            scale *= factor
            added = [dataclasses.replace(mask, factor=mask.factor * factor) for mask in added]
        elif name == "plus":
            if not is_float(bound["mask"]):
                return None
            added.append(Mask("plus", bound["mask"], shape_of(node)))
        else:
            if bound["fill"] > HIDES:
                return None
            kind = "shown" if name == "where" else "hidden"
            added.append(Mask(kind, bound[kind], shape_of(node), fill=float(bound["fill"])))
    if any(mask.factor <= 0 for mask in added if mask.kind != "plus"):
        return None
    return Masks(scale, tuple([mask for mask in added if mask.factor != 0]))


def mask_node(rewriter: Rewriter, masks: Masks, scores: tuple[int, ...], dtype: torch.dtype) -> Node | None:
    """All masks as one, broadcast against scores of four dimensions; all layers of a model share it."""
    parts = [
        rewriter.once(("mask", mask, scores, dtype), partial(_made_mask, rewriter, mask, scores, dtype))
        for mask in masks.added
    ]
    if not parts:
        return None
    total = parts[0]
    for part in parts[1:]:
        total = rewriter.once(("masks", total, part), partial(rewriter.elementwise, aten.add.Tensor, total, part))
    return total


def _made_mask(rewriter: Rewriter, mask: Mask, scores: tuple[int, ...], dtype: torch.dtype) -> Node:
    """One mask as numbers to add to scores of this shape."""
    if mask.kind == "plus":
        made = rewriter.scaled(rewriter.cast(mask.node, dtype), mask.factor)
    else:
        bottom, zero = [
            rewriter.call(aten.full.default, [], number, dtype=dtype, val=((), dtype)) for number in (mask.fill, 0.0)
        ]
        choices = (zero, bottom) if mask.kind == "shown" else (bottom, zero)
        made = rewriter.call(aten.where.self, mask.node, *choices, val=(shape_of(mask.node), dtype))
    made = rewriter.view(made, (1,) * (len(mask.shape) - len(shape_of(made))) + shape_of(made))
    expanded, final = _regrouped(shape_of(made), mask.shape, scores)
    if expanded != shape_of(made):
        made = rewriter.call(aten.expand.default, made, list(expanded), val=(expanded, dtype))
        if final != expanded:
            made = rewriter.call(aten.clone.default, made, memory_format=torch.contiguous_format, val=made)
    return rewriter.view(made, final)


def _regrouped(
    mask: tuple[int, ...], shape: tuple[int, ...], scores: tuple[int, ...]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """A mask for scores of `shape` as one for the same scores seen as `scores`: how to expand it, and its new shape.

    >>> _regrouped((1, 8, 1, 49, 49), (2, 8, 3, 49, 49), (16, 3, 49, 49))
    ((2, 8, 1, 49, 49), (16, 1, 49, 49))
    """
    expanded, final = list(mask), [1] * len(scores)
    for old, new in matched_groups(shape, scores) or []:
        if any(mask[dim] != 1 for dim in old):
            for dim in old:
                expanded[dim] = shape[dim]
            for dim in new:
                final[dim] = scores[dim]
    return tuple(expanded), tuple(final)
