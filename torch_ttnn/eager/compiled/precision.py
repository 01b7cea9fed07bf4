"""The precision of a graph over tensors on the device."""

from __future__ import annotations

import dataclasses

import torch
import torch.fx

from torch_ttnn.options import TorchTtnnOption

aten = torch.ops.aten
PRODUCTS = frozenset(
    overload
    for name in (
        "mm", "bmm", "addmm", "baddbmm", "convolution", "convolution_backward", "_scaled_dot_product_flash_attention",
        "_scaled_dot_product_flash_attention_for_cpu", "_scaled_dot_product_efficient_attention", "mv", "dot", "addmv",
        "embedding",
    )
    for overload in (getattr(getattr(aten, name), each) for each in getattr(aten, name).overloads())
)  # fmt: skip


def chosen(options: TorchTtnnOption, graph_module: torch.fx.GraphModule) -> TorchTtnnOption:
    """The options with the precision that a graph is computed in.

    The steps of an optimizer are too small for bfloat16: a parameter plus one would be the parameter. A graph without
    products, such as an optimizer's, computes in float32, as its tensors are stored.
    """
    if options.precision == "float32" or any(node.target in PRODUCTS for node in graph_module.graph.nodes):
        return options
    return dataclasses.replace(options, precision="float32")
