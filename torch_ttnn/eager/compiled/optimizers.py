"""Compiled steps of optimizers: step counts on the device, and learning rates that change as tensors."""

from __future__ import annotations

from typing import Any

import torch
from torch._dynamo.source import AttrSource
from torch._dynamo.variables import builder
from torch._dynamo.variables.base import VariableTracker
from torch._dynamo.variables.constant import ConstantVariable
from torch._dynamo.variables.hashable import HashableTracker
from torch._dynamo.variables.lazy import LazyVariableTracker
from torch._dynamo.variables.optimizer import OptimizerVariable

_set_capturable = OptimizerVariable._set_capturable


def register() -> None:
    OptimizerVariable._set_capturable = _with_state_on_device  # type: ignore[method-assign, assignment]


def _with_state_on_device(optimizer: OptimizerVariable, translator: Any) -> None:
    """What Dynamo does when it captures the step of an optimizer."""
    groups = optimizer.value.param_groups
    is_ours = all(each.device.type == "ttnn" for group in groups for each in group["params"])
    if is_ours:
        _create_steps_on_device(optimizer.value)
    _set_capturable(optimizer, translator)
    if is_ours and optimizer.source is not None:
        _take_rates_as_tensors(translator, VariableTracker.build(
            translator, groups, AttrSource(optimizer.source, "param_groups")
        ))  # fmt: skip


def _create_steps_on_device(optimizer: torch.optim.Optimizer) -> None:
    """Let an optimizer create its step counts beside the parameters, as Dynamo does for CUDA.

    On the CPU, every count would be uploaded and downloaded by every compiled step.
    """
    for group in optimizer.param_groups:
        if "capturable" in group and all(each not in optimizer.state for each in group["params"]):
            group["capturable"] = True


def _take_rates_as_tensors(translator: Any, groups: VariableTracker) -> None:
    """A learning rate that has changed is a tensor from then on: as a constant, each of its values is recompiled."""
    for group in LazyVariableTracker.realize_all(groups).items:  # type: ignore[attr-defined]
        items = group.items
        rate, betas = (items.get(HashableTracker(ConstantVariable.create(name))) for name in ("lr", "betas"))
        if rate is not None:
            items[HashableTracker(ConstantVariable.create("lr"))] = _as_tensor(translator, rate)
        if betas is not None:
            betas.items[:] = [_as_tensor(translator, each) for each in betas.items]


def _as_tensor(translator: Any, number: VariableTracker) -> VariableTracker:
    """A tensor in place of a number that Dynamo has found to change; any other as it is."""
    if number.source is None:
        return number
    realized = number.realize()
    tensor = translator.output.unspec_variable_map.get(number.source.name)
    if tensor is None:
        return realized
    narrow = translator.output.create_proxy("call_method", "to", (tensor.as_proxy(), torch.float32), {})
    return builder.wrap_fx_proxy(translator, narrow)
