"""Rewrites a mixture of experts as dense products: all experts for all tokens, and the choice as factors.

    sum over the chosen experts j of factor[t, j] · f(x[t] · up[e]) · down[e],  with e = ids[t, j]
  = (f(x · [up[0] | up[1] | ...]) · factors of each expert's columns) · [down[0]; down[1]; ...]

The weights of all experts are concatenated, so that a layer is two or three large products. The last one accumulates
the sum over experts. Nothing depends on the number of tokens per expert, so nothing is sorted, gathered or counted, and
shapes are static. The cost is `experts ÷ k` times the necessary work: 4 times for 2 of 8 experts. If the columns of all
experts would take too much memory, the graph is left unchanged.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from torch_ttnn.compiler.fusion.expert_rows import (
    GROUPED,
    Columns,
    NotExperts,
    Pointwise,
    Product,
    RowReader,
    Rows,
    Table,
    Tokens,
    Transposed,
    Weighted,
)
from torch_ttnn.compiler.fusion.matcher import Match, Op, Tensor
from torch_ttnn.compiler.fusion.nodes import VIEWS, Node, dtype_of, shape_of, skip_no_ops
from torch_ttnn.compiler.fusion.rewriting import Rewriter
from torch_ttnn.compiler.fusion.rule import Fusion

aten = torch.ops.aten

MOST_ELEMENTS = 1 << 29  # limit for a tensor with the columns of all experts: 1 GiB in bfloat16


def _build(rewriter: Rewriter, match: Match) -> Node | None:
    root = match.root
    slots = match["slots"]
    settings: Any = match["rest"]
    if len(shape_of(slots)) != 3 or list(settings[0] or ()) not in ([1], [-2]) or any(settings[1:]):
        return None
    tokens, k, _ = shape_of(slots)
    reader = RowReader(rewriter, tokens, k)
    try:
        rows = _rows_of(reader, slots)
        product, factors = _weighted(rows)
        _width(product.x)
    except NotExperts:
        return None
    if reader.ids is None or not _is_closed(reader, root) or not _fits(reader, product):
        return None
    return _Writer(rewriter, reader, root).write(product, factors)


def _rows_of(reader: RowReader, slots: Node) -> Rows:
    slots = skip_no_ops(slots)
    if slots.target not in VIEWS:
        raise NotExperts
    reader.covered.add(slots)
    return reader.read(slots.args[0])


def _weighted(rows: Rows) -> tuple[Product, list[Node]]:
    """The last product, which consumes computed rows, and the factors of its results."""
    what, factors = rows.what, []
    while isinstance(what, Weighted):
        factors.append(what.factors)
        what = what.rows
    is_last = isinstance(what, Product) and what.columns is None and not isinstance(what.x, Tokens | Table)
    if rows.order is not None or not is_last:
        raise NotExperts
    return what, factors


def _width(what: Any) -> int:
    """Columns per expert, if the rows can be computed for all experts with their columns concatenated."""
    if isinstance(what, Product) and isinstance(what.x, Tokens):
        return len(range(*what.columns)) if what.columns is not None else _weight_shape(what)[2]
    if isinstance(what, Table) and len(shape_of(what.node)) == 2:
        return shape_of(what.node)[1]
    if isinstance(what, Columns):
        _width(what.rows)
        return len(range(*what.columns))
    if isinstance(what, Pointwise):
        widths = {_width(each) for each in what.args if not isinstance(each, int | float | Node | None)}
        if len(widths) == 1:
            return widths.pop()
    raise NotExperts


def _is_closed(reader: RowReader, root: Node) -> bool:
    """Whether the products and their dependents have no other users, so that they become dead code."""
    stack = [node for node in reader.covered if _is_product(node)]
    seen = set(stack)
    while stack:
        for user in stack.pop().users:
            if user is not root and user not in reader.covered:
                return False
            if user is not root and user not in seen:
                seen.add(user)
                stack.append(user)
    return bool(seen)


def _is_product(node: Node) -> bool:
    target = node.target
    return target is aten.bmm.default or getattr(getattr(target, "_schema", None), "name", "") in GROUPED


def _fits(reader: RowReader, product: Product) -> bool:
    return reader.tokens * reader.experts * _weight_shape(product)[1] <= MOST_ELEMENTS


def _weight_shape(product: Product) -> tuple[int, int, int]:
    """Experts, in, out."""
    if isinstance(product.weight, Transposed):
        experts, wide, narrow = shape_of(product.weight.node)
        return experts, narrow, wide
    return shape_of(product.weight)  # type: ignore[return-value]


class _Writer:
    """Writes rows as tensors of [tokens, experts × columns]."""

    def __init__(self, rewriter: Rewriter, reader: RowReader, root: Node) -> None:
        self.rewriter = rewriter
        self.tokens, self.k, self.experts = reader.tokens, reader.k, reader.experts
        self.ids: Any = reader.ids
        self.root = root
        self._written: dict[Any, Node] = {}

    def write(self, product: Product, factors: Sequence[Node]) -> Node:
        hidden = self._rows(product.x)
        dtype = dtype_of(hidden)
        _, width, out = _weight_shape(product)
        choice = self.rewriter.cast(self._choice(factors), dtype)
        chosen = self.rewriter.elementwise(aten.mul.Tensor, hidden, self._broadcast_over_columns(choice, width))
        down = self._static_view(self._in_out(product), [self.experts * width, out])
        result = self._mm(chosen, self.rewriter.cast(down, dtype))
        if product.bias is not None:
            bias = self._mm(choice, self.rewriter.cast(product.bias, dtype))
            result = self.rewriter.elementwise(aten.add.Tensor, result, bias)
        return self.rewriter.cast(result, dtype_of(self.root))

    # -- the choice ----------------------------------------------------------------------------------------------

    def _choice(self, factors: Sequence[Node]) -> Node:
        """The weight of each expert for a token: [tokens, experts], zero for experts that were not chosen."""
        call, shape = self.rewriter.call, [self.tokens, self.k]
        given = [self.rewriter.view(each, shape) for each in factors]
        dtype = dtype_of(given[0]) if given else dtype_of(self.root)
        if given:
            weights = given[0]
            for each in given[1:]:
                weights = self.rewriter.elementwise(aten.mul.Tensor, weights, each)
        else:
            weights = call(aten.full.default, shape, 1.0, dtype=dtype, val=(shape, dtype))
        choice_shape = [self.tokens, self.experts]
        zeros = call(aten.full.default, choice_shape, 0.0, dtype=dtype, val=(choice_shape, dtype))
        ids = self.rewriter.view(self.ids, shape)
        return call(aten.scatter_add.default, zeros, 1, ids, weights, val=(choice_shape, dtype))

    def _broadcast_over_columns(self, choice: Node, width: int) -> Node:
        """Broadcasts each expert's weight over its columns: an exact product with a block matrix of ones."""
        call, dtype, count = self.rewriter.call, dtype_of(choice), self.experts

        def make() -> Node:
            ones = call(aten.eye.default, count, dtype=dtype, val=((count, count), dtype))
            wide = call(aten.unsqueeze.default, ones, 2, val=((count, count, 1), dtype))
            wide = call(aten.expand.default, wide, [count, count, width], val=((count, count, width), dtype))
            return call(aten.reshape.default, wide, [count, count * width], val=((count, count * width), dtype))

        return self._mm(choice, self.rewriter.once(("ones of experts", count, width, dtype), make))

    # -- rows ----------------------------------------------------------------------------------------------------

    def _rows(self, what: Any) -> Node:
        if what not in self._written:
            self._written[what] = self._write_rows(what)
        return self._written[what]

    def _write_rows(self, what: Any) -> Node:
        if isinstance(what, Product):
            return self._merged_product(what)
        if isinstance(what, Table):
            return self._static_view(what.node, [1, self.experts * shape_of(what.node)[1]])
        if isinstance(what, Columns):
            return self._columns(what)
        if isinstance(what, Pointwise):
            rows = [self._rows(each) if _is_rows(each) else each for each in what.args]
            shape = torch.broadcast_shapes(*[shape_of(each) for each in rows if isinstance(each, Node)])
            return self.rewriter.call(what.node.target, *rows, val=(shape, dtype_of(what.node)), **what.node.kwargs)
        raise NotExperts

    def _merged_product(self, product: Product) -> Node:
        """x times the concatenated weights of all experts."""
        if not isinstance(product.x, Tokens):
            raise NotExperts
        call, weight, bias = self.rewriter.call, self._in_out(product), product.bias
        dtype = dtype_of(weight)
        experts, narrow, wide = shape_of(weight)
        if product.columns is not None:
            wide = len(range(*product.columns))
            weight = call(aten.slice.Tensor, weight, 2, *product.columns, val=((experts, narrow, wide), dtype))
            if bias is not None:
                bias = call(aten.slice.Tensor, bias, 1, *product.columns, val=((experts, wide), dtype_of(bias)))
        weight = call(aten.permute.default, weight, [1, 0, 2], val=((narrow, experts, wide), dtype))
        weight = self._static_view(weight, [narrow, experts * wide])
        x = self.rewriter.cast(product.x.node, dtype)
        if bias is None:
            return self._mm(x, weight)
        bias = self.rewriter.cast(self._static_view(bias, [experts * wide]), dtype)
        return call(aten.addmm.default, bias, x, weight, val=((self.tokens, experts * wide), dtype))

    def _in_out(self, product: Product) -> Node:
        if not isinstance(product.weight, Transposed):
            return product.weight
        node = product.weight.node
        return self.rewriter.call(aten.transpose.int, node, 1, 2, val=(_weight_shape(product), dtype_of(node)))

    def _columns(self, what: Columns) -> Node:
        rows = self._rows(what.rows)
        by_expert = self.rewriter.view(rows, [self.tokens, self.experts, shape_of(rows)[1] // self.experts])
        wide = len(range(*what.columns))
        shape = [self.tokens, self.experts, wide]
        part = self.rewriter.call(aten.slice.Tensor, by_expert, 2, *what.columns, val=(shape, dtype_of(rows)))
        return self.rewriter.view(part, [self.tokens, self.experts * wide])

    def _mm(self, x: Node, weight: Node) -> Node:
        shape = (shape_of(x)[0], shape_of(weight)[1])
        return self.rewriter.call(aten.mm.default, x, weight, val=(shape, dtype_of(x)))

    def _static_view(self, node: Node, shape: list[int]) -> Node:
        return self.rewriter.call(aten.reshape.default, node, shape, val=(shape, dtype_of(node)))


def _is_rows(item: Any) -> bool:
    return isinstance(item, Product | Table | Columns | Pointwise)


FUSIONS = (
    Fusion(
        "mixture of experts",
        Op(aten.sum.dim_IntList, Tensor("slots"), rest="rest", optional=("dtype",)),
        _build,
        lambda rewriter, match: match.get("dtype") is None and bool(match["rest"]),
    ),
)
