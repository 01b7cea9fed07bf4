"""Values that cannot be NaN in torch: computed from integers, booleans and constants by operations that create none."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import torch
import torch.fx

from torch_ttnn.compiler.analysis.ranges import Ranges
from torch_ttnn.compiler.ir.arguments import leaves

aten = torch.ops.aten
LARGE = 1e30  # sums and products of a few smaller numbers stay finite in float32 and in bfloat16


def is_float(val: Any) -> bool:
    """Whether a value, or one of several, has a dtype with NaN."""
    if isinstance(val, tuple | list):
        return any(is_float(each) for each in val)
    return isinstance(val, torch.Tensor) and (val.dtype.is_floating_point or val.dtype.is_complex)


def overloads(*packets: str) -> frozenset[Any]:
    """All overloads of these ATen operations."""
    found = [getattr(aten, name, None) for name in packets]
    return frozenset(getattr(packet, name) for packet in found if packet is not None for name in packet.overloads())


# These return NaN only for NaN, not for infinity.
PASSING = overloads(
    "view", "_unsafe_view", "reshape", "unsqueeze", "squeeze", "expand", "clone", "alias", "detach", "slice", "select",
    "permute", "transpose", "t", "repeat", "flip", "roll", "gather", "index", "_unsafe_index", "index_select",
    "diagonal", "unfold", "lift_fresh_copy", "lift_fresh", "contiguous", "embedding", "as_strided", "cat", "stack",
    "split", "split_with_sizes", "unbind", "chunk", "where", "masked_fill", "clamp", "clamp_min", "clamp_max",
    "hardtanh", "minimum", "maximum", "amax", "amin", "max", "min", "sort", "topk", "constant_pad_nd", "tril", "triu",
    "relu", "abs", "neg", "sign", "floor", "ceil", "round", "trunc", "sigmoid", "tanh", "exp", "exp2", "expm1", "atan",
    "erf", "erfc", "square", "_to_copy", "slice_scatter", "select_scatter", "copy", "fill", "upsample_nearest1d",
    "upsample_nearest2d", "upsample_nearest3d", "max_pool2d_with_indices", "reciprocal", "relu6", "hardsigmoid",
) | {aten.scatter.src, aten.scatter.value}  # fmt: skip
# Filled with numbers; of the tensor only the shape matters.
MADE = overloads(
    "zeros", "ones", "full", "scalar_tensor", "arange", "linspace", "eye", "rand", "randn", "full_like", "zeros_like",
    "ones_like", "new_full", "new_zeros", "new_ones",
)  # fmt: skip
SUMS = overloads("add", "sub", "rsub")
PRODUCTS = overloads("mul", "cos", "sin", "cumsum", "sum", "mean")
QUOTIENTS = overloads("div")
OF_POSITIVE = overloads("sqrt", "log", "log2", "log10", "rsqrt", "log1p")


class NeverNan:
    """The nodes of a graph whose values cannot be NaN: `node in NeverNan(graph_module, ranges)`."""

    def __init__(self, graph_module: torch.fx.GraphModule, ranges: Ranges) -> None:
        self._module = graph_module
        self._ranges = ranges
        self._known: set[torch.fx.Node] = set()
        for node in graph_module.graph.nodes:  # in order: arguments come first
            if not is_float(node.meta.get("val")) or self._by_rule(node):
                self._known.add(node)

    def __contains__(self, node: torch.fx.Node) -> bool:
        return node in self._known

    def _by_rule(self, node: torch.fx.Node) -> bool:
        if node.op == "get_attr":
            held = operator.attrgetter(str(node.target))(self._module)
            return isinstance(held, torch.Tensor) and not held.is_meta and not bool(held.isnan().any())
        if node.op != "call_function":
            return False
        if node.target is aten.nan_to_num.default:
            given = node.args[1] if len(node.args) > 1 else node.kwargs.get("nan")
            return given is None or not math.isnan(given)  # type: ignore[arg-type]
        given = leaves((node.args, node.kwargs))
        if any(isinstance(each, float) and math.isnan(each) for each in given):
            return False
        if node.target in MADE:
            return True
        if not all(each in self._known for each in node.all_input_nodes):
            return False
        if node.target is operator.getitem or node.target in PASSING:
            return True
        return any(node.target in operations and holds(self, node) for operations, holds in RULES)

    def _is_small(self, item: Any) -> bool:
        low, high = self._ranges(item)
        return low > -LARGE and high < LARGE

    def _sum(self, node: torch.fx.Node) -> bool:
        """Infinity minus infinity is NaN: one of the two must be finite."""
        return any(self._is_small(item) for item in node.args[:2])

    def _product(self, node: torch.fx.Node) -> bool:
        return all(self._is_small(each) for each in node.args if isinstance(each, torch.fx.Node | int | float))

    def _quotient(self, node: torch.fx.Node) -> bool:
        low, high = self._ranges(node.args[1])
        return self._is_small(node.args[0]) and not low <= 0 <= high

    def _of_positive(self, node: torch.fx.Node) -> bool:
        return self._ranges(node.args[0]).low >= 0


RULES: list[tuple[frozenset[Any], Callable[[NeverNan, torch.fx.Node], bool]]] = [
    (SUMS, NeverNan._sum),
    (PRODUCTS, NeverNan._product),
    (QUOTIENTS, NeverNan._quotient),
    (OF_POSITIVE, NeverNan._of_positive),
]
