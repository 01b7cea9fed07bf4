"""The stage `normalise`: removes duplicate and dead computations, in a copy of the captured graph."""

from __future__ import annotations

import operator
from collections.abc import Collection, Sequence
from typing import Any

import torch
import torch.fx
from torch.fx._lazy_graph_module import _make_graph_module, _use_lazy_graph_module

from torch_ttnn.compiler.analysis import assertions, index_bounds
from torch_ttnn.compiler.frontend import captured_dtypes, higher_order, random_states
from torch_ttnn.compiler.ir.arguments import frozen
from torch_ttnn.compiler.ir.metadata import annotate
from torch_ttnn.compiler.ir.nodes import drop_dead_code
from torch_ttnn.compiler.lowering.registry import is_random

aten = torch.ops.aten


def normalise(captured: torch.fx.GraphModule, statics: Collection[int] = ()) -> torch.fx.GraphModule:
    """A normalised copy. The captured graph is not changed, except for dtypes that torch captured wrongly.

    `statics` are the indices of weights among the inputs.
    """
    captured_dtypes.correct(captured.graph)
    wanted = _wanted(captured.graph, _assertions(captured, statics))
    graph = torch.fx.Graph()
    copies: dict[torch.fx.Node, torch.fx.Node] = {}
    seen: dict[Any, torch.fx.Node] = {}
    for position, node in enumerate(captured.graph.nodes):
        if node not in wanted and node.op != "placeholder":
            continue
        if node.op == "output":
            _separate_results(node, graph, copies)
        if node.target in random_states.OPERATORS:
            copies[node] = random_states.direct_call(node, graph, copies, position)
            continue
        if node.target is operator.getitem and node.args[0].target is random_states.SAVES:  # type: ignore[union-attr]
            copies[node] = random_states.result_of_direct_call(node, copies)
            continue
        if node.target is WITH_EFFECTS:
            copies[node] = _direct_call(node, graph, copies, position)
            continue
        if node.target is operator.getitem and node.args[0].target is WITH_EFFECTS:  # type: ignore[union-attr]
            copies[node] = _result_of_direct_call(node, graph, copies)
            continue
        if higher_order.subgraph(node, captured) is not None:
            continue  # the calls hold their graphs
        if higher_order.is_higher_order(node):
            copies[node] = _held_call(node, graph, copies, position)
            continue
        key = _key(node, copies)
        copied = seen.get(key) if key is not None else None
        if copied is None:
            copied = graph.node_copy(node, copies.__getitem__)
            annotate(copied, position=position, captured=node)
            if node.target in assertions.ASSERTIONS:
                annotate(copied, effect=True)
            if node.target is aten.cat.default:
                copied = _without_empty(node, copied)
            elif node.target is aten.as_strided.default:
                _read_whole_storage(node, copied, copies)
            if key is not None:
                seen[key] = copied
        copies[node] = copied
    drop_dead_code(graph)  # computations of empty parts
    with _use_lazy_graph_module(True):  # the Python code of the module is never run
        return _make_graph_module(captured, graph)


WITH_EFFECTS = torch.ops.higher_order.with_effects


def _direct_call(
    node: torch.fx.Node, graph: torch.fx.Graph, copies: dict[torch.fx.Node, torch.fx.Node], position: int
) -> torch.fx.Node:
    """The call wrapped in `with_effects(token, operation, ...)`. Nodes run in order: no token is needed."""
    _, operation, *args = node.args
    args, kwargs = torch.fx.node.map_arg((tuple(args), node.kwargs), copies.__getitem__)  # type: ignore[assignment]
    copied = graph.call_function(operation, tuple(args), dict(kwargs))  # type: ignore[arg-type]
    results = node.meta["val"][1:]
    copied.meta.update({name: node.meta[name] for name in ("stack_trace", "nn_module_stack") if name in node.meta})  # type: ignore[arg-type]
    annotate(copied, val=_only(results), position=position, effect=True)
    return copied


def _held_call(
    node: torch.fx.Node, graph: torch.fx.Graph, copies: dict[torch.fx.Node, torch.fx.Node], position: int
) -> torch.fx.Node:
    """The call of a higher-order operator as a function of its tensors."""
    call, operands = higher_order.call_of(node)
    copied = graph.call_function(call, tuple([copies[each] for each in operands]))
    copied.meta.update(node.meta)
    annotate(copied, position=position)
    return copied


def _result_of_direct_call(
    node: torch.fx.Node, graph: torch.fx.Graph, copies: dict[torch.fx.Node, torch.fx.Node]
) -> torch.fx.Node:
    """A result of the call, or its token, which is passed through."""
    source, number = node.args
    if number == 0:
        return copies[source.args[0]]  # type: ignore[union-attr, index]
    copied = copies[source]  # type: ignore[index]
    if not isinstance(copied.meta["val"], tuple):
        return copied
    item = graph.call_function(operator.getitem, (copied, number - 1))  # type: ignore[operator]
    item.meta["val"] = node.meta["val"]
    return item


def _only(results: Any) -> Any:
    return tuple(results) if len(results) > 1 else results[0] if results else None


def _separate_results(output: torch.fx.Node, graph: torch.fx.Graph, copies: dict[torch.fx.Node, torch.fx.Node]) -> None:
    """Clone results that were deduplicated: a write to one of them must not show in the other."""
    found: dict[torch.fx.Node, torch.fx.Node] = {}
    for node in output.all_input_nodes:
        copied = copies[node]
        if found.setdefault(copied, node) is not node:
            copies[node] = graph.call_function(aten.clone.default, (copied,))
            copies[node].meta.update(copied.meta)


def _without_empty(node: torch.fx.Node, cat: torch.fx.Node) -> torch.fx.Node:
    """Drop empty operands of a `cat`: a cache starts out empty, a rotary embedding may rotate all of a head."""
    operands: Any = cat.args[0]
    parts = [part for part in operands if part.meta["val"].numel()]
    if not parts or len({part.meta["val"].dtype for part in operands}) > 1:
        return cat
    cat.args = (parts, *cat.args[1:])
    is_output = any(user.op == "output" for user in node.users)  # a result must not alias an input, or another result
    return cat if len(parts) > 1 or is_output else parts[0]


def _read_whole_storage(node: torch.fx.Node, copied: torch.fx.Node, copies: dict[torch.fx.Node, torch.fx.Node]) -> None:
    """Make `as_strided` read the tensor that its input is a view of: its strides refer to that tensor's storage."""
    view: Any = node.args[0]
    size, stride, *offset = node.args[1:]
    start = offset[0] if offset and offset[0] is not None else node.kwargs.get("storage_offset")
    if start is None:
        start = view.meta["val"].storage_offset()
    owner = _owner(view)
    copied.args, copied.kwargs = (copies[owner], size, stride, start), {}


def _owner(node: torch.fx.Node) -> torch.fx.Node:
    """The value that this one is a view of; itself if it is no view."""
    source = node
    if node.target is operator.getitem:
        source = node.args[0]  # type: ignore[assignment]
    target = source.target
    if not isinstance(target, torch._ops.OpOverload) or not source.args:
        return node
    returned = target._schema.returns[:1]
    is_view = bool(returned) and returned[0].alias_info is not None and not returned[0].alias_info.is_write
    return _owner(source.args[0]) if is_view and isinstance(source.args[0], torch.fx.Node) else node


def count_operations(graph: torch.fx.Graph) -> int:
    """The number of operations that torch would run."""
    return len([node for node in graph.nodes if isinstance(node.target, torch._ops.OpOverload)])


def _assertions(captured: torch.fx.GraphModule, statics: Collection[int]) -> list[torch.fx.Node]:
    """The assertions that may fail; inputs are checked at every call."""
    if not assertions.in_graph(captured.graph):
        return []
    placeholders = captured.graph.find_nodes(op="placeholder")
    return assertions.may_fail(captured, index_bounds.ranges_of_inputs(captured, placeholders, statics))


def _wanted(graph: torch.fx.Graph, effects: Sequence[torch.fx.Node]) -> set[torch.fx.Node]:
    """The nodes that the output or an effect depends on; a functional graph has no other effect."""
    wanted: set[torch.fx.Node] = set(effects)
    for node in reversed(graph.nodes):
        if node.op == "output" or node in wanted:
            wanted.add(node)
            wanted.update(node.all_input_nodes)
    return wanted


def _key(node: torch.fx.Node, copies: dict[torch.fx.Node, torch.fx.Node]) -> Any:
    """The key of deduplication: function and arguments. None for nodes that must not be merged."""
    if node.op != "call_function" or is_random(node.target):
        return None
    return node.target, frozen(node.args, copies.__getitem__), frozen(node.kwargs, copies.__getitem__)
