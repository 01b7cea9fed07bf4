"""Enums of moreh_softmax under the names of `ttnn.operations.moreh`, where one stands for another by mistake."""

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
