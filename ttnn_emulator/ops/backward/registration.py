"""How gradients of elementwise functions are registered, and the steps that many of them share."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ttnn_emulator.api.config_types import UnaryWithParam
from ttnn_emulator.enums import ALL_ENUMS
from ttnn_emulator.execution.operation_table import composite, ttnn
from ttnn_emulator.tensors.memory_config import MemoryConfig
from ttnn_emulator.tensors.tensor import Tensor

UnaryOpType = ALL_ENUMS["UnaryOpType"]
INFINITY, NAN = math.inf, math.nan


def gradient(*names: str) -> Callable[[Callable[..., Tensor]], Callable[..., Tensor]]:
    """Register f(grad, input, memory_config=…) as the gradient of the functions `names`; it comes back in a list."""

    def wrap(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
        def compute(grad_tensor: Tensor, input_tensor: Tensor, *, memory_config: MemoryConfig | None = None) -> list:
            return [function(grad_tensor, input_tensor, memory_config=memory_config)]

        compute.__doc__ = function.__doc__
        for name in names:
            composite(f"ttnn.{name}_bw")(compute)
        return function

    return wrap


def function(name: str, *params: float) -> UnaryWithParam:
    """A function for fusion into another operation."""
    return UnaryWithParam(UnaryOpType[name], *params)


def chain(x: Tensor, *functions: UnaryWithParam, memory_config: MemoryConfig | None) -> Tensor:
    """Functions applied one after the other in one program."""
    return ttnn.unary_chain(x, list(functions), memory_config=memory_config)


def both(a: Tensor, b: Tensor, **m: Any) -> Tensor:
    return ttnn.logical_and(a, b, **m)


def either(a: Tensor, b: Tensor, **m: Any) -> Tensor:
    return ttnn.logical_or(a, b, **m)


def signed_infinity(x: Tensor, size: float = INFINITY, **m: Any) -> Tensor:
    """An infinity with the sign of x."""
    return ttnn.multiply(ttnn.sign(x, **m), size, **m)


__all__ = [
    "INFINITY",
    "NAN",
    "both",
    "chain",
    "either",
    "function",
    "gradient",
    "signed_infinity",
]
