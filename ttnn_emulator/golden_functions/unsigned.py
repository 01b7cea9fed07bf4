"""Arithmetic on uint16 and uint32, of which torch has little: on int64, wrapped to the width of the first operand."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

WIDTH = {torch.uint16: 16, torch.uint32: 32}
LONGEST_SHIFT = 31  # limit of the arithmetic right shift


def is_unsigned(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.dtype in WIDTH


def wrapped(values: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Integers truncated to the width of an unsigned dtype; booleans stay unchanged."""
    if values.dtype is torch.bool:
        return values
    if values.is_floating_point():
        values = values.trunc().to(torch.int64)
    return (values & ((1 << WIDTH[dtype]) - 1)).to(dtype)


def operand(value: Any, dtype: torch.dtype) -> Any:
    """A tensor as int64; a number as its bits in an unsigned dtype of this width."""
    if isinstance(value, torch.Tensor):
        return value.to(torch.int64)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    if isinstance(value, float):
        value = int(torch.tensor(value, dtype=torch.float32).item())
    return value & ((1 << WIDTH[dtype]) - 1)


def on_unsigned(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap `function` to accept unsigned tensors, which it receives as int64."""

    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        sized = next((value for value in args if is_unsigned(value) and value.dim()), None)
        tensor = sized if sized is not None else args[0]
        if not is_unsigned(tensor):
            return function(*args, **kwargs)
        named = {key: operand(value, tensor.dtype) for key, value in kwargs.items()}
        return wrapped(function(*[operand(value, tensor.dtype) for value in args], **named), tensor.dtype)

    return run


def shifted(values: torch.Tensor, amount: Any, *, left: bool) -> torch.Tensor:
    """Shift unsigned values; amounts beyond the width give 0."""
    dtype = values.dtype
    by = amount.to(torch.int64) if isinstance(amount, torch.Tensor) else torch.tensor(amount)
    fits = (by >= 0) & (by < WIDTH[dtype])
    shift = torch.bitwise_left_shift if left else torch.bitwise_right_shift
    result = shift(values.to(torch.int64), torch.where(fits, by, 0))
    return wrapped(torch.where(fits, result, 0), dtype)


def shifted_right(values: torch.Tensor, amount: Any) -> torch.Tensor:
    """The vector unit's arithmetic shift: amounts above 31 count as 31, negative ones give 0."""
    by = amount.to(torch.int64) if isinstance(amount, torch.Tensor) else torch.tensor(amount)
    result = torch.bitwise_right_shift(values.to(torch.int64), by.clamp(0, LONGEST_SHIFT))
    return wrapped(torch.where(by >= 0, result, 0), values.dtype)
