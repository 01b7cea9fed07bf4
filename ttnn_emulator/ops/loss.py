"""mse_loss and l1_loss: a difference with a fused function, then a reduction over everything."""

from __future__ import annotations

from typing import Any

from ttnn_emulator.api.config_types import UnaryWithParam
from ttnn_emulator.enums import ALL_ENUMS
from ttnn_emulator.execution.operation_table import composite, ttnn
from ttnn_emulator.tensors.memory_config import MemoryConfig
from ttnn_emulator.tensors.tensor import Tensor

UnaryOpType = ALL_ENUMS["UnaryOpType"]
LossReductionMode = ALL_ENUMS["LossReductionMode"]


def _loss(
    function: Any,
    reference: Tensor,
    prediction: Tensor,
    reduction: Any,
    memory_config: MemoryConfig | None,
    output_tensor: Tensor | None,
) -> Tensor:
    activation = [UnaryWithParam(function)]
    made = ttnn.subtract(
        reference, prediction, memory_config=memory_config, output_tensor=output_tensor, activations=activation
    )
    memory = memory_config if memory_config is not None else reference.memory_config()
    if reduction is LossReductionMode.SUM:
        return ttnn.sum(made, memory_config=memory)
    if reduction is LossReductionMode.MEAN:
        return ttnn.mean(made, memory_config=memory)
    return made


@composite("ttnn.mse_loss")
def mse_loss(
    input_reference,
    input_prediction,
    *,
    reduction=LossReductionMode.NONE,
    memory_config=None,
    output_tensor=None,
):
    """(reference - prediction)², element by element, or its sum or mean."""
    operands = (input_reference, input_prediction)
    return _loss(UnaryOpType.SQUARE, *operands, reduction, memory_config, output_tensor)


@composite("ttnn.l1_loss")
def l1_loss(
    input_reference,
    input_prediction,
    *,
    reduction=LossReductionMode.NONE,
    memory_config=None,
    output_tensor=None,
):
    """|reference - prediction|, element by element, or its sum or mean."""
    operands = (input_reference, input_prediction)
    return _loss(UnaryOpType.ABS, *operands, reduction, memory_config, output_tensor)
