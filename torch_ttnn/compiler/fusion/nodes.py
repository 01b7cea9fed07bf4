"""Queries about nodes of a captured graph: equivalent overloads, shapes and dtypes, no-ops, known numbers."""

from __future__ import annotations

import operator
from typing import Any

import torch
import torch.fx
from torch.utils._python_dispatch import _disable_current_modes

aten = torch.ops.aten
Node = torch.fx.Node

ADD = (aten.add.Tensor, aten.add.Scalar)
SUB = (aten.sub.Tensor, aten.sub.Scalar)
MUL = (aten.mul.Tensor, aten.mul.Scalar)
DIV = (aten.div.Tensor, aten.div.Scalar)
VIEWS = (aten.view.default, aten._unsafe_view.default, aten.reshape.default)
SQUEEZES = (aten.unsqueeze.default, aten.squeeze.dim, aten.squeeze.dims)
TRANSPOSES = (aten.transpose.int, aten.permute.default, aten.t.default)
CASTS = (aten._to_copy.default,)
SOFTMAXES = (aten._softmax.default, aten._safe_softmax.default)

_COPIES = frozenset({aten.clone.default, aten.alias.default, aten.detach.default, aten.lift_fresh_copy.default})
_NO_OPS_IF_SAME_TYPE = frozenset({*VIEWS, *CASTS, aten.expand.default})
_SCALARS = {aten.full.default: 1, aten.scalar_tensor.default: 0}
_ZEROS_ONES = {aten.zeros.default: 0.0, aten.ones.default: 1.0}


def shape_of(node: Node) -> tuple[int, ...]:
    return tuple(node.meta["val"].shape)


def dtype_of(node: Node) -> torch.dtype:
    return node.meta["val"].dtype


def is_tensor(item: Any) -> bool:
    return isinstance(item, Node) and isinstance(item.meta.get("val"), torch.Tensor)


def is_float(node: Node) -> bool:
    return is_tensor(node) and dtype_of(node).is_floating_point


def source_of(node: Node) -> Any:
    """The first argument of a call."""
    return node.args[0] if node.args else None


def is_no_op(node: Node) -> bool:
    """Whether a call returns its input, with the same shape and dtype."""
    if node.target in _COPIES:
        return True
    if node.target not in _NO_OPS_IF_SAME_TYPE:
        return False
    before = source_of(node).meta["val"]
    after = node.meta["val"]
    return before.shape == after.shape and before.dtype == after.dtype


def skip_no_ops(item: Any) -> Any:
    """The value before any no-op calls."""
    while isinstance(item, Node) and item.op == "call_function" and is_no_op(item):
        item = item.args[0]
    return item


def transposition(node: Node) -> tuple[int, ...] | None:
    """The permutation that a transposing call applies, or None for any other call."""
    if node.target not in TRANSPOSES:
        return None
    rank = len(shape_of(node))
    order = list(range(rank))
    if node.target is aten.permute.default:
        dims: Any = node.args[1]
        return tuple([dim % rank for dim in dims])
    if node.target is aten.t.default:
        return tuple(reversed(order))
    one: Any = node.args[1]
    other: Any = node.args[2]
    order[one], order[other] = order[other], order[one]
    return tuple(order)


def number_of(item: Any) -> float | None:
    """A Python number, or the known value of a 0-d tensor."""
    if isinstance(item, bool):
        return None
    if isinstance(item, int | float):
        return item
    node = skip_no_ops(item)
    if not is_tensor(node) or node.meta["val"].dim() != 0:
        return None
    if node.op == "get_attr":
        held = operator.attrgetter(node.target)(node.graph.owning_module)
        with _disable_current_modes():  # fake tensors of the tracer do not mix with real ones
            return held.item()
    if node.target in _ZEROS_ONES:
        return _ZEROS_ONES[node.target]
    if node.target in _SCALARS:
        given = node.args[_SCALARS[node.target]]
        return given if isinstance(given, int | float) else None
    return None
