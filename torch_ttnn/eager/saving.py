"""Pickling and deep copies of tensors on `ttnn`: values are saved from the host and return to the same device."""

from __future__ import annotations

import copy
from collections import OrderedDict
from typing import Any

import torch

from torch_ttnn.eager.tensor import TtnnTensor


def reduced(tensor: TtnnTensor) -> Any:
    """What pickle and torch.save write: torch's own functions, which `torch.load(weights_only=True)` allows."""
    if isinstance(tensor, torch.nn.Parameter):
        arguments: tuple = (tensor.detach(), tensor.requires_grad, OrderedDict())
        return torch._utils._rebuild_parameter, arguments  # type: ignore[attr-defined]
    arguments = (tensor.detach().cpu(), tensor.dtype, str(tensor.device), tensor.requires_grad)
    return torch._utils._rebuild_device_tensor_from_cpu_tensor, arguments  # type: ignore[attr-defined]


def deep_copy(tensor: TtnnTensor, memo: dict[int, Any]) -> TtnnTensor:
    """As torch: the values, `requires_grad`, the gradient and attributes, for tensors that the user created."""
    if id(tensor) in memo:
        return memo[id(tensor)]
    if not tensor.is_leaf:
        raise RuntimeError(
            "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment"
        )
    with torch.no_grad():
        copied: Any = tensor.detach().clone(memory_format=torch.preserve_format)
    if isinstance(tensor, torch.nn.Parameter):
        copied = torch.nn.Parameter(copied, tensor.requires_grad)
    elif tensor.requires_grad:
        copied.requires_grad_()
    memo[id(tensor)] = copied
    if tensor.grad is not None:
        copied.grad = copy.deepcopy(tensor.grad, memo)
    for name, value in tensor.__dict__.items():
        if name not in copied.__dict__:
            setattr(copied, name, copy.deepcopy(value, memo))
    return copied
