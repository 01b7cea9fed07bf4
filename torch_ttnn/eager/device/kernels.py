"""Kernels of torch's dispatch key PrivateUse1: what torch calls without a tensor, or without `__torch_dispatch__`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch_ttnn.eager import composites, creation, handlers, moves, tensor

KERNELS: dict[str, Callable[..., Any]] = {
    "empty.memory_format": creation.empty,
    "empty_strided": creation.empty_strided,
    "_copy_from": moves.copy_from,
    **composites.COMPOSITES,
    **{name: creation.counted(name) for name in creation.COUNTED},
}
tensor.run = handlers.run  # no import at each operation from now on
