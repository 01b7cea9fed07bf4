"""Host work at the boundary of a program: views, casts and copies around uploads, downloads and results.
They belong to no operation of the model, but are counted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
import torch.fx

from torch_ttnn.compiler.ir.metadata import MOVE, OUTPUT_VALS, PATH, PREPARED, REASON


@dataclass(frozen=True)
class BorderOp:
    """A view or a copy on the host: the call, the bytes copied (0 for a view), the reason, and the source line."""

    op: str
    bytes: int
    reason: str
    source: str = ""


def border_ops(
    graph: torch.fx.Graph,
    name_of: Callable[[torch.fx.Node], str],
    goes_to: Callable[[torch.fx.Node], str],
    line_of: Callable[[torch.fx.Node], str],
) -> list[BorderOp]:
    """The border operations of a program; the functions return a node's name, its destination, and its source line."""
    found = [
        BorderOp(name_of(node), _copied(node), f"{MOVE[node]} that {goes_to(node)}", line_of(node))
        for node in graph.nodes
        if MOVE.on(node) and not PATH.on(node) and not REASON.on(node)
    ]
    return found + list(_of_results(graph))


def _copied(node: torch.fx.Node) -> int:
    target = node.target
    is_view = isinstance(target, torch._ops.OpOverload) and target.is_view
    return 0 if is_view else _bytes(node.meta.get("val"))


def _of_results(graph: torch.fx.Graph) -> Iterator[BorderOp]:
    """Copies that `Program` makes of results: of constants, and to torch's strides."""
    output = graph.output_node()
    outputs: Any = output.args[0]
    for number, (node, val) in enumerate(zip(outputs, OUTPUT_VALS[output])):
        if not isinstance(node, torch.fx.Node) or not isinstance(val, torch.Tensor):
            continue
        if node.op == "placeholder":
            if PREPARED.on(node):
                yield BorderOp("aten.clone.default", _bytes(val), f"output {number} is a constant of the program")
        elif _has_other_strides(node.meta.get("val"), val):
            yield BorderOp("restrided", _bytes(val), f"output {number} has torch's strides, {list(val.stride())}")


def _has_other_strides(result: Any, val: torch.Tensor) -> bool:
    if not isinstance(result, torch.Tensor) or result.shape != val.shape or val.numel() == 0:
        return False
    steps = zip(val.shape, result.stride(), val.stride())
    return any(size != 1 and mine != theirs for size, mine, theirs in steps)


def _bytes(val: Any) -> int:
    return val.numel() * val.element_size() if isinstance(val, torch.Tensor) else 0
