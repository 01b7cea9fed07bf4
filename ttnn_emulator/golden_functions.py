"""`ttnn.get_golden_function` and `ttnn.get_fallback_function`: what an operation is in torch, and it on the host.

Only operations whose torch twin takes the same arguments in the same order are here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ttnn_emulator.errors import NotEmulated
from ttnn_emulator.table import Operation, ttnn
from ttnn_emulator.tensor import Tensor

_SAME_NAME = (
    "abs acos acosh add asin asinh atan atan2 atanh bitwise_and bitwise_not bitwise_or bitwise_xor ceil clamp clone "
    "concat cos cosh cumprod cumsum digamma divide eq erf erfc erfinv exp exp2 expm1 floor frac ge gt hypot isclose "
    "isfinite isinf isnan ldexp le lgamma log log10 log1p log2 logaddexp logaddexp2 logical_and logical_not logical_or "
    "logical_xor lt matmul maximum minimum multiply ne neg outer permute polygamma pow reciprocal remainder reshape "
    "round rsqrt sigmoid sign signbit sin sinh sqrt square squeeze subtract tan tanh transpose tril triu trunc "
    "unsqueeze where xlogy"
).split(" ")
_FUNCTIONAL = (
    "celu elu gelu hardsigmoid hardswish leaky_relu mish relu relu6 selu silu softmax softplus softsign tanhshrink"
).split(" ")
TWINS: dict[str, Callable] = {
    **{f"ttnn.{name}": getattr(torch, name) for name in _SAME_NAME},
    **{f"ttnn.{name}": getattr(torch.nn.functional, name) for name in _FUNCTIONAL},
}


def get_golden_function(operation: Operation) -> Callable:
    """The torch function that computes what an operation means."""
    name = getattr(operation, "name", repr(operation))
    if name not in TWINS:
        raise NotEmulated(f"no golden function of {name} is known", hint=f"There are those of {', '.join(TWINS)}.")
    return TWINS[name]


def get_fallback_function(operation: Operation) -> Callable:
    """An operation computed by torch on the host; what comes out is placed like the first tensor that went in."""
    golden = get_golden_function(operation)

    def fallback(*args: Any, **kwargs: Any) -> Any:
        first = next(value for value in (*args, *kwargs.values()) if isinstance(value, Tensor))
        result = golden(*map(_as_torch, args), **{key: _as_torch(value) for key, value in kwargs.items()})
        return ttnn.from_torch(result, dtype=first.dtype, layout=first.layout, device=first.device())

    return fallback


def _as_torch(value: Any) -> Any:
    return ttnn.to_torch(value) if isinstance(value, Tensor) else value
