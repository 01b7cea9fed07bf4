"""Numbers that change from call to call, such as an optimizer's step size, as inputs of one program.

A number is a constant of its program. Where an operation was called with several numbers, they become tensors with one
element, and the operation is written with tensors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch

from torch_ttnn.eager.arguments import Call

aten = torch.ops.aten
Tensor = torch.Tensor
CONSTANTS = 2  # values of a number that are constants of programs of their own
MOST_PATTERNS = 10_000


class Operand(NamedTuple):
    """The position and name of a number, and the operation with a tensor in its place."""

    position: int
    name: str
    function: Callable[..., Any]


def _add(x: Tensor, other: Any, *, alpha: Tensor) -> Tensor:
    return x + other * alpha


def _add_(x: Tensor, other: Any, *, alpha: Tensor) -> Tensor:
    return x.add_(other * alpha)


def _sub(x: Tensor, other: Any, *, alpha: Tensor) -> Tensor:
    return x - other * alpha


def _sub_(x: Tensor, other: Any, *, alpha: Tensor) -> Tensor:
    return x.sub_(other * alpha)


def _addcmul(x: Tensor, one: Tensor, other: Tensor, *, value: Tensor) -> Tensor:
    return x + one * other * value


def _addcmul_(x: Tensor, one: Tensor, other: Tensor, *, value: Tensor) -> Tensor:
    return x.add_(one * other * value)


def _addcdiv(x: Tensor, one: Tensor, other: Tensor, *, value: Tensor) -> Tensor:
    return x + one / other * value


def _addcdiv_(x: Tensor, one: Tensor, other: Tensor, *, value: Tensor) -> Tensor:
    return x.add_(one / other * value)


OPERANDS: dict[Any, tuple[Operand, ...]] = {
    aten.mul.Tensor: (Operand(1, "other", aten.mul.Tensor),),
    aten.mul_.Tensor: (Operand(1, "other", aten.mul_.Tensor),),
    aten.div.Tensor: (Operand(1, "other", aten.div.Tensor),),
    aten.div_.Tensor: (Operand(1, "other", aten.div_.Tensor),),
    aten.add.Tensor: (Operand(2, "alpha", _add), Operand(1, "other", aten.add.Tensor)),
    aten.add_.Tensor: (Operand(2, "alpha", _add_), Operand(1, "other", aten.add_.Tensor)),
    aten.sub.Tensor: (Operand(2, "alpha", _sub), Operand(1, "other", aten.sub.Tensor)),
    aten.sub_.Tensor: (Operand(2, "alpha", _sub_), Operand(1, "other", aten.sub_.Tensor)),
    aten.mul.Scalar: (Operand(1, "other", aten.mul.Tensor),),
    aten.mul_.Scalar: (Operand(1, "other", aten.mul_.Tensor),),
    aten.div.Scalar: (Operand(1, "other", aten.div.Tensor),),
    aten.div_.Scalar: (Operand(1, "other", aten.div_.Tensor),),
    aten.add.Scalar: (Operand(1, "other", aten.add.Tensor),),
    aten.add_.Scalar: (Operand(1, "other", aten.add_.Tensor),),
    aten.addcmul.default: (Operand(3, "value", _addcmul),),
    aten.addcmul_.default: (Operand(3, "value", _addcmul_),),
    aten.addcdiv.default: (Operand(3, "value", _addcdiv),),
    aten.addcdiv_.default: (Operand(3, "value", _addcdiv_),),
    aten.lerp.Scalar: (Operand(2, "weight", aten.lerp.Tensor),),
    aten.lerp_.Scalar: (Operand(2, "weight", aten.lerp_.Tensor),),
}
_seen: dict[Any, set[float]] = {}


def with_operands(call: Call) -> Call:
    """The call with a tensor in place of a number that changes; itself if there is none."""
    for operand in OPERANDS.get(call.function, ()):
        number = _number(call, operand)
        if number is None:
            continue
        seen = _seen.setdefault(_without(call, operand), set())
        if number not in seen and len(seen) >= CONSTANTS:
            return _replaced(call, operand, number)
        seen.add(number)
        if len(_seen) > MOST_PATTERNS:
            _seen.clear()
    return call


def _number(call: Call, operand: Operand) -> float | None:
    found = call.kwargs.get(operand.name)
    if found is None and operand.position < len(call.args):
        found = call.args[operand.position]
    return found if isinstance(found, float) and abs(found) < float("inf") else None


def _without(call: Call, operand: Operand) -> Any:
    """The key of a call without its number."""
    function, key = call.key
    positional, named = key if call.kwargs else (key, ())
    if operand.name in call.kwargs:
        return function, operand.name, positional, tuple([each for each in named if each[0] != operand.name])
    return function, operand.name, (*positional[: operand.position], *positional[operand.position + 1 :]), named


def _replaced(call: Call, operand: Operand, number: float) -> Call:
    tensor = torch.tensor(number, dtype=torch.float32, device="cpu")
    args, kwargs = list(call.args), dict(call.kwargs)
    if operand.name in kwargs or operand.position >= len(args):
        kwargs[operand.name] = tensor
    elif operand.function.__class__ is torch._ops.OpOverload:
        args[operand.position] = tensor
    else:
        kwargs[operand.name] = args.pop(operand.position)
        kwargs[operand.name] = tensor
    return Call(operand.function, tuple(args), kwargs)
