"""Models on fake tensors, which have no values, so that a network of any size is built and traced in seconds.

Models whose control flow depends on values (which boxes are kept, which tokens an expert gets) cannot run this way:
torch raises `DataDependentOutputException` or a related exception of `torch._subclasses.fake_tensor`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn.modules.module import register_module_parameter_registration_hook
from torch.nn.parameter import is_lazy
from torch.overrides import TorchFunctionMode

from torch_ttnn.zoo.entry import ModelEntry

LARGE = 1 << 24  # elements of a tensor that is certainly a weight


@dataclass(frozen=True)
class Fake:
    """A model and inputs without values, to be called within `mode`."""

    model: nn.Module
    arguments: tuple[Any, ...]
    keywords: dict[str, Any]


@contextmanager
def fake(entry: ModelEntry, *, seed: int = 0, batch: int | None = None) -> Iterator[Fake]:
    """The model on fake tensors, in eval mode; everything within the block runs on fake tensors."""
    model = on_meta(entry)
    with FakeTensorMode(allow_non_fake_inputs=True) as mode:
        _fill(model, mode)
        arguments, keywords = entry.inputs(seed, batch=batch)
        yield Fake(model, arguments, keywords)


def on_meta(entry: ModelEntry) -> nn.Module:
    """The model with all parameters on the `meta` device: nothing is allocated or initialised.

    Other tensors that its constructor computes (drop rates, widths, position tables) have values, because constructors
    read them.
    """
    handle = register_module_parameter_registration_hook(_to_meta)
    try:
        with _Unallocated():
            return entry.architecture.blank().eval()
    finally:
        handle.remove()


class _Unallocated(TorchFunctionMode):
    """Prevents the allocation of large uninitialised tensors: some are larger than this machine's memory."""

    def __torch_function__(self, function: Any, types: Any, args: tuple = (), kwargs: Any = None) -> Any:
        settings = {**(kwargs or {})}
        if function is torch.empty and settings.get("device") is None and _elements(args) > LARGE:
            settings["device"] = "meta"
        return function(*args, **settings)


def _elements(size: tuple[Any, ...]) -> int:
    sizes = size[0] if len(size) == 1 and isinstance(size[0], list | tuple) else size
    return math.prod(sizes) if all(isinstance(each, int) for each in sizes) else 0


def _to_meta(module: nn.Module, name: str, parameter: Any) -> Any:
    if parameter is None or parameter.is_meta or is_lazy(parameter):
        return parameter
    return nn.Parameter(parameter.detach().to("meta"), parameter.requires_grad)


def _fill(model: nn.Module, mode: FakeTensorMode) -> None:
    """Replace all tensors by fake ones on the CPU; shared tensors stay shared."""
    seen: dict[int, torch.Tensor] = {}
    for module in model.modules():
        tables: tuple[dict[str, Any], ...] = (module._parameters, module._buffers, module.__dict__)
        for table in tables:
            for name, value in list(table.items()):
                if isinstance(value, torch.Tensor):
                    table[name] = seen.setdefault(id(value), _on_cpu(value, mode))


def _on_cpu(tensor: torch.Tensor, mode: FakeTensorMode) -> torch.Tensor:
    if not tensor.is_meta:
        return mode.from_tensor(tensor)
    placed = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device="cpu")
    return nn.Parameter(placed, tensor.requires_grad) if isinstance(tensor, nn.Parameter) else placed
