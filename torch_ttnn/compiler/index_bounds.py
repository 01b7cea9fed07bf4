"""Which values a graph's integer inputs may have, because something is looked up at them.

torch refuses an index that is out of range; a kernel of the device reads whatever lies there. So a program looks at
the smallest and largest value of such inputs first, and leaves calls with others to torch, which says what is wrong.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import torch
import torch.fx

from torch_ttnn.compiler.ranges import Range, Ranges, beyond

aten = torch.ops.aten


class Bounds(NamedTuple):
    """The smallest and the largest value."""

    low: int
    high: int

    def and_also(self, other: Bounds) -> Bounds:
        return Bounds(max(self.low, other.low), min(self.high, other.high))


INT32 = Bounds(torch.iinfo(torch.int32).min, torch.iinfo(torch.int32).max)  # what the device's integers hold
ANYTHING = Bounds(torch.iinfo(torch.int64).min, torch.iinfo(torch.int64).max)


def of_inputs(captured: torch.fx.GraphModule, statics: Container[int]) -> dict[int, Bounds]:
    """The bounds of every input of integers that is no weight, by its number."""
    placeholders = captured.graph.find_nodes(op="placeholder")
    found = {}
    for number, node in enumerate(placeholders):
        val = node.meta.get("val")
        if number in statics or not isinstance(val, torch.Tensor) or val.dtype not in (torch.int32, torch.int64):
            continue
        bounds = INT32 if val.dtype is torch.int64 else ANYTHING
        for asked in _asked_of(node):
            bounds = bounds.and_also(asked)
        if bounds != ANYTHING:
            found[number] = bounds
    if found:
        _narrow(captured, placeholders, found)
    return found


WIDTHS = (30, 24, 20, 16)  # bits, besides the sign, that integer inputs may be narrowed to


def _narrow(captured: torch.fx.GraphModule, placeholders: Sequence[torch.fx.Node], found: dict[int, Bounds]) -> None:
    """Narrow inputs so that what is computed of them stays within 32 bits, where that can be had.

    `mask.cumsum(-1)` of a mask that may hold any 32-bit integer may leave 32 bits; of 16 bits it does not. A call whose
    inputs are beyond runs with torch.
    """
    static = _static_nodes(captured.graph, {placeholders[number] for number in found})
    attributes = operator.attrgetter

    def constant_of(node: torch.fx.Node) -> torch.Tensor | None:
        return attributes(str(node.target))(captured) if node.op == "get_attr" else None

    def left_by(bounds: Mapping[int, Bounds]) -> list[torch.fx.Node]:
        inputs = {placeholders[number]: Range(*each) for number, each in bounds.items()}
        known = Ranges(inputs, constant_of, static.__contains__)
        return [node for node in dynamic if beyond(node, known)]

    dynamic = [node for node in captured.graph.nodes if node.op == "call_function" and node not in static]
    worst = left_by(found)
    reached = _ancestors(worst)
    concerned = [number for number in found if placeholders[number] in reached]
    if not concerned:
        return
    best, fewest = dict(found), len(worst)
    for width in WIDTHS:
        tried = dict(found)
        for number in concerned:
            tried[number] = found[number].and_also(Bounds(-(1 << width), 1 << width))
        left = len(left_by(tried))
        if left < fewest:
            best, fewest = tried, left
    found.update(best)


def _static_nodes(graph: torch.fx.Graph, inputs: set[torch.fx.Node]) -> set[torch.fx.Node]:
    """The nodes that depend on weights and constants only."""
    found: set[torch.fx.Node] = set()
    for node in graph.nodes:
        is_input = node.op == "placeholder" and (node in inputs or not _is_whole(node))
        if not is_input and all(each in found for each in node.all_input_nodes):
            found.add(node)
    return found


def _is_whole(node: torch.fx.Node) -> bool:
    """Whether it is a tensor of integers."""
    val = node.meta.get("val")
    return isinstance(val, torch.Tensor) and val.dtype in (torch.int32, torch.int64)


def _ancestors(nodes: Sequence[torch.fx.Node]) -> set[torch.fx.Node]:
    found: set[torch.fx.Node] = set()
    waiting = list(nodes)
    while waiting:
        node = waiting.pop()
        if node not in found:
            found.add(node)
            waiting += node.all_input_nodes
    return found


# What gives some or all of the values it is given, and no others.
PASSES_ON = {
    aten.view.default, aten._unsafe_view.default, aten.reshape.default, aten.unsqueeze.default, aten.squeeze.dim,
    aten.squeeze.dims, aten.squeeze.default, aten.expand.default, aten.clone.default, aten.alias.default,
    aten.detach.default, aten.slice.Tensor, aten.select.int, aten.permute.default, aten.transpose.int, aten.t.default,
    aten.repeat.default,
}  # fmt: skip


def _asked_of(node: torch.fx.Node) -> Iterator[Bounds]:
    for user in node.users:
        if user.target in PASSES_ON or (user.target is aten._to_copy.default and _is_integer(user)):
            yield from _asked_of(user)
        elif user.target in LOOKS_UP:
            yield from LOOKS_UP[user.target](user, node)


def _is_integer(node: torch.fx.Node) -> bool:
    return node.meta["val"].dtype in (torch.int32, torch.int64)


def _sizes(node: torch.fx.Node) -> torch.Size:
    return node.args[0].meta["val"].shape  # type: ignore[union-attr]


def _rows(node: torch.fx.Node, index: torch.fx.Node) -> Iterator[Bounds]:
    """Rows of a table, counted from 0."""
    if node.args[1] is index:
        yield Bounds(0, _sizes(node)[0] - 1)


def _along(node: torch.fx.Node, index: torch.fx.Node) -> Iterator[Bounds]:
    """Places along a dimension, counted from 0."""
    if node.args[2] is index:
        sizes, dim = _sizes(node), node.args[1]
        yield Bounds(0, (sizes[dim] if sizes else 1) - 1)  # type: ignore[index]


def _each_dim(node: torch.fx.Node, index: torch.fx.Node) -> Iterator[Bounds]:
    """An index for each of the first dimensions, counted from either end."""
    for dim, each in enumerate(node.args[1]):  # type: ignore[arg-type]
        if each is index:
            size = _sizes(node)[dim]
            yield Bounds(-size, size - 1)


def _classes(node: torch.fx.Node, index: torch.fx.Node) -> Iterator[Bounds]:
    """Classes, or the one value that says that a row does not count."""
    if node.args[1] is index:
        sizes, ignored = _sizes(node), int(node.args[4])  # type: ignore[arg-type]
        yield Bounds(min(0, ignored), max(sizes[min(1, len(sizes) - 1)] - 1, ignored))


LOOKS_UP: dict[Any, Callable[[torch.fx.Node, torch.fx.Node], Iterator[Bounds]]] = {
    aten.embedding.default: _rows,
    aten.gather.default: _along,
    aten.index_select.default: _along,
    aten.index_add.default: _along,
    aten.index_copy.default: _along,
    aten.scatter.src: _along,
    aten.scatter.value: _along,
    aten.scatter.reduce: _along,
    aten.scatter_add.default: _along,
    aten.scatter_reduce.two: _along,
    aten.index.Tensor: _each_dim,
    aten.index_put.default: _each_dim,
    aten._unsafe_index.Tensor: _each_dim,
    aten.nll_loss_forward.default: _classes,
    aten.nll_loss2d_forward.default: _classes,
}
