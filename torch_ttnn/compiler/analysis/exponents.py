"""Sums of logarithms that are exponents: the device computes them in float32.

The relative error of `exp(x)` is the absolute error of `x`. A logarithm of 50 in bfloat16 is off by up to 0.125, and
`exp(a - b)` of two of them by a quarter, however small their difference. Many gradients of torch have this form:
`logsumexp`, `logcumsumexp`, `log_ndtr`.
"""

from __future__ import annotations

import torch
import torch.fx

from torch_ttnn.compiler.analysis.never_nan import is_float, overloads

EXPONENTIALS = overloads("exp", "exp2", "expm1", "sinh", "cosh")
LOGARITHMS = overloads(
    "log", "log1p", "log2", "log10", "logsumexp", "logcumsumexp", "lgamma", "mvlgamma", "logaddexp", "logaddexp2",
    "log_sigmoid_forward", "xlogy", "special_xlog1py",
)  # fmt: skip
# Their gradients take the exponential of a difference with the forward result.
SAVED = overloads("logsumexp", "logcumsumexp")
SUMS = overloads("add", "sub", "rsub", "sum", "cumsum")
# Operations that propagate the error of their input to the exponent.
PROPAGATING = LOGARITHMS | SUMS | overloads(
    "neg", "mul", "div", "where", "masked_fill", "pow", "square", "abs", "clamp", "clamp_min", "clamp_max", "maximum",
    "minimum", "amax", "amin", "flip", "view", "_unsafe_view", "reshape", "expand", "permute", "transpose", "t",
    "unsqueeze", "squeeze", "slice", "select", "clone", "detach", "alias", "lift_fresh_copy", "_to_copy",
)  # fmt: skip


def in_float32(graph: torch.fx.Graph) -> set[torch.fx.Node]:
    """Nodes to compute in float32: exponents from logarithms, their exponentials, and logarithms saved for backward."""
    found: set[torch.fx.Node] = set()
    for node in graph.nodes:
        if node.target in EXPONENTIALS and is_float(node.meta.get("val")):
            exponent = _exponent(node)
            if any(map(_adds_tensors, exponent)) and (
                node.meta.get("autograd_backward") or any(each.target in LOGARITHMS for each in exponent)
            ):
                found |= {node, *exponent}
        elif node.target in SAVED and any(user.op == "output" for user in _read_by(node)):
            found.add(node)
    return found


def _exponent(node: torch.fx.Node) -> list[torch.fx.Node]:
    """The operations that compute the argument of an exponential, as far as their rounding affects the exponent."""
    found: dict[torch.fx.Node, None] = {}
    waiting = list(node.all_input_nodes)
    while waiting:
        each = waiting.pop()
        if each not in found and each.target in PROPAGATING and is_float(each.meta.get("val")):
            found[each] = None
            waiting += each.all_input_nodes
    return list(found)


def _adds_tensors(node: torch.fx.Node) -> bool:
    return node.target in SUMS and len(node.all_input_nodes) > 1


def _read_by(node: torch.fx.Node) -> list[torch.fx.Node]:
    """The users of a value, also through views."""
    found = []
    for user in node.users:
        found += _read_by(user) if user.target in overloads("detach", "alias", "view", "squeeze") else [user]
    return found
