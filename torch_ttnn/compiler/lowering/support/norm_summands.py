"""Sums that only a norm reads. The norm adds the summands itself, in float32, so their producers need not round them.

In a post-norm transformer the residual stream consists of such sums, and would be rounded twice per layer.
"""

from __future__ import annotations

import torch
import torch.fx

from torch_ttnn.compiler.ir.metadata import PATH, SPEC
from torch_ttnn.compiler.ir.value import Handle
from ttnn_emulator import DataType

aten = torch.ops.aten
SAME = (aten.view.default, aten._unsafe_view.default, aten.reshape.default, aten.clone.default)  # value-preserving
NORMS = (aten.native_layer_norm.default, aten._fused_rms_norm.default)


def is_read_by_norm_only(node: torch.fx.Node) -> bool:
    """Whether a node is a summand of a sum that only a norm reads."""
    node = _end_of_views(node)
    user = _only_user(node)
    if user is None or not _is_sum(user):
        return False
    total = _end_of_views(user)
    norm = _only_user(total)
    return norm is not None and norm.target in NORMS and norm.args[0] is total


def summands(node: torch.fx.Node, tiles: Handle) -> tuple[Handle, Handle] | None:
    """The two summands of the norm's input, if it is such a sum, with equal element counts.

    node   the first argument of the norm, in the captured graph
    tiles  its lowered value
    """
    while node.target in SAME and len(node.users) == 1:
        node = node.args[0]  # type: ignore[assignment]
    if not _is_sum(node) or len(node.users) != 1:
        return None
    result = tiles.node
    while PATH.get(result) == "ttnn.reshape":
        result = result.args[0]  # type: ignore[assignment]
    if PATH.get(result) != "ttnn.add":
        return None
    parts = [Handle(each, SPEC[each]) for each in result.args if isinstance(each, torch.fx.Node)]
    whole = SPEC[result].spec
    if len(parts) != 2 or any(each.shape != whole.shape or each.dtype not in FLOATS for each in parts):
        return None
    # The first summand determines the dtype of the result.
    one, other = sorted(map(_unrounded, parts), key=lambda each: each.dtype is not DataType.FLOAT32)
    return one, other


FLOATS = (DataType.BFLOAT16, DataType.FLOAT32)


def _unrounded(part: Handle) -> Handle:
    """The operand before it was cast to bfloat16 for the addition."""
    node = part.node
    while PATH.get(node) == "ttnn.reshape":
        node = node.args[0]  # type: ignore[assignment]
    if PATH.get(node) != "ttnn.typecast" or SPEC[node].spec.dtype is not DataType.BFLOAT16:
        return part
    source = node.args[0]
    assert isinstance(source, torch.fx.Node)
    wide = Handle(source, SPEC[source])
    return wide if wide.dtype is DataType.FLOAT32 else part


def _is_sum(node: torch.fx.Node) -> bool:
    return node.target is aten.add.Tensor and not node.kwargs


def _only_user(node: torch.fx.Node) -> torch.fx.Node | None:
    return next(iter(node.users)) if len(node.users) == 1 else None


def _end_of_views(node: torch.fx.Node) -> torch.fx.Node:
    """The end of a chain of views and copies in which each node has one user."""
    user = _only_user(node)
    while user is not None and user.target in SAME:
        node, user = user, _only_user(user)
    return node
