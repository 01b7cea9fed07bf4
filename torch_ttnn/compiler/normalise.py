"""The stage `normalise`: the captured graph without what means nothing to the device, and with nothing twice."""

from __future__ import annotations

import torch
import torch.fx
from torch._functorch.compile_utils import fx_graph_cse


def normalise(captured: torch.fx.GraphModule) -> torch.fx.GraphModule:
    """A cleaned copy; the captured graph itself is left as it is."""
    graph = fx_graph_cse(captured.graph)
    graph.eliminate_dead_code()
    return torch.fx.GraphModule(captured, graph)
