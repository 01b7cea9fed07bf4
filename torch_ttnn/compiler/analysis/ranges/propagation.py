"""Ranges of the values of a graph, as far as they can be derived without running it.

The device has 32-bit integers, torch mostly 64-bit ones. An operation whose int64 values may exceed 32 bits stays on
the host, where it is exact. Ranges start from bounds that are checked at every call (of integer inputs), constants,
comparisons and sizes, and propagate through the operations in `rules.py`; results of other operations are unbounded.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import torch
import torch.fx

aten = torch.ops.aten
Number = int | float


class Range(NamedTuple):
    """From the smallest to the largest value."""

    low: Number
    high: Number

    def joined(self, other: Range) -> Range:
        return Range(min(self.low, other.low), max(self.high, other.high))

    def within(self, other: Range) -> bool:
        return other.low <= self.low and self.high <= other.high


INT32 = Range(torch.iinfo(torch.int32).min, torch.iinfo(torch.int32).max)
ANYTHING = Range(-math.inf, math.inf)
BOOLEAN = Range(0, 1)

Rule = Callable[[torch.fx.Node, "Ranges"], Range]
RULES: dict[Any, Rule] = {}
SEVERAL: dict[Any, Callable[[torch.fx.Node, Ranges, int], Range]] = {}  # of operations with several results


class Ranges:
    """The ranges of a graph's values; each is computed at its first use.

    inputs       those of placeholders
    constant_of  the value of a node, if it is known
    is_static    whether it depends on weights and constants only; such integers are checked when they are uploaded
    """

    def __init__(
        self,
        inputs: Mapping[torch.fx.Node, Range],
        constant_of: Callable[[torch.fx.Node], torch.Tensor | None],
        is_static: Callable[[torch.fx.Node], bool],
    ) -> None:
        self._known: dict[Any, Range] = dict(inputs)
        self._constant_of = constant_of
        self.is_static = is_static

    def __call__(self, item: Any, output: int = 0) -> Range:
        """The range of a node or a number; of one output if there are several."""
        if not isinstance(item, torch.fx.Node):
            return Range(item, item) if isinstance(item, bool | int | float) else ANYTHING
        key = (item, output) if output else item
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = self._found(item, output)
        return known

    def _found(self, node: torch.fx.Node, output: int) -> Range:
        val = node.meta.get("val")
        whole = _of_dtype(val[output] if isinstance(val, tuple | list) else val)
        if whole == BOOLEAN:
            return BOOLEAN
        is_static = self.is_static(node)
        constant = self._constant_of(node) if is_static else None
        if constant is not None:
            return _of_constant(constant)
        derived = _cut(self._by_rule(node, output, whole), whole)
        return INT32 if is_static and derived == ANYTHING and not _is_floating(val) else derived

    def _by_rule(self, node: torch.fx.Node, output: int, whole: Range) -> Range:
        if node.op != "call_function":
            return whole
        if node.target is operator.getitem:
            source, number = node.args
            return self(source, number)  # type: ignore[arg-type]
        if isinstance(node.meta.get("val"), tuple | list):
            rule_of_several = SEVERAL.get(node.target)
            return rule_of_several(node, self, output) if rule_of_several is not None else whole
        rule_of_one = RULES.get(node.target)
        return rule_of_one(node, self) if rule_of_one is not None else whole


def _of_dtype(val: Any) -> Range:
    """The range of a dtype. int64 is unbounded: beyond 64 bits torch wraps around, and so does the host."""
    if not isinstance(val, torch.Tensor):
        return ANYTHING
    if val.dtype is torch.bool:
        return BOOLEAN
    if val.dtype.is_floating_point or val.dtype.is_complex or val.dtype is torch.int64:
        return ANYTHING
    info = torch.iinfo(val.dtype)
    return Range(info.min, info.max)


def _is_floating(val: Any) -> bool:
    return isinstance(val, torch.Tensor) and val.dtype.is_floating_point


def _of_constant(constant: torch.Tensor) -> Range:
    if constant.is_complex() or not constant.numel() or constant.is_meta:
        return ANYTHING
    low, high = torch.aminmax(constant)
    return ordered(low.item(), high.item())


def _cut(derived: Range, whole: Range) -> Range:
    """A narrower dtype wraps around: a value that may exceed it may be any value of it."""
    if math.isnan(derived.low) or math.isnan(derived.high):
        return whole
    return derived if derived.within(whole) else whole


def ordered(low: Number, high: Number) -> Range:
    return ANYTHING if math.isnan(low) or math.isnan(high) else Range(low, high)


def rule(*overloads: Any) -> Callable[[Rule], Rule]:
    def enter(function: Rule) -> Rule:
        RULES.update(dict.fromkeys(overloads, function))
        return function

    return enter


def divides_by_zero(node: torch.fx.Node, ranges: Ranges) -> bool:
    """Whether integers may be divided by zero, which torch rejects."""
    if node.target not in DIVISIONS or node.meta["val"].dtype.is_floating_point:
        return False
    divisor = ranges(node.args[1])
    return divisor.low <= 0 <= divisor.high


DIVISIONS = {
    aten.floor_divide.default, aten.floor_divide.Scalar, aten.div.Tensor_mode, aten.div.Scalar_mode,
    aten.remainder.Tensor, aten.remainder.Scalar, aten.fmod.Tensor, aten.fmod.Scalar, aten.remainder.Scalar_Tensor,
}  # fmt: skip
