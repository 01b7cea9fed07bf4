"""Folds inference batch norms into the preceding weights, once, when weights are prepared."""

from __future__ import annotations

import operator
from typing import Any

import torch

from torch_ttnn.compiler.fusion.matcher import Anything, Either, Match, Number, Op, Pattern, Tensor
from torch_ttnn.compiler.fusion.nodes import Node, dtype_of, is_float, shape_of
from torch_ttnn.compiler.fusion.rewriting import Rewriter
from torch_ttnn.compiler.fusion.rule import Fusion

aten = torch.ops.aten

MATRIX = Tensor("weight")
PRODUCT = Either(Op(aten.addmm.default, Tensor("bias"), Tensor("x"), MATRIX), Op(aten.mm.default, Tensor("x"), MATRIX))
CONVOLUTION = Op(aten.convolution.default, Tensor("x"), MATRIX, Anything("bias"), rest="settings")

PARAMETERS = ("scale", "shift", "mean", "variance")


def batch_norm(inner: Pattern) -> Op:
    """The normalised output of a batch norm with running statistics."""
    given = [Anything(name) for name in PARAMETERS]
    forms = Either(
        Op(aten._native_batch_norm_legit_no_training.default, inner, *given, Anything("momentum"), Number("eps")),
        Op(
            (aten.native_batch_norm.default, aten._native_batch_norm_legit.default),
            inner,
            *given,
            False,
            Anything("momentum"),
            Number("eps"),
        ),
    )
    return Op(operator.getitem, forms, 0)


def _is_static(rewriter: Rewriter, match: Match) -> bool:
    """Whether weights and statistics are known before the first call, so that folding adds no work per call."""
    parts = [match.get(name) for name in ("weight", "bias", *PARAMETERS)]
    return is_float(match["x"]) and match["mean"] is not None and all(rewriter.is_static(each) for each in parts)


def _is_foldable_convolution(rewriter: Rewriter, match: Match) -> bool:
    transposed, groups = match["settings"][3], match["settings"][5]
    return _is_static(rewriter, match) and not (transposed and groups != 1)


def _is_foldable_product(rewriter: Rewriter, match: Match) -> bool:
    bias = match.get("bias")
    channels = shape_of(match["weight"])[1]
    return _is_static(rewriter, match) and (bias is None or shape_of(bias) == (channels,))


def _folded(rewriter: Rewriter, match: Match, axis: int) -> tuple[Node, Node]:
    """Weight and bias with the norm folded in, computed in float32. `axis` of the weight is the output channel."""
    dtype = dtype_of(match["weight"])
    call = rewriter.elementwise

    def wide(node: Any) -> Any:
        return rewriter.cast(node, torch.float32) if isinstance(node, Node) else node

    weight, bias, scale, shift, mean, variance = [wide(match.get(name)) for name in ("weight", "bias", *PARAMETERS)]
    factor = call(aten.rsqrt.default, call(aten.add.Tensor, variance, match["eps"]))
    if scale is not None:
        factor = call(aten.mul.Tensor, factor, scale)
    broadcast = [1] * len(shape_of(weight))
    broadcast[axis] = shape_of(factor)[0]
    new_weight = call(aten.mul.Tensor, weight, rewriter.view(factor, broadcast))
    centred = call(aten.neg.default, mean) if bias is None else call(aten.sub.Tensor, bias, mean)
    new_bias = call(aten.mul.Tensor, centred, factor)
    if shift is not None:
        new_bias = call(aten.add.Tensor, new_bias, shift)
    return rewriter.cast(new_weight, dtype), rewriter.cast(new_bias, dtype)


def _convolution(rewriter: Rewriter, match: Match) -> Node:
    settings = match["settings"]
    weight, bias = _folded(rewriter, match, axis=1 if settings[3] else 0)
    return rewriter.call(aten.convolution.default, match["x"], weight, bias, *settings, val=match.root)


def _product(rewriter: Rewriter, match: Match) -> Node:
    weight, bias = _folded(rewriter, match, axis=1)
    return rewriter.call(aten.addmm.default, bias, match["x"], weight, val=match.root)


FUSIONS = (
    Fusion("convolution + batch norm", batch_norm(CONVOLUTION), _convolution, when=_is_foldable_convolution),
    Fusion("linear + batch norm", batch_norm(PRODUCT), _product, when=_is_foldable_product),
)
