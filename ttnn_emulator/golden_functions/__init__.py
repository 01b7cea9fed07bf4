"""`ttnn.get_golden_function` and `ttnn.get_fallback_function`: what an operation is in torch, and it on the host."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ttnn_emulator.errors import NotEmulated
from ttnn_emulator.execution.operation_table import Operation, ttnn
from ttnn_emulator.golden_functions.binary import BINARY
from ttnn_emulator.golden_functions.structure import STRUCTURE
from ttnn_emulator.golden_functions.unary import UNARY
from ttnn_emulator.tensors.tensor import Tensor

TWINS: dict[str, Callable] = {f"ttnn.{name}": function for name, function in {**UNARY, **BINARY, **STRUCTURE}.items()}


def get_golden_function(operation: Operation) -> Callable:
    """The torch function that computes what an operation means. It ignores arguments that torch has no use for."""
    name = getattr(operation, "name", repr(operation))
    own = getattr(operation, "golden_function", None)  # a script may set its own, or bring an object that has one
    if own is not None:
        return own
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
