"""Tells Dynamo that tensors on `ttnn` are tensors: it captures operations on them as on any other device."""

from __future__ import annotations

import torch._dynamo.config
from torch._dynamo.variables.builder import VariableBuilder

from torch_ttnn.eager.tensor import TtnnTensor


def register() -> None:
    """Dynamo takes wrapper subclasses for tensors only if they consist of others, so it has to be told of ours."""
    torch._dynamo.config.traceable_tensor_subclasses.add(TtnnTensor)
    VariableBuilder._type_dispatch()[TtnnTensor] = VariableBuilder.wrap_tensor


def is_registered() -> bool:
    return TtnnTensor in VariableBuilder._type_dispatch()
