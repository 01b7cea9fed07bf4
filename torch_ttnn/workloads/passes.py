"""Forward and backward passes of a model, and a profile of one."""

from __future__ import annotations

import json
import pathlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
import torch.utils._pytree as pytree
from torch import nn

from ttnn_emulator.atomic_files import replacing

Model = Callable[..., Any]


def forward(model: Model, arguments: tuple[Any, ...], keywords: Mapping[str, Any]) -> Any:
    with torch.no_grad():
        return model(*arguments, **keywords)


def backward(model: Model, arguments: tuple[Any, ...], keywords: Mapping[str, Any]) -> Any:
    """Backpropagate the sum of all differentiable outputs; gradients are in the model's parameters afterwards."""
    output = model(*arguments, **keywords)
    sums = [values.float().sum() for values in leaves(output) if values.requires_grad]
    if not sums:
        raise ValueError("no output of the model is differentiable with respect to its parameters")
    torch.stack(sums).sum().backward()
    return output


def leaves(output: Any) -> list[torch.Tensor]:
    """All tensors of a model's output, however nested."""
    return [tensor for tensor in _leaves(output) if isinstance(tensor, torch.Tensor)]


def _leaves(output: Any) -> Iterator[Any]:
    for leaf in pytree.tree_leaves(output):
        if isinstance(leaf, Mapping):  # outputs of transformers that are not registered pytrees
            yield from _leaves(dict(leaf))
        else:
            yield leaf


def write_profile(once: Callable[[], Any], path: pathlib.Path) -> None:
    """A Chrome trace of one call, for chrome://tracing and ui.perfetto.dev."""
    activities = [torch.profiler.ProfilerActivity.CPU]
    with torch.profiler.profile(activities=activities, record_shapes=True) as profile:
        once()
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as temporary:
        profile.export_chrome_trace(str(temporary))
        content = json.loads(temporary.read_bytes())  # torch does not escape names of operations
        if not content.get("traceEvents"):
            raise ValueError("the profiler saw no events")


def parameters(model: nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


def shapes(arguments: tuple[Any, ...], keywords: Mapping[str, Any]) -> dict[str, list[int]]:
    """The shapes of all inputs by keyword or argument index."""
    named = {**{str(number): value for number, value in enumerate(arguments)}, **keywords}
    found: dict[str, list[int]] = {}
    for name, value in named.items():
        for number, tensor in enumerate(leaves(value)):
            found[name if number == 0 else f"{name}[{number}]"] = list(tensor.shape)
    return found
