"""Rotary position embedding: rotates pairs by an angle, neighbours or elements half the width apart."""

from __future__ import annotations

import operator
from typing import Any

import torch

from torch_ttnn.compiler.fusion import composites
from torch_ttnn.compiler.fusion.matcher import Anything, Each, Either, Match, Number, Op, Pattern, Tensor
from torch_ttnn.compiler.fusion.nodes import ADD, MUL, VIEWS, Node, is_float, shape_of
from torch_ttnn.compiler.fusion.rewriting import Rewriter
from torch_ttnn.compiler.fusion.rule import Fusion

aten = torch.ops.aten

X, COS, SIN = Tensor("x"), Tensor("cos"), Tensor("sin")


def part(name: str) -> Op:
    """A piece of the last dimension; its arguments are checked after the match."""
    return Op(aten.slice.Tensor, X, rest=name)


def negated(inner: Pattern) -> Op:
    return Op(aten.neg.default, inner)


HALVES = Either(
    Op(aten.cat.default, Each(negated(part("second")), part("first")), Anything("dim")),
    Op(
        aten.cat.default,
        Each(
            negated(Op(operator.getitem, Op(aten.split.Tensor, X, Number("half"), Anything("split_dim")), 1)),
            Op(operator.getitem, Op(aten.split.Tensor, X, Number("half"), Anything("split_dim")), 0),
        ),
        Anything("dim"),
    ),
)


def _unsqueezed(inner: Pattern) -> Op:
    return Op(aten.unsqueeze.default, inner, Anything("unsqueeze_dim"))


NEIGHBOURS = Op(
    VIEWS,
    Either(
        Op(aten.stack.default, Each(negated(part("second")), part("first")), Anything("dim")),
        Op(aten.cat.default, Each(_unsqueezed(negated(part("second"))), _unsqueezed(part("first"))), Anything("dim")),
    ),
    Anything("shape"),
)


def rotated_by(rotated: Pattern) -> Op:
    return Op(ADD, Op(MUL, X, COS, commutative=True), Op(MUL, rotated, SIN, commutative=True), commutative=True)


def slice_of(args: Any, shape: tuple[int, ...]) -> tuple[int, int, int] | None:
    """Start, end and step of a slice of the last dimension, from the arguments after the tensor."""
    given = list(args)
    dim, start, end, step = given + [0, None, None, 1][len(given) :]
    return slice(start, end, step).indices(shape[-1]) if _is_last(dim, len(shape)) else None


def _is_last(dim: Any, rank: int) -> bool:
    return isinstance(dim, int) and dim % rank == rank - 1


def _fits(match: Match) -> bool:
    """cos and sin broadcast against x, and have its width."""
    shape = shape_of(match["x"])
    for name in ("cos", "sin"):
        given = shape_of(match[name])
        if not given or given[-1] != shape[-1] or len(given) > len(shape):
            return False
        if any(size not in (1, whole) for size, whole in zip(reversed(given), reversed(shape))):
            return False
    return is_float(match["x"]) and shape[-1] % 2 == 0 and match["x"].meta["val"].dtype is match.root.meta["val"].dtype


def _are_halves(rewriter: Rewriter, match: Match) -> bool:
    shape = shape_of(match["x"])
    size = shape[-1]
    if not _fits(match) or not _is_last(match["dim"], len(shape)):
        return False
    if "half" in match.bound:
        return match["half"] * 2 == size and _is_last(match["split_dim"], len(shape))
    first, second = slice_of(match["first"], shape), slice_of(match["second"], shape)
    return first == (0, size // 2, 1) and second == (size // 2, size, 1)


def _are_neighbours(rewriter: Rewriter, match: Match) -> bool:
    shape = shape_of(match["x"])
    size = shape[-1]
    if not _fits(match) or not _is_last(match["dim"], len(shape) + 1):
        return False
    if "unsqueeze_dim" in match.bound and not _is_last(match["unsqueeze_dim"], len(shape) + 1):
        return False
    first, second = slice_of(match["first"], shape), slice_of(match["second"], shape)
    return first == (0, size, 2) and second == (1, size, 2)


def _halves(rewriter: Rewriter, match: Match) -> Node:
    return _rotary(rewriter, match, False)


def _neighbours(rewriter: Rewriter, match: Match) -> Node:
    return _rotary(rewriter, match, True)


def _rotary(rewriter: Rewriter, match: Match, interleaved: bool) -> Node:
    x = match["x"]
    arguments = (x, match["cos"], match["sin"], interleaved, shape_of(x)[-1])
    return rewriter.call(composites.rotary_embedding, *arguments, val=match.root)


FUSIONS = (
    Fusion("rotary embedding", rotated_by(HALVES), _halves, when=_are_halves),
    Fusion("rotary embedding (interleaved)", rotated_by(NEIGHBOURS), _neighbours, when=_are_neighbours),
)


# -- a part of each head ----------------------------------------------------------------------------------------------

ROTATED_PART = Op(
    aten.cat.default,
    Each(
        Op(composites.rotary_embedding, part("first"), COS, SIN, Anything("interleaved"), Number("width")),
        part("second"),
    ),
    Anything("dim"),
)


def _is_front(rewriter: Rewriter, match: Match) -> bool:
    shape = shape_of(match["x"])
    size, width = shape[-1], match["width"]
    pieces = slice_of(match["first"], shape), slice_of(match["second"], shape)
    return _is_last(match["dim"], len(shape)) and pieces == ((0, width, 1), (width, size, 1))


def _front(rewriter: Rewriter, match: Match) -> Node:
    arguments = [match[name] for name in ("x", "cos", "sin", "interleaved", "width")]
    return rewriter.call(composites.rotary_embedding, *arguments, val=match.root)


PARTIAL = (Fusion("rotary embedding (part of a head)", ROTATED_PART, _front, when=_is_front),)
