"""Operations that the user keeps on the host: the option `host_ops`."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.fx

REASON = "the option host_ops keeps it on the host"


def overloads_of(names: Iterable[str]) -> frozenset[Any]:
    """The overloads of names such as "aten.gelu.default", "aten.gelu" or "mylib::swiglu"."""
    return frozenset([overload for name in names for overload in _overloads(name)])


def _overloads(name: str) -> list[Any]:
    namespace, _, rest = name.replace("::", ".", 1).partition(".")
    operator, _, overload = rest.partition(".")
    packet = getattr(getattr(torch.ops, namespace), operator, None) if operator else None
    if not isinstance(packet, torch._ops.OpOverloadPacket):
        raise ValueError(f"host_ops: torch has no operator {name!r}{_suggestion(namespace, operator)}")
    if overload and overload not in packet.overloads():
        raise ValueError(f"host_ops: {namespace}.{operator} has no overload {overload!r}, only {_listed(packet)}")
    chosen = [getattr(packet, each) for each in ([overload] if overload else packet.overloads())]
    if all(_is_decomposed(each) for each in chosen):
        raise ValueError(
            f"host_ops: torch decomposes {name} before a backend sees it; name the operators that it becomes, "
            "which torch_ttnn.explain lists"
        )
    return chosen


def _suggestion(namespace: str, operator: str) -> str:
    known = [name.partition("::")[2].partition(".")[0] for name in torch._C._dispatch_get_all_op_names()]
    close = difflib.get_close_matches(operator or namespace, sorted(set(known)), 1)
    return f"; did you mean 'aten.{close[0]}'?" if close else ""


def _listed(packet: Any) -> str:
    return ", ".join(map(repr, packet.overloads()))


def _is_decomposed(overload: Any) -> bool:
    """Whether it never reaches a backend: functionalisation also replaces overloads that write to an argument."""
    is_composite = overload.has_kernel_for_dispatch_key(torch._C.DispatchKey.CompositeImplicitAutograd)
    return overload._schema.is_mutable or is_composite


class _Hidden:
    """Wraps an overload so that no fusion matches it."""

    def __init__(self, overload: Any) -> None:
        self.overload = overload
        self.__name__ = str(overload)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.overload(*args, **kwargs)


@contextmanager
def hidden_from_fusions(graph: torch.fx.Graph, overloads: frozenset[Any]) -> Iterator[None]:
    """Within this context no fusion matches a call of these overloads."""
    for node in graph.nodes:
        if node.target in overloads:
            node.target = _Hidden(node.target)
    try:
        yield
    finally:
        for node in graph.nodes:
            if isinstance(node.target, _Hidden):
                node.target = node.target.overload
