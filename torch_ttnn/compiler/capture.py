"""The stage `capture`: Dynamo and AOTAutograd give functional ATen graphs; what we lower is kept whole."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch._decomp import core_aten_decompositions

from torch_ttnn.compiler.lowering import LOWERINGS


@functools.cache
def decompositions() -> dict[Any, Callable[..., Any]]:
    """Core ATen decompositions of all that has no lowering of its own."""
    return {op: rule for op, rule in core_aten_decompositions().items() if op not in LOWERINGS}


def static_inputs() -> list[int]:
    """Which inputs of the graph being compiled are parameters and buffers of the model."""
    context = torch._guards.TracingContext.try_get()
    if context is None or context.fw_metadata is None:
        return []
    return list(context.fw_metadata.static_input_indices)
