"""One call of an operation as a record: its tensors, and its arguments by schema name."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._python_dispatch import _disable_current_modes

from torch_ttnn.compiler.ir.arguments import mapped
from torch_ttnn.compiler.ir.describe import dtype_name
from torch_ttnn.tracer.records import NOT_JSONABLE, Record, TensorFact

SYMBOLS = (torch.SymInt, torch.SymFloat, torch.SymBool)
NAMED = (torch.dtype, torch.device, torch.layout, torch.memory_format)  # written as str() gives them


class UnknownSize(Exception):
    """A size that is only known when the graph runs."""


@dataclass(frozen=True)
class Call:
    """An operation with its arguments and results; tensors may be fake."""

    op: torch._ops.OpOverload
    args: tuple
    kwargs: dict[str, Any]
    result: Any
    source: str = ""
    module: str = ""

    @functools.cached_property
    def arguments(self) -> dict[str, Any]:
        """By their names, defaults included."""
        return bound(self.op, self.args, self.kwargs)

    @functools.cached_property
    def inputs(self) -> list[tuple[str, torch.Tensor]]:
        return [found for name, value in self.arguments.items() for found in named_tensors(name, value)]

    @functools.cached_property
    def outputs(self) -> list[tuple[str, torch.Tensor]]:
        returns = self.op._schema.returns
        if len(returns) == 1:
            return list(named_tensors(returns[0].name or "", self.result))
        parts = self.result if isinstance(self.result, tuple | list) else ()
        names = [each.name or f"[{number}]" for number, each in enumerate(returns)]
        return [found for name, part in zip(names, parts) for found in named_tensors(name, part)]


@dataclass(frozen=True)
class Facts:
    """Facts about a call beyond its arguments."""

    flops: int = 0
    bytes_in: int = 0
    bytes_out: int = 0


@dataclass(frozen=True)
class Verdict:
    """What becomes of a call in the compiler: `device`, `host`, `decomposed`, or empty; and why not the device."""

    lowering: str = ""
    reason: str = ""


def record(call: Call, facts: Facts | None = None, verdict: Verdict | None = None) -> Record:
    """The call as a record."""
    facts, verdict = facts or Facts(), verdict or Verdict()
    return Record(
        op_type=str(call.op),
        inputs=tuple([TensorFact(sizes(each), dtype_name(each.dtype), name) for name, each in call.inputs]),
        outputs=tuple([TensorFact(sizes(each), dtype_name(each.dtype), name) for name, each in call.outputs]),
        arguments={name: jsonable(value) for name, value in call.arguments.items()},
        source=call.source,
        module=call.module,
        flops=facts.flops,
        bytes_in=facts.bytes_in,
        bytes_out=facts.bytes_out,
        lowering=verdict.lowering,
        reason=verdict.reason,
    )


# -- arguments --------------------------------------------------------------------------------------------------------


def bound(op: torch._ops.OpOverload, args: tuple, kwargs: dict[str, Any]) -> dict[str, Any]:
    """Arguments by their names in the schema, defaults filled in.

    >>> bound(torch.ops.aten.softmax.int, ("x", 1), {})
    {'self': 'x', 'dim': 1, 'dtype': None}
    """
    names, defaults = _parameters(op)
    found = dict(zip(names, args)) | kwargs
    ordered = {name: found.pop(name, defaults.get(name)) for name in names if name in found or name in defaults}
    return ordered | found


@functools.lru_cache(maxsize=4096)
def _parameters(op: torch._ops.OpOverload) -> tuple[list[str], dict[str, Any]]:
    """Names in order, and the defaults."""
    parameters = op._schema.arguments
    defaults = {each.name: each.default_value for each in parameters if each.has_default_value()}
    return [each.name for each in parameters], defaults


def jsonable(value: Any) -> Any:
    """An argument as JSON, or `"not_jsonable"`.

    >>> jsonable([1, 2.5, None]), jsonable(torch.float16), jsonable(float("-inf")), jsonable(torch.ones(1))
    ([1, 2.5, None], 'torch.float16', '-inf', 'not_jsonable')
    """
    if isinstance(value, SYMBOLS):
        value = hint(value)
    if isinstance(value, bool | int | str | None):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, NAMED):
        return str(value)
    if isinstance(value, tuple | list):
        parts = [jsonable(each) for each in value]
        return NOT_JSONABLE if NOT_JSONABLE in parts else parts
    return NOT_JSONABLE


def named_tensors(name: str, value: Any) -> Iterator[tuple[str, torch.Tensor]]:
    """The tensors of an argument: itself, or the items of a list."""
    if isinstance(value, torch.Tensor):
        yield name, value
    elif isinstance(value, tuple | list):
        for number, each in enumerate(value):
            yield from named_tensors(f"{name}[{number}]", each)


# -- sizes that are symbols -------------------------------------------------------------------------------------------


def hint(value: Any) -> Any:
    """The value of a symbol in this run."""
    if not isinstance(value, SYMBOLS):
        return value
    node = value.node
    if node.has_hint():
        return node.hint
    raise UnknownSize(f"{value} is only known when the graph runs")


def sizes(tensor: torch.Tensor) -> tuple[int, ...]:
    return tuple([hint(each) for each in tensor.shape])


def concrete(item: Any) -> Any:
    """The same arguments with numbers in place of symbols; a tensor of symbolic sizes becomes one without values."""
    return mapped(item, _concrete)


def _concrete(item: Any) -> Any:
    if isinstance(item, SYMBOLS):
        return hint(item)
    if not isinstance(item, torch.Tensor) or not is_symbolic(item):
        return item
    strides = [hint(each) for each in item.stride()]
    with _disable_current_modes():
        return torch.empty_strided(sizes(item), strides, dtype=item.dtype, device="meta")


def is_symbolic(tensor: torch.Tensor) -> bool:
    if tensor.layout is not torch.strided:
        return False
    return any(isinstance(each, torch.SymInt) for each in (*tensor.shape, *tensor.stride()))
