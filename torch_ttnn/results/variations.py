"""What became of every ATen operation of a program: converted, removed, or left to the host.

Each call of a program records the operation of the fused graph that it implements, and each fusion records what it
replaced. An operation of the captured graph is

    host        if torch computes it, or the fused operation it is part of, in every call
    converted   if device calls implement it. Of the operations that a fusion replaced, the one with the most FLOPs
                represents the resulting device call
    removed     if no work is left in a call: the other operations of a fusion, free views, duplicates of another
                operation, and what is computed once from weights and constants
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
import torch.fx

from torch_ttnn.compiler.ir.describe import dtype_name
from torch_ttnn.compiler.ir.metadata import ORIGIN, PATH, REASON
from torch_ttnn.compiler.runtime.program import Program
from torch_ttnn.explain.data import kind_of
from torch_ttnn.results.record import CONVERTED, HOST, REMOVED, Variation
from torch_ttnn.tracer.calls import Call, jsonable, sizes
from torch_ttnn.tracer.facts import flops_of
from torch_ttnn.tracer.graphs import operations

Node = torch.fx.Node


@dataclass(frozen=True)
class Outcome:
    """What became of an operation."""

    kind: str
    reason: str = ""


def variations(programs: Iterable[Program]) -> tuple[Variation, ...]:
    """Counts of captured operations by arguments and outcome."""
    counted: Counter[Variation] = Counter()
    for program in programs:
        calls = dict(operations(program.captured))
        outcomes = Outcomes(program, {node.name: _flops(call) for node, call in calls.items()})
        for node, call in calls.items():
            counted[_variation(call, outcomes.of(node.name))] += 1
    ordered = sorted(counted, key=lambda each: (each.op, each.inputs, each.arguments, each.outcome, each.reason))
    return tuple([replace(each, count=counted[each]) for each in ordered])


def captured_variations(graphs: Iterable[torch.fx.GraphModule]) -> tuple[int, int]:
    """For graphs that could not be compiled: the number of operations, and of distinct ones."""
    names = [str(call.op) for graph in graphs for _, call in operations(graph)]
    return len(names), len(set(names))


def _variation(call: Call, outcome: Outcome) -> Variation:
    return Variation(str(call.op), inputs_text(call), arguments_text(call), outcome.kind, reason=outcome.reason)


def inputs_text(call: Call) -> str:
    return ", ".join(tensor_text(tensor) for _, tensor in call.inputs)


def tensor_text(tensor: torch.Tensor) -> str:
    """
    >>> tensor_text(torch.ones(2, 3))
    'float32[2, 3]'
    """
    return f"{dtype_name(tensor.dtype)}{list(sizes(tensor))}"


def arguments_text(call: Call) -> str:
    """Arguments other than tensors, without defaults."""
    tensors = {name.partition("[")[0] for name, _ in call.inputs}
    defaults = {each.name: each.default_value for each in call.op._schema.arguments if each.has_default_value()}
    shown = [
        f"{name}={_text(value)}"
        for name, value in call.arguments.items()
        if name not in tensors and not _is_default(value, defaults.get(name))
    ]
    return ", ".join(shown)


def _is_default(value: Any, default: Any) -> bool:
    return value is None or (type(value) is type(default) and value == default)


def _text(value: Any) -> str:
    plain = jsonable(value)
    return plain if isinstance(plain, str) else json.dumps(plain)


def _flops(call: Call) -> int:
    return 0 if call.op.is_view else flops_of(call)


class Outcomes:
    """What became of the operations of one program, by their names in the captured graph.

    The program must have been compiled in this process: one loaded from disk does not know its captured operations.
    """

    def __init__(self, program: Program, flops: dict[str, int]) -> None:
        self.fused = {node.name: node for node in program.lowered.values}  # the graph that was lowered
        self.captured = {node.name: node for node in program.captured.graph.nodes}
        self.reasons: dict[str, str] = {}
        self.converted: set[str] = set()
        for node in program.graph.nodes:
            origin = ORIGIN.get(node)
            if isinstance(origin, Node) and REASON.on(node):
                self.reasons[origin.name] = REASON[node]
            elif isinstance(origin, Node) and PATH.get(node) and kind_of(node) == "device":
                self.converted.add(origin.name)
        self._replaced = dict(self._outcomes_in_fusions(program.fusions, flops))

    def of(self, name: str) -> Outcome:
        if name in self.reasons:
            return Outcome(HOST, self.reasons[name])
        if name in self.converted:
            return Outcome(CONVERTED)
        if name in self.fused:
            return Outcome(REMOVED)
        return self._replaced.get(name, Outcome(REMOVED))

    def _outcomes_in_fusions(
        self, fusions: Sequence[dict[str, Any]], flops: dict[str, int]
    ) -> Iterator[tuple[str, Outcome]]:
        """Outcomes of operations that fusions replaced, which the fused graph no longer has."""
        matched = {name for fusion in fusions for name in fusion["nodes"]}
        for result, names in self._groups(fusions, matched).items():
            new = self._created(result, matched) - set(self.captured)
            reasons = [self.reasons[name] for name in new if name in self.reasons]
            main = None if self.converted.isdisjoint(new) else max(names, key=lambda name: flops.get(name, 0))
            for name in names:
                if reasons:
                    yield name, Outcome(HOST, reasons[0])
                else:
                    yield name, Outcome(CONVERTED if name == main else REMOVED)

    def _groups(self, fusions: Sequence[dict[str, Any]], matched: set[str]) -> dict[str, list[str]]:
        """Final fused node -> the captured operations that it replaces, through all fusions."""
        last = dict(self._last(fusions))
        groups: dict[str, list[str]] = {}
        for number, fusion in enumerate(fusions):
            own = [name for name in fusion["nodes"] if name in self.captured]
            groups.setdefault(last[number], []).extend(own)
        seen: set[str] = set(matched)
        for result, names in groups.items():
            names += self._removed_before([result, *names], seen)
        removed = {
            result: [name for name in dict.fromkeys(names) if name not in self.fused]
            for result, names in groups.items()
        }
        return {result: names for result, names in removed.items() if names}

    def _removed_before(self, names: Sequence[str], seen: set[str]) -> list[str]:
        """Operations before these that were removed with them: some fusions replace more than they match."""
        found: list[str] = []
        waiting = [self.captured[name] for name in names if name in self.captured]
        while waiting:
            for node in waiting.pop().all_input_nodes:
                if node.op == "call_function" and node.name not in seen and node.name not in self.fused:
                    seen.add(node.name)
                    found.append(node.name)
                    waiting.append(node)
        return found

    def _last(self, fusions: Sequence[dict[str, Any]]) -> Iterator[tuple[int, str]]:
        """Result of every fusion -> itself, or the result of a later fusion that replaced it."""
        later: dict[str, str] = {}  # replaced name -> final name
        for number in reversed(range(len(fusions))):
            result = fusions[number]["result"]
            final = later.get(result, result)
            yield number, final
            for name in fusions[number]["nodes"]:
                later[name] = final

    def _created(self, result: str, matched: set[str]) -> set[str]:
        """A node of the fused graph together with earlier nodes that fusions created or matched."""
        found: set[str] = set()
        waiting = [self.fused[result]] if result in self.fused else []
        while waiting:
            node = waiting.pop()
            if node.name not in found and (node.name == result or self._is_of_fusion(node, matched)):
                found.add(node.name)
                waiting += node.all_input_nodes
        return found

    def _is_of_fusion(self, node: Node, matched: set[str]) -> bool:
        return node.op == "call_function" and (node.name not in self.captured or node.name in matched)
