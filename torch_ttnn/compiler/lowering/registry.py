"""The registry of lowerings: which function emits the TT-NN calls for an ATen overload.

    @lowers(aten.addmm.default)
    def addmm(ttnn, bias, x, weight, *, beta=1, alpha=1):
        ...

The function receives `ttnn`, which has the library's names and records their calls in the program, then the ATen
arguments with values in place of tensors. If its second parameter is named `builder`, it also receives the
`ProgramBuilder`. It returns what the overload returns: a handle or a value, or a tuple of them (None for an unused
output). An unsupported case is refused with a reason, by `when=` or `refuse(...)`: only that operation then falls back
to the host.

`torch_ttnn.lowers` is the same for lowerings that users write in their own packages (docs/compiler.md).

A pointwise function receives aligned handles in place of values, so it works in any storage order:

    @pointwise(aten.relu.default)
    def relu(ttnn, x):
        return ttnn.relu(x)
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

Function = Callable[..., Any]


@dataclass(frozen=True)
class Lowering:
    """How one overload is lowered. `when` takes the same arguments and returns a reason not to lower it, or None."""

    function: Function
    when: Function | None
    pointwise: bool
    is_users: bool = False  # it is from another package


LOWERINGS: dict[Any, Lowering] = {}
PACKAGE = __name__.partition(".")[0]


def lowers(*overloads: Any, when: Function | None = None, override: bool = False) -> Callable[[Function], Function]:
    """Register the function as the lowering of these overloads of ATen or custom operators.

    when      takes the arguments of the function and returns a reason to leave the operation on the host, or None
    override  replace an existing lowering of an overload

    It applies to later compilations.
    """
    for overload in overloads:
        if not isinstance(overload, torch._ops.OpOverload) and not getattr(overload, "__module__", "").startswith(
            PACKAGE
        ):
            raise TypeError(f"lowers takes overloads such as torch.ops.aten.gelu.default, not {overload!r}")
    return functools.partial(_register, overloads, when, False, override)


def pointwise(*overloads: Any, when: Function | None = None) -> Callable[[Function], Function]:
    """Register a function of aligned operands with one result of the broadcast shape."""
    return functools.partial(_register, overloads, when, True, False)


def _register(
    overloads: tuple, when: Function | None, is_pointwise: bool, override: bool, function: Function
) -> Function:
    is_users = not function.__module__.startswith(f"{PACKAGE}.")
    for overload in overloads:
        if overload in LOWERINGS and not override:
            name = LOWERINGS[overload].function.__name__
            raise ValueError(f"{overload} has a lowering already, {name}; override=True replaces it")
        LOWERINGS[overload] = Lowering(with_builder(function), when and with_builder(when), is_pointwise, is_users)
    return function


def with_builder(function: Function) -> Function:
    """Adapt a function so that it can be called with `ttnn` and `builder`, even if it does not take `builder`."""
    if list(inspect.signature(function, follow_wrapped=False).parameters)[1:2] == ["builder"]:
        return function

    @functools.wraps(function)
    def without(ttnn: Any, builder: Any, *args: Any, **kwargs: Any) -> Any:
        return function(ttnn, *args, **kwargs)

    return without


def find(overload: Any) -> Lowering | None:
    return LOWERINGS.get(overload)


def users_sources() -> list[str]:
    """The sources of lowerings from outside of this package, as a part of the cache key of programs."""
    found = []
    for overload, lowering in LOWERINGS.items():
        if lowering.is_users:
            functions = [inspect.unwrap(each) for each in (lowering.function, lowering.when) if each is not None]
            found += [f"{overload}: {_source(each)}" for each in functions]
    return sorted(found)


def _source(function: Function) -> str:
    """The source of the module that defines it, which includes its helpers; its bytecode if there is no source."""
    module = inspect.getmodule(function)
    try:
        return inspect.getsource(module if module is not None else function)
    except (OSError, TypeError):
        code = function.__code__
        return repr((code.co_code, code.co_consts, code.co_names))


def is_random(overload: Any) -> bool:
    """Whether two calls return different values, so that the result must not be computed once and reused."""
    return isinstance(overload, torch._ops.OpOverload) and torch.Tag.nondeterministic_seeded in overload.tags
