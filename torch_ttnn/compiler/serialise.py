"""Lowered graphs as JSON, and back: what the cache on disk holds.

A file on disk may have been written by anybody, so reading one gives names and literals only: functions of `ttnn`, ATen
and this package, torch's own tensor functions, and enumerations and configs of `ttnn`.
"""

from __future__ import annotations

import ast
import functools
import importlib
import operator
from typing import Any

import torch
import torch.fx

import ttnn_emulator
from torch_ttnn.compiler import emit
from torch_ttnn.compiler.arguments import DEVICE, DeviceMarker
from torch_ttnn.compiler.brief import dtype_name
from torch_ttnn.compiler.lower import Lowered
from torch_ttnn.compiler.source import module_path
from torch_ttnn.devices import Target, library_function

PLAIN_META = ("path", "number", "reason", "source", "move")


class NotSerialisable(Exception):
    """Something in a graph has no name to find it by again."""


def to_document(lowered: Lowered) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
    """The graphs as JSON, and the constants that lowerings made up."""
    constants: dict[str, torch.Tensor] = {}
    document = {
        "main": [_node_out(node, constants) for node in lowered.main.nodes],
        "prepare": [_node_out(node, constants) for node in lowered.prepare.nodes],
        "weights": [[made.name, here.name] for made, here in lowered.weights],
        "inputs": [None if node is None else node.name for node in lowered.inputs],
        "statics": [[number, node.name] for number, node in lowered.statics.items()],
    }
    return document, constants


def from_document(document: dict[str, Any], constants: dict[str, torch.Tensor], target: Target) -> Lowered:
    """The graphs again, for this target."""
    main, here = _graph_in(document["main"], constants, target)
    prepare, there = _graph_in(document["prepare"], constants, target)
    weights = [(there[made], here[name]) for made, name in document["weights"]]
    for made, placeholder in weights:
        placeholder.meta["prepared"] = made
    return Lowered(
        main,
        prepare,
        weights,
        [None if name is None else here[name] for name in document["inputs"]],
        {number: there[name] for number, name in document["statics"]},
    )


# -- nodes -----------------------------------------------------------------------------------------------------------


def _node_out(node: torch.fx.Node, constants: dict[str, torch.Tensor]) -> dict[str, Any]:
    record: dict[str, Any] = {"op": node.op, "name": node.name}
    if node.op == "call_function":
        record["target"] = _target_out(node)
    if node.args:
        record["args"] = _argument_out(tuple(node.args))["tuple"]
    if node.kwargs:
        record["kwargs"] = {name: _argument_out(item) for name, item in node.kwargs.items()}
    meta = {name: node.meta[name] for name in PLAIN_META if name in node.meta}
    origin = node.meta.get("origin")
    if origin is not None:
        meta["module"] = module_path(origin)
    if "spec" in node.meta:
        meta["spec"] = _spec_out(node.meta["spec"])
    elif isinstance(node.meta.get("val"), torch.Tensor):
        meta["val"] = _val_out(node.meta["val"])
    if "vals" in node.meta:
        meta["vals"] = [_val_out(each) if isinstance(each, torch.Tensor) else None for each in node.meta["vals"]]
    if "constant" in node.meta:
        constants[node.name] = node.meta["constant"].detach()
    record["meta"] = meta
    return record


def _graph_in(
    records: list[dict[str, Any]], constants: dict[str, torch.Tensor], target: Target
) -> tuple[torch.fx.Graph, dict[str, torch.fx.Node]]:
    graph = torch.fx.Graph()
    nodes: dict[str, torch.fx.Node] = {}
    for record in records:
        args = tuple([_argument_in(item, nodes) for item in record.get("args", ())])
        kwargs = {name: _argument_in(item, nodes) for name, item in record.get("kwargs", {}).items()}
        name = record["name"]
        found = target_from(record["target"], target) if "target" in record else name
        node = graph.create_node(record["op"], found, args, kwargs, name=name)
        meta = record["meta"]
        node.meta.update(meta)
        if "spec" in meta:
            node.meta["spec"] = _spec_in(meta["spec"], target)
        if "val" in meta:
            node.meta["val"] = _val_in(meta["val"])
        if "vals" in meta:
            node.meta["vals"] = [None if each is None else _val_in(each) for each in meta["vals"]]
        if name in constants and record["op"] == "get_attr":
            node.meta["constant"] = constants[name]
        nodes[name] = node
    return graph, nodes


# -- targets ---------------------------------------------------------------------------------------------------------


def _target_out(node: torch.fx.Node) -> str:
    if node.meta.get("path"):
        return node.meta["path"]
    target: Any = node.target
    if target is operator.getitem:
        return "getitem"
    if isinstance(target, torch._ops.OpOverload):
        return str(target)
    is_torchs = getattr(torch, getattr(target, "__name__", ""), None) is target
    name = f"torch:{target.__name__}" if is_torchs else f"{target.__module__}:{target.__qualname__}"
    try:
        if _imported(name) is target:
            return name
    except (ImportError, AttributeError):
        pass
    raise NotSerialisable(f"{target!r} has no name to find it by")


def target_from(name: str, target: Target) -> Any:
    if name == "getitem":
        return operator.getitem
    if name.startswith("ttnn."):
        return library_function(target.ttnn, name)
    return _imported(name) if ":" in name else operator.attrgetter(name)(torch.ops)


@functools.cache
def _imported(name: str) -> Any:
    """A function by its name: one of this package, or one of torch's on tensors."""
    module, _, path = name.partition(":")
    if module == "torch" and path in dir(torch._C._VariableFunctions):
        return getattr(torch, path)
    if module.startswith("torch_ttnn.compiler.") and "_" not in (path[:1], path.rpartition(".")[2][:1]):
        return operator.attrgetter(path)(importlib.import_module(module))
    raise NotSerialisable(f"{name} is neither a function of this package nor one of torch's on tensors")


# -- arguments -------------------------------------------------------------------------------------------------------


def _argument_out(item: Any) -> Any:
    if isinstance(item, torch.fx.Node):
        return {"node": item.name}
    if isinstance(item, tuple):
        return {"tuple": [_argument_out(each) for each in item]}
    if isinstance(item, list):
        return [_argument_out(each) for each in item]
    if isinstance(item, dict):
        return {"dict": {name: _argument_out(each) for name, each in item.items()}}
    if isinstance(item, DeviceMarker):
        return {"device": True}
    if item is None or isinstance(item, bool | int | float | str):
        return item
    return {"source": emit.literal(item)}


def _argument_in(item: Any, nodes: dict[str, torch.fx.Node]) -> Any:
    if isinstance(item, list):
        return [_argument_in(each, nodes) for each in item]
    if not isinstance(item, dict):
        return item
    ((kind, inner),) = item.items()
    if kind == "node":
        return nodes[inner]
    if kind == "tuple":
        return tuple([_argument_in(each, nodes) for each in inner])
    if kind == "dict":
        return {name: _argument_in(each, nodes) for name, each in inner.items()}
    return DEVICE if kind == "device" else object_from(inner)


@functools.lru_cache(maxsize=4096)
def object_from(source: str) -> Any:
    """An object of `ttnn` or torch from the expression that makes it."""
    return _value_of(ast.parse(source, mode="eval").body)


def _value_of(node: ast.AST) -> Any:
    """Literals, names of enumerations and dtypes, and calls of classes; nothing else."""
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_value_of(node.operand)
    if isinstance(node, ast.Tuple | ast.List):
        items = [_value_of(each) for each in node.elts]
        return tuple(items) if isinstance(node, ast.Tuple) else items
    if isinstance(node, ast.Set):
        return {_value_of(each) for each in node.elts}
    if isinstance(node, ast.Name) and node.id in _ROOTS:
        return _ROOTS[node.id]
    if isinstance(node, ast.Attribute) and not node.attr.startswith("_"):
        return getattr(_value_of(node.value), node.attr)
    if isinstance(node, ast.Call):
        made_by = _value_of(node.func)
        if isinstance(made_by, type):
            args = [_value_of(each) for each in node.args]
            return made_by(*args, **{str(each.arg): _value_of(each.value) for each in node.keywords})
    raise ValueError(f"{ast.unparse(node)} does not belong in a kept program")


_ROOTS: dict[str, Any] = {"ttnn": ttnn_emulator, "torch": torch, "float": float, "slice": slice}


# -- specs and shapes ------------------------------------------------------------------------------------------------


def _spec_out(spec: Any) -> Any:
    if isinstance(spec, tuple | list):
        return [_spec_out(each) for each in spec]
    if not isinstance(spec, ttnn_emulator.Tensor):
        return None
    return {
        "shape": list(spec.spec.shape),
        "dtype": emit.literal(spec.dtype),
        "layout": emit.literal(spec.layout),
        "memory": emit.literal(spec.memory_config()),
        "device": spec.spec.on_device,
    }


def _spec_in(record: Any, target: Target) -> Any:
    if isinstance(record, list):
        return [_spec_in(each, target) for each in record]
    if record is None:
        return None
    return ttnn_emulator.spec_tensor(
        tuple(record["shape"]),
        object_from(record["dtype"]),
        object_from(record["layout"]),
        device=target.typing if record["device"] else None,
        memory_config=object_from(record["memory"]),
    )


def _val_out(val: torch.Tensor) -> list[Any]:
    return [list(val.shape), list(val.stride()), dtype_name(val.dtype)]


def _val_in(record: list[Any]) -> torch.Tensor:
    shape, stride, dtype = record
    return _without_values(tuple(shape), tuple(stride), dtype)


@functools.lru_cache(maxsize=1024)
def _without_values(shape: tuple[int, ...], stride: tuple[int, ...], dtype: str) -> torch.Tensor:
    """Layers are alike, so a few of these describe all values of a graph; nobody changes them."""
    return torch.empty_strided(shape, stride, dtype=getattr(torch, dtype), device="meta")
