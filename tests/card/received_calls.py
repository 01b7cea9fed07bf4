"""The calls that a library receives from programs, in order, with the specs of their tensors and results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
import torch.fx
import torch.utils._pytree as pytree

from tests.card.paired import described
from torch_ttnn.compiler.ir.arguments import leaves
from torch_ttnn.compiler.ir.metadata import PATH, SPEC
from torch_ttnn.compiler.runtime.border import is_description
from torch_ttnn.compiler.runtime.program import Program
from torch_ttnn.devices import Target, card

Call = tuple[str, list[Any], list[Any]]  # path, specs of tensors among the arguments, specs of results


class ReceivedCalls:
    """A listener of the calls of one target."""

    def __init__(self, target: Target) -> None:
        self._is_emulator = target.is_emulator
        self.calls: list[Call] = []
        self.foreign: list[str] = []  # objects of the emulator that reached another library

    def __call__(self, path: str, args: tuple, kwargs: Mapping[str, Any], result: Any) -> None:
        given = leaves((args, dict(kwargs)))
        if not self._is_emulator:
            self.foreign += [f"{path}: {item!r}" for item in given if is_description(item)]
        tensors = [_specs(item) for item in given if _is_tensor(item)]
        self.calls.append((path, tensors, [_specs(item) for item in leaves(result) if _is_tensor(item)]))

    @property
    def paths(self) -> list[str]:
        return [path for path, _, _ in self.calls]


def _is_tensor(item: Any) -> bool:
    return isinstance(item, torch.Tensor) or hasattr(item, "padded_shape")


def _specs(item: Any) -> Any:
    if isinstance(item, torch.Tensor):
        return list(item.shape), item.dtype
    return described(item)


def calls_of(program: Program, first: bool = False) -> list[Call]:
    """The calls that a program makes, from its graphs; in its first run it prepares weights as well."""
    calls: list[Call] = []
    if first:
        for weight, _ in program.lowered.weights:
            seen: set[torch.fx.Node] = set()
            _prepared(weight, seen, calls)
    calls += [_call_of(node) for node in program.graph.nodes if PATH.on(node)]
    return calls


def _prepared(node: torch.fx.Node, seen: set[torch.fx.Node], calls: list[Call]) -> None:
    if node in seen or node.op != "call_function":
        return
    seen.add(node)
    for each in [item for item in leaves((node.args, dict(node.kwargs))) if isinstance(item, torch.fx.Node)]:
        _prepared(each, seen, calls)
    if PATH.on(node):
        calls.append(_call_of(node))


def _call_of(node: torch.fx.Node) -> Call:
    given = [item for item in leaves((node.args, dict(node.kwargs))) if isinstance(item, torch.fx.Node)]
    tensors = [_specs(each) for item in given for each in leaves(_value(item)) if _is_tensor(each)]
    return PATH[node], tensors, [_specs(each) for each in leaves(_value(node)) if _is_tensor(each)]


def _value(node: torch.fx.Node) -> Any:
    """The spec of a tensor of the device, or a torch tensor without values."""
    return SPEC[node] if SPEC.on(node) else node.meta.get("val")


def first_difference(received: Sequence[Call], expected: Sequence[Call]) -> str:
    """The first difference of two sequences of calls; empty if there is none."""
    for number, (theirs, ours) in enumerate(zip(received, expected)):
        if theirs != ours:
            return f"call {number}: {theirs} on the card, {ours} on the emulator"
    if len(received) != len(expected):
        return f"{len(received)} calls on the card, {len(expected)} on the emulator"
    return ""


def assert_same(got: Any, want: Any) -> None:
    """Outputs of a card and of torch: shapes, dtypes and strides, and values if the card computes them."""
    assert have_same_layout(got, want)
    if not card.is_mock():
        for one, other in zip(_tensors(got), _tensors(want)):
            torch.testing.assert_close(one, other, rtol=0.05, atol=0.05 * float(other.abs().max()))


def have_same_layout(got: Any, want: Any) -> bool:
    """Whether outputs have the same shapes, dtypes and strides."""
    ours, theirs = ([(each.shape, each.dtype, each.stride()) for each in _tensors(one)] for one in (got, want))
    return ours == theirs


def _tensors(outputs: Any) -> list[torch.Tensor]:
    return [each for each in pytree.tree_leaves(outputs) if isinstance(each, torch.Tensor)]
