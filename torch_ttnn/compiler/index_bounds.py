"""Which values a graph's integer inputs may have, because something is looked up at them.

torch refuses an index that is out of range; a kernel of the device reads whatever lies there. So a program looks at
the smallest and largest value of such inputs first, and leaves calls with others to torch, which says what is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch
import torch.fx

aten = torch.ops.aten


class Bounds(NamedTuple):
    """The smallest and the largest value."""

    low: int
    high: int

    def and_also(self, other: Bounds) -> Bounds:
        return Bounds(max(self.low, other.low), min(self.high, other.high))


INT32 = Bounds(torch.iinfo(torch.int32).min, torch.iinfo(torch.int32).max)  # what the device's integers hold
ANYTHING = Bounds(torch.iinfo(torch.int64).min, torch.iinfo(torch.int64).max)


def of_inputs(graph: torch.fx.Graph) -> dict[int, Bounds]:
    """The bounds of every input of integers, by its number."""
    found = {}
    for number, node in enumerate(each for each in graph.nodes if each.op == "placeholder"):
        val = node.meta.get("val")
        if not isinstance(val, torch.Tensor) or val.dtype not in (torch.int32, torch.int64):
            continue
        bounds = INT32 if val.dtype is torch.int64 else ANYTHING
        for asked in _asked_of(node):
            bounds = bounds.and_also(asked)
        if bounds != ANYTHING:
            found[number] = bounds
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
