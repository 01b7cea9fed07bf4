"""Verifies a graph after a stage: rules that hold for every valid graph, each a function that yields violations.

A broken rule is a bug of the compiler, so `verify` raises `VerifyError` with the node and the rule. `full=True` also
retypes every call with the operation table; that costs as much as lowering, and is meant for tests.
"""

from __future__ import annotations

import itertools
import json
import operator
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
import torch.fx

import ttnn_emulator
from torch_ttnn.compiler.analysis.memory import spec_tensors, specs_of
from torch_ttnn.compiler.cache.serialisation import NotSerialisable, from_document, target_name, to_document
from torch_ttnn.compiler.errors import VerifyError
from torch_ttnn.compiler.frontend.higher_order import HigherOrderCall
from torch_ttnn.compiler.ir.arguments import DeviceMarker, call_with, leaves
from torch_ttnn.compiler.ir.describe import shape_and_dtype
from torch_ttnn.compiler.ir.metadata import KEPT, MOVE, NUMBER, OUTPUT_VALS, PATH, PREPARED, REASON, SPEC, Move
from torch_ttnn.compiler.runtime.border import library_function
from torch_ttnn.compiler.stages import emit
from torch_ttnn.compiler.stages.lower import Lowered
from torch_ttnn.devices import Target
from ttnn_emulator import EmulatorError, Tensor

CAPTURED, MAIN, PREPARE = "captured", "main", "prepare"
Broken = Iterator[tuple[torch.fx.Node, str]]


@dataclass(frozen=True)
class Violation:
    """A rule that a node breaks."""

    rule: str
    node: str
    detail: str

    def __str__(self) -> str:
        return f"{self.node} breaks the rule '{self.rule}': {self.detail}"


def verify(graph: torch.fx.Graph, kind: str = MAIN, *, full: bool = False) -> None:
    """Raise VerifyError for the first few rules that a graph breaks. `kind`: captured, main or prepare."""
    broken = violations(graph, kind, full=full)
    if broken:
        more = f"\nand {len(broken) - 5} more" if len(broken) > 5 else ""
        raise VerifyError(f"the {kind} graph is not valid:\n" + "\n".join(map(str, broken[:5])) + more)


def verify_compilation(compilation: Any, *, full: bool = False) -> None:
    """Verify the graphs that the stages have written so far."""
    for name, graph in graphs_of(compilation).items():
        verify(graph, name, full=full)
    lowered = getattr(compilation, "lowered", None)
    if lowered is None:
        return
    for prepared, placeholder in lowered.weights:
        if prepared.graph is not lowered.prepare or placeholder.graph is not lowered.main:
            raise VerifyError(f"the weight {placeholder} of main is not computed by {prepared} of prepare")
    if not lowered.residents:
        _verify_round_trip(lowered, compilation.target, compilation.captured.graph)


def _verify_round_trip(lowered: Lowered, target: Target, captured: torch.fx.Graph) -> None:
    """The program must survive the round trip through the cache on disk."""
    try:
        document, constants = to_document(lowered)
    except NotSerialisable:  # a user's operator; the rule "names" checks ours
        return
    read = from_document(json.loads(json.dumps(document)), constants, target, captured)
    for kind, written, loaded in (("main", lowered.main, read.main), ("prepare", lowered.prepare, read.prepare)):
        for one, other in itertools.zip_longest(_described(written), _described(loaded)):
            if one != other:
                raise VerifyError(f"the cache changes the {kind} graph: {one} is read as {other}")


def _described(graph: torch.fx.Graph) -> Iterator[tuple]:
    for node in graph.nodes:
        function = node.target if node.op == "call_function" else NUMBER.get(node)
        yield node.op, node.name, function, emit.literal(tuple(node.args)), emit.literal(dict(node.kwargs))


def graphs_of(compilation: Any) -> dict[str, torch.fx.Graph]:
    """The graphs of a compilation or a program by kind: the program's two or, before lowering, the captured one."""
    lowered = getattr(compilation, "lowered", None)
    if lowered is not None:
        return {MAIN: lowered.main, PREPARE: lowered.prepare}
    return {CAPTURED: getattr(compilation, "graph_module", compilation.captured).graph}


def violations(graph: torch.fx.Graph, kind: str = MAIN, *, full: bool = False) -> list[Violation]:
    """All broken rules, each with the node that breaks it."""
    broken_rules = [
        Violation(name, node.name, detail)
        for name, kinds, rule in RULES
        if kind in kinds
        for node, detail in rule(graph)
    ]
    if full and not broken_rules and kind != CAPTURED:
        broken_rules += [Violation("types", node.name, detail) for node, detail in _types(graph)]
    return broken_rules


def beyond_moves(
    nodes: Iterable[torch.fx.Node], further: Callable[[torch.fx.Node], Iterable[torch.fx.Node]]
) -> list[torch.fx.Node]:
    """These nodes; a torch call that is part of a move is replaced by the nodes beyond it."""
    found: list[torch.fx.Node] = []
    for node in nodes:
        passed = MOVE.on(node) or node.target is operator.getitem
        found += beyond_moves(further(node), further) if passed else [node]
    return found


def _calls(graph: torch.fx.Graph) -> Iterator[tuple[torch.fx.Node, str]]:
    """The calls of the library, each with its path."""
    for node in graph.nodes:
        if PATH.get(node) is not None:
            yield node, PATH[node]


# -- the rules --------------------------------------------------------------------------------------------------------


def _order(graph: torch.fx.Graph) -> Broken:
    seen: set[torch.fx.Node] = set()
    names: set[str] = set()
    for node in graph.nodes:
        for used in node.all_input_nodes:
            if used.graph is not graph:
                yield node, f"its argument {used.name} belongs to another graph"
            elif used not in seen:
                yield node, f"its argument {used.name} comes after it"
            elif node not in used.users:
                yield node, f"its argument {used.name} does not list it as a user"
        if node.name in names:
            yield node, "another node has this name"
        seen.add(node)
        names.add(node.name)


def _output(graph: torch.fx.Graph) -> Broken:
    outputs = [node for node in graph.nodes if node.op == "output"]
    last = next(iter(reversed(graph.nodes)), None)
    if last is not None and (len(outputs) != 1 or outputs[0] is not last):
        yield last, f"a graph must end with its only output node; this one has {len(outputs)}"


def _kinds(graph: torch.fx.Graph) -> Broken:
    for node in graph.nodes:
        if node.op not in ("placeholder", "get_attr", "call_function", "output"):
            yield node, f"a program has no {node.op} node"


def _specs(graph: torch.fx.Graph) -> Broken:
    for node, path in _calls(graph):
        if path == "ttnn.to_torch":
            if not isinstance(node.meta.get("val"), torch.Tensor):
                yield node, "a download has no val in its metadata"
        elif not SPEC.on(node):
            yield node, f"{path} has no spec"
    yield from _specs_of_weights(graph)


def _specs_of_weights(graph: torch.fx.Graph) -> Broken:
    for node in graph.nodes:
        prepared = PREPARED.get(node)
        if prepared is None:
            continue
        if specs_of(prepared) != specs_of(node):
            yield node, f"its spec differs from that of {prepared.name}, which computes it"


def _arguments(graph: torch.fx.Graph) -> Broken:
    """A device operation takes device tensors, a host operation torch tensors."""
    for node in graph.nodes:
        if node.op != "call_function" or node.target is operator.getitem:
            continue
        path = PATH.get(node)
        on_device = path is not None and path != "ttnn.from_torch"
        for used in node.all_input_nodes:
            if on_device and not _is_device_tensor(used) and MOVE.get(used) is not Move.RANDOM_STATE:
                yield node, f"its argument {used.name} is on the host"
            elif not on_device and _is_device_tensor(used):
                yield node, f"its argument {used.name} is on the device"


def _is_device_tensor(node: torch.fx.Node) -> bool:
    return SPEC.on(node) and SPEC[node] is not None


def _reasons(graph: torch.fx.Graph) -> Broken:
    for node in graph.nodes:
        if node.op != "call_function" or node.target is operator.getitem:
            continue
        is_known = PATH.on(node) or MOVE.on(node)
        if not is_known and not REASON.get(node):
            yield node, f"{node.target} runs on the host without a reason"


def _indices(graph: torch.fx.Graph) -> Broken:
    for node in graph.nodes:
        if node.target is operator.getitem and isinstance(node.args[0], torch.fx.Node):
            source = node.args[0]
            items = SPEC.get(source) if PATH.on(source) else source.meta.get("val")
            if isinstance(items, tuple | list) and not -len(items) <= node.args[1] < len(items):  # type: ignore[operator]
                yield node, f"it takes item {node.args[1]} of {source.name}, which has {len(items)}"


def _inputs(graph: torch.fx.Graph) -> Broken:
    numbers: set[int | None] = set()
    for node in graph.nodes:
        if node.op == "placeholder" and not PREPARED.on(node):
            number = NUMBER.get(node)
            if number is None or number in numbers:
                yield node, f"the index of an input must be unique, not {number}"
            numbers.add(number)


def _results(graph: torch.fx.Graph) -> Broken:
    """Outputs are torch tensors with the shapes and dtypes of the captured graph."""
    output = next(iter(reversed(graph.nodes)), None)
    if output is None or output.op != "output":
        return
    vals = OUTPUT_VALS.get(output)
    outputs = list(output.args[0])  # type: ignore[arg-type]
    kept = {number for number, resident in enumerate(KEPT.get(output) or ()) if resident is not None}
    if vals is None or len(vals) != len(outputs):
        yield output, f"it has {len(outputs)} values, and the captured graph {len(vals or ())}"
        return
    for number, (node, val) in enumerate(zip(outputs, vals)):
        if not isinstance(node, torch.fx.Node) or not isinstance(val, torch.Tensor):
            continue
        if _is_device_tensor(node):
            if number not in kept:
                yield output, f"output {number}, {node.name}, is still on the device"
            continue
        here = node.meta.get("val")
        if isinstance(here, torch.Tensor) and (here.shape != val.shape or here.dtype is not val.dtype):
            found, expected = shape_and_dtype(here), shape_and_dtype(val)
            yield output, f"output {number}, {node.name}, is {found} where torch has {expected}"


def _moves(graph: torch.fx.Graph) -> Broken:
    """Values cross between host and device only as inputs, as outputs, and around host operations."""
    for node, path in _calls(graph):
        if path == "ttnn.from_torch":
            yield from _stray_upload(node)
        elif path == "ttnn.to_torch":
            yield from _stray_download(node)


def _stray_upload(node: torch.fx.Node) -> Broken:
    for source in beyond_moves(node.all_input_nodes, lambda each: each.all_input_nodes):
        if source.op == "placeholder" and PREPARED.on(source):
            yield node, f"the weight {source.name} is uploaded on every call"
        if PATH.get(source) == "ttnn.to_torch":
            yield node, f"{source.name} was on the device before"


def _stray_download(node: torch.fx.Node) -> Broken:
    if any(MOVE.get(each) is Move.CHECK for each in node.users):
        return
    takers = beyond_moves(node.users, lambda each: each.users)
    if not any(each.op == "output" or REASON.on(each) for each in takers):
        names = ", ".join(each.name for each in takers) or "no node"
        yield node, f"it is read by {names}, not by an output or a host operation"


def _names(graph: torch.fx.Graph) -> Broken:
    """Every function of ours can be looked up by name when the cache is read; calls that hold graphs are not cached."""
    for node in graph.nodes:
        if node.op == "call_function" and not isinstance(node.target, torch._ops.OpOverload | HigherOrderCall):
            try:
                target_name(node)
            except NotSerialisable as error:
                yield node, str(error)


Rule = Callable[[torch.fx.Graph], Broken]
RULES: list[tuple[str, tuple[str, ...], Rule]] = [
    ("order", (CAPTURED, MAIN, PREPARE), _order),
    ("output", (CAPTURED, MAIN, PREPARE), _output),
    ("kinds", (MAIN, PREPARE), _kinds),
    ("specs", (MAIN, PREPARE), _specs),
    ("places", (MAIN, PREPARE), _arguments),
    ("reasons", (MAIN,), _reasons),
    ("indices", (MAIN, PREPARE), _indices),
    ("inputs", (MAIN, PREPARE), _inputs),
    ("results", (MAIN,), _results),
    ("moves", (MAIN,), _moves),
    ("names", (MAIN, PREPARE), _names),
]


# -- types ------------------------------------------------------------------------------------------------------------


def _types(graph: torch.fx.Graph) -> Broken:
    """Retype every call: its spec must be that of the operation table."""
    for node, path in _calls(graph):
        if path == "ttnn.from_torch":
            yield from _upload_types(node)
        elif path == "ttnn.to_torch":
            yield from _download_types(node)
        else:
            yield from _call_types(node, path)


def _call_types(node: torch.fx.Node, path: str) -> Broken:
    nodes = (*node.all_input_nodes, node)  # a call that creates a tensor has no tensor arguments
    devices = [tensor.device() for each in nodes for tensor in spec_tensors(each)]
    device = next((each for each in devices if each is not None), None)

    def typed(item: Any) -> Any:
        if isinstance(item, torch.fx.Node):
            return item.meta["val"] if MOVE.get(item) is Move.RANDOM_STATE else SPEC.get(item)
        return device if isinstance(item, DeviceMarker) else item

    try:
        with ttnn_emulator.specs_only():
            function = library_function(ttnn_emulator, path)
            result = call_with(function, node.args, node.kwargs, typed)
    except EmulatorError as error:
        yield node, str(error).splitlines()[0]
        return
    specs = [each.spec for each in leaves(result) if isinstance(each, Tensor)]
    if specs != specs_of(node):
        recorded, expected = ([spec.brief() for spec in each] for each in (specs_of(node), specs))
        yield node, f"its spec is {recorded} where {path} returns {expected}"


def _upload_types(node: torch.fx.Node) -> Broken:
    (spec,) = specs_of(node)
    val = node.all_input_nodes[0].meta.get("val")
    if isinstance(val, torch.Tensor) and tuple(val.shape) != spec.shape:
        yield node, f"its spec has shape {list(spec.shape)}, and the host tensor {list(val.shape)}"
    for name in ("dtype", "layout"):
        if node.kwargs.get(name) is not getattr(spec, name):
            yield node, f"its spec has {name} {getattr(spec, name)}, and the call {node.kwargs.get(name)}"


def _download_types(node: torch.fx.Node) -> Broken:
    (spec,) = specs_of(node.all_input_nodes[0])
    if tuple(node.meta["val"].shape) != spec.shape:
        yield node, f"its val has shape {list(node.meta['val'].shape)}, and the device tensor {list(spec.shape)}"
