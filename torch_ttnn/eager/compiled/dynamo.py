"""Tells Dynamo that tensors on `ttnn` are tensors: it captures operations on them as on any other device."""

from __future__ import annotations

from typing import Any

import torch._dynamo.config
from torch._dynamo.variables import builder
from torch._dynamo.variables.builder import VariableBuilder

from torch_ttnn.eager.tensor import TtnnTensor

_of_others = builder.infer_subclass_type


def register() -> None:
    """Dynamo takes wrapper subclasses for tensors only if they consist of others, so it has to be told of ours."""
    torch._dynamo.config.traceable_tensor_subclasses.add(TtnnTensor)
    VariableBuilder._type_dispatch()[TtnnTensor] = VariableBuilder.wrap_tensor
    builder.infer_subclass_type = _subclass_type


def _subclass_type(value: Any) -> Any:
    """The class that Dynamo simulates around a fake tensor: none for ours, whose fake tensor says all there is."""
    return None if type(value) is TtnnTensor else _of_others(value)
