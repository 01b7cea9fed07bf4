"""Random operations that activation checkpointing recomputes: the second one must draw the numbers of the first.

AOTAutograd wraps the first in `run_and_save_rng_state` and the second in `run_with_rng_state`
(torch/_prims/rng_prims.py). Here both become the operation itself, between calls that read or set torch's generator.
So it is lowered like any other, and the device gets the same seed both times.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.fx
from torch._subclasses.fake_tensor import FakeTensorMode

from torch_ttnn.compiler.fusion import composites
from torch_ttnn.compiler.ir.arguments import leaves, mapped
from torch_ttnn.compiler.ir.metadata import RANDOM_STATE, annotate

SAVES = torch.ops.higher_order.run_and_save_rng_state  # (operation, ...) returns the state before, and the result
RESTORES = torch.ops.higher_order.run_with_rng_state  # (state, operation, ...) returns the result
OPERATORS = (SAVES, RESTORES)

Copies = dict[torch.fx.Node, torch.fx.Node]


def direct_call(node: torch.fx.Node, graph: torch.fx.Graph, copies: Copies, position: int) -> torch.fx.Node:
    """The wrapped operation, with calls around it that read or set the generator's state."""
    if node.target is SAVES:
        operation, *args = node.args
        state = _of_generator(graph, composites.rng_state, ())
    else:
        saved_state, operation, *args = node.args
        saved = copies[saved_state]  # type: ignore[index]
        saved.meta.setdefault("val", _state())  # the partitioner sets none for this input
        state = _of_generator(graph, composites.exchanged_rng_state, (saved,))
    args, kwargs = torch.fx.node.map_arg((tuple(args), node.kwargs), copies.__getitem__)  # type: ignore[assignment]
    direct = graph.call_function(operation, tuple(args), dict(kwargs))  # type: ignore[arg-type]
    direct.meta.update({name: node.meta[name] for name in ("stack_trace", "nn_module_stack") if name in node.meta})
    annotate(direct, val=_result(direct), position=position, random_state=state)
    if node.target is RESTORES:
        _of_generator(graph, composites.exchanged_rng_state, (state,))
    return direct


def result_of_direct_call(node: torch.fx.Node, copies: Copies) -> torch.fx.Node:
    """The saved state, or the result, of an operation whose state is saved."""
    source, number = node.args
    direct = copies[source]  # type: ignore[index]
    return RANDOM_STATE[direct] if number == 0 else direct


def _of_generator(graph: torch.fx.Graph, function: Any, args: tuple) -> torch.fx.Node:
    node = graph.call_function(function, args)
    annotate(node, val=_state(), effect=True, sets_random_state=True)
    return node


def _state() -> torch.Tensor:
    return torch.empty_like(torch.get_rng_state(), device="meta")


def _result(node: torch.fx.Node) -> Any:
    """The fake result of a call."""

    def val_of(item: Any) -> Any:
        return item.meta["val"] if isinstance(item, torch.fx.Node) else item

    args, kwargs = mapped((node.args, dict(node.kwargs)), val_of)
    fake_modes = [each.fake_mode for each in leaves((args, kwargs)) if hasattr(each, "fake_mode")]
    with fake_modes[0] if fake_modes else FakeTensorMode():
        return node.target(*args, **kwargs)  # type: ignore[operator]
