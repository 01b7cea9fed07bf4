"""Scale and masks of attention scores, in whatever order they are applied: one factor and one mask to add."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from torch_ttnn.compiler.forms import _groups
from torch_ttnn.compiler.fusion.matcher import Match
from torch_ttnn.compiler.fusion.nodes import CASTS, Node, is_float, shape_of
from torch_ttnn.compiler.fusion.rewriting import Rewriter

aten = torch.ops.aten

# A fill at or below this hides a score whatever it was: adding it gives what replacing by it gives.
HIDES = -1e20


@dataclass(frozen=True)
class Masks:
    """scale × scores + the sum of masks, each with its factor, in the shape that scores had when it was added."""

    scale: float
    added: tuple[tuple[str, Node, float, float, tuple[int, ...]], ...]  # kind, node, fill, factor, shape of scores


def masks_of(match: Match) -> Masks | None:
    """What the steps between the product and the softmax come to, or None if they are something else."""
    scale, added = 1.0, []
    product = match.nodes[-1]
    if match.get("added") is not None:
        scale = float(match.get("alpha", 1))
        added.append(("plus", match["added"], 0.0, float(match.get("beta", 1)), shape_of(product)))
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
            added = [(kind, mask, fill, before * factor, shape) for kind, mask, fill, before, shape in added]
        elif name == "plus":
            if not is_float(bound["mask"]):
                return None
            added.append(("plus", bound["mask"], 0.0, 1.0, shape_of(node)))
        else:
            if bound["fill"] > HIDES:
                return None
            kind, mask = ("shown", bound["shown"]) if name == "where" else ("hidden", bound["hidden"])
            added.append((kind, mask, float(bound["fill"]), 1.0, shape_of(node)))
    if any(factor <= 0 for kind, *_, factor, _ in added if kind != "plus"):
        return None
    return Masks(scale, tuple([each for each in added if each[3] != 0]))


def mask_node(rewriter: Rewriter, masks: Masks, scores: tuple[int, ...], dtype: torch.dtype) -> Node | None:
    """All masks as one, broadcast against scores of four dimensions; all layers of a model share it."""
    parts = [_one_mask(rewriter, *each, scores, dtype) for each in masks.added]
    if not parts:
        return None
    total = parts[0]
    for part in parts[1:]:
        one, other = total, part
        total = rewriter.once(
            ("masks", one, other),
            lambda: rewriter.elementwise(aten.add.Tensor, one, other),  # noqa: B023
        )
    return total


def _one_mask(
    rewriter: Rewriter,
    kind: str,
    mask: Node,
    fill: float,
    factor: float,
    shape: tuple[int, ...],
    scores: tuple[int, ...],
    dtype: torch.dtype,
) -> Node:
    key = ("mask", kind, mask, fill, factor, shape, scores, dtype)
    return rewriter.once(key, lambda: _made_mask(rewriter, kind, mask, fill, factor, shape, scores, dtype))


def _made_mask(
    rewriter: Rewriter,
    kind: str,
    mask: Node,
    fill: float,
    factor: float,
    shape: tuple[int, ...],
    scores: tuple[int, ...],
    dtype: torch.dtype,
) -> Node:
    if kind == "plus":
        made = rewriter.scaled(rewriter.cast(mask, dtype), factor)
    else:
        bottom, zero = [
            rewriter.call(aten.full.default, [], number, dtype=dtype, val=((), dtype)) for number in (fill, 0.0)
        ]
        choices = (zero, bottom) if kind == "shown" else (bottom, zero)
        made = rewriter.call(aten.where.self, mask, *choices, val=(shape_of(mask), dtype))
    made = rewriter.view(made, (1,) * (len(shape) - len(shape_of(made))) + shape_of(made))
    expanded, final = _regrouped(shape_of(made), shape, scores)
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
    for old, new in _groups(shape, scores) or []:
        if any(mask[dim] != 1 for dim in old):
            for dim in old:
                expanded[dim] = shape[dim]
            for dim in new:
                final[dim] = scores[dim]
    return tuple(expanded), tuple(final)
