"""Splits a product with interleaved queries, keys and values into one product each, with columns in head order.

The weights are static, so their columns are reordered once. Later fusions merge the products again, with the column
order in which the library splits heads.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._python_dispatch import _disable_current_modes

from torch_ttnn.compiler.fusion.heads import can_split_together, merged_heads, splits
from torch_ttnn.compiler.fusion.matcher import Match
from torch_ttnn.compiler.fusion.nodes import (
    SQUEEZES,
    TRANSPOSES,
    VIEWS,
    Node,
    dtype_of,
    is_no_op,
    shape_of,
    skip_no_ops,
    source_of,
)
from torch_ttnn.compiler.fusion.projections import NORMS, PATTERN, PRODUCTS, Projection, projected_from, projection_of
from torch_ttnn.compiler.fusion.rewriting import Rewriter
from torch_ttnn.compiler.fusion.rule import Fusion
from torch_ttnn.compiler.ir.arguments import call_with, frozen

aten = torch.ops.aten

_PIECES = frozenset({
    aten.slice.Tensor, aten.select.int, aten.split.Tensor, aten.split_with_sizes.default, aten.unbind.int,
    aten.index.Tensor, operator.getitem,
})  # fmt: skip
_MOVES = frozenset({*VIEWS, *SQUEEZES, *TRANSPOSES, *_PIECES})


@dataclass(frozen=True)
class Heads:
    """The columns of a product, viewed as heads."""

    is_transposed: bool  # [B, H, S, D], else [B, S, H, D]
    shape: tuple[int, ...]  # always [B, H, S, D]
    columns: tuple[int, ...]  # H × D of them


@dataclass(frozen=True)
class Branch:
    """The path of queries, keys or values from a product to the attention."""

    product: Projection
    inside: tuple[Node, ...]  # from the product up to `end`, exclusive
    end: Node
    heads: Heads  # of `end`
    is_normed: bool  # a norm follows before the attention

    @property
    def is_mixed(self) -> bool:
        """Whether the columns are not one ascending contiguous range."""
        columns = self.heads.columns
        return columns != tuple(range(columns[0], columns[0] + len(columns)))

    @property
    def is_all(self) -> bool:
        return len(self.heads.columns) == shape_of(self.product.node)[1] and not self.is_mixed

    @property
    def is_plain(self) -> bool:
        """Whether it already is a separate product, viewed as the split into heads requires."""
        found = merged_heads(self.end)
        return self.is_all and found is not None and found[0] is self.product.node


# -- tracking columns --------------------------------------------------------------------------------------------------


def _branch(rewriter: Rewriter, operand: Node) -> Branch | None:
    path: list[Node] = []
    node: Node | None = operand
    while node is not None and node.target not in PRODUCTS:
        path.insert(0, node)
        node = projected_from(node) or (source_of(node) if node.target in _PIECES else None)
    product = projection_of(rewriter, node)
    if product is None:
        return None
    run = [product.node]
    for node in path:
        if source_of(node) is not run[-1] or not _moves(node):
            break
        run.append(node)
    calls = [(each.target, frozen((each.args[1:], each.kwargs), _constant_key)) for each in run[1:]]
    found = rewriter.memoised((*shape_of(run[0]), *calls), lambda: _find_heads(run))
    if found is None:
        return None
    position, heads = found
    if any(projected_from(each) is None for each in path[position:]):
        return None  # the products could not be merged again
    is_normed = any(source_of(each).target in NORMS for each in path[position:])
    return Branch(product, tuple(run[:position]), run[position], heads, is_normed)


def _moves(node: Node) -> bool:
    """Whether a call only moves elements, to positions known at compile time."""
    if node.target not in _MOVES:
        return is_no_op(node)
    return all(_constant(each) is not None for each in node.all_input_nodes[1:])


def _constant(node: Node) -> torch.Tensor | None:
    node = skip_no_ops(node)
    if node.op != "get_attr":
        return None
    return operator.attrgetter(str(node.target))(node.graph.owning_module)


def _constant_key(node: Node) -> Any:
    return str(_constant(node).tolist())  # type: ignore[union-attr]


def _find_heads(run: list[Node]) -> tuple[int, Heads] | None:
    """The heads that a product finally becomes, and the index of the first call that yields them.

    Row and column indices are passed through the calls. They are expanded views, and take no memory until a call has
    to copy them.
    """
    rows, width = shape_of(run[0])
    found = None
    with _disable_current_modes():  # fake tensors of the tracer have no values
        row: Any = _indices(rows)[:, None].expand(rows, width)
        column: Any = _indices(width).expand(rows, width)
        for position, node in enumerate(run[1:], 1):
            row, column = _apply_move(node, row), _apply_move(node, column)
            heads = _heads(row, column, rows)
            if heads is not None and (found is None or found[1] != heads):
                found = position, heads
    return found


def _indices(count: int) -> torch.Tensor:
    return torch.arange(count, dtype=torch.int32, device="cpu")


def _apply_move(node: Node, value: Any) -> Any:
    if is_no_op(node):
        return value
    if node.target in VIEWS:
        return value.reshape(shape_of(node))
    return call_with(
        node.target,  # type: ignore[arg-type]
        (value, *node.args[1:]),
        node.kwargs,
        lambda item: _constant(item) if isinstance(item, Node) else item,
    )


def _heads(row: Any, column: Any, rows: int) -> Heads | None:
    """The heads, if every token has the same columns of its own row."""
    if not isinstance(row, torch.Tensor) or row.dim() != 4 or row.numel() == 0:
        return None
    transposed = True, row.transpose(1, 2), column.transpose(1, 2)
    for is_transposed, tokens, columns in (transposed, (False, row, column)):
        batch, length, heads, width = tokens.shape
        if batch * length != rows or not torch.equal(columns, columns[:1, :1].expand_as(columns)):
            continue
        if torch.equal(tokens, _indices(rows).reshape(batch, length, 1, 1).expand_as(tokens)):
            return Heads(is_transposed, (batch, heads, length, width), tuple(columns[0, 0].flatten().tolist()))
    return None


# -- what to separate -------------------------------------------------------------------------------------------------


def _groups(rewriter: Rewriter, match: Match) -> list[list[Branch]]:
    """The branches of each product without other uses."""
    groups: dict[Node, dict[Node, Branch]] = {}
    for name in ("q", "k", "v"):
        found = _branch(rewriter, match[name])
        if found is not None:
            groups.setdefault(found.product.node, {})[found.end] = found
    return [list(group.values()) for group in groups.values() if _is_closed(list(group.values()))]


def _is_closed(group: list[Branch]) -> bool:
    inside = {node for each in group for node in each.inside}
    ends = {each.end for each in group}
    once = sum([len(each.heads.columns) for each in group]) <= shape_of(group[0].product.node)[1]
    return once and all(user in inside or user in ends for node in inside for user in node.users)


def _can_become_heads(branches: list[Branch]) -> bool:
    """Whether separate products, merged again, have the columns that the library splits into heads.

    Not for a norm of [B, S, H, D]: the split would have to be transposed for it, and transposed back.
    """
    if len(branches) != 3 or len({each.product.x for each in branches}) > 1:
        return False
    if any(each.is_normed and not each.heads.is_transposed for each in branches):
        return False
    return can_split_together([each.heads.shape for each in branches])


def _separate(rewriter: Rewriter, match: Match) -> Node | None:
    if splits(match) is not None:
        return None
    groups = _groups(rewriter, match)
    as_heads = _can_become_heads([each for group in groups for each in group])
    wanted = [
        group
        for group in groups
        if any(each.is_mixed for each in group) or (as_heads and not all(each.is_plain for each in group))
    ]
    for group in wanted:
        for each in group:
            _write_branch(rewriter, each, as_heads)
    return match.root if wanted else None


# -- the products -----------------------------------------------------------------------------------------------------


def _write_branch(rewriter: Rewriter, branch: Branch, as_heads: bool) -> None:
    end, is_transposed = branch.end, branch.heads.is_transposed
    batch, heads, length, width = branch.heads.shape
    seen = branch.product.node if branch.is_all else _product(rewriter, branch)
    rewriter.anchor = end
    seen = rewriter.view(seen, (batch, length, heads, width))
    if is_transposed or as_heads:
        seen = rewriter.call(aten.transpose.int, seen, 1, 2, val=(branch.heads.shape, dtype_of(end)))
    if as_heads and not is_transposed:  # `end` is [B, S, H, D]: transpose the split heads back
        seen = rewriter.call(aten.transpose.int, seen, 1, 2, val=end)
    rewriter.replace(end, seen)


def _product(rewriter: Rewriter, branch: Branch) -> Node:
    product, columns = branch.product, branch.heads.columns
    count = len(columns)
    x, dtype = product.node.args[-2], dtype_of(product.node)
    rewriter.anchor = product.node
    index = rewriter.numbers(columns)
    weight = rewriter.call(
        aten.index_select.default, product.weight, 1, index,
        val=((shape_of(product.weight)[0], count), dtype_of(product.weight)),
    )  # fmt: skip
    val = (shape_of(product.node)[0], count), dtype
    if product.bias is None:
        return rewriter.call(aten.mm.default, x, weight, val=val)
    bias = rewriter.call(aten.index_select.default, product.bias, 0, index, val=((count,), dtype_of(product.bias)))
    return rewriter.call(aten.addmm.default, bias, x, weight, val=val)


FUSIONS = (Fusion("columns of queries, keys and values in order", PATTERN, _separate),)
