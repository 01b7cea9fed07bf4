"""A captured graph run by torch, with every value lying in memory as it was captured.

What torch's kernels give need not lie as the capture says: the values of an operation that is kept whole are described
by its shape function, and a kernel of the CPU may choose other strides. A view that follows then fails, and an
operator that walks memory reads other values.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.fx

from torch_ttnn.compiler.fusion import composites


def run_as_captured(graph_module: torch.fx.GraphModule, inputs: Sequence[Any]) -> list[Any]:
    """What torch computes for these inputs, without gradients."""
    with torch.no_grad():
        return list(_AsCaptured(graph_module).run(*inputs, enable_io_processing=False))


def corrected_strides(graph_module: torch.fx.GraphModule, inputs: Sequence[Any]) -> dict[str, list[int]]:
    """By the names of nodes: strides that torch's kernels do not give by themselves."""
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
        if _lies_as(result, val):
            return result
        self.corrected[n.name] = list(val.stride())
        return composites.copied_to_strides(result, val.stride())


def _lies_as(result: torch.Tensor, val: torch.Tensor) -> bool:
    if result.layout is not torch.strided or result.numel() == 0:
        return True
    return all(size == 1 or mine == theirs for size, mine, theirs in zip(result.shape, result.stride(), val.stride()))
