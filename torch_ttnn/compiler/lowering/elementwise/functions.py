"""Unary functions: roots, exponentials, inverse trigonometric functions, rounding."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

from torch_ttnn.compiler.analysis.ranges import Range
from torch_ttnn.compiler.errors import refuse
from torch_ttnn.compiler.ir.builder import ProgramBuilder
from torch_ttnn.compiler.ir.value import Handle, Value
from torch_ttnn.compiler.lowering.support.promotion import BFLOAT16, FLOAT32, INT32, elementwise, result_dtype

aten = torch.ops.aten

# -- one library operation each: floats, or integers converted to floats ----------------------------------------------

PLAIN = {
    aten.acos.default: "acos",
    aten.acosh.default: "acosh",
    aten.asin.default: "asin",
    aten.asinh.default: "asinh",
    aten.atan.default: "atan",
    aten.atanh.default: "atanh",
    aten.cosh.default: "cosh",
    aten.erf.default: "erf",
    aten.erfc.default: "erfc",
    aten.exp.default: "exp",
    aten.exp2.default: "exp2",
    aten.expm1.default: "expm1",
    aten.log.default: "log",
    aten.log10.default: "log10",
    aten.log1p.default: "log1p",
    aten.log2.default: "log2",
    aten.reciprocal.default: "reciprocal",
    aten.rsqrt.default: "rsqrt",
    aten.sinh.default: "sinh",
    aten.sqrt.default: "sqrt",
    aten.tanh.default: "tanh",
}
# Identities for integers.
WHOLE = {
    aten.ceil.default: "ceil",
    aten.floor.default: "floor",
    aten.round.default: "round",
    aten.trunc.default: "trunc",
    aten.fix.default: "trunc",
}


def _of_the_library(name: str, *, keeps_integers: bool = False) -> Callable[..., Handle]:
    def function(ttnn: Any, x: Handle) -> Handle:
        return x if keeps_integers and x.dtype is INT32 else getattr(ttnn, name)(x)

    function.__name__ = name
    return function


for _overload, _name in PLAIN.items():
    elementwise(_overload)(_of_the_library(_name))
for _overload, _name in WHOLE.items():
    elementwise(_overload)(_of_the_library(_name, keeps_integers=True))


# -- accurate in a limited domain only --------------------------------------------------------------------------------

# Found by comparing all of bfloat16 with torch (tests/compiler/lowering/elementwise/test_domains.py).
DOMAINS = {
    aten.digamma.default: ("digamma", Range(0.5, math.inf)),
    aten.i0.default: ("i0", Range(-14, 14)),
}


def _lies_in(name: str, domain: Range) -> Callable[..., str | None]:
    def outside(ttnn: Any, builder: ProgramBuilder, x: Value) -> str | None:
        if builder.range_of(0).within(domain):
            return None
        return (
            f"{name} is accurate on the device only from {domain.low} to {domain.high}, and its input may exceed that"
        )

    return outside


for _overload, (_name, _domain) in DOMAINS.items():
    elementwise(_overload, when=_lies_in(_name, _domain))(_of_the_library(_name))


# -- with separate integer paths --------------------------------------------------------------------------------------


@elementwise(aten.abs.default, wraps=True)
def absolute(ttnn: Any, x: Handle) -> Handle:
    return ttnn.abs(x)


@elementwise(aten.neg.default, wraps=True)
def neg(ttnn: Any, x: Handle) -> Handle:
    return ttnn.neg(x)


@elementwise(aten.positive.default)
def positive(ttnn: Any, x: Handle) -> Handle:
    return x


@elementwise(aten.sign.default, aten.sgn.default)
def sign(ttnn: Any, builder: ProgramBuilder, x: Handle) -> Handle:
    if result_dtype(builder) is torch.bool:
        return x
    if x.dtype is INT32:
        return ttnn.subtract(ttnn.gt(x, 0), ttnn.lt(x, 0))
    return ttnn.sign(x)


@elementwise(aten.square.default, wraps=True)
def square(ttnn: Any, x: Handle) -> Handle:
    return ttnn.multiply(x, x) if x.dtype is INT32 else ttnn.square(x)


# -- rounding ---------------------------------------------------------------------------------------------------------


@elementwise(aten.round.decimals)
def round_to(ttnn: Any, x: Handle, *, decimals: int) -> Handle:
    if x.dtype is INT32:
        if decimals < 0:
            refuse("integers are not rounded to tens on the device")
        return x
    return ttnn.round(x, decimals=decimals)


@elementwise(aten.frac.default)
def frac(ttnn: Any, x: Handle) -> Handle:
    return ttnn.frac(x)


# -- composite --------------------------------------------------------------------------------------------------------


NEARLY_LINEAR = 0.03125  # below this, erfinv(x) is x √π ÷ 2 within 0.03 %


@elementwise(aten.erfinv.default)
def erfinv(ttnn: Any, x: Handle) -> Handle:
    """The library's is accurate to two digits, and loses small numbers; one Newton step doubles the digits."""
    near_zero = ttnn.lt(ttnn.abs(x), NEARLY_LINEAR)
    guess = ttnn.where(near_zero, ttnn.multiply(x, math.sqrt(math.pi) / 2), ttnn.erfinv(x))
    if x.dtype is BFLOAT16:
        return guess
    slope = ttnn.multiply(ttnn.exp(ttnn.neg(ttnn.square(guess))), 2 / math.sqrt(math.pi))
    better = ttnn.subtract(guess, ttnn.divide(ttnn.subtract(ttnn.erf(guess), x), slope))
    return ttnn.where(ttnn.ge(ttnn.abs(x), 1.0), guess, better)  # the slope is undefined at infinity


@elementwise(aten.logit.default)
def logit(ttnn: Any, builder: ProgramBuilder, x: Handle, eps: float | None = None) -> Handle:
    """In float32: bfloat16 cannot represent 0.999, and the quotient is near 1 where the logarithm is small."""
    original_dtype = x.dtype
    x = builder.cast(x, FLOAT32)
    if eps is not None:
        x = ttnn.clamp(x, float(eps), 1 - float(eps))
    return builder.cast(ttnn.log(ttnn.divide(x, ttnn.rsub(x, 1.0))), original_dtype)
