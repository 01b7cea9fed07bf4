"""Numbers computed from integers and cast to integers, such as the bucket of a distance: in float32 on the device.

`(log(distance / 16) * 7.7).long()` is another integer if an error in bfloat16 crosses a whole number.
"""

from __future__ import annotations

import torch
import torch.fx

from torch_ttnn.compiler.analysis.never_nan import is_float, overloads

CASTS = overloads("_to_copy", "to") | {torch.ops.prims.convert_element_type.default}
PROPAGATING = CASTS | overloads(
    "add", "sub", "rsub", "mul", "div", "neg", "abs", "log", "log2", "log10", "sqrt", "exp", "exp2", "pow", "square",
    "floor", "ceil", "round", "trunc", "where", "masked_fill", "clamp", "clamp_min", "clamp_max", "maximum", "minimum",
    "view", "_unsafe_view", "reshape", "expand", "unsqueeze", "squeeze", "clone", "alias", "detach",
)  # fmt: skip


def in_float32(graph: torch.fx.Graph) -> set[torch.fx.Node]:
    """The operations between integers and a cast to integers."""
    found: set[torch.fx.Node] = set()
    for node in graph.nodes:
        if node.target in CASTS and not is_float(node.meta.get("val")) and is_float(_source(node).meta.get("val")):
            found |= _from_integers(_source(node))
    return found


def _source(node: torch.fx.Node) -> torch.fx.Node:
    return node.all_input_nodes[0]


def _from_integers(node: torch.fx.Node) -> set[torch.fx.Node]:
    """The operations that compute a number; empty unless all of its digits come from integers and constants."""
    found: set[torch.fx.Node] = set()
    waiting = [node]
    while waiting:
        each = waiting.pop()
        if each in found or each.op == "get_attr" or not is_float(each.meta.get("val")):
            continue
        if each.target not in PROPAGATING:
            return set()
        found.add(each)
        waiting += each.all_input_nodes
    return found
