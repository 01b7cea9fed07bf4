"""Queries, keys and values as [batch, heads, length, width], found behind what a product of matrices needed of them."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from torch_ttnn.compiler.fusion.nodes import (
    DIV,
    MUL,
    VIEWS,
    Node,
    behind,
    changes_nothing,
    dtype_of,
    number_of,
    shape_of,
    source_of,
    transposition,
)
from torch_ttnn.compiler.fusion.rewriting import Rewriter

aten = torch.ops.aten

LEADING = frozenset({*VIEWS, aten.expand.default, aten.unsqueeze.default, aten.squeeze.dim, aten.squeeze.dims})


@dataclass(frozen=True)
class Operand:
    """[batch, heads, length, width], perhaps one head that all share; and the factor that was taken off it."""

    node: Node
    factor: float = 1.0


def resolve(rewriter: Rewriter, start: Node, shape: tuple[int, int, int, int], turned: bool) -> Operand:
    """The value of this shape that an operand of the product was made of.

    Goes back through calls that only regroup the leading dimensions, turn the last two, multiply by a number, or show
    one head to all. `turned`: the operand has the last two dimensions the other way round.
    """
    found: Operand | None = None
    node, factor, is_turned = start, 1.0, False
    while True:
        if is_turned == turned and shape_of(node) == shape:
            found = Operand(node, factor)
        before = source_of(node) if node.op == "call_function" else None
        if not isinstance(before, Node):
            break
        if _turns_last_two(node):
            is_turned = not is_turned
        elif _is_shown_to_all_heads(node, before):
            shape = (shape[0], 1, shape[2], shape[3])
        elif _scales(node, before):
            number = float(number_of(node.args[1]))  # type: ignore[arg-type]
            factor *= number if node.target in MUL else 1 / number
        elif not changes_nothing(node) and not _regroups_leading(node, before):
            break
        node = before
    if found is not None:
        return found
    made = start
    if turned:
        *leading, one, other = shape_of(start)
        val = (*leading, other, one), dtype_of(start)
        made = rewriter.call(aten.transpose.int, start, len(leading), len(leading) + 1, val=val)
    return Operand(rewriter.view(made, shape))


def _regroups_leading(node: Node, before: Node) -> bool:
    return node.target in LEADING and shape_of(before)[-2:] == shape_of(node)[-2:] and _numel(before) == _numel(node)


def _scales(node: Node, before: Node) -> bool:
    if node.target not in MUL and node.target not in DIV:
        return False
    return number_of(node.args[1]) not in (None, 0) and shape_of(before) == shape_of(node)


def _is_shown_to_all_heads(node: Node, before: Node) -> bool:
    if node.target is not aten.expand.default or len(shape_of(node)) != 4:
        return False
    batch, _, *last = shape_of(node)
    return shape_of(before) == (batch, 1, *last) != shape_of(node)


def _numel(node: Node) -> int:
    return node.meta["val"].numel()


def _turns_last_two(node: Node) -> bool:
    order = transposition(node)
    if order is None or len(order) < 2:
        return False
    rank = len(order)
    return order == (*range(rank - 2), rank - 1, rank - 2)


def shared_heads(node: Node) -> Node:
    """The heads that were repeated to make these: [B, kv, 1, S, D] expanded, or one head for all."""
    batch, _, length, width = shape_of(node)
    here = behind(node)
    if here.target is aten.expand.default and shape_of(source_of(here)) == (batch, 1, length, width):
        return behind(source_of(here))
    wide = behind(source_of(here)) if here.target in VIEWS else here
    if wide.target is not aten.expand.default or len(shape_of(wide)) != 5:
        return node
    narrow = behind(source_of(wide))
    kv_heads = shape_of(wide)[1]
    if shape_of(narrow) != (batch, kv_heads, 1, length, width) or shape_of(wide)[0] != batch:
        return node
    is_view = narrow.target in (aten.unsqueeze.default, *VIEWS)
    if is_view and shape_of(source_of(narrow)) == (batch, kv_heads, length, width):
        return behind(source_of(narrow))
    return node


def shared_pair(k: Node, v: Node) -> tuple[Node, Node]:
    """Keys and values without their repetition, if both are repeated alike."""
    few_k, few_v = shared_heads(k), shared_heads(v)
    return (few_k, few_v) if shape_of(few_k)[1] == shape_of(few_v)[1] else (k, v)


def all_heads(rewriter: Rewriter, node: Node, heads: int) -> Node:
    """The opposite: one head shown to all."""
    batch, here, *last = shape_of(node)
    if here == heads:
        return node
    wide = (batch, heads, *last)
    return rewriter.call(aten.expand.default, node, list(wide), val=(wide, dtype_of(node)))
