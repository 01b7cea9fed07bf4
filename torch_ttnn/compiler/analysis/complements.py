"""Complements of functions that saturate, such as `1 - sigmoid(x)`: the device computes them in float32.

`sigmoid(6)` is 0.9975, and the two nearest numbers of bfloat16 are 0.9961 and 1: the complement would be off by half of
its value or zero, and its logarithm infinite. Many losses have this form, and so do distribution functions:
`log(1 - p)`, `(1 - p) ** gamma`, `ndtr`.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.fx

from torch_ttnn.compiler.analysis.never_nan import is_float, overloads

SATURATING = overloads("erf", "sigmoid", "tanh", "_softmax", "softmax")
# Operations through which the error near 1 propagates.
PROPAGATING = overloads(
    "neg", "square", "pow", "abs", "view", "_unsafe_view", "reshape", "expand", "permute", "transpose", "t",
    "unsqueeze", "squeeze", "slice", "select", "clone", "detach", "alias",
)  # fmt: skip
SUMS = overloads("add", "sub", "rsub")


# The other operand, if it is not a number.
FILLED = overloads("full", "ones", "full_like", "ones_like", "new_full", "new_ones", "scalar_tensor", "lift_fresh_copy")


def in_float32(graph: torch.fx.Graph) -> set[torch.fx.Node]:
    """Sums of a constant and a function that saturates, with everything from the function on."""
    found: set[torch.fx.Node] = set()
    for node in graph.nodes:
        if node.target in SUMS and is_float(node.meta.get("val")):
            terms = [each for each in node.args[:2] if not _is_constant(each)]
            if len(terms) == 1 and len(node.args) > 1 and node.args[0] != 0 and node.args[1] != 0:
                found |= _from_the_function(node, terms[0])
    return found


def _is_constant(item: Any) -> bool:
    return not isinstance(item, torch.fx.Node) or item.op == "get_attr" or item.target in FILLED


def _from_the_function(total: torch.fx.Node, node: Any) -> set[torch.fx.Node]:
    """The operations from a function that saturates to the sum that reads it; empty if it reads another value."""
    found = {total}
    while node.target in PROPAGATING and len(node.all_input_nodes) == 1:
        found.add(node)
        node = node.all_input_nodes[0]
    return {*found, node} if node.target in SATURATING else set()
