"""`ttnn.get_golden_function` and `ttnn.get_fallback_function`: torch counterparts of operations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ttnn_emulator.errors import NotEmulated
from ttnn_emulator.execution.operation_table import Operation, ttnn
from ttnn_emulator.golden_functions.binary import BINARY
from ttnn_emulator.golden_functions.structure import STRUCTURE
from ttnn_emulator.golden_functions.unary import UNARY
from ttnn_emulator.tensors.tensor import Tensor

GOLDEN_FUNCTIONS: dict[str, Callable] = {
    f"ttnn.{name}": function for name, function in {**UNARY, **BINARY, **STRUCTURE}.items()
}


def get_golden_function(operation: Operation) -> Callable:
    """The torch counterpart of an operation. It ignores arguments that do not affect values."""
    name = getattr(operation, "name", repr(operation))
    own = getattr(operation, "golden_function", None)  # a script may set its own, or pass an object that has one
    if own is not None:
        return own
    if name not in GOLDEN_FUNCTIONS:
        raise NotEmulated(f"{name} has no golden function", hint=f"Golden functions: {', '.join(GOLDEN_FUNCTIONS)}.")
    return GOLDEN_FUNCTIONS[name]


def get_fallback_function(operation: Operation) -> Callable:
    """An operation computed by torch on the host; the result is placed like the first input tensor."""
    golden = get_golden_function(operation)

    def fallback(*args: Any, **kwargs: Any) -> Any:
        first = next(value for value in (*args, *kwargs.values()) if isinstance(value, Tensor))
        result = golden(*map(_as_torch, args), **{key: _as_torch(value) for key, value in kwargs.items()})
        return ttnn.from_torch(result, dtype=first.dtype, layout=first.layout, device=first.device())

    return fallback


def _as_torch(value: Any) -> Any:
    return ttnn.to_torch(value) if isinstance(value, Tensor) else value
