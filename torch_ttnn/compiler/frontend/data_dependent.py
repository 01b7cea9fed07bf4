"""Graphs with sizes or numbers that depend on values, which no program of fixed shapes can compute: torch runs them.

Dynamo breaks the graph at `nonzero` or `item` by default. It captures them if `capture_scalar_outputs` or
`capture_dynamic_output_shape_ops` of `torch._dynamo.config` is set.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import torch
import torch.fx
from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols

from torch_ttnn.compiler.errors import HostOperationWarning
from torch_ttnn.compiler.frontend.graph_breaks import Missed
from torch_ttnn.compiler.ir.arguments import leaves
from torch_ttnn.compiler.ir.source_lines import source_line

SYMBOLIC = (torch.SymInt, torch.SymFloat, torch.SymBool)
WHOLE_GRAPH = "graph that torch runs"
ADVICE = (
    "without torch._dynamo.config.capture_scalar_outputs and capture_dynamic_output_shape_ops Dynamo breaks the graph "
    "there, and the rest runs on the device"
)


def left_to_torch(graph: torch.fx.Graph) -> Missed | None:
    """Why torch runs a graph: the first operation of which only values determine the size or the number it returns."""
    for node in graph.nodes:
        if node.meta.get("unbacked_bindings") or any(map(_is_unknown, leaves(node.meta.get("val")))):
            reason = f"{node.target} returns a size or a number that depends on values; {ADVICE}"
            return Missed(WHOLE_GRAPH, reason, source_line(node) or "")
    return None


def _is_unknown(val: Any) -> bool:
    numbers = val.shape if isinstance(val, torch.Tensor) else (val,)
    return any(isinstance(each, SYMBOLIC) and bool(free_unbacked_symbols(each)) for each in numbers)


def run_by_torch(graph_module: torch.fx.GraphModule) -> Callable[[list[Any]], list[Any]]:
    """The function that runs a graph with torch."""

    def run(inputs: list[Any]) -> list[Any]:
        with torch.no_grad():
            return list(graph_module(*inputs))

    return run


def warn_of(found: Missed) -> None:
    warnings.warn(f"{found}; options={{'warn': False}} silences this.", HostOperationWarning, stacklevel=2)
