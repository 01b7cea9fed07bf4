"""How golden functions are called: unknown arguments are ignored, results have the requested dtype."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import torch

from ttnn_emulator.enums import BLOCK_FLOAT_DTYPES, DataType, Layout
from ttnn_emulator.numerics.formats.carriers import TORCH_DTYPE

# Parameter names of operands, beside those of the golden function itself.
FIRST = ("input_tensor", "input_tensor_a", "input_a", "input")
SECOND = ("input_tensor_b", "input_b", "other", "value", "scalar")


def golden(function: Callable[..., Any], *, typed: bool = False) -> Callable[..., Any]:
    """Wrap `function` as a golden function: it accepts all arguments of its operation and ignores unused ones.

    With `typed`, `dtype` is the dtype of the stored result, as in the operation.
    """
    parameters = list(inspect.signature(function).parameters.values())
    names = [parameter.name for parameter in parameters if parameter.kind is not parameter.KEYWORD_ONLY]
    known = {parameter.name for parameter in parameters}

    @functools.wraps(function)
    def run(*args: Any, dtype: DataType | None = None, **kwargs: Any) -> Any:
        if dtype is not None and "dtype" in known:
            kwargs["dtype"] = dtype
        for position, aliases in enumerate((FIRST, SECOND)):
            if position < len(names) and position >= len(args) and names[position] not in kwargs:
                alias = next((alias for alias in aliases if alias in kwargs), None)
                if alias is not None:
                    kwargs[names[position]] = kwargs[alias]
        result = function(*args[: len(names)], **{key: value for key, value in kwargs.items() if key in known})
        return stored_as(result, dtype) if typed else result

    return run


def stored_as(values: torch.Tensor, dtype: DataType | None) -> torch.Tensor:
    """The values as stored in a tensor of `dtype`."""
    if dtype is None:
        return values
    if dtype in BLOCK_FLOAT_DTYPES:
        from ttnn_emulator.tensors.host_transfer import from_torch, to_torch

        return to_torch(from_torch(values, dtype=dtype, layout=Layout.TILE))
    return values.to(TORCH_DTYPE[dtype])
