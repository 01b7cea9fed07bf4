"""Enums of moreh_softmax as `ttnn.operations.moreh` names them; the library mixes up two of the names."""

from __future__ import annotations

from ttnn_emulator.enums import (
    MorehSoftmaxBackwardOp,
    MorehSoftmaxBackwardOpParallelizationStrategy,
    MorehSoftmaxOp,
    MorehSoftmaxOpParallelizationStrategy,
)

__all__ = [
    "MorehSoftmaxBackwardOp",
    "MorehSoftmaxBackwardOpParallelizationStrategy",
    "MorehSoftmaxOp",
    "MorehSoftmaxOpParallelizationStrategy",
    "SoftmaxBackwardOp",
    "SoftmaxBackwardOpParallelizationStrategy",
    "SoftmaxOp",
    "SoftmaxOpParallelizationStrategy",
]

SoftmaxOp = SoftmaxOpParallelizationStrategy = MorehSoftmaxOpParallelizationStrategy
SoftmaxBackwardOp = MorehSoftmaxBackwardOp
SoftmaxBackwardOpParallelizationStrategy = MorehSoftmaxBackwardOpParallelizationStrategy
