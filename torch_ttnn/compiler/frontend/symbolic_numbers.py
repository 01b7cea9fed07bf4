"""Symbolic numbers that are operands, not sizes: they become inputs, so that one program serves all their values.

Dynamo passes an integer that changes from call to call (the fill level of a cache) to a graph as a symbolic input. A
program is compiled for concrete sizes. If the integer were treated as a size, each of its values would need a program.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Sequence
from typing import Any

import torch
import torch.fx

from torch_ttnn.compiler.ir.arguments import leaves

aten = torch.ops.aten

Symbolic = torch.SymInt | torch.SymFloat | torch.SymBool


def _pair(name: str) -> dict[Any, tuple[int, Any]]:
    packet = getattr(aten, name)
    return {packet.Scalar: (1, packet.Tensor), packet.Tensor: (1, packet.Tensor)}


# The index of the argument that is a number, and the overload that takes a tensor there.
OPERANDS: dict[Any, tuple[int, Any]] = {
    **{key: value for name in ("add", "sub", "mul", "div", "eq", "ne", "lt", "le", "gt", "ge", "remainder", "fmod",
                               "bitwise_and", "bitwise_or", "bitwise_xor") for key, value in _pair(name).items()},
    aten.masked_fill.Scalar: (2, aten.masked_fill.Tensor),
    aten.rsub.Scalar: (1, aten.rsub.Tensor),
    aten.clamp_min.default: (1, aten.clamp_min.Tensor),
    aten.clamp_max.default: (1, aten.clamp_max.Tensor),
    aten.where.ScalarOther: (2, aten.where.self),
    aten.where.ScalarSelf: (1, aten.where.self),
    aten.fill.Scalar: (1, aten.fill.Tensor),
}  # fmt: skip
RANGES = (aten.arange.start, aten.arange.start_step)
MADE: dict[Any, int] = {aten.full.default: 1, aten.scalar_tensor.default: 0}  # create tensors from a number
NARROW = (torch.int8, torch.int16, torch.int32, torch.uint8)


class Numbers:
    """Handles the numbers among the inputs of a graph with symbolic sizes.

    graph_module  the graph, with numbers that are operands as additional inputs, after all others
    places        the inputs that no size depends on
    """

    def __init__(self, graph_module: torch.fx.GraphModule) -> None:
        placeholders = graph_module.graph.find_nodes(op="placeholder")
        in_sizes = _symbols_of_sizes(graph_module.graph)
        found = [node for node in placeholders if _is_number(node) and not _symbols(node.meta["val"]) & in_sizes]
        self.places = frozenset(placeholders.index(node) for node in found if _are_operands(node))
        self._placeholders = placeholders
        self._operands: list[torch.fx.Node] = []
        self._results: dict[int, torch.fx.Node] = {}
        self.graph_module = self._rewritten(graph_module) if self.places else graph_module

    def operands(self, inputs: Sequence[Any]) -> list[torch.Tensor]:
        """The additional inputs, for these inputs."""
        env = dict(zip(self._placeholders, inputs))
        return [_as_tensor(_evaluated(node, env)) for node in self._operands]

    def results(self, inputs: Sequence[Any], outputs: list[Any]) -> list[Any]:
        """The outputs, including those that are numbers."""
        env = dict(zip(self._placeholders, inputs))
        for index, node in self._results.items():
            outputs[index] = _evaluated(node, env)
        return outputs

    def _rewritten(self, graph_module: torch.fx.GraphModule) -> torch.fx.GraphModule:
        """A copy of the graph with additional inputs. The original is kept to evaluate numbers with."""
        graph = torch.fx.Graph()
        copies: dict[torch.fx.Node, torch.fx.Node] = {}
        result = graph.graph_copy(graph_module.graph, copies)
        numbers = _reached([self._placeholders[index] for index in self.places])
        graph.output(_without_numbers(result, {copies[node] for node in numbers}))
        *_, output = graph_module.graph.nodes
        self._results = {index: item for index, item in enumerate(output.args[0]) if item in numbers}  # type: ignore[arg-type, union-attr]
        last = copies[self._placeholders[-1]]
        tensors: dict[torch.fx.Node, torch.fx.Node] = {}

        def tensor_of(number: torch.fx.Node) -> torch.fx.Node:
            nonlocal last
            if number not in tensors:
                with graph.inserting_after(last):
                    last = tensors[number] = graph.placeholder(f"number_{len(self._operands)}")
                self._operands.append(originals[number])
            return tensors[number]

        originals = {copies[node]: node for node in numbers}
        for user in {user: None for node in originals for user in node.users if user not in originals}:
            if user.op != "output":
                _take_tensors(user, originals, tensor_of)
        graph.eliminate_dead_code()
        return torch.fx.GraphModule(graph_module, graph)


# -- which numbers are operands only ----------------------------------------------------------------------------------


def _is_number(node: torch.fx.Node) -> bool:
    return isinstance(node.meta.get("val"), torch.SymInt | torch.SymFloat)


def _symbols(item: Any) -> set[Any]:
    return set(item.node.expr.free_symbols) if isinstance(item, Symbolic) else set()


def _symbols_of_sizes(graph: torch.fx.Graph) -> set[Any]:
    symbols: set[Any] = set()
    for node in graph.nodes:
        val = node.meta.get("val")
        for tensor in val if isinstance(val, tuple | list) else (val,):
            if isinstance(tensor, torch.Tensor):
                for item in (*tensor.shape, *tensor.stride(), tensor.storage_offset()):
                    symbols |= _symbols(item)
    return symbols


def _are_operands(node: torch.fx.Node) -> bool:
    """Whether a number, and all numbers computed from it, are only operands of tensor operations, or results."""
    numbers = _reached([node])
    return all(
        user in numbers or user.op == "output" or _takes_number(user, each) for each in numbers for user in each.users
    ) and all(_is_evaluated(each) for each in numbers)


def _reached(nodes: Sequence[torch.fx.Node]) -> dict[torch.fx.Node, None]:
    """The numbers computed from these, including themselves, in the graph's order."""
    found = set(nodes)
    for node in nodes[0].graph.nodes:
        if _is_number(node) and node.op == "call_function" and not found.isdisjoint(node.all_input_nodes):
            found.add(node)
    return {node: None for node in nodes[0].graph.nodes if node in found}


def _is_evaluated(node: torch.fx.Node) -> bool:
    """Whether Python computes it from inputs."""
    if node.op == "placeholder":
        return True
    return not isinstance(node.target, torch._ops.OpOverload) and all(map(_is_evaluated, node.all_input_nodes))


def _takes_number(user: torch.fx.Node, number: torch.fx.Node) -> bool:
    """Whether an operation could take a tensor of one element in place of a number."""
    val = user.meta.get("val")
    if not isinstance(val, torch.Tensor) or val.dtype is torch.float64 or val.dtype.is_complex:
        return False
    if user.target in RANGES:
        return user.args[0] is not user.args[1] and list(user.args[2:]) in ([], [1]) and not val.dtype.is_floating_point
    if user.target is aten.clamp.default:
        return not user.kwargs and _has_no_narrow(user)
    if user.target in MADE:
        return _places(user, number) == [MADE[user.target]]
    if user.target not in OPERANDS or _places(user, number) != [OPERANDS[user.target][0]]:
        return False
    return _has_no_narrow(user)


def _has_no_narrow(user: torch.fx.Node) -> bool:
    """Whether no operand is a zero-dimensional tensor of narrower integers: only there type promotion would differ."""
    others = [each.meta["val"] for each in user.all_input_nodes if isinstance(each.meta.get("val"), torch.Tensor)]
    return bool(others) and not any(each.ndim == 0 and each.dtype in NARROW for each in others)


def _places(user: torch.fx.Node, number: torch.fx.Node) -> list[int]:
    """Indices of the arguments that are this number; -1 if it is nested in an argument."""
    places = [index for index, item in enumerate(user.args) if item is number]
    uses = sum(each is number for each in leaves((user.args, user.kwargs)))
    return places if uses == len(places) else [-1]


# -- replacing numbers ------------------------------------------------------------------------------------------------


def _take_tensors(
    user: torch.fx.Node, numbers: Collection[torch.fx.Node], tensor_of: Callable[[torch.fx.Node], torch.fx.Node]
) -> None:
    """Replace the numbers of an operation by tensors."""
    graph = user.graph
    if user.target in OPERANDS:
        index, user.target = OPERANDS[user.target]
        user.update_arg(index, tensor_of(user.args[index]))  # type: ignore[arg-type]
        return
    with graph.inserting_before(user):
        if user.target is aten.clamp.default:
            replacement: Any = user.args[0]
            for limit, packet in zip(user.args[1:], (aten.clamp_min, aten.clamp_max)):
                if limit is not None:
                    is_number = limit in numbers
                    overload = packet.Tensor if is_number else packet.default
                    replacement = graph.call_function(overload, (replacement, tensor_of(limit) if is_number else limit))  # type: ignore[arg-type]
        elif user.target in RANGES:  # its length does not depend on the number
            start, end = user.args[:2]
            length = graph.call_function(operator.sub, (end, start))
            replacement = graph.call_function(aten.arange.start_step, (0, length), dict(user.kwargs))
            if start in numbers:
                replacement = graph.call_function(aten.add.Tensor, (replacement, tensor_of(start)))  # type: ignore[arg-type]
        else:
            number: Any = user.args[MADE[user.target]]
            replacement = graph.call_function(
                aten._to_copy.default, (tensor_of(number),), {"dtype": user.meta["val"].dtype}
            )
            if user.target is aten.full.default:
                replacement = graph.call_function(aten.expand.default, (replacement, user.args[0]))
                replacement = graph.call_function(
                    aten.clone.default, (replacement,), {"memory_format": torch.contiguous_format}
                )
    user.replace_all_uses_with(replacement)
    graph.erase_node(user)


def _without_numbers(result: Any, numbers: set[torch.fx.Node]) -> Any:
    return tuple([0 if item in numbers else item for item in result])


def _evaluated(node: torch.fx.Node, env: dict[torch.fx.Node, Any]) -> Any:
    if node not in env:
        args, kwargs = torch.fx.node.map_arg((node.args, node.kwargs), lambda each: _evaluated(each, env))
        target: Any = node.target
        env[node] = target(*args, **kwargs)
    return env[node]


def _as_tensor(number: Any) -> torch.Tensor:
    return torch.tensor(number, dtype=torch.float32 if isinstance(number, float) else torch.int64)
