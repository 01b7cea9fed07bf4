"""Fuses bias, factor and activation into products, and activations into convolutions."""

from __future__ import annotations

import functools
import math

import torch

from torch_ttnn.compiler.fusion import composites
from torch_ttnn.compiler.fusion.batch_norm import CONVOLUTION, PRODUCT
from torch_ttnn.compiler.fusion.matcher import Constant, Either, Match, Number, Op, Pattern, Tensor, Through
from torch_ttnn.compiler.fusion.nodes import (
    ADD,
    DIV,
    MUL,
    SQUEEZES,
    TRANSPOSES,
    VIEWS,
    Node,
    dtype_of,
    is_float,
    shape_of,
)
from torch_ttnn.compiler.fusion.rewriting import Rewriter
from torch_ttnn.compiler.fusion.rule import Fusion

aten = torch.ops.aten


def reshaped(inner: Pattern) -> Through:
    return Through(VIEWS, inner)


# -- bias -------------------------------------------------------------------------------------------------------------


def _is_bias(rewriter: Rewriter, match: Match) -> bool:
    """Whether a static row is added to every row of the product."""
    bias, product = match["bias"], match.nodes[-1]
    columns = shape_of(product)[-1]
    shape = shape_of(bias)
    is_row = len(shape) > 0 and shape[-1] == columns and math.prod(shape) == columns
    same = dtype_of(bias) is dtype_of(product) is dtype_of(match.root)
    return is_row and same and rewriter.is_static(bias) and shape_of(match.root)[-1] == columns and is_float(product)


def _with_bias(rewriter: Rewriter, match: Match) -> Node:
    product = match.nodes[-1]
    bias = rewriter.view(match["bias"], shape_of(product)[-1:])
    result = rewriter.call(aten.addmm.default, bias, match["x"], match["weight"], val=product)
    return rewriter.view(result, shape_of(match.root))


BIASES = (
    Fusion(
        "linear + bias",
        Op(
            ADD,
            reshaped(Op(aten.mm.default, Tensor("x"), Tensor("weight"))),
            Tensor("bias"),
            commutative=True,
        ),
        _with_bias,
        when=_is_bias,
    ),
)


# -- a factor ---------------------------------------------------------------------------------------------------------

MOVED = Through((*VIEWS, *SQUEEZES, *TRANSPOSES, aten.clone.default), PRODUCT)
SCALED = Either(Op(MUL, MOVED, Number("factor")), Op(DIV, MOVED, Number("divisor")))


def _is_static_product(rewriter: Rewriter, match: Match) -> bool:
    finite = math.isfinite(_factor(match)) if match.get("divisor") != 0 else False
    is_weight = rewriter.is_static(match["weight"]) and rewriter.is_static(match.get("bias"))
    return finite and is_weight and dtype_of(match.root) is dtype_of(match["weight"]) and is_float(match["x"])


def _factor(match: Match) -> float:
    return match["factor"] if "factor" in match.bound else 1 / match["divisor"]


def _scaled(rewriter: Rewriter, match: Match) -> Node:
    """Folds the factor into weight and bias; calls between product and factor stay unchanged."""
    product, factor = match.nodes[-1], _factor(match)
    rewriter.anchor = product
    weight = rewriter.scaled(match["weight"], factor)
    bias = match.get("bias")
    if bias is None:
        result = rewriter.call(aten.mm.default, match["x"], weight, val=product)
    else:
        result = rewriter.call(aten.addmm.default, rewriter.scaled(bias, factor), match["x"], weight, val=product)
    rewriter.replace(product, result)
    return match.root.args[0]  # type: ignore[return-value]


FACTORS = (Fusion("factor in the weights of a linear", SCALED, _scaled, when=_is_static_product),)


# -- activations ------------------------------------------------------------------------------------------------------


def activation_patterns(inner: Pattern) -> dict[str, Pattern]:
    """The pattern of each activation applied to `inner`."""
    zero, six = Constant(0), Constant(6)
    return {
        "relu": Op(aten.relu.default, inner),
        "relu6": Either(Op(aten.hardtanh.default, inner, zero, six), Op(aten.clamp.default, inner, zero, six)),
        "gelu": Op(aten.gelu.default, inner),
        "gelu_tanh": Op(aten.gelu.default, inner, approximate="tanh"),
        "silu": Op(aten.silu.default, inner),
        "sigmoid": Op(aten.sigmoid.default, inner),
        "tanh": Op(aten.tanh.default, inner),
        "hardswish": Op(aten.hardswish.default, inner),
        "hardsigmoid": Op(aten.hardsigmoid.default, inner),
    }


LINEAR_ACTIVATIONS = ("relu", "relu6", "gelu", "gelu_tanh", "silu", "sigmoid", "tanh", "hardsigmoid")
CONVOLUTION_ACTIVATIONS = ("relu", "relu6", "gelu", "silu", "sigmoid", "tanh", "hardswish", "hardsigmoid")


def _is_row_product(rewriter: Rewriter, match: Match) -> bool:
    bias, columns = match.get("bias"), shape_of(match["weight"])[1]
    return is_float(match["x"]) and (bias is None or shape_of(bias) == (columns,))


def _is_float(rewriter: Rewriter, match: Match) -> bool:
    return is_float(match["x"])


def _linear(activation: str, rewriter: Rewriter, match: Match) -> Node:
    product = match.nodes[-1]
    arguments = (match["x"], match["weight"], match.get("bias"), activation)
    result = rewriter.call(composites.linear, *arguments, val=product)
    return rewriter.view(result, shape_of(match.root))


def _convolution(activation: str, rewriter: Rewriter, match: Match) -> Node:
    arguments = (match["x"], match["weight"], match["bias"], *match["settings"], activation)
    return rewriter.call(composites.convolution, *arguments, val=match.root)


def _table() -> tuple[Fusion, ...]:
    products, convolutions = activation_patterns(reshaped(PRODUCT)), activation_patterns(CONVOLUTION)
    linears = [
        Fusion(f"linear + {name}", products[name], functools.partial(_linear, name), when=_is_row_product)
        for name in LINEAR_ACTIVATIONS
    ]
    return (
        *linears,
        *[
            Fusion(f"convolution + {name}", convolutions[name], functools.partial(_convolution, name), when=_is_float)
            for name in CONVOLUTION_ACTIVATIONS
        ],
    )


ACTIVATIONS = _table()
