"""The table of lowerings: which function writes the TT-NN program of an ATen overload.

    @lowers(aten.addmm.default)
    def addmm(ttnn, bias, x, weight, *, beta=1, alpha=1):
        ...

The function gets the recorder under the name `ttnn`, then the ATen arguments with values in place of tensors. It
returns what the overload returns: a handle or a value, or a tuple of them (None for an output nobody uses). A case it
does not handle is refused with a reason, by `when=` or `refuse(...)`: the operation then stays on the host, alone.

A pointwise function sees aligned handles in place of values, so it works in whatever order they are stored:

    @pointwise(aten.relu.default)
    def relu(ttnn, x):
        return ttnn.relu(x)
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

Function = Callable[..., Any]


@dataclass(frozen=True)
class Lowering:
    """How one overload is lowered, and whether: `when` takes the same arguments and gives a reason not to, or None."""

    function: Function
    when: Function | None
    pointwise: bool


LOWERINGS: dict[Any, Lowering] = {}


def lowers(*overloads: Any, when: Function | None = None) -> Callable[[Function], Function]:
    return functools.partial(_register, overloads, when, False)


def pointwise(*overloads: Any, when: Function | None = None) -> Callable[[Function], Function]:
    """Register a function of aligned operands; one result of the broadcast shape."""
    return functools.partial(_register, overloads, when, True)


def _register(overloads: tuple, when: Function | None, is_pointwise: bool, function: Function) -> Function:
    for overload in overloads:
        if overload in LOWERINGS:
            raise ValueError(f"{overload} has a lowering already, {LOWERINGS[overload].function.__name__}")
        LOWERINGS[overload] = Lowering(function, when, is_pointwise)
    return function


def find(overload: Any) -> Lowering | None:
    return LOWERINGS.get(overload)


def is_random(overload: Any) -> bool:
    """Whether two calls give different values: such a call is never prepared once."""
    return isinstance(overload, torch._ops.OpOverload) and torch.Tag.nondeterministic_seeded in overload.tags
