"""Merges scale and masks of attention scores, applied in any order, into one factor and one additive mask."""

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

# A fill at or below this hides any score: adding it has the effect of replacing the score with it.
HIDES = -1e20


@dataclass(frozen=True)
class Mask:
    """One mask: added with a factor ("plus"), or a fill where it is true ("hidden") or false ("shown")."""

    kind: str
    node: Node
    shape: tuple[int, ...]  # of the scores at that point
    fill: float = 0.0
    factor: float = 1.0


@dataclass(frozen=True)
class Masks:
    """scale × scores + the sum of masks."""

    scale: float
    added: tuple[Mask, ...]


def masks_of(match: Match) -> Masks | None:
    """The scale and masks that the steps between product and softmax amount to, or None for any other steps."""
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
    """The sum of all masks, broadcastable to 4D scores; the layers of a model share it."""
    parts = [
        rewriter.once(("mask", mask, scores, dtype), partial(_build_mask, rewriter, mask, scores, dtype))
        for mask in masks.added
    ]
    if not parts:
        return None
    total = parts[0]
    for part in parts[1:]:
        total = rewriter.once(("masks", total, part), partial(rewriter.elementwise, aten.add.Tensor, total, part))
    return total


def _build_mask(rewriter: Rewriter, mask: Mask, scores: tuple[int, ...], dtype: torch.dtype) -> Node:
    """One mask as a term to add to scores of this shape."""
    if mask.kind == "plus":
        term = rewriter.scaled(rewriter.cast(mask.node, dtype), mask.factor)
    else:
        bottom, zero = [
            rewriter.call(aten.full.default, [], number, dtype=dtype, val=((), dtype)) for number in (mask.fill, 0.0)
        ]
        choices = (zero, bottom) if mask.kind == "shown" else (bottom, zero)
        term = rewriter.call(aten.where.self, mask.node, *choices, val=(shape_of(mask.node), dtype))
    term = rewriter.view(term, (1,) * (len(mask.shape) - len(shape_of(term))) + shape_of(term))
    expanded, final = _regrouped(shape_of(term), mask.shape, scores)
    if expanded != shape_of(term):
        term = rewriter.call(aten.expand.default, term, list(expanded), val=(expanded, dtype))
        if final != expanded:
            term = rewriter.call(aten.clone.default, term, memory_format=torch.contiguous_format, val=term)
    return rewriter.view(term, final)


def _regrouped(
    mask: tuple[int, ...], shape: tuple[int, ...], scores: tuple[int, ...]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """How a mask for scores of `shape` fits their view `scores`: its expanded shape, and its final shape.

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
