"""Bounds of a graph's integer inputs that are used as indices.

torch rejects an index that is out of range; a kernel of the device reads out of bounds. So a program first checks the
smallest and largest value of such inputs, and leaves other calls to torch, which raises its own error.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import torch
import torch.fx

from torch_ttnn.compiler.analysis import angles, assertions
from torch_ttnn.compiler.analysis.ranges import Range, Ranges, beyond, divides_by_zero
from torch_ttnn.compiler.ir.arguments import leaves
from torch_ttnn.compiler.ir.metadata import MEASURED

aten = torch.ops.aten


class Bounds(NamedTuple):
    """The smallest and the largest value."""

    low: int
    high: int

    def and_also(self, other: Bounds) -> Bounds:
        return Bounds(max(self.low, other.low), min(self.high, other.high))

    def include(self, other: Bounds) -> bool:
        return self.low <= other.low and other.high <= self.high

    def hold(self, tensor: torch.Tensor) -> bool:
        """Whether all elements of a tensor are within the bounds."""
        if tensor.numel() == 0 or tensor.is_meta:
            return True
        low, high = torch.aminmax(tensor)
        return low.item() >= self.low and high.item() <= self.high  # false for NaN


INT32 = Bounds(torch.iinfo(torch.int32).min, torch.iinfo(torch.int32).max)  # of the device's integers
ANY_FLOAT = Bounds(-(1 << 128), 1 << 128)


def of_inputs(captured: torch.fx.GraphModule, statics: Collection[int] = ()) -> dict[int, Bounds]:
    """The bounds of every integer input, by its index, and of floating-point inputs where they matter.

    `statics` are the indices of weights. Their bounds are checked when they are prepared.
    """
    placeholders = captured.graph.find_nodes(op="placeholder")
    whole = [number for number, node in enumerate(placeholders) if _is_whole(node)]
    casts = any(node.target in CASTS and _is_whole(node) for node in captured.graph.nodes)
    if not whole and not casts and not angles.trigonometric(captured.graph):
        return {}
    found: dict[int, Bounds] = {}
    for number in whole:
        found[number] = _of_dtype(placeholders[number])
        for asked in _asked_of(placeholders[number]):
            found[number] = found[number].and_also(asked)
    _Narrowing(captured, placeholders, found, statics).run()
    return {
        number: bounds
        for number, bounds in found.items()
        if not _is_narrow(placeholders[number]) or bounds != _of_dtype(placeholders[number])
    }


CASTS = {aten._to_copy.default, torch.ops.prims.convert_element_type.default, aten.to.dtype}
WIDTHS = (
    30,
    24,
    20,
    16,
    15,
    10,
    7,
)  # bits without sign, to which inputs may be narrowed for sums and products


def ranges_of_inputs(
    captured: torch.fx.GraphModule, placeholders: Sequence[torch.fx.Node], statics: Collection[int]
) -> dict[torch.fx.Node, Range]:
    """The ranges of inputs, which every call is checked against, by the placeholders of a graph."""
    return {placeholders[number]: Range(*each) for number, each in of_inputs(captured, statics).items()}


class _Narrowing:
    """Narrows inputs so that values computed from them stay within 32 bits and indices within tables, where possible.

    `mask.cumsum(-1)` of any 32-bit integers may exceed 32 bits; of 16-bit integers it does not. A position in a cache
    plus one is in the cache if the position is below its end. torch runs calls whose inputs are out of bounds.
    """

    def __init__(
        self,
        captured: torch.fx.GraphModule,
        placeholders: Sequence[torch.fx.Node],
        found: dict[int, Bounds],
        statics: Collection[int],
    ) -> None:
        self.captured, self.placeholders, self.found, self.statics = captured, placeholders, found, statics
        self.constants = _constant_nodes(captured.graph)
        self.nodes = [
            node for node in captured.graph.nodes if node.op == "call_function" and any(map(_is_whole, _around(node)))
        ]

    def run(self) -> None:
        self._bound_floats()
        for group in self._groups(beyond):
            self._by_width(group)
        for group in self._groups(divides_by_zero):
            self._by_sign(group)
        for group in self._groups(looks_beyond):
            self._by_search(group)
        for node in angles.trigonometric(self.captured.graph):
            self._by_angle(node)

    def _bound_floats(self) -> None:
        """Bound floating-point inputs that are cast to integers: masks may be passed as floats."""
        left = self._refused(beyond, self.found)
        reached = _ancestors([item for node in left for item in node.all_input_nodes]) if left else ()
        for number, node in enumerate(self.placeholders):
            if node not in reached or number in self.found or not _is_float(node):
                continue
            for bounds in (INT32, Bounds(-(1 << 24), 1 << 24)):
                still = self._refused(beyond, {**self.found, number: bounds})
                if len(still) < len(left):
                    left = still
                    self.found[number] = bounds
                    break

    def _refused(
        self, test: Callable[[torch.fx.Node, Ranges], bool], found: Mapping[int, Bounds]
    ) -> list[torch.fx.Node]:
        known = self._ranges(found)
        return [node for node in self.nodes if test(node, known)]

    def _ranges(self, found: Mapping[int, Bounds]) -> Ranges:
        inputs = {self.placeholders[number]: Range(*each) for number, each in found.items()}
        return Ranges(inputs, self._constant_of, self.constants.__contains__)

    def _constant_of(self, node: torch.fx.Node) -> torch.Tensor | None:
        return operator.attrgetter(str(node.target))(self.captured) if node.op == "get_attr" else None

    def _groups(self, test: Callable[[torch.fx.Node, Ranges], bool]) -> list[list[int]]:
        """Groups of inputs that are combined in refused operations."""
        groups: list[set[int]] = []
        for node in self._refused(test, self.found):
            reached = _ancestors([item for item in node.all_input_nodes if _is_whole(item)] or node.all_input_nodes)
            numbers = {number for number in self.found if self.placeholders[number] in reached}
            for group in [group for group in groups if group & numbers]:
                groups.remove(group)
                numbers |= group
            if numbers:
                groups.append(numbers)
        return [sorted(numbers) for numbers in groups]

    def _narrowed(self, group: Sequence[int], bounds: Bounds) -> dict[int, Bounds]:
        return {**self.found, **{number: self.found[number].and_also(bounds) for number in group}}

    def _by_width(self, group: Sequence[int]) -> None:
        """Narrow to the widest of a few widths for which the fewest operations are refused."""
        fewest = len(self._refused(beyond, self.found))
        best = self.found
        for width in WIDTHS:
            tried = self._narrowed(group, Bounds(-(1 << width), 1 << width))
            still = len(self._refused(beyond, tried))
            if still < fewest:
                best, fewest = tried, still
        self.found.update(best)

    def _by_sign(self, group: Sequence[int]) -> None:
        """Narrow to positive numbers, if that rules out divisions by zero."""
        tried = self._narrowed(group, Bounds(1, INT32.high))
        if len(self._refused(divides_by_zero, tried)) < len(self._refused(divides_by_zero, self.found)):
            self.found.update(tried)

    def _by_angle(self, node: torch.fx.Node) -> None:
        """Narrow to the widest inputs for which the device supports an angle, if there are any."""

        def beyond_with(found: Mapping[int, Bounds]) -> bool:
            return angles.is_beyond(node, self._ranges(found))

        if not beyond_with(self.found):
            return
        reached = _ancestors(node.all_input_nodes)
        read = [number for number, each in enumerate(self.placeholders) if each in reached]
        if all(number in self.statics for number in self._inputs_of(node)):
            return  # a constant, which torch computes once
        measured = {number: MEASURED[each] for number, each in enumerate(self.placeholders) if MEASURED.on(each)}
        known = {**self.found, **{number: measured[number] for number in read if number in measured}}
        floats = [number for number in read if _is_float(self.placeholders[number]) and number not in measured]
        for widths in angles.narrowings([number for number in read if number in self.found], floats):
            tried = dict(known)
            for number, width in widths.items():
                tried[number] = tried.get(number, ANY_FLOAT).and_also(Bounds(-(1 << width), 1 << width))
            if not beyond_with(tried):
                self.found.update(tried)
                return

    def _inputs_of(self, node: torch.fx.Node) -> list[int]:
        """The inputs that a node is computed from in any way."""
        found: set[torch.fx.Node] = set()
        waiting = [node]
        while waiting:
            each = waiting.pop()
            if each not in found:
                found.add(each)
                waiting += each.all_input_nodes
        return [number for number, each in enumerate(self.placeholders) if each in found]

    def _by_search(self, group: Sequence[int]) -> None:
        """Narrow to the largest upper and the smallest lower bound for which all indices are within their tables."""

        def refused(low: int, high: int) -> int:
            return len(self._refused(looks_beyond, self._narrowed(group, Bounds(low, high))))

        fewest = refused(0, 0)
        if fewest >= len(self._refused(looks_beyond, self.found)):
            return
        high = _largest(lambda number: refused(0, number) <= fewest, INT32.high)
        low = -_largest(lambda number: refused(-number, high) <= fewest, -INT32.low)
        self.found.update(self._narrowed(group, Bounds(low, high)))


def _largest(holds: Callable[[int], bool], most: int) -> int:
    """The largest number up to `most` for which a monotonic condition holds; it holds for 0."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if holds(middle) else (low, middle - 1)
    return low


def looks_beyond(node: torch.fx.Node, ranges: Ranges) -> bool:
    """Whether an index of an operation may be out of range, which torch rejects."""
    if node.target not in LOOKS_UP or node.target in TRUSTED:
        return False
    for index in {item for item in leaves(node.args[1:]) if isinstance(item, torch.fx.Node) and _is_whole(item)}:
        for asked in LOOKS_UP[node.target](node, index):
            if not ranges(index).within(Range(*asked)):
                return True
    return False


def _constant_nodes(graph: torch.fx.Graph) -> set[torch.fx.Node]:
    """The nodes that depend on no input."""
    found: set[torch.fx.Node] = set()
    for node in graph.nodes:
        if node.op != "placeholder" and all(each in found for each in node.all_input_nodes):
            found.add(node)
    return found


def _around(node: torch.fx.Node) -> list[torch.fx.Node]:
    return [node, *node.all_input_nodes]


INTEGERS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)


def _is_whole(node: torch.fx.Node) -> bool:
    """Whether it is a tensor of integers."""
    val = node.meta.get("val")
    return isinstance(val, torch.Tensor) and val.dtype in INTEGERS


def _is_narrow(node: torch.fx.Node) -> bool:
    """Whether its dtype is an integer of at most 32 bits."""
    return _is_whole(node) and node.meta["val"].dtype is not torch.int64


def _of_dtype(node: torch.fx.Node) -> Bounds:
    info = torch.iinfo(node.meta["val"].dtype)
    return INT32.and_also(Bounds(info.min, info.max))


def _is_float(node: torch.fx.Node) -> bool:
    val = node.meta.get("val")
    return isinstance(val, torch.Tensor) and val.dtype.is_floating_point


def weights_of_angles(graph: torch.fx.Graph, statics: Collection[int]) -> list[int]:
    """The floating-point weights, by index, that angles are computed from."""
    found = angles.trigonometric(graph)
    reached = _ancestors([item for node in found for item in node.all_input_nodes]) if found else ()
    placeholders = graph.find_nodes(op="placeholder") if found else ()
    return [
        number for number, node in enumerate(placeholders) if number in statics and node in reached and _is_float(node)
    ]


def bounds_around(tensor: torch.Tensor) -> Bounds | None:
    """Powers of two that the values of a tensor are within; None if there are none."""
    largest = tensor.abs().max().item() if tensor.numel() else 0.0
    if not largest <= 1 << 32:  # nor NaN
        return None
    high = 1 << max(math.ceil(largest) - 1, 0).bit_length()
    return Bounds(-high, high)


def _ancestors(nodes: Sequence[torch.fx.Node]) -> set[torch.fx.Node]:
    """The nodes that the values of nodes are computed from; not beyond comparisons, which only pass on a boolean."""
    found: set[torch.fx.Node] = set()
    waiting = list(nodes)
    while waiting:
        node = waiting.pop()
        val = node.meta.get("val")
        if node in found or (isinstance(val, torch.Tensor) and val.dtype is torch.bool):
            continue
        found.add(node)
        # A lookup returns values of the table for any index.
        waiting += node.all_input_nodes[:1] if node.target in LOOKS_UP else node.all_input_nodes
    return found


# Operations that return some or all values of their input, and no others.
PASSES_ON = {
    aten.view.default, aten._unsafe_view.default, aten.reshape.default, aten.unsqueeze.default, aten.squeeze.dim,
    aten.squeeze.dims, aten.squeeze.default, aten.expand.default, aten.clone.default, aten.alias.default,
    aten.detach.default, aten.slice.Tensor, aten.select.int, aten.permute.default, aten.transpose.int, aten.t.default,
    aten.repeat.default,
}  # fmt: skip


def _asked_of(node: torch.fx.Node) -> Iterator[Bounds]:
    for low, high in assertions.asked_of(node):
        yield Bounds(int(max(low, INT32.low)), int(min(high, INT32.high)))
    for user in node.users:
        if user.target in PASSES_ON or (user.target is aten._to_copy.default and _is_whole(user)):
            yield from _asked_of(user)
        elif user.target in LOOKS_UP:
            yield from LOOKS_UP[user.target](user, node)


def _sizes(node: torch.fx.Node) -> torch.Size:
    return node.args[0].meta["val"].shape  # type: ignore[union-attr]


def _rows(node: torch.fx.Node, index: torch.fx.Node) -> Iterator[Bounds]:
    """Rows of a table, from 0."""
    if node.args[1] is index:
        yield Bounds(0, _sizes(node)[0] - 1)


def _along(node: torch.fx.Node, index: torch.fx.Node) -> Iterator[Bounds]:
    """Positions along a dimension, from 0."""
    if node.args[2] is index:
        sizes, dim = _sizes(node), node.args[1]
        yield Bounds(0, (sizes[dim] if sizes else 1) - 1)  # type: ignore[index]


def _from_either_end(node: torch.fx.Node, index: torch.fx.Node) -> Iterator[Bounds]:
    """Positions along a dimension, from either end."""
    for _, high in _along(node, index):
        yield Bounds(-high - 1, high)


def _flattened(node: torch.fx.Node, index: torch.fx.Node) -> Iterator[Bounds]:
    """Positions in the flattened tensor, from either end."""
    if node.args[1] is index:
        count = _sizes(node).numel()
        yield Bounds(-count, count - 1)


def _each_dim(node: torch.fx.Node, index: torch.fx.Node) -> Iterator[Bounds]:
    """An index for each of the first dimensions, from either end."""
    for dim, each in enumerate(node.args[1]):  # type: ignore[arg-type]
        if each is index:
            size = _sizes(node)[dim]
            yield Bounds(-size, size - 1)


def _classes(node: torch.fx.Node, index: torch.fx.Node) -> Iterator[Bounds]:
    """Classes, or the value of `ignore_index`."""
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
    aten.index_fill.int_Scalar: _from_either_end,
    aten.index_fill.int_Tensor: _from_either_end,
    aten.take.default: _flattened,
    aten.index.Tensor: _each_dim,
    aten.index_put.default: _each_dim,
    aten._unsafe_index.Tensor: _each_dim,
    aten.nll_loss_forward.default: _classes,
    aten.nll_loss2d_forward.default: _classes,
}
TRUSTED = {aten._unsafe_index.Tensor}  # torch does not check its indices either
