"""Splits the heads of queries, keys and values of one tensor in one operation."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Any

import torch

from torch_ttnn.compiler.fusion import composites
from torch_ttnn.compiler.fusion.matcher import Match
from torch_ttnn.compiler.fusion.nodes import VIEWS, Node, dtype_of, shape_of, source_of, transposition
from torch_ttnn.compiler.fusion.projections import PATTERN, projected_from
from torch_ttnn.compiler.fusion.rewriting import Rewriter
from torch_ttnn.compiler.fusion.rule import Fusion
from ttnn_emulator import TILE_SIZE

aten = torch.ops.aten


@dataclass(frozen=True)
class Split:
    """A value [B, heads, S, D] that is one of three pieces of a value with all heads in its last dimension."""

    node: Node
    whole: Node
    index: Any
    through: tuple[Node, ...]  # the nodes between `whole` and `node`


def split_of(node: Node | None) -> Split | None:
    while node is not None:
        found = _by_pieces(node) or _by_axis(node)
        if found is not None:
            return found
        node = projected_from(node)
    return None


def merged_heads(node: Node) -> tuple[Node, tuple[Node, ...]] | None:
    """The value with heads merged into its columns that `node` views as [B, heads, S, D], and the nodes in between."""
    if transposition(node) != (0, 2, 1, 3):
        return None
    through = [node]
    here = source_of(node)
    batch, length, heads, width = shape_of(here)
    while here.target in VIEWS or here.target is aten.clone.default:
        through.append(here)
        here = source_of(here)
    columns = heads * width
    if shape_of(here) not in ((batch, length, columns), (batch * length, columns)):
        return None
    return here, tuple(through)


def _by_pieces(node: Node) -> Split | None:
    """split → view [B, S, heads, D] → [B, heads, S, D]."""
    found = merged_heads(node)
    if found is None or found[0].target is not operator.getitem:
        return None
    here, through = found
    pieces = source_of(here)
    if pieces.target not in (aten.split.Tensor, aten.split_with_sizes.default) or len(pieces.meta["val"]) != 3:
        return None
    whole = source_of(pieces)
    rank = len(shape_of(whole))
    dim = pieces.args[2] if len(pieces.args) > 2 else 0
    return Split(node, whole, here.args[1], (*through, here, pieces)) if dim % rank == rank - 1 else None


def _by_axis(node: Node) -> Split | None:
    """view [B, S, 3, heads, D] → [3, B, heads, S, D] → one of the three."""
    before = source_of(node)
    through: tuple[Node, ...]
    if node.target is aten.select.int and node.args[1] == 0:
        index, transposed, through = node.args[2], before, (node, before)
    elif node.target is operator.getitem and before.target is aten.unbind.int and before.args[1:] in ((), (0,)):
        index, transposed = node.args[1], source_of(before)
        through = (node, before, transposed)
    else:
        return None
    if not isinstance(transposed, Node) or transposition(transposed) != (2, 0, 3, 1, 4):
        return None
    seen = source_of(transposed)
    if seen.target not in VIEWS or shape_of(seen)[2] != 3:
        return None
    batch, length, _, heads, width = shape_of(seen)
    whole, columns = source_of(seen), 3 * heads * width
    if shape_of(whole) not in ((batch, length, columns), (batch * length, columns)):
        return None
    return Split(node, whole, index, (*through, seen))


def splits(match: Match) -> list[Split] | None:
    """The three pieces, if they come from one value, in order, and have no other users."""
    found = [split_of(match[name]) for name in ("q", "k", "v")]
    known = [each for each in found if each is not None]
    if len(known) != 3 or [each.index for each in known] != [0, 1, 2] or len({each.whole for each in known}) != 1:
        return None
    inside = {node for each in known for node in each.through}
    ends = {each.node for each in known}
    if any(user not in inside for node in inside - ends for user in node.users):
        return None
    return known if can_split_together([shape_of(each.node) for each in known]) else None


def can_split_together(shapes: list[tuple[int, ...]]) -> bool:
    """Whether queries, keys and values [B, heads, S, D] of these shapes can be split from one value."""
    same = len({(batch, length, width) for batch, _, length, width in shapes}) == 1
    # The library splits heads whose width is a multiple of the tile size.
    return same and shapes[1] == shapes[2] and shapes[0][3] % TILE_SIZE == 0


def _split(rewriter: Rewriter, match: Match) -> Node | None:
    found = splits(match)
    if found is None:
        return None
    rewriter.anchor = min([each.node for each in found])
    q, k, _ = [each.node for each in found]
    batch, heads, length, width = shape_of(q)
    kv_heads = shape_of(k)[1]
    whole = rewriter.view(found[0].whole, (batch, length, (heads + 2 * kv_heads) * width))
    qkv = rewriter.call(
        composites.qkv_heads, whole, heads, kv_heads, val=[(shape_of(each.node), dtype_of(q)) for each in found]
    )
    items = [rewriter.item(qkv, each.index) for each in found]
    for each, item in zip(found, items):
        rewriter.replace(each.node, item)
    return match.root


FUSIONS = (Fusion("heads of queries, keys and values", PATTERN, _split),)
