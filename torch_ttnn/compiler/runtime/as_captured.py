"""Runs a captured graph with torch, so that every value has its captured strides.

Torch's kernels need not return the captured strides: for an operation that is not decomposed, the capture takes them
from its meta function, and the CPU kernel may choose others. A view of such a result then fails, and an operator that
reads memory directly reads other values.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.fx

from torch_ttnn.compiler.fusion import composites


def run_as_captured(graph_module: torch.fx.GraphModule, inputs: Sequence[Any]) -> list[Any]:
    """The outputs that torch computes for these inputs, without gradients."""
    with torch.no_grad():
        return list(_AsCaptured(graph_module).run(*inputs, enable_io_processing=False))


def corrected_strides(graph_module: torch.fx.GraphModule, inputs: Sequence[Any]) -> dict[str, list[int]]:
    """The captured strides of nodes for which torch's kernels return others, by node name."""
    interpreter = _AsCaptured(graph_module)
    with torch.no_grad():
        interpreter.run(*inputs, enable_io_processing=False)
    return interpreter.corrected


class _AsCaptured(torch.fx.Interpreter):
    def __init__(self, graph_module: torch.fx.GraphModule) -> None:
        super().__init__(graph_module)
        self.extra_traceback = False  # errors keep torch's own message
        self.corrected: dict[str, list[int]] = {}

    def run_node(self, n: torch.fx.Node) -> Any:
        result, val = super().run_node(n), n.meta.get("val")
        if n.op != "call_function" or not isinstance(result, torch.Tensor) or not isinstance(val, torch.Tensor):
            return result
        if _has_strides_of(result, val):
            return result
        self.corrected[n.name] = list(val.stride())
        return composites.copied_to_strides(result, val.stride())


def _has_strides_of(result: torch.Tensor, val: torch.Tensor) -> bool:
    if result.layout is not torch.strided or result.numel() == 0:
        return True
    return all(size == 1 or mine == theirs for size, mine, theirs in zip(result.shape, result.stride(), val.stride()))
