"""Elementwise functions of integers: exact, except that some kernels treat the smallest int32 as zero.

Those kernels read their argument as sign-magnitude, where its bit pattern is minus zero.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ttnn_emulator.enums import DataType
from ttnn_emulator.errors import NotEmulated
from ttnn_emulator.numerics.formats.carriers import wrap_integer

LEAST = -(2**31)
Values = torch.Tensor


def _without_least(x: Values) -> Values:
    return torch.where(x == LEAST, 0, x)


def _test(holds: Callable[[Values], Values]) -> Callable[[Values], Values]:
    return lambda x: holds(_without_least(x)).to(x.dtype)


def _comparison(holds: Callable[[Values, int], Values]) -> Callable[[Values, float], Values]:
    return lambda x, other: holds(x, int(other)).to(x.dtype)


# Kind → function of (carrier, *parameters); results wrap into the dtype.
FUNCTIONS: dict[str, Callable[..., Values]] = {
    "identity": lambda x: x,
    "relu": lambda x: x.clamp(min=0),
    "relu6": lambda x: x.clamp(0, 6),
    "relu_max": lambda x, high: x.clamp(max=int(high)).clamp(min=0),
    "relu_min": lambda x, low: x.clamp(min=int(low)),
    "leaky_relu": lambda x, slope: x,
    "clamp_tss": lambda x, low, high: x.clamp(min=int(low)).clamp(max=int(high)),
    "maximum": lambda x, other: x.clamp(min=int(other)),
    "minimum": lambda x, other: x.clamp(max=int(other)),
    "abs": lambda x: x,
    "abs_int32": lambda x: x.to(torch.int64).abs(),
    "neg": lambda x: -x.to(torch.int64),
    "square": lambda x: x.to(torch.int64) * x.to(torch.int64),
    "fill": lambda x, value: torch.full_like(x, int(value), dtype=torch.int64),
    "bitwise_not": lambda x: ~x.to(torch.int64),
    "signbit": lambda x: (x < 0).to(x.dtype),
    "logical_not_unary": lambda x: (x == 0).to(x.dtype),
    "eqz": _test(lambda x: x == 0),
    "nez": _test(lambda x: x != 0),
    "gtz": _test(lambda x: x > 0),
    "gez": _test(lambda x: x >= 0),
    "ltz": _test(lambda x: x < 0),
    "lez": _test(lambda x: x <= 0),
    "add_unary_sfpu": lambda x, other: x.to(torch.int64) + int(other),
    "sub_unary_sfpu": lambda x, other: x.to(torch.int64) - int(other),
    "rsub": lambda x, other: int(other) - x.to(torch.int64),
    "unary_eq": _comparison(torch.eq),
    "unary_ne": _comparison(torch.ne),
    "unary_gt": _comparison(torch.gt),
    "unary_ge": _comparison(torch.ge),
    "unary_lt": _comparison(torch.lt),
    "unary_le": _comparison(torch.le),
}


def integer_function(function: Any, dtype: DataType) -> Callable[[Values], Values]:
    """The function of an `Activation` on carriers of an integer dtype."""
    if function.name not in FUNCTIONS:
        raise NotEmulated(f"{function.name} of {dtype} is not emulated")
    compute, params = FUNCTIONS[function.name], function.params
    return lambda x: wrap_integer(compute(x, *params), dtype)
