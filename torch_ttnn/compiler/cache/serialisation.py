"""Converts lowered graphs to JSON and back, for the cache on disk.

Layers of a model repeat, so data shared by nodes is stored once, in tables: the functions they call, their options, and
notes (shapes, reasons, moves). A node is a short list of indices: into these tables, of its arguments in the graph, and
of its origin in the captured graph. The captured graph is available when a program is read, and has the lines of the
model.

A file on disk is untrusted. Reading one produces names and literals only: operations of `ttnn`, ATen operators, fused
operators and functions that prepare weights, none of which touches a file; enumerations and configs of `ttnn`. All text
that becomes part of a program's source is validated.
"""

from __future__ import annotations

import ast
import enum
import functools
import json
import operator
from typing import Any

import torch
import torch.fx

import ttnn_emulator
from torch_ttnn.compiler.fusion.composites import COMPOSITES, is_composite
from torch_ttnn.compiler.ir.arguments import DEVICE, DeviceMarker, leaves
from torch_ttnn.compiler.ir.describe import dtype_name
from torch_ttnn.compiler.ir.metadata import (
    CONSTANT,
    MOVE,
    NUMBER,
    ORIGIN,
    OUTPUT_VALS,
    PATH,
    POSITION,
    REASON,
    SOURCE,
    SPEC,
    Facts,
    Move,
    annotate,
)
from torch_ttnn.compiler.ir.nodes import call_node
from torch_ttnn.compiler.lowering.support.preparation import FUNCTIONS, NAMES
from torch_ttnn.compiler.runtime.border import library_function
from torch_ttnn.compiler.stages import emit
from torch_ttnn.compiler.stages.lower import Lowered
from torch_ttnn.devices import Target
from ttnn_emulator.execution.operation_table import OPERATIONS

PLAIN_NOTES = (REASON, SOURCE)
NAMESPACES = ("aten", "prims", "torchvision", "torch_ttnn")
TOUCH_FILES = ("aten.from_file.default", "aten.from_file.out", "ttnn.as_tensor", "ttnn.dump_tensor", "ttnn.load_tensor")


class NotSerialisable(Exception):
    """A graph contains an object that cannot be looked up by name."""


def to_document(lowered: Lowered) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
    """The graphs as JSON, and the constants created by lowerings."""
    writer = _Writer()
    main, main_places = writer.graph(lowered.main)
    prepare, prepare_places = writer.graph(lowered.prepare)
    document = {
        "tables": {name: [json.loads(text) for text in table] for name, table in writer.tables.items()},
        "main": main,
        "prepare": prepare,
        "weights": [[prepare_places[prepared], main_places[placeholder]] for prepared, placeholder in lowered.weights],
        "inputs": [None if node is None else main_places[node] for node in lowered.inputs],
        "statics": [[number, prepare_places[node]] for number, node in lowered.statics.items()],
    }
    return document, writer.constants


def from_document(
    document: dict[str, Any], constants: dict[str, torch.Tensor], target: Target, captured: torch.fx.Graph
) -> Lowered:
    """The graphs of a document, for this target and the same captured graph."""
    reader = _Reader(document["tables"], constants, target, list(captured.nodes))
    main, main_nodes = reader.graph(document["main"])
    if any(node.target in NAMES for node in main.nodes if node.op == "call_function"):
        raise ValueError("the main graph must not call functions that prepare weights")
    prepare, prepare_nodes = reader.graph(document["prepare"])
    weights = [(prepare_nodes[node], main_nodes[placeholder]) for node, placeholder in document["weights"]]
    for node, placeholder in weights:
        annotate(placeholder, prepared=node)
    return Lowered(
        main,
        prepare,
        weights,
        [None if index is None else main_nodes[index] for index in document["inputs"]],
        {number: prepare_nodes[index] for number, index in document["statics"]},
    )


# -- nodes -----------------------------------------------------------------------------------------------------------


class _Writer:
    """Writes nodes as [operation or target, name, arguments, options, note, origin, number]."""

    def __init__(self) -> None:
        self.tables: dict[str, dict[str, int]] = {"targets": {}, "options": {}, "notes": {}}
        self.constants: dict[str, torch.Tensor] = {}

    def graph(self, graph: torch.fx.Graph) -> tuple[list[Any], dict[torch.fx.Node, int]]:
        places: dict[torch.fx.Node, int] = {}
        records = []
        for node in graph.nodes:
            records.append(self._node(node, places))
            places[node] = len(places)
        return records, places

    def _node(self, node: torch.fx.Node, places: dict[torch.fx.Node, int]) -> list[Any]:
        if CONSTANT.on(node):
            self.constants[node.name] = CONSTANT[node].detach()
        origin = ORIGIN.get(node)
        options: Any = {name: _argument_out(item, places) for name, item in node.kwargs.items()}
        if not any(isinstance(item, torch.fx.Node) for item in leaves(node.kwargs)):
            options = self._place("options", options)
        return [
            self._place("targets", target_name(node)) if node.op == "call_function" else node.op,
            node.name,
            [_argument_out(item, places) for item in node.args],
            options,
            self._place("notes", _note_out(node)),
            POSITION.get(origin) if origin is not None else None,
            NUMBER.get(node),
        ]

    def _place(self, table: str, item: Any) -> int:
        return self.tables[table].setdefault(json.dumps(item), len(self.tables[table]))


class _Reader:
    def __init__(
        self,
        tables: dict[str, list[Any]],
        constants: dict[str, torch.Tensor],
        target: Target,
        captured: list[torch.fx.Node],
    ) -> None:
        self._paths = tables["targets"]
        self._targets = [target_from(name) for name in self._paths]
        self._options = [_options_in(each, []) for each in tables["options"]]
        self._notes = [_note_in(each, target) for each in tables["notes"]]
        self._constants = constants
        self._captured = captured

    def graph(self, records: list[list[Any]]) -> tuple[torch.fx.Graph, list[torch.fx.Node]]:
        graph = torch.fx.Graph()
        nodes: list[torch.fx.Node] = []
        for kind, name, args, options, note, origin, number in records:
            arguments = tuple([_argument_in(item, nodes) for item in args])
            keywords = self._options[options] if isinstance(options, int) else _options_in(options, nodes)
            if isinstance(kind, int):
                node = call_node(graph, self._targets[kind], arguments, keywords, name)
                if self._paths[kind].startswith("ttnn."):
                    annotate(node, path=self._paths[kind])
            else:
                node = graph.create_node(kind, name, arguments, keywords, name)
                if kind == "get_attr":
                    annotate(node, constant=self._constants[name])
            annotate(node, **self._notes[note])
            if origin is not None:
                annotate(node, origin=self._captured[origin])
            if number is not None:
                annotate(node, number=operator.index(number))
            nodes.append(node)
        return graph, nodes


def _note_out(node: torch.fx.Node) -> dict[str, Any]:
    """The metadata of a node."""
    note: dict[str, Any] = {key.name: key[node] for key in PLAIN_NOTES if key.on(node)}
    if MOVE.on(node):
        note["move"] = MOVE[node].value
    if SPEC.on(node):
        note["spec"] = _spec_out(SPEC[node])
    elif isinstance(node.meta.get("val"), torch.Tensor):
        note["val"] = _val_out(node.meta["val"])
    if OUTPUT_VALS.on(node):
        note["vals"] = [_val_out(each) if isinstance(each, torch.Tensor) else None for each in OUTPUT_VALS[node]]
    return note


def _note_in(note: dict[str, Any], target: Target) -> Facts:
    facts: Facts = {}
    if "reason" in note:
        facts["reason"] = str(note["reason"])
    if "source" in note:
        facts["source"] = str(note["source"])
    if "move" in note:
        facts["move"] = Move(note["move"])
    if "spec" in note:
        facts["spec"] = _spec_in(note["spec"], target)
    if "val" in note:
        facts["val"] = _val_in(note["val"])
    if "vals" in note:
        facts["vals"] = [None if each is None else _val_in(each) for each in note["vals"]]
    return facts


# -- targets ---------------------------------------------------------------------------------------------------------


def target_name(node: torch.fx.Node) -> str:
    """The name of the function that a node calls, for `target_from`."""
    target: Any = node.target
    if PATH.get(node):
        name = PATH[node]
    elif target is operator.getitem:
        name = "getitem"
    elif isinstance(target, torch._ops.OpOverload):
        name = str(target)
    elif is_composite(target):
        name = f"composites.{target.__name__}"
    elif target in NAMES:
        name = f"prepare.{NAMES[target]}"
    else:
        raise NotSerialisable(f"{target!r} cannot be looked up by name")
    if not _is_known(name):
        raise NotSerialisable(f"{name} is not among the functions that a cached program may call")
    return name


def target_from(name: str) -> Any:
    """The function of this name; raises NotSerialisable if a program may not call it."""
    if not _is_known(name):
        raise NotSerialisable(f"{name} is not among the functions that a cached program may call")
    if name == "getitem":
        return operator.getitem
    space, _, rest = name.partition(".")
    if space == "ttnn":
        return library_function(ttnn_emulator, name)
    tables = {"composites": COMPOSITES, "prepare": FUNCTIONS}
    return tables[space][rest] if space in tables else operator.attrgetter(name)(torch.ops)


@functools.cache
def _is_known(name: str) -> bool:
    if name in TOUCH_FILES:
        return False
    space, _, rest = name.partition(".")
    if space in NAMESPACES:
        return isinstance(operator.attrgetter(name)(torch.ops), torch._ops.OpOverload)
    known = {"ttnn": name in OPERATIONS, "composites": rest in COMPOSITES, "prepare": rest in FUNCTIONS}
    return name == "getitem" or known.get(space, False)


# -- arguments -------------------------------------------------------------------------------------------------------


def _argument_out(item: Any, places: dict[torch.fx.Node, int]) -> Any:
    """A node as a list of its index, and types that JSON lacks as a dict."""
    if isinstance(item, torch.fx.Node):
        return [places[item]]
    if isinstance(item, tuple | list):
        return {"tuple" if isinstance(item, tuple) else "list": [_argument_out(each, places) for each in item]}
    if isinstance(item, dict):
        return {"dict": {name: _argument_out(each, places) for name, each in item.items()}}
    if isinstance(item, DeviceMarker):
        return {"device": True}
    if item is None or isinstance(item, bool | int | float | str):
        return item
    return {"source": emit.literal(item)}


def _argument_in(item: Any, nodes: list[torch.fx.Node]) -> Any:
    if isinstance(item, list):
        return nodes[item[0]]
    if not isinstance(item, dict):
        return item
    ((kind, inner),) = item.items()
    if kind == "tuple":
        return tuple([_argument_in(each, nodes) for each in inner])
    if kind == "list":
        return [_argument_in(each, nodes) for each in inner]
    if kind == "dict":
        return _options_in(inner, nodes)
    return DEVICE if kind == "device" else object_from(inner)


def _options_in(options: dict[str, Any], nodes: list[torch.fx.Node]) -> dict[str, Any]:
    for name in options:
        if not name.isidentifier():  # it becomes part of the program's source
            raise ValueError(f"{name!r} is not a valid argument name")
    return {name: _argument_in(item, nodes) for name, item in options.items()}


@functools.lru_cache(maxsize=4096)
def object_from(source: str) -> Any:
    """An object of `ttnn` or torch from the expression that constructs it."""
    return _value_of(ast.parse(source, mode="eval").body)


def _value_of(node: ast.AST) -> Any:
    """Evaluates literals, members of enumerations, dtypes, and records of these; nothing else."""
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_value_of(node.operand)
    if isinstance(node, ast.Tuple | ast.List):
        items = [_value_of(each) for each in node.elts]
        return tuple(items) if isinstance(node, ast.Tuple) else items
    if isinstance(node, ast.Set):
        return {_value_of(each) for each in node.elts}
    if isinstance(node, ast.Call):
        record = _RECORDS.get(ast.unparse(node.func))
        if record is not None:
            args = [_value_of(each) for each in node.args]
            return record(*args, **{str(each.arg): _value_of(each.value) for each in node.keywords})
    if isinstance(node, ast.Attribute):
        named = _named(ast.unparse(node))
        if named is not None:
            return named
    raise ValueError(f"{ast.unparse(node)} is not allowed in a cached program")


def _named(path: str) -> Any:
    """The member of an enumeration, dtype or memory config of this name; None for anything else."""
    root, _, rest = path.partition(".")
    if root not in _ROOTS or rest.startswith("_") or "._" in rest:
        return None
    resolved = _ROOTS[root]
    for name in rest.split("."):
        is_open = resolved is _ROOTS[root] or isinstance(resolved, enum.EnumMeta)
        resolved = getattr(resolved, name, None) if is_open else None
    return resolved if isinstance(resolved, _NAMED) else None


_ROOTS: dict[str, Any] = {"ttnn": ttnn_emulator, "torch": torch}
_NAMED = (enum.Enum, ttnn_emulator.MemoryConfig, torch.dtype, torch.layout, torch.memory_format)
_RECORDS: dict[str, Any] = {"float": float, "complex": complex, "slice": slice, "torch.device": torch.device} | {
    f"ttnn.{name}": getattr(ttnn_emulator, name)
    for name in (
        "Conv2dConfig",
        "CoreCoord",
        "CoreRange",
        "CoreRangeSet",
        "MemoryConfig",
        "SDPAProgramConfig",
        "ShardSpec",
        "UnaryWithParam",
        "WormholeComputeKernelConfig",
    )
}


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


def _val_out(val: torch.Tensor | int) -> list[Any] | int:
    if isinstance(val, int):  # a seed
        return val
    return [list(val.shape), list(val.stride()), dtype_name(val.dtype)]


def _val_in(record: list[Any] | int) -> torch.Tensor | int:
    if isinstance(record, int):
        return operator.index(record)
    shape, stride, dtype = record
    return _without_values(tuple(shape), tuple(stride), dtype)


@functools.lru_cache(maxsize=1024)
def _without_values(shape: tuple[int, ...], stride: tuple[int, ...], dtype: str) -> torch.Tensor:
    """A meta tensor, shared by all values of the same description; it is never modified."""
    return torch.empty_strided(shape, stride, dtype=getattr(torch, dtype), device="meta")
