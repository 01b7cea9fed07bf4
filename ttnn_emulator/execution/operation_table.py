"""The table of operations.

A device operation is one function from its arguments, with *specs* instead of tensors, to a `Plan`: it checks them as
`ttnn` does, infers the outputs, and returns the prepared computation. The plan is stored in the device's program cache,
so a warm call neither checks nor infers anything.

    @operation("ttnn.relu", ignores=("sub_core_grids",))
    def relu(input_tensor, *, memory_config=None, output_tensor=None):
        require(input_tensor.is_tile, "...")
        return Plan(input_tensor.with_(memory_config=...), lambda x: x.clamp(min=0))

A composite is a function of real tensors that calls other operations, as the library's composites do.

    @composite("ttnn.mish")
    def mish(input_tensor, *, memory_config=None):
        return multiply(input_tensor, tanh(softplus(input_tensor)))
"""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

from ttnn_emulator.api.binding import NoMatch, Overload, bind, make_overload, overloads_of, signatures_against
from ttnn_emulator.api.recorded import operation_names, public_names
from ttnn_emulator.errors import EmulatorError, NotEmulated
from ttnn_emulator.execution.launch_memory import Stage
from ttnn_emulator.tensors.spec import Spec
from ttnn_emulator.tensors.tensor import Tensor

ONLY_TENSORS = {Tensor}

OPERATIONS: dict[str, Operation] = {}

# Where a call runs, not what it computes: which queue, which part of the chip.
NEVER_MATTER = frozenset({"queue_id", "cq_id", "sub_device_id"})


Bind = Callable[[Sequence[Any], Sequence[bool]], tuple[Callable[[], Any] | None, Any] | None]


@dataclass(frozen=True)
class Bindable:
    """A computation that can be bound to fixed buffers, for traces that repeat it on the same memory.

    `bind` takes contiguous carriers with fixed addresses, and whether each is constant. It returns a function that
    computes from their current values, or None if nothing is left to do, and the carrier that is filled. If it returns
    None alone, the computation is called as usual.
    """

    compute: Callable[..., Any]
    bind: Bind

    def __call__(self, *carriers: Any) -> Any:
        return self.compute(*carriers)


@dataclass(frozen=True)
class Updating(Bindable):
    """A computation whose output is its first carrier with some values replaced, such as a row of a cache.

    Bound, it replaces them in the memory of that carrier, which `bind` returns as the one that is filled.
    """


def bindable(compute: Callable[..., Any], bind: Bind | None) -> Callable[..., Any]:
    """A computation with its `bind` function, if it has one."""
    return compute if bind is None else Bindable(compute, bind)


@dataclass(slots=True, eq=False)  # not frozen: that would double its construction time
class Plan:
    """A prepared call; immutable.

    outputs   spec of the result; a list or tuple of specs returns a list or tuple of tensors; None returns None
    compute   wide carriers of the tensors in `reads` → carrier(s) of the outputs, already of their dtype; it may be
              `Bindable`
    reads     names of the tensor parameters that `compute` takes, in order; by default all but those in `into`
    into      names of parameters whose buffers receive the outputs, one per output (None: a new buffer)
    shares    name of the parameter whose buffer the output is a view of
    across    `compute` sees all chips of the mesh: it takes and returns lists with one carrier per chip
    l1_bytes  bytes of circular buffers in the L1 of every core that the program uses
    stages    L1 allocations and deallocations in order, where there are more than outputs and circular buffers
    narrow    `compute` also takes narrow carriers: it moves values, or widens them where needed
    program   the part of this call that the library hashes, if not all of it, with the name of the program first:
              calls with equal keys share a cached program. `NO_PROGRAM` is for tensors that the host fills.
    padding   the padding value of the outputs, where it is known and may be read
    padded    the spec of the only tensor in `reads`, if `compute` takes its carrier with padding: the call fails if
              the padding is unknown, and in traces. For views, `compute` takes the carrier with or without it.
    is_seeded  an argument is a seed: only the latest of these plans are kept
    wrap      builds the return value from the list of output tensors; by default they are returned unchanged
    work      what the timing model needs of the program beyond specs
    """

    outputs: Spec | Sequence[Spec] | None
    compute: Callable[..., Any] | None
    reads: tuple[str, ...] | None = None
    into: tuple[str | None, ...] = ()
    shares: str | None = None
    l1_bytes: int = 0
    across: bool = False
    narrow: bool = False
    wrap: Callable[[list[Any]], Any] | None = None
    padding: float | None = None
    padded: Spec | None = None
    program: Hashable | None = None
    stages: tuple[Stage, ...] = ()
    is_seeded: bool = False
    work: Any = None


NO_PROGRAM = ("none",)


class Operation:
    """A callable of the public API. `name` is its full name, e.g. `ttnn.transformer.concatenate_heads`."""

    def __init__(self, name: str, function: Callable[..., Any], *, kind: str, ignores: Sequence[str] = ()) -> None:
        self.name = name
        self.is_public = name.startswith("ttnn.")
        self.function = function
        self.kind = kind
        self.ignores = frozenset(ignores) | NEVER_MATTER
        self.__name__ = name.rsplit(".", 1)[-1]
        self.__qualname__ = self.__name__
        self.__module__ = name.rsplit(".", 1)[0]
        self.__doc__ = function.__doc__
        self.python_fully_qualified_name = name
        parameters = inspect.signature(function).parameters.values()
        self._takes_all = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters)
        self._accepts = frozenset(parameter.name for parameter in parameters)
        self._taking_tensors: dict[int, Overload] = {}

    @property
    def golden_function(self) -> Callable[..., Any] | None:
        """Its golden function, if it has one."""
        from ttnn_emulator.golden_functions import GOLDEN_FUNCTIONS

        return vars(self).get("_own_golden") or GOLDEN_FUNCTIONS.get(self.name)

    @golden_function.setter
    def golden_function(self, function: Callable[..., Any] | None) -> None:
        vars(self)["_own_golden"] = function

    @functools.cached_property
    def overloads(self) -> tuple[Overload, ...]:
        return overloads_of(self.name)

    def arguments(self, names: Sequence[str], values: Sequence[Any]) -> dict[str, Any]:
        """Bound values by name, without those that this operation does not take."""
        if self._takes_all:
            return dict(zip(names, values))
        return {name: value for name, value in zip(names, values) if name in self._accepts}

    def unread_parameters(self) -> set[str]:
        """Recorded parameters that the function neither takes nor ignores. A test requires that there are none."""
        recorded = {name for overload in self.overloads for name in overload.names}
        return set() if self._takes_all else recorded - self._accepts - self.ignores

    @functools.cached_property
    def _run(self) -> Callable[[Operation, tuple, dict[str, Any]], Any]:
        from ttnn_emulator.execution import dispatch

        return dispatch.call_device_operation if self.kind == "device" else dispatch.call_composite

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if kwargs and ("queue_id" in kwargs or "cq_id" in kwargs):
            return self._on_queue(args, kwargs)
        return self._run(self, args, kwargs)

    def _on_queue(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        """Every operation takes the number of a command queue, under either name, beside its own parameters."""
        from ttnn_emulator.execution.queues import queue_of

        number = kwargs.pop("queue_id" if "queue_id" in kwargs else "cq_id")
        try:
            with queue_of(number, (*args, *kwargs.values())):
                return self._run(self, args, kwargs)
        except EmulatorError as error:
            raise error.at(self.name, f"queue {number!r}") from None

    def bind(self, args: tuple, kwargs: dict[str, Any]) -> tuple[Overload, tuple]:
        """The overload that takes these arguments, and the values of all its parameters."""
        overloads = self.overloads
        only_tensors = not kwargs and len(overloads) > 1 and set(map(type, args)) == ONLY_TENSORS
        if only_tensors and len(args) in self._taking_tensors:
            found = self._taking_tensors[len(args)]
            return found, found.bind_strictly(*args)
        index, values = bind(self.name, overloads, args, kwargs)
        if only_tensors and _binds_strictly(overloads[index], args):
            # The overload depends only on the number of tensors.
            self._taking_tensors[len(args)] = overloads[index]
        return overloads[index], values

    def __repr__(self) -> str:
        return f"<operation {self.name}>"

    def __reduce__(self) -> tuple:
        return _operation_by_name, (self.name,)

    def __deepcopy__(self, memo: dict) -> Operation:
        return self


def _binds_strictly(overload: Overload, args: tuple) -> bool:
    try:
        overload.bind_strictly(*args)
    except (TypeError, NoMatch):
        return False
    return True


def _operation_by_name(name: str) -> Operation:
    return OPERATIONS[name]


def operation(name: str, *aliases: str, ignores: Sequence[str] = ()) -> Callable[[Callable], Operation]:
    """Register a device operation: a function from specs and arguments to a Plan."""
    return _register(name, aliases, kind="device", ignores=ignores)


def composite(name: str, *aliases: str, ignores: Sequence[str] = ()) -> Callable[[Callable], Operation]:
    """Register an operation that calls other operations, or that moves tensors."""
    return _register(name, aliases, kind="composite", ignores=ignores)


def same(alias: str, name: str) -> None:
    """Register an alias of an operation: the same object."""
    OPERATIONS[alias] = OPERATIONS[name]


def internal(name: str, parameters: Sequence[Sequence[Any]] | None = None) -> Callable[[Callable], Operation]:
    """A device operation that only composites call; in the library, its name is not public.

    Arguments are bound by the function's own signature (parameters annotated with `Spec` take tensors), or by
    `parameters`: name, kind, type and default, as in the recorded API.
    """

    def wrap(function: Callable) -> Operation:
        op = Operation(name, function, kind="device")
        op.overloads = (make_overload(_signature(function) if parameters is None else parameters),)
        return op

    return wrap


def _signature(function: Callable) -> list[tuple]:
    parameters = []
    for parameter in inspect.signature(function).parameters.values():
        text = str(parameter.annotation)
        type_text = text.replace("Spec", "Tensor") if re.search(r"\bSpec\b", text) else "object"
        default = () if parameter.default is parameter.empty else (parameter.default,)
        kind = "k" if parameter.kind is parameter.KEYWORD_ONLY else "p"
        parameters.append((parameter.name, kind, type_text, *default))
    return parameters


def _register(
    name: str, aliases: Sequence[str], *, kind: str, ignores: Sequence[str]
) -> Callable[[Callable], Operation]:
    def wrap(function: Callable) -> Operation:
        for each in (name, *aliases):
            if each in OPERATIONS:
                raise ValueError(f"{each} is registered twice")
            OPERATIONS[each] = Operation(each, function, kind=kind, ignores=ignores)
        return OPERATIONS[name]

    return wrap


class _Library:
    """Other operations by their names, for composites: `ttnn.add(a, b)`, `ttnn.transformer.concatenate_heads(x)`."""

    def __init__(self, path: str = "ttnn") -> None:
        self._path = path

    def __getattr__(self, name: str) -> Any:
        full = f"{self._path}.{name}"
        found = OPERATIONS[full] if full in OPERATIONS else _Library(full)
        setattr(self, name, found)
        return found


ttnn: Any = _Library()


class MissingSignature(NotEmulated, TypeError):
    """An operation that is not emulated was called with arguments that the library refuses, too."""


class MissingOperation:
    """Placeholder of a `ttnn` operation that is not emulated; raises when it is called."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.__name__ = name.rsplit(".", 1)[-1]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        message = f"{self.name} exists in ttnn but is not emulated"
        signatures = signatures_against(self.name, args, kwargs)
        if signatures:
            raise MissingSignature(message, hint=f"It does not take these arguments either:\n    {signatures}")
        raise NotEmulated(
            message,
            hint="Adding it is one function and one table of cases: CONTRIBUTING.md, 'Add an operation'.",
        )

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # protocol attributes, as read by copy and inspect
            raise AttributeError(name)
        raise AbsentValue(f"{self.name} exists in ttnn but is not emulated: it has no {name}")

    def __repr__(self) -> str:
        return f"<operation {self.name}, not emulated>"


class AbsentValue(NotEmulated, AttributeError):
    """A constant of `ttnn` that is not emulated."""


def absent(name: str) -> MissingOperation:
    """The placeholder of a function or class that is not emulated; names unknown to `ttnn` raise AttributeError."""
    kind = public_names().get(name)
    if kind is None:
        raise AttributeError(f"ttnn has no {name}")
    if kind in ("function", "class", "operation") or kind[0] in "=~":
        return MissingOperation(name)
    raise AbsentValue(f"{name} exists in ttnn but is not emulated")


def find(name: str) -> Operation | MissingOperation:
    """The operation of this full name; unknown names raise AttributeError."""
    if name in OPERATIONS:
        return OPERATIONS[name]
    if name in operation_names():
        return MissingOperation(name)
    return absent(name)


__all__ = [
    "OPERATIONS",
    "Bind",
    "Bindable",
    "MissingOperation",
    "NO_PROGRAM",
    "Operation",
    "Plan",
    "Updating",
    "absent",
    "bindable",
    "composite",
    "find",
    "internal",
    "operation",
    "same",
    "ttnn",
]
