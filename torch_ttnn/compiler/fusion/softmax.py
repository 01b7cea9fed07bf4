"""Softmax of scaled and masked scores, where it is not part of an attention."""

from __future__ import annotations

import torch

from torch_ttnn.compiler.fusion import composites
from torch_ttnn.compiler.fusion.matcher import Anything, Either, Match, Number, Op, Tensor
from torch_ttnn.compiler.fusion.nodes import ADD, DIV, MUL, Node, dtype_of, is_float, shape_of
from torch_ttnn.compiler.fusion.rewriting import Rewriter
from torch_ttnn.compiler.fusion.rule import Fusion

aten = torch.ops.aten

X = Tensor("x")
SCALED = Either(Op(MUL, X, Number("scale"), commutative=True), Op(DIV, X, Number("divisor")))
MASKED = Op(ADD, SCALED, Tensor("mask"), commutative=True)


def _is_last(rewriter: Rewriter, match: Match) -> bool:
    """Over the last dimension, in one dtype; the mask must not broadcast the scores to a larger shape."""
    shape, mask = shape_of(match["x"]), match.get("mask")
    parts = [match["x"], match.root, *([] if mask is None else [mask])]
    if shape != shape_of(match.root) or not shape or match["dim"] % len(shape) != len(shape) - 1:
        return False
    return is_float(match["x"]) and len({dtype_of(each) for each in parts}) == 1 and match.get("divisor") != 0


def _build(rewriter: Rewriter, match: Match) -> Node:
    scale = match["scale"] if "scale" in match.bound else 1 / match["divisor"]
    return rewriter.call(composites.scale_mask_softmax, match["x"], float(scale), match.get("mask"), val=match.root)


def softmax_of(inner: Op | Either) -> Op:
    return Op(aten._softmax.default, inner, Anything("dim"), False)


FUSIONS = (
    Fusion("softmax with scale and mask", softmax_of(MASKED), _build, when=_is_last),
    Fusion("softmax with scale", softmax_of(SCALED), _build, when=_is_last),
)
