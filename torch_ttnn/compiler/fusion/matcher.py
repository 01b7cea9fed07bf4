"""Patterns of ATen calls, as small trees of data, and the matcher that finds them in a graph.

    x = Tensor("x")
    silu = Op(MUL, x, Op(SIGMOID, x), commutative=True)

A name that occurs twice must be bound to the same value both times. No-ops (a clone, a view to the same shape) may
stand between the calls of a pattern. Nodes inside a match must have no users outside of it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from torch_ttnn.compiler.fusion.nodes import CASTS, Node, is_no_op, is_tensor, number_of, skip_no_ops

# -- matches ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Match:
    """The values bound to the names of a pattern, and the calls that it covers, root first."""

    bound: dict[str, Any] = field(default_factory=dict)
    nodes: tuple[Node, ...] = ()
    steps: tuple[tuple[str, Node, dict[str, Any]], ...] = ()  # of a chain: step name, node, names bound in the step

    def __getitem__(self, name: str) -> Any:
        return self.bound[name]

    def get(self, name: str, default: Any = None) -> Any:
        return self.bound.get(name, default)

    @property
    def root(self) -> Node:
        return self.nodes[0]

    def binding(self, name: str, value: Any) -> Match | None:
        known = self.bound.get(name, _UNKNOWN)
        if known is _UNKNOWN:
            return Match({**self.bound, name: value}, self.nodes, self.steps)
        if isinstance(known, Node) or isinstance(value, Node):
            return self if known is value else None
        return self if known == value else None

    def covering(self, *nodes: Node) -> Match:
        return Match(self.bound, self.nodes + nodes, self.steps)


_UNKNOWN = object()


class Pattern:
    """A pattern; `matches` yields every way in which it matches an argument."""

    def matches(self, item: Any, so_far: Match) -> Iterator[Match]:
        raise NotImplementedError

    def may_match(self, item: Any) -> bool:
        """A cheap check before matching, which rejects most arguments."""
        return True

    @property
    def roots(self) -> frozenset[Any]:
        """The targets that a matching node can have."""
        raise NotImplementedError


@dataclass(frozen=True)
class Tensor(Pattern):
    """Any tensor, bound to a name."""

    name: str

    def matches(self, item: Any, so_far: Match) -> Iterator[Match]:
        item = skip_no_ops(item)
        if is_tensor(item):
            found = so_far.binding(self.name, item)
            if found is not None:
                yield found


def _may_be_number(item: Any) -> bool:
    return not isinstance(item, Node) or (is_tensor(item) and item.meta["val"].dim() == 0)


@dataclass(frozen=True)
class Number(Pattern):
    """Any number, bound to a name."""

    name: str

    def may_match(self, item: Any) -> bool:
        return _may_be_number(item)

    def matches(self, item: Any, so_far: Match) -> Iterator[Match]:
        value = number_of(item)
        if value is not None:
            found = so_far.binding(self.name, value)
            if found is not None:
                yield found


@dataclass(frozen=True)
class Constant(Pattern):
    """This number, within the precision to which constants are usually written."""

    value: float
    tolerance: float = 1e-6

    def may_match(self, item: Any) -> bool:
        return _may_be_number(item)

    def matches(self, item: Any, so_far: Match) -> Iterator[Match]:
        value = number_of(item)
        if value is not None and math.isclose(value, self.value, rel_tol=self.tolerance, abs_tol=0.0):
            yield so_far


@dataclass(frozen=True)
class Anything(Pattern):
    """Any argument, bound to a name as it is."""

    name: str

    def matches(self, item: Any, so_far: Match) -> Iterator[Match]:
        found = so_far.binding(self.name, item)
        if found is not None:
            yield found


@dataclass(frozen=True, init=False)
class Op(Pattern):
    """A call of one of these overloads with exactly these arguments.

    targets      overloads that are equivalent here
    commutative  whether the first two arguments may be swapped
    optional     names of keyword arguments that may be omitted; bound if present
    rest         name for positional arguments after the listed ones; None: no more are allowed
    """

    targets: tuple[Any, ...]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    commutative: bool
    optional: tuple[str, ...]
    rest: str | None

    def __init__(
        self,
        targets: Any,
        *args: Any,
        commutative: bool = False,
        optional: tuple[str, ...] = (),
        rest: str | None = None,
        **kwargs: Any,
    ) -> None:
        fields = (targets if isinstance(targets, tuple) else (targets,), args, kwargs, commutative, optional, rest)
        for name, value in zip(("targets", "args", "kwargs", "commutative", "optional", "rest"), fields):
            object.__setattr__(self, name, value)

    @property
    def roots(self) -> frozenset[Any]:
        return frozenset(self.targets)

    def may_match(self, item: Any) -> bool:
        return isinstance(item, Node) and (item.target in self.targets or is_no_op(item))

    def matches(self, item: Any, so_far: Match) -> Iterator[Match]:
        if not isinstance(item, Node):
            return
        skipped: tuple[Node, ...] = ()
        while item.target not in self.targets:
            if item.op != "call_function" or not is_no_op(item):
                return
            skipped, item = (*skipped, item), item.args[0]
        if len(item.args) < len(self.args) or (len(item.args) > len(self.args) and self.rest is None):
            return
        given = item.args[: len(self.args)]
        orders = [given, (given[1], given[0], *given[2:])] if self.commutative else [given]
        orders = [order for order in orders if _may_match(self.args, order)]
        if not orders or any(name not in self.kwargs and name not in self.optional for name in item.kwargs):
            return
        found: Match | None = so_far.covering(*skipped, item)
        for name in self.optional:
            if name in item.kwargs and found is not None:
                found = found.binding(name, item.kwargs[name])
        if self.rest is not None and found is not None:
            found = found.binding(self.rest, item.args[len(self.args) :])
        if found is None:
            return
        kwargs = [(pattern, item.kwargs.get(name)) for name, pattern in self.kwargs.items()]
        for order in orders:
            yield from _all([*zip(self.args, order), *kwargs], found)


def _may_match(patterns: tuple[Any, ...], items: tuple[Any, ...]) -> bool:
    for pattern, item in zip(patterns, items):
        if isinstance(pattern, Pattern) and not pattern.may_match(item):
            return False
    return True


def _all(pairs: list[tuple[Any, Any]], so_far: Match) -> Iterator[Match]:
    if not pairs:
        yield so_far
        return
    (pattern, item), *others = pairs
    if isinstance(pattern, Pattern):
        for found in pattern.matches(item, so_far):
            yield from _all(others, found)
    elif type(pattern) is type(item) and pattern == item:
        yield from _all(others, so_far)


@dataclass(frozen=True, init=False)
class Each(Pattern):
    """A list of arguments, with a pattern for each."""

    patterns: tuple[Pattern, ...]

    def __init__(self, *patterns: Pattern) -> None:
        object.__setattr__(self, "patterns", patterns)

    def matches(self, item: Any, so_far: Match) -> Iterator[Match]:
        if isinstance(item, list | tuple) and len(item) == len(self.patterns):
            yield from _all(list(zip(self.patterns, item)), so_far)


@dataclass(frozen=True, init=False)
class Either(Pattern):
    """One of several alternatives."""

    forms: tuple[Pattern, ...]

    def __init__(self, *forms: Pattern) -> None:
        object.__setattr__(self, "forms", forms)

    @property
    def roots(self) -> frozenset[Any]:
        return frozenset().union(*[form.roots for form in self.forms])

    def may_match(self, item: Any) -> bool:
        return any(form.may_match(item) for form in self.forms)

    def matches(self, item: Any, so_far: Match) -> Iterator[Match]:
        for form in self.forms:
            if form.may_match(item):
                yield from form.matches(item, so_far)


@dataclass(frozen=True, init=False)
class Through(Pattern):
    """A pattern behind any number of calls of these overloads, with any other arguments."""

    targets: tuple[Any, ...]
    inner: Pattern

    def __init__(self, targets: tuple[Any, ...], inner: Pattern) -> None:
        object.__setattr__(self, "targets", targets)
        object.__setattr__(self, "inner", inner)

    @property
    def roots(self) -> frozenset[Any]:
        return self.inner.roots | frozenset(self.targets)

    def matches(self, item: Any, so_far: Match) -> Iterator[Match]:
        yield from self.inner.matches(item, so_far)
        while isinstance(item, Node) and (item.target in self.targets or is_no_op(item)):
            so_far = so_far.covering(item)
            item = item.args[0]
            yield from self.inner.matches(item, so_far)


def Casts(inner: Pattern) -> Through:
    """A pattern behind any number of dtype conversions."""
    return Through(CASTS, inner)


BEFORE = Anything("before")


@dataclass(frozen=True, init=False)
class Chain(Pattern):
    """Any number of steps, in any order, back to an end.

    A step is a pattern in which `BEFORE` stands for the preceding value. The steps of a match are listed in the order
    of computation, from the end to the root, each with the names that it bound.
    """

    steps: dict[str, Pattern]
    end: Pattern

    def __init__(self, end: Pattern, **steps: Pattern) -> None:
        object.__setattr__(self, "steps", steps)
        object.__setattr__(self, "end", end)

    def matches(self, item: Any, so_far: Match) -> Iterator[Match]:
        yield from self.end.matches(item, so_far)
        if not isinstance(item, Node):
            return
        for name, step in self.steps.items():
            if item.target not in step.roots and not is_no_op(item):
                continue
            for found in step.matches(item, Match({}, so_far.nodes, so_far.steps)):
                bound = dict(found.bound)
                before = bound.pop("before")
                taken = found.nodes[len(so_far.nodes)]
                onward = Match(so_far.bound, found.nodes, ((name, skip_no_ops(taken), bound), *so_far.steps))
                yield from self.matches(before, onward)


# -- matching ---------------------------------------------------------------------------------------------------------


def is_closed(match: Match) -> bool:
    """Whether no node of the match but the root has users outside of it."""
    covered = set(match.nodes)
    return all(user in covered for node in match.nodes if node is not match.root for user in node.users)


def closed_matches(pattern: Pattern, root: Node) -> Iterator[Match]:
    """Every closed match of the pattern at this node."""
    for found in pattern.matches(root, Match()):
        if found.nodes and found.nodes[0] is root and is_closed(found):
            yield found
