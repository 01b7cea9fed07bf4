"""Tensors whose values torch leaves undefined. Here they are zeros, so that runs are reproducible."""

from __future__ import annotations

from typing import Any

import torch

from torch_ttnn.compiler.ir.builder import ProgramBuilder
from torch_ttnn.compiler.ir.value import Value
from torch_ttnn.compiler.lowering.registry import lowers

aten = torch.ops.aten


@lowers(
    aten.empty_like.default,
    aten.new_empty.default,
    aten.new_empty_strided.default,
    aten.empty.memory_format,
    aten.empty_strided.default,
)
def empty(ttnn: Any, builder: ProgramBuilder, *_: Any, **__: Any) -> Value:
    val = builder.origin.meta["val"]
    return builder.static(torch.zeros(val.shape, dtype=val.dtype))
