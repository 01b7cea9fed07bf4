"""Negative log-likelihood loss, and its gradient; other losses are decomposed."""

from __future__ import annotations

from typing import Any

import torch

from torch_ttnn.compiler.errors import refuse
from torch_ttnn.compiler.ir.builder import ProgramBuilder
from torch_ttnn.compiler.ir.value import Handle, Value
from torch_ttnn.compiler.lowering.registry import lowers
from ttnn_emulator import DataType

aten = torch.ops.aten

FLOAT32 = DataType.FLOAT32
NONE, MEAN, SUM = range(3)


class _Targets:
    """The target classes as a one-hot tensor of the scores' shape; all zero at ignored positions."""

    def __init__(
        self, ttnn: Any, builder: ProgramBuilder, scores: Value, target: Value, weight: Value | None, ignored: int
    ) -> None:
        self.ttnn, self.builder = ttnn, builder
        self.axis = 1 if scores.ndim > 1 else 0
        broadcast = [1] * scores.ndim
        broadcast[self.axis] = scores.shape[self.axis]
        numbers = torch.arange(scores.shape[self.axis], dtype=torch.int32)
        if 0 <= ignored < len(numbers):
            numbers[ignored] = -1
        expanded = target.view((*target.shape[: self.axis], 1, *target.shape[self.axis :]))
        classes = builder.static(numbers.reshape(broadcast))
        chosen = builder.cast(ttnn.eq(expanded.tile(), classes.tile()), FLOAT32)
        self.weighted: Handle = (
            chosen if weight is None else ttnn.multiply(chosen, weight.view(broadcast).tile(FLOAT32))
        )
        self.chosen = chosen

    def over_classes(self, handle: Handle) -> Handle:
        return self.ttnn.sum(handle, dim=self.axis, keepdim=False, compute_kernel_config=self.builder.accurate)

    def total_weight(self) -> Handle:
        return self.ttnn.sum(self.weighted, compute_kernel_config=self.builder.accurate)


@lowers(aten.nll_loss_forward.default, aten.nll_loss2d_forward.default)
def nll_loss(
    ttnn: Any,
    builder: ProgramBuilder,
    scores: Value,
    target: Value,
    weight: Value | None,
    reduction: int,
    ignore_index: int,
) -> tuple[Any, Any]:
    if scores.shape[1 if scores.ndim > 1 else 0] == 1:
        refuse("a loss over a single class")
    targets = _Targets(ttnn, builder, scores, target, weight, ignore_index)
    # Scores of other classes may be -inf, so they are masked with `where`, not multiplied by 0.
    own = ttnn.where(targets.chosen, scores.tile(FLOAT32), 0.0)
    loss = ttnn.neg(own if weight is None else ttnn.multiply(own, targets.weighted))
    dtype = builder.device_dtype(scores.dtype)
    if reduction == NONE:
        zero = builder.static(torch.zeros((), dtype=scores.dtype)) if 1 in builder.used else None
        return builder.cast(targets.over_classes(loss), dtype), zero
    total = targets.total_weight()
    loss = ttnn.sum(loss, compute_kernel_config=builder.accurate)
    if reduction == MEAN:
        loss = ttnn.divide(loss, total)
    return builder.cast(loss, dtype), total


@lowers(aten.nll_loss_backward.default, aten.nll_loss2d_backward.default)
def nll_loss_backward(
    ttnn: Any,
    builder: ProgramBuilder,
    grad: Value,
    scores: Value,
    target: Value,
    weight: Value | None,
    reduction: int,
    ignore_index: int,
    total_weight: Value,
) -> Handle:
    targets = _Targets(ttnn, builder, scores, target, weight, ignore_index)
    upstream = grad.tile(FLOAT32)
    if reduction == MEAN:
        upstream = ttnn.divide(upstream, total_weight.tile(FLOAT32))
    elif reduction == NONE:
        axis = targets.axis
        upstream = builder.reshaped(upstream, (*grad.shape[:axis], 1, *grad.shape[axis:]))
    return builder.cast(ttnn.neg(ttnn.multiply(targets.weighted, upstream)), builder.device_dtype(scores.dtype))
