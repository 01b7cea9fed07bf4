"""Tells Dynamo that tensors on `ttnn` are tensors of a device: it captures operations on them as on a GPU."""

from __future__ import annotations

from typing import Any

import torch._dynamo.config
from torch._dynamo.variables import builder
from torch._dynamo.variables.builder import VariableBuilder
from torch._dynamo.variables.optimizer import OptimizerVariable

from torch_ttnn.eager.tensor import TtnnTensor


_of_others = builder.infer_subclass_type
_set_capturable = OptimizerVariable._set_capturable


def register() -> None:
    """Dynamo takes wrapper subclasses for tensors only if they consist of others, so it has to be told of ours."""
    torch._dynamo.config.traceable_tensor_subclasses.add(TtnnTensor)
    VariableBuilder._type_dispatch()[TtnnTensor] = VariableBuilder.wrap_tensor
    builder.infer_subclass_type = _subclass_type
    OptimizerVariable._set_capturable = _with_steps_on_device


def _subclass_type(value: Any) -> Any:
    """The class that Dynamo simulates around a fake tensor: none for ours, whose fake tensor says all there is."""
    return None if type(value) is TtnnTensor else _of_others(value)


def _with_steps_on_device(optimizer: OptimizerVariable, translator: Any) -> None:
    """Let an optimizer create its step counts beside parameters on `ttnn`, as Dynamo does it for CUDA.

    On the CPU, every count would be uploaded and downloaded by every compiled step.
    """
    for group in optimizer.value.param_groups:
        parameters = group["params"]
        is_new = all(each not in optimizer.value.state for each in parameters)
        if "capturable" in group and is_new and all(each.device.type == "ttnn" for each in parameters):
            group["capturable"] = True
    _set_capturable(optimizer, translator)
