"""Steps of optimizers, as Dynamo writes them out."""

from __future__ import annotations

import torch

from torch_ttnn.compiler.fusion.matcher import Match, Number, Op, Tensor
from torch_ttnn.compiler.fusion.nodes import Node, is_float, shape_of
from torch_ttnn.compiler.fusion.rewriting import Rewriter
from torch_ttnn.compiler.fusion.rule import Fusion

aten = torch.ops.aten

# `_foreach_lerp_` with a number: the number as a tensor of the parameter's size, which would be kept on the device.
WEIGHT = Op(aten.full_like.default, Tensor("like"), Number("weight"), optional=("pin_memory",))


def _interpolates(rewriter: Rewriter, match: Match) -> bool:
    return is_float(match["way"]) and shape_of(match["like"]) == shape_of(match["way"])


def _weighted_sum(rewriter: Rewriter, match: Match) -> Node:
    return rewriter.call(aten.add.Tensor, match["start"], match["way"], alpha=match["weight"], val=match.root)


FUSIONS = (
    Fusion(
        "interpolation",
        Op(aten.addcmul.default, Tensor("start"), WEIGHT, Tensor("way")),
        _weighted_sum,
        when=_interpolates,
    ),
)
