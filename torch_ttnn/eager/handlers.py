"""The table of operations that are neither views nor programs, and the function that runs any operation."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

from torch_ttnn.compiler.lowering import LOWERINGS
from torch_ttnn.eager.host import run_on_host
from torch_ttnn.eager.operations import run_program
from torch_ttnn.eager.schemas import is_view, returns_of
from torch_ttnn.eager.tensor import become, tensor_of
from torch_ttnn.eager.views import Geometry, geometry_after, step_of

Handler = Callable[[Any, tuple, dict[str, Any]], Any]
HANDLERS: dict[Any, Handler] = {}
CHANGES_VALUES = frozenset({torch.ops.aten._conj.default, torch.ops.aten._neg_view.default})
EXPLICIT = torch._C.DispatchKey.CompositeExplicitAutograd


def handles(*functions: Any) -> Callable[[Handler], Handler]:
    """Register the handler of these operations."""

    def register(handler: Handler) -> Handler:
        HANDLERS.update(dict.fromkeys(functions, handler))
        return handler

    return register


def run(function: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    """Run an operation that has a tensor on `ttnn` among its arguments."""
    handler = HANDLERS.get(function)
    if handler is None:
        handler = HANDLERS[function] = _handler_of(function)
    return handler(function, args, kwargs)


def _handler_of(function: Any) -> Handler:
    if not isinstance(function, torch._ops.OpOverload):
        return _not_implemented
    if function._can_decompose() and (function not in LOWERINGS or is_view(function)):  # in inference mode
        return _decomposed
    if is_view(function):
        return view
    if torch.Tag.inplace_view in function.tags:
        return _changed_in_place
    if function not in LOWERINGS and function.name().startswith("aten::_foreach_"):
        return _each
    return run_program if returns_of(function).tensors else _without_tensors


def view(function: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    """A view shares the storage of its source; nothing is computed."""
    source, *rest = args
    geometry = Geometry.of(source)
    step = step_of(function, rest, kwargs)
    made = geometry_after(geometry, step)
    held, chain = source._held, source._chain
    if isinstance(made, list):
        steps = [step_of(function, rest, kwargs, index) for index in range(len(made))]
        return [tensor_of(each, held, chain.then(step)) for each, step in zip(made, steps)]
    if made == geometry and function not in CHANGES_VALUES:  # detach, alias, and views that change nothing
        return tensor_of(made, held, chain)
    return tensor_of(made, held, chain.then(step))


def _changed_in_place(function: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    """`transpose_`, `unsqueeze_` …: the tensor becomes a view of its storage."""
    become(args[0], view(_view_form(function), args, kwargs))
    return args[0]


@functools.cache
def _view_form(function: Any) -> Any:
    """`transpose.int` of `transpose_`: the overload that takes the same arguments."""
    packet = getattr(torch.ops.aten, function.overloadpacket.__name__.removesuffix("_"))
    wanted = [(each.name, str(each.type)) for each in function._schema.arguments]
    overloads = [getattr(packet, name) for name in packet.overloads()]
    return next(each for each in overloads if [(its.name, str(its.type)) for its in each._schema.arguments] == wanted)


def _decomposed(function: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    """A composite operation: torch's own decomposition, which calls others."""
    return function.decompose(*args, **kwargs)


def _each(function: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    """An operation on lists of tensors: torch's kernel calls the operation of each tensor."""
    return function._op_dk(EXPLICIT, *args, **kwargs)


def _without_tensors(function: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    return run_on_host(function, args, kwargs, "it returns a value that is not a tensor")


def _not_implemented(function: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    return NotImplemented
