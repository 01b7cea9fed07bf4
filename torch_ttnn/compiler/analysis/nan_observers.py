"""Operations that observe NaN, and the operations that stay on the host so that they see torch's NaN.

The device does not propagate NaN: its packer turns it into infinity in bfloat16, and min, minimum, clamp, sort and sign
drop it in float32 as well. Operations that merely propagate NaN are not affected. Those that observe it run on the
host, together with all floating-point operations that their inputs are computed from, up to the inputs of the graph,
constants, integers and booleans. So do operations that compute integers or booleans from the same values, which are
available there.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Collection, Iterable
from typing import Any

import torch
import torch.fx

from torch_ttnn.compiler.analysis.never_nan import NeverNan, is_float, overloads
from torch_ttnn.compiler.analysis.ranges import Ranges
from torch_ttnn.compiler.ir.arguments import leaves
from torch_ttnn.compiler.ir.source_lines import source_line
from torch_ttnn.compiler.lowering.registry import is_random

aten = torch.ops.aten

ACCEPTED = 'accept=("nan",) runs it on the device anyway'


# From torch's list of operators: those that distinguish NaN from infinity, replace it, or skip it.
LOOKING = overloads(
    "isnan", "isinf", "isposinf", "isneginf", "isfinite", "nan_to_num", "fmax", "fmin", "nansum", "nanmean",
    "nanmedian", "nanquantile", "isclose", "allclose", "equal", "unique_dim", "unique_consecutive",
    "unique_dim_consecutive", "_unique", "_unique2", "_amp_foreach_non_finite_check_and_unscale",
)  # fmt: skip
REPLACING = overloads("nan_to_num")
COMPARISONS = overloads("eq", "ne", "lt", "le", "gt", "ge")
REFLEXIVE = overloads("eq", "ne", "le", "ge")  # a value compared with itself shows whether it is NaN
BOTH = overloads("logical_and", "bitwise_and", "mul")
EITHER = overloads("logical_or", "bitwise_or")
# The same values, element by element.
SAME = overloads("clone", "alias", "detach", "lift_fresh", "lift_fresh_copy", "contiguous")
RESHAPED = overloads("view", "_unsafe_view", "reshape", "expand", "_to_copy")
# The same values in another order: an input that is uploaded and moved is infinite where it was NaN or infinite.
MOVED = SAME | overloads(
    "view", "_unsafe_view", "reshape", "expand", "permute", "transpose", "t", "unsqueeze", "squeeze", "slice", "select",
    "flip", "abs", "neg",
)  # fmt: skip


def host_reasons(
    graph_module: torch.fx.GraphModule, statics: Collection[int], ranges: Callable[[], Ranges]
) -> dict[torch.fx.Node, str]:
    """The operations that must stay on the host because another one observes NaN, with the reasons.

    statics  the indices of the inputs that are weights
    ranges   returns the ranges of the graph's values; called only if an operation observes NaN
    """
    if not any(_may_observe(node) for node in graph_module.graph.nodes):
        return {}
    return _Search(graph_module, statics, ranges()).run()


def _may_observe(node: torch.fx.Node) -> bool:
    return node.target in LOOKING or (node.target in COMPARISONS and bool(_compared_with_itself_or_infinity(node)))


class _Search:
    def __init__(self, graph_module: torch.fx.GraphModule, statics: Collection[int], ranges: Ranges) -> None:
        self.graph = graph_module.graph
        self.static = _static_nodes(self.graph, statics)
        self.never = NeverNan(graph_module, ranges)
        self.reasons: dict[torch.fx.Node, str] = {}
        self.seen: dict[torch.fx.Node, torch.fx.Node] = {}  # a value that may be NaN: its observer

    def run(self) -> dict[torch.fx.Node, str]:
        for node in self.graph.nodes:
            if node not in self.static and (looked_at := self._observed(node)):
                self.reasons[node] = f"it tests for NaN, which the device does not preserve; {ACCEPTED}"
                self._follow(looked_at, node)
        for node in self.graph.nodes:
            if node.op == "call_function" and node not in self.reasons and node not in self.static:
                self._keep_with_its_input(node)
        return self.reasons

    def _observed(self, node: torch.fx.Node) -> list[torch.fx.Node]:
        """The values in which an operation observes NaN; none if it does not, or if none of them can be NaN."""
        if not _may_observe(node) or _restores_nan(node) or _is_of_a_gradient(node):
            return []
        given = [each for each in leaves((node.args, node.kwargs)) if isinstance(each, torch.fx.Node)]
        found = [each for each in given if is_float(each.meta.get("val")) and each not in self.never]
        if _takes_nan_for_infinity(node) and all(self._is_uploaded(each) for each in found):
            return []
        return found

    def _is_uploaded(self, node: torch.fx.Node) -> bool:
        """Whether a value is an input that is only moved: NaN becomes infinity, and nothing else is lost."""
        while node.op == "call_function" and node.target in MOVED:
            node = node.args[0]  # type: ignore[assignment]
        return node.op == "placeholder"

    def _follow(self, values: Iterable[torch.fx.Node], observer: torch.fx.Node) -> None:
        """Keep the operations that these values are computed from on the host."""
        line = source_line(observer)
        reason = (
            f"{observer.target}{' at ' + line if line else ''} tests for NaN in what is computed from it, which the "
            f"device does not preserve; {ACCEPTED}"
        )
        waiting = list(values)
        while waiting:
            node = waiting.pop()
            if node in self.seen or node in self.static or not is_float(node.meta.get("val")):
                continue
            self.seen[node] = observer
            if node.op != "call_function" or node.target in REPLACING:
                continue
            if node.target is not operator.getitem:
                self.reasons.setdefault(node, reason)
            waiting += node.all_input_nodes

    def _keep_with_its_input(self, node: torch.fx.Node) -> None:
        """Keep an operation that computes integers or booleans from an observed value: the device's value differs."""
        results = node.meta.get("val")
        results = results if isinstance(results, tuple | list) else (results,)
        if node.target is operator.getitem or all(is_float(each) for each in results):
            return
        read = [each for each in node.all_input_nodes if each in self.seen and each not in self.never]
        if read:
            observer = self.seen[read[0]]
            line = source_line(observer)
            self.reasons[node] = (
                f"{observer.target}{' at ' + line if line else ''} tests for NaN in the same values, which the device "
                f"does not preserve; {ACCEPTED}"
            )


def _static_nodes(graph: torch.fx.Graph, statics: Collection[int]) -> set[torch.fx.Node]:
    """The nodes that depend on weights and constants only: torch computes them."""
    placeholders = graph.find_nodes(op="placeholder")
    found = {placeholders[number] for number in statics}
    for node in graph.nodes:
        if node.op == "get_attr" or (
            node.op == "call_function"
            and not is_random(node.target)
            and all(each in found for each in node.all_input_nodes)
        ):
            found.add(node)
    return found


# -- observers of NaN, and false ones ----------------------------------------------------------------------------------


def _compared_with_itself_or_infinity(node: torch.fx.Node) -> bool:
    left, right = node.args[:2]
    if not isinstance(left, torch.fx.Node) or not is_float(left.meta.get("val")):
        return False
    if isinstance(right, torch.fx.Node) and _same(left) is _same(right):
        return node.target in REFLEXIVE
    return _is_infinity(right) or _is_infinity(left)


def _same(node: torch.fx.Node) -> torch.fx.Node:
    """The source of a node's values, unchanged and in the same positions."""
    while node.op == "call_function" and (node.target in SAME or node.target in RESHAPED):
        source: Any = node.args[0]
        mine, its = node.meta["val"], source.meta["val"]
        is_exact = torch.promote_types(mine.dtype, its.dtype) is mine.dtype
        if node.target in RESHAPED and (mine.shape != its.shape or not is_exact):
            break
        node = source
    return node


FILLED: dict[Any, int] = {aten.full: 1, aten.full_like: 1, aten.new_full: 2, aten.scalar_tensor: 0}


def _is_infinity(item: Any) -> bool:
    """Whether an item is an infinite number, or a tensor filled with one."""
    if isinstance(item, float):
        return math.isinf(item)
    while isinstance(item, torch.fx.Node) and item.op == "call_function" and item.target in SAME | RESHAPED:
        item = item.args[0]
    if not isinstance(item, torch.fx.Node):
        return False
    if item.op == "get_attr":
        held = operator.attrgetter(str(item.target))(item.graph.owning_module)
        return isinstance(held, torch.Tensor) and held.numel() == 1 and is_float(held) and bool(held.isinf())
    number = _fill_of(item)
    return isinstance(number, float) and math.isinf(number)


def _fill_of(node: torch.fx.Node) -> Any:
    """The number that a tensor is filled with, if it is filled with one."""
    argument = FILLED.get(getattr(node.target, "overloadpacket", None))
    return node.args[argument] if argument is not None and len(node.args) > argument else None


def _takes_nan_for_infinity(node: torch.fx.Node) -> bool:
    """Whether a test has the same result for NaN and infinity: `isfinite`, and its two halves."""
    if node.target is aten.isfinite.default:
        return True
    if node.target in (aten.lt.Scalar, aten.ge.Scalar):
        return _is_infinity(node.args[1]) and _is_magnitude(node.args[0])
    return _is_half_of_isfinite(node)


def _is_magnitude(node: Any) -> bool:
    return node.target is aten.abs.default


def _is_half_of_isfinite(node: torch.fx.Node) -> bool:
    """x == x and |x| != infinity, which is how torch decomposes `isfinite`."""
    return bool(node.users) and all(
        user.target in BOTH and len(user.args) == 2 and _are_halves(*user.args) for user in node.users
    )


def _are_halves(one: Any, other: Any) -> bool:
    if not (isinstance(one, torch.fx.Node) and isinstance(other, torch.fx.Node)):
        return False
    if one.target is aten.ne.Scalar:
        one, other = other, one
    return (
        one.target is aten.eq.Tensor
        and one.args[0] is one.args[1]
        and other.target is aten.ne.Scalar
        and other.args[1] == math.inf
        and _is_magnitude(other.args[0])
        and other.args[0].args[0] is one.args[0]  # type: ignore[union-attr]
    )


def _restores_nan(node: torch.fx.Node) -> bool:
    """`where(isnan(x), nan, y)` and `where(isnan(x), x, y)` propagate NaN, as torch decomposes `xlogy` and `entr`."""
    if node.target is not aten.isnan.default or not node.users:
        return False
    return all(
        user.target is aten.where.self and user.args[0] is node and _is_nan_or(user.args[1], node.args[0])
        for user in node.users
    )


def _is_nan_or(item: Any, value: Any) -> bool:
    if item is value:
        return True
    if not isinstance(item, torch.fx.Node):
        return isinstance(item, float) and math.isnan(item)
    number = _fill_of(item)
    return isinstance(number, float) and math.isnan(number)


def _is_of_a_gradient(node: torch.fx.Node) -> bool:
    """`x == m or isnan(x) and isnan(m)`, by which torch's gradient of a maximum finds its position.

    It also finds infinity in place of NaN.
    """
    if node.target is not aten.isnan.default or not node.meta.get("autograd_backward"):
        return False
    users = list(node.users)
    for user in list(users):
        if user.target in BOTH and all(each.target is aten.isnan.default for each in user.all_input_nodes):
            users.remove(user)
            users += user.users
    return bool(users) and all(
        user.target in EITHER and any(each.target is aten.eq.Tensor for each in user.all_input_nodes) for user in users
    )
