"""Results of one number, such as a loss: the last steps to them are not rounded to bfloat16.

A loss is printed, compared with the one of the step before, and scaled: three digits are too few for it. The steps are
sums and pointwise operations; what a loss is computed from keeps its dtype.
"""

from __future__ import annotations

import operator
from typing import Any

import torch
import torch.fx

from torch_ttnn.compiler.analysis.never_nan import overloads
from torch_ttnn.compiler.lowering import registry

STEPS = overloads("sum", "mean", "gather", "nll_loss_forward", "squeeze", "unsqueeze", "view", "_unsafe_view")


def in_float32(graph: torch.fx.Graph) -> set[torch.fx.Node]:
    """The operations on the way to float32 results without dimensions."""
    outputs: Any = graph.output_node().args[0]
    left = [node for node in outputs if isinstance(node, torch.fx.Node) and _is_float32(node) and not _shape(node)]
    found: set[torch.fx.Node] = set()
    while left:
        node = left.pop()
        if node in found or node.op != "call_function" or not _is_step(node):
            continue
        found.add(node)
        left += [each for each in node.all_input_nodes if node.target is operator.getitem or _is_float32(each)]
    return found


def _is_step(node: torch.fx.Node) -> bool:
    if node.target is operator.getitem or node.target in STEPS:
        return True
    lowering = registry.find(node.target)
    return lowering is not None and lowering.pointwise


def _is_float32(node: torch.fx.Node) -> bool:
    val = node.meta.get("val")
    return isinstance(val, torch.Tensor) and val.dtype is torch.float32


def _shape(node: torch.fx.Node) -> tuple[int, ...]:
    return tuple(node.meta["val"].shape)
