"""Layer norm and RMS norm written out by hand."""

from __future__ import annotations

import operator

import torch

from torch_ttnn.compiler.fusion.matcher import Anything, Casts, Constant, Either, Match, Number, Op, Pattern, Tensor
from torch_ttnn.compiler.fusion.nodes import ADD, CASTS, DIV, MUL, SUB, Node, dtype_of, is_float, shape_of, skip_no_ops
from torch_ttnn.compiler.fusion.rewriting import Rewriter
from torch_ttnn.compiler.fusion.rule import Fusion

aten = torch.ops.aten

X = Tensor("x")


def mean_of(inner: Pattern) -> Op:
    return Op(aten.mean.dim, inner, Anything("dims"), True)


def square_of(inner: Pattern) -> Pattern:
    return Either(Op(aten.pow.Tensor_Scalar, inner, Constant(2)), Op(MUL, inner, inner))


def over_root(above: Pattern, below: Pattern) -> Pattern:
    """above ÷ √(below + eps)."""
    inside = Op(ADD, below, Number("eps"), commutative=True)
    root = Op(aten.sqrt.default, inside)
    inverse = Either(
        Op(aten.rsqrt.default, inside),
        Op(aten.reciprocal.default, root),
        Op(aten.pow.Tensor_Scalar, inside, Constant(-0.5)),
    )
    return Either(
        Op(MUL, above, inverse, commutative=True),
        Op(DIV, above, Either(root, Op(aten.pow.Tensor_Scalar, inside, Constant(0.5)))),
    )


def weighted(inner: Pattern) -> Op:
    return Op(MUL, Casts(inner), Tensor("weight"), commutative=True)


RMS = over_root(X, mean_of(square_of(X)))

BOTH = Op(aten.var_mean.correction, X, Anything("dims"), correction=Constant(0), keepdim=True)
MEAN = Either(mean_of(X), Op(operator.getitem, BOTH, 1))
CENTRED = Op(SUB, X, MEAN)
VARIANCE = Either(
    mean_of(square_of(CENTRED)),
    Op(aten.var.correction, X, Anything("dims"), correction=Constant(0), keepdim=True),
    Op(operator.getitem, BOTH, 0),
)
LAYER = over_root(CENTRED, VARIANCE)


def _operands(match: Match) -> tuple[Node, Node | None, Node | None] | None:
    """Input, weight and bias in the dtype of the result, or None if they do not form a norm over the last dimension.

    A norm computed in float32 between two conversions becomes a norm of the unconverted input: the device computes
    norms in float32 internally.
    """
    x: Node = match["x"]
    weight, bias = match.get("weight"), match.get("bias")
    shape, dtype = shape_of(x), dtype_of(match.root)
    dims = match["dims"]
    if not is_float(x) or not shape or not isinstance(dims, list | tuple) or len(dims) != 1:
        return None
    if dims[0] % len(shape) != len(shape) - 1 or not 0 <= match["eps"] < 1:
        return None
    if dtype_of(x) is not dtype and x.target in CASTS:
        x = skip_no_ops(x.args[0])
    if any(dtype_of(each) is not dtype for each in (x, weight, bias) if each is not None):
        return None
    if any(shape_of(each) != shape[-1:] for each in (weight, bias) if each is not None):
        return None
    return x, weight, bias


def _applies(rewriter: Rewriter, match: Match) -> bool:
    return _operands(match) is not None


def _statistics(x: Node) -> tuple[tuple[int, ...], torch.dtype]:
    wide = torch.promote_types(dtype_of(x), torch.float32)
    return (*shape_of(x)[:-1], 1), wide


def _rms_norm(rewriter: Rewriter, match: Match) -> Node:
    x, weight, _ = _operands(match)  # type: ignore[misc]
    vals = [match.root, _statistics(x)]
    norm = rewriter.call(aten._fused_rms_norm.default, x, [shape_of(x)[-1]], weight, float(match["eps"]), val=vals)
    return rewriter.item(norm, 0)


def _layer_norm(rewriter: Rewriter, match: Match) -> Node:
    x, weight, bias = _operands(match)  # type: ignore[misc]
    arguments = ([shape_of(x)[-1]], weight, bias, float(match["eps"]))
    norm = rewriter.call(
        aten.native_layer_norm.default, x, *arguments, val=[match.root, _statistics(x), _statistics(x)]
    )
    return rewriter.item(norm, 0)


# The largest pattern first: each of these contains the next.
SHIFTED = (
    Fusion(
        "layer norm",
        Op(ADD, Casts(weighted(LAYER)), Tensor("bias"), commutative=True),
        _layer_norm,
        when=_applies,
    ),
)
WEIGHTED = (
    Fusion("layer norm", weighted(LAYER), _layer_norm, when=_applies),
    Fusion("rms norm", weighted(RMS), _rms_norm, when=_applies),
)
PLAIN = (
    Fusion("layer norm", LAYER, _layer_norm, when=_applies),
    Fusion("rms norm", RMS, _rms_norm, when=_applies),
)
