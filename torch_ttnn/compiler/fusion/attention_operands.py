"""Traces the operands of attention products back to queries, keys and values, [batch, heads, length, width]."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from torch_ttnn.compiler.fusion.nodes import (
    DIV,
    MUL,
    VIEWS,
    Node,
    dtype_of,
    is_no_op,
    number_of,
    shape_of,
    skip_no_ops,
    source_of,
    transposition,
)
from torch_ttnn.compiler.fusion.rewriting import Rewriter

aten = torch.ops.aten

LEADING = frozenset({*VIEWS, aten.expand.default, aten.unsqueeze.default, aten.squeeze.dim, aten.squeeze.dims})


@dataclass(frozen=True)
class Operand:
    """[batch, heads, length, width], or one head shared by all; and the scalar factor removed from it."""

    node: Node
    factor: float = 1.0


def resolve(rewriter: Rewriter, start: Node, shape: tuple[int, int, int, int], transposed: bool) -> Operand:
    """Find the value of this shape from which an operand of the product was computed.

    Skips calls that only regroup the leading dimensions, swap the last two, multiply by a number, or broadcast one head
    to all. `transposed`: the operand has its last two dimensions swapped.
    """
    found: Operand | None = None
    node, factor, is_transposed = start, 1.0, False
    while True:
        if is_transposed == transposed and shape_of(node) == shape:
            found = Operand(node, factor)
        before = source_of(node) if node.op == "call_function" else None
        if not isinstance(before, Node):
            break
        if _swaps_last_two(node):
            is_transposed = not is_transposed
        elif _is_broadcast_to_all_heads(node, before):
            shape = (shape[0], 1, shape[2], shape[3])
        elif _scales(node, before):
            number = float(number_of(node.args[1]))  # type: ignore[arg-type]
            factor *= number if node.target in MUL else 1 / number
        elif not is_no_op(node) and not _regroups_leading(node, before):
            break
        node = before
    if found is not None:
        return found
    operand = start
    if transposed:
        *leading, one, other = shape_of(start)
        val = (*leading, other, one), dtype_of(start)
        operand = rewriter.call(aten.transpose.int, start, len(leading), len(leading) + 1, val=val)
    return Operand(rewriter.view(operand, shape))


def _regroups_leading(node: Node, before: Node) -> bool:
    return node.target in LEADING and shape_of(before)[-2:] == shape_of(node)[-2:] and _numel(before) == _numel(node)


def _scales(node: Node, before: Node) -> bool:
    if node.target not in MUL and node.target not in DIV:
        return False
    return number_of(node.args[1]) not in (None, 0) and shape_of(before) == shape_of(node)


def _is_broadcast_to_all_heads(node: Node, before: Node) -> bool:
    if node.target is not aten.expand.default or len(shape_of(node)) != 4:
        return False
    batch, _, *last = shape_of(node)
    return shape_of(before) == (batch, 1, *last) != shape_of(node)


def _numel(node: Node) -> int:
    return node.meta["val"].numel()


def _swaps_last_two(node: Node) -> bool:
    order = transposition(node)
    if order is None or len(order) < 2:
        return False
    rank = len(order)
    return order == (*range(rank - 2), rank - 1, rank - 2)


def shared_heads(node: Node) -> Node:
    """The heads before they were repeated: [B, kv, 1, S, D] expanded, or one head for all."""
    batch, _, length, width = shape_of(node)
    here = skip_no_ops(node)
    if here.target is aten.expand.default and shape_of(source_of(here)) == (batch, 1, length, width):
        return skip_no_ops(source_of(here))
    wide = skip_no_ops(source_of(here)) if here.target in VIEWS else here
    if wide.target is not aten.expand.default or len(shape_of(wide)) != 5:
        return node
    narrow = skip_no_ops(source_of(wide))
    kv_heads = shape_of(wide)[1]
    if shape_of(narrow) != (batch, kv_heads, 1, length, width) or shape_of(wide)[0] != batch:
        return node
    is_view = narrow.target in (aten.unsqueeze.default, *VIEWS)
    if is_view and shape_of(source_of(narrow)) == (batch, kv_heads, length, width):
        return skip_no_ops(source_of(narrow))
    return node


def shared_pair(k: Node, v: Node) -> tuple[Node, Node]:
    """Keys and values before repetition, if both are repeated the same number of times."""
    few_k, few_v = shared_heads(k), shared_heads(v)
    return (few_k, few_v) if shape_of(few_k)[1] == shape_of(few_v)[1] else (k, v)


def all_heads(rewriter: Rewriter, node: Node, heads: int) -> Node:
    """The inverse: broadcast one head to all."""
    batch, here, *last = shape_of(node)
    if here == heads:
        return node
    wide = (batch, heads, *last)
    return rewriter.call(aten.expand.default, node, list(wide), val=(wide, dtype_of(node)))
