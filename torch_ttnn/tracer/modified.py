"""The operations of a compiled program as records: TT-NN calls with their specs, and what stayed on the host."""

from __future__ import annotations

import functools
import inspect
import math
import operator
from collections.abc import Iterator
from typing import Any

import torch
import torch.fx

import ttnn_emulator
from torch_ttnn.compiler.analysis.memory import spec_tensors
from torch_ttnn.compiler.errors import CompileError
from torch_ttnn.compiler.ir.arguments import mapped
from torch_ttnn.compiler.ir.metadata import MOVE, ORIGIN, PATH, REASON
from torch_ttnn.compiler.ir.source_lines import module_path, source_line
from torch_ttnn.compiler.runtime.border import library_function
from torch_ttnn.compiler.stages import emit
from torch_ttnn.tracer.calls import Call, Verdict, jsonable, record
from torch_ttnn.tracer.facts import facts_of
from torch_ttnn.tracer.records import NOT_JSONABLE, Record, TensorFact
from ttnn_emulator import DataType
from ttnn_emulator.api.binding import overloads_of

Node = torch.fx.Node
BLOCK = 16  # values of a block format that share one exponent byte
BYTES = {
    DataType.FLOAT32: 4,
    DataType.INT32: 4,
    DataType.UINT32: 4,
    DataType.BFLOAT16: 2,
    DataType.UINT16: 2,
    DataType.UINT8: 1,
    DataType.BFLOAT8_B: 1 + 1 / BLOCK,
    DataType.BFLOAT4_B: 1 / 2 + 1 / BLOCK,
}


def records_of_program(graph: torch.fx.Graph) -> Iterator[Record]:
    """Records of every call of a program; FLOPs are counted on the captured graph only."""
    for node in graph.nodes:
        if node.op != "call_function":
            continue
        if PATH.get(node):
            yield _device_call(node)
        elif isinstance(node.target, torch._ops.OpOverload):
            yield _host_call(node)


def _device_call(node: Node) -> Record:
    named = _named(node)
    inputs = [found for name, value in named.items() for found in _nodes_within(name, value)]
    tensors = spec_tensors(node)
    outputs = [("", each) for each in tensors] if tensors else [("", node)]
    source, module = _origin(node)
    return Record(
        op_type=PATH[node],
        inputs=tuple([_fact(name, each) for name, each in inputs]),
        outputs=tuple([_fact(name, each) for name, each in outputs]),
        arguments={name: _as_json(value) for name, value in named.items()},
        source=source,
        module=module,
        bytes_in=sum([_bytes(each) for _, each in inputs]),
        bytes_out=sum([_bytes(each) for _, each in outputs]),
        lowering="device",
    )


def _host_call(node: Node) -> Record:
    """A call of torch: a host operation, or part of a move."""
    args, kwargs = mapped(node.args, _host_value), mapped(dict(node.kwargs), _host_value)
    source, module = _origin(node)
    call = Call(node.target, args, kwargs, _host_value(node), source, module)  # type: ignore[arg-type]
    return record(call, facts_of(call), Verdict("host", REASON.get(node) or str(MOVE.get(node) or "")))


def _origin(node: Node) -> tuple[str, str]:
    """Source line and module."""
    origin = ORIGIN.get(node)
    return (source_line(origin), module_path(origin)) if isinstance(origin, Node) else ("", "")


# -- values of nodes --------------------------------------------------------------------------------------------------


def _host_value(item: Any) -> Any:
    """The fake tensor of a node's result; of several outputs, those that are used."""
    if not isinstance(item, Node):
        return item
    if "val" in item.meta:
        return item.meta["val"]
    read: dict[Any, Any] = {
        user.args[1]: user.meta.get("val") for user in item.users if user.target is operator.getitem
    }
    return tuple([read.get(number) for number in range(max(read, default=-1) + 1)])


def _fact(name: str, item: Any) -> TensorFact:
    """A tensor of the device or of torch."""
    if isinstance(item, ttnn_emulator.Tensor):
        return TensorFact(tuple(item.spec.shape), item.dtype.name.lower(), name)
    tensors = spec_tensors(item)
    if tensors:
        return _fact(name, tensors[0])
    val = _host_value(item)
    return TensorFact(tuple(val.shape), str(val.dtype).removeprefix("torch."), name)


def _bytes(item: Any) -> int:
    """Elements times their size, as for torch's tensors; tile padding is not counted."""
    if isinstance(item, ttnn_emulator.Tensor):
        return math.ceil(math.prod(item.spec.shape) * BYTES[item.dtype])
    tensors = spec_tensors(item)
    return sum(map(_bytes, tensors)) if tensors else _host_value(item).nbytes


def _nodes_within(name: str, value: Any) -> Iterator[tuple[str, Node]]:
    if isinstance(value, Node):
        yield name, value
    elif isinstance(value, tuple | list):
        for number, each in enumerate(value):
            yield from _nodes_within(f"{name}[{number}]", each)


# -- arguments of TT-NN calls -----------------------------------------------------------------------------------------


def _named(node: Node) -> dict[str, Any]:
    """Arguments by their names in the library."""
    names = _parameter_names(PATH[node], len(node.args), frozenset(node.kwargs))
    return dict(zip(names, node.args)) | dict(node.kwargs)


@functools.lru_cache(maxsize=4096)
def _parameter_names(path: str, positional: int, keywords: frozenset[str]) -> tuple[str, ...]:
    """Names of the positional arguments, from the first signature that accepts their number and these keywords."""
    known = [overload.names for overload in overloads_of(path)]
    if not known:  # implemented in Python by the library
        function = library_function(ttnn_emulator, path)
        known = [tuple(inspect.signature(getattr(function, "function", function)).parameters)]
    for names in known:
        if len(names) >= positional and keywords <= set(names) - set(names[:positional]):
            return names[:positional]
    return tuple([f"arg{number}" for number in range(positional)])


def _as_json(value: Any) -> Any:
    """As JSON; objects of the library as the source that creates them."""
    plain = jsonable(value)
    if plain != NOT_JSONABLE or any(True for _ in _nodes_within("", value)):
        return plain
    try:
        return emit.literal(value)
    except CompileError:
        return NOT_JSONABLE
