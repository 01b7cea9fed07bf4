"""Operations on complex tensors in terms of real ones: a complex value is a pair of real and imaginary part.

A rule writes real ATen calls and returns a pair, or a node if the operation returns a real tensor. A part that is zero
everywhere is None, and a part that is one number everywhere is that number, so that no calls are written for it.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
import torch.fx

from torch_ttnn.compiler.ir.arguments import call_with, mapped
from torch_ttnn.compiler.ir.metadata import POSITION
from torch_ttnn.compiler.ir.nodes import call_node

aten = torch.ops.aten
Node = torch.fx.Node

SOURCE_KEYS = ("stack_trace", "nn_module_stack", "source_fn_stack", POSITION.name)  # identify the line of the model


class Pair(NamedTuple):
    """Real and imaginary part: each a node, a number, or None for zero."""

    real: Any
    imag: Any


class RealCalls:
    """Writes calls on real tensors before `anchor`, and has the pairs written so far."""

    def __init__(self, graph: torch.fx.Graph, fake_mode: Any) -> None:
        self.graph = graph
        self.fake_mode = fake_mode
        self.anchor: Node = next(iter(graph.nodes))
        self.pairs: dict[Node, Pair] = {}

    def call(self, target: Any, *args: Any, **kwargs: Any) -> Node:
        with self.graph.inserting_before(self.anchor):
            node = call_node(self.graph, target, args, kwargs)
        for name in SOURCE_KEYS:
            if name in self.anchor.meta:
                node.meta[name] = self.anchor.meta[name]
        with self.fake_mode:
            node.meta["val"] = call_with(target, args, kwargs, _val_of)
        return node

    def pair_of(self, item: Any) -> Pair:
        """The pair of an operand: a complex or real tensor, or a number."""
        if isinstance(item, Node):
            return self.pairs[item] if item in self.pairs else Pair(self.as_float32(item), None)
        number = complex(item)
        return Pair(number.real or None, number.imag or None)

    def as_float32(self, node: Node) -> Node:
        if node.meta["val"].dtype is torch.float32:
            return node
        return self.call(aten._to_copy.default, node, dtype=torch.float32)

    def filled(self, pair: Pair, shape: Any) -> Pair:
        """The pair with both parts as tensors of this shape."""
        return Pair(*[self._of_shape(part, shape) for part in pair])

    def _of_shape(self, part: Any, shape: Any) -> Node:
        if not isinstance(part, Node):
            return self.call(aten.full.default, list(shape), float(part or 0), dtype=torch.float32)
        return part if part.meta["val"].shape == shape else self.call(aten.expand.default, part, list(shape))

    # -- arithmetic of parts ------------------------------------------------------------------------------------------

    def neg(self, a: Any) -> Any:
        return None if a is None else self.call(aten.neg.default, a) if isinstance(a, Node) else -a

    def add(self, a: Any, b: Any) -> Any:
        if a is None or b is None:
            return b if a is None else a
        if not isinstance(a, Node):
            a, b = b, a
        return self.call(aten.add.Tensor, a, b) if isinstance(a, Node) else a + b

    def sub(self, a: Any, b: Any) -> Any:
        if isinstance(a, Node) and b is not None:
            return self.call(aten.sub.Tensor, a, b)
        return self.add(a, self.neg(b))

    def mul(self, a: Any, b: Any) -> Any:
        if a is None or b is None:
            return None
        if not isinstance(a, Node):
            a, b = b, a
        if not isinstance(a, Node):
            return a * b
        return a if isinstance(b, float) and b == 1 else self.call(aten.mul.Tensor, a, b)

    def div(self, a: Any, b: Any) -> Any:
        if a is None:
            return None
        if isinstance(a, Node) or not isinstance(b, Node):
            return self.call(aten.div.Tensor, a, b) if isinstance(a, Node) else a / b
        return self.mul(self.call(aten.reciprocal.default, b), a)

    def product(self, a: Pair, b: Pair, mul: Callable[[Any, Any], Any] | None = None) -> Pair:
        mul = mul or self.mul
        real = self.sub(mul(a.real, b.real), mul(a.imag, b.imag))
        return Pair(real, self.add(mul(a.real, b.imag), mul(a.imag, b.real)))


Rule = Callable[..., Any]  # (calls, node) → a pair, or a node
RULES: dict[Any, Rule] = {}
CONDITIONS: dict[Any, Callable[[Node], bool]] = {}  # whether the rule applies to a call


def rule(*overloads: Any, when: Callable[[Node], bool] | None = None) -> Callable[[Rule], Rule]:
    def register(function: Rule) -> Rule:
        for overload in overloads:
            RULES[overload] = function
            if when is not None:
                CONDITIONS[overload] = when
        return function

    return register


# -- conversions from and to real tensors -----------------------------------------------------------------------------


@rule(aten.complex.default)
def complex_(calls: RealCalls, node: Node) -> Pair:
    return Pair(node.args[0], node.args[1])


@rule(aten.polar.default)
def polar(calls: RealCalls, node: Node) -> Pair:
    length, angle = node.args
    return Pair(
        calls.mul(length, calls.call(aten.cos.default, angle)), calls.mul(length, calls.call(aten.sin.default, angle))
    )


@rule(aten.view_as_complex.default)
def view_as_complex(calls: RealCalls, node: Node) -> Pair:
    given: Any = node.args[0]
    neighbours = flat_neighbours(given)
    if neighbours is not None:  # a dimension of 2 would be padded to a tile of 32
        return Pair(*[calls.call(aten.slice.Tensor, neighbours, -1, start, None, 2) for start in (0, 1)])
    return Pair(*[calls.call(aten.select.int, given, -1, part) for part in (0, 1)])


def flat_neighbours(node: Node) -> Node | None:
    """The tensor [..., 2 n] that this one, [..., n, 2], is a view of."""
    if node.target not in (aten.view.default, aten.reshape.default, aten._unsafe_view.default):
        return None
    source: Any = node.args[0]
    whole, seen = source.meta["val"].shape, node.meta["val"].shape
    return source if list(whole) == [*seen[:-2], 2 * seen[-2]] else None


@rule(aten.view_as_real.default)
def view_as_real(calls: RealCalls, node: Node) -> Node:
    pair = calls.filled(calls.pair_of(node.args[0]), node.meta["val"].shape[:-1])
    return calls.call(aten.stack.default, list(pair), -1)


@rule(aten.abs.default)
def abs_(calls: RealCalls, node: Node) -> Node:
    return _length(calls, calls.pair_of(node.args[0]))


def _length(calls: RealCalls, z: Pair) -> Node:
    return calls.call(aten.hypot.default, z.real, z.imag)


@rule(aten.angle.default)
def angle(calls: RealCalls, node: Node) -> Node:
    z = calls.pair_of(node.args[0])
    return calls.call(aten.atan2.default, z.imag, z.real)


@rule(aten._to_copy.default)
def to_copy(calls: RealCalls, node: Node) -> Any:
    """From complex to complex or real, or from real to complex."""
    dtype = node.meta["val"].dtype
    kwargs = {name: item for name, item in node.kwargs.items() if name != "dtype"}
    pair = calls.pair_of(node.args[0])
    if dtype.is_complex:
        return Pair(*[calls.call(aten.clone.default, part) if kwargs and part is not None else part for part in pair])
    return calls.call(aten._to_copy.default, pair.real, dtype=dtype, **kwargs)


# -- arithmetic -------------------------------------------------------------------------------------------------------


@rule(aten.add.Tensor, aten.sub.Tensor, aten.rsub.Scalar, aten.add.Scalar, aten.sub.Scalar)
def sum_or_difference(calls: RealCalls, node: Node) -> Pair:
    one, other = [calls.pair_of(item) for item in node.args[:2]]
    scale = node.kwargs.get("alpha", node.args[2] if len(node.args) > 2 else 1)
    reverse = node.target is aten.rsub.Scalar
    scaled = calls.product(one if reverse else other, calls.pair_of(scale))
    kept = other if reverse else one
    join = calls.add if node.target in (aten.add.Tensor, aten.add.Scalar) else calls.sub
    return Pair(join(kept.real, scaled.real), join(kept.imag, scaled.imag))


@rule(aten.mul.Tensor, aten.mul.Scalar)
def mul(calls: RealCalls, node: Node) -> Pair:
    return calls.product(calls.pair_of(node.args[0]), calls.pair_of(node.args[1]))


@rule(aten.div.Tensor, aten.div.Scalar)
def div(calls: RealCalls, node: Node) -> Pair:
    return _quotient(calls, calls.pair_of(node.args[0]), calls.pair_of(node.args[1]))


@rule(aten.reciprocal.default)
def reciprocal(calls: RealCalls, node: Node) -> Pair:
    return _quotient(calls, Pair(1.0, None), calls.pair_of(node.args[0]))


def _quotient(calls: RealCalls, a: Pair, b: Pair) -> Pair:
    if b.imag is None:
        return Pair(calls.div(a.real, b.real or 0.0), calls.div(a.imag, b.real or 0.0))
    if not isinstance(b.imag, Node):
        inverse = 1 / complex(b.real or 0, b.imag)
        return calls.product(a, Pair(inverse.real or None, inverse.imag or None))
    # Divide by the larger part first: squares of numbers below 2^-63 underflow to zero, and above 2^64 overflow.
    size = calls.call(aten.maximum.default, *[calls.call(aten.abs.default, part) for part in b])
    c, d = [calls.div(part, size) for part in b]
    square = calls.add(calls.mul(c, c), calls.mul(d, d))
    top = calls.product(a, Pair(c, calls.neg(d)))
    return Pair(*[calls.div(calls.div(part, square), size) for part in top])


@rule(aten.exp.default)
def exp(calls: RealCalls, node: Node) -> Pair:
    z = calls.pair_of(node.args[0])
    size = calls.call(aten.exp.default, z.real)
    return Pair(*[calls.mul(size, calls.call(turn, z.imag)) for turn in (aten.cos.default, aten.sin.default)])


@rule(aten.log.default)
def log(calls: RealCalls, node: Node) -> Pair:
    z = calls.pair_of(node.args[0])
    return Pair(calls.call(aten.log.default, _length(calls, z)), calls.call(aten.atan2.default, z.imag, z.real))


@rule(aten.sgn.default)
def sgn(calls: RealCalls, node: Node) -> Pair:
    z = calls.pair_of(node.args[0])
    size = _length(calls, z)
    size = calls.add(size, calls.as_float32(calls.call(aten.eq.Scalar, size, 0)))  # zero has no direction
    return Pair(calls.div(z.real, size), calls.div(z.imag, size))


LARGEST_POWER = 4  # more products lose more digits than the function itself


@rule(aten.pow.Tensor_Scalar, when=lambda node: node.args[1] in range(1, LARGEST_POWER + 1))
def power(calls: RealCalls, node: Node) -> Pair:
    made = z = calls.pair_of(node.args[0])
    for _ in range(int(node.args[1]) - 1):  # type: ignore[arg-type]
        made = calls.product(made, z)
    return made


@rule(aten._conj.default, aten._conj_physical.default, aten.conj_physical.default)
def conj(calls: RealCalls, node: Node) -> Pair:
    z = calls.pair_of(node.args[0])
    return Pair(z.real, calls.neg(z.imag))


@rule(aten.eq.Tensor, aten.ne.Tensor, aten.eq.Scalar, aten.ne.Scalar)
def equal(calls: RealCalls, node: Node) -> Node:
    is_equal = node.target in (aten.eq.Tensor, aten.eq.Scalar)
    one, other = [calls.pair_of(item) for item in node.args]
    compare = aten.eq if is_equal else aten.ne
    made = []
    for mine, theirs in zip(one, other):
        if not isinstance(mine, Node):
            mine, theirs = theirs, mine
        overload = compare.Tensor if isinstance(theirs, Node) else compare.Scalar
        made.append(calls.call(overload, mine, 0.0 if theirs is None else theirs))
    return calls.call(aten.logical_and.default if is_equal else aten.logical_or.default, *made)


# -- products of matrices ---------------------------------------------------------------------------------------------


@rule(aten.mm.default, aten.bmm.default, aten.mv.default, aten.dot.default)
def matrices(calls: RealCalls, node: Node) -> Pair:
    return _matrix_product(calls, node.target, *node.args)


@rule(aten.addmm.default, aten.baddbmm.default)
def added_matrices(calls: RealCalls, node: Node) -> Pair:
    target = aten.mm.default if node.target is aten.addmm.default else aten.bmm.default
    made = _matrix_product(calls, target, *node.args[1:3])
    made = calls.product(made, calls.pair_of(node.kwargs.get("alpha", 1)))
    bias = calls.product(calls.pair_of(node.args[0]), calls.pair_of(node.kwargs.get("beta", 1)))
    return Pair(calls.add(made.real, bias.real), calls.add(made.imag, bias.imag))


def _matrix_product(calls: RealCalls, target: Any, a: Any, b: Any) -> Pair:
    def multiply(one: Any, other: Any) -> Any:
        return None if one is None or other is None else calls.call(target, one, other)

    return calls.product(calls.pair_of(a), calls.pair_of(b), multiply)


# -- applied to both parts --------------------------------------------------------------------------------------------

# Operations that move, add or negate values, and the indices of the arguments that are such values.
BOTH_PARTS: dict[Any, tuple[int, ...]] = {
    aten.where.self: (1, 2),
    aten.slice_scatter.default: (0, 1),
    aten.select_scatter.default: (0, 1),
    aten.index_put.default: (0, 2),
    aten.copy.default: (0, 1),
}
VIEWING: dict[Any, tuple[int, ...]] = dict.fromkeys((
    aten.view.default, aten._unsafe_view.default, aten.reshape.default, aten.permute.default, aten.transpose.int,
    aten.t.default, aten.expand.default, aten.slice.Tensor, aten.select.int, aten.unsqueeze.default,
    aten.squeeze.default, aten.squeeze.dim, aten.squeeze.dims, aten.alias.default, aten.detach.default,
    aten.narrow.default, aten.diagonal.default, aten.split.Tensor, aten.split_with_sizes.default, aten.unbind.int,
    aten.chunk.default, operator.getitem,
), (0,))  # fmt: skip
COPYING: dict[Any, tuple[int, ...]] = dict.fromkeys((
    aten.clone.default, aten.neg.default, aten.flip.default, aten.roll.default, aten.tril.default,
    aten.triu.default, aten.repeat.default, aten.index.Tensor, aten.index_select.default, aten.gather.default,
    aten.sum.default, aten.sum.dim_IntList, aten.mean.default, aten.mean.dim, aten.cumsum.default, aten.cat.default,
    aten.stack.default,
), (0,))  # fmt: skip
BOTH_PARTS |= VIEWING | COPYING
RESHAPED = (aten.view.default, aten._unsafe_view.default)


def both_parts(calls: RealCalls, node: Node) -> Pair:
    target: Any = aten.reshape.default if node.target in RESHAPED else node.target
    kwargs = {name: item for name, item in node.kwargs.items() if name != "dtype"}
    places = BOTH_PARTS[node.target]
    given: dict[Node, Pair] = {}

    def take(item: Any) -> Any:
        if isinstance(item, Node) and item not in given:
            is_list = isinstance(item.meta["val"], tuple | list)
            given[item] = calls.pairs[item] if is_list else calls.filled(calls.pair_of(item), item.meta["val"].shape)
        return item

    def call(part: int) -> Node:
        def part_of(item: Any) -> Any:
            return given[item][part] if isinstance(item, Node) else item

        args = [mapped(item, part_of) if place in places else item for place, item in enumerate(node.args)]
        return calls.call(target, *args, **kwargs)

    mapped([node.args[place] for place in places], take)
    return Pair(call(0), call(1))


for _overload in BOTH_PARTS:
    RULES[_overload] = both_parts


@rule(aten.zeros_like.default, aten.ones_like.default, aten.full_like.default)
def like(calls: RealCalls, node: Node) -> Pair:
    if node.target is aten.full_like.default:
        return calls.pair_of(node.args[1])
    return Pair(1.0 if node.target is aten.ones_like.default else None, None)


@rule(aten.masked_fill.Scalar)
def masked_fill(calls: RealCalls, node: Node) -> Pair:
    z = calls.filled(calls.pair_of(node.args[0]), node.args[0].meta["val"].shape)  # type: ignore[union-attr]
    fill = calls.pair_of(node.args[2])
    return Pair(*[calls.call(aten.masked_fill.Scalar, mine, node.args[1], its or 0.0) for mine, its in zip(z, fill)])


@rule(aten.constant_pad_nd.default)
def constant_pad_nd(calls: RealCalls, node: Node) -> Pair:
    z = calls.filled(calls.pair_of(node.args[0]), node.args[0].meta["val"].shape)  # type: ignore[union-attr]
    fill = calls.pair_of(node.args[2] if len(node.args) > 2 else 0)
    return Pair(*[calls.call(node.target, mine, node.args[1], its or 0.0) for mine, its in zip(z, fill)])


def _val_of(item: Any) -> Any:
    return item.meta["val"] if isinstance(item, Node) else item
