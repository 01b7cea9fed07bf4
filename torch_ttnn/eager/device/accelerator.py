"""`torch.accelerator` for `ttnn`: functions that torch implements in C++ only are answered by `torch.ttnn`."""

from __future__ import annotations

import functools
from typing import Any

import torch

from torch_ttnn.eager.device import device_module

ANSWERED = ("synchronize", "empty_cache", "memory_allocated")


def extend() -> None:
    """Wrap these functions of torch; for other devices they do what they did."""
    for name in ANSWERED:
        original = getattr(torch.accelerator, name)
        setattr(torch.accelerator, name, _answered(original, getattr(device_module, name)))


def _answered(original: Any, ours: Any) -> Any:
    @functools.wraps(original)
    def answer(*args: Any, **kwargs: Any) -> Any:
        found = torch.accelerator.current_accelerator()
        is_ours = found is not None and found.type == "ttnn"
        return ours(*args, **kwargs) if is_ours else original(*args, **kwargs)

    return answer
