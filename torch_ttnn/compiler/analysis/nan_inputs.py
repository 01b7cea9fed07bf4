"""Inputs of a program that may hold NaN and are uploaded: a call with NaN in one of them is torch's to run.

On the device NaN is an infinity, and what is computed from it is what infinity gives: `sigmoid` of it is 1.
"""

from __future__ import annotations

from collections.abc import Collection

import torch
import torch.fx

from torch_ttnn.compiler.analysis.nan_observers import MOVED
from torch_ttnn.compiler.analysis.never_nan import is_float
from torch_ttnn.compiler.ir.metadata import NUMBER, PATH

UPLOAD = "ttnn.from_torch"
TANGENT = "tangents"  # AOTAutograd's name of the gradients that a backward graph receives


def uploaded_floats(captured: torch.fx.Graph, graph: torch.fx.Graph, weights: Collection[torch.fx.Node]) -> list[int]:
    """The indices of floating-point inputs that are uploaded as they are, or after views.

    Of a backward graph only gradients count: saved activations come from the device, which has no NaN.
    """
    tangents = [node.name.startswith(TANGENT) for node in captured.find_nodes(op="placeholder")]
    found = set()
    for node in graph.nodes:
        if PATH.get(node) != UPLOAD:
            continue
        source = node.args[0]
        while isinstance(source, torch.fx.Node) and source.op == "call_function" and source.target in MOVED:
            source = source.args[0]
        if not isinstance(source, torch.fx.Node) or source.op != "placeholder" or source in weights:
            continue
        number = NUMBER[source]
        if is_float(source.meta.get("val")) and (tangents[number] or not any(tangents)):
            found.add(number)
    return sorted(found)


def has_nan(tensor: torch.Tensor) -> bool:
    """Whether a tensor has NaN; a sum, which is faster than a search, rules it out in most cases."""
    if tensor.is_meta or not tensor.is_floating_point() or not tensor.numel():
        return False
    return bool(tensor.sum(dtype=torch.float32).isnan()) and bool(tensor.isnan().any())
