"""Recognises a mixture of experts in a graph: how each row of the chosen experts' tensors is computed.

A token is routed to `k` experts, so there are `tokens × k` rows, in token order, or sorted by expert and restored to
token order at the end. Every call in between works on single rows: a product with the weight of the row's expert, a
pointwise function, a slice of the columns. The results of such calls do not depend on which other experts were chosen,
so they can be computed for all experts, and the choice applied to the result (`experts.py`).
"""

from __future__ import annotations

import operator
from dataclasses import dataclass, replace
from typing import Any

import torch

from torch_ttnn.compiler.fusion.nodes import (
    CASTS,
    DIV,
    MUL,
    SQUEEZES,
    VIEWS,
    Node,
    dtype_of,
    is_float,
    is_tensor,
    number_of,
    shape_of,
    skip_no_ops,
    transposition,
)
from torch_ttnn.compiler.fusion.rewriting import Rewriter

aten = torch.ops.aten

GROUPED = ("aten::_grouped_mm", "transformers::grouped_mm_fallback")  # x, weights, end of each expert's rows
SORTS = (aten.sort.default, aten.sort.stable)
FLOOR_DIVIDES = (aten.floor_divide.default, aten.div.Tensor_mode)
# Elementwise functions, of numbers and of rows with the same columns.
POINTWISE = frozenset(
    {*MUL, *DIV, *CASTS, aten.add.Tensor, aten.sub.Tensor, aten.rsub.Scalar, aten.neg.default, aten.silu.default,
     aten.gelu.default, aten.relu.default, aten.sigmoid.default, aten.tanh.default, aten.exp.default,
     aten.clamp.default, aten.clamp_min.default, aten.clamp_max.default, aten.square.default, aten.pow.Tensor_Scalar,
     aten.hardswish.default, aten.leaky_relu.default, aten.elu.default, aten.softplus.default, aten.mish.default}
)  # fmt: skip


# -- how rows are computed ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Tokens:
    """The row of the token: [tokens, columns]."""

    node: Node


@dataclass(frozen=True)
class Factors:
    """One number per row: [tokens, k]."""

    node: Node


@dataclass(frozen=True)
class Table:
    """A row of weights for each expert: [experts, columns]."""

    node: Node


@dataclass(frozen=True)
class Product:
    """A row times the weight of its expert, [experts, in, out], or some columns of that; optionally plus a bias."""

    x: Any
    weight: Any  # a node, or a `Transposed` one
    bias: Node | None = None
    columns: tuple[int, int, int] | None = None


@dataclass(frozen=True)
class Columns:
    """Some columns of rows: start, stop, step."""

    rows: Any
    columns: tuple[int, int, int]


@dataclass(frozen=True)
class Pointwise:
    """An elementwise function: the call in the graph, with rows in place of its tensors."""

    node: Node
    args: tuple


@dataclass(frozen=True)
class Weighted:
    """Rows times one factor per row."""

    rows: Any
    factors: Node


@dataclass(frozen=True)
class Rows:
    """How rows are computed, and their order: token order (None), or that of a `sort` call."""

    what: Any
    order: Node | None


class NotExperts(Exception):
    """The graph is not a mixture of experts that can be rewritten."""


class RowReader:
    """Reads the rows of one mixture of experts."""

    def __init__(self, rewriter: Rewriter, tokens: int, k: int) -> None:
        self.is_static = rewriter.is_static
        self.tokens, self.k = tokens, k
        self.ids: Node | None = None  # the experts of all rows, in token order
        self.experts = 0
        self.covered: set[Node] = set()
        self._read: dict[Node, Rows] = {}

    def read(self, node: Any) -> Rows:
        node = self._skip_no_ops(node)
        if not isinstance(node, Node) or node.op != "call_function":
            raise NotExperts
        if node not in self._read:
            self.covered.add(node)
            self._read[node] = self._rows(node)
        return self._read[node]

    def _skip_no_ops(self, node: Any) -> Any:
        found = skip_no_ops(node)
        while node is not found:
            self.covered.add(node)
            node = node.args[0]
        return found

    def _rows(self, node: Node) -> Rows:
        target = node.target
        if target is aten.index.Tensor:
            return self._indexed(node)
        if isinstance(target, torch._ops.OpOverload) and target._schema.name in GROUPED:
            return self._grouped(node)
        if target in (*VIEWS, *SQUEEZES):
            return self._viewed(node)
        if target is operator.getitem or target is aten.slice.Tensor:
            return self._some_columns(node)
        if target in POINTWISE:
            return self._pointwise(node)
        raise NotExperts

    # -- orders ------------------------------------------------------------------------------------------------------

    def _sort_of(self, item: Any, output: int) -> Node | None:
        """The sort by expert whose output `item` is."""
        item = skip_no_ops(item)
        if not isinstance(item, Node) or item.target is not operator.getitem or item.args[1] != output:
            return None
        sort: Any = item.args[0]
        if sort.target not in SORTS:
            return None
        given = {**dict(zip(("dim", "descending"), sort.args[1:])), **sort.kwargs}
        is_plain = given.get("dim", -1) in (0, -1) and not given.get("descending")
        if not is_plain or shape_of(item) != (self.tokens * self.k,):
            return None
        self._require_ids(sort.args[0])
        return sort

    def _require_ids(self, item: Any) -> None:
        """Require that all calls use the same expert ids."""
        item = skip_no_ops(item)
        if not is_tensor(item) or shape_of(item) != (self.tokens * self.k,) or dtype_of(item).is_floating_point:
            raise NotExperts
        if self.ids is None:
            self.ids = item
        elif self.ids is not item:
            raise NotExperts

    def _inverse_of(self, item: Any) -> Node | None:
        """The sort whose permutation `item` inverts: `inverse[order] = arange`, or `argsort(order)`."""
        item = skip_no_ops(item)
        if not isinstance(item, Node):
            return None
        if item.target in (aten.index_put.default, aten._unsafe_index_put.default) and len(item.args) == 3:
            indices: Any = item.args[1]
            count = skip_no_ops(item.args[2])
            is_range = getattr(count, "target", None) in _ARANGES and _is_arange(count, self.tokens * self.k)
            return self._sort_of(indices[0], 1) if len(indices) == 1 and is_range else None
        if item.target is operator.getitem and item.args[1] == 1:
            again: Any = item.args[0]
            return self._sort_of(again.args[0], 1) if again.target in SORTS else None
        return None

    # -- calls -------------------------------------------------------------------------------------------------------

    def _indexed(self, node: Node) -> Rows:
        x: Any = node.args[0]
        indices: Any = node.args[1]
        if len(indices) != 1:
            raise NotExperts
        index = skip_no_ops(indices[0])
        restored = self._inverse_of(index)
        if restored is not None:
            inner = self.read(x)
            if inner.order is not restored:
                raise NotExperts
            return Rows(inner.what, None)
        order = self._sort_of(index, 1)
        if order is not None:
            if self.k == 1 and len(shape_of(x)) == 2:
                return Rows(Tokens(skip_no_ops(x)), order)
            inner = self.read(x)
            if inner.order is not None:
                raise NotExperts
            return Rows(inner.what, order)
        if index.target in FLOOR_DIVIDES and number_of(index.args[1]) == self.k and shape_of(x)[0] == self.tokens:
            mode = index.kwargs.get("rounding_mode", "floor")
            order = self._sort_of(index.args[0], 1)
            if order is not None and mode in ("floor", "trunc") and len(shape_of(x)) == 2:
                return Rows(Tokens(skip_no_ops(x)), order)
        return Rows(Table(x), self._by_expert(index, x))

    def _by_expert(self, index: Any, table: Node) -> Node | None:
        """The order in which an index lists the experts of rows. The table has one entry per expert."""
        if not self.is_static(table):
            raise NotExperts
        self._require_experts(shape_of(table)[0])
        order = self._sort_of(index, 0)
        if order is None:
            self._require_ids(index)
        return order

    def _require_experts(self, count: int) -> None:
        if self.experts not in (0, count):
            raise NotExperts
        self.experts = count

    def _grouped(self, node: Node) -> Rows:
        x, weight, ends = (*node.args, *node.kwargs.values())[:3]
        if len(node.args) + len(node.kwargs) > 3 or not self.is_static(weight) or len(shape_of(weight)) != 3:  # type: ignore[arg-type]
            raise NotExperts
        inner = self.read(x)
        self._require_experts(shape_of(weight)[0])  # type: ignore[arg-type]
        if inner.order is None or not self._are_ends(ends, inner.order):
            raise NotExperts
        return Rows(Product(inner.what, weight), inner.order)  # type: ignore[arg-type]

    def _are_ends(self, node: Any, order: Node) -> bool:
        """Whether these are the cumulative row counts of the experts."""
        node = _without_casts(node)
        if node.target is not aten.cumsum.default or node.args[1] not in (0, -1):
            return False
        counts = _without_casts(node.args[0])
        if counts.target is not aten.histc.default:
            return False
        given = dict(zip(("bins", "min", "max"), counts.args[1:]), **counts.kwargs)
        if given != {"bins": self.experts, "min": 0, "max": self.experts - 1}:
            return False
        ids = _without_casts(counts.args[0])
        return ids is self.ids or self._sort_of(ids, 0) is order

    def _viewed(self, node: Node) -> Rows:
        rows = self.tokens * self.k
        shape, before = shape_of(node), self._skip_no_ops(node.args[0])
        while before.target in (*VIEWS, *SQUEEZES) and shape_of(before) != shape:  # views that cancel out
            inner = skip_no_ops(before.args[0])
            if shape_of(inner) != shape and inner.target not in (*VIEWS, *SQUEEZES):
                break
            self.covered.add(before)
            before = inner
        if shape_of(before) == shape:
            return self.read(before)
        if before.target is aten.bmm.default and len(shape) == 2:
            return self._batched(before)
        if shape in ((rows,), (rows, 1)):
            before_shape = shape_of(before)
            if before_shape == (self.tokens, self.k) and is_float(before):
                return Rows(Factors(before), None)
            if before_shape in ((rows,), (rows, 1)):
                return self.read(before)
        if len(shape) == 2 and shape[0] == rows and before.target is aten.expand.default:
            token = skip_no_ops(before.args[0])
            is_repeated = shape_of(before) == (self.tokens, self.k, shape[1])
            if is_repeated and shape_of(token) == (self.tokens, 1, shape[1]) and token.target is aten.unsqueeze.default:
                return Rows(Tokens(skip_no_ops(token.args[0])), None)
        raise NotExperts

    def _batched(self, node: Node) -> Rows:
        """Each row times the weight looked up for it."""
        self.covered.add(node)
        left, right = (self._skip_no_ops(each) for each in node.args)
        rows = self.tokens * self.k
        if shape_of(left)[0] != rows:
            raise NotExperts
        row_first = shape_of(left)[1] == 1 and self._is_lookup(right)
        row, weight = (left, right) if row_first else (right, left)
        if not row_first and (shape_of(right)[2] != 1 or not self._is_lookup(left)):
            raise NotExperts
        is_transposed = transposition(weight) == (0, 2, 1)
        looked_up = self._skip_no_ops(weight.args[0]) if is_transposed else weight
        self.covered.update((weight, looked_up, row))
        table: Any = looked_up.args[0]
        order = self._by_expert(skip_no_ops(looked_up.args[1][0]), table)
        if row.target not in (*VIEWS, aten.unsqueeze.default) or len(shape_of(row.args[0])) != 2:
            raise NotExperts
        inner = self.read(row.args[0])
        if inner.order is not order:
            raise NotExperts
        wants_in_out = row_first != is_transposed
        return Rows(Product(inner.what, table) if wants_in_out else Product(inner.what, Transposed(table)), order)  # type: ignore[arg-type]

    def _is_lookup(self, node: Node) -> bool:
        if transposition(node) == (0, 2, 1):
            node = skip_no_ops(node.args[0])
        return node.target is aten.index.Tensor and len(node.args[1]) == 1 and self.is_static(node.args[0])  # type: ignore[arg-type]

    def _some_columns(self, node: Node) -> Rows:
        if node.target is aten.slice.Tensor:
            given: list[Any] = [*node.args, None, None, None, None]
            x, dim, start, stop, step = given[:5]
            if dim not in (1, -1):
                raise NotExperts
            wide = shape_of(x)[1]  # type: ignore[arg-type]
            start, stop, step = slice(start, stop, step).indices(wide)
        else:
            split: Any = node.args[0]
            if split.target not in (aten.split.Tensor, aten.split_with_sizes.default) or split.args[2:] not in (
                (1,),
                (-1,),
            ):
                raise NotExperts
            self.covered.add(split)
            number: Any = node.args[1]
            x = split.args[0]
            start = sum(each.shape[-1] for each in split.meta["val"][:number])
            stop, step = start + shape_of(node)[1], 1
        inner = self.read(x)
        columns = (start, stop, step)
        if isinstance(inner.what, Product) and inner.what.columns is None:
            return Rows(replace(inner.what, columns=columns), inner.order)
        return Rows(Columns(inner.what, columns), inner.order)

    def _pointwise(self, node: Node) -> Rows:
        read = [self.read(each) if isinstance(each, Node) and number_of(each) is None else each for each in node.args]
        rows = [each for each in read if isinstance(each, Rows)]
        if not rows or any(each.order is not rows[0].order for each in rows):
            raise NotExperts
        order, parts = rows[0].order, [each.what for each in rows]
        factors = [each for each in parts if isinstance(each, Factors)]
        if factors and len(parts) == 2 and node.target in MUL and len(factors) == 1:
            other = next(each for each in parts if each is not factors[0])
            return Rows(Weighted(other, factors[0].node), order)
        if node.target in CASTS and len(parts) == 1:
            return Rows(parts[0], order)  # the result is cast at the end
        if factors or any(isinstance(each, Weighted | Tokens) for each in parts):
            raise NotExperts
        first = parts[0]
        is_sum = node.target is aten.add.Tensor and not node.kwargs and len(parts) == 2
        if (
            is_sum
            and isinstance(first, Product)
            and first.bias is first.columns is None
            and isinstance(parts[1], Table)
        ):
            return Rows(replace(first, bias=parts[1].node), order)
        return Rows(Pointwise(node, tuple([each.what if isinstance(each, Rows) else each for each in read])), order)


@dataclass(frozen=True)
class Transposed:
    """Expert weights stored as [experts, out, in]."""

    node: Node


_ARANGES = (aten.arange.start_step, aten.arange.start, aten.arange.default)


def _is_arange(node: Node, count: int) -> bool:
    """Whether an arange call yields 0, 1, ..., count - 1."""
    given = list(node.args)
    start, stop, step = (0, *given, 1)[:3] if len(given) == 1 else (*given, 1)[:3]
    return (start, stop, step) == (0, count, 1)


def _without_casts(node: Any) -> Node:
    node = skip_no_ops(node)
    while isinstance(node, Node) and node.target in CASTS:
        node = skip_no_ops(node.args[0])
    if not isinstance(node, Node):
        raise NotExperts
    return node
