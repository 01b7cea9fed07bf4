"""`meta["val"]` of device tensors, for tools that read the graphs of programs as ordinary FX graphs."""

from __future__ import annotations

from typing import Any

import torch
import torch.fx
from torch._subclasses.fake_tensor import FakeTensorMode

from torch_ttnn.compiler.ir.builder import DOWNLOADED
from torch_ttnn.compiler.ir.metadata import SPEC
from ttnn_emulator import Tensor


def with_vals(graph: torch.fx.Graph) -> torch.fx.Graph:
    """The graph, with a fake tensor for each device tensor, of its shape and the dtype that torch downloads it as."""
    mode = FakeTensorMode()
    for node in graph.nodes:
        if SPEC.on(node) and node.meta.get("val") is None:
            node.meta["val"] = _val(SPEC[node], mode)
    return graph


def _val(spec: Any, mode: FakeTensorMode) -> Any:
    if isinstance(spec, tuple | list):
        return tuple([_val(each, mode) for each in spec])
    if not isinstance(spec, Tensor):
        return spec
    with mode:
        return torch.empty(tuple(spec.shape), dtype=DOWNLOADED[spec.dtype], device="cpu")
