"""Activation functions written out by hand, or decomposed."""

from __future__ import annotations

import math

import torch

from torch_ttnn.compiler.fusion import composites
from torch_ttnn.compiler.fusion.matcher import Constant, Either, Match, Op, Pattern, Tensor
from torch_ttnn.compiler.fusion.nodes import ADD, DIV, MUL, Node, is_float
from torch_ttnn.compiler.fusion.rewriting import Rewriter
from torch_ttnn.compiler.fusion.rule import Fusion

aten = torch.ops.aten

X = Tensor("x")


def times(one: Pattern, other: Pattern) -> Op:
    return Op(MUL, one, other, commutative=True)


def plus(one: Pattern, other: Pattern) -> Op:
    return Op(ADD, one, other, commutative=True)


def halved_product(factor: Pattern) -> Pattern:
    """x × factor ÷ 2, in any order of multiplication."""
    half = Constant(0.5)
    whole = times(X, factor)
    return Either(
        times(times(X, half), factor),
        times(whole, half),
        times(X, times(factor, half)),
        Op(DIV, whole, Constant(2)),
    )


SQUARE = Either(times(X, X), Op(aten.pow.Tensor_Scalar, X, Constant(2)))
CUBE = Either(Op(aten.pow.Tensor_Scalar, X, Constant(3)), times(SQUARE, X))
ROOT = Constant(math.sqrt(2 / math.pi))
CUBIC = Constant(0.044715)
CUBIC_SQUARE = Either(times(times(X, CUBIC), X), times(SQUARE, CUBIC))
TANH_ARGUMENT = Either(
    times(plus(X, Either(times(CUBE, CUBIC), times(CUBIC_SQUARE, X))), ROOT),
    times(times(X, ROOT), plus(CUBIC_SQUARE, Constant(1))),
)
ERF_ARGUMENT = Either(Op(DIV, X, Constant(math.sqrt(2))), times(X, Constant(math.sqrt(0.5))))

SHIFTED = plus(X, Constant(3))
CLIPPED = Either(  # x + 3, clamped to [0, 6]
    Op(aten.hardtanh.default, SHIFTED, Constant(0), Constant(6)),
    Op(aten.clamp.default, SHIFTED, Constant(0), Constant(6)),
    Op(aten.clamp.default, Op(aten.clamp.default, SHIFTED, Constant(0)), None, Constant(6)),
    Op(aten.clamp_max.default, Op((aten.clamp_min.default, aten.clamp.default), SHIFTED, Constant(0)), Constant(6)),
)
SIXTH = Constant(1 / 6)


def _floats(rewriter: Rewriter, match: Match) -> bool:
    return is_float(match["x"])


def _gelu(rewriter: Rewriter, match: Match) -> Node:
    return rewriter.call(aten.gelu.default, match["x"], val=match.root)


def _gelu_tanh(rewriter: Rewriter, match: Match) -> Node:
    return rewriter.call(aten.gelu.default, match["x"], approximate="tanh", val=match.root)


def _quick_gelu(rewriter: Rewriter, match: Match) -> Node:
    return rewriter.call(composites.quick_gelu, match["x"], val=match.root)


def _silu(rewriter: Rewriter, match: Match) -> Node:
    return rewriter.call(aten.silu.default, match["x"], val=match.root)


def _mish(rewriter: Rewriter, match: Match) -> Node:
    return rewriter.call(aten.mish.default, match["x"], val=match.root)


def _hardswish(rewriter: Rewriter, match: Match) -> Node:
    return rewriter.call(aten.hardswish.default, match["x"], val=match.root)


def _hardsigmoid(rewriter: Rewriter, match: Match) -> Node:
    return rewriter.call(aten.hardsigmoid.default, match["x"], val=match.root)


FUSIONS = (
    Fusion("gelu (erf)", halved_product(plus(Op(aten.erf.default, ERF_ARGUMENT), Constant(1))), _gelu, when=_floats),
    Fusion(
        "gelu (tanh)",
        halved_product(plus(Op(aten.tanh.default, TANH_ARGUMENT), Constant(1))),
        _gelu_tanh,
        when=_floats,
    ),
    Fusion("quick gelu", times(X, Op(aten.sigmoid.default, times(X, Constant(1.702)))), _quick_gelu, when=_floats),
    Fusion("silu", times(X, Op(aten.sigmoid.default, X)), _silu, when=_floats),
    Fusion("mish", times(X, Op(aten.tanh.default, Op(aten.softplus.default, X))), _mish, when=_floats),
    Fusion(
        "hardswish",
        Either(
            Op(DIV, times(X, CLIPPED), Constant(6)),
            times(X, Either(Op(DIV, CLIPPED, Constant(6)), Op(aten.hardsigmoid.default, X))),
            times(times(X, CLIPPED), SIXTH),
            times(X, times(CLIPPED, SIXTH)),
        ),
        _hardswish,
        when=_floats,
    ),
)
# After hardswish, which contains this pattern.
LATER = (
    Fusion("hardsigmoid", Either(Op(DIV, CLIPPED, Constant(6)), times(CLIPPED, SIXTH)), _hardsigmoid, when=_floats),
)
