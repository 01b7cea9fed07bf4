"""torch functions that stand in for kernels on large float32 tensors.

Each is at least as accurate as its kernel; special values follow IEEE 754. Functions of a few instructions are not
listed, because their kernels are fast enough, nor are functions whose kernels are less accurate.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch.nn import functional

Values = torch.Tensor


def _selu(x: Values, scale: float, alpha: float) -> Values:
    return scale * torch.where(x >= 0, x, alpha * torch.expm1(x))


def _cbrt(x: Values) -> Values:
    return torch.copysign(x.double().abs().pow(1.0 / 3.0), x.double()).float()


FLOAT32: dict[str, Callable[..., Values]] = {
    "acos": torch.acos,
    "acosh": torch.acosh,
    "asin": torch.asin,
    "asinh": torch.asinh,
    "atan": torch.atan,
    "atanh": torch.atanh,
    "cbrt": _cbrt,
    "celu": lambda x, alpha: functional.celu(x, alpha),
    "cos": torch.cos,
    "cosh": torch.cosh,
    "elu": lambda x, alpha: functional.elu(x, alpha),
    "erf": torch.erf,
    "exp": torch.exp,
    "exp2": torch.exp2,
    "expm1": torch.expm1,
    "gelu": functional.gelu,
    "gelu_tanh": lambda x: functional.gelu(x, approximate="tanh"),
    "log": torch.log,
    "log10": torch.log10,
    "log1p": torch.log1p,
    "log2": torch.log2,
    "mish": functional.mish,
    "recip": torch.reciprocal,
    "relu": torch.relu,
    "rsqrt": lambda x, fast=0.0: torch.rsqrt(x),
    "selu": _selu,
    "sigmoid": torch.sigmoid,
    "silu": functional.silu,
    "sin": torch.sin,
    "sinh": torch.sinh,
    "softsign": functional.softsign,
    "sqrt": lambda x, fast=0.0: torch.sqrt(x),
    "square": torch.square,
    "tan": torch.tan,
    "tanh": torch.tanh,
    "mul_unary_sfpu": lambda x, other: x * other,
    "add_unary_sfpu": lambda x, other: x + other,
    "rdiv": lambda x, other, rounding=0.0: (other / x) if not rounding else _whole(other / x, rounding),
}


def _whole(x: Values, rounding: float) -> Values:
    return torch.trunc(x) if rounding == 1.0 else torch.floor(x)


FLOAT32 |= {f"fused {name}": FLOAT32[name] for name in ("celu", "elu", "erf", "selu")}
